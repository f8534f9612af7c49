//! `bayespc merge`: what becomes of a model by a pass over all parts.

use std::path::PathBuf;

use anyhow::{Context, Result};
use bayespc::Error;
use bayespc::error::RoundsError;
use bayespc::model::rounds::PartStatistics;
use clap::Args;
use serde_json::json;

use crate::begin::{notes, read};
use crate::output::{Files, print, print_json};
use crate::threads;

/// Move a model on by the statistics of all parts.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  bayespc merge 0?.3 --model model.3 --out model.4
Prints the pass that is due next, or `finished`: then --out is a model like that of `bayespc fit`.
`bayespc begin --help` shows the whole loop.")]
pub struct MergeArgs {
    /// Files of `bayespc stats`, one for each part, in any order
    #[arg(value_name = "STATS", required = true)]
    parts: Vec<PathBuf>,
    /// The model they were made with
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// File for the model after the pass
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Threads to use; never changes a result
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print the pass that is due next as JSON
    #[arg(long)]
    json: bool,
}

/// Run the command.
pub fn run(args: &MergeArgs) -> Result<()> {
    threads::set(args.threads)?;
    let mut files = Files::default();
    files.reads("the model", &args.model);
    for part in &args.parts {
        files.reads("a file of statistics", part);
    }
    let out = files.output("--out", Some(&args.out))?.context("--out is always given")?;
    let rounds = read(&args.model)?;
    let (_, numbered) = notes(&rounds, &args.model)?;
    let parts = args
        .parts
        .iter()
        .map(|path| {
            let name = path.display();
            let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
            PartStatistics::from_bytes(&bytes)
                .with_context(|| format!("{name} is no file of `bayespc stats`"))
        })
        .collect::<Result<Vec<_>>>()?;
    let next = rounds.absorb(parts).map_err(|error| {
        // The library knows rows and places in the list; files are known here.
        let culprit = match &error {
            Error::Rounds(
                RoundsError::OtherModel { part, .. }
                | RoundsError::Columns { part, .. }
                | RoundsError::Chunk { part, .. },
            ) => args.parts.get(*part).map(|path| format!("{}", path.display())),
            Error::Rounds(RoundsError::Missing { start: row, .. } | RoundsError::Twice { row }) => numbered
                .iter()
                .find(|part| (part.first..part.first + part.rows).contains(row))
                .map(|part| format!("the statistics of {}", part.name)),
            _ => None,
        };
        let error = anyhow::Error::new(error);
        match culprit {
            Some(culprit) => error.context(format!("{culprit} cannot be merged")),
            None => error,
        }
    })?;
    out.write_whole(&next.to_bytes()?)?;
    if args.json {
        return print_json(&json!({ "next": next.next_pass(), "model": args.out }));
    }
    print(&next.next_pass().map_or_else(|| "finished".to_owned(), |pass| pass.to_string()))
}
