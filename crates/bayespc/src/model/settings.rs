//! Everything that can be set about a model, and what members of an ensemble may have of their own.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::heads::{Categorical, HeadSettings};
use crate::inference::{FeedbackSettings, RelaxationSettings};
use crate::learners::Rule;
use crate::learning::Schedule;
use crate::model::calibration::Calibration;
use crate::network::{Activation, NetworkSettings, PriorSettings};
use crate::prediction::Method;
use crate::real::Precision;
use crate::training::TrainingSettings;

/// Everything that can be set about a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Shape, prior and head.
    pub network: NetworkSettings,
    /// How activities are inferred.
    pub rule: Rule,
    /// Epochs, batches, seed, early stopping.
    pub training: TrainingSettings,
    /// How to predict.
    pub method: Method,
    /// Networks in the ensemble.
    pub members: usize,
    /// What members have of their own besides their seeds: member m takes variant m, and after the last the
    /// first again. Without any all members are alike.
    pub variants: Vec<Variant>,
    /// τ: factor on the predictive covariance. Class probabilities are those of the one-hot codes' densities to the
    /// power 1/τ, normalised.
    pub temperature: f64,
    /// What to hold samples out for.
    pub calibration: Calibration,
    /// Working precision of activities.
    pub precision: Precision,
    /// How inputs are standardised.
    pub input_scaling: InputScaling,
}

/// How inputs are standardised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputScaling {
    /// Every feature by its own mean and deviation.
    #[default]
    Features,
    /// All features by one mean and deviation, as images want it.
    Whole,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            network: NetworkSettings::default(),
            rule: Rule::default(),
            training: TrainingSettings::default(),
            method: Method::default(),
            members: 1,
            variants: Vec::new(),
            temperature: 1.0,
            calibration: Calibration::None,
            precision: Precision::default(),
            input_scaling: InputScaling::default(),
        }
    }
}

impl ModelSettings {
    /// The paper's settings (preset `paper`): relaxation by Adam, learned precisions, 20 Monte Carlo draws.
    pub fn paper() -> Self {
        Self {
            rule: Rule::Relaxation(RelaxationSettings::paper()),
            training: TrainingSettings { batch_size: Some(128), ..TrainingSettings::default() },
            method: Method::monte_carlo(),
            ..Self::default()
        }
    }

    /// Settings for the classes of small images such as MNIST's: Figure 1's network, one of them, in single
    /// precision, logits with a temperature from held-out images, whitened inputs, factors that are refreshed now
    /// and then.
    pub fn images() -> Self {
        Self {
            network: NetworkSettings {
                hidden_layer_sizes: vec![128, 128, 128],
                prior: PriorSettings { col_var: 0.003, ..PriorSettings::default() },
                head: HeadSettings::Categorical(Categorical::default()),
                ..NetworkSettings::default()
            },
            rule: Rule::Feedback(FeedbackSettings {
                gain: 0.3,
                schedule: Schedule::Cosine { first: 0.1, last: 0.002 },
                refresh_every: 10,
                whiten_input: true,
                ..FeedbackSettings::default()
            }),
            training: TrainingSettings { epochs: 10, batch_size: Some(128), ..TrainingSettings::default() },
            calibration: Calibration::Holdout,
            precision: Precision::F32,
            input_scaling: InputScaling::Whole,
            ..Self::default()
        }
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        self.network.validate()?;
        self.rule.validate()?;
        self.training.validate()?;
        self.method.validate()?;
        if self.members == 0 {
            return Err(Error::Setting { name: "members", value: 0.0, must_be: "at least 1" });
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            let must_be = "positive and finite";
            return Err(Error::Setting { name: "temperature", value: self.temperature, must_be });
        }
        self.variants.iter().try_for_each(Variant::validate)
    }

    /// The variant of member `m`, if there are any.
    pub(crate) fn variant(&self, m: usize) -> Option<&Variant> {
        self.variants.get(m.checked_rem(self.variants.len())?)
    }

    /// Epochs of member `m`: at least one, unless the settings ask for none.
    pub fn epochs_of(&self, m: usize) -> usize {
        let length = self.variant(m).map_or(1.0, |variant| variant.length);
        let epochs = self.training.epochs;
        ((epochs as f64 * length).round() as usize).max(epochs.min(1))
    }

    /// Shape, prior, activation and head of member `m`.
    pub fn network_of(&self, m: usize) -> NetworkSettings {
        let mut network = self.network.clone();
        if let Some(variant) = self.variant(m) {
            network.prior.col_var = variant.col_var;
            network.activation = variant.activation;
            network.head = variant.head.clone();
            for size in &mut network.hidden_layer_sizes {
                *size = ((*size as f64 * variant.width).round() as usize).max(1);
            }
        }
        network
    }
}

/// A member's own prior, activation, head, width and length of training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// V⁰.
    pub col_var: f64,
    /// f of the hidden layers.
    pub activation: Activation,
    /// Likelihood of the target.
    pub head: HeadSettings,
    /// Factor on the covariance of the member's predictions. For classes that is the temperature of its
    /// probabilities.
    #[serde(default = "one")]
    pub temperature: f64,
    /// Share of the epochs of training.
    #[serde(default = "one")]
    pub length: f64,
    /// Factor on the widths of the hidden layers.
    #[serde(default = "one")]
    pub width: f64,
}

fn one() -> f64 {
    1.0
}

impl Variant {
    fn validate(&self) -> Result<()> {
        let positive = [
            ("variants.col_var", self.col_var),
            ("variants.temperature", self.temperature),
            ("variants.width", self.width),
        ];
        for (name, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::Setting { name, value, must_be: "positive and finite" });
            }
        }
        if !(self.length > 0.0 && self.length <= 1.0) {
            return Err(Error::Setting { name: "variants.length", value: self.length, must_be: "in (0, 1]" });
        }
        self.head.validate()
    }
}
