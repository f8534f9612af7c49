//! What the search tries.

use serde::{Deserialize, Serialize};

use crate::base::check::{at_least_one, positive};
use crate::error::{Error, Result};
use crate::network::Activation;
use crate::real::Precision;

/// What the search tries. An empty list keeps what the other settings say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is tried or not, whatever the others are")]
pub struct SearchSettings {
    /// Whether anything is chosen from the data.
    pub enabled: bool,
    /// V⁰ of networks that see columns as they are, to begin with.
    pub prior_vars: Vec<f64>,
    /// V⁰ of networks that see codes, which are many and ask for narrower priors. Empty with `prior_vars`.
    pub code_vars: Vec<f64>,
    /// V⁰ of the exact linear model, a network without hidden layers; empty leaves it out.
    pub linear_vars: Vec<f64>,
    /// Bins of the columns' codes; 0 is columns as they are. Three times as many where that leaves 100 samples to a bin.
    pub bins: Vec<usize>,
    /// Activations of the hidden layers; all but the first are tried of the best candidate only.
    pub activations: Vec<Activation>,
    /// By the feedback rule, try a variance node beside constant noise, and logits beside one-hot codes.
    pub noise: bool,
    /// Let networks learn the logarithm of a target that is never negative and spans a large factor, tried of the best one.
    pub log_target: bool,
    /// Give inputs prior variances by what their columns tell of samples held out, tried of the best candidate.
    pub relevance: bool,
    /// Factors on the widths of the hidden layers, tried of the best candidate.
    pub widths: Vec<f64>,
    /// Samples from which on they are tried.
    pub widths_from: usize,
    /// Parts of the samples at least; a network that learns from all but one of them predicts that one.
    pub folds: usize,
    /// Slices along a column that are held out whole, to learn how unsure networks should be far from their data; 0: none.
    pub slices: usize,
    /// Candidates that go on after the first fold.
    pub survivors: usize,
    /// Kinds of networks in the ensemble at most.
    pub kinds: usize,
    /// Samples that candidates learn from at most while they are compared.
    pub max_rows: usize,
    /// Passes over 1000 samples, and √(1000/n) times as many over n of them; of wider networks in proportion fewer. Where
    /// `training.epochs` is not the default, that is kept.
    pub epochs: usize,
    /// Samples of a batch, as a multiple of the root of their number, but at least `training.batch_size`. Where that is
    /// not the default, it is kept.
    pub batch_root: f64,
    /// Samples below which there are twice as many folds: of few, none can be spared.
    pub few: usize,
    /// Networks that learn from all samples in the end, in place of those of the folds; 0: the folds' are the ensemble.
    pub refit: usize,
    /// Working precision of training.
    pub precision: Precision,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            prior_vars: vec![1.0, 10.0],
            code_vars: vec![0.1, 1.0],
            linear_vars: vec![1e-4, 1e-3, 1e-2, 1e-1, 1.0],
            bins: vec![0, 8, 20],
            activations: vec![Activation::Relu, Activation::Silu],
            noise: true,
            log_target: true,
            relevance: true,
            widths: vec![2.0],
            widths_from: 500,
            folds: 5,
            slices: 5,
            survivors: 5,
            kinds: 4,
            max_rows: 8000,
            epochs: 50,
            batch_root: 2.2,
            few: 600,
            refit: 0,
            precision: Precision::F32,
        }
    }
}

impl SearchSettings {
    /// Nothing is chosen: the settings are used as they are.
    pub fn off() -> Self {
        Self { enabled: false, ..Self::default() }
    }

    /// Whether all is fixed: there is but one candidate.
    pub(in crate::model) fn has_nothing_to_choose(&self) -> bool {
        let lists = self.prior_vars.len() + self.activations.len() + self.bins.len() + self.widths.len();
        lists == 0 && !self.noise
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        let lists = [
            ("search.prior_vars", &self.prior_vars),
            ("search.code_vars", &self.code_vars),
            ("search.linear_vars", &self.linear_vars),
            ("search.widths", &self.widths),
        ];
        for (name, values) in lists {
            values.iter().try_for_each(|&value| positive(name, value))?;
        }
        if self.folds < 2 {
            let value = self.folds as f64;
            return Err(Error::Setting { name: "search.folds", value, must_be: "at least 2" });
        }
        at_least_one("search.epochs", self.epochs)?;
        positive("search.batch_root", self.batch_root)?;
        at_least_one("search.survivors", self.survivors)?;
        at_least_one("search.kinds", self.kinds)?;
        Ok(())
    }
}
