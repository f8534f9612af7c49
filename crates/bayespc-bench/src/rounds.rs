//! Learning in rounds beside the local fit of the same settings: how good both are on rows neither has seen.
//!
//! Rounds are made in this process, in parts of 10,000 rows, as any number of processes would make them.

use std::time::Instant;

use anyhow::{Context, Result};
use bayespc::data::Inputs;
use bayespc::metrics;
use bayespc::model::rounds::{RoundSettings, Rounds};
use bayespc::{Model, ModelSettings, Samples, Targets};
use bayespc_cli::input::data_source;
use bayespc_cli::progress::bar;
use bayespc_data::{DataSource, ImageSet, load_images, load_uci};
use faer::{Mat, MatRef};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::{BenchArgs, Outcome, table};

/// Rows of a part.
const PART: usize = 10_000;
/// Rows of the made-up table to learn from; a tenth more are tested on.
const ROWS: usize = 50_000;
const DIGITS: usize = 10;

/// Rows to learn from, rows to test on, and what to learn with.
struct Case {
    name: &'static str,
    settings: ModelSettings,
    train: Rows,
    test: Rows,
}

struct Rows {
    inputs: Mat<f64>,
    targets: Mat<f64>,
    /// Instead of targets.
    labels: Vec<usize>,
}

/// Seconds, and two scores: RMSE and log density, or accuracy and log probability.
struct Score {
    seconds: f64,
    error: f64,
    density: f64,
}

/// Run the benchmark.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    let source = DataSource { download: false, ..data_source(args.folder.as_deref()) };
    let mut cases: Vec<Case> = power(&source).into_iter().collect();
    cases.push(made_up(args.rows.unwrap_or(ROWS)));
    cases.extend(images(&source));
    let usual = RoundSettings::default();
    let rounds = RoundSettings {
        rounds: args.rounds.unwrap_or(usual.rounds),
        batch_rows: args.batch_rows.unwrap_or(usual.batch_rows),
        ..usual
    };
    let bar = bar("rounds", (cases.len() as u64) * (rounds.rounds + 4));
    let mut runs: Vec<Value> = Vec::new();
    let mut lines = Vec::new();
    for case in &mut cases {
        case.settings.training.epochs = args.epochs.unwrap_or(case.settings.training.epochs);
        let local = case.local()?;
        let in_rounds = case.in_rounds(&rounds, &|| bar.inc(1))?;
        for (how, score) in [("local", local), ("rounds", in_rounds)] {
            let classes = !case.test.labels.is_empty();
            let (first, second) =
                if classes { ("accuracy", "log_probability") } else { ("rmse", "log_density") };
            runs.push(json!({
                "data": case.name, "how": how, "rows": case.train.inputs.ncols(), "seconds": score.seconds,
                first: score.error, second: score.density,
            }));
            lines.push(vec![
                format!("{} {how}", case.name),
                case.train.inputs.ncols().to_string(),
                format!("{:.1}", score.seconds),
                format!("{:.4}", score.error),
                format!("{:.4}", score.density),
            ]);
        }
    }
    bar.finish_and_clear();
    let heading = ["data", "rows", "seconds", "rmse or accuracy", "log density"];
    let text = format!(
        "rounds: {} rounds of {} rows beside a local fit of the same network, scores of rows neither has seen\n\n{}",
        rounds.rounds,
        rounds.batch_rows,
        table(&heading, &lines)
    );
    Ok(Outcome { json: json!({ "rounds": rounds, "runs": runs }), text })
}

impl Case {
    fn local(&self) -> Result<Score> {
        let start = Instant::now();
        let model = Model::fit(&self.train.samples(0, self.train.inputs.ncols())?, &self.settings)?;
        self.score(&model, start)
    }

    fn in_rounds(&self, rounds: &RoundSettings, tick: &dyn Fn()) -> Result<Score> {
        let start = Instant::now();
        let n = self.train.inputs.ncols();
        let task = self.train.samples(0, n)?.task();
        // Rounds have a rule and batches of their own.
        let ModelSettings { rule, training, .. } = ModelSettings::fast();
        let settings = ModelSettings { rule, training, ..self.settings.clone() };
        let mut making = Rounds::begin(&settings, rounds, task)?;
        while making.next_pass().is_some() {
            let parts = (0..n)
                .step_by(PART)
                .map(|first| {
                    let samples = self.train.samples(first, PART.min(n - first))?;
                    Ok(making.statistics(Some(&samples), first as u64)?)
                })
                .collect::<Result<Vec<_>>>()?;
            making = making.absorb(parts)?;
            tick();
        }
        self.score(&making.into_model()?, start)
    }

    fn score(&self, model: &Model, start: Instant) -> Result<Score> {
        let seconds = start.elapsed().as_secs_f64();
        let inputs: Inputs<'_> = (&self.test.inputs).into();
        if self.test.labels.is_empty() {
            let predictive = model.predict(inputs)?;
            let error = metrics::rmse(predictive.mean().as_ref(), self.test.targets.as_ref())?;
            let density = metrics::log_predictive_density(&predictive, self.test.targets.as_ref())?;
            return Ok(Score { seconds, error, density });
        }
        let probabilities = model.predict_probabilities(inputs)?;
        let error = metrics::accuracy(probabilities.as_ref(), &self.test.labels)?;
        let density = -metrics::negative_log_likelihood(probabilities.as_ref(), &self.test.labels)?;
        Ok(Score { seconds, error, density })
    }
}

impl Rows {
    fn samples(&self, first: usize, n: usize) -> Result<Samples<'_>> {
        let inputs: MatRef<'_, f64> = self.inputs.subcols(first, n);
        let targets = if self.labels.is_empty() {
            Targets::Values(self.targets.subcols(first, n))
        } else {
            Targets::Classes { labels: &self.labels[first..first + n], classes: DIGITS }
        };
        Samples::new(inputs, targets).context("the data cannot be learned from")
    }
}

/// A tenth of the rows to test on, the others to learn from.
fn split(name: &'static str, inputs: &Mat<f64>, targets: &Mat<f64>) -> Case {
    let mut order: Vec<usize> = (0..inputs.ncols()).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
    let pick = |values: &Mat<f64>, rows: &[usize]| {
        Mat::from_fn(values.nrows(), rows.len(), |i, j| values[(i, rows[j])])
    };
    let rows = |rows: &[usize]| Rows {
        inputs: pick(inputs, rows),
        targets: pick(targets, rows),
        labels: Vec::new(),
    };
    let (test, train) = order.split_at(order.len() / 11);
    Case { name, settings: ModelSettings::fast(), train: rows(train), test: rows(test) }
}

fn power(source: &DataSource) -> Option<Case> {
    let data = load_uci("power", source, &mut |_, _| {}).ok()?;
    Some(split("power", &data.features, &data.targets))
}

/// Products, squares and kinks of ten columns, with noise that depends on one of them.
fn made_up(rows: usize) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let inputs = Mat::from_fn(10, rows + rows / 10, |_, _| rng.random_range(-1.7..1.7_f64));
    let targets = Mat::from_fn(1, inputs.ncols(), |_, j| {
        let x = |i: usize| inputs[(i, j)];
        let noise = 0.2 * rng.random_range(-1.7..1.7_f64) * (1.0 + x(6).abs());
        (2.0 * x(0) * x(1)).sin() + 0.5 * x(2) * x(2) * x(3) + 0.5 * (x(4) + x(5)).abs() + noise
    });
    split("made up", &inputs, &targets)
}

fn images(source: &DataSource) -> Option<Case> {
    let data = load_images(ImageSet::Mnist, source, &mut |_, _| {}).ok()?;
    let rows = |images: &Mat<f32>, labels: &[u8]| Rows {
        inputs: Mat::from_fn(images.nrows(), images.ncols(), |i, j| f64::from(images[(i, j)])),
        targets: Mat::zeros(0, 0),
        labels: labels.iter().map(|&label| usize::from(label)).collect(),
    };
    Some(Case {
        name: "mnist",
        settings: ModelSettings::images(),
        train: rows(&data.train_images, &data.train_labels),
        test: rows(&data.test_images, &data.test_labels),
    })
}
