//! `bayespc fit --stream`: one pass over a file that need not fit in memory.
//!
//! The first rows tell what the columns are and how they are scaled. Every chunk of rows is
//! then predicted first and learned afterwards, so that the scores are of rows the model had not seen. Rows that
//! cannot be used are left out, a signal ends the pass with what was learned, and a checkpoint lets it go on.

mod ahead;
mod args;
mod checkpoint;
mod order;
mod progress;
mod report;
mod sums;

use std::time::Instant;

use anyhow::{Context, Result};
use bayespc::learning::Schedule;
use bayespc::model::{Calibration, Model, ModelSettings};
use bayespc::{Precision, Rule};
use bayespc_data::{BadRows, Learnable};

use ahead::read_ahead;
pub use args::StreamArgs;
pub use checkpoint::{Beginning, Checkpoint};

use crate::columns;
use crate::failure::usage;
use crate::input::{Part, Problem, TableArgs};
use crate::interrupt;
use crate::output::{Output, note, print};
use crate::predict::Warnings;
use crate::progress::bar;
use checkpoint::State;
use order::Order;
use progress::Progress;
use sums::Sums;

/// Rows that settle columns and scaling.
const HEAD: usize = 10_000;

/// Rows in memory at a time.
const CHUNK: usize = 8192;

/// Rows of a batch, all of whose sums are made before the network moves.
const BATCH: usize = 256;

/// What a stream asks of the preset: larger batches, whose sums say all a step needs, in single precision. Settings by
/// name come on top.
pub fn defaults(settings: ModelSettings) -> ModelSettings {
    let mut settings = ModelSettings { precision: Precision::F32, ..settings };
    settings.training.batch_size = Some(BATCH);
    if let Rule::Feedback(rule) = &mut settings.rule {
        // A batch says well where to go: large steps, which fall as 1/√t.
        rule.refresh_every = 1;
        rule.trust = 0.7;
        rule.schedule = Schedule::Cosine { first: 0.8, last: 0.01 };
    }
    settings
}

/// How to pass over a file.
#[derive(Debug, Default)]
pub struct Pass {
    /// How many rows may be left out because they cannot be used; see [`BadRows`].
    pub max_bad: Option<usize>,
    /// Where to keep what was learned on the way.
    pub checkpoint: Option<Checkpoint>,
    /// What was learned before; nothing if there is none.
    pub from: Option<Beginning>,
}

/// What one pass has made.
pub struct Learned {
    /// From reading the first row to having learned the last.
    pub seconds: f64,
    problem: Problem,
    model: Model,
    sums: Sums,
    order: Order,
    /// Rows learned by this process, not by one before it.
    new_rows: usize,
    left_out: Learnable,
    bad: BadRows,
    interrupted: bool,
}

/// Run the command.
pub fn run(
    table: &TableArgs,
    settings: &ModelSettings,
    pass: &Pass,
    out: Option<Output>,
    as_json: bool,
) -> Result<()> {
    if out.is_some() || pass.checkpoint.is_some() {
        interrupt::wait_for_files();
    }
    let learned = learn(table, settings, pass)?;
    if !as_json {
        print(&format!("{}\n", columns::understood(learned.problem.columns())))?;
    }
    let written = out.as_ref().map(|out| out.path().to_owned());
    if let Some(out) = out {
        out.write_whole(&learned.model.to_bytes()?)?;
    }
    report::report(&learned, written.as_deref(), as_json)?;
    if let (Some(path), false) = (&written, learned.interrupted) {
        note(&format!("model written to {}", path.display()));
    }
    if !learned.interrupted {
        return Ok(());
    }
    let mut kept = format!("interrupted after {} rows", learned.sums.rows);
    match &written {
        Some(path) => kept.push_str(&format!("; the model learned from them is in {}", path.display())),
        None => kept.push_str("; nothing is kept without --out"),
    }
    if let Some(checkpoint) = &pass.checkpoint {
        let path = checkpoint.out.path().display();
        kept.push_str(&format!("; the same command goes on from {path}"));
    }
    interrupt::kept(kept)
}

/// Learn a file in one pass; the settings are those of the model that the pass begins with, if there is one.
pub fn learn(table: &TableArgs, settings: &ModelSettings, pass: &Pass) -> Result<Learned> {
    if settings.calibration != Calibration::None && pass.from.is_none() {
        return Err(usage("--stream holds no rows out to calibrate on: leave calibration = \"none\""));
    }
    let (problem, rows) = match &pass.from {
        Some(from) => table.open_as(from.encoding.clone())?,
        None => table.load_head(HEAD)?,
    };
    let start = Instant::now();
    let mut progress = Progress::begin(&problem, settings, pass)?;
    let mut warnings = Warnings::default();
    let bar = bar("rows", 0);
    let batches = rows.batches(problem.encoding(), CHUNK)?.skipping(BadRows::at_most(pass.max_bad));
    let (batches, interrupted) = read_ahead(batches, |chunks| -> Result<bool> {
        loop {
            let batch = chunks.recv().ok();
            // Asked after reading: a pipe whose writer was told to stop too may end in half a row.
            if interrupt::interrupted() {
                // Without a model there is nothing to keep.
                progress.model.is_some().then_some(()).map_or_else(interrupt::check, Ok)?;
                progress.stop()?;
                return Ok(true);
            }
            let Some(batch) = batch.transpose()? else { return Ok(false) };
            warnings.add(batch.warnings);
            let targets = batch.targets.with_context(|| {
                format!("{} lacks the target ({})", problem.source.name, problem.targets.join(", "))
            })?;
            progress.chunk(&Part { features: batch.features, targets })?;
            bar.set_position(progress.state.sums.rows as u64);
        }
    });
    let interrupted = interrupted?;
    bar.finish_and_clear();
    progress.check_caught_up()?;
    warnings.tell();
    let (left_out, bad) = (batches.left_out().clone(), batches.bad().clone());
    if !left_out.is_all() {
        note(&format!("{}: {left_out}", problem.source.name));
    }
    let Progress { model, state, new_rows, .. } = progress;
    let model = model.with_context(|| match &bad.first {
        Some(first) => format!("{} has no rows that can be used; the first: {first}", problem.source.name),
        None => format!("{} has no rows", problem.source.name),
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let State { sums, order, .. } = state;
    Ok(Learned { seconds, problem, model, sums, order, new_rows, left_out, bad, interrupted })
}
