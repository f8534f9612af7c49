//! Gauss–Newton on all free entries of one sample at once.
//!
//! ```text
//! z ← z − H⁻¹ ∂E/∂z ,   H = ∂²E/∂z² without f″
//! ```
//!
//! Exact in one step for linear networks, where H⁻¹ is the covariance of the free entries.

use faer::Mat;

use super::clamp::Clamp;
use super::relaxation::Relaxer;
use crate::base::linalg::{Cholesky, cast};
use crate::error::Result;
use crate::network::{Activities, Expectations, Network};
use crate::real::Real;

/// Values and variances of z_0 … z_L of one sample, stacked.
pub(super) type Settled = (Vec<f64>, Vec<f64>);

/// One sample at the minimum of its energy.
pub(super) struct Rest<T: Real> {
    /// Its activities.
    pub sample: Activities<T>,
    /// Which of them are free at both ends.
    pub clamp: Clamp<T>,
    /// Numbers of the free entries among z_0 … z_L, stacked.
    pub free: Vec<usize>,
    /// E there.
    pub energy: f64,
    /// Factor of H there, over the free entries.
    pub precision: Cholesky,
}

/// Gauss–Newton on all free entries of one sample at once; exact in one step for linear networks.
pub(super) struct Newton<'a, T: Real> {
    network: &'a Network<T>,
    relaxer: &'a Relaxer<T>,
    layers: Vec<Expectations<T>>,
    /// M_lᵀ⟨Σ_l⁻¹⟩ without the bias row.
    back: Vec<Mat<f64>>,
    /// M_lᵀ⟨Σ_l⁻¹⟩M_l + τ d_l V_l without the bias.
    curvature: Vec<Mat<f64>>,
    offsets: Vec<usize>,
}

impl<'a, T: Real> Newton<'a, T> {
    pub fn new(network: &'a Network<T>, relaxer: &'a Relaxer<T>, temperature: f64) -> Self {
        let mut back = Vec::new();
        let mut curvature = Vec::new();
        let layers = relaxer.layers();
        for layer in &layers {
            let mean: Mat<f64> = cast(layer.mean.as_ref());
            let d = mean.ncols() - 1;
            let weights = mean.subcols(0, d);
            let to_pre = weights.transpose() * cast::<T, f64>(layer.precision.as_ref());
            let mut own = &to_pre * weights;
            if layer.col_cov.nrows() > 0 {
                let factor = temperature * mean.nrows() as f64;
                own += cast::<T, f64>(layer.col_cov.submatrix(0, 0, d, d)) * faer::Scale(factor);
            }
            back.push(to_pre);
            curvature.push(own);
        }
        let offsets = network
            .widths()
            .iter()
            .scan(0, |next, &d| {
                let offset = *next;
                *next += d;
                Some(offset)
            })
            .collect();
        Self { network, relaxer, layers, back, curvature, offsets }
    }

    /// Values and variances of z_0 … z_L of sample `j`, stacked.
    pub fn settle(&self, activities: &Activities<T>, clamp: &Clamp<T>, j: usize) -> Result<Settled> {
        let rest = self.rest(activities, clamp, j)?;
        let covariance = rest.precision.inverse();
        let mut variances = vec![0.0; self.network.widths().iter().sum()];
        for (row, &k) in rest.free.iter().enumerate() {
            variances[k] = covariance[(row, row)];
        }
        Ok((Self::stack(&rest.sample), variances))
    }

    /// Sample `j` at the minimum of its energy.
    pub fn rest(&self, activities: &Activities<T>, clamp: &Clamp<T>, j: usize) -> Result<Rest<T>> {
        let mut sample = Activities {
            pre: activities.pre.iter().map(|m| m.subcols(j, 1).to_owned()).collect(),
            post: activities.post.iter().map(|m| m.subcols(j, 1).to_owned()).collect(),
        };
        let clamp = clamp.columns(j, 1);
        let free = self.free_entries(&clamp);
        let mut energy = self.relaxer.energies(&sample, &clamp)[0];
        let mut factor = self.hessian(&sample, &clamp, &free)?;
        for _ in 0..50 {
            let gradient = self.gradient(&sample, &clamp, &free);
            let step = factor.solve(gradient.as_ref());
            let mut size = 1.0;
            let mut moved = false;
            for _ in 0..30 {
                let candidate = self.shifted(&sample, &free, &step, size);
                let after = self.relaxer.energies(&candidate, &clamp)[0];
                if after < energy {
                    moved = energy - after > 1e-14 * energy.abs();
                    (sample, energy) = (candidate, after);
                    break;
                }
                size *= 0.5;
            }
            factor = self.hessian(&sample, &clamp, &free)?;
            if !moved {
                break;
            }
        }
        Ok(Rest { sample, clamp, free, energy, precision: factor })
    }

    fn free_entries(&self, clamp: &Clamp<T>) -> Vec<usize> {
        let top = self.offsets.len() - 1;
        let is_free = |mask: &Option<Mat<T>>, i: usize| mask.as_ref().is_some_and(|m| m[(i, 0)] > T::zero());
        let widths = self.network.widths();
        (0..=top)
            .flat_map(|k| (0..widths[k]).map(move |i| (k, i)))
            .filter(|&(k, i)| match k {
                0 => is_free(&clamp.free_input, i),
                _ if k == top => is_free(&clamp.free_output, i),
                _ => true,
            })
            .map(|(k, i)| self.offsets[k] + i)
            .collect()
    }

    /// E of one sample.
    pub fn energy(&self, sample: &Activities<T>, clamp: &Clamp<T>) -> f64 {
        self.relaxer.energies(sample, clamp)[0]
    }

    /// z_0 … z_L of one sample, stacked.
    pub fn stack(sample: &Activities<T>) -> Vec<f64> {
        let d_0 = sample.pre[0].nrows() - 1;
        let input = sample.pre[0].col_as_slice(0)[..d_0].iter();
        input.chain(sample.post.iter().flat_map(|z| z.col_as_slice(0))).map(|z| z.as_f64()).collect()
    }

    /// ∂E/∂z over the free entries.
    pub fn gradient(&self, sample: &Activities<T>, clamp: &Clamp<T>, free: &[usize]) -> Mat<f64> {
        let (input, post) = self.relaxer.gradients(sample, clamp);
        let all: Vec<f64> = input
            .col_as_slice(0)
            .iter()
            .chain(post.iter().flat_map(|g| g.col_as_slice(0)))
            .map(|g| g.as_f64())
            .collect();
        Mat::from_fn(free.len(), 1, |row, _| all[free[row]])
    }

    /// The sample with its free entries moved by −size · step.
    pub fn shifted(
        &self,
        sample: &Activities<T>,
        free: &[usize],
        step: &Mat<f64>,
        size: f64,
    ) -> Activities<T> {
        let mut moved = sample.clone();
        let top = self.offsets.len() - 1;
        for (row, &k) in free.iter().enumerate() {
            let layer = self.offsets.partition_point(|&offset| offset <= k) - 1;
            let i = k - self.offsets[layer];
            let z = if layer == 0 { &mut moved.pre[0][(i, 0)] } else { &mut moved.post[layer - 1][(i, 0)] };
            *z -= T::lit(size * step[(row, 0)]);
        }
        for l in 0..top - 1 {
            moved.activate(self.network.settings().activation, l);
        }
        moved
    }

    /// Factor of H over the free entries.
    fn hessian(&self, sample: &Activities<T>, clamp: &Clamp<T>, free: &[usize]) -> Result<Cholesky> {
        let widths = self.network.widths();
        let total: usize = widths.iter().sum();
        let top = widths.len() - 1;
        let activation = self.network.settings().activation;
        let mut whole = Mat::<f64>::zeros(total, total);
        for i in 0..widths[0] {
            whole[(i, i)] = clamp.input_precision.as_f64();
        }
        for l in 0..top {
            let (below, above) = (self.offsets[l], self.offsets[l + 1]);
            let slope = |i: usize| match l {
                0 => 1.0,
                _ => activation.derivative(sample.post[l - 1][(i, 0)]).as_f64(),
            };
            for i in 0..widths[l] {
                for k in 0..widths[l] {
                    whole[(below + i, below + k)] += slope(i) * self.curvature[l][(i, k)] * slope(k);
                }
                for k in 0..widths[l + 1] {
                    let cross = -slope(i) * self.back[l][(i, k)];
                    whole[(below + i, above + k)] = cross;
                    whole[(above + k, below + i)] = cross;
                }
            }
            let precision = &self.layers[l].precision;
            for i in 0..widths[l + 1] {
                for k in 0..widths[l + 1] {
                    whole[(above + i, above + k)] += precision[(i, k)].as_f64();
                }
            }
        }
        let part = Mat::from_fn(free.len(), free.len(), |i, k| whole[(free[i], free[k])]);
        Cholesky::new(part.as_ref(), "the curvature of the energy")
    }
}
