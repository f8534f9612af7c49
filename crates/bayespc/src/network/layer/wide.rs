//! A layer's posterior whose memory is linear in its widths.
//!
//! ```text
//! kept       M, η₁ = V⁻¹ (whole, in blocks or as a sketch), η₄
//! output     Ψ⁻¹, whole: an output has few rows
//! hidden     ⟨Σ⁻¹⟩ = r I + U diag(λ) Uᵀ , the metric of its weights under the feedback rule
//! ```
//!
//! M moves by natural gradient (`learning::natural_gradient`). What somebody asks for as whole matrices is made for him,
//! at the cost of width².

use faer::{Mat, MatMut, MatRef};

use super::LayerPrior;
use crate::base::linalg::{cast, cast_into, mirror_lower, scaled_identity};
use crate::distributions::{
    ColumnPrecision, Directions, MatrixNormalWishart, NaturalParams, Structure, Wishart,
};
use crate::error::Result;
use crate::real::Real;

/// M, η₁, the noise and η₄ of a layer.
#[derive(Clone, Debug)]
pub(crate) struct WideLayer<T: Real> {
    /// Diagonal of Ψ⁰⁻¹, and η⁰₄.
    prior_inv_scale: f64,
    prior_count: f64,
    mean: Mat<f64>,
    working_mean: Mat<T>,
    columns: ColumnPrecision,
    noise: WideNoise,
    count: f64,
}

/// What is known of Σ.
#[derive(Clone, Debug)]
pub(crate) enum WideNoise {
    /// Ψ⁻¹.
    InvScale(Mat<f64>),
    /// ⟨Σ⁻¹⟩.
    Metric(Metric),
}

/// r I + U diag(λ) Uᵀ.
#[derive(Clone, Debug)]
pub(crate) struct Metric {
    /// r.
    pub ridge: f64,
    /// U and λ.
    pub directions: Directions,
}

impl Metric {
    /// r⁻¹ (I − U diag(λ/(λ+r)) Uᵀ), the inverse, as a matrix.
    fn inverse(&self) -> Mat<f64> {
        let Directions { basis, values } = &self.directions;
        let weighted = Mat::from_fn(basis.nrows(), basis.ncols(), |i, j| {
            basis[(i, j)] * values[j] / (values[j] + self.ridge)
        });
        let mut inverse = scaled_identity(basis.nrows(), 1.0) - &weighted * basis.transpose();
        mirror_lower(inverse.as_mut());
        inverse * faer::Scale(1.0 / self.ridge)
    }
}

/// The parts of a layer, as a file has them.
pub(crate) struct WideParts {
    pub mean: Mat<f64>,
    pub columns: ColumnPrecision,
    pub noise: WideNoise,
    pub count: f64,
    pub prior_inv_scale: f64,
    pub prior_count: f64,
}

impl<T: Real> WideLayer<T> {
    /// A layer whose posterior is its prior but for the mean, with factors on V⁰ of the first activities; `hidden`: its
    /// noise is a metric.
    pub fn new(
        prior: &LayerPrior,
        factors: &[f64],
        mean: MatRef<'_, f64>,
        structure: Structure,
        hidden: bool,
    ) -> Self {
        let (d_post, d_pre) = (mean.nrows(), mean.ncols());
        let mut precision = vec![1.0 / prior.var; d_pre];
        precision.iter_mut().zip(factors).for_each(|(precision, factor)| *precision /= factor);
        precision[d_pre - 1] = 1.0 / prior.bias_var.unwrap_or(prior.var);
        let count = prior.extra_dof + d_pre as f64 - 1.0;
        let dof = d_post as f64 + prior.extra_dof;
        let noise = if hidden {
            let directions = Directions { basis: Mat::zeros(d_post, 0), values: Vec::new() };
            WideNoise::Metric(Metric { ridge: dof / prior.inv_scale, directions })
        } else {
            WideNoise::InvScale(scaled_identity(d_post, prior.inv_scale))
        };
        Self::from_parts(WideParts {
            mean: mean.to_owned(),
            columns: ColumnPrecision::new(structure, precision),
            noise,
            count,
            prior_inv_scale: prior.inv_scale,
            prior_count: count,
        })
    }

    /// A layer of its parts.
    pub fn from_parts(parts: WideParts) -> Self {
        let WideParts { mean, columns, noise, count, prior_inv_scale, prior_count } = parts;
        Self { working_mean: cast(mean.as_ref()), prior_inv_scale, prior_count, mean, columns, noise, count }
    }

    /// The same layer with activities in another working precision.
    pub fn to_precision<S: Real>(&self) -> WideLayer<S> {
        WideLayer {
            prior_inv_scale: self.prior_inv_scale,
            prior_count: self.prior_count,
            mean: self.mean.clone(),
            working_mean: cast(self.mean.as_ref()),
            columns: self.columns.clone(),
            noise: self.noise.clone(),
            count: self.count,
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

    /// Change M in working precision.
    pub fn change_working_mean(&mut self, change: impl FnOnce(MatMut<'_, T>)) {
        change(self.working_mean.as_mut());
        cast_into(&mut self.mean, self.working_mean.as_ref());
    }

    /// Replace M.
    pub fn set_mean(&mut self, mean: Mat<f64>) {
        cast_into(&mut self.working_mean, mean.as_ref());
        self.mean = mean;
    }

    /// η₁.
    pub fn columns(&self) -> &ColumnPrecision {
        &self.columns
    }

    /// η₁, to learn in.
    pub fn columns_mut(&mut self) -> &mut ColumnPrecision {
        &mut self.columns
    }

    /// What is known of Σ.
    pub fn wide_noise(&self) -> &WideNoise {
        &self.noise
    }

    /// Replace what is known of Σ.
    pub fn set_noise(&mut self, noise: WideNoise) {
        self.noise = noise;
    }

    /// η₄.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// η⁰₄.
    pub fn prior_count(&self) -> f64 {
        self.prior_count
    }

    /// Diagonal of Ψ⁰⁻¹.
    pub fn prior_inv_scale(&self) -> f64 {
        self.prior_inv_scale
    }

    /// η₄ ← keep · η₄ + (1−keep) η⁰₄ + `count`.
    pub fn blend_count(&mut self, keep: f64, count: f64) {
        self.count = keep * self.count + (1.0 - keep) * self.prior_count + count;
    }

    /// ν = η₄ + d_y − d_x + 1.
    pub fn dof(&self) -> f64 {
        self.count + self.mean.nrows() as f64 - self.mean.ncols() as f64 + 1.0
    }

    /// Ψ⁻¹ as a matrix.
    fn inv_scale(&self) -> Mat<f64> {
        match &self.noise {
            WideNoise::InvScale(inv_scale) => inv_scale.clone(),
            WideNoise::Metric(metric) => metric.inverse() * faer::Scale(self.dof()),
        }
    }

    /// Σ⁻¹ ~ Wishart(Ψ, ν), whole.
    pub fn noise(&self) -> Result<Wishart> {
        Wishart::from_inv_scale(self.inv_scale(), self.dof())
    }

    /// The posterior as a distribution of whole matrices; of a sketch with the lower bound of its precision.
    pub fn posterior(&self) -> Result<MatrixNormalWishart> {
        MatrixNormalWishart::new(self.mean.clone(), self.columns.dense()?, self.inv_scale(), self.dof())
    }

    /// η as whole matrices.
    pub fn natural(&self) -> NaturalParams {
        // Only numbers that are not finite have no directions.
        let prior = |_| self.prior().pre_pre;
        let pre_pre = self.columns.dense().unwrap_or_else(prior);
        let post_pre = &self.mean * &pre_pre;
        let mut post_post = self.inv_scale() + &post_pre * self.mean.transpose();
        mirror_lower(post_post.as_mut());
        NaturalParams { pre_pre, post_pre, post_post, count: self.count }
    }

    /// η⁰ as whole matrices.
    pub fn prior(&self) -> NaturalParams {
        let (d_post, d_pre) = (self.mean.nrows(), self.mean.ncols());
        let own = self.columns.prior();
        NaturalParams {
            pre_pre: Mat::from_fn(d_pre, d_pre, |i, j| if i == j { own[i] } else { 0.0 }),
            post_pre: Mat::zeros(d_post, d_pre),
            post_post: scaled_identity(d_post, self.prior_inv_scale),
            count: self.prior_count,
        }
    }
}
