//! A number is one input, as it is; the model scales it.
//!
//! ```text
//! known    x, 0
//! missing  mean of training, 1      the second input only where training had holes
//! ```
//!
//! A few cells may be so far from all others that they are not measured values but marks, such as 9999, or slips:
//!
//! ```text
//! outlier  |x − nearest quartile| > 20 · (upper − lower quartile),  in at most one cell of twenty
//! ```
//!
//! One that occurs more than once is a mark, and taken for missing, in other columns too if it is far from their
//! values; others are set to the nearest value that is no outlier. As they are, a handful of them would set the scale of
//! the column, and a line drawn through them would be followed far from the data. A normal variable is as far from its
//! quartiles once in 10¹⁶⁰ times. Where training had none, a new value is taken as it is: far from the data the model is
//! unsure, as it should be.

use serde::{Deserialize, Serialize};

use super::sink::Sink;
use super::summary::short;
use super::{Cells, Missing, is_false};
use crate::Result;

/// How a number becomes inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberCoding {
    /// Training mean.
    pub mean: f64,
    /// Whether an input tells which cells were missing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub missing: bool,
    /// Values that mark a missing cell, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<f64>,
    /// Least and largest value in training that is no outlier, if there were outliers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<(f64, f64)>,
}

/// Distance from the quartiles, in distances between them, beyond which a value is an outlier.
const FAR: f64 = 20.0;

/// Fewer values do not tell what is far.
const ENOUGH: usize = 50;

/// One in so many values may be an outlier.
const ONE_IN: usize = 20;

impl NumberCoding {
    /// Learns mean, marks and limits; of numbers that the user has asked for, or that must not be missing, no marks.
    pub(super) fn learn(cells: &Cells<'_>, asked: bool, policy: Missing) -> Result<Self> {
        Self::learn_with(cells, asked, policy, &[])
    }

    /// Learns, knowing marks of other columns: far from the values of this one they are marks here too.
    pub(super) fn learn_with(
        cells: &Cells<'_>,
        asked: bool,
        policy: Missing,
        others: &[f64],
    ) -> Result<Self> {
        let mut known = Vec::with_capacity(cells.len());
        for i in 0..cells.len() {
            known.extend(cells.number(i)?);
        }
        let mut coding =
            Self { mean: 0.0, missing: known.len() < cells.len(), marks: Vec::new(), limits: None };
        if !asked && let Some(fence) = Fence::of(&known) {
            if policy != Missing::Error {
                let twice = fence.outliers.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
                let others = others.iter().copied().filter(|mark| fence.is_beyond(*mark));
                coding.marks = twice.chain(others).collect();
                coding.marks.sort_unstable_by(f64::total_cmp);
                coding.marks.dedup();
                coding.missing |= fence.outliers.iter().any(|outlier| coding.marks.contains(outlier));
            }
            coding.limits = fence.limits;
        }
        let (mut mean, mut count) = (0.0, 0.0);
        for x in known.into_iter().filter_map(|x| coding.read(x)) {
            // The running mean cannot overflow where a sum could.
            count += 1.0;
            mean += x / count - mean / count;
        }
        Ok(Self { mean, ..coding })
    }

    /// What a number counts as; `None` for a mark.
    fn read(&self, x: f64) -> Option<f64> {
        if self.marks.contains(&x) {
            return None;
        }
        Some(self.limits.map_or(x, |(low, high)| x.clamp(low, high)))
    }

    /// What became of outliers, in words.
    pub(super) fn remark(&self) -> Option<String> {
        let (low, high) = self.limits?;
        if self.marks.is_empty() {
            return Some(format!("outliers beyond {} … {} set to these", short(low), short(high)));
        }
        let marks: Vec<String> = self.marks.iter().map(|mark| short(*mark)).collect();
        Some(format!("{} taken for missing", marks.join(", ")))
    }

    pub(super) fn names(&self, column: &str) -> Vec<String> {
        value_and_hole(column, self.missing)
    }

    pub(super) fn encode(&self, cells: &Cells<'_>, sink: &mut Sink<'_>) -> Result<()> {
        for i in 0..cells.len() {
            let x = cells.number(i)?.and_then(|x| self.read(x));
            sink.set(0, i, x.unwrap_or(self.mean));
            if x.is_none() {
                sink.hole(cells, i, self.missing.then_some(1))?;
            }
        }
        Ok(())
    }
}

/// What is far from most values, and the few values that are.
struct Fence {
    low: f64,
    high: f64,
    /// Sorted.
    outliers: Vec<f64>,
    /// Least and largest value that is no outlier, if there are outliers.
    limits: Option<(f64, f64)>,
}

impl Fence {
    /// `None` if values do not tell what is far, or too many are.
    fn of(known: &[f64]) -> Option<Self> {
        let n = known.len();
        if n < ENOUGH {
            return None;
        }
        let mut sorted = known.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (lower, upper) = (sorted[n / 4], sorted[n - 1 - n / 4]);
        let far = FAR * (upper - lower);
        // Half the values alike: there is no scale to tell far by.
        if !(far > 0.0 && far.is_finite()) {
            return None;
        }
        let (low, high) = (lower - far, upper + far);
        let first = sorted.partition_point(|x| *x < low);
        let end = sorted.partition_point(|x| *x <= high);
        let outliers = [&sorted[..first], &sorted[end..]].concat();
        let limits = (!outliers.is_empty()).then(|| (sorted[first], sorted[end - 1]));
        (outliers.len() * ONE_IN <= n).then_some(Self { low, high, outliers, limits })
    }

    fn is_beyond(&self, x: f64) -> bool {
        x < self.low || x > self.high
    }
}

/// Names of an input, and of the one that tells which cells were missing if there is one.
pub(super) fn value_and_hole(column: &str, missing: bool) -> Vec<String> {
    std::iter::once(column.to_owned()).chain(missing.then(|| missing_name(column))).collect()
}

/// Name of the input that tells which cells were missing.
pub(super) fn missing_name(column: &str) -> String {
    format!("{column}=(missing)")
}
