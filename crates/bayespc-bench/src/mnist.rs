//! An epoch of MNIST: the network 784-128-128-128-10, ReLU, batches of 128, single precision, pixels scaled as
//! in Figure 1.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use bayespc::base::linalg::cast;
use bayespc::data::{Dataset, one_hot};
use bayespc::inference::RelaxationSettings;
use bayespc::learners::{
    BackpropSettings, BpcSettings, Learner, LearnerSettings, PredictiveCodingSettings, Rule,
};
use bayespc::learning::Schedule;
use bayespc::metrics;
use bayespc::model::ModelSettings;
use bayespc::network::{NetworkSettings, PriorSettings};
use bayespc::training::{self, Control, EpochReport, Observer, TrainingSettings};
use bayespc_cli::failure::usage;
use bayespc_cli::input::data_source;
use bayespc_cli::progress::{bar, downloading};
use bayespc_data::{ImageSet, load_images};
use bayespc_experiments::task::{Source, Task};
use faer::{Mat, MatRef};
use indicatif::ProgressBar;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arithmetic::{Shape, Work};
use crate::machine::{peak_gflops, peak_rss_mb, pool};
use crate::{BenchArgs, BenchLearner, BenchRule, Outcome, median, table};

const HIDDEN: [usize; 3] = [128, 128, 128];
const BATCH: usize = 128;
const PIXELS: usize = 784;
const DIGITS: usize = 10;
/// κ of relaxation, from the first batch to the last.
const SCHEDULE: Schedule = Schedule::Cosine { first: 0.1, last: 0.002 };

/// One learner with one number of threads.
struct Contestant {
    name: &'static str,
    settings: LearnerSettings,
    work: Work,
    threads: usize,
    peak_gflops: f64,
    /// Seconds of every epoch of every repeat.
    seconds: Vec<f64>,
    /// Seconds before the first batch (whitening), per repeat.
    seconds_begin: Vec<f64>,
    /// Seconds of settling after the last epoch, per repeat.
    seconds_finish: Vec<f64>,
    /// Test accuracy after every epoch; the same in every repeat.
    accuracy: Vec<f64>,
}

/// Times of other programs, by name.
#[derive(Debug, Deserialize)]
struct Peers {
    peers: BTreeMap<String, Peer>,
}

#[derive(Debug, Deserialize)]
struct Peer {
    seconds_per_epoch: f64,
}

/// Run the benchmark.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    let peers = args.peers.as_deref().map(read_peers).transpose()?;
    let task = load(args)?;
    let n_train = task.train.0.ncols();
    if n_train < BATCH {
        return Err(usage(format!("--rows {n_train}: give at least one batch of {BATCH}")));
    }
    let epochs = args.epochs.unwrap_or(2);
    let repeats = args.repeats.unwrap_or(1);
    let mut contestants = contestants(args);
    let batches = n_train / BATCH;
    let bar = bar("mnist", (contestants.len() * repeats * epochs * batches) as u64);
    for _ in 0..repeats {
        for contestant in &mut contestants {
            contestant.compete(&task, epochs, &bar)?;
        }
    }
    bar.finish_and_clear();
    let shape = Shape { widths: [&[PIXELS], &HIDDEN[..], &[DIGITS]].concat(), batch: BATCH };
    Ok(report(args, &contestants, &shape, batches, peers.as_ref()))
}

fn read_peers(path: &Path) -> Result<Peers> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not what scripts/peers.py writes", path.display()))
}

fn load(args: &BenchArgs) -> Result<Task<f32>> {
    if args.synthetic {
        return synthetic(args.rows.unwrap_or(60_000));
    }
    let source = data_source(args.folder.as_deref());
    let images = downloading("mnist", |progress| load_images(ImageSet::Mnist, &source, progress))?;
    Ok(Source::Images(ImageSet::Mnist, Box::new(images)).task::<f32>(0, 0, [args.rows, None], false)?)
}

/// Noise around one pattern per digit.
fn synthetic(rows: usize) -> Result<Task<f32>> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let patterns = Mat::from_fn(PIXELS, DIGITS, |_, _| rng.random_range(-1.0..1.0_f32));
    let mut part = |n: usize| -> Result<(Mat<f32>, Mat<f32>, Vec<usize>)> {
        let labels: Vec<usize> = (0..n).map(|j| j % DIGITS).collect();
        let images =
            Mat::from_fn(PIXELS, n, |i, j| patterns[(i, labels[j])] + rng.random_range(-1.0..1.0_f32));
        let codes = one_hot(&labels, DIGITS)?;
        Ok((images, codes, labels))
    };
    let (train, codes, _) = part(rows)?;
    let (test, test_codes, labels) = part(rows.min(10_000))?;
    Ok(Task {
        train: (train, codes),
        test: (test, test_codes),
        labels: Some(labels),
        target_offset: 0.0,
        target_scale: 1.0,
    })
}

fn contestants(args: &BenchArgs) -> Vec<Contestant> {
    let bpc = |rule, var| {
        LearnerSettings::Bpc(BpcSettings {
            rule,
            prior: PriorSettings { var, ..PriorSettings::default() },
            ..BpcSettings::default()
        })
    };
    let mut learners = Vec::new();
    for learner in &args.learner {
        match learner {
            BenchLearner::Backprop => {
                let settings = LearnerSettings::Backprop(BackpropSettings::default());
                learners.push(("backprop", settings, Work::Backprop));
            }
            BenchLearner::Pc => {
                let settings = PredictiveCodingSettings::default();
                let work = Work::PredictiveCoding { steps: settings.inference_steps };
                learners.push(("pc", LearnerSettings::PredictiveCoding(settings), work));
            }
            BenchLearner::Bpc => learners.extend(args.rule.iter().map(|rule| match rule {
                BenchRule::Feedback | BenchRule::FeedbackRunning => {
                    let (refresh_every, whiten_input) = (args.refresh_every, *rule == BenchRule::Feedback);
                    let ModelSettings { network, mut rule, .. } = ModelSettings::images();
                    if let Rule::Feedback(rule) = &mut rule {
                        (rule.refresh_every, rule.whiten_input) = (refresh_every, whiten_input);
                    }
                    let name = if whiten_input { "bpc feedback" } else { "bpc feedback, running" };
                    let work = Work::Feedback { refresh_every, whiten_input };
                    (name, bpc(rule, network.prior.var), work)
                }
                BenchRule::Relaxation => {
                    let (refresh_every, whiten_input) = (args.refresh_every, true);
                    let rule = RelaxationSettings {
                        schedule: SCHEDULE,
                        refresh_every,
                        whiten_input,
                        ..RelaxationSettings::tied()
                    };
                    let work = Work::Relaxation { steps: rule.steps, refresh_every, whiten_input };
                    ("bpc relaxation", bpc(Rule::Relaxation(rule), 0.01), work)
                }
            })),
        }
    }
    // Numbers of threads go round fastest: their ratio is what a disturbance would spoil first.
    learners
        .into_iter()
        .flat_map(|(name, settings, work)| {
            args.threads.iter().map(move |&threads| Contestant {
                name,
                settings: settings.clone(),
                work,
                threads,
                peak_gflops: 0.0,
                seconds: Vec::new(),
                seconds_begin: Vec::new(),
                seconds_finish: Vec::new(),
                accuracy: Vec::new(),
            })
        })
        .collect()
}

impl Contestant {
    /// Train once, on threads of its own, right after measuring what these threads can do.
    fn compete(&mut self, task: &Task<f32>, epochs: usize, bar: &ProgressBar) -> Result<()> {
        let pool = pool(self.threads)?;
        self.peak_gflops = self.peak_gflops.max(peak_gflops(&pool));
        let network = NetworkSettings { hidden_layer_sizes: HIDDEN.to_vec(), ..NetworkSettings::default() };
        let mut learner = self.settings.start::<f32>(&network, PIXELS, DIGITS, &mut training::init_rng(0))?;
        let training = TrainingSettings { epochs, batch_size: Some(BATCH), ..TrainingSettings::default() };
        let data = Dataset::new(task.train.0.as_ref(), task.train.1.as_ref())?;
        let mut clock = Clock {
            test: task.test.0.as_ref(),
            labels: task.labels.as_deref().unwrap_or_default(),
            bar,
            start: Instant::now(),
            seconds_begin: 0.0,
            seconds: Vec::new(),
            accuracy: Vec::new(),
        };
        pool.install(|| {
            clock.start = Instant::now();
            training::fit(learner.as_mut(), &data, &training, &mut clock)
        })?;
        self.seconds_finish.push(clock.start.elapsed().as_secs_f64());
        self.seconds_begin.push(clock.seconds_begin);
        self.seconds.extend(clock.seconds);
        self.accuracy = clock.accuracy;
        Ok(())
    }

    fn seconds_per_epoch(&self) -> f64 {
        median(&self.seconds)
    }

    fn achieved_gflops(&self, shape: &Shape, batches: usize) -> f64 {
        1e-9 * shape.operations(self.work) * batches as f64 / self.seconds_per_epoch()
    }

    fn to_json(&self, shape: &Shape, batches: usize) -> Value {
        let refresh_every = match self.work {
            Work::Feedback { refresh_every, .. } => Some(refresh_every),
            _ => None,
        };
        let achieved = self.achieved_gflops(shape, batches);
        json!({
            "learner": self.name,
            "threads": self.threads,
            "refresh_every": refresh_every,
            "seconds_per_epoch": self.seconds_per_epoch(),
            "seconds_of_each_epoch": self.seconds,
            "seconds_begin": median(&self.seconds_begin),
            "seconds_finish": median(&self.seconds_finish),
            "test_accuracy_per_epoch": self.accuracy,
            "operations_per_epoch": shape.operations(self.work) * batches as f64,
            "peak_gflops": self.peak_gflops,
            "achieved_gflops": achieved,
            "share_of_peak": achieved / self.peak_gflops,
        })
    }
}

/// Times epochs; the clock stands still while the test set is predicted.
struct Clock<'a> {
    test: MatRef<'a, f32>,
    labels: &'a [usize],
    bar: &'a ProgressBar,
    start: Instant,
    seconds_begin: f64,
    seconds: Vec<f64>,
    accuracy: Vec<f64>,
}

impl Observer<f32> for Clock<'_> {
    fn begin(&mut self) {
        self.seconds_begin = self.start.elapsed().as_secs_f64();
        self.start = Instant::now();
    }

    fn step(&mut self, _done: u64, _planned: u64) -> Control {
        self.bar.inc(1);
        Control::Continue
    }

    fn epoch(&mut self, _report: &EpochReport, learner: &dyn Learner<f32>) -> bayespc::Result<Control> {
        self.seconds.push(self.start.elapsed().as_secs_f64());
        let output: Mat<f64> = cast(learner.mean_network()?.forward(self.test)?.as_ref());
        self.accuracy.push(metrics::accuracy(output.as_ref(), self.labels)?);
        self.start = Instant::now();
        Ok(Control::Continue)
    }
}

/// The first learner with the most threads is the headline; every run follows.
fn report(
    args: &BenchArgs,
    contestants: &[Contestant],
    shape: &Shape,
    batches: usize,
    peers: Option<&Peers>,
) -> Outcome {
    let first = contestants.first().map_or("", |contestant| contestant.name);
    let headline = contestants.iter().filter(|c| c.name == first).max_by_key(|c| c.threads);
    let mut json = headline.map_or_else(|| json!({}), |c| c.to_json(shape, batches));
    let memory = peak_rss_mb();
    json["peak_rss_mb"] = json!(memory);
    json["network"] = json!(shape.widths);
    json["batch_size"] = json!(shape.batch);
    json["runs"] = contestants.iter().map(|c| c.to_json(shape, batches)).collect();

    let heading = ["learner", "threads", "s per epoch", "accuracy", "GFLOP/s", "peak", "share"];
    let rows: Vec<Vec<String>> = contestants
        .iter()
        .map(|c| {
            let achieved = c.achieved_gflops(shape, batches);
            vec![
                c.name.to_owned(),
                c.threads.to_string(),
                format!("{:.3}", c.seconds_per_epoch()),
                format!("{:.4}", c.accuracy.last().copied().unwrap_or(f64::NAN)),
                format!("{achieved:.1}"),
                format!("{:.1}", c.peak_gflops),
                format!("{:.0} %", 100.0 * achieved / c.peak_gflops),
            ]
        })
        .collect();
    let epochs = args.epochs.unwrap_or(2);
    let mut text = format!(
        "mnist: {} images, batches of {BATCH}, f32; accuracy after {epochs} epochs, factors refreshed every \
         {} batches\n\n{}",
        batches * BATCH,
        args.refresh_every,
        table(&heading, &rows)
    );
    if let Some(memory) = memory {
        text.push_str(&format!("\n\npeak memory {memory:.0} MB, data included"));
    }
    if let Some(Peers { peers }) = peers {
        let (rows, ratios) = ratios(contestants, peers);
        json["ratios"] = ratios;
        text.push_str(&format!(
            "\n\n{}",
            table(&["seconds per epoch, ours / theirs", "ours", "theirs", "ratio"], &rows)
        ));
    }
    Outcome { json, text }
}

/// Every learner, at its fastest number of threads, against every other program.
fn ratios(contestants: &[Contestant], peers: &BTreeMap<String, Peer>) -> (Vec<Vec<String>>, Value) {
    let (mut rows, mut values) = (Vec::new(), serde_json::Map::new());
    let mut fastest: Vec<&Contestant> = Vec::new();
    for contestant in contestants {
        match fastest.iter_mut().find(|c| c.name == contestant.name) {
            Some(best) if contestant.seconds_per_epoch() < best.seconds_per_epoch() => *best = contestant,
            Some(_) => {}
            None => fastest.push(contestant),
        }
    }
    for contestant in fastest {
        let ours = contestant.seconds_per_epoch();
        let mut against = serde_json::Map::new();
        for (name, peer) in peers {
            let theirs = peer.seconds_per_epoch;
            rows.push(vec![
                format!("{} / {name}", contestant.name),
                format!("{ours:.3}"),
                format!("{theirs:.3}"),
                format!("{:.2}", ours / theirs),
            ]);
            against.insert(name.clone(), json!(ours / theirs));
        }
        values.insert(contestant.name.to_owned(), against.into());
    }
    (rows, values.into())
}
