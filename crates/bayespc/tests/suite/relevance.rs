//! Prior variances of the inputs: what they mean, and that the search finds columns that tell nothing.

use crate::common::{assert_close, normal, rng};
use bayespc::Samples;
use bayespc::data::Dataset;
use bayespc::inference::FeedbackSettings;
use bayespc::learners::{Bpc, Rule};
use bayespc::model::{Model, ModelSettings};
use bayespc::network::{Network, NetworkSettings};
use bayespc::prediction::{Method, Predictor};
use bayespc::training::{self, TrainingSettings};
use faer::Mat;

const FACTORS: [f64; 3] = [4.0, 1.0, 0.01];

fn network(hidden: &[usize], input_factors: &[f64]) -> NetworkSettings {
    let mut settings = NetworkSettings { hidden_layer_sizes: hidden.to_vec(), ..NetworkSettings::default() };
    settings.prior.var = 0.5;
    settings.prior.input_factors = input_factors.to_vec();
    settings
}

/// Mean and variance of what a network says that has learned y from x.
fn learned(settings: &NetworkSettings, rule: &Rule, x: &Mat<f64>, y: &Mat<f64>) -> (Mat<f64>, Mat<f64>) {
    let network = Network::<f64>::new(settings, x.nrows(), 1, &mut rng(3)).unwrap();
    let mut learner = Bpc::new(network, rule.clone()).unwrap();
    let training = TrainingSettings { epochs: 5, batch_size: Some(20), ..TrainingSettings::default() };
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    training::fit(&mut learner, &data, &training, &mut training::Silent).unwrap();
    let predictor = Predictor::new(learner.into_network().unwrap());
    let said = predictor.predict(x.as_ref(), Method::Linearised).unwrap();
    (said.mean(), said.variance())
}

#[test]
fn factors_on_the_variances_are_roots_of_them_on_the_inputs() {
    let mut rng = rng(1);
    let x = normal(3, 100, &mut rng);
    let y = Mat::from_fn(1, 100, |_, j| (2.0 * x[(0, j)]).sin() + 0.3 * x[(1, j)]);
    let scaled = Mat::from_fn(3, 100, |i, j| FACTORS[i].sqrt() * x[(i, j)]);
    let whitened = FeedbackSettings { whiten_input: true, ..FeedbackSettings::default() };
    for rule in [Rule::default(), Rule::Feedback(whitened)] {
        for hidden in [&[6, 5][..], &[]] {
            let (mean, variance) = learned(&network(hidden, &FACTORS), &rule, &x, &y);
            let (same, also) = learned(&network(hidden, &[]), &rule, &scaled, &y);
            assert_close(mean.as_ref(), same.as_ref(), 1e-7, "mean");
            assert_close(variance.as_ref(), also.as_ref(), 1e-7, "variance");
            let (other, _) = learned(&network(hidden, &[]), &rule, &x, &y);
            assert!((other - mean).norm_max() > 1e-3, "factors change nothing");
        }
    }
}

#[test]
fn there_is_a_factor_for_each_input_or_none() {
    let new = |factors: &[f64]| Network::<f64>::new(&network(&[4], factors), 3, 1, &mut rng(1));
    assert!(new(&FACTORS).is_ok() && new(&[]).is_ok());
    assert!(new(&FACTORS[..2]).unwrap_err().to_string().contains("prior.input_factors"));
    assert!(new(&[1.0, 0.0, 1.0]).unwrap_err().to_string().contains("prior.input_factors"));
}

/// Two columns that tell something together, and others that tell nothing.
fn noisy(n: usize, noise: usize, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = rng(seed);
    let x = normal(2 + noise, n, &mut rng);
    let y = Mat::from_fn(1, n, |_, j| (2.0 * x[(0, j)]).sin() * x[(1, j)] + 0.5 * x[(1, j)]);
    (x, y)
}

#[test]
fn columns_of_noise_are_found_and_predictions_are_better_for_it() {
    let (x, y) = noisy(300, 20, 5);
    let (new, truth) = noisy(1000, 20, 6);
    let mut settings = ModelSettings::default();
    settings.training.epochs = 20;
    settings.search.widths = Vec::new();
    let fit = |settings: &ModelSettings| {
        let model = Model::fit(&Samples::new(&x, &y).unwrap(), settings).unwrap();
        let error = (model.predict(&new).unwrap().mean() - &truth).norm_l2() / 1000_f64.sqrt();
        (model, error)
    };
    let (model, with) = fit(&settings);
    assert!(model.candidates().iter().any(|candidate| candidate.relevance && candidate.members > 0));
    for member in model.members() {
        let factors = &member.network().settings().prior.input_factors;
        if let [first, second, noise @ ..] = &factors[..factors.len().min(22)] {
            let largest = noise.iter().fold(0.0_f64, |largest, &factor| largest.max(factor));
            assert!(first.min(*second) > 3.0 * largest, "{factors:?}");
        }
    }
    // What the file keeps is what was learned.
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.predict(&new).unwrap().mean(), model.predict(&new).unwrap().mean());

    settings.search.relevance = false;
    let (plain, without) = fit(&settings);
    assert!(plain.candidates().iter().all(|candidate| !candidate.relevance));
    assert!(with < 0.8 * without, "{with} {without}");
}
