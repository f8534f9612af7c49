//! Reading a CSV file of mixed columns: seconds, and memory against that of the encoded matrix.
//!
//! `scripts/read_times.py` makes the file and has other programs read it in the same minutes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use bayespc_cli::progress::bar;
use bayespc_data::{Encoding, EncodingOptions, Table};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::machine::{peak_rss_mb, pool};
use crate::{BenchArgs, Outcome, median, table};

/// Columns of the made-up file: measured numbers, counts, codes, words, dates, instants, bits.
const COLUMNS: [(&str, usize); 7] =
    [("real", 12), ("count", 5), ("code", 3), ("word", 4), ("day", 2), ("instant", 2), ("bit", 2)];
/// One cell in so many is empty.
const HOLES: u32 = 20;
const WORDS: [&str; 8] = ["Aarau", "Bern", "Chur", "Davos", "Genève", "\"Zürich, Stadt\"", "Uri", "Zug"];

/// Run the benchmark.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let path = args.file.clone().unwrap_or_else(|| folder.path().join("table.csv"));
    if args.file.is_none() {
        write_csv(&path, args.rows.unwrap_or(1_000_000)).context("cannot write a temporary CSV file")?;
    }
    let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
    let repeats = args.repeats.unwrap_or(3);
    let bar = bar("read", (args.threads.len() * repeats) as u64);
    let mut runs: Vec<(usize, Vec<f64>)> =
        args.threads.iter().map(|&threads| (threads, Vec::new())).collect();
    let (mut n_rows, mut n_columns) = (0, 0);
    for _ in 0..repeats {
        for (threads, seconds) in &mut runs {
            let start = Instant::now();
            let read = pool(*threads)?.install(|| Table::read(&path))?;
            seconds.push(start.elapsed().as_secs_f64());
            (n_rows, n_columns) = (read.n_rows(), read.columns().len());
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let peak = peak_rss_mb();
    let matrix = matrix_mb(&path)?;
    let with_matrix = peak_rss_mb();
    let lines: Vec<Vec<String>> = runs
        .iter()
        .map(|(threads, seconds)| {
            let seconds = median(seconds);
            vec![threads.to_string(), format!("{seconds:.2}"), format!("{:.0}", megabytes / seconds)]
        })
        .collect();
    let times: Vec<Value> =
        runs.iter().map(|(threads, s)| json!({ "threads": threads, "seconds": median(s) })).collect();
    let mb = |x: Option<f64>| x.map_or_else(|| "?".to_owned(), |x| format!("{x:.0} MB"));
    let text = format!(
        "read: {n_rows} rows of {n_columns} columns, {megabytes:.0} MB\n\n{}\n\npeak memory {} while reading, {} with the encoded matrix, which has {matrix:.0} MB",
        table(&["threads", "seconds", "MB per second"], &lines),
        mb(peak),
        mb(with_matrix),
    );
    let json = json!({
        "rows": n_rows, "columns": n_columns, "megabytes": megabytes, "runs": times, "peak_rss_mb": peak,
        "matrix_mb": matrix, "peak_rss_with_matrix_mb": with_matrix,
    });
    Ok(Outcome { json, text })
}

/// Size of the matrix that the columns become.
fn matrix_mb(path: &Path) -> Result<f64> {
    let table = Table::read(path)?;
    let encoding = Encoding::fit(&table, &[], &EncodingOptions::default())?;
    let features = encoding.transform(&table)?.features;
    Ok((features.nrows() * features.ncols() * size_of::<f64>()) as f64 / 1e6)
}

fn write_csv(path: &Path, rows: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let kinds: Vec<&str> = COLUMNS.iter().flat_map(|(kind, n)| std::iter::repeat_n(*kind, *n)).collect();
    let names: Vec<String> = kinds.iter().enumerate().map(|(i, kind)| format!("{kind}{i}")).collect();
    writeln!(file, "{}", names.join(","))?;
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for _ in 0..rows {
        for (i, kind) in kinds.iter().enumerate() {
            if i > 0 {
                file.write_all(b",")?;
            }
            if !rng.random_ratio(1, HOLES) {
                write_cell(&mut file, kind, &mut rng)?;
            }
        }
        file.write_all(b"\n")?;
    }
    Ok(file.flush()?)
}

fn write_cell(file: &mut impl Write, kind: &str, rng: &mut impl Rng) -> std::io::Result<()> {
    let (month, day) = (rng.random_range(1..=12), rng.random_range(1..=28));
    match kind {
        "real" => write!(file, "{:.5}", rng.random_range(-100.0..100.0_f64)),
        "count" => write!(file, "{}", rng.random_range(0..10_000)),
        "code" => write!(file, "k{:04}", rng.random_range(0..5000)),
        "word" => write!(file, "{}", WORDS[rng.random_range(0..WORDS.len())]),
        "day" => write!(file, "{}-{month:02}-{day:02}", rng.random_range(1990..2025)),
        "instant" => write!(
            file,
            "2024-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            rng.random_range(0..24),
            rng.random_range(0..60),
            rng.random_range(0..60)
        ),
        _ => write!(file, "{}", rng.random_bool(0.5)),
    }
}
