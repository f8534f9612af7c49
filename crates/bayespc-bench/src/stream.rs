//! `fit --stream` over a made-up table, written as CSV and as Parquet: rows per second and memory.
//!
//! One network, and as many as the command has by default: scoring a mixture costs far more than scoring one
//! distribution. The search for settings is left out, since its time does not grow with the rows.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use bayespc::model::ModelSettings;
use bayespc_cli::input::TableArgs;
use bayespc_cli::progress::bar;
use bayespc_cli::stream::{self, Pass};
use parquet::data_type::DoubleType;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::machine::{cpu_seconds, peak_rss_mb, pool};
use crate::{BenchArgs, Outcome, median, table};

/// Columns of the table; the last one is the target.
const COLUMNS: usize = 100;
const TARGET: &str = "y";
/// Networks of an ensemble.
const MEMBERS: usize = 5;
/// Rows made up and written at a time.
const ROWS_AT_ONCE: usize = 10_000;

/// Run the benchmark.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    let rows = args.rows.unwrap_or(50_000);
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let csv = folder.path().join("table.csv");
    write_csv(&csv, rows).context("cannot write a temporary CSV file")?;
    let parquet = folder.path().join("table.parquet");
    write_parquet(&parquet, rows).context("cannot write a temporary Parquet file")?;
    let mut cases = Vec::new();
    for members in [1, MEMBERS] {
        for &threads in &args.threads {
            cases.push(("csv", &csv, members, threads, Vec::new(), Vec::new()));
            cases.push(("parquet", &parquet, members, threads, Vec::new(), Vec::new()));
        }
    }
    let repeats = args.repeats.unwrap_or(1);
    let bar = bar("stream", (cases.len() * repeats) as u64);
    for _ in 0..repeats {
        for (_, path, members, threads, seconds, cpu) in &mut cases {
            let settings = stream::defaults(ModelSettings { members: *members, ..ModelSettings::fast() });
            let before = cpu_seconds();
            seconds.push(
                pool(*threads)?
                    .install(|| stream::learn(&source(path), &settings, &Pass::default()))?
                    .seconds,
            );
            cpu.extend(before.zip(cpu_seconds()).map(|(before, after)| after - before));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let rate = |seconds: &[f64]| rows as f64 / median(seconds);
    let peak = peak_rss_mb();
    let runs: Vec<Value> = cases
        .iter()
        .map(|(format, _, members, threads, seconds, cpu)| {
            json!({
                "format": format, "rows": rows, "members": members, "threads": threads, "seconds": median(seconds),
                "rows_per_second": rate(seconds), "cpu_seconds": median(cpu),
            })
        })
        .collect();
    let lines: Vec<Vec<String>> = cases
        .iter()
        .map(|(format, _, members, threads, seconds, cpu)| {
            vec![
                (*format).to_owned(),
                members.to_string(),
                threads.to_string(),
                rows.to_string(),
                format!("{:.2}", median(seconds)),
                format!("{:.0}", rate(seconds)),
                format!("{:.2}", median(cpu)),
            ]
        })
        .collect();
    let memory =
        peak.map_or_else(String::new, |peak| format!("\n\npeak memory of this process {peak:.0} MB"));
    let heading =
        ["file", "members", "threads", "rows", "seconds", "rows per second", "seconds of all cores"];
    let text = format!(
        "stream: {COLUMNS} columns, default settings, a sample of every chunk scored before it is learned\n\n{}{memory}",
        table(&heading, &lines)
    );
    Ok(Outcome { json: json!({ "columns": COLUMNS, "peak_rss_mb": peak, "runs": runs }), text })
}

fn source(path: &Path) -> TableArgs {
    TableArgs { data: path.display().to_string(), target: vec![TARGET.to_owned()], ..TableArgs::default() }
}

fn names() -> Vec<String> {
    (1..COLUMNS).map(|i| format!("x{i}")).chain([TARGET.to_owned()]).collect()
}

/// Blocks of rows, each a list of columns; the same for both files.
fn blocks(rows: usize) -> impl Iterator<Item = Vec<Vec<f64>>> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    (0..rows).step_by(ROWS_AT_ONCE).map(move |start| {
        let n = ROWS_AT_ONCE.min(rows - start);
        let mut column = || (0..n).map(|_| rng.random_range(-1.7..1.7_f64)).collect::<Vec<f64>>();
        let mut columns: Vec<_> = (0..COLUMNS).map(|_| column()).collect();
        let target = (0..n).map(|j| (columns[0][j] * columns[1][j]).sin() + 0.1 * columns[COLUMNS - 1][j]);
        columns[COLUMNS - 1] = target.collect();
        columns
    })
}

fn write_csv(path: &Path, rows: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{}", names().join(","))?;
    for columns in blocks(rows) {
        for j in 0..columns[0].len() {
            for (i, column) in columns.iter().enumerate() {
                // Six digits, as measured values have them.
                write!(file, "{}{:.5}", if i == 0 { "" } else { "," }, column[j])?;
            }
            writeln!(file)?;
        }
    }
    file.flush()
}

fn write_parquet(path: &Path, rows: usize) -> Result<()> {
    let fields: Vec<String> = names().iter().map(|name| format!("REQUIRED DOUBLE {name};")).collect();
    let schema = parse_message_type(&format!("message schema {{ {} }}", fields.join(" ")))?;
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let mut writer = SerializedFileWriter::new(File::create(path)?, Arc::new(schema), Arc::new(properties))?;
    for columns in blocks(rows) {
        let mut group = writer.next_row_group()?;
        for column in &columns {
            let mut next = group.next_column()?.context("the schema has a column for every name")?;
            next.typed::<DoubleType>().write_batch(column, None, None)?;
            next.close()?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}
