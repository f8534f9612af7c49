//! Both rules learn: on the yacht table (where the benchmark data are at hand) and on tasks made here.

use std::io::Write;

use bayespc::data::Standardiser;
use bayespc::data::{Dataset, one_hot};
use bayespc::heads::{Categorical, HeadSettings, VarianceNode};
use bayespc::inference::{FeedbackSettings, RelaxationSettings};
use bayespc::learners::{Backprop, BackpropSettings, Bpc, Learner, Rule, Step};
use bayespc::learning::Schedule;
use bayespc::metrics;
use bayespc::network::{Network, NetworkSettings};
use bayespc::optim::Optimiser;
use bayespc::prediction::Method;
use bayespc::training::{Control, End, EpochReport, Observer, Silent, TrainingSettings, fit, init_rng};
use bayespc::{Model, ModelSettings, Samples};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

struct Split {
    train: (Mat<f64>, Mat<f64>),
    test: (Mat<f64>, Mat<f64>),
}

/// The yacht table's split 0 in original units, or nothing where `BAYESPC_DATA` names no folder.
fn yacht() -> Option<Split> {
    let Some(root) = std::env::var_os("BAYESPC_DATA").filter(|root| !root.is_empty()) else {
        // Not `eprintln!`, whose output a passing test does not show.
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let message = format!("SKIPPED {test}: no benchmark data (set BAYESPC_DATA)\n");
        std::io::stderr().write_all(message.as_bytes()).unwrap();
        return None;
    };
    let folder = std::path::Path::new(&root).join("uci/yacht");
    let table = std::fs::read_to_string(folder.join("data.csv")).expect("BAYESPC_DATA holds uci/yacht");
    let numbers = |line: &str| line.split(',').map(|cell| cell.parse().unwrap()).collect::<Vec<f64>>();
    let rows: Vec<Vec<f64>> = table.lines().skip(1).map(numbers).collect();
    let splits = std::fs::read_to_string(folder.join("splits.csv")).unwrap();
    let test: Vec<usize> =
        splits.lines().next().unwrap().split(',').map(|cell| cell.parse().unwrap()).collect();
    let train: Vec<usize> = (0..rows.len()).filter(|row| !test.contains(row)).collect();
    let part = |samples: &[usize]| {
        let x = Mat::from_fn(6, samples.len(), |i, j| rows[samples[j]][i]);
        (x, Mat::from_fn(1, samples.len(), |_, j| rows[samples[j]][6]))
    };
    Some(Split { train: part(&train), test: part(&test) })
}

/// RMSE and log density in original units on the yacht test rows.
fn yacht_scores(settings: &ModelSettings) -> Option<(f64, f64)> {
    let Split { train, test } = yacht()?;
    let model = Model::fit(&Samples::new(train.0.as_ref(), train.1.as_ref()).unwrap(), settings).unwrap();
    let predictive = model.predict(test.0.as_ref()).unwrap();
    let rmse = metrics::rmse(predictive.mean().as_ref(), test.1.as_ref()).unwrap();
    Some((rmse, metrics::log_predictive_density(&predictive, test.1.as_ref()).unwrap()))
}

// The ranges are the reference implementation's mean over four splits (its benchmark table) with the spread
// of single splits seen there: a factor of about two in RMSE.

#[test]
fn feedback_on_yacht_is_within_the_spread_of_the_reference() {
    if let Some((rmse, density)) = yacht_scores(&ModelSettings::fast()) {
        assert!((0.3..1.3).contains(&rmse), "RMSE {rmse}, reference 0.85");
        assert!((-1.6..-0.7).contains(&density), "log density {density}, reference −1.14");
    }
}

#[test]
fn a_variance_node_improves_the_density_on_yacht() {
    let mut settings = ModelSettings::fast();
    settings.network.head = HeadSettings::VarianceNode(VarianceNode::default());
    if let Some((rmse, density)) = yacht_scores(&settings) {
        assert!((0.3..1.3).contains(&rmse), "RMSE {rmse}");
        assert!(density > -0.7, "log density {density}, reference −0.03 with three members");
    }
}

#[test]
fn relaxation_as_printed_stalls_on_yacht_as_documented() {
    let mut settings = ModelSettings::paper();
    if let Rule::Relaxation(rule) = &mut settings.rule {
        // The reference table scales batches and uses the cosine schedule.
        rule.scale_batches = true;
        rule.schedule = Schedule::Cosine { first: 0.3, last: 0.005 };
    }
    settings.training.batch_size = Some(32);
    if let Some((rmse, _)) = yacht_scores(&settings) {
        assert!((4.0..10.0).contains(&rmse), "RMSE {rmse}, reference 6.7");
    }
}

#[test]
fn tied_relaxation_on_yacht_reaches_the_papers_table() {
    let settings = ModelSettings {
        rule: Rule::Relaxation(RelaxationSettings::tied()),
        training: TrainingSettings { batch_size: Some(64), ..TrainingSettings::default() },
        ..ModelSettings::fast()
    };
    if let Some((rmse, _)) = yacht_scores(&settings) {
        assert!((0.7..3.2).contains(&rmse), "RMSE {rmse}, reference 1.80, paper 2.08");
    }
}

/// scikit-learn's two moons.
fn two_moons(n: usize, noise: f64, seed: u64) -> (Mat<f64>, Vec<usize>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let labels: Vec<usize> = (0..n).map(|j| j % 2).collect();
    let mut x = Mat::zeros(2, n);
    for (j, &label) in labels.iter().enumerate() {
        let angle = std::f64::consts::PI * rng.random::<f64>();
        let (a, b) =
            if label == 0 { (angle.cos(), angle.sin()) } else { (1.0 - angle.cos(), 0.5 - angle.sin()) };
        let mut jitter = || noise * Distribution::<f64>::sample(&StandardNormal, &mut rng);
        x[(0, j)] = a + jitter();
        x[(1, j)] = b + jitter();
    }
    (x, labels)
}

#[test]
fn the_paper_preset_solves_two_moons_in_one_full_batch_epoch() {
    let (x, labels) = two_moons(1000, 0.05, 1);
    let (x_test, labels_test) = two_moons(1000, 0.05, 2);
    let scaling = Standardiser::fit(x.as_ref()).unwrap();
    let (x, x_test) = (scaling.apply(x.as_ref()).unwrap(), scaling.apply(x_test.as_ref()).unwrap());
    let y = one_hot::<f64>(&labels, 2).unwrap();
    let settings = NetworkSettings { hidden_layer_sizes: vec![100], ..NetworkSettings::default() };
    let mut accuracies = Vec::new();
    for seed in 0..5 {
        let network = Network::new(&settings, 2, 2, &mut init_rng(seed)).unwrap();
        let mut learner = Bpc::new(network, Rule::Relaxation(RelaxationSettings::paper())).unwrap();
        let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
        let training = TrainingSettings { epochs: 1, batch_size: None, seed, ..TrainingSettings::default() };
        fit(&mut learner, &data, &training, &mut Silent).unwrap();
        let output = learner.mean_network().unwrap().forward(x_test.as_ref()).unwrap();
        accuracies.push(metrics::accuracy(output.as_ref(), &labels_test).unwrap());
    }
    let mean = accuracies.iter().sum::<f64>() / 5.0;
    assert!(mean >= 0.995, "mean accuracy {mean} of {accuracies:?}");
}

/// y = sin 3x + N(0, 0.1²), the oracle's self-check.
fn sine(n: usize, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let x = Mat::from_fn(1, n, |_, _| 4.0 * rng.random::<f64>() - 2.0);
    let y = Mat::from_fn(1, n, |_, j| {
        (3.0 * x[(0, j)]).sin() + 0.1 * Distribution::<f64>::sample(&StandardNormal, &mut rng)
    });
    (x, y)
}

/// The output layer then minimises ‖y − Mφ‖² + tr(M V⁰⁻¹ Mᵀ) on the φ it predicts from, and M = 0 gives Σ y².
#[test]
fn after_every_full_batch_of_tied_relaxation_the_error_is_at_most_that_of_predicting_zero() {
    let (x, y) = sine(200, 5);
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let of_zero = y.squared_norm_l2() / 200.0;
    for hidden_layer_sizes in [vec![1, 1], vec![2, 2], vec![20, 20], vec![10, 10, 10]] {
        for seed in 0..3 {
            let settings = NetworkSettings {
                hidden_layer_sizes: hidden_layer_sizes.clone(),
                ..NetworkSettings::default()
            };
            let network = Network::<f64>::new(&settings, 1, 1, &mut init_rng(seed)).unwrap();
            let mut learner = Bpc::new(network, Rule::Relaxation(RelaxationSettings::tied())).unwrap();
            for index in 1..=40 {
                let step = Step { index, total: None, n_total: 200.0, full_batch: true };
                let before = learner.learn(&data, &step, &mut init_rng(seed)).unwrap();
                assert!(
                    index == 1 || before <= of_zero,
                    "{hidden_layer_sizes:?}, seed {seed}, batch {index}: {before} > {of_zero}"
                );
            }
        }
    }
}

#[test]
fn feedback_learns_a_sine_down_to_its_noise_and_knows_the_noise() {
    let (x, y) = sine(400, 3);
    let (x_test, y_test) = sine(400, 4);
    let model = Model::fit(&Samples::new(x.as_ref(), y.as_ref()).unwrap(), &ModelSettings::fast()).unwrap();
    let predictive = model.predict(x_test.as_ref()).unwrap();
    let rmse = metrics::rmse(predictive.mean().as_ref(), y_test.as_ref()).unwrap();
    assert!(rmse < 0.125, "RMSE {rmse} at noise 0.1");
    let noise = predictive.aleatoric_variance()[(0, 0)].sqrt();
    assert!((0.08..0.12).contains(&noise), "noise {noise}");
    let coverage = metrics::interval_coverage(&predictive, y_test.as_ref(), 0.9).unwrap();
    // Binomial standard deviation at 400 samples is 0.015.
    assert!((coverage - 0.9).abs() < 0.06, "coverage {coverage}");
}

#[test]
fn epistemic_uncertainty_grows_away_from_the_data() {
    let (x, y) = sine(200, 5);
    let settings = ModelSettings::fast();
    let model = Model::fit(&Samples::new(x.as_ref(), y.as_ref()).unwrap(), &settings).unwrap();
    let places = Mat::from_fn(1, 3, |_, j| [0.0, 4.0, 8.0][j]);
    let epistemic = model.predict(places.as_ref()).unwrap().epistemic_variance();
    assert!(epistemic[(0, 0)] < 0.1 * epistemic[(0, 1)]);
    assert!(epistemic[(0, 1)] < epistemic[(0, 2)]);
}

/// The weights after every epoch.
#[derive(Default)]
struct Weights(Vec<Vec<Mat<f64>>>);

impl Observer<f64> for Weights {
    fn epoch(&mut self, _report: &EpochReport, learner: &dyn Learner<f64>) -> bayespc::Result<Control> {
        self.0.push(learner.mean_network()?.weights);
        Ok(Control::Continue)
    }
}

#[test]
fn early_stopping_keeps_the_best_learner_seen() {
    // Few samples and many weights: the residuals vanish, and with them the noise the network believes in.
    let (x, y) = sine(40, 6);
    let shape = NetworkSettings { hidden_layer_sizes: vec![100], ..NetworkSettings::default() };
    let settings =
        BackpropSettings { optimiser: Optimiser::Adam { rate: 0.02 }, ..BackpropSettings::default() };
    let mut learner = Backprop::<f64>::new(&shape, &settings, 1, 1, &mut init_rng(0)).unwrap();
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let training = TrainingSettings {
        epochs: 400,
        batch_size: Some(8),
        validation_fraction: 0.3,
        patience: Some(10),
        validate_every: 2,
        ..TrainingSettings::default()
    };
    let mut seen = Weights::default();
    let report = fit(&mut learner, &data, &training, &mut seen).unwrap();
    let best =
        report.validation.iter().copied().fold((0, f64::NEG_INFINITY), |a, b| if b.1 > a.1 { b } else { a });
    assert_eq!(report.end, End::Patience);
    assert_eq!(report.best_epoch, best.0);
    assert_eq!(report.epochs, best.0 + 20, "ten validations, two epochs apart");
    let kept = learner.mean_network().unwrap().weights;
    assert!(kept == seen.0[report.best_epoch - 1], "the weights of the best epoch");
    assert!(kept != seen.0[report.epochs - 1], "not those of the last one");
}

/// Under N(logits, I) the density of a code is largest where the logits equal it; their likelihood has no such bound.
#[test]
fn early_stopping_lets_logits_grow_while_the_likelihood_of_the_classes_does() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let labels: Vec<usize> = (0..240).map(|j| j % 3).collect();
    let centres = [[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]];
    let x = Mat::from_fn(2, 240, |i, j| {
        centres[labels[j]][i] + 0.3 * Distribution::<f64>::sample(&StandardNormal, &mut rng)
    });
    let y = one_hot::<f64>(&labels, 3).unwrap();
    let mut settings = NetworkSettings {
        hidden_layer_sizes: vec![16],
        head: HeadSettings::Categorical(Categorical {}),
        ..NetworkSettings::default()
    };
    settings.prior.var = 0.1;
    let network = Network::<f64>::new(&settings, 2, 3, &mut init_rng(0)).unwrap();
    // A small and constant rate: the logits grow a little in every epoch.
    let rule = FeedbackSettings { schedule: Schedule::Constant { rate: 0.1 }, ..FeedbackSettings::default() };
    let mut learner = Bpc::new(network, Rule::Feedback(rule)).unwrap();
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let training = TrainingSettings {
        epochs: 12,
        validation_fraction: 0.25,
        patience: Some(2),
        validate_every: 1,
        ..TrainingSettings::default()
    };
    let report = fit(&mut learner, &data, &training, &mut Silent).unwrap();
    assert_eq!((report.end, report.best_epoch), (End::Epochs, 12), "{report:?}");
    let scores: Vec<f64> = report.validation.iter().map(|(_, score)| *score).collect();
    assert!(scores.is_sorted() && scores[11] > -0.05, "{scores:?}");
    // The density of the codes would have stopped training at once: it has fallen all the while.
    let predictive = learner.predict(x.as_ref(), Method::Linearised).unwrap();
    let density = metrics::log_predictive_density(&predictive, y.as_ref()).unwrap();
    assert!(density < -5.0, "{density}");
    let probabilities = predictive.class_probabilities(1.0).unwrap();
    let loss = metrics::negative_log_likelihood(probabilities.as_ref(), &labels).unwrap();
    assert!(loss < 0.05, "{loss}");
}

struct StopAfter(usize);

impl Observer<f64> for StopAfter {
    fn epoch(&mut self, report: &EpochReport, _learner: &dyn Learner<f64>) -> bayespc::Result<Control> {
        Ok(if report.epoch >= self.0 { Control::Stop } else { Control::Continue })
    }
}

#[test]
fn an_observer_can_stop_training_and_the_learner_is_usable() {
    let (x, y) = sine(100, 7);
    let network = Network::<f64>::new(&NetworkSettings::default(), 1, 1, &mut init_rng(0)).unwrap();
    let mut learner = Bpc::new(network, Rule::default()).unwrap();
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let report = fit(&mut learner, &data, &TrainingSettings::default(), &mut StopAfter(3)).unwrap();
    assert_eq!((report.epochs, report.end), (3, End::Stopped));
    let predictive = learner.predict(x.as_ref(), Method::Linearised).unwrap();
    assert!(predictive.variance()[(0, 0)].is_finite());
}

#[test]
fn one_pass_over_a_stream_learns_a_sine_and_covers_it() {
    let (x, y) = sine(2000, 8);
    let (x_test, y_test) = sine(400, 9);
    let settings = ModelSettings::fast();
    let part = |k: usize| (x.subcols(k * 100, 100), y.subcols(k * 100, 100));
    let mut model = Model::for_stream(&Samples::new(part(0).0, part(0).1).unwrap(), &settings).unwrap();
    for k in 0..20 {
        model.partial_fit(&Samples::new(part(k).0, part(k).1).unwrap()).unwrap();
    }
    assert_eq!(model.n_seen(), 2000.0);
    let predictive = model.predict(x_test.as_ref()).unwrap();
    let rmse = metrics::rmse(predictive.mean().as_ref(), y_test.as_ref()).unwrap();
    assert!(rmse < 0.3, "RMSE {rmse} after one pass; the target's deviation is 0.7");
    let coverage = metrics::interval_coverage(&predictive, y_test.as_ref(), 0.9).unwrap();
    assert!((0.75..=1.0).contains(&coverage), "coverage {coverage}");
}

#[test]
fn variance_node_finds_noise_that_grows_with_the_input_for_two_targets() {
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    let n = 1500;
    let x = Mat::from_fn(1, n, |_, _| 2.0 * rng.random::<f64>() - 1.0);
    let std = |target: usize, x: f64| if target == 0 { 0.1 * (1.0 + x).max(0.05) } else { 0.2 };
    let y = Mat::from_fn(2, n, |i, j| {
        let draw: f64 = StandardNormal.sample(&mut rng);
        x[(0, j)] * (1.0 + i as f64) + std(i, x[(0, j)]) * draw
    });
    let mut settings = ModelSettings::fast();
    settings.network.head = HeadSettings::VarianceNode(VarianceNode::default());
    settings.training.epochs = 60;
    let model = Model::fit(&Samples::new(x.as_ref(), y.as_ref()).unwrap(), &settings).unwrap();
    let places = Mat::from_fn(1, 2, |_, j| [-0.5, 0.8][j]);
    let variance = model.predict(places.as_ref()).unwrap().aleatoric_variance();
    for (j, x) in [-0.5, 0.8].into_iter().enumerate() {
        for i in 0..2 {
            let ratio = variance[(i, j)].sqrt() / std(i, x);
            assert!((0.6..1.6).contains(&ratio), "target {i} at {x}: ratio {ratio}");
        }
    }
}

#[test]
fn an_ensemble_is_the_mixture_of_its_members() {
    let (x, y) = sine(100, 11);
    let settings = ModelSettings {
        members: 3,
        training: TrainingSettings { epochs: 5, ..TrainingSettings::default() },
        ..ModelSettings::fast()
    };
    let fit = |settings: &ModelSettings| {
        Model::fit(&Samples::new(x.as_ref(), y.as_ref()).unwrap(), settings).unwrap()
    };
    let ensemble = fit(&settings);
    assert_eq!(ensemble.members().len(), 3);
    let single = fit(&ModelSettings { members: 1, ..settings });
    let mixture = ensemble.predict(x.as_ref()).unwrap();
    assert_eq!(mixture.components().len(), 3);
    assert_eq!(mixture.components()[0].mean, single.predict(x.as_ref()).unwrap().components()[0].mean);
    assert_ne!(mixture.components()[0].mean, mixture.components()[1].mean);
}
