//! What the experiments do with Bayesian predictive coding beyond starting it: whole models, and settings chosen
//! from the data.

use bayespc::base::linalg::cast;
use bayespc::data::Dataset;
use bayespc::learners::{BpcSettings, LearnerSettings};
use bayespc::model::{Model, ModelSettings, SearchSettings};
use bayespc::network::NetworkSettings;
use bayespc::training::TrainingSettings;
use bayespc::{Real, Result, Samples};
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
        ..ModelSettings::fast()
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
    // The network keeps its shape and activation and sees standardised columns and targets: a prior chosen for another
    // encoding would not fit it.
    let search = SearchSettings {
        activations: Vec::new(),
        widths: Vec::new(),
        linear_vars: Vec::new(),
        bins: Vec::new(),
        log_target: false,
        relevance: false,
        ..SearchSettings::default()
    };
    let model = ModelSettings { search, ..model_settings(settings, shape, training, 1) };
    let (input, target): (Mat<f64>, Mat<f64>) = (cast(train.input()), cast(train.target()));
    let chosen = Model::fit(&Samples::new(&input, &target)?, &model)?;
    let NetworkSettings { prior, head, .. } = chosen.members()[0].network().settings().clone();
    Ok(LearnerSettings::Bpc(BpcSettings { rule: settings.rule.clone(), prior, head }))
}

#[cfg(test)]
mod tests {
    use bayespc::training::init_rng;

    use super::*;

    /// Bins and priors by column both pay on a table with a curve, a step and two columns of noise; neither fits a
    /// network that sees the four columns as they are.
    #[test]
    fn a_searched_prior_fits_the_network_it_was_searched_for() {
        let wave = |i: usize, j: usize| ((i * (2 * j + 3)) as f64 * 0.618).rem_euclid(2.0) - 1.0;
        let input = Mat::from_fn(4, 150, |j, i| 1.7 * wave(i, j));
        let target =
            Mat::from_fn(1, 150, |_, i| 2.0 * wave(i, 0).powi(2) + f64::from(wave(i, 1) > 0.2) - 1.0);
        let train = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        let shape = NetworkSettings { hidden_layer_sizes: vec![8], ..NetworkSettings::default() };
        let training = TrainingSettings { epochs: 5, ..TrainingSettings::default() };
        let chosen =
            search(&LearnerSettings::Bpc(BpcSettings::default()), &shape, &training, &train).unwrap();
        let LearnerSettings::Bpc(bpc) = &chosen else { panic!("another learner: {chosen:?}") };
        assert!(bpc.prior.input_factors.is_empty(), "{:?}", bpc.prior);
        chosen.start::<f64>(&shape, 4, 1, &mut init_rng(0)).unwrap();
    }
}
