//! Any of the four learners, chosen by settings.

use bayespc::Real;
use bayespc::Result;
use bayespc::data::Dataset;
use bayespc::heads::HeadSettings;
use bayespc::learners::{
    Backprop, BackpropSettings, BayesByBackprop, BayesByBackpropSettings, Bpc, Learner, PredictiveCoding,
    PredictiveCodingSettings, Rule, Step,
};
use bayespc::network::{Network, NetworkSettings, PointNetwork, PriorSettings};
use bayespc::prediction::{Method, Predictive};
use faer::MatRef;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Which learner, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
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

/// One of the learners.
#[derive(Clone, Debug)]
pub enum AnyLearner<T: Real> {
    /// Bayesian predictive coding.
    Bpc(Box<Bpc<T>>),
    /// Predictive coding.
    PredictiveCoding(Box<PredictiveCoding<T>>),
    /// Backpropagation.
    Backprop(Box<Backprop<T>>),
    /// Bayes by backprop.
    BayesByBackprop(Box<BayesByBackprop<T>>),
}

impl LearnerSettings {
    /// A learner at its start.
    pub fn start<T: Real>(
        &self,
        network: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<AnyLearner<T>> {
        Ok(match self {
            Self::Bpc(settings) => {
                let network = NetworkSettings {
                    prior: settings.prior.clone(),
                    head: settings.head.clone(),
                    ..network.clone()
                };
                let network = Network::new(&network, d_input, n_targets, rng)?;
                AnyLearner::Bpc(Box::new(Bpc::new(network, settings.rule.clone())?))
            }
            Self::PredictiveCoding(settings) => AnyLearner::PredictiveCoding(Box::new(
                PredictiveCoding::new(network, settings, d_input, n_targets, rng)?,
            )),
            Self::Backprop(settings) => {
                AnyLearner::Backprop(Box::new(Backprop::new(network, settings, d_input, n_targets, rng)?))
            }
            Self::BayesByBackprop(settings) => AnyLearner::BayesByBackprop(Box::new(BayesByBackprop::new(
                network, settings, d_input, n_targets, rng,
            )?)),
        })
    }
}

/// Hand the call on to whichever learner it is.
macro_rules! each {
    ($learner:expr, $inner:ident => $call:expr) => {
        match $learner {
            AnyLearner::Bpc($inner) => $call,
            AnyLearner::PredictiveCoding($inner) => $call,
            AnyLearner::Backprop($inner) => $call,
            AnyLearner::BayesByBackprop($inner) => $call,
        }
    };
}

impl<T: Real> Learner<T> for AnyLearner<T> {
    fn name(&self) -> &'static str {
        each!(self, learner => learner.name())
    }

    fn learn(&mut self, batch: &Dataset<'_, T>, step: &Step, rng: &mut dyn Rng) -> Result<f64> {
        each!(self, learner => learner.learn(batch, step, rng))
    }

    fn finish(&mut self, data: &Dataset<'_, T>) -> Result<()> {
        each!(self, learner => learner.finish(data))
    }

    fn finished_copy(&self, data: &Dataset<'_, T>) -> Result<Box<dyn Learner<T>>> {
        each!(self, learner => learner.finished_copy(data))
    }

    fn mean_network(&self) -> Result<PointNetwork<T>> {
        each!(self, learner => learner.mean_network())
    }

    fn draw_network(&self, rng: &mut dyn Rng) -> Result<PointNetwork<T>> {
        each!(self, learner => learner.draw_network(rng))
    }

    fn predict(&self, input: MatRef<'_, T>, method: Method) -> Result<Predictive> {
        each!(self, learner => learner.predict(input, method))
    }
}
