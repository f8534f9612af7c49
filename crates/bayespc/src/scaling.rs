//! Standardisation of features and targets: offset and scale per row, fitted on training data.
//!
//! ```text
//! m = Σ w_i x_i / Σ w_i ,   s² = Σ w_i (x_i − m)² / Σ w_i ,   x ↦ (x − m)/s
//! ```
//!
//! A constant row gets s = 1, so that it becomes zero and not NaN. Sums are of quantities divided by the
//! largest deviation: they neither overflow nor underflow at any magnitude the input itself can have.

use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::real::Real;

/// Offset and scale of each of d rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standardiser {
    /// Means m, one per row.
    pub offset: Vec<f64>,
    /// Standard deviations s > 0, one per row; 1 for a constant row.
    pub scale: Vec<f64>,
}

impl Standardiser {
    /// Leaves `d` rows as they are.
    pub fn identity(d: usize) -> Self {
        Self {
            offset: vec![0.0; d],
            scale: vec![1.0; d],
        }
    }

    /// Mean and population standard deviation of each row of `data` (`d × n`).
    pub fn fit<T: Real>(data: MatRef<'_, T>) -> Result<Self> {
        Self::fit_with(data, |_| 1.0)
    }

    /// Mean and standard deviation of each row of `data` (`d × n`), sample i counting `weights[i]` times.
    pub fn fit_weighted<T: Real>(data: MatRef<'_, T>, weights: &[f64]) -> Result<Self> {
        if weights.len() != data.ncols() {
            let expected = data.ncols();
            return Err(Error::Shape {
                what: "sample weights",
                axis: "samples",
                found: weights.len(),
                expected,
            });
        }
        if let Some(&value) = weights
            .iter()
            .find(|weight| !weight.is_finite() || **weight < 0.0)
        {
            return Err(Error::Setting {
                name: "sample weight",
                value,
                must_be: "finite and not negative",
            });
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return Err(Error::Empty {
                what: "set of samples with positive weight",
            });
        }
        Self::fit_with(data, |sample| weights[sample] / largest)
    }

    fn fit_with<T: Real>(data: MatRef<'_, T>, weight: impl Fn(usize) -> f64) -> Result<Self> {
        if data.ncols() == 0 {
            return Err(Error::Empty {
                what: "data to standardise",
            });
        }
        let mut fitted = Self::identity(data.nrows());
        for row in 0..data.nrows() {
            for sample in 0..data.ncols() {
                let value = data[(row, sample)].as_f64();
                if !value.is_finite() {
                    return Err(Error::NotFinite {
                        what: "data to standardise",
                        row: sample,
                        column: row,
                        value,
                    });
                }
            }
            let values = || {
                (0..data.ncols())
                    .map(|sample| (data[(row, sample)].as_f64(), weight(sample)))
                    .filter(|&(_, weight)| weight > 0.0)
            };
            (fitted.offset[row], fitted.scale[row]) = moments(values, T::epsilon().as_f64());
        }
        Ok(fitted)
    }

    /// Number of rows d.
    pub fn dim(&self) -> usize {
        self.offset.len()
    }

    /// (x − m)/s of each column of `data` (`d × n`).
    pub fn apply<T: Real>(&self, data: MatRef<'_, T>) -> Result<Mat<T>> {
        self.check_rows(data.nrows())?;
        Ok(Mat::from_fn(data.nrows(), data.ncols(), |row, sample| {
            T::lit((data[(row, sample)].as_f64() - self.offset[row]) / self.scale[row])
        }))
    }

    /// m + s x of each column of `data` (`d × n`).
    pub fn undo<T: Real>(&self, data: MatRef<'_, T>) -> Result<Mat<T>> {
        self.check_rows(data.nrows())?;
        Ok(Mat::from_fn(data.nrows(), data.ncols(), |row, sample| {
            T::lit(self.offset[row] + self.scale[row] * data[(row, sample)].as_f64())
        }))
    }

    /// This standardises `d` rows, by finite offsets and positive scales.
    pub fn validate(&self, d: usize) -> Result<()> {
        for (what, found) in [("offset", self.offset.len()), ("scale", self.scale.len())] {
            if found != d {
                return Err(Error::Shape {
                    what,
                    axis: "rows",
                    found,
                    expected: d,
                });
            }
        }
        if let Some(&value) = self.offset.iter().find(|offset| !offset.is_finite()) {
            return Err(Error::Setting {
                name: "offset",
                value,
                must_be: "finite",
            });
        }
        if let Some(&value) = self
            .scale
            .iter()
            .find(|scale| !scale.is_finite() || **scale <= 0.0)
        {
            return Err(Error::Setting {
                name: "scale",
                value,
                must_be: "positive and finite",
            });
        }
        Ok(())
    }

    fn check_rows(&self, found: usize) -> Result<()> {
        if found == self.dim() {
            return Ok(());
        }
        Err(Error::Shape {
            what: "data to standardise",
            axis: "rows",
            found,
            expected: self.dim(),
        })
    }
}

/// Offset and scale of one row; `values` gives pairs of value and weight > 0.
fn moments<I: Iterator<Item = (f64, f64)>>(values: impl Fn() -> I, epsilon: f64) -> (f64, f64) {
    // A running mean is as large as the values and never as large as their sum.
    let (mut offset, mut total) = (0.0, 0.0);
    for (value, weight) in values() {
        total += weight;
        // Halves, because the difference of two huge values of opposite sign overflows.
        offset += 2.0 * (weight / total) * (0.5 * value - 0.5 * offset);
    }
    let magnitude = values().map(|(value, _)| value.abs()).fold(0.0, f64::max);
    let deviation = values()
        .map(|(value, _)| (value - offset).abs())
        .fold(0.0, f64::max);
    // What rounding alone does to a constant row.
    if deviation <= 8.0 * epsilon * magnitude || !deviation.is_finite() {
        return (offset, 1.0);
    }
    let square: f64 = values()
        .map(|(value, weight)| weight * ((value - offset) / deviation).powi(2))
        .sum();
    let scale = deviation * (square / total).sqrt();
    // A weight can be so small that only rounding is left of the row's spread.
    (
        offset,
        if scale > 8.0 * epsilon * magnitude {
            scale
        } else {
            1.0
        },
    )
}
