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
//! They are set to the nearest value that is none, and an input tells so. As they are, a handful of them would set the
//! scale of the column, and a line drawn through them would be followed far from the data. A normal variable is as far
//! from its quartiles once in 10¹⁶⁰ times. Where training had none, a new value is taken as it is: far from the data
//! the model is unsure, as it should be.

use serde::{Deserialize, Serialize};

use super::sink::Sink;
use super::summary::short;
use super::{Cells, is_false};
use crate::Result;

/// How a number becomes inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberCoding {
    /// Training mean.
    pub mean: f64,
    /// Whether an input tells which cells were missing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub missing: bool,
    /// Least and largest value in training that is no outlier, if there were outliers; an input tells what is beyond.
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
    /// Learns the mean, and the limits unless the user has asked for numbers as they are.
    pub(super) fn learn(cells: &Cells<'_>, as_they_are: bool) -> Result<Self> {
        let mut known = Vec::with_capacity(cells.len());
        for i in 0..cells.len() {
            known.extend(cells.number(i)?);
        }
        let missing = known.len() < cells.len();
        let limits = if as_they_are { None } else { limits(&known) };
        let (mut mean, mut count) = (0.0, 0.0);
        for x in known.iter().map(|x| limits.map_or(*x, |(low, high)| x.clamp(low, high))) {
            // The running mean cannot overflow where a sum could.
            count += 1.0;
            mean += x / count - mean / count;
        }
        Ok(Self { mean, missing, limits })
    }

    /// What is set to the limits, in words.
    pub(super) fn remark(&self) -> Option<String> {
        let (low, high) = self.limits?;
        Some(format!("outliers beyond {} … {} set to these", short(low), short(high)))
    }

    pub(super) fn names(&self, column: &str) -> Vec<String> {
        let mut names = vec![column.to_owned()];
        names.extend(self.missing.then(|| missing_name(column)));
        names.extend(self.limits.map(|_| format!("{column}=(outlier)")));
        names
    }

    pub(super) fn encode(&self, cells: &Cells<'_>, sink: &mut Sink<'_>) -> Result<()> {
        for i in 0..cells.len() {
            let Some(x) = cells.number(i)? else {
                sink.set(0, i, self.mean);
                sink.hole(cells, i, self.missing.then_some(1))?;
                continue;
            };
            let near = self.limits.map_or(x, |(low, high)| x.clamp(low, high));
            sink.set(0, i, near);
            if near != x {
                sink.set(1 + usize::from(self.missing), i, 1.0);
            }
        }
        Ok(())
    }
}

/// Least and largest value that is no outlier, if there are outliers.
fn limits(known: &[f64]) -> Option<(f64, f64)> {
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
    let first = sorted.partition_point(|x| *x < lower - far);
    let end = sorted.partition_point(|x| *x <= upper + far);
    let outliers = first + n - end;
    (outliers > 0 && outliers * ONE_IN <= n).then(|| (sorted[first], sorted[end - 1]))
}

/// Name of the input that tells which cells were missing.
pub(super) fn missing_name(column: &str) -> String {
    format!("{column}=(missing)")
}
