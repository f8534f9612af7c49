//! What the search tries.

use serde::{Deserialize, Serialize};

use crate::base::check::{at_least_one, positive};
use crate::error::{Error, Result};
use crate::network::Activation;

/// What the search tries. An empty list keeps what the other settings say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchSettings {
    /// Whether anything is chosen from the data.
    pub enabled: bool,
    /// V⁰ of hidden networks to begin with; more are tried where the best of several is at the edge.
    pub prior_vars: Vec<f64>,
    /// V⁰ of the exact linear model, a network without hidden layers; empty leaves it out.
    pub linear_vars: Vec<f64>,
    /// Activations of the hidden layers.
    pub activations: Vec<Activation>,
    /// By the feedback rule, try a variance node beside constant noise, and logits beside one-hot codes.
    pub noise: bool,
    /// Factors on the widths of the hidden layers that finalists try besides.
    pub widths: Vec<f64>,
    /// Samples from which on they are tried.
    pub widths_from: usize,
    /// Candidates that try them.
    pub finalists: usize,
    /// Share of the samples held out in each round.
    pub fraction: f64,
    /// Divisions of the samples; no sample is held out twice.
    pub rounds: usize,
    /// Samples used at most.
    pub max_rows: usize,
    /// Steps the final training of a network takes at most; of wider ones in proportion fewer.
    pub max_steps: u64,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            prior_vars: vec![0.3, 3.0, 30.0],
            linear_vars: vec![1e-4, 1e-3, 1e-2, 1e-1, 1.0],
            activations: vec![Activation::Relu, Activation::Silu],
            noise: true,
            widths: vec![2.0],
            widths_from: 500,
            finalists: 2,
            fraction: 0.2,
            rounds: 2,
            max_rows: 2000,
            max_steps: 30_000,
        }
    }
}

impl SearchSettings {
    /// Nothing is chosen: the settings are used as they are.
    pub fn off() -> Self {
        Self { enabled: false, ..Self::default() }
    }

    /// Whether all is fixed: there is but one candidate.
    pub(super) fn has_nothing_to_choose(&self) -> bool {
        self.prior_vars.is_empty() && self.activations.is_empty() && self.widths.is_empty() && !self.noise
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        let lists = [
            ("search.prior_vars", &self.prior_vars),
            ("search.linear_vars", &self.linear_vars),
            ("search.widths", &self.widths),
        ];
        for (name, values) in lists {
            values.iter().try_for_each(|&value| positive(name, value))?;
        }
        at_least_one("search.rounds", self.rounds)?;
        let held_out = self.fraction * self.rounds as f64;
        if !(self.fraction > 0.0 && self.fraction < 1.0 && held_out <= 1.0 + 1e-9) {
            let must_be = "between 0 and 1, and at most 1 times search.rounds: no sample is held out twice";
            return Err(Error::Setting { name: "search.fraction", value: self.fraction, must_be });
        }
        Ok(())
    }
}
