//! Output heads: how the top activity becomes a distribution of the target.
//!
//! The output layer is a Bayesian layer like any other; a head only says what it should aim at. By Fisher
//! scoring of the head's log-likelihood it gives every sample a *working target* t and a weight w, so that
//! the output posterior is a weighted conjugate regression of t on φ. The feedback to the layers below is
//!
//! ```text
//! g_L = ∂ log p(y | a) / ∂a
//! ```
//!
//! Where the weights carry the noise, g_L = w ⊙ (t − a), but for samples whose log-variance or surprise is clipped. The
//! Gaussian head has w = 1 and divides by the noise of the batch: g_L = (t − a) / mean((t − a)²).
//!
//! The rows of the output activity a are grouped in *blocks* that share one weight per sample and hence
//! one column covariance V. A new likelihood is one file that implements [`Head`].

mod categorical;
mod gaussian;
mod variance_node;

use faer::{Mat, MatMut, MatRef};
use serde::{Deserialize, Serialize};

pub use categorical::Categorical;
pub use gaussian::Gaussian;
pub use variance_node::VarianceNode;

use crate::error::{Error, Result};
use crate::metrics;
use crate::network::{LayerPrior, PriorSettings};
use crate::prediction::{Component, Covariance, Predictive};

/// Rows of the output activity that share one posterior.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// How many rows.
    pub rows: usize,
    /// Their prior.
    pub prior: LayerPrior,
    /// Start from random weights, or at the prior mean.
    pub random_start: bool,
    /// The sample weights carry the noise: Σ is known to be I.
    pub unit_noise: bool,
}

/// What the output layer should learn from a batch.
#[derive(Clone, Debug)]
pub struct Response {
    /// Working targets t, `d_activity × n`.
    pub targets: Mat<f64>,
    /// Weight of each sample in each block, `n_blocks × n`.
    pub weights: Mat<f64>,
    /// ∂ log p(y | a) / ∂a, `d_activity × n`.
    pub feedback: Mat<f64>,
}

impl Response {
    /// Room for `n` samples.
    pub fn zeros(d_activity: usize, n_blocks: usize, n: usize) -> Self {
        Self {
            targets: Mat::zeros(d_activity, n),
            weights: Mat::zeros(n_blocks, n),
            feedback: Mat::zeros(d_activity, n),
        }
    }
}

/// Distribution of the output activity for a batch of inputs, before the head interprets it.
#[derive(Clone, Debug)]
pub struct ActivityPredictive {
    /// ⟨a⟩, `d_activity × n`.
    pub mean: Mat<f64>,
    /// Covariance of a from uncertain weights.
    pub epistemic: Covariance,
    /// Covariance of a from noise of hidden activities.
    pub hidden_noise: Covariance,
    /// Covariance of the output layer's own noise, `d_activity × d_activity`.
    pub noise: Mat<f64>,
    /// Degrees of freedom of that noise, or infinity if it is known.
    pub dof: f64,
}

/// A likelihood on top of the network.
pub trait Head: Send + Sync {
    /// Blocks of the output activity for `n_targets` target columns.
    fn blocks(&self, n_targets: usize, prior: &PriorSettings) -> Vec<Block>;

    /// Working targets, weights and feedback at output activity a for targets y, of every sample by itself.
    fn respond(&self, activity: MatRef<'_, f64>, target: MatRef<'_, f64>, response: &mut Response);

    /// Factor on the feedback of all samples of a batch, given the mean square of y − a in it: what a head learns
    /// from the batch as a whole.
    fn feedback_factor(&self, _mean_square: f64) -> f64 {
        1.0
    }

    /// A column r_k of a root of the output curvature: Σ_k r_k r_kᵀ = −⟨∂² log p / ∂a²⟩ for every sample.
    /// `precision_root` is the lower factor of the output layer's ⟨Σ_L⁻¹⟩. Fills `seed` (`d_activity × n`).
    fn curvature_root(
        &self,
        activity: MatRef<'_, f64>,
        precision_root: MatRef<'_, f64>,
        k: usize,
        seed: MatMut<'_, f64>,
    );

    /// Whether the target is the output activity plus noise of one covariance: what clamping the target as z_L asks.
    fn is_gaussian(&self) -> bool {
        false
    }

    /// The distribution of the target, given that of the activity.
    fn density(&self, activity: ActivityPredictive) -> Result<Component>;

    /// Mean log-likelihood of held-out targets under a prediction: what early stopping watches.
    fn score(&self, predictive: &Predictive, target: MatRef<'_, f64>) -> Result<f64> {
        metrics::log_predictive_density(predictive, target)
    }
}

/// Which head, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum HeadSettings {
    /// Constant noise: the paper's.
    Gaussian(Gaussian),
    /// Noise that depends on the input.
    VarianceNode(VarianceNode),
    /// Logits of classes.
    Categorical(Categorical),
}

impl Default for HeadSettings {
    fn default() -> Self {
        Self::Gaussian(Gaussian::default())
    }
}

impl HeadSettings {
    /// The head itself.
    pub fn head(&self) -> &dyn Head {
        match self {
            Self::Gaussian(head) => head,
            Self::VarianceNode(head) => head,
            Self::Categorical(head) => head,
        }
    }

    /// `who` clamps the target as z_L, and no other head means that.
    pub(crate) fn require_gaussian(&self, who: &'static str) -> Result<()> {
        if self.head().is_gaussian() {
            return Ok(());
        }
        let second = match self {
            Self::Categorical(_) => "a head other than gaussian (categorical)",
            _ => "a head other than gaussian (variance_node)",
        };
        Err(Error::Conflict { first: who, second })
    }

    /// Check the head's settings.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Gaussian(_) | Self::Categorical(_) => Ok(()),
            Self::VarianceNode(head) => head.validate(),
        }
    }
}
