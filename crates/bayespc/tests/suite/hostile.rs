//! Drawn tables that nobody would want to learn from, through fit, stream, calibration, prediction and file: every number
//! is finite or the error has a type, and what is predicted obeys the laws of distributions.
//!
//! `BAYESPC_HOSTILE=N` tries the seeds up to N instead of the first few; `make soak` does.

use bayespc::heads::{Categorical, HeadSettings, VarianceNode};
use bayespc::model::Calibration;
use bayespc::prediction::{CLASS_DRAWS, Predictive};
use bayespc::{Model, ModelSettings, Samples, Targets};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// Seeds of every day.
const USUAL: u64 = 24;

fn n_seeds() -> u64 {
    std::env::var("BAYESPC_HOSTILE").ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL)
}

/// One hostile column.
fn column(rng: &mut ChaCha8Rng, n: usize, earlier: Option<&Vec<f64>>) -> Vec<f64> {
    let scale = 10_f64.powf(rng.random_range(-300.0..300.0));
    let kind = rng.random_range(0..10);
    let mut normal = || -> f64 { StandardNormal.sample(rng) };
    match kind {
        0 => (0..n).map(|_| scale * normal()).collect(),
        // Denormals.
        1 => (0..n).map(|_| 1e-310 * normal()).collect(),
        2 => vec![scale; n],
        // Two values that no deviation tells apart.
        3 => (0..n).map(|j| 1.0 + f64::EPSILON * f64::from(u8::from(j % 2 == 0))).collect(),
        4 => (0..n).map(|_| normal().tan().clamp(-1e12, 1e12)).collect(),
        5 => (0..n).map(|j| if j == 0 { 1e300 } else { normal() }).collect(),
        6 => (0..n).map(|_| 1e15 + normal()).collect(),
        7 if earlier.is_some() => earlier.map(|values| values.iter().map(|v| -0.5 * v).collect()).unwrap(),
        8 => (0..n).map(|j| f64::from(u8::from(j == n / 2))).collect(),
        _ => (0..n).map(|_| normal()).collect(),
    }
}

struct Hostile {
    x: Mat<f64>,
    y: Mat<f64>,
    labels: Vec<usize>,
    weights: Option<Vec<f64>>,
    settings: ModelSettings,
}

fn draw(seed: u64) -> Hostile {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n = [1, 2, 3, 7, 40, 90][rng.random_range(0..6)];
    let d = [1, 2, 5, 12, 300][rng.random_range(0..5)];
    let mut columns: Vec<Vec<f64>> = Vec::new();
    for _ in 0..d {
        let next = column(&mut rng, n, columns.last());
        columns.push(next);
    }
    let x = Mat::from_fn(d, n, |i, j| columns[i][j]);
    // Every other target is one that can be learned: what hostile columns do to it is to be seen.
    let target = if rng.random() {
        (0..n).map(|_| StandardNormal.sample(&mut rng)).collect()
    } else {
        column(&mut rng, n, columns.first())
    };
    let y = Mat::from_fn(1, n, |_, j| target[j]);
    let labels = (0..n).map(|_| rng.random_range(0..3)).collect();
    let weight = |rng: &mut ChaCha8Rng| [0.0, 1.0, 1e-6, 1e12][rng.random_range(0..4)];
    let weights = (rng.random_range(0..3) == 0).then(|| (0..n).map(|_| weight(&mut rng)).collect());
    let mut settings = ModelSettings { members: rng.random_range(1..3), ..ModelSettings::fast() };
    settings.network.hidden_layer_sizes = [&[][..], &[4], &[5, 3]][rng.random_range(0..3)].to_vec();
    settings.training.epochs = 3;
    settings.bins = [0, 0, 4][rng.random_range(0..3)];
    if rng.random() {
        settings.network.head = HeadSettings::VarianceNode(VarianceNode::default());
    }
    let kinds = [Calibration::None, Calibration::Holdout, Calibration::Conformal];
    // Few samples are refused if some are to be held out.
    settings.calibration = if n < 40 { Calibration::None } else { kinds[rng.random_range(0..3)] };
    Hostile { x, y, labels, weights, settings }
}

/// The model of an attempt; none if it was refused. An error has said why, which is all right.
fn attempt<T>(result: bayespc::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn is_finite(matrix: &Mat<f64>) -> bool {
    matrix.col_iter().all(|column| column.iter().all(|value| value.is_finite()))
}

/// The laws of one predictive, at every sample that is given.
fn check_laws(predictive: &Predictive, seed: u64) {
    let (mean, total) = (predictive.mean(), predictive.variance());
    let (aleatoric, epistemic) = (predictive.aleatoric_variance(), predictive.epistemic_variance());
    for part in [&mean, &total, &aleatoric, &epistemic] {
        assert!(is_finite(part), "seed {seed}: {part:?}");
    }
    let levels = [0.01, 0.1, 0.35, 0.5, 0.8, 0.99];
    let quantiles = predictive.quantile(&levels).unwrap();
    for j in 0..mean.ncols().min(3) {
        let (a, e, t) = (aleatoric[(0, j)], epistemic[(0, j)], total[(0, j)]);
        assert!(a >= 0.0 && e >= 0.0 && (a + e - t).abs() <= 1e-9 * t, "seed {seed}: {a} + {e} ≠ {t}");
        let at: Vec<f64> = quantiles.iter().map(|q| q[(0, j)]).collect();
        assert!(at.windows(2).all(|pair| pair[0] <= pair[1]), "seed {seed}: {at:?}");
        for (level, &y) in levels.iter().zip(&at) {
            let below = predictive.marginal_cdf(0, j, y);
            // What two units in the last place of y are worth, where that is more than rounding: one by which y may be off,
            // and one by which what it is compared with may be. A target of 1e15 with noise of 1e-6 lies between two numbers.
            let step = predictive.marginal_cdf(0, j, y.next_up().next_up())
                - predictive.marginal_cdf(0, j, y.next_down().next_down());
            assert!(
                (below - level).abs() < 1e-6 + step.abs(),
                "seed {seed}: cdf of quantile {level} is {below}"
            );
        }
    }
}

/// CRPS = ∫ (F(y) − 1{y ≥ t})² dy, by the trapezoidal rule; and the density is the slope of F, which rises from 0 to 1, so that it
/// integrates to one. Networks may differ by a thousand in how sure they are, and be far apart: points lie evenly and, besides,
/// evenly in probability, and slopes are taken over as much of y as has a certain probability.
fn check_integrals(model: &Model, x: &Mat<f64>, seed: u64) {
    let row = x.subcols(0, 1).to_owned();
    let predictive = model.predict(&row).unwrap();
    let (mean, std) = (predictive.mean()[(0, 0)], predictive.std()[(0, 0)]);
    let quantiles = |n: u32| {
        let levels: Vec<f64> = (0..n).map(|k| (f64::from(k) + 0.37) / f64::from(n)).collect();
        predictive.quantile(&levels).unwrap().iter().map(|at| at[(0, 0)]).collect::<Vec<f64>>()
    };
    let below = |y: f64| predictive.marginal_cdf(0, 0, y);
    let many = quantiles(4000);
    // Not where all of it lies between neighbouring numbers.
    if !(std > 0.0 && many[3999] - many[0] > 1e-9 * mean.abs()) {
        return;
    }
    let target = mean + 0.7 * std;
    let evenly = (0..=4000).map(|k| mean + std * (0.03 * f64::from(k) - 60.0));
    let mut points: Vec<f64> = evenly.chain(many).chain([target, target.next_down()]).collect();
    points.sort_by(f64::total_cmp);
    let square = |y: f64| (below(y) - if y >= target { 1.0 } else { 0.0 }).powi(2);
    let squares: Vec<f64> = points.iter().map(|&y| square(y)).collect();
    let pieces = points.windows(2).zip(squares.windows(2));
    let integral: f64 = pieces.map(|(at, value)| 0.5 * (at[1] - at[0]) * (value[0] + value[1])).sum();
    let crps = predictive.crps(Mat::from_fn(1, 1, |_, _| target).as_ref()).unwrap()[(0, 0)];
    assert!((crps - integral).abs() < 2e-3 * crps, "seed {seed}: {crps} {integral}");

    let some = quantiles(40);
    let rows = Mat::from_fn(row.nrows(), some.len(), |i, _| row[(i, 0)]);
    let targets = Mat::from_fn(1, some.len(), |_, j| some[j]);
    let densities = model.predict(&rows).unwrap().log_density(targets.as_ref()).unwrap();
    for (&y, log_density) in some.iter().zip(densities) {
        let density = log_density.exp();
        let step = 1e-4 / density;
        if step > 1e-9 * y.abs() {
            let slope = (below(y + step) - below(y - step)) / (2.0 * step);
            assert!((slope / density - 1.0).abs() < 1e-2, "seed {seed}, at {y}: {slope} {density}");
        }
    }
    assert!(below(mean - 1e6 * std) < 1e-6 && below(mean + 1e6 * std) > 1.0 - 1e-6, "seed {seed}");
}

fn check_file(model: &Model, x: &Mat<f64>, seed: u64) {
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let [a, b] = [model, &again].map(|model| attempt(model.predict(x)).map(|predictive| predictive.mean()));
    assert!(a == b, "seed {seed}: a file predicts what was saved");
}

/// Fit and stream a table, and check what comes of it; tells whether it could be learned from.
fn try_values(seed: u64, hostile: &Hostile) -> bool {
    let Hostile { x, y, weights, settings, .. } = hostile;
    let Some(samples) = attempt(Samples::new(x, y)) else { return false };
    let samples = match weights {
        Some(weights) => match attempt(samples.weighted(weights)) {
            Some(samples) => samples,
            None => return false,
        },
        None => samples,
    };
    let mut learned = false;
    if let Some(model) = attempt(Model::fit(&samples, settings)) {
        check_file(&model, x, seed);
        if let Some(predictive) = attempt(model.predict(x)) {
            check_laws(&predictive, seed);
            if settings.calibration != Calibration::Conformal {
                check_integrals(&model, x, seed);
            }
            learned = true;
        }
    }
    let streaming = ModelSettings { calibration: Calibration::None, ..settings.clone() };
    if let Some(mut model) = attempt(Model::for_stream(&samples, &streaming)) {
        for _ in 0..2 {
            attempt(model.partial_fit(&samples));
        }
        if let Some(predictive) = attempt(model.predict(x)) {
            check_laws(&predictive, seed);
        }
    }
    learned
}

#[test]
fn hostile_tables_of_values_give_finite_predictions_or_typed_errors() {
    let learned = (0..n_seeds()).filter(|&seed| try_values(seed, &draw(seed))).count() as u64;
    // Most of them can be learned from: a test that refuses everything would show nothing.
    assert!(learned > n_seeds() / 2, "{learned} of {} were learned", n_seeds());
}

/// What people run: networks chosen by a search, on fewer tables, since each takes a second.
#[test]
fn the_default_is_no_less_sound_on_hostile_tables() {
    let seeds = n_seeds() / 4;
    let searched = |seed: u64| {
        let mut hostile = draw(2_000_000 + seed);
        let calibration = hostile.settings.calibration;
        hostile.settings = ModelSettings { calibration, ..ModelSettings::default() };
        try_values(2_000_000 + seed, &hostile)
    };
    let learned = (0..seeds).filter(|&seed| searched(seed)).count() as u64;
    assert!(learned > seeds / 2, "{learned} of {seeds} were learned");
}

/// Many columns and few samples, by default: what a network keeps goes by the samples, or this would take all memory.
#[test]
fn thousands_of_columns_are_learned_in_the_memory_of_a_few() {
    let d = if std::env::var_os("BAYESPC_HOSTILE").is_some() { 10_000 } else { 3000 };
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let n = 30;
    let x: Mat<f64> = Mat::from_fn(d, n, |_, _| StandardNormal.sample(&mut rng));
    let y = Mat::from_fn(1, n, |_, j| 2.0 * x[(0, j)] - x[(1, j)]);
    let model = Model::fit(&Samples::new(&x, &y).unwrap(), &ModelSettings::default()).unwrap();
    check_file(&model, &x, 3);
    check_laws(&model.predict(&x).unwrap(), 3);
    check_integrals(&model, &x, 3);
    // A whole precision of the columns alone has d² numbers.
    assert!(model.to_bytes().unwrap().len() < d * d);
}

#[test]
fn hostile_tables_of_classes_give_probabilities_or_typed_errors() {
    let mut learned = 0;
    for seed in 0..n_seeds() {
        let Hostile { x, labels, mut settings, .. } = draw(1_000_000 + seed);
        settings.calibration = Calibration::None;
        settings.network.head = if seed % 2 == 0 {
            HeadSettings::default()
        } else {
            HeadSettings::Categorical(Categorical::default())
        };
        let targets = Targets::Classes { labels: &labels, classes: 3 };
        let Some(samples) = attempt(Samples::new(&x, targets)) else { continue };
        let Some(model) = attempt(Model::fit(&samples, &settings)) else { continue };
        learned += 1;
        let p = model.predict_probabilities(&x).unwrap();
        let predictive = model.predict(&x).unwrap();
        let parts =
            predictive.class_decomposition(model.temperature(), CLASS_DRAWS.0, CLASS_DRAWS.1).unwrap();
        for j in 0..p.ncols() {
            let sum: f64 = p.col(j).iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "seed {seed}: {sum}");
            let [total, a, e] = [parts.total[j], parts.aleatoric[j], parts.epistemic[j]];
            assert!(a >= -1e-12 && e >= 0.0 && (a + e - total).abs() < 1e-9, "seed {seed}: {a} {e} {total}");
            assert!(total <= 3_f64.ln() + 1e-9, "seed {seed}: {total}");
        }
        let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert!(again.predict_probabilities(&x).unwrap() == p, "seed {seed}");
    }
    assert!(learned > n_seeds() / 4, "{learned} of {} were learned", n_seeds());
}

/// Of a Bayesian linear model V only shrinks with rows; networks come near that. Over ten draws the mean of the ratio is above 1 by
/// less than twice its standard error.
#[test]
fn more_rows_do_not_raise_the_mean_epistemic_variance() {
    let mut logs = Vec::new();
    for seed in 0..10 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let x: Mat<f64> = Mat::from_fn(3, 400, |_, _| StandardNormal.sample(&mut rng));
        let y = Mat::from_fn(1, 400, |_, j| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            x[(0, j)].sin() + 0.3 * noise
        });
        let epistemic = |rows: usize| {
            let (x_some, y_some) = (x.subcols(0, rows), y.subcols(0, rows));
            let mut settings = ModelSettings { members: 1, ..ModelSettings::fast() };
            settings.network.hidden_layer_sizes = vec![8];
            settings.training.epochs = 10;
            let model = Model::fit(&Samples::new(x_some, y_some).unwrap(), &settings).unwrap();
            let variance = model.predict(&x).unwrap().epistemic_variance();
            (0..400).map(|j| variance[(0, j)]).sum::<f64>() / 400.0
        };
        logs.push((epistemic(400) / epistemic(100)).ln());
    }
    let mean = logs.iter().sum::<f64>() / 10.0;
    let error = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 90.0).sqrt();
    assert!(mean < 2.0 * error, "{mean} ± {error}");
}
