//! Settings of relaxation: the paper's, and those that make it learn.

use serde::{Deserialize, Serialize};

use super::optimiser::ActivityOptimiser;
use crate::error::{Error, Result};
use crate::heads::HeadSettings;
use crate::learning::Schedule;

/// What ⟨Σ_l⁻¹⟩ of a hidden layer is taken to be during relaxation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HiddenPrecision {
    /// The posterior's own: the paper's, and unstable.
    Learned,
    /// r · tr⟨Σ_L⁻¹⟩/d_L · I, tied to the output's.
    Tied(f64),
    /// p · I.
    Fixed(f64),
}

/// Which presynaptic activities the M-step sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Presynaptic {
    /// Those at rest: the paper's.
    Relaxed,
    /// Those of the forward pass, which prediction will see. A full batch updates the hidden layers first, then the output
    /// layer from the forward pass through them.
    Forward,
}

/// What descends the energy; both come to rest in the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variables {
    /// Activities: the paper's. What the output says climbs down one layer per step.
    #[default]
    Activities,
    /// Errors, in a network that runs freely (ePC): what the output says reaches every layer in every step. Without a
    /// rate of the optimiser they follow conjugate gradients. With `presynaptic = forward` a layer learns its own error,
    /// and not what it inherits from below.
    Errors,
}

/// Order in which layers move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sweep {
    /// All at once: the paper's.
    Simultaneous,
    /// From the top down, each seeing the new value above it.
    Sequential,
}

/// Settings of the relaxation rule; the default is the paper's (preset `paper`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RelaxationSettings {
    /// T: steps at most.
    pub steps: usize,
    /// Stop when the relative change of the energy falls below this; 0 runs all steps.
    pub tolerance: f64,
    /// Step rule.
    pub optimiser: ActivityOptimiser,
    /// What descends the energy.
    pub variables: Variables,
    /// Order of the layers.
    pub sweep: Sweep,
    /// Halve a sample's step until its energy does not rise.
    pub halve_steps: bool,
    /// Precision of hidden layers during relaxation.
    pub hidden_precision: HiddenPrecision,
    /// p of a fixed output precision p · I, or the posterior's own if not given.
    pub output_precision: Option<f64>,
    /// Presynaptic activities of the M-step.
    pub presynaptic: Presynaptic,
    /// τ: temperature of the weight-uncertainty term, in [0, 1].
    pub weight_uncertainty: f64,
    /// Scale batch statistics by N/|B|, so that the posterior represents N samples.
    pub scale_batches: bool,
    /// κ_t of mini-batches; a full batch always has κ = 1, unless inputs are whitened.
    pub schedule: Schedule,
    /// k: batches between two refreshes of the hidden layers' V_l and Ψ_l. At 1 every step is exact.
    pub refresh_every: u64,
    /// Learn the first layer in coordinates where its column precision, known from all the data beforehand, is
    /// the identity: for wide inputs, and for data that are all there. A stream does not use it.
    pub whiten_input: bool,
}

impl RelaxationSettings {
    /// Relaxation can read targets by this head. Where its weights carry the noise no precision of the output tells how
    /// far an activity may step, nor what hidden layers could be tied to.
    pub(crate) fn check_head(&self, head: &HeadSettings) -> Result<()> {
        if head.head().is_gaussian() {
            return Ok(());
        }
        let second = "a head whose weights carry the noise (variance_node, categorical)";
        if matches!(self.hidden_precision, HiddenPrecision::Tied(_)) {
            return Err(Error::Conflict { first: "rule.hidden_precision = tied", second });
        }
        if self.optimiser.fixed_rate().is_none() && self.variables == Variables::Activities {
            return Err(Error::Conflict { first: "a rule.optimiser without a rate", second });
        }
        Ok(())
    }
}

impl Default for RelaxationSettings {
    fn default() -> Self {
        Self::paper()
    }
}

impl RelaxationSettings {
    /// The paper's settings (App. F).
    pub fn paper() -> Self {
        Self {
            steps: 10,
            tolerance: 0.0,
            optimiser: ActivityOptimiser::Adam { rate: 0.01 },
            variables: Variables::Activities,
            sweep: Sweep::Simultaneous,
            halve_steps: false,
            hidden_precision: HiddenPrecision::Learned,
            output_precision: None,
            presynaptic: Presynaptic::Relaxed,
            weight_uncertainty: 1.0,
            scale_batches: false,
            schedule: Schedule::Power { exponent: 0.25, delay: 0.0 },
            refresh_every: 1,
            whiten_input: false,
        }
    }

    /// The settings that make relaxation learn: tied precision, forward presynaptic statistics, no
    /// weight-uncertainty term, gradient descent at the bound.
    pub fn tied() -> Self {
        Self {
            optimiser: ActivityOptimiser::Gradient { rate: None },
            hidden_precision: HiddenPrecision::Tied(1.0),
            presynaptic: Presynaptic::Forward,
            weight_uncertainty: 0.0,
            scale_batches: true,
            schedule: Schedule::Cosine { first: 0.6, last: 0.01 },
            ..Self::paper()
        }
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        let check = |holds: bool, name, value, must_be| {
            if holds { Ok(()) } else { Err(Error::Setting { name, value, must_be }) }
        };
        let positive = |name, x: f64| check(x.is_finite() && x > 0.0, name, x, "positive and finite");
        self.optimiser.validate()?;
        if self.variables == Variables::Errors {
            let first = "relaxation.variables = errors";
            if self.sweep == Sweep::Sequential {
                return Err(Error::Conflict { first, second: "relaxation.sweep = sequential" });
            }
            if matches!(self.optimiser, ActivityOptimiser::Momentum { rate: None, .. }) {
                return Err(Error::Conflict { first, second: "momentum without a rate" });
            }
        }
        let tolerance = self.tolerance;
        check((0.0..1.0).contains(&tolerance), "relaxation.tolerance", tolerance, "in [0, 1)")?;
        let temperature = self.weight_uncertainty;
        let in_range = (0.0..=1.0).contains(&temperature);
        check(in_range, "relaxation.weight_uncertainty", temperature, "in [0, 1]")?;
        positive("relaxation.output_precision", self.output_precision.unwrap_or(1.0))?;
        if let HiddenPrecision::Tied(p) | HiddenPrecision::Fixed(p) = self.hidden_precision {
            positive("relaxation.hidden_precision", p)?;
        }
        let refresh_every = self.refresh_every;
        check(refresh_every > 0, "relaxation.refresh_every", refresh_every as f64, "at least 1")?;
        // Without the scale η₁ remembers single batches: neither an old one nor that of all data stands for it.
        let unscaled = "relaxation.scale_batches = false";
        if self.refresh_every > 1 && !self.scale_batches {
            return Err(Error::Conflict { first: "relaxation.refresh_every > 1", second: unscaled });
        }
        if self.whiten_input && !self.scale_batches {
            return Err(Error::Conflict { first: "relaxation.whiten_input", second: unscaled });
        }
        self.schedule.validate()
    }
}
