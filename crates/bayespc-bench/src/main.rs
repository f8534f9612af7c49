//! `bayespc-bench`: how fast training and prediction are here, against what the machine can do.
//!
//! Every number is a median over repeats, and repeats go round all settings in turn, so that a busy machine
//! slows all of them alike.

mod arithmetic;
mod machine;
mod mnist;
mod predict;
mod read;
mod rounds;
mod serve;
mod stream;
mod tabular;
mod wide;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use bayespc::network::WideLayers;
use bayespc_cli::failure::{self, usage};
use bayespc_cli::output::{print, print_json};
use clap::{Parser, ValueEnum};
use serde_json::{Map, Value};

/// Measure speed and memory of bayespc
#[derive(Clone, Debug, Parser)]
#[command(
    version,
    after_help = "Examples:
  bayespc-bench mnist --json
  bayespc-bench mnist --learner bpc,backprop,pc --rule feedback,relaxation --threads 2
  bayespc-bench mnist --peers peers.json
  bayespc-bench predict --rows 100000
  bayespc-bench stream --rows 1000000 --threads 2
  bayespc-bench read --file table.csv --threads 2
  bayespc-bench serve --rate 500 --seconds 10

mnist    an epoch of the network 784-128-128-128-10 in batches of 128, in single precision
tabular  a fit with default settings of tables like yacht and energy; no search for settings
predict  the four ways to predict 10⁶ rows of 20 columns through two layers of 50
stream   fit --stream over a CSV and a Parquet file of 100 columns
read     a CSV file of 10⁶ rows and 30 mixed columns, or --file
serve    one row per request at a steady rate, and 10⁵ rows in one, on loopback
rounds   learning in rounds beside a local fit: power, a made-up table, mnist; not run unless named
wide     mnist by wide layers, whole, in blocks and as sketches; not run unless named
Without a name the first six are run. Times are medians; test sets are never part of them."
)]
struct BenchArgs {
    /// What to measure; everything if not given
    #[arg(value_enum)]
    what: Option<What>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Epochs of a fit [default: 2 for mnist, 100 for tabular]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Repeats a median is taken of [default: 1 for mnist and stream, 3 otherwise]
    #[arg(long, value_name = "N")]
    repeats: Option<usize>,
    /// Numbers of threads to compare
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Learners to compare on mnist
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [BenchLearner::Bpc])]
    learner: Vec<BenchLearner>,
    /// Rules of bpc to compare on mnist
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [BenchRule::Feedback])]
    rule: Vec<BenchRule>,
    /// Batches between two refreshes of the feedback rule's factors (mnist)
    #[arg(long, value_name = "K", default_value_t = 10)]
    refresh_every: u64,
    /// Training images of mnist, rows to predict, to stream or to read
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Rounds of rounds [default: those of a fit]
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Rows of a round [default: those of a fit]
    #[arg(long, value_name = "N")]
    batch_rows: Option<u64>,
    /// Widths of the hidden layers of wide
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [2048, 2048])]
    widths: Vec<usize>,
    /// What wide compares: dense, blocks=B, sketch=K, auto
    #[arg(long, value_name = "C", value_delimiter = ',', value_parser = wide::parse, default_values = ["dense", "blocks=512", "blocks=256", "sketch=256"])]
    columns: Vec<WideLayers>,
    /// Requests per second to serve
    #[arg(long, value_name = "N", default_value_t = 500)]
    rate: usize,
    /// Seconds to serve them
    #[arg(long, value_name = "S", default_value_t = 5)]
    seconds: usize,
    /// File to read instead of a made-up one
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// JSON file of other programs' times, from scripts/peers.py: their ratios are printed too
    #[arg(long, value_name = "FILE")]
    peers: Option<PathBuf>,
    /// Folder to look for data sets in instead of BAYESPC_DATA; then come the cache and the network
    #[arg(long = "data", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Made-up images instead of mnist: the same work, no data needed
    #[arg(long, hide = true)]
    synthetic: bool,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Epochs of an image classifier
    Mnist,
    /// Fits of small tables
    Tabular,
    /// Predictions of a large table
    Predict,
    /// One pass over large files
    Stream,
    /// Reading a large file
    Read,
    /// A server under load
    Serve,
    /// Rounds beside a local fit; only by name
    Rounds,
    /// Wide layers; only by name
    Wide,
}

/// What is trained on images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BenchLearner {
    /// Bayesian predictive coding
    Bpc,
    /// Backpropagation with Adam
    Backprop,
    /// Predictive coding, T = 10, with AdamW
    Pc,
}

/// How Bayesian predictive coding infers activities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BenchRule {
    /// Errors by feedback, inputs whitened once
    Feedback,
    /// Errors by feedback, statistics of the inputs as they come
    FeedbackRunning,
    /// Relaxation, T = 10, with tied precision
    Relaxation,
}

/// A result, as JSON and as text.
struct Outcome {
    json: Value,
    text: String,
}

fn main() -> ExitCode {
    match run(&BenchArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

fn run(args: &BenchArgs) -> Result<()> {
    check(args)?;
    // What compares results, not times, is run by name.
    let all =
        What::value_variants().iter().copied().filter(|what| !matches!(what, What::Rounds | What::Wide));
    let wanted = args.what.map_or_else(|| all.collect(), |what| vec![what]);
    let mut outcomes = Vec::new();
    for what in wanted {
        let (name, outcome) = match what {
            What::Mnist => ("mnist", mnist::run(args)?),
            What::Tabular => ("tabular", tabular::run(args)?),
            What::Predict => ("predict", predict::run(args)?),
            What::Stream => ("stream", stream::run(args)?),
            What::Read => ("read", read::run(args)?),
            What::Serve => ("serve", serve::run(args)?),
            What::Rounds => ("rounds", rounds::run(args)?),
            What::Wide => ("wide", wide::run(args)?),
        };
        outcomes.push((name, outcome));
    }
    if !args.json {
        let texts: Vec<_> = outcomes.into_iter().map(|(_, outcome)| outcome.text).collect();
        return print(&texts.join("\n\n"));
    }
    match <[_; 1]>::try_from(outcomes) {
        Ok([(_, only)]) => print_json(&only.json),
        Err(all) => {
            let all: Map<_, _> = all.into_iter().map(|(name, o)| (name.to_owned(), o.json)).collect();
            print_json(&all.into())
        }
    }
}

fn check(args: &BenchArgs) -> Result<()> {
    let counts = [("--epochs", args.epochs), ("--repeats", args.repeats), ("--rows", args.rows)];
    let threads = args.threads.iter().map(|&n| ("--threads", Some(n)));
    let refresh = ("--refresh-every", Some(args.refresh_every as usize));
    let load = [("--rate", Some(args.rate)), ("--seconds", Some(args.seconds))];
    match counts.into_iter().chain(threads).chain([refresh]).chain(load).find(|(_, count)| *count == Some(0))
    {
        Some((flag, _)) => Err(usage(format!("{flag} 0: give at least 1"))),
        None => Ok(()),
    }
}

/// The middle value; between the two middle ones where there are two.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// A table with its first column to the left and the others to the right.
fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = heading.iter().map(|&cell| cell.to_owned()).collect();
    let width = |c: usize| {
        std::iter::once(&heading).chain(rows).map(|row| row[c].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |(c, text): (usize, &String)| {
            if c == 0 { format!("{text:<0$}", widths[0]) } else { format!("  {text:>0$}", widths[c]) }
        };
        row.iter().enumerate().map(cell).collect::<String>().trim_end().to_owned()
    };
    std::iter::once(&heading).chain(rows).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_between_the_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn tables_align_names_to_the_left_and_numbers_to_the_right() {
        let rows = [vec!["rows".to_owned(), "1.5".to_owned()], vec!["é".to_owned(), "10.25".to_owned()]];
        assert_eq!(table(&["", "s"], &rows), "          s\nrows    1.5\né     10.25");
    }
}
