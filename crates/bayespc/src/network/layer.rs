//! One layer: a prior and a posterior in natural parameters, and a working copy of the mean weights.
//!
//! ```text
//! prior   M⁰ = 0,  V⁰ = col_var · I,  Ψ⁰ = scale · I,  ν⁰ = d_y + extra_dof
//! M = η₂ η₁⁻¹
//! ```
//!
//! During learning only the lower triangles of η₁ and η₃ are kept up to date, and only the mean is derived
//! from them at every step; [`Layer::posterior`] derives everything else when it is asked for. Where the mean
//! itself moves (`learning::natural_gradient`), η₂ and η₃ follow from it, η₁ and Ψ⁻¹.

mod noise;

use faer::{Accum, Mat, MatMut, MatRef};

use crate::base::linalg::{
    Cholesky, cast, cast_into, mirror_lower, product_into, scaled_identity, without_dust,
};
use crate::distributions::{MatrixNormalWishart, NaturalParams, SufficientStats, Wishart, noise};
use crate::error::Result;
use crate::real::Real;

/// Prior of one layer, settled from [`PriorSettings`](super::PriorSettings) and the layer's place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerPrior {
    /// Diagonal of V⁰.
    pub col_var: f64,
    /// V⁰ of the bias, if it differs.
    pub bias_var: Option<f64>,
    /// Diagonal of Ψ⁰⁻¹.
    pub inv_scale: f64,
    /// ν⁰ − d_y.
    pub extra_dof: f64,
}

impl LayerPrior {
    fn natural(&self, d_post: usize, d_pre: usize) -> NaturalParams {
        let mut pre_pre = scaled_identity(d_pre, 1.0 / self.col_var);
        if let Some(bias_var) = self.bias_var {
            pre_pre[(d_pre - 1, d_pre - 1)] = 1.0 / bias_var;
        }
        NaturalParams {
            pre_pre,
            post_pre: Mat::zeros(d_post, d_pre),
            post_post: scaled_identity(d_post, self.inv_scale),
            count: self.extra_dof + d_pre as f64 - 1.0,
        }
    }
}

/// Posterior of one layer's weights and noise, with what the forward pass needs in working precision.
#[derive(Clone, Debug)]
pub struct Layer<T: Real> {
    prior: NaturalParams,
    natural: NaturalParams,
    col_precision_chol: Cholesky,
    mean: Mat<f64>,
    working_mean: Mat<T>,
    /// Ψ⁻¹ while the mean moves by itself; then η₂ and η₃ are not kept.
    kept_inv_scale: Option<Mat<f64>>,
    /// Room for a step of the mean, and for L⁻¹ and η₁⁻¹.
    step: Mat<f64>,
    inverse: Option<(Mat<f64>, Mat<f64>)>,
}

/// What inference needs of a layer, in working precision; computed once per M-step.
#[derive(Clone, Debug)]
pub struct Expectations<T: Real> {
    /// M, `d_post × d_pre`.
    pub mean: Mat<T>,
    /// ⟨Σ⁻¹⟩, `d_post × d_post`.
    pub precision: Mat<T>,
    /// V, `d_pre × d_pre`, or `0 × 0` where its term is constant.
    pub col_cov: Mat<T>,
}

impl<T: Real> Layer<T> {
    /// A layer whose posterior is its prior but for the mean.
    pub fn new(prior: &LayerPrior, mean: MatRef<'_, f64>) -> Result<Self> {
        let prior = prior.natural(mean.nrows(), mean.ncols());
        let mut natural = prior.clone();
        natural.post_pre = mean * &prior.pre_pre;
        natural.post_post = &prior.post_post + &natural.post_pre * mean.transpose();
        Self::from_natural(prior, natural)
    }

    /// A layer from its prior and posterior natural parameters.
    pub fn from_natural(prior: NaturalParams, natural: NaturalParams) -> Result<Self> {
        let mut layer = Self {
            col_precision_chol: Cholesky::new(natural.pre_pre.as_ref(), "the column precision")?,
            mean: Mat::zeros(natural.d_post(), natural.d_pre()),
            working_mean: Mat::zeros(natural.d_post(), natural.d_pre()),
            kept_inv_scale: None,
            step: Mat::zeros(natural.d_post(), natural.d_pre()),
            inverse: None,
            prior,
            natural,
        };
        layer.refresh_mean()?;
        Ok(layer)
    }

    /// Width of z.
    pub fn d_post(&self) -> usize {
        self.mean.nrows()
    }

    /// Width of φ, bias included.
    pub fn d_pre(&self) -> usize {
        self.mean.ncols()
    }

    /// M.
    pub fn mean(&self) -> MatRef<'_, f64> {
        self.mean.as_ref()
    }

    /// M in working precision.
    pub fn working_mean(&self) -> MatRef<'_, T> {
        self.working_mean.as_ref()
    }

    /// η⁰.
    pub fn prior(&self) -> &NaturalParams {
        &self.prior
    }

    /// η, symmetric in full.
    pub fn natural(&self) -> NaturalParams {
        let mut natural = self.natural.clone();
        mirror_lower(natural.pre_pre.as_mut());
        if let Some(inv_scale) = &self.kept_inv_scale {
            natural.post_pre = &self.mean * &natural.pre_pre;
            natural.post_post = inv_scale + &natural.post_pre * self.mean.transpose();
        }
        mirror_lower(natural.post_post.as_mut());
        natural
    }

    /// Replace η, as finalisation and loading do.
    pub fn set_natural(&mut self, natural: NaturalParams) -> Result<()> {
        self.natural = natural;
        self.kept_inv_scale = None;
        self.refresh_mean()
    }

    /// η ← (1−κ) η + κ (η⁰ + scale · T), then M.
    pub fn blend(&mut self, stats: &SufficientStats, rate: f64, scale: f64) -> Result<()> {
        if self.kept_inv_scale.is_some() {
            self.natural = self.natural();
            self.kept_inv_scale = None;
        }
        self.natural.blend(&self.prior, stats, rate, scale)?;
        self.refresh_mean()
    }

    /// The posterior as a distribution.
    pub fn posterior(&self) -> Result<MatrixNormalWishart> {
        match &self.kept_inv_scale {
            None => MatrixNormalWishart::from_natural(&self.natural()),
            // Ψ⁻¹ is known as it is: taking it from η₃ would lose it to cancellation.
            Some(inv_scale) => {
                let mut col_precision = self.natural.pre_pre.clone();
                mirror_lower(col_precision.as_mut());
                let (mean, dof) = (self.mean.clone(), self.natural.dof());
                MatrixNormalWishart::new(mean, col_precision, inv_scale.clone(), dof)
            }
        }
    }

    /// The prior as a distribution.
    pub fn prior_distribution(&self) -> Result<MatrixNormalWishart> {
        MatrixNormalWishart::from_natural(&self.prior)
    }

    /// M, ⟨Σ⁻¹⟩ and, if asked for, V in working precision (`0 × 0` otherwise).
    pub fn expectations(&self, with_col_cov: bool) -> Result<Expectations<T>> {
        Ok(Expectations {
            mean: self.working_mean.clone(),
            precision: self.expected_precision()?,
            col_cov: if with_col_cov { self.col_cov() } else { Mat::new() },
        })
    }

    /// ⟨Σ⁻¹⟩ in working precision.
    pub(crate) fn expected_precision(&self) -> Result<Mat<T>> {
        let noise = if let Some(inv_scale) = &self.kept_inv_scale {
            Wishart::from_inv_scale(inv_scale.clone(), self.natural.dof())?
        } else {
            let mut post_post = self.natural.post_post.clone();
            mirror_lower(post_post.as_mut());
            noise(&post_post, &self.natural.post_pre, self.mean.as_ref(), self.natural.dof())?
        };
        Ok(cast(noise.expected_precision().as_ref()))
    }

    /// V in working precision.
    pub(crate) fn col_cov(&self) -> Mat<T> {
        cast(self.col_precision_chol.inverse().as_ref())
    }

    /// η₁ ← keep · η₁ + (1−keep) η⁰₁ + `outer` and likewise η₄, with M and Ψ as they are. Only lower triangles
    /// are read and written.
    pub(crate) fn absorb(&mut self, outer: &Mat<T>, keep: f64, count: f64) {
        self.keep_inv_scale();
        for j in 0..self.d_pre() {
            let eta = &mut self.natural.pre_pre.col_as_slice_mut(j)[j..];
            let (prior, outer) = (&self.prior.pre_pre.col_as_slice(j)[j..], &outer.col_as_slice(j)[j..]);
            for ((eta, prior), outer) in eta.iter_mut().zip(prior).zip(outer) {
                *eta = without_dust(keep * *eta + (1.0 - keep) * *prior + outer.as_f64());
            }
        }
        self.natural.count = keep * self.natural.count + (1.0 - keep) * self.prior.count + count;
    }

    /// From here on Ψ⁻¹ is kept, and M moves by itself.
    fn keep_inv_scale(&mut self) {
        if self.kept_inv_scale.is_none() {
            let whole = self.natural();
            self.kept_inv_scale = Some(whole.post_post - whole.post_pre * self.mean.transpose());
        }
    }

    /// Replace M alone, with Ψ as it is.
    pub(crate) fn set_mean(&mut self, mean: MatRef<'_, f64>) {
        self.keep_inv_scale();
        self.mean.copy_from(mean);
        cast_into(&mut self.working_mean, mean);
    }

    /// Replace M, η₁ and η₄, with Ψ as it is.
    pub(crate) fn replace(&mut self, pre_pre: &Mat<f64>, count: f64, mean: MatRef<'_, f64>) -> Result<()> {
        self.set_mean(mean);
        self.natural.pre_pre.copy_from(pre_pre);
        self.natural.count = count;
        self.refactor()
    }

    /// Factor η₁ anew.
    pub(crate) fn refactor(&mut self) -> Result<()> {
        self.col_precision_chol.refactor(self.natural.pre_pre.as_ref(), "the column precision")
    }

    /// M ← M + (gradient + pull (M⁰ − M) V⁰⁻¹) V by the factor of η₁.
    pub(crate) fn step_by_solve(&mut self, gradient: &Mat<T>, pull: f64) {
        cast_into(&mut self.step, gradient.as_ref());
        self.add_pull(pull);
        self.col_precision_chol.solve_in_place(self.step.as_mut().transpose_mut());
        for j in 0..self.d_pre() {
            let (mean, step) = (self.mean.col_as_slice_mut(j), self.step.col_as_slice(j));
            mean.iter_mut().zip(step).for_each(|(m, s)| *m = without_dust(*m + *s));
        }
        cast_into(&mut self.working_mean, self.mean.as_ref());
    }

    /// The same by V itself, which is left in the first rows of `col_cov`; the product is in working precision.
    pub(crate) fn step_by_inverse(&mut self, gradient: &mut Mat<T>, pull: f64, col_cov: &mut Mat<T>) {
        let d = self.d_pre();
        self.col_cov_into(col_cov);
        cast_into(&mut self.step, gradient.as_ref());
        self.add_pull(pull);
        cast_into(gradient, self.step.as_ref());
        self.nudge(|mut mean| {
            product_into(mean.as_mut(), Accum::Add, gradient.as_ref(), col_cov.subrows(0, d), T::one());
            faer::zip!(mean).for_each(|faer::unzip!(m)| *m = without_dust(*m));
        });
    }

    /// M ← M + pull (M⁰ − M) V⁰⁻¹ V.
    pub(crate) fn pull_to_prior(&mut self, pull: f64) {
        self.step_by_solve(&Mat::zeros(self.d_post(), self.d_pre()), pull);
    }

    /// Change M in working precision.
    pub(crate) fn nudge(&mut self, change: impl FnOnce(MatMut<'_, T>)) {
        change(self.working_mean.as_mut());
        cast_into(&mut self.mean, self.working_mean.as_ref());
    }

    /// The working copy of M, to move it many times before [`Layer::set_mean`] brings M itself up to date.
    pub(crate) fn working_mean_mut(&mut self) -> MatMut<'_, T> {
        self.working_mean.as_mut()
    }

    /// step ← step + pull (η⁰₂ − M V⁰⁻¹), for the diagonal V⁰ of every prior here.
    fn add_pull(&mut self, pull: f64) {
        for j in 0..self.d_pre() {
            let precision = self.prior.pre_pre[(j, j)];
            let (mean, prior) = (self.mean.col_as_slice(j), self.prior.post_pre.col_as_slice(j));
            for ((step, mean), prior) in self.step.col_as_slice_mut(j).iter_mut().zip(mean).zip(prior) {
                *step += pull * (prior - mean * precision);
            }
        }
    }

    /// M = η₂ η₁⁻¹ from a fresh factor of η₁.
    fn refresh_mean(&mut self) -> Result<()> {
        self.refactor()?;
        // Mᵀ = η₁⁻¹ η₂ᵀ, solved in place on the transposed view
        self.mean.copy_from(&self.natural.post_pre);
        self.col_precision_chol.solve_in_place(self.mean.as_mut().transpose_mut());
        cast_into(&mut self.working_mean, self.mean.as_ref());
        Ok(())
    }
}
