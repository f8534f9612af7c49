//! A fit with default settings of the small tables the benchmark is made of, alone and as an ensemble.

use std::time::Instant;

use anyhow::Result;
use bayespc::{Model, ModelSettings, Samples};
use bayespc_cli::input::data_source;
use bayespc_cli::progress::bar;
use bayespc_data::{DataSource, load_uci};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::machine::pool;
use crate::{BenchArgs, Outcome, median, table};

/// Name, rows and features of the tables.
const TABLES: [(&str, usize, usize); 2] = [("yacht", 308, 6), ("energy", 768, 8)];
const MEMBERS: [usize; 2] = [1, 5];

/// A table to fit.
struct Table {
    name: String,
    features: Mat<f64>,
    targets: Mat<f64>,
}

/// Run the benchmark.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    // A fit takes a second: nobody should wait for a download longer than that.
    let source = DataSource { download: false, ..data_source(args.folder.as_deref()) };
    let tables: Vec<Table> = TABLES.iter().map(|&shape| load(shape, &source)).collect();
    let repeats = args.repeats.unwrap_or(3);
    let mut cases = Vec::new();
    for table in &tables {
        for members in MEMBERS {
            for &threads in &args.threads {
                cases.push((table, members, threads, Vec::new()));
            }
        }
    }
    let bar = bar("tabular", (cases.len() * repeats) as u64);
    for _ in 0..repeats {
        for (table, members, threads, seconds) in &mut cases {
            let mut settings = ModelSettings { members: *members, ..ModelSettings::fast() };
            settings.training.epochs = args.epochs.unwrap_or(settings.training.epochs);
            seconds.push(pool(*threads)?.install(|| seconds_to_fit(table, &settings))?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let runs: Vec<Value> = cases
        .iter()
        .map(|(table, members, threads, seconds)| {
            json!({
                "table": table.name, "rows": table.features.ncols(), "members": members, "threads": threads,
                "seconds_fit": median(seconds),
            })
        })
        .collect();
    let rows: Vec<Vec<String>> = cases
        .iter()
        .map(|(table, members, threads, seconds)| {
            vec![
                table.name.clone(),
                table.features.ncols().to_string(),
                members.to_string(),
                threads.to_string(),
                format!("{:.3}", median(seconds)),
            ]
        })
        .collect();
    let epochs = args.epochs.unwrap_or(ModelSettings::default().training.epochs);
    let heading = ["table", "rows", "members", "threads", "seconds"];
    let text = format!("tabular: default settings, {epochs} epochs\n\n{}", table(&heading, &rows));
    Ok(Outcome { json: json!({ "epochs": epochs, "runs": runs }), text })
}

fn seconds_to_fit(table: &Table, settings: &ModelSettings) -> bayespc::Result<f64> {
    let start = Instant::now();
    Model::fit(&Samples::new(&table.features, &table.targets)?, settings)?;
    Ok(start.elapsed().as_secs_f64())
}

/// The real table where it is at hand, one of its shape otherwise: the work is the same.
fn load((name, rows, features): (&str, usize, usize), source: &DataSource) -> Table {
    if let Ok(data) = load_uci(name, source, &mut |_, _| {}) {
        return Table { name: name.to_owned(), features: data.features, targets: data.targets };
    }
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let x = Mat::from_fn(features, rows, |_, _| rng.random_range(-1.7..1.7_f64));
    let y =
        Mat::from_fn(1, rows, |_, j| (x[(0, j)] * x[(1, j)]).sin() + 0.1 * rng.random_range(-1.7..1.7_f64));
    Table { name: format!("like {name}"), features: x, targets: y }
}
