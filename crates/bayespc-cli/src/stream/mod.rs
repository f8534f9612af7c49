//! `bayespc fit --stream`: one pass over a file that need not fit in memory.
//!
//! The first rows tell what the columns are and how they are scaled. Every chunk of rows is
//! then predicted first and learned afterwards, so that the scores are of rows the model had not seen. Rows that
//! cannot be used are left out, a signal ends the pass with what was learned, and a checkpoint lets it go on.

mod args;
mod checkpoint;
mod order;
mod report;
mod sums;

use std::time::Instant;

use anyhow::{Context, Result};
use bayespc::model::{Calibration, Model, ModelSettings};
use bayespc_data::{BadRows, Learnable};

pub use args::StreamArgs;
pub use checkpoint::Checkpoint;

use crate::columns;
use crate::failure::usage;
use crate::fit::{DATA_NOTE, ENCODING_NOTE};
use crate::input::{Part, Problem, TableArgs};
use crate::interrupt;
use crate::output::{Output, note, print};
use crate::predict::Warnings;
use crate::progress::bar;
use crate::scores::{Predictions, Scores};
use checkpoint::State;
use order::Order;
use sums::Sums;

/// Rows that settle columns and scaling.
const HEAD: usize = 10_000;

/// Rows in memory at a time.
const CHUNK: usize = 8192;

/// How to pass over a file.
#[derive(Debug, Default)]
pub struct Pass {
    /// How many rows may be left out because they cannot be used; see [`BadRows`].
    pub max_bad: Option<usize>,
    /// Where to keep what was learned on the way.
    pub checkpoint: Option<Checkpoint>,
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
    let rows = learned.sums.rows;
    if let (Some(path), false) = (&written, learned.interrupted) {
        note(&format!("model written to {}", path.display()));
    }
    if !learned.interrupted {
        return Ok(());
    }
    let mut kept = format!("interrupted after {rows} rows");
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

/// Learn a file in one pass.
pub fn learn(table: &TableArgs, settings: &ModelSettings, pass: &Pass) -> Result<Learned> {
    if settings.calibration != Calibration::None {
        return Err(usage("--stream holds no rows out to calibrate on: leave calibration = \"none\""));
    }
    let (problem, rows) = table.load_head(HEAD)?;
    let (encoding, classes) = (problem.encoding(), problem.classes());
    let mut notes = vec![(ENCODING_NOTE.to_owned(), serde_json::to_string(encoding)?)];
    notes.push((DATA_NOTE.to_owned(), problem.source.name.clone()));
    let start = Instant::now();
    let kept = pass.checkpoint.as_ref().map(|checkpoint| checkpoint.read(encoding, settings, None));
    let (mut model, resumed) = kept.transpose()?.flatten().unzip();
    let mut state = State::default();
    let mut new_rows = 0;
    let mut since_checkpoint = 0;
    let mut warnings = Warnings::default();
    let bar = bar("rows", 0);
    let mut batches = rows.batches(encoding, CHUNK)?.skipping(BadRows::at_most(pass.max_bad));
    let mut interrupted = false;
    loop {
        if interrupt::interrupted() && !is_behind(&state, resumed.as_ref()) && model.is_some() {
            interrupted = true;
            break;
        }
        interrupt::check().or_else(|error| if model.is_some() { Ok(()) } else { Err(error) })?;
        let Some(batch) = batches.next() else { break };
        let batch = batch?;
        warnings.add(batch.warnings);
        let targets = batch.targets.context("the file has lost its target column")?;
        let part = Part { features: batch.features, targets };
        state.digest.add(&part);
        state.chunks += 1;
        let score = |model: &Model| {
            let scale = &model.target_scaling().scale;
            Scores::of(&Predictions::of(model, &part)?, &part.targets, scale, &problem.targets)
        };
        if let (Some(model), Some(before)) = (&model, &resumed)
            && state.chunks <= before.chunks
        {
            if state.chunks == before.chunks {
                go_on(&mut state, before, pass)?;
                // Scores of rows it knows, for their names alone.
                state.sums.name(&score(model)?);
            }
            continue;
        }
        let samples = part.samples(classes)?;
        let model = match &mut model {
            Some(model) => {
                state.sums.add(&score(model)?, part.len());
                model
            }
            none => {
                let model = none.insert(Model::for_stream(&samples, settings)?);
                model.notes_mut().extend(notes.clone());
                model
            }
        };
        model.partial_fit(&samples).context("training failed")?;
        state.order.add(&part.targets);
        state.sums.rows += part.len();
        new_rows += part.len();
        since_checkpoint += part.len();
        if let Some(checkpoint) = &pass.checkpoint
            && (since_checkpoint >= checkpoint.every || interrupt::interrupted())
        {
            checkpoint.write(model, &state)?;
            since_checkpoint = 0;
        }
        bar.set_position(state.sums.rows as u64);
    }
    bar.finish_and_clear();
    if !interrupted {
        refuse_shorter(&state, resumed.as_ref(), pass)?;
    }
    warnings.tell();
    let (left_out, bad) = (batches.left_out().clone(), batches.bad().clone());
    if !left_out.is_all() {
        note(&format!("{}: {left_out}", problem.source.name));
    }
    let model = model.with_context(|| match &bad.first {
        Some(first) => format!("{} has no rows that can be used; the first: {first}", problem.source.name),
        None => format!("{} has no rows", problem.source.name),
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let State { sums, order, .. } = state;
    Ok(Learned { seconds, problem, model, sums, order, new_rows, left_out, bad, interrupted })
}

/// Whether rows that were learned before are still being passed over.
fn is_behind(state: &State, resumed: Option<&State>) -> bool {
    resumed.is_some_and(|resumed| state.chunks < resumed.chunks)
}

/// Take over where a checkpoint stands, if what was passed over is what it has learned.
fn go_on(state: &mut State, before: &State, pass: &Pass) -> Result<()> {
    if state.digest != before.digest {
        return Err(changed(pass));
    }
    state.clone_from(before);
    Ok(())
}

/// A file must not end before its checkpoint.
fn refuse_shorter(state: &State, resumed: Option<&State>, pass: &Pass) -> Result<()> {
    if is_behind(state, resumed) { Err(changed(pass)) } else { Ok(()) }
}

fn changed(pass: &Pass) -> anyhow::Error {
    let path =
        pass.checkpoint.as_ref().map(|checkpoint| checkpoint.out.path()).unwrap_or("checkpoint".as_ref());
    checkpoint::other(path, "another file, or this one has changed in rows that were learned")
}
