//! `bayespc evaluate`: train on many splits of a table and say how good the predictions are on average.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bayespc::{Model, ModelSettings};
use bayespc_data::{Split, k_folds, parse_splits, standard_splits};
use bayespc_experiments::records::{Estimate, mean_se};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};

use crate::failure::usage;
use crate::input::{Problem, TableArgs};
use crate::output::{print, print_json, two_columns};
use crate::progress::bar;
use crate::scores::{PER_TARGET, Predictions, Score, Scores};
use crate::settings::SettingsArgs;

/// Standard splits of a named data set.
const STANDARD_SPLITS: usize = 20;
/// Folds of any other table.
const FOLDS: usize = 5;

/// Train and test on many splits of a table.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc evaluate wine --max-splits 3
  bayespc evaluate flats.csv --target rent --folds 10 --json
  bayespc evaluate energy --data data --splits data/uci/energy/splits.csv --set members=3

Named data sets use their 20 standard splits, mnist and fashion-mnist their test sets, other tables 5 folds. A splits file has no header; each line
lists the test rows of one split, counted from 0 and separated by commas.
Scores are means over splits ± standard errors; seconds are per split.")]
pub struct EvaluateArgs {
    #[command(flatten)]
    table: TableArgs,
    /// File with the test rows of each split
    #[arg(long, value_name = "FILE", conflicts_with = "folds")]
    splits: Option<PathBuf>,
    /// Number of folds
    #[arg(long, value_name = "K")]
    folds: Option<usize>,
    /// Use only the first splits
    #[arg(long, value_name = "N")]
    max_splits: Option<usize>,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Splits trained at the same time; never changes a score
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Run the command.
pub fn run(args: &EvaluateArgs) -> Result<()> {
    let settings = args.settings.settings_onto(|preset| args.table.defaults(preset))?;
    let threads = match args.threads {
        None => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        Some(0) => return Err(usage("--threads 0: give at least 1")),
        Some(threads) => threads,
    };
    let problem = args.table.load()?;
    let splits = splits(args, &problem, settings.training.seed)?;
    let results = on_all_splits(&problem, &splits, &settings, threads)?;
    let summary = Summary::of(&problem.source.name, &results);
    if args.json { print_json(&summary.to_json()) } else { print(&summary.to_text()) }
}

fn splits(args: &EvaluateArgs, problem: &Problem, seed: u64) -> Result<Vec<Split>> {
    let n = problem.n_rows();
    let own = problem.own_split();
    if args.splits.is_some() && !problem.left_out.is_all() {
        bail!("--splits counts all rows of the table, but {}: remove them from the file", problem.left_out);
    }
    let mut splits = match (&args.splits, args.folds, problem.source.benchmark) {
        (Some(path), _, _) => parse_splits(path, n)?,
        (None, Some(k), _) => folds(n, k, seed)?,
        (None, None, Some(_)) => standard_splits(n, STANDARD_SPLITS),
        (None, None, None) => own.map_or_else(|| folds(n, FOLDS, seed), |split| Ok(vec![split]))?,
    };
    if args.max_splits == Some(0) {
        return Err(usage("--max-splits 0: give at least 1"));
    }
    splits.truncate(args.max_splits.unwrap_or(usize::MAX));
    if splits.is_empty() {
        bail!("the splits file has no lines");
    }
    if let Some(k) = splits.iter().position(|split| split.train.len() < 2) {
        bail!("split {k} leaves fewer than two rows to learn from");
    }
    Ok(splits)
}

fn folds(n: usize, k: usize, seed: u64) -> Result<Vec<Split>> {
    if k < 2 || k > n {
        return Err(usage(format!("--folds {k}: must be at least 2 and at most the number of rows, {n}")));
    }
    Ok(k_folds(n, k, seed)?)
}

/// What one split gave.
pub struct SplitResult {
    scores: Scores,
    seconds_fit: f64,
    seconds_predict: f64,
}

/// Train on every split, several at a time. Each has a thread pool of its own, so that its time is its own.
fn on_all_splits(
    problem: &Problem,
    splits: &[Split],
    settings: &ModelSettings,
    threads: usize,
) -> Result<Vec<SplitResult>> {
    let workers = threads.min(splits.len());
    let bar = bar("evaluating", splits.len() as u64);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let results: Vec<(usize, Result<SplitResult>)> = std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next, stop, bar) = (sender.clone(), &next, &stop, &bar);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    let Some(split) = splits.get(k) else { break };
                    let settings = seeded(settings, k);
                    let result = on_split(problem, split, &settings, threads / workers, bar)
                        .with_context(|| format!("split {k}"));
                    stop.fetch_or(result.is_err(), Ordering::Relaxed);
                    // The receiver outlives the threads.
                    let _ = sender.send((k, result));
                }
            });
        }
        drop(sender);
        receiver.into_iter().collect()
    });
    bar.finish_and_clear();
    let mut results = results.into_iter().map(|(k, r)| Ok((k, r?))).collect::<Result<Vec<_>>>()?;
    results.sort_by_key(|(k, _)| *k);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Every split has a seed of its own: the average is over seeds too.
fn seeded(settings: &ModelSettings, split: usize) -> ModelSettings {
    let mut settings = settings.clone();
    settings.training.seed = settings.training.seed.wrapping_add(100 * split as u64);
    settings
}

fn on_split(
    problem: &Problem,
    split: &Split,
    settings: &ModelSettings,
    threads: usize,
    bar: &ProgressBar,
) -> Result<SplitResult> {
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start the threads")?;
    let parts = problem.parts(split)?;
    let (model, seconds_fit) = timed(|| {
        let samples = parts.train.samples(problem.classes())?;
        Ok(pool.install(|| Model::fit(&samples, settings))?)
    })?;
    let (predictions, seconds_predict) = timed(|| pool.install(|| Predictions::of(&model, &parts.test)))?;
    let scale = &model.target_scaling().scale;
    let scores = Scores::of(&predictions, &parts.test.targets, scale, &problem.targets)?;
    bar.inc(1);
    Ok(SplitResult { scores, seconds_fit, seconds_predict })
}

/// A result with the seconds it took.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let start = Instant::now();
    Ok((work()?, start.elapsed().as_secs_f64()))
}

/// Averages over splits.
struct Summary {
    dataset: String,
    splits: usize,
    /// Of all targets, and of each if there are several.
    scores: Vec<(Option<String>, &'static str, Estimate)>,
    seconds_fit: f64,
    seconds_predict: f64,
}

impl Summary {
    fn of(dataset: &str, results: &[SplitResult]) -> Self {
        let mean =
            |value: fn(&SplitResult) -> f64| results.iter().map(value).sum::<f64>() / results.len() as f64;
        let names = results.first().map_or_else(Vec::new, |result| result.scores.flat());
        let over_splits = |i: usize| results.iter().map(|r| r.scores.flat()[i].value).collect::<Vec<_>>();
        let estimate =
            |(i, score): (usize, &Score<'_>)| (score.target.cloned(), score.name, mean_se(&over_splits(i)));
        Self {
            dataset: dataset.to_owned(),
            splits: results.len(),
            scores: names.iter().enumerate().map(estimate).collect(),
            seconds_fit: mean(|r| r.seconds_fit),
            seconds_predict: mean(|r| r.seconds_predict),
        }
    }

    fn to_json(&self) -> Value {
        let mut json_object = Map::new();
        json_object.insert("dataset".into(), json!(self.dataset));
        json_object.insert("splits".into(), json!(self.splits));
        let mut each: Map<String, Value> = Map::new();
        for (target, name, estimate) in &self.scores {
            let value = match *name {
                // Shares and averages over all test rows, where an error over splits says little.
                "coverage_90" | "crps" => json!(estimate.mean),
                _ => json!({ "mean": estimate.mean, "se": estimate.spread }),
            };
            let scores = match target {
                None => &mut json_object,
                Some(target) => match each.entry(target.clone()).or_insert_with(|| Map::new().into()) {
                    Value::Object(scores) => scores,
                    _ => continue,
                },
            };
            scores.insert((*name).to_owned(), value);
        }
        if !each.is_empty() {
            json_object.insert(PER_TARGET.to_owned(), each.into());
        }
        json_object.insert("seconds_fit".into(), json!(self.seconds_fit));
        json_object.insert("seconds_predict".into(), json!(self.seconds_predict));
        json_object.into()
    }

    fn to_text(&self) -> String {
        let several = self.scores.iter().any(|(target, ..)| target.is_some());
        let row = |(target, name, estimate): &(Option<String>, &'static str, Estimate)| {
            let score = Score { target: target.as_ref(), name, value: f64::NAN };
            score.is_shown(several).then(|| (score.label(), format!("{estimate:.3}")))
        };
        let mut rows: Vec<_> = self.scores.iter().filter_map(row).collect();
        rows.push(("seconds to fit".into(), format!("{:.2}", self.seconds_fit)));
        rows.push(("seconds to predict".into(), format!("{:.3}", self.seconds_predict)));
        let splits = if self.splits == 1 { "split" } else { "splits" };
        let heading = format!("{}, {} {splits}", self.dataset, self.splits);
        format!("{heading}\n\n{}", two_columns(&rows))
    }
}
