//! Any of the learners, chosen by settings.

use bayespc::Real;
use bayespc::Result;
use bayespc::Samples;
use bayespc::base::linalg::cast;
use bayespc::data::Dataset;
use bayespc::heads::HeadSettings;
use bayespc::learners::{
    Backprop, BackpropSettings, BayesByBackprop, BayesByBackpropSettings, Bpc, Learner, PredictiveCoding,
    PredictiveCodingSettings, RandomFeatures, RandomFeaturesSettings, Rule,
};
use bayespc::model::{Model, ModelSettings, SearchSettings};
use bayespc::network::{Network, NetworkSettings, PriorSettings};
use bayespc::training::TrainingSettings;
use faer::Mat;
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
    /// One conjugate layer on random features; exact, so that it needs no epochs.
    RandomFeatures(RandomFeaturesSettings),
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
    /// Settings of a model with these networks.
    pub fn model(
        &self,
        network: &NetworkSettings,
        training: &TrainingSettings,
        members: usize,
    ) -> ModelSettings {
        let network =
            NetworkSettings { prior: self.prior.clone(), head: self.head.clone(), ..network.clone() };
        ModelSettings {
            network,
            rule: self.rule.clone(),
            training: training.clone(),
            members,
            ..ModelSettings::fast()
        }
    }
}

impl LearnerSettings {
    /// The same learner with the prior's width and the noise model that suit the training data best, as the
    /// command chooses the first of its networks; other learners have nothing to choose.
    pub fn searched<T: Real>(
        &self,
        network: &NetworkSettings,
        training: &TrainingSettings,
        train: &Dataset<'_, T>,
    ) -> Result<Self> {
        let Self::Bpc(settings) = self else { return Ok(self.clone()) };
        // The network keeps its shape and activation.
        let search = SearchSettings {
            activations: Vec::new(),
            widths: Vec::new(),
            linear_vars: Vec::new(),
            ..SearchSettings::default()
        };
        let model = ModelSettings { search, ..settings.model(network, training, 1) };
        let (input, target): (Mat<f64>, Mat<f64>) = (cast(train.input()), cast(train.target()));
        let chosen = Model::fit(&Samples::new(&input, &target)?, &model)?;
        let NetworkSettings { prior, head, .. } = chosen.members()[0].network.settings().clone();
        Ok(Self::Bpc(BpcSettings { rule: settings.rule.clone(), prior, head }))
    }

    /// A learner at its start.
    pub fn start<T: Real>(
        &self,
        network: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Box<dyn Learner<T>>> {
        Ok(match self {
            Self::Bpc(settings) => {
                let network = NetworkSettings {
                    prior: settings.prior.clone(),
                    head: settings.head.clone(),
                    ..network.clone()
                };
                let network = Network::new(&network, d_input, n_targets, rng)?;
                Box::new(Bpc::<T>::new(network, settings.rule.clone())?)
            }
            Self::PredictiveCoding(settings) => {
                Box::new(PredictiveCoding::<T>::new(network, settings, d_input, n_targets, rng)?)
            }
            Self::Backprop(settings) => {
                Box::new(Backprop::<T>::new(network, settings, d_input, n_targets, rng)?)
            }
            Self::BayesByBackprop(settings) => {
                Box::new(BayesByBackprop::<T>::new(network, settings, d_input, n_targets, rng)?)
            }
            Self::RandomFeatures(settings) => {
                Box::new(RandomFeatures::<T>::new(settings, d_input, n_targets, rng)?)
            }
        })
    }
}
