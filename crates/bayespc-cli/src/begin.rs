//! `bayespc begin`: what a model is to be that many processes will learn together.
//!
//! The first rows of the first part tell what the columns are, as they do for a stream. Every part is read once, to
//! number its rows: the model does not depend on how a table is cut, as long as rows have numbers.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bayespc::Task;
use bayespc::model::SearchSettings;
use bayespc::model::rounds::{RoundSettings, Rounds};
use bayespc_data::{BadRows, Encoding};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::usage;
use crate::fit::{DATA_NOTE, ENCODING_NOTE};
use crate::input::{Part, TableArgs};
use crate::output::{Files, note, print, print_json};
use crate::predict::model_bytes;
use crate::progress::bar;
use crate::settings::SettingsArgs;
use crate::{columns, interrupt, threads};

/// Note of the model that numbers the rows of its parts.
const PARTS_NOTE: &str = "parts";

/// Rows that settle the columns, and rows in memory at a time.
const HEAD: usize = 10_000;
const CHUNK: usize = 8192;

/// Begin a model that many processes learn together, each from its part of the rows.
#[derive(Args, Debug)]
#[command(after_help = "Example: a model of all files of a folder, in passes of one process per file
  bayespc begin parts/*.csv --target load --out model.0
  i=0
  while [ \"$next\" != finished ]; do
    for part in parts/*.csv; do
      bayespc stats \"$part\" --model model.$i --out \"$(basename \"$part\").$i\" &
    done; wait
    next=$(bayespc merge *.csv.$i --model model.$i --out model.$((i + 1)))
    i=$((i + 1))
  done
  bayespc predict model.$i new.csv

There are four passes more than rounds. Nothing is searched: networks are as the settings have them.")]
pub struct BeginArgs {
    #[command(flatten)]
    table: TableArgs,
    /// The other parts, in the order of their rows
    #[arg(value_name = "PART")]
    others: Vec<String>,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Rounds: passes in which every network makes a step [default: 200]
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Rows that a round uses, drawn from all parts [default: 8192]
    #[arg(long, value_name = "N")]
    batch_rows: Option<u64>,
    /// Share of the rows held out of each network to calibrate it, at most 5000 rows; 0 for none [default: 0.1]
    #[arg(long, value_name = "SHARE")]
    held_out: Option<f64>,
    /// File for what the model is to be
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Threads to use; never changes a result
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print what was understood as JSON
    #[arg(long)]
    json: bool,
}

/// Rows of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Numbered {
    /// Its file, as it was given.
    pub name: String,
    /// Number of its first row.
    pub first: u64,
    /// How many rows can be learned from.
    pub rows: u64,
}

/// Run the command.
pub fn run(args: &BeginArgs) -> Result<()> {
    threads::set(args.threads)?;
    let mut settings = args.settings.settings_onto(|preset| preset)?;
    if let Some(name) = search_setting(&settings.search)? {
        return Err(usage(format!("search.{name}: nothing is searched in rounds, leave it out")));
    }
    settings.search.enabled = false;
    let mut files = Files::default();
    args.table.note_files(&mut files);
    if let Some(config) = &args.settings.config {
        files.reads("the settings file of --config", config);
    }
    for part in &args.others {
        files.reads("a part", Path::new(part));
    }
    let out = files.output("--out", Some(&args.out))?.context("--out is always given")?;
    let (problem, _) = args.table.load_head(HEAD)?;
    let encoding = problem.encoding().clone();
    let task = match problem.classes() {
        Some(classes) => Task::Classification { classes: classes.len() },
        None => Task::Regression,
    };
    let defaults = RoundSettings::default();
    let rounds = RoundSettings {
        rounds: args.rounds.unwrap_or(defaults.rounds),
        batch_rows: args.batch_rows.unwrap_or(defaults.batch_rows),
        held_out: args.held_out.unwrap_or(defaults.held_out),
        ..defaults
    };
    let begun = Rounds::begin(&settings, &rounds, task).map_err(|error| usage(error.to_string()))?;

    let mut parts: Vec<Numbered> = Vec::new();
    let mut first = 0;
    for name in std::iter::once(&args.table.data).chain(&args.others) {
        if parts.iter().any(|part| &part.name == name) {
            return Err(usage(format!("{name} is given twice: every row counts once")));
        }
        let mut rows = 0;
        each_chunk(&TableArgs { data: name.clone(), ..args.table.clone() }, &encoding, |part| {
            rows += part.len() as u64;
            Ok(())
        })?;
        parts.push(Numbered { name: name.clone(), first, rows });
        first += rows;
    }
    let bytes = begun
        .expecting(first)?
        .with_note(ENCODING_NOTE, serde_json::to_string(&encoding)?)?
        .with_note(DATA_NOTE, problem.source.name.clone())?
        .with_note(PARTS_NOTE, serde_json::to_string(&parts)?)?
        .to_bytes()?;
    out.write_whole(&bytes)?;
    if args.json {
        let passes = rounds.rounds + if rounds.held_out > 0.0 { 4 } else { 3 };
        return print_json(&json!({
            "parts": parts, "rows": first, "columns": problem.columns(), "passes": passes, "model": args.out,
        }));
    }
    print(&format!("{}\n\n{first} rows in {} parts", columns::understood(problem.columns()), parts.len()))
}

/// A setting of the search that is neither the default nor emptied by a setting that fixes what it would choose.
fn search_setting(search: &SearchSettings) -> Result<Option<String>> {
    let (given, default) = (serde_json::to_value(search)?, serde_json::to_value(SearchSettings::default())?);
    let is_set = |(name, value): &(&String, &Value)| {
        let is_empty = **value == json!([]) || **value == json!(false);
        !is_empty && default.get(name) != Some(value)
    };
    Ok(given.as_object().and_then(|given| given.iter().find(is_set)).map(|(name, _)| name.clone()))
}

/// A model in the making, from its file.
pub fn read(path: &Path) -> Result<Rounds> {
    let bytes = model_bytes(path)?;
    Rounds::from_bytes(&bytes)
        .with_context(|| format!("{} was not made by `bayespc begin` or `bayespc merge`", path.display()))
}

/// How a model in the making reads columns, and the numbers of its parts' rows.
pub fn notes(rounds: &Rounds, path: &Path) -> Result<(Encoding, Vec<Numbered>)> {
    let read = |name: &str| {
        rounds
            .notes()
            .get(name)
            .with_context(|| format!("{} was not made by `bayespc begin`", path.display()))
    };
    let damaged = || format!("{}: its notes are damaged", path.display());
    let encoding = serde_json::from_str(read(ENCODING_NOTE)?).with_context(damaged)?;
    let parts = serde_json::from_str(read(PARTS_NOTE)?).with_context(damaged)?;
    Ok((encoding, parts))
}

/// The rows of a part that can be learned from, some at a time. A part with a row that cannot be read is refused.
pub fn each_chunk(
    table: &TableArgs,
    encoding: &Encoding,
    mut work: impl FnMut(&Part) -> Result<()>,
) -> Result<()> {
    let name = &table.data;
    let known = TableArgs { target: Vec::new(), ..table.clone() };
    let (problem, rows) = known.open_as(encoding.clone())?;
    let bar = bar("rows", 0);
    let mut warnings = crate::predict::Warnings::default();
    let mut batches = rows.batches(problem.encoding(), CHUNK)?.skipping(BadRows::at_most(Some(0)));
    for batch in batches.by_ref() {
        interrupt::check()?;
        let batch = batch.with_context(|| format!("{name} cannot be used"))?;
        warnings.add(batch.warnings);
        let targets = batch
            .targets
            .with_context(|| format!("{name} lacks the target ({})", problem.targets.join(", ")))?;
        let part = Part { features: batch.features, targets };
        work(&part)?;
        bar.inc(part.len() as u64);
    }
    bar.finish_and_clear();
    warnings.tell();
    let left_out = batches.left_out();
    if !left_out.is_all() {
        note(&format!("{name}: {left_out}"));
    }
    Ok(())
}
