//! A layer's posterior while its mean moves by natural gradient (`learning::natural_gradient`).
//!
//! ```text
//! kept       M, η₁ = V⁻¹, Ψ⁻¹, η₄
//! follows    η₂ = M η₁ ,   η₃ = Ψ⁻¹ + M η₁ Mᵀ
//! ```
//!
//! Steps change M without a solve for it, and Ψ⁻¹ without a difference of large matrices. Only the lower triangle of
//! η₁ is kept up to date. V is that of the last [`MovingMean::factor`], however much η₁ has changed since.

use std::sync::Arc;

use faer::{Accum, Mat, MatMut, MatRef};

use super::{Conjugate, prior_inv_scale};
use crate::base::linalg::{
    Cholesky, cast_into, mirror_lower, product_into, symmetric_product_into, without_dust,
};
use crate::distributions::{MatrixNormalWishart, NaturalParams, Wishart};
use crate::error::Result;
use crate::real::Real;

/// M, η₁, Ψ⁻¹ and η₄ of a layer, each of which moves by itself.
#[derive(Clone, Debug)]
pub(crate) struct MovingMean<T: Real> {
    prior: Arc<NaturalParams>,
    /// Ψ⁰⁻¹.
    prior_inv_scale: Mat<f64>,
    mean: Mat<f64>,
    working_mean: Mat<T>,
    /// η₁, lower triangle, and its factor as of the last time it was taken.
    col_precision: Mat<f64>,
    col_precision_chol: Cholesky,
    inv_scale: Mat<f64>,
    count: f64,
    /// Room for a step of the mean, and for L⁻¹ and η₁⁻¹.
    step: Mat<f64>,
    inverse: Option<(Mat<f64>, Mat<f64>)>,
}

impl<T: Real> MovingMean<T> {
    /// The posterior that η describes; Ψ⁻¹ = η₃ − M η₂ᵀ.
    pub(super) fn new(prior: &Arc<NaturalParams>, conjugate: &Conjugate<T>) -> Self {
        let NaturalParams { pre_pre, post_pre, post_post, count } = conjugate.whole();
        let inv_scale = post_post - post_pre * conjugate.mean.transpose();
        Self {
            prior: Arc::clone(prior),
            prior_inv_scale: prior_inv_scale(prior),
            mean: conjugate.mean.clone(),
            working_mean: conjugate.working_mean.clone(),
            step: Mat::zeros(conjugate.mean.nrows(), pre_pre.nrows()),
            col_precision: pre_pre,
            col_precision_chol: conjugate.col_precision_chol.clone(),
            inv_scale,
            count,
            inverse: None,
        }
    }

    /// M.
    pub fn mean(&self) -> MatRef<'_, f64> {
        self.mean.as_ref()
    }

    /// M in working precision.
    pub fn working_mean(&self) -> MatRef<'_, T> {
        self.working_mean.as_ref()
    }

    /// Factor of η₁ as of the last time it was taken.
    pub(super) fn col_precision_chol(&self) -> &Cholesky {
        &self.col_precision_chol
    }

    /// η, symmetric in full.
    pub(super) fn natural(&self) -> NaturalParams {
        let pre_pre = self.whole_col_precision();
        let post_pre = &self.mean * &pre_pre;
        let mut post_post = &self.inv_scale + &post_pre * self.mean.transpose();
        mirror_lower(post_post.as_mut());
        NaturalParams { pre_pre, post_pre, post_post, count: self.count }
    }

    /// The posterior as a distribution. Ψ⁻¹ is known as it is: taking it from η₃ would lose it to cancellation.
    pub(super) fn posterior(&self) -> Result<MatrixNormalWishart> {
        let (mean, inv_scale) = (self.mean.clone(), self.inv_scale.clone());
        MatrixNormalWishart::new(mean, self.whole_col_precision(), inv_scale, self.dof())
    }

    /// Σ⁻¹ ~ Wishart(Ψ, ν).
    pub(super) fn noise(&self) -> Result<Wishart> {
        Wishart::from_inv_scale(self.inv_scale.clone(), self.dof())
    }

    /// η₁ ← keep · η₁ + (1−keep) η⁰₁ + `outer` and likewise η₄, with M and Ψ as they are. Only lower triangles
    /// are read and written.
    pub fn blend_col_precision<S: Real>(&mut self, outer: &Mat<S>, keep: f64, count: f64) {
        blend_lower(&mut self.col_precision, &self.prior.pre_pre, outer, keep);
        self.blend_count(keep, count);
    }

    /// η₄ ← keep · η₄ + (1−keep) η⁰₄ + `count`.
    pub fn blend_count(&mut self, keep: f64, count: f64) {
        self.count = keep * self.count + (1.0 - keep) * self.prior.count + count;
    }

    /// Ψ⁻¹ ← keep · Ψ⁻¹ + (1−keep) Ψ⁰⁻¹ + `outer`, of which only the lower triangle is read.
    pub fn blend_inv_scale(&mut self, outer: &Mat<T>, keep: f64) {
        blend_lower(&mut self.inv_scale, &self.prior_inv_scale, outer, keep);
        mirror_lower(self.inv_scale.as_mut());
    }

    /// Factor η₁ as it is now.
    pub fn factor(&mut self) -> Result<()> {
        self.col_precision_chol.refactor(self.col_precision.as_ref(), "the column precision")
    }

    /// Replace M, with η₁ and Ψ as they are.
    pub fn set_mean(&mut self, mean: MatRef<'_, f64>) {
        self.mean.copy_from(mean);
        cast_into(&mut self.working_mean, mean);
    }

    /// Replace M, η₁ and η₄, with Ψ as it is.
    pub fn set_weights(&mut self, mean: MatRef<'_, f64>, col_precision: &Mat<f64>, count: f64) -> Result<()> {
        self.set_mean(mean);
        self.col_precision.copy_from(col_precision);
        self.count = count;
        self.factor()
    }

    /// M ← M + (gradient + pull (M⁰ − M) V⁰⁻¹) V by the factor of η₁.
    pub fn step_by_factor<S: Real>(&mut self, gradient: &Mat<S>, pull: f64) {
        cast_into(&mut self.step, gradient.as_ref());
        self.add_pull(pull);
        self.col_precision_chol.solve_in_place(self.step.as_mut().transpose_mut());
        for j in 0..self.mean.ncols() {
            let (mean, step) = (self.mean.col_as_slice_mut(j), self.step.col_as_slice(j));
            mean.iter_mut().zip(step).for_each(|(m, s)| *m = without_dust(*m + *s));
        }
        cast_into(&mut self.working_mean, self.mean.as_ref());
    }

    /// The same by V itself, which is left in the first rows of `col_cov`; the product is in working precision.
    pub fn step_by_inverse(&mut self, gradient: &mut Mat<T>, pull: f64, col_cov: &mut Mat<T>) {
        let d = self.mean.ncols();
        self.col_cov_into(col_cov);
        cast_into(&mut self.step, gradient.as_ref());
        self.add_pull(pull);
        cast_into(gradient, self.step.as_ref());
        self.change_working_mean(|mut mean| {
            product_into(mean.as_mut(), Accum::Add, gradient.as_ref(), col_cov.subrows(0, d), T::one());
            faer::zip!(mean).for_each(|faer::unzip!(m)| *m = without_dust(*m));
        });
    }

    /// M ← M + ΔM by the factor of η₁, ΔM = (gradient − pull D V⁰⁻¹) V with D = M − M⁰,
    /// and Ψ⁻¹ ← Ψ⁻¹ + pull D V⁰⁻¹ Dᵀ − ΔM η₁ ΔMᵀ.
    pub fn step_with_noise(&mut self, gradient: &Mat<T>, pull: f64) {
        let (d_post, d_pre) = (self.mean.nrows(), self.mean.ncols());
        let precision = |j: usize| self.prior.pre_pre[(j, j)];
        let apart = Mat::from_fn(d_post, d_pre, |i, j| {
            self.mean[(i, j)] - self.prior.post_pre[(i, j)] / precision(j)
        });
        let pulled = Mat::from_fn(d_post, d_pre, |i, j| pull * apart[(i, j)] * precision(j));
        let mut change = Mat::<f64>::zeros(d_post, d_post);
        symmetric_product_into(change.as_mut(), Accum::Replace, pulled.as_ref(), apart.as_ref(), 1.0);
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
        mirror_lower(change.as_mut());
        self.inv_scale += &change;
    }

    /// Change M in working precision.
    pub fn change_working_mean(&mut self, change: impl FnOnce(MatMut<'_, T>)) {
        change(self.working_mean.as_mut());
        cast_into(&mut self.mean, self.working_mean.as_ref());
    }

    /// The working copy of M, to move it many times before [`MovingMean::set_mean`] brings M itself up to date.
    pub fn working_mean_mut(&mut self) -> MatMut<'_, T> {
        self.working_mean.as_mut()
    }

    /// V in working precision, into the first rows of `col_cov`.
    pub fn col_cov_into(&mut self, col_cov: &mut Mat<T>) {
        let d = self.mean.ncols();
        let (root, inverse) = self.inverse.get_or_insert_with(|| (Mat::zeros(d, d), Mat::zeros(d, d)));
        self.col_precision_chol.inverse_into(root, inverse);
        faer::zip!(col_cov.as_mut().subrows_mut(0, d), inverse.as_ref())
            .for_each(|faer::unzip!(v, inverse)| *v = without_dust(T::lit(*inverse)));
    }

    /// ν = η₄ + d_y − d_x + 1.
    fn dof(&self) -> f64 {
        self.count + self.mean.nrows() as f64 - self.mean.ncols() as f64 + 1.0
    }

    fn whole_col_precision(&self) -> Mat<f64> {
        let mut whole = self.col_precision.clone();
        mirror_lower(whole.as_mut());
        whole
    }

    /// step ← step + pull (η⁰₂ − M V⁰⁻¹), for the diagonal V⁰ of every prior here.
    fn add_pull(&mut self, pull: f64) {
        for j in 0..self.mean.ncols() {
            let precision = self.prior.pre_pre[(j, j)];
            let (mean, prior) = (self.mean.col_as_slice(j), self.prior.post_pre.col_as_slice(j));
            for ((step, mean), prior) in self.step.col_as_slice_mut(j).iter_mut().zip(mean).zip(prior) {
                *step += pull * (prior - mean * precision);
            }
        }
    }
}

/// A ← keep · A + (1−keep) A⁰ + `outer` in lower triangles; `outer` may have more rows than A.
fn blend_lower<T: Real>(own: &mut Mat<f64>, prior: &Mat<f64>, outer: &Mat<T>, keep: f64) {
    for j in 0..own.ncols() {
        let own = &mut own.col_as_slice_mut(j)[j..];
        let (prior, outer) = (&prior.col_as_slice(j)[j..], &outer.col_as_slice(j)[j..]);
        for ((own, prior), outer) in own.iter_mut().zip(prior).zip(outer) {
            *own = without_dust(keep * *own + (1.0 - keep) * *prior + outer.as_f64());
        }
    }
}
