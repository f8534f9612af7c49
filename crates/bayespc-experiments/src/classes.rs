//! Class probabilities: MNIST with one-hot codes and with logits, the two moons with the command's default, and how
//! well epistemic variance tells digits from images of something else.

use std::path::Path;

use bayespc::data::Inputs;
use bayespc::heads::HeadSettings;
use bayespc::metrics;
use bayespc::model::{Model, ModelSettings};
use bayespc::network::NetworkSettings;
use bayespc::training::TrainingSettings;
use bayespc::{Result as CoreResult, Samples, Targets};
use bayespc_data::{DataSource, ImageSet, LabelledImages, load_images, synthetic};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::error::Result;
use crate::records::{Record, RecordFile, Records, Unit, mean_sd};
use crate::report::{Block, Section};
use crate::reproduce::table;
use crate::spec::{Effort, SMOKE_ROWS};
use crate::strangers::aurocs;
use crate::task::learning;

const NAME: &str = "classes";

/// Side of an image.
const SIDE: usize = 28;

/// Images of something else.
const STRANGE: usize = 2000;

/// Points in each part of the two moons, and their noise.
const MOONS: usize = 1000;
const MOON_NOISE: f64 = 0.3;

/// Scores and how they are shown.
const SCORES: [(&str, &str); 6] = [
    ("accuracy", "accuracy"),
    ("nll", "NLL"),
    ("ece", "ECE"),
    ("brier", "Brier"),
    ("auroc_entropy", "AUROC, entropy"),
    ("auroc_epistemic", "AUROC, epistemic"),
];

/// Run what is missing into `path`, and say what came out.
pub fn run(
    effort: Effort,
    data: &DataSource,
    path: &Path,
    progress: &(dyn Fn(usize, usize, &str) + Sync),
) -> Result<Records> {
    let seeds = if effort == Effort::Full { 5 } else { 1 };
    let cases = [("two_moons", "default"), ("mnist", "one_hot"), ("mnist", "logits")];
    let mut file = RecordFile::open(path)?;
    let mut mnist: Option<LabelledImages> = None;
    let planned = cases.len() * seeds;
    for (c, (dataset, learner)) in cases.into_iter().enumerate() {
        for seed in 0..seeds {
            progress(c * seeds + seed, planned, &format!("{dataset} {learner}"));
            let unit = Unit {
                experiment: NAME.to_owned(),
                dataset: dataset.to_owned(),
                learner: learner.to_owned(),
                split: 0,
                seed: seed as u64,
            };
            if file.records().is_complete(&unit) {
                continue;
            }
            let records = if dataset == "mnist" {
                if mnist.is_none() {
                    mnist = Some(load_images(ImageSet::Mnist, data, &mut |_, _| {})?);
                }
                match &mnist {
                    Some(mnist) => digits(mnist, learner, &unit, effort),
                    None => Ok(Vec::new()),
                }
            } else {
                moons(&unit, effort)
            };
            file.append(&records.map_err(learning(NAME))?)?;
        }
    }
    Records::read(path)
}

/// The table of what was measured.
pub fn section(records: &Records) -> Section {
    let mut rows = Vec::new();
    for (dataset, learner, label) in [
        ("two_moons", "default", "two moons, noise 0.3: five networks, chosen"),
        ("mnist", "one_hot", "MNIST: one-hot codes"),
        ("mnist", "logits", "MNIST: logits"),
    ] {
        let score = |metric: &str| {
            let groups = records.group_by(|r| {
                (r.dataset == dataset && r.learner == learner && r.metric == metric).then_some(())
            });
            groups.get(&()).map_or_else(String::new, |values| format!("{:.4}", mean_sd(values)))
        };
        rows.push([label.to_owned()].into_iter().chain(SCORES.iter().map(|(m, _)| score(m))).collect());
    }
    let header: Vec<&str> = ["data"].into_iter().chain(SCORES.iter().map(|(_, shown)| *shown)).collect();
    Section {
        heading: "Class probabilities".to_owned(),
        blocks: vec![
            Block::Text(
                "MNIST: one network 784-128-128-128-10, ten epochs, temperature fitted on 5000 training images that \
                 were held out. AUROC: telling the test digits from generated images of discs, bars, gratings and noise by \
                 the entropy of the probabilities, and by the epistemic share of the predictive variance."
                    .to_owned(),
            ),
            table("Mean ± standard deviation over seeds.", &header, rows),
        ],
    }
}

fn digits(mnist: &LabelledImages, learner: &str, unit: &Unit, effort: Effort) -> CoreResult<Vec<Record>> {
    let (rows, epochs) = match effort {
        Effort::Full => (mnist.train_labels.len(), None),
        Effort::Quick => (6000, Some(2)),
        Effort::Smoke => (10 * SMOKE_ROWS, Some(1)),
    };
    let labels = |labels: &[u8]| labels.iter().map(|&l| usize::from(l)).collect::<Vec<_>>();
    let (train, test) = (labels(&mnist.train_labels[..rows]), labels(&mnist.test_labels));
    let mut settings = ModelSettings::images();
    if learner != "logits" {
        settings.network.head = HeadSettings::default();
    }
    settings.training.epochs = epochs.unwrap_or(settings.training.epochs);
    settings.training.seed = unit.seed;
    let targets = Targets::Classes { labels: &train, classes: 10 };
    let model = Model::fit(&Samples::new(mnist.train_images.subcols(0, rows), targets)?, &settings)?;
    let strange = strange_images(unit.seed);
    let known = mnist.test_images.subcols(0, STRANGE);
    let mut records = scores(&model, mnist.test_images.as_ref(), &test, unit)?;
    let both = aurocs(&model.predict(known)?, &model.predict(strange.as_ref())?, model.temperature())?;
    for (name, value) in ["auroc_entropy", "auroc_epistemic"].into_iter().zip(both) {
        records.push(unit.record(None, name, value));
    }
    Ok(records)
}

fn moons(unit: &Unit, effort: Effort) -> CoreResult<Vec<Record>> {
    let (n, epochs) = match effort {
        Effort::Smoke => (SMOKE_ROWS, 1),
        _ => (MOONS, TrainingSettings::default().epochs),
    };
    let mut rng = ChaCha8Rng::seed_from_u64(1000 + unit.seed);
    let made = |rng: &mut ChaCha8Rng| {
        synthetic::two_moons(n, MOON_NOISE, rng).expect("noise and number are positive")
    };
    let (train, test) = (made(&mut rng), made(&mut rng));
    let settings = ModelSettings {
        network: NetworkSettings { hidden_layer_sizes: vec![100], ..NetworkSettings::default() },
        training: TrainingSettings { seed: unit.seed, epochs, ..TrainingSettings::default() },
        ..ModelSettings::default()
    };
    let targets = Targets::Classes { labels: &train.labels, classes: 2 };
    let model = Model::fit(&Samples::new(&train.features, targets)?, &settings)?;
    scores(&model, test.features.as_ref(), &test.labels, unit)
}

fn scores<'a>(
    model: &Model,
    input: impl Into<Inputs<'a>>,
    labels: &[usize],
    unit: &Unit,
) -> CoreResult<Vec<Record>> {
    let probabilities = model.predict_probabilities(input)?;
    let all = metrics::classification_metrics(probabilities.as_ref(), labels)?;
    Ok([
        ("accuracy", all.accuracy),
        ("nll", all.negative_log_likelihood),
        ("ece", all.expected_calibration_error),
        ("brier", all.brier_score),
    ]
    .into_iter()
    .map(|(metric, value)| unit.record(None, metric, value))
    .collect())
}

/// Discs, bars, gratings and noise, as bright as digits are.
fn strange_images(seed: u64) -> Mat<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(77 + seed);
    let mut images = Mat::zeros(SIDE * SIDE, STRANGE);
    for j in 0..STRANGE {
        let (x, y) = (rng.random_range(6.0..22.0_f64), rng.random_range(6.0..22.0_f64));
        let (radius, angle) = (rng.random_range(3.0..8.0_f64), rng.random_range(0.0..std::f64::consts::PI));
        let period = rng.random_range(3.0..9.0_f64);
        for row in 0..SIDE {
            for column in 0..SIDE {
                let (dx, dy) = (column as f64 - x, row as f64 - y);
                let along = dx * angle.cos() + dy * angle.sin();
                let value = match j % 4 {
                    0 => f64::from(dx.hypot(dy) < radius),
                    1 => f64::from(along.abs() < 0.4 * radius),
                    2 => 0.5 + 0.5 * (2.0 * std::f64::consts::PI * along / period).sin(),
                    _ => rng.random_range(0.0..1.0),
                };
                images[(row * SIDE + column, j)] = value as f32;
            }
        }
    }
    images
}
