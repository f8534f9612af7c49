//! Ψ⁻¹ of a layer whose mean moves by itself (learning/noise_memory.rs has the whole equation).

use faer::{Accum, Mat};

use super::Layer;
use crate::base::linalg::{cast_into, mirror_lower, symmetric_product_into, without_dust};
use crate::real::Real;

impl<T: Real> Layer<T> {
    /// Ψ⁻¹ ← keep · Ψ⁻¹ + (1−keep) Ψ⁰⁻¹ + `outer`, of which only the lower triangle is read.
    pub(crate) fn absorb_noise(&mut self, outer: &Mat<T>, keep: f64) {
        let prior = &self.prior.post_post;
        let Some(inv_scale) = &mut self.kept_inv_scale else {
            debug_assert!(false, "the mean moves by itself");
            return;
        };
        for j in 0..outer.ncols() {
            let (prior, outer) = (&prior.col_as_slice(j)[j..], &outer.col_as_slice(j)[j..]);
            let inv_scale = &mut inv_scale.col_as_slice_mut(j)[j..];
            for ((own, prior), outer) in inv_scale.iter_mut().zip(prior).zip(outer) {
                *own = without_dust(keep * *own + (1.0 - keep) * *prior + outer.as_f64());
            }
        }
        mirror_lower(inv_scale.as_mut());
    }

    /// η₄ ← keep · η₄ + (1−keep) η⁰₄ + `count`.
    pub(crate) fn absorb_count(&mut self, keep: f64, count: f64) {
        self.natural.count = keep * self.natural.count + (1.0 - keep) * self.prior.count + count;
    }

    /// M ← M + ΔM by the factor of η₁, ΔM = (gradient − pull M V⁰⁻¹) V for the prior of mean 0 that every layer has,
    /// and Ψ⁻¹ ← Ψ⁻¹ + pull M V⁰⁻¹ Mᵀ − ΔM η₁ ΔMᵀ.
    pub(crate) fn step_with_noise(&mut self, gradient: &Mat<T>, pull: f64) {
        let pulled = Mat::from_fn(self.d_post(), self.d_pre(), |i, j| {
            pull * self.mean[(i, j)] * self.prior.pre_pre[(j, j)]
        });
        let mut change = Mat::<f64>::zeros(self.d_post(), self.d_post());
        symmetric_product_into(change.as_mut(), Accum::Replace, pulled.as_ref(), self.mean.as_ref(), 1.0);
        cast_into(&mut self.step, gradient.as_ref());
        self.step -= &pulled;
        // ΔM η₁
        let direction = self.step.clone();
        self.col_precision_chol.solve_in_place(self.step.as_mut().transpose_mut());
        // η₁ and Σ εεᵀ were summed in working precision: a hair less is taken away, so that Ψ⁻¹ stays positive
        // definite where a batch explains itself.
        let nearly_all = 1.0 - 64.0 * T::epsilon().as_f64();
        symmetric_product_into(
            change.as_mut(),
            Accum::Add,
            direction.as_ref(),
            self.step.as_ref(),
            -nearly_all,
        );
        self.mean += &self.step;
        faer::zip!(&mut self.mean).for_each(|faer::unzip!(m)| *m = without_dust(*m));
        cast_into(&mut self.working_mean, self.mean.as_ref());
        if let Some(inv_scale) = &mut self.kept_inv_scale {
            mirror_lower(change.as_mut());
            *inv_scale += &change;
        }
    }

    /// V in working precision, into the first rows of `col_cov`.
    pub(crate) fn col_cov_into(&mut self, col_cov: &mut Mat<T>) {
        let d = self.d_pre();
        let (root, inverse) = self.inverse.get_or_insert_with(|| (Mat::zeros(d, d), Mat::zeros(d, d)));
        self.col_precision_chol.inverse_into(root, inverse);
        faer::zip!(col_cov.as_mut().subrows_mut(0, d), inverse.as_ref())
            .for_each(|faer::unzip!(v, inverse)| *v = without_dust(T::lit(*inverse)));
    }
}
