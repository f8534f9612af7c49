//! The gradient of the energy in the activities (paper Eq. 6).
//!
//! ```text
//! ∂E/∂z_l = ⟨Σ_l⁻¹⟩ ε_l + f′(z_l) ⊙ [ τ d_{l+1} V_{l+1} φ_l − M_{l+1}ᵀ ⟨Σ_{l+1}⁻¹⟩ ε_{l+1} ]_{without bias}
//! ```

use faer::{Accum, Mat};

use super::{Energy, LayerTerms, Precision};
use crate::base::linalg::product_into;
use crate::inference::clamp::{Clamp, HeadWeights};
use crate::network::Activities;
use crate::real::Real;

/// Errors and gradients of one batch, in buffers that are reused. What has not changed is not computed again.
#[derive(Clone, Debug)]
pub(crate) struct Gradients<T: Real> {
    /// ε of every layer.
    errors: Vec<Mat<T>>,
    /// ⟨Σ⁻¹⟩ ε of every layer whose precision is not p · I.
    weighted: Vec<Mat<T>>,
    /// τ d V φ − Mᵀ ⟨Σ⁻¹⟩ ε without the bias, for z_0 … z_{L−1}.
    upstream: Vec<Mat<T>>,
    /// ∂E/∂z_0 … ∂E/∂z_L.
    slopes: Vec<Mat<T>>,
    /// Layers whose error is not that of the activities as they are, or has not been weighed.
    stale: Vec<bool>,
    unweighed: Vec<bool>,
    /// Activities z_0 … z_L that have left the place the known predictions start from.
    moved: Vec<bool>,
}

impl<T: Real> Gradients<T> {
    /// Room for `n` samples of a network with widths d_0 … d_L.
    pub fn new(widths: &[usize], n: usize) -> Self {
        let zeros = |widths: &[usize]| -> Vec<Mat<T>> { widths.iter().map(|&d| Mat::zeros(d, n)).collect() };
        Self {
            errors: zeros(&widths[1..]),
            weighted: zeros(&widths[1..]),
            upstream: zeros(&widths[..widths.len() - 1]),
            slopes: zeros(widths),
            stale: vec![true; widths.len() - 1],
            unweighed: vec![true; widths.len() - 1],
            moved: vec![true; widths.len()],
        }
    }

    /// No activity has moved: the known predictions M φ are those of every layer.
    pub fn begin(&mut self) {
        self.stale.fill(true);
        self.moved.fill(false);
    }

    /// z_k has moved.
    pub fn mark_moved(&mut self, k: usize) {
        self.moved[k] = true;
        let last = self.stale.len().min(k + 1);
        self.stale[k.saturating_sub(1)..last].fill(true);
    }

    /// ε of layer `l`, as it was updated last.
    pub fn error(&self, l: usize) -> &Mat<T> {
        &self.errors[l]
    }

    /// The same, to weigh its samples.
    pub fn error_mut(&mut self, l: usize) -> &mut Mat<T> {
        &mut self.errors[l]
    }

    /// ∂E/∂z_k, as it was updated last.
    pub fn gradient(&self, k: usize) -> &Mat<T> {
        &self.slopes[k]
    }

    /// ∂E/∂z_0, and ∂E/∂z_1 … ∂E/∂z_L.
    pub fn into_parts(mut self) -> (Mat<T>, Vec<Mat<T>>) {
        let post = self.slopes.split_off(1);
        (self.slopes.swap_remove(0), post)
    }

    /// The first layer that has an error at all, or L.
    pub fn first_error(&self) -> usize {
        let is_zero = |m: &Mat<T>| (0..m.ncols()).all(|j| m.col_as_slice(j).iter().all(|x| *x == T::zero()));
        self.errors.iter().position(|error| !is_zero(error)).unwrap_or(self.errors.len())
    }

    /// Bring ε of these layers up to date. `predictions` has M φ of the layers whose φ has not moved.
    pub fn update_errors(
        &mut self,
        energy: &Energy<'_, T>,
        z: &Activities<T>,
        predictions: &[Mat<T>],
        layers: std::ops::Range<usize>,
    ) {
        for l in layers {
            if !self.stale[l] {
                continue;
            }
            (self.stale[l], self.unweighed[l]) = (false, true);
            let (error, post) = (&mut self.errors[l], &z.post[l]);
            if self.moved[l] {
                product_into(error.as_mut(), Accum::Replace, energy.means[l], z.pre[l].as_ref(), T::one());
            } else {
                error.copy_from(&predictions[l]);
            }
            for j in 0..post.ncols() {
                for (e, z) in error.col_as_slice_mut(j).iter_mut().zip(post.col_as_slice(j)) {
                    *e = *z - *e;
                }
            }
        }
    }

    /// ∂E/∂z_k from errors that are up to date; zero where z_k is clamped.
    pub fn update_gradient(&mut self, energy: &Energy<'_, T>, z: &Activities<T>, clamp: &Clamp<T>, k: usize) {
        let top = energy.n_layers();
        let gradient = &mut self.slopes[k];
        if k < top {
            let terms = &energy.terms[k];
            let head = energy.head_of(k, clamp);
            let (weighted, unweighed) = (&mut self.weighted[k], &mut self.unweighed[k]);
            let (error, p) = weighed(terms, head, &self.errors[k], weighted, unweighed);
            energy.pull_into(z, clamp, k, (error, -p), &mut self.upstream[k]);
        }
        if k == 0 {
            let pre = z.pre[0].subrows(0, gradient.nrows());
            faer::zip!(&mut *gradient, &self.upstream[0], pre)
                .for_each(|faer::unzip!(g, up, z)| *g = *up + clamp.input_precision * *z);
        } else {
            let below = k - 1;
            let (weighted, unweighed) = (&mut self.weighted[below], &mut self.unweighed[below]);
            let head = energy.head_of(below, clamp);
            let (own, p) = weighed(&energy.terms[below], head, &self.errors[below], weighted, unweighed);
            if k < top {
                energy.activation.derivative_into(z.post[below].as_ref(), gradient.as_mut());
                for j in 0..gradient.ncols() {
                    let from = own.col_as_slice(j).iter().zip(self.upstream[k].col_as_slice(j));
                    for (g, (own, up)) in gradient.col_as_slice_mut(j).iter_mut().zip(from) {
                        *g = p * *own + *g * *up;
                    }
                }
            } else {
                faer::zip!(&mut *gradient, own).for_each(|faer::unzip!(g, own)| *g = p * *own);
            }
        }
        let free = match k {
            0 => &clamp.free_input,
            _ if k == top => &clamp.free_output,
            _ => return,
        };
        match free {
            Some(free) => faer::zip!(gradient, free).for_each(|faer::unzip!(g, free)| *g *= *free),
            None => gradient.fill(T::zero()),
        }
    }
}

/// ⟨Σ⁻¹⟩ ε as a matrix and a factor, multiplied out once for each error.
fn weighed<'a, T: Real>(
    terms: &LayerTerms<T>,
    head: Option<&HeadWeights<T>>,
    error: &'a Mat<T>,
    weighted: &'a mut Mat<T>,
    unweighed: &mut bool,
) -> (&'a Mat<T>, T) {
    if let Some(head) = head {
        if std::mem::replace(unweighed, false) {
            faer::zip!(&mut *weighted, error, &head.rows)
                .for_each(|faer::unzip!(to, error, weight)| *to = *weight * *error);
        }
        return (weighted, T::one());
    }
    match terms.precision {
        Precision::Full(_) if !std::mem::replace(unweighed, false) => (weighted, T::one()),
        _ => terms.precision.weigh(error, weighted),
    }
}
