//! How a prediction changes along each column, all others as they are in the row.
//!
//! ```text
//! lower, upper               the interval of the level
//! noise_lower, noise_upper   the part of it that noise alone would take: ⟨y⟩ + √(A/(A+E)) (bound − ⟨y⟩)
//! ```
//!
//! For classes: the probability of one of them, and one standard deviation of it on either side.

use faer::Mat;
use serde_json::{Value, json};

use super::RowRequest;
use crate::answer::{likeliest, probability_std};
use crate::cells::{Cell, Columns, table};
use crate::columns::{ColumnInfo, Values, written};
use crate::problem::Problem;
use crate::request::Asked;
use crate::served::Served;

/// Places along a column of numbers, and values of a category that are looked at.
const PLACES: usize = 41;
const MOST: usize = 24;

/// How far beyond the training range to go, in its length.
const BEYOND: f64 = 0.15;

/// Columns at most, in one request.
const COLUMNS: usize = 100;

/// Curves along the columns that are asked for.
pub fn curves(served: &Served, request: &RowRequest) -> Result<Value, Problem> {
    let asked = request.asked()?;
    let base = request.cells()?;
    let present: Vec<&str> = base.iter().map(|(name, _)| name.as_str()).collect();
    served.check_columns(&present)?;
    let columns: Vec<&ColumnInfo> = match &request.columns {
        None => served.columns.iter().take(COLUMNS).collect(),
        Some(names) => {
            let find = |name: &String| {
                served
                    .columns
                    .iter()
                    .find(|column| column.name == *name)
                    .ok_or_else(|| Problem::bad(format!("the model has no column `{name}`")).column(name))
            };
            names.iter().take(COLUMNS).map(find).collect::<Result<_, _>>()?
        }
    };
    let along: Vec<(&ColumnInfo, Vec<Cell>)> = columns
        .into_iter()
        .map(|column| (column, places(column)))
        .filter(|(_, places)| places.len() > 1)
        .collect();
    let features = served.rows(&table(served, &varied(&base, &along))?, true)?.features;
    let of = match request.of {
        Some(of) => of,
        // The likeliest class of the row itself, wherever the curves lead.
        None if served.is_classifier() => {
            let row = served.rows(&table(served, &request.columns()?)?, true)?.features;
            likeliest(&served.model.predict_probabilities(&row)?, 0)
        }
        None => 0,
    };
    let bands = Bands::of(served, &features, of, &asked)?;
    let mut at = 0;
    let mut curves = Vec::with_capacity(along.len());
    for (column, places) in &along {
        let span = at..at + places.len();
        at = span.end;
        let x: Vec<Value> = places
            .iter()
            .map(|cell| match cell {
                Cell::Number(x) => json!(x),
                other => json!(other.text()),
            })
            .collect();
        curves.push(bands.curve(&column.name, &x, span));
    }
    Ok(json!({ "curves": curves, "of": bands.of, "level": asked.level }))
}

/// Values of a column to look at.
fn places(column: &ColumnInfo) -> Vec<Cell> {
    let between =
        |low: f64, high: f64, n: usize| (0..n).map(move |i| low + (high - low) * i as f64 / (n - 1) as f64);
    match &column.values {
        Values::Number { range: (low, high), integer, .. } => {
            let beyond = BEYOND * (high - low);
            let (low, high) = (low - beyond, high + beyond);
            if *integer && high - low < PLACES as f64 {
                let (low, high) = (low.ceil() as i64, high.floor() as i64);
                return (low..=high).map(|x| Cell::Number(x as f64)).collect();
            }
            between(low, high, PLACES).map(Cell::Number).collect()
        }
        Values::Time { range: (from, to), clock, .. } => {
            // In milliseconds; beyond midnight there is no time of day.
            let beyond = if *clock { 0.0 } else { BEYOND * (to - from) };
            let time = |ms: f64| Cell::Text(written((ms * 1000.0) as i64, *clock));
            between(from - beyond, to + beyond, PLACES).map(time).collect()
        }
        Values::Category { values } => {
            values.iter().take(MOST).map(|share| Cell::Text(share.value.clone())).collect()
        }
        Values::Bool { .. } => vec![Cell::Bool(false), Cell::Bool(true)],
        Values::Text => Vec::new(),
    }
}

/// The row again and again, with one column after the other varied.
fn varied(base: &[(String, Cell)], along: &[(&ColumnInfo, Vec<Cell>)]) -> Columns {
    let column = |(name, cell): &(String, Cell)| {
        let mut cells = Vec::new();
        for (column, places) in along {
            if column.name == *name {
                cells.extend(places.iter().cloned());
            } else {
                cells.extend(std::iter::repeat_n(cell.clone(), places.len()));
            }
        }
        (name.clone(), cells)
    };
    base.iter().map(column).collect()
}

/// What is predicted at all places, and both bands.
struct Bands {
    /// Which target or class.
    of: usize,
    mean: Vec<f64>,
    interval: [Vec<f64>; 2],
    noise: Option<[Vec<f64>; 2]>,
    ood: Vec<f64>,
}

impl Bands {
    fn of(served: &Served, features: &Mat<f64>, k: usize, asked: &Asked) -> Result<Self, Problem> {
        let predictive = served.model.predict(features)?;
        let ood = served.model.unlike(features, &predictive);
        let n = features.ncols();
        if served.is_classifier() {
            let temperature = served.model.temperature();
            let p = predictive.class_probabilities(temperature)?;
            let spread = probability_std(served, &predictive)?;
            let bound =
                |sign: f64| (0..n).map(|j| (p[(k, j)] + sign * spread[(k, j)]).clamp(0.0, 1.0)).collect();
            let mean = (0..n).map(|j| p[(k, j)]).collect();
            return Ok(Self { of: k, mean, interval: [bound(-1.0), bound(1.0)], noise: None, ood });
        }
        let row = |matrix: &Mat<f64>| -> Vec<f64> { (0..n).map(|j| matrix[(k, j)]).collect() };
        let (mean, (lower, upper)) = (row(&predictive.mean()), predictive.interval(asked.level)?);
        let (a, e) = (row(&predictive.aleatoric_variance()), row(&predictive.epistemic_variance()));
        let within = |bound: &Mat<f64>| {
            let part = |j: usize| if a[j] + e[j] > 0.0 { (a[j] / (a[j] + e[j])).sqrt() } else { 0.0 };
            (0..n).map(|j| mean[j] + part(j) * (bound[(k, j)] - mean[j])).collect()
        };
        let noise = Some([within(&lower), within(&upper)]);
        Ok(Self { of: k, interval: [row(&lower), row(&upper)], noise, mean, ood })
    }

    fn curve(&self, column: &str, x: &[Value], span: std::ops::Range<usize>) -> Value {
        let mut curve = json!({
            "column": column,
            "x": x,
            "mean": self.mean[span.clone()],
            "lower": self.interval[0][span.clone()],
            "upper": self.interval[1][span.clone()],
            "ood_score": self.ood[span.clone()],
        });
        if let Some([lower, upper]) = &self.noise {
            curve["noise_lower"] = json!(lower[span.clone()]);
            curve["noise_upper"] = json!(upper[span]);
        }
        curve
    }
}
