//! `bayespc stats`: what one part of a table says in the pass that is due.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bayespc::model::rounds::PartStatistics;
use clap::Args;
use serde_json::json;

use crate::begin::{Numbered, each_chunk, notes, read};
use crate::failure::usage;
use crate::input::TableArgs;
use crate::output::{Files, print_json};
use crate::threads;

/// Chunks whose statistics wait to be added up.
const TOGETHER: usize = 16;

/// Say what one part of the rows says, for `bayespc merge`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  bayespc stats parts/07.csv --model model.3 --out 07.3
`bayespc begin --help` shows the whole loop. A part may be computed again, anywhere: the file is the same to the bit.")]
pub struct StatsArgs {
    /// A part that `bayespc begin` was given
    #[arg(value_name = "PART")]
    part: String,
    /// The model as it is now, from `bayespc begin` or `bayespc merge`
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// File for the statistics
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Threads to use; never changes a result
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Run the command.
pub fn run(args: &StatsArgs) -> Result<()> {
    threads::set(args.threads)?;
    let mut files = Files::default();
    files.reads("the part", Path::new(&args.part));
    files.reads("the model", &args.model);
    let out = files.output("--out", Some(&args.out))?.context("--out is always given")?;
    let rounds = read(&args.model)?;
    let Some(pass) = rounds.next_pass() else {
        return Err(usage(format!("{} is finished: no pass is due", args.model.display())));
    };
    let (encoding, parts) = notes(&rounds, &args.model)?;
    let numbered = find(&parts, &args.part)?;
    let classes = encoding.classes().map(<[String]>::to_vec);
    let table = TableArgs { data: args.part.clone(), ..TableArgs::default() };
    let mut next = numbered.first;
    let mut waiting: Vec<PartStatistics> = vec![rounds.statistics(None, next)?];
    each_chunk(&table, &encoding, |part| {
        let samples = part.samples(classes.as_deref())?;
        waiting.push(rounds.statistics(Some(&samples), next)?);
        next += part.len() as u64;
        if waiting.len() == TOGETHER {
            waiting = vec![rounds.combine(std::mem::take(&mut waiting))?];
        }
        Ok(())
    })?;
    let rows = next - numbered.first;
    if rows != numbered.rows {
        bail!("{} has {rows} rows, and had {} when the model was begun", args.part, numbered.rows);
    }
    out.write_whole(&rounds.combine(waiting)?.to_bytes()?)?;
    if args.json {
        return print_json(&json!({ "pass": pass, "rows": rows, "first_row": numbered.first }));
    }
    Ok(())
}

/// The part of this name; where it is now does not matter if no other has its file name.
fn find<'a>(parts: &'a [Numbered], name: &str) -> Result<&'a Numbered> {
    if let Some(part) = parts.iter().find(|part| part.name == name) {
        return Ok(part);
    }
    let file = |name: &str| Path::new(name).file_name().map(ToOwned::to_owned);
    let alike: Vec<&Numbered> = parts.iter().filter(|part| file(&part.name) == file(name)).collect();
    match alike[..] {
        [part] => Ok(part),
        [] => Err(usage(format!("{name} is none of the parts that `bayespc begin` was given"))),
        _ => Err(usage(format!("{name} may be one of several parts of that file name: give its whole name"))),
    }
}
