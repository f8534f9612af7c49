//! The benchmark: the command's default beside baselines, other programs and published numbers.

use std::path::Path;

use crate::error::Result;
use crate::records::Records;
use crate::report::{Block, Section};
use crate::reproduce::{error_and_density, estimate, table};
use crate::spec::Spec;

/// Records of other programs, written by scripts/peers_tables.py into the same folder.
const PEERS: &str = "benchmark-peers.csv";

/// Records of Table 1, whose Bayes by backprop has the same splits.
const TABLE1: &str = "table1.csv";

/// What other records may hold, as they name it.
pub const OTHERS: [(&str, &str); 7] = [
    ("bbb", "Bayes by backprop"),
    ("ngboost", "NGBoost"),
    ("gp", "Gaussian process"),
    ("mc_dropout", "MC dropout"),
    ("deep_ensemble", "deep ensemble"),
    ("xgboost", "XGBoost"),
    ("catboost", "CatBoost"),
];

/// What was not published.
const NONE: &str = "–";

/// Published RMSE and log density on housing, concrete, energy, power, wine and yacht; same protocol, not always
/// the same splits.
const PUBLISHED: [(&str, [(&str, &str); 6]); 9] = [
    (
        "BPC, as printed",
        [
            ("2.62", "−2.71"),
            ("5.60", "−3.41"),
            ("1.51", "−2.03"),
            ("4.13", "−2.98"),
            (".60", "−2.28"),
            ("2.08", "−1.97"),
        ],
    ),
    (
        "MC dropout (2018)",
        [
            ("2.90", "−2.40"),
            ("4.82", "−2.93"),
            (".54", "−1.21"),
            ("4.01", "−2.80"),
            (".62", "−.93"),
            (".67", "−1.25"),
        ],
    ),
    (
        "deep ensembles (2017)",
        [
            ("3.28", "−2.41"),
            ("6.03", "−3.06"),
            ("2.09", "−1.38"),
            ("4.11", "−2.79"),
            (".64", "−.94"),
            ("1.58", "−1.18"),
        ],
    ),
    (
        "NGBoost (2020)",
        [
            ("2.94", "−2.43"),
            ("5.06", "−3.04"),
            (".46", "−.60"),
            ("3.79", "−2.79"),
            (".63", "−.91"),
            (".50", "−.20"),
        ],
    ),
    (
        "CARD (2022)",
        [
            ("2.62", "−2.32"),
            ("4.92", "−2.99"),
            (".69", "−1.12"),
            ("3.91", "−2.82"),
            (".62", "−.87"),
            (".56", "−.89"),
        ],
    ),
    (
        "WGBoost (2024)",
        [
            ("2.78", "−2.47"),
            ("4.15", "−2.83"),
            (".42", "−.53"),
            ("3.19", "−2.60"),
            (".61", "−.95"),
            (".48", "−.16"),
        ],
    ),
    (
        "TabPFN v2 (2025), pre-trained, same splits, third party",
        [
            (NONE, NONE),
            ("3.86", "−2.21"),
            (".423", "−.15"),
            ("3.00", "−2.28"),
            (".626", NONE),
            (".417", "+.73"),
        ],
    ),
    (
        "XGBoost, tuned, same splits, third party",
        [(NONE, NONE), ("4.36", NONE), (".32", NONE), ("3.07", NONE), (".564", NONE), (".80", NONE)],
    ),
    (
        "CatBoost, same splits, third party",
        [(NONE, NONE), ("4.65", NONE), (".50", NONE), ("3.65", NONE), (".600", NONE), ("1.22", NONE)],
    ),
];

/// Order of the published columns.
const COLUMNS: [&str; 6] = ["housing", "concrete", "energy", "power", "wine", "yacht"];

/// Metrics, how they are shown, and whether with a standard error.
const SCORES: [(&str, &str, bool); 5] = [
    ("rmse", "RMSE", true),
    ("ll", "LL", true),
    ("crps", "CRPS", false),
    ("coverage_90", "90 % coverage", false),
    ("seconds_fit", "seconds per fit", false),
];

/// Tables and figure of the benchmark; records of Table 1 and of other programs are taken from `out` if they are there.
pub fn section(spec: &Spec, records: &Records, out: &Path) -> Result<Section> {
    let mut all = records.clone();
    for file in [TABLE1, PEERS] {
        let path = out.join(file);
        if path.is_file() {
            all = all.with(&Records::read(&path)?);
        }
    }
    let datasets: Vec<String> = spec.runs.iter().map(|run| run.dataset.clone()).collect();
    let first = spec.runs.first().map_or(&[][..], |run| &run.learners[..]);
    let own = first.iter().map(|name| (name.as_str(), spec.learners[name].label.as_str()));
    let there = |name: &str| all.rows().iter().any(|record| record.learner == name);
    let learners: Vec<(&str, &str)> = own.chain(OTHERS).filter(|(name, _)| there(name)).collect();

    let mut rows = Vec::new();
    for learner in &learners {
        rows.extend(score_rows(&all, *learner, &datasets, &SCORES));
    }
    let mut published = Vec::new();
    for (label, values) in PUBLISHED {
        let of = |dataset: &String| COLUMNS.iter().position(|column| column == dataset).map(|k| values[k]);
        let cell = |dataset: &String| match of(dataset) {
            None => String::new(),
            Some((NONE, NONE)) => NONE.to_owned(),
            Some((error, density)) => format!("{error} / {density}"),
        };
        published.push(row(label, "RMSE / LL", datasets.iter().map(cell)));
    }
    let header: Vec<&str> =
        ["method", "score"].into_iter().chain(datasets.iter().map(String::as_str)).collect();
    let svg = error_and_density(&all, &learners, &datasets, ("ll", "LL (original units)"), (-4.0, 1.0))?;
    Ok(Section {
        heading: "Benchmark".to_owned(),
        blocks: vec![
            table("Mean ± standard error over the standard splits, original units.", &header, rows),
            Block::Figure { svg, caption: "The same as a picture; bars are standard errors.".to_owned() },
            table("Published numbers.", &header, published),
        ],
    })
}

/// A row for each score the learner has, a cell for each data set.
pub fn score_rows(
    records: &Records,
    (name, label): (&str, &str),
    datasets: &[String],
    scores: &[(&str, &str, bool)],
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for &(metric, shown, with_error) in scores {
        let cell = |dataset: &String| match estimate(records, dataset, name, metric) {
            None => String::new(),
            Some(value) if with_error => format!("{value:.3}"),
            Some(value) => format!("{:.3}", value.mean),
        };
        let cells: Vec<String> = datasets.iter().map(cell).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            rows.push(row(label, shown, cells.into_iter()));
        }
    }
    rows
}

fn row(label: &str, score: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    [label.to_owned(), score.to_owned()].into_iter().chain(cells).collect()
}
