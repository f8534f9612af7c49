//! The command `bayespc`: fit, predict and evaluate on tables, look into models, fetch data.
//!
//! Results go to standard output, everything else to standard error. Exit code 0 is success, 2 a mistake in
//! the command line or the settings, 130 Ctrl-C, 143 SIGTERM, 1 any other failure.
//!
//! A library only so that the benchmark measures the very code that runs here; its interface is no promise.

mod begin;
mod card;
pub mod columns;
mod completions;
mod data;
mod doubts;
mod drafts;
mod evaluate;
mod explain;
pub mod failure;
mod fit;
mod generate;
mod images;
mod impute;
pub mod input;
mod inspect;
mod inspect_latent;
mod interrupt;
mod latent_columns;
mod merge;
pub mod output;
mod predict;
pub mod progress;
mod prune;
mod reproduce;
mod rows;
mod scores;
#[cfg(feature = "serve")]
mod serve;
pub mod settings;
mod sink;
mod source;
mod stats;
pub mod stream;
mod threads;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Bayesian predictive coding: networks that learn by local, closed-form updates and know what they do not know
#[derive(Debug, Parser)]
#[command(
    name = "bayespc",
    version,
    after_help = "Start here:
  bayespc fit wine --report wine.html
  bayespc fit flats.csv --target rent --out rent.safetensors
  bayespc predict rent.safetensors new-flats.csv"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Learn a model from a table
    Fit(Box<fit::FitArgs>),
    /// Predict the rows of a table, with uncertainty
    Predict(predict::PredictArgs),
    /// Say which columns drive a prediction, its noise or its doubt
    Explain(explain::ExplainArgs),
    /// Fill in the missing cells of a table, and say how sure that is
    Impute(impute::ImputeArgs),
    /// Draw new rows like those of a table
    Generate(generate::GenerateArgs),
    /// Train and test on many splits of a table
    Evaluate(Box<evaluate::EvaluateArgs>),
    /// Begin a model that many processes learn together, each from its part of the rows
    Begin(Box<begin::BeginArgs>),
    /// Say what one part of the rows says, for `merge`
    Stats(stats::StatsArgs),
    /// Move a model on by the statistics of all parts
    Merge(merge::MergeArgs),
    /// Silence columns that a model can do without
    Prune(prune::PruneArgs),
    /// Show what is in a model file
    Inspect(inspect::InspectArgs),
    /// Answer requests over HTTP, with a page to explore models
    #[cfg(feature = "serve")]
    Serve(serve::ServeArgs),
    /// Make the paper's figures and tables, and the ablation
    Reproduce(reproduce::ReproduceArgs),
    /// List or fetch public data sets
    Data(data::DataArgs),
    /// Print what a shell needs to complete this command
    Completions(completions::CompletionsArgs),
}

/// Run the command as the process was started.
pub fn main() -> ExitCode {
    let command = Cli::try_parse()
        .unwrap_or_else(|error| failure::with_suggestion(error, Cli::command()).exit())
        .command;
    if let Err(error) = interrupt::listen() {
        output::note(&format!("warning: cannot listen for Ctrl-C, which ends the command at once: {error}"));
    }
    let result = match command {
        Command::Fit(args) => fit::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Impute(args) => impute::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Begin(args) => begin::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Prune(args) => prune::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Data(args) => data::run(&args),
        Command::Completions(args) => completions::run(&args, &mut Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
