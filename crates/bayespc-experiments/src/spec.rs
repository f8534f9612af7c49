//! Specifications: what to train on what, in TOML.

use std::collections::BTreeMap;

use bayespc::learners::LearnerSettings;
use bayespc::model::selection::SearchSettings;
use bayespc::network::NetworkSettings;
use bayespc::prediction::Method;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::splitting::Splitting;

/// An experiment: runs over data sets, and the learners they name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Name of the experiment.
    pub name: String,
    /// The runs.
    pub runs: Vec<RunSpec>,
    /// Learners by name.
    pub learners: BTreeMap<String, LearnerSpec>,
}

/// One data set with the learners to train on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// `yacht`, …, `two_moons`, `mnist` or `fashion-mnist`.
    pub dataset: String,
    /// Widths of the hidden layers.
    pub hidden_layer_sizes: Vec<usize>,
    /// A residual network of so many hidden layers, each of the one width given.
    pub depth: Option<usize>,
    /// Passes over the data.
    pub epochs: usize,
    /// Samples per batch; the full batch if not given.
    pub batch_size: Option<usize>,
    /// How a table is split.
    #[serde(default)]
    pub splitting: Splitting,
    /// Number of splits.
    #[serde(default = "one")]
    pub splits: usize,
    /// Number of seeds.
    #[serde(default = "one")]
    pub seeds: usize,
    /// What to measure.
    pub measure: Measure,
    /// Names of learners.
    pub learners: Vec<String>,
    /// Activities in single precision.
    #[serde(default)]
    pub single_precision: bool,
    /// Pass standardised inputs through ReLU first, as an ablation.
    #[serde(default)]
    pub relu_inputs: bool,
    /// Images of another kind, to be told from those of this run by how unsure a learner is; for `measure = "images"`.
    pub strangers: Option<String>,
    /// Test on a fifth of the training part, and never on the test part: for choosing settings, with standard splits.
    #[serde(default)]
    pub validate: bool,
    /// Epochs of a quick run.
    pub quick_epochs: Option<usize>,
    /// Training images of a quick run.
    pub quick_rows: Option<usize>,
    /// Training and test rows at most, as the effort has it.
    #[serde(skip)]
    pub most_rows: [Option<usize>; 2],
}

fn one() -> usize {
    1
}

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As documented.
    Full,
    /// Two splits and seeds, fewer epochs and images: minutes.
    Quick,
    /// Every step once on a few rows: seconds, and results that mean nothing. For tests.
    Smoke,
}

/// Rows and hidden units of a smoke run.
pub(crate) const SMOKE_ROWS: usize = 60;
const SMOKE_WIDTH: usize = 6;

/// What a run records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The mean network's test error after every epoch.
    Curve,
    /// Test error and density after epochs 1, 2, 3, 5, 7, 10, …
    DensityCurve,
    /// Everything, once at the end.
    End,
    /// The mean network's accuracy after every epoch, and what the probabilities are worth at the end.
    Images,
}

/// A learner with what it calls itself and how it predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearnerSpec {
    /// Name in tables and legends.
    pub label: String,
    /// Which learner.
    pub learner: LearnerSettings,
    /// How it predicts.
    #[serde(default)]
    pub method: Method,
    /// Epochs, where they differ from the run's.
    pub epochs: Option<usize>,
    /// Choose the prior's width and the noise model from the training data, for Bayesian predictive coding.
    #[serde(default)]
    pub search: bool,
    /// An ensemble of so many networks. Those of Bayesian predictive coding are chosen from the training data as the
    /// command does, on tables; others differ in their seeds.
    pub members: Option<usize>,
    /// The model the command fits when nothing is said, on tables; of the run it has epochs and batches.
    #[serde(default)]
    pub default_model: bool,
    /// How these networks are chosen, where that differs from the command's way.
    pub choose: Option<SearchSettings>,
    /// Batch size, where it differs from the run's; never given to a full-batch run.
    pub batch_size: Option<usize>,
}

impl Spec {
    /// Read a specification.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let spec: Self = toml::from_str(text)
            .map_err(|source| Error::Spec { experiment: name.to_owned(), source: Box::new(source) })?;
        for learner in spec.runs.iter().flat_map(|run| &run.learners) {
            if !spec.learners.contains_key(learner) {
                return Err(Error::UnknownLearner { experiment: name.to_owned(), learner: learner.clone() });
            }
        }
        Ok(spec)
    }

    /// The same with less effort.
    pub fn with(self, effort: Effort) -> Self {
        match effort {
            Effort::Full => self,
            Effort::Quick => self.quick(),
            Effort::Smoke => self.smoke(),
        }
    }

    fn quick(mut self) -> Self {
        for run in &mut self.runs {
            run.splits = run.splits.min(2);
            run.seeds = run.seeds.min(2);
            run.epochs = run.quick_epochs.unwrap_or(run.epochs);
            run.most_rows = [run.quick_rows, None];
        }
        for learner in self.learners.values_mut() {
            learner.epochs = learner.epochs.map(|epochs| epochs.div_ceil(4));
        }
        self
    }

    fn smoke(mut self) -> Self {
        for run in &mut self.runs {
            (run.splits, run.seeds, run.epochs) = (1, 1, 1);
            run.hidden_layer_sizes.iter_mut().for_each(|width| *width = SMOKE_WIDTH.min(*width));
            run.most_rows = [Some(SMOKE_ROWS); 2];
        }
        for learner in self.learners.values_mut() {
            learner.epochs = learner.epochs.map(|_| 1);
        }
        self
    }
}

impl RunSpec {
    /// Name of its data in records: the table, and what was done to it.
    pub fn record_name(&self) -> String {
        let relu = if self.relu_inputs { "+relu" } else { "" };
        let depth = self.depth.map_or_else(String::new, |depth| format!("+depth{depth}"));
        format!("{}{}{relu}{depth}", self.dataset, self.splitting)
    }

    /// Shape of the network.
    pub fn network(&self) -> NetworkSettings {
        let once = &self.hidden_layer_sizes;
        let hidden_layer_sizes = self.depth.map_or_else(|| once.clone(), |depth| once.repeat(depth));
        NetworkSettings { hidden_layer_sizes, residual: self.depth.is_some(), ..NetworkSettings::default() }
    }
}
