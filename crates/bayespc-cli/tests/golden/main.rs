//! Golden fits: predictions that a change of the code must keep.
//!
//! ```text
//! cargo test -p bayespc-cli --test golden                                   within the tolerances of golden.json
//! BAYESPC_GOLDEN_RECORD=FILE  cargo test --release … --test golden          record all results, full size
//! BAYESPC_GOLDEN_COMPARE=FILE cargo test --release … --test golden          compare them bit for bit
//! BAYESPC_GOLDEN_REFERENCE=1  cargo test -p bayespc-cli --test golden       make golden.json anew
//! ```
//!
//! `make golden-record` and `make golden-compare` call the second and third. Bits are those of one machine, since other
//! processors have other kernels: a record stays outside the repository. `golden.json` has quartiles with tolerances. Where
//! nothing is chosen from the data and all is in double precision (`exact`), the tolerance is [`ROUNDING`]. Where a search
//! chooses, rounding may change a choice, and the tolerance is [`DEVIATIONS`] standard deviations of the same quartile
//! over other seeds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cases;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use cases::{CASES, Case, Results, Size};

/// Tolerance, relative to the largest value, of fits in double precision that choose nothing: 10⁻¹⁶ of rounding, with room
/// for what some hundred steps of learning make of it.
const ROUNDING: f64 = 1e-6;

/// Standard deviations over seeds that a searched fit may differ by. A choice that flips changes it less than another
/// seed does, which changes initial weights and folds besides.
const DEVIATIONS: f64 = 4.0;

/// Seeds besides 0 that the deviations come from.
const SEEDS: u64 = 6;

/// Results of one fit.
type Record = BTreeMap<String, Vec<f64>>;

/// Lower quartile, median and upper quartile of the entries of one result.
type Quartiles = [f64; 3];

/// Committed quartiles of one result, each with its tolerance. (A mean would be that of the row far from all.)
#[derive(Serialize, Deserialize)]
struct Expected {
    quartiles: Quartiles,
    tolerances: Quartiles,
}

fn record(results: Results) -> Record {
    results.into_iter().map(|(name, values)| (name.to_owned(), values)).collect()
}

fn file(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

fn reference() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/golden.json")
}

fn write<T: Serialize>(path: &Path, content: &T) {
    std::fs::write(path, serde_json::to_string_pretty(content).unwrap() + "\n").unwrap();
}

fn quartiles(values: &[f64]) -> Quartiles {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [1, 2, 3].map(|k| sorted[k * (sorted.len() - 1) / 4])
}

/// Quartiles of each result with the tolerances that `case` has.
fn expected(case: &Case) -> BTreeMap<String, Expected> {
    let zero = record((case.run)(Size::Small, 0));
    let others: Vec<Record> = if case.exact {
        Vec::new()
    } else {
        (1..=SEEDS).map(|s| record((case.run)(Size::Small, s))).collect()
    };
    // Variances of searched fits differ between seeds by more than their size: a tolerance would check nothing.
    let is_kept = |name: &str| case.exact || !name.ends_with("variance");
    let expected_of = |(name, values): (String, Vec<f64>)| {
        let own = quartiles(&values);
        let size = values.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
        let tolerance = |k: usize| {
            let squares = others.iter().map(|other| (quartiles(&other[&name])[k] - own[k]).powi(2));
            let deviation = (squares.sum::<f64>() / SEEDS as f64).sqrt();
            if case.exact { ROUNDING * size } else { DEVIATIONS * deviation }
        };
        let tolerances = [0, 1, 2].map(tolerance);
        (name, Expected { quartiles: own, tolerances })
    };
    zero.into_iter().filter(|(name, _)| is_kept(name)).map(expected_of).collect()
}

/// What differs between two records of one case, with the largest change relative to the size of the values; nothing if
/// all bits are the same.
fn difference(before: &Record, now: &Record) -> Option<String> {
    let names: Vec<&String> =
        before.keys().chain(now.keys().filter(|name| !before.contains_key(*name))).collect();
    let lines = names.into_iter().filter_map(|name| {
        let (Some(before), Some(now)) = (before.get(name), now.get(name)) else {
            return Some(format!("{name}: only in one of the two"));
        };
        if before.len() != now.len() {
            return Some(format!("{name}: {} values, were {}", now.len(), before.len()));
        }
        let pairs = || before.iter().zip(now);
        let changed = pairs().filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        let size = before.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
        let largest = pairs().map(|(a, b)| (a - b).abs()).fold(0.0_f64, f64::max);
        (changed > 0).then(|| {
            format!(
                "{name}: {changed} of {} values, by up to {:.1e} of the largest",
                before.len(),
                largest / size
            )
        })
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

#[test]
fn golden_fits_predict_as_recorded() {
    if file("BAYESPC_GOLDEN_REFERENCE").is_some() {
        let all: BTreeMap<&str, _> = CASES.iter().map(|case| (case.name, expected(case))).collect();
        return write(&reference(), &all);
    }
    if let Some(path) = file("BAYESPC_GOLDEN_RECORD") {
        let all: BTreeMap<&str, Record> =
            CASES.iter().map(|case| (case.name, record((case.run)(Size::Full, 0)))).collect();
        return write(&path, &all);
    }
    if let Some(path) = file("BAYESPC_GOLDEN_COMPARE") {
        let text = std::fs::read_to_string(&path).unwrap();
        let before: BTreeMap<String, Record> = serde_json::from_str(&text).unwrap();
        assert_eq!(before.len(), CASES.len(), "the record has other cases");
        let changed = CASES.iter().filter_map(|case| {
            let now = record((case.run)(Size::Full, 0));
            Some(format!("{}: {}", case.name, difference(&before[case.name], &now)?))
        });
        let changed: Vec<String> = changed.collect();
        assert!(changed.is_empty(), "bits have changed\n{}", changed.join("\n"));
        return;
    }
    let text = std::fs::read_to_string(reference()).unwrap();
    let committed: BTreeMap<String, BTreeMap<String, Expected>> = serde_json::from_str(&text).unwrap();
    assert_eq!(committed.len(), CASES.len());
    for case in &CASES {
        let now = record((case.run)(Size::Small, 0));
        let then = &committed[case.name];
        for (name, Expected { quartiles: before, tolerances }) in then {
            let now = quartiles(&now[name]);
            let near = (0..3).all(|k| (now[k] - before[k]).abs() <= tolerances[k]);
            assert!(near, "{}, {name}: quartiles {now:?}, were {before:?} ± {tolerances:?}", case.name);
        }
    }
}

/// The comparison itself sees one bit.
#[test]
fn a_record_differs_by_one_bit() {
    let record = |value: f64| -> Record { [("mean".to_owned(), vec![2.0, value])].into() };
    assert_eq!(difference(&record(1.0), &record(1.0)), None);
    assert_eq!(difference(&record(f64::NAN), &record(f64::NAN)), None);
    let message = difference(&record(1.0), &record(1.0 + f64::EPSILON)).unwrap();
    assert!(message.contains("1 of 2 values") && message.contains("1.1e-16"), "{message}");
    assert!(difference(&record(1.0), &Record::new()).unwrap().contains("only in one"));
}
