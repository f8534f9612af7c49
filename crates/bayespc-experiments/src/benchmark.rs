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
const OTHERS: [(&str, &str); 4] = [
    ("bbb", "Bayes by backprop"),
    ("ngboost", "NGBoost"),
    ("gp", "Gaussian process"),
    ("mc_dropout", "MC dropout"),
];

/// Published RMSE and log density on housing, concrete, energy, power, wine and yacht; same protocol, not always
/// the same splits.
const PUBLISHED: [(&str, [(&str, &str); 6]); 6] = [
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
];

/// Order of the published columns.
const COLUMNS: [&str; 6] = ["housing", "concrete", "energy", "power", "wine", "yacht"];

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
    for (name, label) in &learners {
        for (metric, shown) in [("rmse", "RMSE"), ("ll", "LL")] {
            let cell = |dataset: &String| {
                estimate(&all, dataset, name, metric).map_or_else(String::new, |v| format!("{v:.3}"))
            };
            rows.push(row(label, shown, datasets.iter().map(cell)));
        }
        for (metric, shown) in
            [("crps", "CRPS"), ("coverage_90", "90 % coverage"), ("seconds_fit", "seconds per fit")]
        {
            let cell = |dataset: &String| {
                estimate(&all, dataset, name, metric).map_or_else(String::new, |v| format!("{:.3}", v.mean))
            };
            rows.push(row(label, shown, datasets.iter().map(cell)));
        }
    }
    let mut published = Vec::new();
    for (label, values) in PUBLISHED {
        let of = |dataset: &String| COLUMNS.iter().position(|column| column == dataset).map(|k| values[k]);
        let cell = |dataset: &String| of(dataset).map_or_else(String::new, |(e, l)| format!("{e} / {l}"));
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

fn row(label: &str, score: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    [label.to_owned(), score.to_owned()].into_iter().chain(cells).collect()
}
