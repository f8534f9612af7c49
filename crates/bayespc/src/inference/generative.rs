//! The network as a generative model: drawing from it, z_0 first and z_L last, and filling in what is missing.
//!
//! ```text
//! generate   z_0 ~ N(0, σ_0² I) ,   z_l ~ N(W_l φ_{l−1}, Σ_l) ,   y from the head
//! impute     z* = argmin E(Z) over the free entries ,   Cov ≈ H⁻¹ ,   H = ∂²E/∂Z² without f″
//! ```
//!
//! For a linear network H is exact and the imputed values are the exact conditional of a Gaussian model.

use faer::{Mat, MatRef};
use rand::Rng;
use rayon::prelude::*;

use super::clamp::Clamp;
use super::relaxation::{ActivityOptimiser, RelaxationReport, RelaxationSettings, Relaxer, Sweep};
use crate::base::linalg::{Cholesky, cast};
use crate::base::random::standard_normal;
use crate::error::{Error, Result};
use crate::network::{Activities, Expectations, Network};
use crate::prediction::Predictive;
use crate::real::Real;

/// Which weights generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameters {
    /// The posterior mean.
    Mean,
    /// One draw from the posterior.
    Draw,
}

/// Draw `n` targets from the model, inputs from their prior; returns `(z_0, y)`.
pub fn generate<T: Real>(
    network: &Network<T>,
    n: usize,
    parameters: Parameters,
    rng: &mut dyn Rng,
) -> Result<(Mat<f64>, Mat<f64>)> {
    network.settings().head.require_gaussian("generate")?;
    let point = match parameters {
        Parameters::Mean => network.mean_network()?,
        Parameters::Draw => network.draw(&network.posteriors()?, rng)?,
    };
    let std = network.settings().input_var.sqrt();
    let input = standard_normal(network.d_input(), n, rng) * faer::Scale(std);
    let activity = point.forward_noisy(cast(input.as_ref()).as_ref(), rng)?;
    let mut draws = Predictive::from_component(point.density(activity.as_ref())?)?.sample(1, rng);
    Ok((input, draws.swap_remove(0)))
}

/// Data with its missing entries inferred.
#[derive(Clone, Debug)]
pub struct Imputed<T: Real> {
    /// Inputs, missing entries filled, `d_0 × n`.
    pub input: Mat<T>,
    /// Variance of each input entry: 0 where it was observed.
    pub input_variance: Mat<T>,
    /// Targets, missing entries filled, `d_L × n`.
    pub target: Mat<T>,
    /// Variance of each target entry: 0 where it was observed.
    pub target_variance: Mat<T>,
    /// What the relaxation did before the final Newton steps.
    pub report: RelaxationReport,
}

/// Infer the NaN entries of `input` and `target`. `weight_uncertainty` is the temperature τ of that term.
///
/// Hidden layers enter with their learned precision: of a network trained by relaxation that is the noise of
/// its activities; of one trained by feedback it is only a metric, and the result a heuristic.
pub fn impute<T: Real>(
    network: &Network<T>,
    input: MatRef<'_, T>,
    target: MatRef<'_, T>,
    weight_uncertainty: f64,
) -> Result<Imputed<T>> {
    network.settings().head.require_gaussian("impute")?;
    crate::network::check_input(input, network.d_input())?;
    if target.nrows() != network.n_targets() {
        return Err(Error::Shape {
            what: "target",
            axis: "columns",
            found: target.nrows(),
            expected: network.n_targets(),
        });
    }
    let settings = RelaxationSettings {
        steps: 200,
        tolerance: 1e-9,
        optimiser: ActivityOptimiser::Gradient { rate: None },
        sweep: Sweep::Sequential,
        halve_steps: true,
        weight_uncertainty,
        ..RelaxationSettings::paper()
    };
    let clamp = Clamp::missing(input, target, network.settings().input_var)?;
    let relaxer = Relaxer::new(network, &settings, true)?;
    let mut activities = relaxer.start(input, target, &clamp);
    let report = relaxer.relax(&mut activities, &clamp);
    let newton = Newton::new(network, &relaxer, weight_uncertainty);
    let columns: Vec<Settled> = (0..input.ncols())
        .into_par_iter()
        .map(|j| newton.settle(&activities, &clamp, j))
        .collect::<Result<_>>()?;
    let (d_0, d_top) = (input.nrows(), target.nrows());
    let total: usize = network.widths().iter().sum();
    let entry = |offset: usize, pick: fn(&Settled) -> &Vec<f64>| {
        let columns = &columns;
        move |i: usize, j: usize| T::lit(pick(&columns[j])[offset + i])
    };
    let n = input.ncols();
    Ok(Imputed {
        input: Mat::from_fn(d_0, n, entry(0, |c| &c.0)),
        input_variance: Mat::from_fn(d_0, n, entry(0, |c| &c.1)),
        target: Mat::from_fn(d_top, n, entry(total - d_top, |c| &c.0)),
        target_variance: Mat::from_fn(d_top, n, entry(total - d_top, |c| &c.1)),
        report,
    })
}

/// Values and variances of z_0 … z_L of one sample, stacked.
type Settled = (Vec<f64>, Vec<f64>);

/// Gauss–Newton on all free entries of one sample at once; exact in one step for linear networks.
struct Newton<'a, T: Real> {
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
    fn new(network: &'a Network<T>, relaxer: &'a Relaxer<T>, temperature: f64) -> Self {
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
    fn settle(&self, activities: &Activities<T>, clamp: &Clamp<T>, j: usize) -> Result<Settled> {
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
        let covariance = factor.inverse();
        let mut variances = vec![0.0; self.network.widths().iter().sum()];
        for (row, &k) in free.iter().enumerate() {
            variances[k] = covariance[(row, row)];
        }
        Ok((Self::stack(&sample), variances))
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

    fn stack(sample: &Activities<T>) -> Vec<f64> {
        let d_0 = sample.pre[0].nrows() - 1;
        let input = sample.pre[0].col_as_slice(0)[..d_0].iter();
        input.chain(sample.post.iter().flat_map(|z| z.col_as_slice(0))).map(|z| z.as_f64()).collect()
    }

    fn gradient(&self, sample: &Activities<T>, clamp: &Clamp<T>, free: &[usize]) -> Mat<f64> {
        let (input, post) = self.relaxer.gradients(sample, clamp);
        let all: Vec<f64> = input
            .col_as_slice(0)
            .iter()
            .chain(post.iter().flat_map(|g| g.col_as_slice(0)))
            .map(|g| g.as_f64())
            .collect();
        Mat::from_fn(free.len(), 1, |row, _| all[free[row]])
    }

    fn shifted(&self, sample: &Activities<T>, free: &[usize], step: &Mat<f64>, size: f64) -> Activities<T> {
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
