//! Any of the learners, chosen by settings.

use rand::Rng;
use serde::{Deserialize, Serialize};

use super::{
    Backprop, BackpropSettings, BayesByBackprop, BayesByBackpropSettings, Bpc, Learner, PredictiveCoding,
    PredictiveCodingSettings, Rule,
};
use crate::error::Result;
use crate::heads::HeadSettings;
use crate::network::{Network, NetworkSettings, PriorSettings};
use crate::real::Real;

/// Which learner, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LearnerSettings {
    /// Bayesian predictive coding.
    Bpc(BpcSettings),
    /// Predictive coding.
    PredictiveCoding(PredictiveCodingSettings),
    /// Backpropagation.
    Backprop(BackpropSettings),
    /// Bayes by backprop.
    BayesByBackprop(BayesByBackpropSettings),
}

/// What Bayesian predictive coding adds to the network's shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BpcSettings {
    /// How activities are inferred.
    pub rule: Rule,
    /// Prior of every layer.
    pub prior: PriorSettings,
    /// Likelihood of the target.
    pub head: HeadSettings,
}

impl BpcSettings {
    /// A network of this shape with this prior and head.
    pub fn network(&self, shape: &NetworkSettings) -> NetworkSettings {
        NetworkSettings { prior: self.prior.clone(), head: self.head.clone(), ..shape.clone() }
    }
}

impl LearnerSettings {
    /// A learner at its start. Only Bayesian predictive coding has a prior and a head, its own.
    pub fn start<T: Startable>(
        &self,
        shape: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Box<dyn Learner<T>>> {
        T::start(self, shape, d_input, n_targets, rng)
    }
}

/// A working precision whose learners are compiled in this crate. Crates that start learners by settings then share
/// one copy of them, and build faster.
pub trait Startable: Real {
    /// See [`LearnerSettings::start`].
    fn start(
        settings: &LearnerSettings,
        shape: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Box<dyn Learner<Self>>>;
}

impl Startable for f32 {
    fn start(
        settings: &LearnerSettings,
        shape: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Box<dyn Learner<Self>>> {
        start(settings, shape, d_input, n_targets, rng)
    }
}

impl Startable for f64 {
    fn start(
        settings: &LearnerSettings,
        shape: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Box<dyn Learner<Self>>> {
        start(settings, shape, d_input, n_targets, rng)
    }
}

fn start<T: Real>(
    settings: &LearnerSettings,
    shape: &NetworkSettings,
    d_input: usize,
    n_targets: usize,
    rng: &mut dyn Rng,
) -> Result<Box<dyn Learner<T>>> {
    Ok(match settings {
        LearnerSettings::Bpc(settings) => {
            let network = Network::new(&settings.network(shape), d_input, n_targets, rng)?;
            Box::new(Bpc::<T>::new(network, settings.rule.clone())?)
        }
        LearnerSettings::PredictiveCoding(settings) => {
            Box::new(PredictiveCoding::<T>::new(shape, settings, d_input, n_targets, rng)?)
        }
        LearnerSettings::Backprop(settings) => {
            Box::new(Backprop::<T>::new(shape, settings, d_input, n_targets, rng)?)
        }
        LearnerSettings::BayesByBackprop(settings) => {
            Box::new(BayesByBackprop::<T>::new(shape, settings, d_input, n_targets, rng)?)
        }
    })
}
