//! One layer: a prior and a posterior over its weights and noise (paper Eq. 7 and 8).
//!
//! ```text
//! prior    M⁰ = 0, or [I 0] of a residual layer,  V⁰ = var · I,  Ψ⁰ = scale · I,  ν⁰ = d_y + extra_dof
//! update   η ← (1−κ) η + κ (η⁰ + scale · T)
//! mean     M = η₂ η₁⁻¹
//! ```
//!
//! Only the lower triangles of η₁ and η₃ are kept up to date, and only the mean is derived from them at every update;
//! [`Layer::posterior`] derives everything else when it is asked for.
//!
//! A layer is in one of three states. This file is about the first, in which η is kept and M follows from it. In the
//! second M moves by itself (`moving`): the natural-gradient M-step uses it. The third is that of the layers of a wide
//! network (`wide`): M moves, and of η only what is linear in the layer's width is kept.

mod moving;
mod wide;

use std::sync::{Arc, OnceLock};

use faer::{Mat, MatRef};

pub(crate) use self::moving::MovingMean;
pub(crate) use self::wide::{Metric, WideLayer, WideNoise, WideParts};
use crate::base::check::check_shape;
use crate::base::linalg::{Cholesky, cast, cast_into, inner, mirror_lower, scaled_identity};
use crate::distributions::{MatrixNormalWishart, NaturalParams, Structure, SufficientStats, Wishart, noise};
use crate::error::Result;
use crate::real::Real;

/// Prior of one layer, settled from [`PriorSettings`](super::PriorSettings) and the layer's place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerPrior {
    /// Diagonal of V⁰.
    pub var: f64,
    /// V⁰ of the bias, if it differs.
    pub bias_var: Option<f64>,
    /// Diagonal of Ψ⁰⁻¹.
    pub inv_scale: f64,
    /// ν⁰ − d_y.
    pub extra_dof: f64,
}

impl LayerPrior {
    fn natural(&self, d_post: usize, d_pre: usize) -> NaturalParams {
        let mut pre_pre = scaled_identity(d_pre, 1.0 / self.var);
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

    /// The same around M⁰ = [I 0], for a layer as wide as the one below.
    fn natural_around_identity(&self, d: usize) -> NaturalParams {
        let mut natural = self.natural(d, d + 1);
        for i in 0..d {
            natural.post_pre[(i, i)] = natural.pre_pre[(i, i)];
            natural.post_post[(i, i)] += natural.pre_pre[(i, i)];
        }
        natural
    }
}

/// Ψ⁰⁻¹ = η⁰₃ − M⁰ V⁰⁻¹ M⁰ᵀ of a prior, whose V⁰ is diagonal.
pub(crate) fn prior_inv_scale(prior: &NaturalParams) -> Mat<f64> {
    let (d, post_pre) = (prior.d_post(), &prior.post_pre);
    let explained = |i: usize, k: usize| -> f64 {
        let of_column = |j: usize| post_pre[(i, j)] * post_pre[(k, j)] / prior.pre_pre[(j, j)];
        (0..prior.d_pre()).map(of_column).sum()
    };
    Mat::from_fn(d, d, |i, k| prior.post_post[(i, k)] - explained(i, k))
}

/// Posterior of one layer's weights and noise, with what the forward pass needs in working precision.
#[derive(Clone, Debug)]
pub struct Layer<T: Real> {
    /// η⁰, which changes only where the data say how wide it should be. That of a wide layer is made when asked for.
    prior: OnceLock<Arc<NaturalParams>>,
    posterior: Posterior<T>,
}

/// What is kept of a posterior, and what follows from it.
#[derive(Clone, Debug)]
enum Posterior<T: Real> {
    /// η is kept, M follows.
    Natural(Conjugate<T>),
    /// M, η₁ and Ψ⁻¹ are kept, η follows.
    Moving(MovingMean<T>),
    /// M, what is kept of η₁, and the noise.
    Wide(Box<WideLayer<T>>),
}

/// η with the mean that follows from it.
#[derive(Clone, Debug)]
struct Conjugate<T: Real> {
    natural: NaturalParams,
    col_precision_chol: Cholesky,
    mean: Mat<f64>,
    working_mean: Mat<T>,
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
        Self::with_factors(prior, &[], mean)
    }

    /// The same with factors on V⁰ of the first activities.
    pub(super) fn with_factors(prior: &LayerPrior, factors: &[f64], mean: MatRef<'_, f64>) -> Result<Self> {
        let mut natural = prior.natural(mean.nrows(), mean.ncols());
        for (i, factor) in factors.iter().enumerate() {
            natural.pre_pre[(i, i)] /= factor;
        }
        Self::begun(natural, prior.inv_scale, mean)
    }

    /// The same with a prior around the identity: what the layer learns it adds to what comes from below.
    pub fn residual(prior: &LayerPrior, mean: MatRef<'_, f64>) -> Result<Self> {
        check_shape("a residual layer's weights", mean, mean.nrows(), mean.nrows() + 1)?;
        Self::begun(prior.natural_around_identity(mean.nrows()), prior.inv_scale, mean)
    }

    fn begun(prior: NaturalParams, inv_scale: f64, mean: MatRef<'_, f64>) -> Result<Self> {
        let mut natural = prior.clone();
        natural.post_pre = mean * &prior.pre_pre;
        natural.post_post = scaled_identity(mean.nrows(), inv_scale) + &natural.post_pre * mean.transpose();
        Self::from_natural(prior, natural)
    }

    /// A layer from its prior and posterior natural parameters.
    pub fn from_natural(prior: NaturalParams, natural: NaturalParams) -> Result<Self> {
        let posterior = Posterior::Natural(Conjugate::new(natural)?);
        Ok(Self { prior: OnceLock::from(Arc::new(prior)), posterior })
    }

    /// A layer of a wide network whose posterior is its prior but for the mean; `hidden`: its noise is a metric.
    pub(crate) fn new_wide(
        prior: &LayerPrior,
        factors: &[f64],
        mean: MatRef<'_, f64>,
        structure: Structure,
        hidden: bool,
    ) -> Self {
        Self::of_wide(WideLayer::new(prior, factors, mean, structure, hidden))
    }

    /// A layer of a wide network.
    pub(crate) fn of_wide(wide: WideLayer<T>) -> Self {
        Self { prior: OnceLock::new(), posterior: Posterior::Wide(Box::new(wide)) }
    }

    /// What a layer of a wide network keeps.
    pub(crate) fn wide(&self) -> Option<&WideLayer<T>> {
        if let Posterior::Wide(wide) = &self.posterior { Some(wide) } else { None }
    }

    /// The same, to learn in.
    pub(crate) fn wide_mut(&mut self) -> Option<&mut WideLayer<T>> {
        if let Posterior::Wide(wide) = &mut self.posterior { Some(wide) } else { None }
    }

    /// The same layer with activities in another working precision.
    pub(super) fn to_precision<S: Real>(&self) -> Result<Layer<S>> {
        match &self.posterior {
            Posterior::Wide(wide) => Ok(Layer::of_wide(wide.to_precision())),
            _ => Layer::from_natural(self.prior().clone(), self.natural()),
        }
    }

    /// How many samples the posterior represents, by η₄ − η⁰₄.
    pub fn samples_seen(&self) -> f64 {
        match &self.posterior {
            Posterior::Wide(wide) => wide.count() - wide.prior_count(),
            _ => self.natural().count - self.prior().count,
        }
    }

    /// d_x − tr(V V⁰⁻¹): of how many activities the samples have decided what weights they get.
    pub fn effective_inputs(&self) -> Result<f64> {
        if let Posterior::Wide(wide) = &self.posterior {
            return wide.columns().effective();
        }
        let col_cov = self.posterior()?.col_cov();
        Ok(self.d_pre() as f64 - inner(col_cov.as_ref(), self.prior().pre_pre.as_ref()))
    }

    /// log |V⁻¹| − log |V⁰⁻¹|: how much the samples have said of the weights.
    pub fn log_det_gain(&self) -> Result<f64> {
        if let Posterior::Wide(wide) = &self.posterior {
            return wide.columns().log_det_gain();
        }
        let log_det = |natural: &NaturalParams| -> Result<f64> {
            Ok(Cholesky::new(natural.pre_pre.as_ref(), "the column precision")?.log_det())
        };
        Ok(log_det(&self.natural())? - log_det(self.prior())?)
    }

    /// V⁰ of the activities, a mean where it differs from one to another; that of the bias is left out.
    pub fn prior_var(&self) -> f64 {
        let d = (self.d_pre() - 1).max(1);
        let var = |i: usize| match &self.posterior {
            Posterior::Wide(wide) => 1.0 / wide.columns().prior()[i],
            _ => 1.0 / self.prior().pre_pre[(i, i)],
        };
        let first = var(0);
        if (1..d).all(|i| var(i) == first) { first } else { (0..d).map(var).sum::<f64>() / d as f64 }
    }

    /// Σ⁻¹ ~ Wishart(Ψ, ν).
    pub fn noise(&self) -> Result<Wishart> {
        match &self.posterior {
            Posterior::Wide(wide) => wide.noise(),
            _ => Ok(self.posterior()?.noise().clone()),
        }
    }

    /// Width of z.
    pub fn d_post(&self) -> usize {
        self.mean().nrows()
    }

    /// Width of φ, bias included.
    pub fn d_pre(&self) -> usize {
        self.mean().ncols()
    }

    /// M.
    pub fn mean(&self) -> MatRef<'_, f64> {
        match &self.posterior {
            Posterior::Natural(conjugate) => conjugate.mean.as_ref(),
            Posterior::Moving(moving) => moving.mean(),
            Posterior::Wide(wide) => wide.mean(),
        }
    }

    /// M in working precision.
    pub fn working_mean(&self) -> MatRef<'_, T> {
        match &self.posterior {
            Posterior::Natural(conjugate) => conjugate.working_mean.as_ref(),
            Posterior::Moving(moving) => moving.working_mean(),
            Posterior::Wide(wide) => wide.working_mean(),
        }
    }

    /// η⁰. That of a wide layer is made at the first call, at the cost of width².
    pub fn prior(&self) -> &NaturalParams {
        self.prior_shared()
    }

    fn prior_shared(&self) -> &Arc<NaturalParams> {
        self.prior.get_or_init(|| match &self.posterior {
            Posterior::Wide(wide) => Arc::new(wide.prior()),
            _ => unreachable!("every other layer is made with its prior"),
        })
    }

    /// Replace η⁰; the posterior is as before until it is next updated.
    pub(crate) fn set_prior(&mut self, prior: NaturalParams) {
        self.prior = OnceLock::from(Arc::new(prior));
    }

    /// η, symmetric in full. That of a wide layer is made, at the cost of width².
    pub fn natural(&self) -> NaturalParams {
        match &self.posterior {
            Posterior::Natural(conjugate) => conjugate.whole(),
            Posterior::Moving(moving) => moving.natural(),
            Posterior::Wide(wide) => wide.natural(),
        }
    }

    /// Replace η, as finalisation and loading do. A wide layer is whole from here on.
    pub fn set_natural(&mut self, natural: NaturalParams) -> Result<()> {
        self.prior_shared();
        self.posterior = Posterior::Natural(Conjugate::new(natural)?);
        Ok(())
    }

    /// η ← (1−κ) η + κ (η⁰ + scale · T), then M.
    pub fn blend(&mut self, stats: &SufficientStats, rate: f64, scale: f64) -> Result<()> {
        let prior = Arc::clone(self.prior_shared());
        if let Posterior::Natural(conjugate) = &mut self.posterior {
            conjugate.natural.blend(&prior, stats, rate, scale)?;
            return conjugate.refresh_mean();
        }
        let mut natural = self.natural();
        natural.blend(&prior, stats, rate, scale)?;
        self.set_natural(natural)
    }

    /// The posterior as a distribution.
    pub fn posterior(&self) -> Result<MatrixNormalWishart> {
        match &self.posterior {
            Posterior::Natural(conjugate) => MatrixNormalWishart::from_natural(&conjugate.whole()),
            Posterior::Moving(moving) => moving.posterior(),
            Posterior::Wide(wide) => wide.posterior(),
        }
    }

    /// The prior as a distribution.
    pub fn prior_distribution(&self) -> Result<MatrixNormalWishart> {
        MatrixNormalWishart::from_natural(self.prior())
    }

    /// ⟨Σ⁻¹⟩ in working precision.
    pub(crate) fn expected_precision(&self) -> Result<Mat<T>> {
        let noise = match &self.posterior {
            Posterior::Natural(Conjugate { natural, mean, .. }) => {
                let mut post_post = natural.post_post.clone();
                mirror_lower(post_post.as_mut());
                noise(&post_post, &natural.post_pre, mean.as_ref(), natural.dof())?
            }
            Posterior::Moving(moving) => moving.noise()?,
            Posterior::Wide(wide) => wide.noise()?,
        };
        Ok(cast(noise.expected_precision().as_ref()))
    }

    /// V in working precision.
    pub(crate) fn col_cov(&self) -> Mat<T> {
        match &self.posterior {
            Posterior::Natural(conjugate) => cast(conjugate.col_precision_chol.inverse().as_ref()),
            Posterior::Moving(moving) => cast(moving.col_precision_chol().inverse().as_ref()),
            Posterior::Wide(_) => unreachable!("relaxation takes no wide network"),
        }
    }

    /// The posterior in the state in which M moves by itself; from here on that is the layer's state.
    pub(crate) fn moving(&mut self) -> &mut MovingMean<T> {
        let prior = Arc::clone(self.prior_shared());
        if let Posterior::Natural(conjugate) = &self.posterior {
            self.posterior = Posterior::Moving(MovingMean::new(&prior, conjugate));
        }
        match &mut self.posterior {
            Posterior::Moving(moving) => moving,
            Posterior::Natural(_) => unreachable!("the state has just been changed"),
            Posterior::Wide(_) => unreachable!("layers of a wide network have an M-step of their own"),
        }
    }
}

impl<T: Real> Conjugate<T> {
    fn new(natural: NaturalParams) -> Result<Self> {
        let (d_post, d_pre) = (natural.d_post(), natural.d_pre());
        let mut conjugate = Self {
            col_precision_chol: Cholesky::of_identity(d_pre),
            mean: Mat::zeros(d_post, d_pre),
            working_mean: Mat::zeros(d_post, d_pre),
            natural,
        };
        conjugate.refresh_mean()?;
        Ok(conjugate)
    }

    /// η, symmetric in full.
    fn whole(&self) -> NaturalParams {
        let mut natural = self.natural.clone();
        mirror_lower(natural.pre_pre.as_mut());
        mirror_lower(natural.post_post.as_mut());
        natural
    }

    /// M = η₂ η₁⁻¹ from a fresh factor of η₁.
    fn refresh_mean(&mut self) -> Result<()> {
        self.col_precision_chol.refactor(self.natural.pre_pre.as_ref(), "the column precision")?;
        // Mᵀ = η₁⁻¹ η₂ᵀ, solved in place on the transposed view
        self.mean.copy_from(&self.natural.post_pre);
        self.col_precision_chol.solve_in_place(self.mean.as_mut().transpose_mut());
        cast_into(&mut self.working_mean, self.mean.as_ref());
        Ok(())
    }
}
