//! `bayespc fit --stream`: one pass over a file that need not fit in memory.
//!
//! The first rows tell what the columns are and how they are scaled. Every chunk of rows is
//! then predicted first and learned afterwards, so that the scores are of rows the model had not seen.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use bayespc::model::{Calibration, Model, ModelSettings};
use bayespc_data::Learnable;
use serde_json::json;

use crate::columns;
use crate::failure::usage;
use crate::fit::{DATA_NOTE, ENCODING_NOTE};
use crate::input::{Part, Problem, TableArgs};
use crate::interrupt;
use crate::output::{Output, note, print, print_json, two_columns};
use crate::predict::Warnings;
use crate::progress::bar;
use crate::scores::{Predictions, Scores};

/// Rows that settle columns and scaling.
const HEAD: usize = 10_000;

/// Rows in memory at a time.
const CHUNK: usize = 8192;

/// What one pass has made.
pub struct Learned {
    /// From reading the first row to having learned the last.
    pub seconds: f64,
    problem: Problem,
    model: Model,
    sums: Sums,
    left_out: Learnable,
}

/// Run the command.
pub fn run(table: &TableArgs, settings: &ModelSettings, out: Option<Output>, as_json: bool) -> Result<()> {
    let Learned { seconds, problem, mut model, sums, left_out } = learn(table, settings)?;
    if !as_json {
        print(&format!("{}\n", columns::understood(problem.columns())))?;
    }
    let notes = model.notes_mut();
    notes.insert(ENCODING_NOTE.to_owned(), serde_json::to_string(problem.encoding())?);
    notes.insert(DATA_NOTE.to_owned(), problem.source.name.clone());
    let written = out.as_ref().map(|out| out.path().to_owned());
    if let Some(out) = out {
        out.write_whole(&model.to_bytes()?)?;
    }
    report(&problem, &sums, &left_out, seconds, written.as_deref(), as_json)
}

/// Learn a file in one pass.
pub fn learn(table: &TableArgs, settings: &ModelSettings) -> Result<Learned> {
    let (problem, rows) = table.load_head(HEAD)?;
    if settings.calibration != Calibration::None {
        return Err(usage("--stream holds no rows out to calibrate on: leave calibration = \"none\""));
    }
    let (encoding, classes) = (problem.encoding(), problem.classes());
    let start = Instant::now();
    let mut model: Option<Model> = None;
    let mut sums = Sums::default();
    let mut warnings = Warnings::default();
    let bar = bar("rows", 0);
    let mut batches = rows.batches(encoding, CHUNK)?;
    for batch in batches.by_ref() {
        interrupt::check()?;
        let batch = batch?;
        warnings.add(batch.warnings);
        let targets = batch.targets.context("the file has lost its target column")?;
        let part = Part { features: batch.features, targets };
        let samples = part.samples(classes)?;
        let model = match &mut model {
            Some(model) => {
                let predictions = Predictions::of(model, &part)?;
                let scale = &model.target_scaling().scale;
                let scores = Scores::of(&predictions, &part.targets, scale, &problem.targets)?;
                sums.add(&scores, part.len());
                model
            }
            none => none.insert(Model::for_stream(&samples, settings)?),
        };
        model.partial_fit(&samples).context("training failed")?;
        sums.rows += part.len();
        bar.set_position(sums.rows as u64);
    }
    bar.finish_and_clear();
    warnings.tell();
    let left_out = batches.left_out().clone();
    if !left_out.is_all() {
        note(&format!("{}: {left_out}", problem.source.name));
    }
    let model = model.context("the file has no rows")?;
    Ok(Learned { seconds: start.elapsed().as_secs_f64(), problem, model, sums, left_out })
}

fn report(
    problem: &Problem,
    sums: &Sums,
    left_out: &Learnable,
    seconds: f64,
    written: Option<&Path>,
    as_json: bool,
) -> Result<()> {
    let rate = sums.rows as f64 / seconds;
    let scores = sums.means();
    if as_json {
        let mut result = serde_json::Map::new();
        result.insert("dataset".into(), json!(problem.source.name));
        result.insert("targets".into(), json!(problem.targets));
        result.insert("rows".into(), json!(sums.rows));
        result.insert("seconds".into(), json!(seconds));
        result.insert("rows_per_second".into(), json!(rate));
        result.insert("scored_rows".into(), json!(sums.scored));
        result.insert("rows_without_target".into(), json!(left_out.without_target));
        result.insert("rows_with_holes_dropped".into(), json!(left_out.with_holes));
        result.insert("columns".into(), json!(problem.columns()));
        result.extend(scores.to_json());
        result.insert("model".into(), json!(written));
        return print_json(&result.into());
    }
    let heading = format!(
        "{}: learned from {} rows in {seconds:.1} s, {rate:.0} rows per second; scores on {} rows before they were learned",
        problem.source.name, sums.rows, sums.scored
    );
    print(&format!("{heading}\n\n{}", two_columns(&scores.rows())))?;
    if let Some(path) = written {
        note(&format!("model written to {}", path.display()));
    }
    Ok(())
}

/// Scores summed over chunks.
#[derive(Default)]
struct Sums {
    rows: usize,
    scored: usize,
    /// Sums in the place of scores.
    totals: Option<Scores>,
}

impl Sums {
    fn add(&mut self, scores: &Scores, rows: usize) {
        self.scored += rows;
        // Squares of the root mean square add up, everything else does as it is.
        let summand =
            |name: &str, value: f64| rows as f64 * if name == "rmse" { value * value } else { value };
        let totals = self.totals.get_or_insert_with(|| scores.map(|_, _| 0.0));
        for (sum, &(name, value)) in totals.values_mut().zip(scores.values()) {
            *sum += summand(name, value);
        }
    }

    fn means(&self) -> Scores {
        let mean = |name: &str, sum: f64| {
            let mean = sum / self.scored as f64;
            if name == "rmse" { mean.sqrt() } else { mean }
        };
        let none = Scores { joint: Vec::new(), each: Vec::new() };
        self.totals.as_ref().map_or(none, |totals| totals.map(mean))
    }
}
