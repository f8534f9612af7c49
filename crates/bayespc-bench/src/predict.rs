//! The four ways to predict a large table with its standard deviation, against the plain forward pass.

use std::time::Instant;

use anyhow::Result;
use bayespc::data::Dataset;
use bayespc::learners::{Bpc, Rule};
use bayespc::network::{CovarianceRule, Network, NetworkSettings};
use bayespc::prediction::{self, Method};
use bayespc::training::{self, Silent, TrainingSettings};
use bayespc_cli::progress::bar;
use faer::{Mat, MatRef};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::machine::{peak_rss_mb, pool};
use crate::{BenchArgs, Outcome, median, table};

const COLUMNS: usize = 20;
/// Rows the network learns from before it predicts.
const LEARNED: usize = 512;

/// A way to predict, and the share of the rows it is given: slow ones are measured on fewer.
struct Way {
    name: &'static str,
    /// The plain forward pass has none.
    method: Option<Method>,
    share: usize,
}

const WAYS: [Way; 5] = [
    Way { name: "forward", method: None, share: 1 },
    Way { name: "mean", method: Some(Method::Mean), share: 1 },
    Way { name: "linearised", method: Some(Method::Linearised), share: 1 },
    Way {
        name: "monte_carlo",
        method: Some(Method::MonteCarlo { draws: 20, seed: 0, layer_noise: false }),
        share: 4,
    },
    Way { name: "moments", method: Some(Method::Moments { covariance: CovarianceRule::Exact }), share: 1000 },
];

/// Run the benchmark.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    let rows = args.rows.unwrap_or(1_000_000);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let input = Mat::from_fn(COLUMNS, rows, |_, _| rng.random_range(-1.7..1.7_f64));
    let network = network()?;
    let mut cases: Vec<(&Way, usize, usize, Vec<f64>)> = Vec::new();
    for &threads in &args.threads {
        cases.extend(WAYS.iter().map(|way| (way, rows.div_ceil(way.share), threads, Vec::new())));
    }
    let repeats = args.repeats.unwrap_or(3);
    let bar = bar("predict", (cases.len() * repeats) as u64);
    for _ in 0..repeats {
        for (way, rows, threads, seconds) in &mut cases {
            let part = input.subcols(0, *rows);
            seconds.push(pool(*threads)?.install(|| seconds_to_predict(&network, part, way.method))?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let per_row = |case: &(&Way, usize, usize, Vec<f64>)| median(&case.3) / case.1 as f64;
    let forward = |threads: usize| {
        cases.iter().find(|case| case.0.method.is_none() && case.2 == threads).map_or(f64::NAN, per_row)
    };
    let runs: Vec<Value> = cases
        .iter()
        .map(|case| {
            json!({
                "method": case.0.name, "rows": case.1, "threads": case.2, "seconds": median(&case.3),
                "microseconds_per_row": 1e6 * per_row(case), "ratio_to_forward": per_row(case) / forward(case.2),
            })
        })
        .collect();
    let lines: Vec<Vec<String>> = cases
        .iter()
        .map(|case| {
            vec![
                case.0.name.to_owned(),
                case.2.to_string(),
                case.1.to_string(),
                format!("{:.3}", median(&case.3)),
                format!("{:.3}", 1e6 * per_row(case)),
                format!("{:.1}", per_row(case) / forward(case.2)),
            ]
        })
        .collect();
    let heading = ["method", "threads", "rows", "seconds", "µs per row", "× forward"];
    let text = format!(
        "predict: {COLUMNS} columns through 50-50 to one output, f64, with standard deviation\n\n{}",
        table(&heading, &lines)
    );
    Ok(Outcome { json: json!({ "columns": COLUMNS, "peak_rss_mb": peak_rss_mb(), "runs": runs }), text })
}

fn seconds_to_predict(
    network: &Network<f64>,
    input: MatRef<'_, f64>,
    method: Option<Method>,
) -> bayespc::Result<f64> {
    let start = Instant::now();
    if let Some(method) = method {
        let predictive = prediction::predict(network, input, method)?;
        std::hint::black_box((predictive.mean(), predictive.std()));
    } else {
        std::hint::black_box(network.forward(input)?);
    }
    Ok(start.elapsed().as_secs_f64())
}

/// A network that has seen some data.
fn network() -> bayespc::Result<Network<f64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let input = Mat::from_fn(COLUMNS, LEARNED, |_, _| rng.random_range(-1.7..1.7_f64));
    let target = Mat::from_fn(1, LEARNED, |_, j| (input[(0, j)] * input[(1, j)]).sin());
    let data = Dataset::new(input.as_ref(), target.as_ref())?;
    let network = Network::new(&NetworkSettings::default(), COLUMNS, 1, &mut training::init_rng(0))?;
    let mut learner = Bpc::new(network, Rule::default())?;
    let settings = TrainingSettings { epochs: 5, ..TrainingSettings::default() };
    training::fit(&mut learner, &data, &settings, &mut Silent)?;
    learner.into_network()
}
