//! What the experiments do with Bayesian predictive coding beyond starting it: whole models, and settings chosen
//! from the data.

use bayespc::base::linalg::cast;
use bayespc::data::Dataset;
use bayespc::learners::{BpcSettings, LearnerSettings};
use bayespc::model::selection::{self, SearchSettings};
use bayespc::model::{ModelSettings, Targets};
use bayespc::network::NetworkSettings;
use bayespc::training::TrainingSettings;
use bayespc::{Real, Result};
use faer::Mat;

/// Settings of a model with these networks.
pub fn model_settings(
    bpc: &BpcSettings,
    shape: &NetworkSettings,
    training: &TrainingSettings,
    members: usize,
) -> ModelSettings {
    ModelSettings {
        network: bpc.network(shape),
        rule: bpc.rule.clone(),
        training: training.clone(),
        members,
        ..ModelSettings::default()
    }
}

/// The same learner with the prior's width and the noise model that suit the training data best, as the
/// command chooses the first of its networks; other learners have nothing to choose.
pub fn search<T: Real>(
    learner: &LearnerSettings,
    shape: &NetworkSettings,
    training: &TrainingSettings,
    train: &Dataset<'_, T>,
) -> Result<LearnerSettings> {
    let LearnerSettings::Bpc(settings) = learner else { return Ok(learner.clone()) };
    let model = model_settings(settings, shape, training, 1);
    let targets: Mat<f64> = cast(train.target());
    let targets = Targets::Values(targets.as_ref());
    // The network keeps the activation it has.
    let search = SearchSettings { activations: Vec::new(), widths: Vec::new(), ..SearchSettings::default() };
    let choice = selection::choose(train.input(), targets, train.weights(), &model, &search)?;
    let NetworkSettings { prior, head, .. } = choice.settings.network;
    Ok(LearnerSettings::Bpc(BpcSettings { rule: settings.rule.clone(), prior, head }))
}
