//! The baselines: their gradients, what they learn, and that chance and threads change nothing.

use approx::assert_relative_eq;
use bayespc::Activation;
use bayespc::data::{Dataset, one_hot};
use bayespc::error::Error;
use bayespc::heads::{HeadSettings, VarianceNode};
use bayespc::inference::ActivityOptimiser;
use bayespc::learners::{
    Backprop, BackpropSettings, BayesByBackprop, BayesByBackpropSettings, Learner, PredictiveCoding,
    PredictiveCodingSettings, ResidualNoise, Step,
};
use bayespc::metrics;
use bayespc::network::{CovarianceRule, Network, NetworkSettings, PointNetwork};
use bayespc::optim::Optimiser;
use bayespc::prediction::Method;
use bayespc::real::Real;
use bayespc::training::{Silent, TrainingSettings, fit, init_rng};
use faer::Mat;
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

const NAMES: [&str; 3] = ["backprop", "predictive-coding", "bayes-by-backprop"];

fn shape(hidden: &[usize], activation: Activation) -> NetworkSettings {
    NetworkSettings { hidden_layer_sizes: hidden.to_vec(), activation, ..NetworkSettings::default() }
}

/// Above the paper's rates, to be quick; constant-rate Adam ends in a jitter that grows with the rate.
const RATE: f64 = 3e-3;

/// Each baseline with quick settings, started from one seed.
fn baseline<T: Real>(
    name: &str,
    network: &NetworkSettings,
    d_input: usize,
    n_targets: usize,
    seed: u64,
) -> Box<dyn Learner<T>> {
    let rng = &mut init_rng(seed);
    match name {
        "backprop" => {
            let settings =
                BackpropSettings { optimiser: Optimiser::Adam { rate: RATE }, ..BackpropSettings::default() };
            Box::new(Backprop::new(network, &settings, d_input, n_targets, rng).unwrap())
        }
        "predictive-coding" => {
            let settings = PredictiveCodingSettings {
                optimiser: Optimiser::AdamW { rate: RATE, weight_decay: 3.6e-4 },
                ..PredictiveCodingSettings::default()
            };
            Box::new(PredictiveCoding::new(network, &settings, d_input, n_targets, rng).unwrap())
        }
        _ => {
            let settings = BayesByBackpropSettings {
                optimiser: Optimiser::Adam { rate: RATE },
                ..BayesByBackpropSettings::default()
            };
            Box::new(BayesByBackprop::new(network, &settings, d_input, n_targets, rng).unwrap())
        }
    }
}

const NOISE: f64 = 0.1;

/// y = sin 2x + noise of standard deviation 0.1, x uniform in ±2.
fn sine<T: Real>(n: usize, seed: u64) -> (Mat<T>, Mat<T>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let x: Vec<f64> = (0..n).map(|_| 4.0 * rng.random::<f64>() - 2.0).collect();
    let y: Vec<f64> = x
        .iter()
        .map(|x| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            (2.0 * x).sin() + NOISE * noise
        })
        .collect();
    (Mat::from_fn(1, n, |_, j| T::lit(x[j])), Mat::from_fn(1, n, |_, j| T::lit(y[j])))
}

fn random(d: usize, n: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    Mat::from_fn(d, n, |_, _| StandardNormal.sample(rng))
}

/// Σ_j w_j ‖y_j − a_j‖² / (2 Σ_j w_j), by another route than the learner's.
fn half_mean_square(network: &PointNetwork<f64>, batch: &Dataset<'_, f64>) -> f64 {
    let output = network.forward(batch.input()).unwrap();
    let mut sum = 0.0;
    for j in 0..batch.len() {
        let weight = batch.weights().map_or(1.0, |w| w[j]);
        for i in 0..output.nrows() {
            sum += weight * (batch.target()[(i, j)] - output[(i, j)]).powi(2);
        }
    }
    sum / (2.0 * batch.total_weight())
}

const STEP: Step = Step { index: 1, total: None, n_total: 100.0, full_batch: false };

#[test]
fn the_backward_pass_matches_central_differences_for_every_activation() {
    for (k, activation) in Activation::ALL.into_iter().enumerate() {
        let mut rng = ChaCha8Rng::seed_from_u64(k as u64);
        let (x, y) = (random(3, 70, &mut rng), random(2, 70, &mut rng));
        let weights: Vec<f64> = (0..70).map(|_| rng.random::<f64>()).collect();
        let batch = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
        let batch = batch.with_weights(&weights).unwrap();
        let settings = BackpropSettings::default();
        let mut learner =
            Backprop::<f64>::new(&shape(&[5, 4], activation), &settings, 3, 2, &mut rng).unwrap();
        let gradients = learner.gradients(&batch).unwrap().to_vec();
        let network = learner.mean_network().unwrap();
        for (l, gradient) in gradients.iter().enumerate() {
            for j in 0..gradient.ncols() {
                for i in 0..gradient.nrows() {
                    let h = 1e-6;
                    let loss = |h| {
                        let mut moved = network.clone();
                        moved.weights[l][(i, j)] += h;
                        half_mean_square(&moved, &batch)
                    };
                    let numeric = (loss(h) - loss(-h)) / (2.0 * h);
                    assert_relative_eq!(gradient[(i, j)], numeric, max_relative = 1e-5, epsilon = 1e-8);
                }
            }
        }
    }
}

#[test]
fn learners_start_from_the_weights_of_the_bayesian_network() {
    let settings = shape(&[6, 5], Activation::Relu);
    let bayesian = Network::<f64>::new(&settings, 3, 2, &mut init_rng(4)).unwrap();
    for name in NAMES {
        let weights = baseline::<f64>(name, &settings, 3, 2, 4).mean_network().unwrap().weights;
        for (own, other) in weights.iter().zip(bayesian.means()) {
            for j in 0..own.ncols() {
                for i in 0..own.nrows() {
                    // The posterior's mean is solved for, which rounds.
                    assert_relative_eq!(own[(i, j)], other[(i, j)], max_relative = 1e-14);
                }
            }
        }
    }
}

#[test]
fn every_baseline_learns_a_sine_to_near_the_noise() {
    let (x, y) = sine::<f64>(400, 0);
    let (xt, yt) = sine::<f64>(400, 1);
    for name in NAMES {
        let network = shape(&[32], Activation::Tanh);
        let mut learner = baseline(name, &network, 1, 1, 0);
        let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
        let settings = TrainingSettings { epochs: 300, batch_size: Some(32), ..TrainingSettings::default() };
        let report = fit(learner.as_mut(), &data, &settings, &mut Silent).unwrap();
        let predictive = learner.predict(xt.as_ref(), Method::monte_carlo()).unwrap();
        let rmse = metrics::rmse(predictive.mean().as_ref(), yt.as_ref()).unwrap();
        assert!(rmse < 1.3 * NOISE, "{name}: {rmse}");
        // The entropy of the noise is the best density there is: log(1/0.1) − ½ log 2πe = 0.884.
        let density = metrics::log_predictive_density(&predictive, yt.as_ref()).unwrap();
        assert!(density > 0.884 - 0.25, "{name}: {density}");
        assert!(report.loss[299] < 0.1 * report.loss[0], "{name}: {:?}", report.loss);
    }
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let (x, y) = sine::<f32>(150, 0);
    for name in NAMES {
        let run = || {
            let mut learner = baseline(name, &shape(&[8], Activation::Relu), 1, 1, 7);
            let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
            let settings = TrainingSettings { epochs: 3, ..TrainingSettings::default() };
            fit(learner.as_mut(), &data, &settings, &mut Silent).unwrap();
            let network = learner.draw_network(&mut init_rng(1)).unwrap();
            (network.weights, network.output_noise)
        };
        assert!(run() == run(), "{name}");
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    // Wide enough to wake the threads, and more samples than one round of chunks.
    let x = Mat::<f32>::from_fn(200, 1100, |_, _| rng.random::<f32>());
    let y = Mat::<f32>::from_fn(3, 1100, |_, _| rng.random::<f32>());
    for name in NAMES {
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut learner = baseline(name, &shape(&[150, 20], Activation::Relu), 200, 3, 7);
                let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
                for seed in 0..2 {
                    learner.learn(&data, &STEP, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
                }
                learner.finish(&data).unwrap();
                let network = learner.mean_network().unwrap();
                (network.weights, network.output_noise)
            })
        };
        assert!(run(1) == run(2), "{name}");
    }
}

#[test]
fn without_inference_predictive_coding_learns_only_at_the_top_and_there_like_backprop() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let (x, y) = (random(4, 90, &mut rng), random(2, 90, &mut rng));
    let batch = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let network = shape(&[7, 6], Activation::Tanh);
    let settings = PredictiveCodingSettings { inference_steps: 0, ..PredictiveCodingSettings::default() };
    let mut coding = PredictiveCoding::<f64>::new(&network, &settings, 4, 2, &mut init_rng(0)).unwrap();
    let mut backprop =
        Backprop::<f64>::new(&network, &BackpropSettings::default(), 4, 2, &mut init_rng(0)).unwrap();
    let coded = coding.gradients(&batch).unwrap();
    let backward = backprop.gradients(&batch).unwrap();
    for hidden in &coded[..2] {
        assert_eq!(hidden, &Mat::<f64>::zeros(hidden.nrows(), hidden.ncols()));
    }
    for j in 0..coded[2].ncols() {
        for i in 0..2 {
            assert_relative_eq!(coded[2][(i, j)], backward[2][(i, j)], max_relative = 1e-10, epsilon = 1e-14);
        }
    }
}

#[test]
fn at_a_small_nudge_predictive_coding_descends_along_backprop() {
    // One step of rate α moves z_l by −α ∂E/∂z_l = −α δ_l where only the layer above errs: in the last hidden
    // layer ε = −α δ to first order, so the gradient is α times backprop's.
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let x = random(4, 50, &mut rng);
    let network = shape(&[12], Activation::Tanh);
    let rate = 1e-3;
    let settings = PredictiveCodingSettings {
        inference_steps: 1,
        activity_optimiser: ActivityOptimiser::Gradient { rate: Some(rate) },
        ..PredictiveCodingSettings::default()
    };
    let y = random(2, 50, &mut rng);
    let batch = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let mut coding = PredictiveCoding::<f64>::new(&network, &settings, 4, 2, &mut init_rng(0)).unwrap();
    let mut backprop =
        Backprop::<f64>::new(&network, &BackpropSettings::default(), 4, 2, &mut init_rng(0)).unwrap();
    let (coded, backward) = (coding.gradients(&batch).unwrap(), backprop.gradients(&batch).unwrap());
    for j in 0..5 {
        for i in 0..12 {
            assert_relative_eq!(
                coded[0][(i, j)],
                rate * backward[0][(i, j)],
                max_relative = 1e-9,
                epsilon = 1e-15
            );
        }
    }
    // At the default settings, ten steps with momentum, the direction is still nearly the same.
    let mut coding =
        PredictiveCoding::<f64>::new(&network, &PredictiveCodingSettings::default(), 4, 2, &mut init_rng(0))
            .unwrap();
    let coded = coding.gradients(&batch).unwrap();
    for l in 0..2 {
        let cosine = cosine(&coded[l], &backward[l]);
        assert!(cosine > 0.9, "layer {l}: {cosine}");
    }
}

fn cosine(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    let dot = |a: &Mat<f64>, b: &Mat<f64>| bayespc::base::linalg::inner(a.as_ref(), b.as_ref());
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn the_gradient_of_predictive_coding_is_that_of_its_energy_at_rest() {
    // At rest ∂E/∂z = 0, so the total derivative of E*(W) = min_z E is the partial one: the learner's.
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (x, y) = (random(2, 5, &mut rng), random(1, 5, &mut rng));
    let batch = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let settings = PredictiveCodingSettings {
        inference_steps: 3000,
        activity_optimiser: ActivityOptimiser::Gradient { rate: Some(0.3) },
        // One step of rate h along the gradient g lowers E* by h‖g‖² to first order.
        optimiser: Optimiser::Sgd { rate: 1e-5, momentum: 0.0 },
        ..PredictiveCodingSettings::default()
    };
    let network = shape(&[3], Activation::Identity);
    let mut learner = PredictiveCoding::<f64>::new(&network, &settings, 2, 1, &mut init_rng(0)).unwrap();
    let energy = |network: &PointNetwork<f64>| {
        // A linear network at rest: y ~ N(W₂[W₁φ; 1], I + W₂W₂ᵀ) up to normalisation.
        let top = &network.weights[1];
        let spread = 1.0 + (0..3).map(|i| top[(0, i)] * top[(0, i)]).sum::<f64>();
        half_mean_square(network, &batch) / spread
    };
    let before = energy(&learner.mean_network().unwrap());
    let square: f64 = learner
        .gradients(&batch)
        .unwrap()
        .iter()
        .map(|g| bayespc::base::linalg::inner(g.as_ref(), g.as_ref()))
        .sum();
    learner.learn(&batch, &STEP, &mut rng).unwrap();
    let after = energy(&learner.mean_network().unwrap());
    assert_relative_eq!(before - after, 1e-5 * square, max_relative = 1e-3);
}

#[test]
fn the_uncertainty_of_bayes_by_backprop_grows_away_from_the_data() {
    let (x, y) = sine::<f64>(300, 0);
    let mut learner = baseline("bayes-by-backprop", &shape(&[30, 30], Activation::Relu), 1, 1, 0);
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let settings = TrainingSettings { epochs: 150, ..TrainingSettings::default() };
    fit(learner.as_mut(), &data, &settings, &mut Silent).unwrap();
    let at = Mat::from_fn(1, 4, |_, j| [0.0, 1.0, 6.0, -6.0][j]);
    let method = Method::MonteCarlo { draws: 200, seed: 0, layer_noise: false };
    let spread = learner.predict(at.as_ref(), method).unwrap().epistemic_variance();
    let inside = spread[(0, 0)].max(spread[(0, 1)]);
    for j in 2..4 {
        assert!(spread[(0, j)] > 4.0 * inside, "{spread:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Weight 2 counts a sample twice, weight 0 not at all.
    #[test]
    fn integer_weights_equal_repeated_samples(seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (x, y) = (random(3, 12, &mut rng), random(2, 12, &mut rng));
        let weights: Vec<f64> = (0..12).map(|j| f64::from(if j == 0 { 1 } else { rng.random_range(0..4) })).collect();
        let repeated: Vec<usize> = (0..12).flat_map(|j| std::iter::repeat_n(j, weights[j] as usize)).collect();
        let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
        let copies = data.gather(&repeated);
        let weighted = data.with_weights(&weights).unwrap();
        for name in NAMES {
            let run = |data: &Dataset<'_, f64>| {
                let mut learner = baseline(name, &shape(&[4], Activation::Tanh), 3, 2, seed);
                let mut losses = Vec::new();
                for step in 0..3 {
                    losses.push(learner.learn(data, &STEP, &mut ChaCha8Rng::seed_from_u64(step)).unwrap());
                }
                learner.finish(data).unwrap();
                (losses, learner.mean_network().unwrap())
            };
            let ((losses, network), (expected_losses, expected)) = (run(&weighted), run(&copies.view()));
            for (a, b) in losses.iter().zip(&expected_losses) {
                assert_relative_eq!(a, b, max_relative = 1e-9);
            }
            for (a, b) in network.weights.iter().zip(&expected.weights) {
                // Adam divides by gradients that may be tiny and then magnifies their rounding.
                assert!((a - b).norm_max() < 1e-6, "{name}");
            }
            assert!((&network.output_noise - &expected.output_noise).norm_max() < 1e-6, "{name}");
        }
    }
}

#[test]
fn residual_noise_is_the_residuals_covariance_and_safe_for_a_single_sample() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let (x, y) = (random(3, 500, &mut rng), random(2, 500, &mut rng));
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let single = data.gather(&[0]);
    for noise in [ResidualNoise::Diagonal, ResidualNoise::Full] {
        let settings = BackpropSettings { noise, ..BackpropSettings::default() };
        let network = shape(&[4], Activation::Relu);
        let mut learner = Backprop::<f64>::new(&network, &settings, 3, 2, &mut init_rng(0)).unwrap();
        learner.finish(&data).unwrap();
        let point = learner.mean_network().unwrap();
        let residual = &y - point.forward(x.as_ref()).unwrap();
        let covariance = &residual * residual.transpose() * faer::Scale(1.0 / 500.0);
        for k in 0..2 {
            for i in 0..2 {
                let expected = match (noise, i == k) {
                    (ResidualNoise::Diagonal, false) => 0.0,
                    (ResidualNoise::Full, false) => covariance[(i, k)] * 500.0 / 502.0,
                    _ => covariance[(i, k)],
                };
                assert_relative_eq!(
                    point.output_noise[(i, k)],
                    expected,
                    max_relative = 1e-5,
                    epsilon = 1e-15
                );
            }
        }
        // A single sample, fitted exactly.
        for _ in 0..5000 {
            learner.learn(&single.view(), &STEP, &mut rng).unwrap();
        }
        learner.finish(&single.view()).unwrap();
        let predictive = learner.predict(x.as_ref(), Method::Linearised).unwrap();
        assert!(metrics::log_predictive_density(&predictive, y.as_ref()).unwrap().is_finite());
    }
}

#[test]
fn one_hot_targets_are_classified() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let labels: Vec<usize> = (0..300).map(|j| j % 3).collect();
    let centres = [[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]];
    let x = Mat::from_fn(2, 300, |i, j| {
        let noise: f64 = StandardNormal.sample(&mut rng);
        (centres[labels[j]][i] + 0.5 * noise) as f32
    });
    let y = one_hot::<f32>(&labels, 3).unwrap();
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    for name in NAMES {
        let mut learner = baseline(name, &shape(&[16], Activation::Relu), 2, 3, 0);
        let settings = TrainingSettings { epochs: 30, ..TrainingSettings::default() };
        fit(learner.as_mut(), &data, &settings, &mut Silent).unwrap();
        let mean = learner.predict(x.as_ref(), Method::Mean).unwrap().mean();
        let right = (0..300).filter(|&j| (0..3).all(|k| mean[(labels[j], j)] >= mean[(k, j)])).count();
        assert!(right >= 295, "{name}: {right}");
    }
}

#[test]
fn bayes_by_backprop_refuses_methods_it_does_not_know_and_says_which_it_does() {
    let x = random(3, 4, &mut ChaCha8Rng::seed_from_u64(1));
    let learner = baseline::<f64>("bayes-by-backprop", &shape(&[4], Activation::Relu), 3, 2, 0);
    let moments = Method::Moments { covariance: CovarianceRule::Exact };
    for (method, name) in [(Method::Linearised, "linearised"), (moments, "moments")] {
        let error = learner.predict(x.as_ref(), method).unwrap_err();
        assert!(
            matches!(error, Error::Method { learner: "bayes-by-backprop", method } if method == name),
            "{error}"
        );
    }
    let predictive = learner.predict(x.as_ref(), learner.default_method()).unwrap();
    assert_eq!(predictive.components().len(), 20);
}

#[test]
fn wrong_input_is_an_error_that_names_the_culprit() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (x, y) = (random(3, 4, &mut rng), random(2, 4, &mut rng));
    let narrow = random(1, 4, &mut rng);
    let network = shape(&[4], Activation::Relu);
    for name in NAMES {
        let mut learner = baseline::<f64>(name, &network, 3, 2, 0);
        let mut learn = |data: Dataset<'_, f64>| learner.learn(&data, &STEP, &mut rng).unwrap_err();
        let wrong_input = learn(Dataset::new(narrow.as_ref(), y.as_ref()).unwrap());
        assert!(matches!(wrong_input, Error::Shape { what: "input", .. }));
        let wrong_target = learn(Dataset::new(x.as_ref(), narrow.as_ref()).unwrap());
        assert!(matches!(wrong_target, Error::Shape { what: "target", .. }));
        let missing = learn(Dataset::with_missing(x.as_ref(), y.as_ref()).unwrap());
        assert!(matches!(missing, Error::Conflict { .. }));
    }
    let heteroscedastic =
        NetworkSettings { head: HeadSettings::VarianceNode(VarianceNode::default()), ..network };
    let error = Backprop::<f64>::new(&heteroscedastic, &BackpropSettings::default(), 3, 2, &mut rng);
    assert!(matches!(error.unwrap_err(), Error::Conflict { .. }));
}

#[test]
fn settings_are_the_papers_and_refuse_what_they_do_not_know() {
    let read = toml::from_str::<PredictiveCodingSettings>;
    assert_eq!(read("").unwrap(), PredictiveCodingSettings::default());
    assert!(read("inference_step = 3").is_err());
    assert_eq!(
        PredictiveCodingSettings::paper().optimiser,
        Optimiser::AdamW { rate: 2e-4, weight_decay: 0.65 }
    );
    assert_eq!(toml::from_str::<BackpropSettings>("").unwrap().optimiser, Optimiser::Adam { rate: 1e-3 });
    assert!(toml::from_str::<BackpropSettings>("rate = 1.0").is_err());
    let settings: BayesByBackpropSettings = toml::from_str("initial_std = 0.0").unwrap();
    assert!(matches!(
        settings.validate().unwrap_err(),
        Error::Setting { name: "bayes_by_backprop.initial_std", .. }
    ));
    assert!(toml::from_str::<BayesByBackpropSettings>("std = 1.0").is_err());
}
