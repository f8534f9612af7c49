//! `bayespc impute`: a table without holes, and how sure each filled cell is.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bayespc::model::{LatentModel, LatentSettings};
use bayespc_data::{Column, ReadOptions, Table};
use clap::Args;
use faer::Mat;
use serde_json::{Value, json};

use crate::failure::usage;
use crate::latent_columns::LatentColumns;
use crate::output::{Files, note, print, print_json};
use crate::predict::model_bytes;
use crate::progress::{Watched, bar};
use crate::sink::Sink;
use crate::{input, interrupt, threads};

/// Fill in the missing cells of a table.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc impute patients.csv --out whole.csv
  bayespc impute patients.csv --out whole.parquet --std --model-out patients.safetensors
  bayespc impute new.csv --model patients.safetensors --out new-whole.csv
  bayespc impute patients.csv --out five.csv --draws 5
  bayespc generate patients.safetensors --rows 1000 --out more.csv

The table is learned as it is, with its holes: rows come from a few hidden numbers through linear layers, as many of
both as predict cells best that were taken out. Every missing number gets its mean given the other cells of its row,
within the column's values and shrunk to the column's mean as far as those cells support, every missing truth value or
category (columns of up to 20 different texts) the most probable one; dates and other texts stay as they are. Cells
that are there are not changed.

--std adds for each column with holes a column NAME_std: 0 where a cell was there. --draws writes the table so often,
one after the other with a column `draw` in front, each time with other values for what is missing, as far apart as
they are unsure: for multiple imputation.")]
pub struct ImputeArgs {
    /// A table as `bayespc fit` reads it, `-` for standard input, or a data set's name
    data: String,
    /// File to write, as Parquet if its name ends so, else as CSV; standard output if not given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Add the standard deviation of filled numbers
    #[arg(long, conflicts_with = "draws")]
    std: bool,
    /// Write so many tables with missing cells drawn
    #[arg(long, value_name = "N")]
    draws: Option<usize>,
    /// Model of an earlier `--model-out`, instead of learning from this table
    #[arg(long, value_name = "FILE", conflicts_with_all = ["latents", "parts", "model_out"])]
    model: Option<PathBuf>,
    /// File for the model, for `bayespc generate` and --model
    #[arg(long, value_name = "FILE")]
    model_out: Option<PathBuf>,
    /// Number of hidden numbers behind a row; chosen if not given
    #[arg(long, value_name = "N")]
    latents: Option<usize>,
    /// Number of linear layers; chosen if not given
    #[arg(long, value_name = "N")]
    parts: Option<usize>,
    /// Significant digits of filled cells and deviations, 1 to 17
    #[arg(long, value_name = "N", default_value_t = 6)]
    digits: usize,
    /// Sheet of a workbook; the first if not given
    #[arg(long, value_name = "NAME")]
    sheet: Option<String>,
    /// Seed of everything drawn
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    seed: u64,
    /// Folder to look for named data sets in
    #[arg(long = "data", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Threads to use; never changes a result
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print what was done as JSON; needs --out
    #[arg(long, requires = "out")]
    json: bool,
}

/// Read a latent model, with an error that names the file.
pub fn read_latent(path: &Path) -> Result<LatentModel> {
    LatentModel::from_bytes(&model_bytes(path)?)
        .with_context(|| format!("{} is no model of `bayespc impute --model-out`", path.display()))
}

/// Run the command.
pub fn run(args: &ImputeArgs) -> Result<()> {
    threads::set(args.threads)?;
    if args.draws == Some(0) {
        return Err(usage("--draws 0: give at least 1"));
    }
    if !(1..=17).contains(&args.digits) {
        return Err(usage(format!("--digits {}: a number has 1 to 17 of them", args.digits)));
    }
    let settings = LatentSettings {
        latents: args.latents,
        parts: args.parts,
        seed: args.seed,
        ..LatentSettings::default()
    };
    settings.validate().map_err(|error| usage(error.to_string()))?;
    let mut files = Files::default();
    input::note_files(&mut files, &args.data, args.folder.as_deref());
    if let Some(model) = &args.model {
        files.reads("the model", model);
    }
    let out = files.output("--out", args.out.as_deref())?;
    let model_out = files.output("--model-out", args.model_out.as_deref())?;
    let options = ReadOptions { sheet: args.sheet.clone(), ..ReadOptions::default() };
    let table = input::load(&args.data, args.folder.as_deref(), &options)?.table;
    if table.n_rows() == 0 {
        bail!("{} has a header but no rows", args.data);
    }
    let (model, columns) = match &args.model {
        Some(path) => {
            let model = read_latent(path)?;
            let columns = LatentColumns::of_model(&model, &path.display().to_string())?;
            (model, columns)
        }
        None => learn(&table, &settings)?,
    };
    let cells = columns.encode(&table)?;
    let keep_model = || match model_out {
        Some(model_out) => model_out.write_whole(&model.to_bytes()?),
        None => Ok(()),
    };
    let Some(out) = out else {
        keep_model()?;
        let mut sink = Sink::csv(io::stdout().lock(), args.digits);
        write(args, &table, &model, &columns, &cells, &mut sink)?;
        return sink.finish();
    };
    let written = out.path().to_owned();
    let mut draft = out.draft()?;
    let mut sink = Sink::new(&mut draft, &written, args.digits);
    write(args, &table, &model, &columns, &cells, &mut sink)?;
    sink.finish()?;
    draft.finish()?;
    keep_model()?;
    report(args, &table, &model, &columns)
}

fn learn(table: &Table, settings: &LatentSettings) -> Result<(LatentModel, LatentColumns)> {
    let (columns, left) = LatentColumns::of(table);
    if columns.is_empty() {
        bail!("{} has no column to learn from: {}", table.file(), left.join("; "));
    }
    for why in &left {
        note(&format!("note: {why}"));
    }
    let cells = columns.encode(table)?;
    let bar = bar("learning", 1000);
    let fitted = LatentModel::fit(cells.as_ref(), settings, &mut Watched(bar.clone()));
    bar.finish_and_clear();
    interrupt::check()?;
    let mut model = fitted?;
    columns.keep(&mut model)?;
    Ok((model, columns))
}

fn write(
    args: &ImputeArgs,
    table: &Table,
    model: &LatentModel,
    columns: &LatentColumns,
    cells: &Mat<f64>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let Some(draws) = args.draws else {
        let completed = model.impute(cells.as_ref())?;
        let filled = columns.decode(completed.values.as_ref(), Some(table), args.digits);
        let std = if args.std { columns.deviations(completed.std.as_ref()) } else { Vec::new() };
        return sink.write(in_place(table, &filled), std);
    };
    for (i, drawn) in model.draw_missing(cells.as_ref(), draws, args.seed)?.iter().enumerate() {
        interrupt::check()?;
        let filled = columns.decode(drawn.as_ref(), Some(table), args.digits);
        let number = Column::numbers("draw", vec![i as f64; table.n_rows()]);
        sink.write([number].into_iter().chain(in_place(table, &filled)).collect(), Vec::new())?;
    }
    Ok(())
}

/// The columns of the table in its order, those that were filled in place of the old ones.
fn in_place(table: &Table, filled: &[Column]) -> Vec<Column> {
    let usable = table.columns().iter().filter(|column| column.n_cells().is_some());
    usable.map(|old| filled.iter().find(|new| new.name == old.name).unwrap_or(old).clone()).collect()
}

fn report(args: &ImputeArgs, table: &Table, model: &LatentModel, columns: &LatentColumns) -> Result<()> {
    let missing = |name: &str| {
        let column = table.column(name).ok();
        column.map_or(0, |column| (0..table.n_rows()).filter(|&i| column.is_missing(i)).count())
    };
    let counts: Vec<(&str, usize)> = columns.names().map(|name| (name, missing(name))).collect();
    let filled: usize = counts.iter().map(|(_, count)| count).sum();
    let out = args.out.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    if args.json {
        return print_json(&json!({
            "rows": table.n_rows(),
            "filled": filled,
            "missing": counts.iter().map(|(name, count)| ((*name).to_owned(), json!(count))).collect::<serde_json::Map<String, Value>>(),
            "latents": model.n_latents(),
            "parts": model.n_parts(),
            "candidates": model.candidates(),
            "out": out,
            "model_out": args.model_out,
        }));
    }
    print(&format!(
        "{filled} missing cells of {} rows filled in, by {} hidden numbers and {} linear layer{}: {out}",
        table.n_rows(),
        model.n_latents(),
        model.n_parts(),
        if model.n_parts() == 1 { "" } else { "s" },
    ))
}
