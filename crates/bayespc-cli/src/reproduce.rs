//! `bayespc reproduce`: the paper's figures and tables, and the ablation, as pages with their records.

use std::path::PathBuf;

use anyhow::Result;
use bayespc_experiments::{Effort, Experiment, reproduce};
use clap::{Args, ValueEnum};

use crate::input::data_source;
use crate::output::{print, refuse_same_folder};
use crate::progress::bar;
use crate::threads;

/// Make the paper's figures and tables.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc reproduce all --quick --out results
  bayespc reproduce table1 --data data --out results
  bayespc reproduce benchmark --out results
  bayespc reproduce depth --quick --out results

Each experiment writes a page (.html), its figures (.svg) and its records (.csv). A run that was interrupted
goes on where it stopped.")]
pub struct ReproduceArgs {
    /// What to make
    #[arg(value_enum)]
    what: What,
    /// Folder to look for data sets in instead of BAYESPC_DATA; then come the cache and the network
    #[arg(long = "data", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Folder for the results; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Fewer seeds, splits and epochs: minutes instead of hours
    #[arg(long)]
    quick: bool,
    /// Threads to use; never changes a result
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// What can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Accuracy against epochs
    Figure1,
    /// Density against epochs, and the two kinds of uncertainty
    Figure2,
    /// Six data sets, error and density
    Table1,
    /// What each open choice of the paper does
    Ablation,
    /// Settings of the baselines, chosen on training data
    Tuning,
    /// What the defaults rest on, measured on training data
    Choices,
    /// Default settings beside other methods
    Benchmark,
    /// The same between and beyond the data
    Gaps,
    /// Class probabilities, and images of something else
    Classes,
    /// MNIST and Fashion-MNIST: best and last epoch, and each told from the other
    Images,
    /// Rules of learning in networks of 3, 10, 20 and 30 hidden layers, on MNIST and Fashion-MNIST
    Depth,
    /// The paper: figure1, figure2, table1 and ablation
    All,
}

impl What {
    fn experiments(self) -> Vec<Experiment> {
        match self {
            Self::Figure1 => vec![Experiment::Figure1],
            Self::Figure2 => vec![Experiment::Figure2],
            Self::Table1 => vec![Experiment::Table1],
            Self::Ablation => vec![Experiment::Ablation],
            Self::Tuning => vec![Experiment::Tuning],
            Self::Choices => vec![Experiment::Choices],
            Self::Benchmark => vec![Experiment::Benchmark],
            Self::Gaps => vec![Experiment::Gaps],
            Self::Classes => vec![Experiment::Classes],
            Self::Images => vec![Experiment::Images],
            Self::Depth => vec![Experiment::Depth],
            Self::All => Experiment::PAPER.to_vec(),
        }
    }
}

/// Run the command.
pub fn run(args: &ReproduceArgs) -> Result<()> {
    threads::set(args.threads)?;
    let source = data_source(args.folder.as_deref());
    if let Some(data) = &source.folder {
        refuse_same_folder("--out", &args.out, "the folder of the data", data)?;
    }
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    for experiment in args.what.experiments() {
        let bar = bar(experiment.name(), 0);
        let watch = |done: usize, planned: usize, unit: &str| {
            bar.set_length(planned as u64);
            bar.set_position(done as u64);
            bar.set_message(format!("{}: {unit}", experiment.name()));
        };
        let page = reproduce(experiment, effort, &source, &args.out, &watch);
        bar.finish_and_clear();
        print(&page?.display().to_string())?;
    }
    Ok(())
}
