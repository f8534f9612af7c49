//! `bayespc generate`: new rows like those of a table.

use std::io;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::failure::usage;
use crate::impute::read_latent;
use crate::interrupt;
use crate::latent_columns::LatentColumns;
use crate::output::{Files, note};
use crate::sink::Sink;
use crate::threads;

/// Rows drawn at a time.
const BATCH: usize = 4096;

/// Draw new rows from a model of a table.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  bayespc impute patients.csv --out whole.csv --model-out patients.safetensors
  bayespc generate patients.safetensors --rows 1000 --out more.csv

Rows have the columns that the model knows, in their order. Numbers are drawn with the spread and the dependence the
table has, and are not rounded to what the table holds: a count may come out broken, and a share below 0. Same seed,
same rows; more rows begin with the same ones.")]
pub struct GenerateArgs {
    /// Model of `bayespc impute --model-out`, or that `BPCDensity.save` wrote
    model: PathBuf,
    /// How many rows
    #[arg(long, value_name = "N")]
    rows: usize,
    /// File to write, as Parquet if its name ends so, else as CSV; standard output if not given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Significant digits of numbers, 1 to 17
    #[arg(long, value_name = "N", default_value_t = 6)]
    digits: usize,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    seed: u64,
    /// Threads to use; never changes a result
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Run the command.
pub fn run(args: &GenerateArgs) -> Result<()> {
    threads::set(args.threads)?;
    if args.rows == 0 {
        return Err(usage("--rows 0: give at least 1"));
    }
    if !(1..=17).contains(&args.digits) {
        return Err(usage(format!("--digits {}: a number has 1 to 17 of them", args.digits)));
    }
    let mut files = Files::default();
    files.reads("the model", &args.model);
    let out = files.output("--out", args.out.as_deref())?;
    let Some(out) = out else {
        let mut sink = Sink::csv(io::stdout().lock(), args.digits);
        write(args, &mut sink)?;
        return sink.finish();
    };
    let written = out.path().to_owned();
    let mut draft = out.draft()?;
    let mut sink = Sink::new(&mut draft, &written, args.digits);
    write(args, &mut sink)?;
    sink.finish()?;
    draft.finish()?;
    note(&format!("{} rows written to {}", args.rows, written.display()));
    Ok(())
}

fn write(args: &GenerateArgs, sink: &mut Sink<'_>) -> Result<()> {
    let model = read_latent(&args.model)?;
    let columns = LatentColumns::of_model(&model, &args.model.display().to_string())?;
    let mut done = 0;
    while done < args.rows {
        interrupt::check()?;
        let n = BATCH.min(args.rows - done);
        let rows = model.sample_from(done as u64, n, args.seed)?;
        sink.write(columns.decode(rows.as_ref(), None, args.digits), Vec::new())?;
        done += n;
    }
    Ok(())
}
