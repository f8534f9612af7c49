//! Everything that can be set about a model.
//!
//! [`ModelSettings::default`] is what every surface fits when nothing is said: networks by the feedback rule, chosen
//! from the data and trained on its folds. Cheaper choices have names: [`ModelSettings::fast`], [`ModelSettings::paper`].

use serde::{Deserialize, Serialize};

use super::calibration::Calibration;
use super::ensemble::MemberPlan;
use super::selection::SearchSettings;
use crate::base::check::{at_least_one, positive};
use crate::error::{Error, Result};
use crate::heads::{Categorical, HeadSettings};
use crate::inference::{FeedbackSettings, RelaxationSettings};
use crate::learners::Rule;
use crate::learning::Schedule;
use crate::network::{NetworkSettings, PriorSettings, WideLayers};
use crate::prediction::Method;
use crate::real::Precision;
use crate::training::TrainingSettings;

/// Networks of the default ensemble, of each kind: one for each of five folds.
const MEMBERS: usize = 5;

/// More networks than anybody has use for: a slip of the keyboard should not fill the memory.
const MOST_MEMBERS: usize = 10_000;

/// Batches between two refreshes of the factors by default: hardly worse than every batch, at half the cost.
pub(super) const REFRESH_EVERY: u64 = 5;

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
    /// Networks in the ensemble. Where they are chosen from the data there are so many of each kind, one for each fold,
    /// which it has not seen; fewer than `search.folds` are trained on all samples instead.
    pub members: usize,
    /// What to choose from the data, for each network of its own.
    pub search: SearchSettings,
    /// τ: factor on the predictive covariance. Class probabilities are those of the one-hot codes' densities to the
    /// power 1/τ, normalised.
    pub temperature: f64,
    /// What to hold samples out for.
    pub calibration: Calibration,
    /// Seconds that fitting may take; none: as long as it takes. The best that fits in them is kept, so that another
    /// machine, or a busy one, may give another model.
    pub time_limit: Option<f64>,
    /// Working precision of activities.
    pub precision: Precision,
    /// How inputs are standardised.
    pub input_scaling: InputScaling,
    /// Bins of the piecewise-linear code of each column that networks see beside it, where the search does not choose;
    /// 0: columns as they are.
    pub bins: usize,
}

/// How inputs are standardised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputScaling {
    /// Every feature by its own mean and deviation, unless the samples are pictures and their classes are to be learned
    /// by networks that are chosen from the data.
    #[default]
    Auto,
    /// Every feature by its own mean and deviation.
    Features,
    /// All features by one mean and deviation, as images want it.
    Whole,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self { members: MEMBERS, search: SearchSettings::default(), ..Self::fast() }
    }
}

impl ModelSettings {
    /// One network, nothing searched: the cheapest choice.
    pub fn fast() -> Self {
        Self {
            network: NetworkSettings::default(),
            rule: Rule::Feedback(FeedbackSettings {
                refresh_every: REFRESH_EVERY,
                ..FeedbackSettings::default()
            }),
            training: TrainingSettings::default(),
            method: Method::default(),
            members: 1,
            search: SearchSettings::off(),
            temperature: 1.0,
            calibration: Calibration::None,
            time_limit: None,
            precision: Precision::default(),
            input_scaling: InputScaling::default(),
            bins: 0,
        }
    }

    /// The paper's settings: one network, relaxation by Adam, learned precisions, 20 Monte Carlo draws.
    pub fn paper() -> Self {
        Self {
            rule: Rule::Relaxation(RelaxationSettings::paper()),
            training: TrainingSettings { batch_size: Some(128), ..TrainingSettings::default() },
            method: Method::monte_carlo(),
            ..Self::fast()
        }
    }

    /// Settings for the classes of small images such as MNIST's: Figure 1's network, one of them, in single
    /// precision, logits with a temperature from held-out images, whitened inputs, factors that are refreshed now
    /// and then.
    pub fn images() -> Self {
        Self {
            network: NetworkSettings {
                hidden_layer_sizes: vec![128, 128, 128],
                prior: PriorSettings { var: 0.003, ..PriorSettings::default() },
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
            ..Self::fast()
        }
    }

    /// Whether a fit of [`selection::MIN_ROWS`](super::selection::MIN_ROWS) samples or more chooses its networks by what
    /// they predict for samples held out, which [`Model::out_of_fold`](super::Model::out_of_fold) then returns.
    pub fn searches(&self) -> bool {
        self.search.enabled && !self.search.has_nothing_to_choose()
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        self.network.validate()?;
        self.rule.validate()?;
        self.training.validate()?;
        self.method.validate()?;
        self.search.validate()?;
        if self.input_scaling == InputScaling::Whole && self.bins > 0 {
            return Err(Error::Conflict { first: "bins", second: "input_scaling = whole" });
        }
        at_least_one("members", self.members)?;
        for (name, networks) in [("members", self.members), ("search.refit", self.search.refit)] {
            if networks > MOST_MEMBERS {
                let value = networks as f64;
                return Err(Error::Setting { name, value, must_be: "at most 10 000" });
            }
        }
        self.time_limit.map_or(Ok(()), |seconds| positive("time_limit", seconds))?;
        positive("temperature", self.temperature)
    }

    /// What a network keeps of a table with `d` columns and `n` samples, if it is not too large to be tried among others
    /// (see [`WideLayers`]).
    pub(super) fn wide_layers_of(&self, network: &NetworkSettings, d: usize, n: usize) -> Option<WideLayers> {
        let may_leave_out = matches!(self.rule, Rule::Feedback(_)) && !network.residual;
        if may_leave_out {
            network.wide_layers.of_table(d, n, &network.hidden_layer_sizes)
        } else {
            Some(network.wide_layers)
        }
    }

    /// Networks as the settings have them, where nothing is chosen from the data.
    pub(super) fn plans(&self) -> Vec<MemberPlan> {
        vec![MemberPlan::new(self.network.clone(), &self.training, self.bins); self.members]
    }
}
