//! The prediction along one column, the others as they are: of one row, or averaged over rows (partial dependence).
//!
//! ```text
//! mean(g)  = 1/n Σ_j m_j(g)                              m_j(g) = ⟨y | x_j with the column at g⟩
//! lower(g) = mean(g) + median_j (lower_j(g) − m_j(g))    upper likewise; of each variance the median over rows
//! ```
//!
//! Medians, since a single row far from the training data may have a variance above that of all others together.
//!
//! For classes the mean is a probability p, and by the law of total variance p (1 − p) has an epistemic part, the variance of
//! p under the posterior, and an aleatoric one, which is the rest. The interval is that of p: two-sided normal around
//! it with the epistemic deviation, within 0 and 1.

use faer::{Mat, MatRef};
use serde::Serialize;

use crate::base::check::{check_finite, inside_unit_interval};
use crate::data::{Inputs, Task};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::special::normal_quantile;

/// Codes drawn per component and class for the epistemic variance of a probability.
const DRAWS: usize = 32;

/// Rows that are predicted at a time.
const ROWS: usize = 1 << 14;

/// What a curve is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveSettings {
    /// Number of the target or class.
    pub target: usize,
    /// Probability of the interval.
    pub coverage: f64,
}

impl Default for CurveSettings {
    fn default() -> Self {
        Self { target: 0, coverage: 0.9 }
    }
}

/// The prediction at every point of a grid.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Curve {
    /// Mean, or probability of a class, averaged over rows.
    pub mean: Vec<f64>,
    /// Standard deviation of the noise, of the median row as the next three are.
    pub aleatoric_std: Vec<f64>,
    /// Standard deviation that more data would take away.
    pub epistemic_std: Vec<f64>,
    /// Lower end of the interval.
    pub lower: Vec<f64>,
    /// Upper end of the interval.
    pub upper: Vec<f64>,
}

impl Curve {
    /// Add a point: mean, both variances and both bounds of every row there.
    fn push(&mut self, rows: &[[f64; 5]]) {
        let mean = rows.iter().map(|row| row[0]).sum::<f64>() / rows.len() as f64;
        let of_rows = |value: &dyn Fn(&[f64; 5]) -> f64| median(rows.iter().map(value).collect());
        self.mean.push(mean);
        self.aleatoric_std.push(of_rows(&|row| row[1]).sqrt());
        self.epistemic_std.push(of_rows(&|row| row[2]).sqrt());
        self.lower.push(mean + of_rows(&|row| row[3] - row[0]));
        self.upper.push(mean + of_rows(&|row| row[4] - row[0]));
    }
}

/// Middle value of some that are not none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    0.5 * (values[(values.len() - 1) / 2] + values[values.len() / 2])
}

impl Model {
    /// The prediction with one feature of these samples put to each value of a grid. A single sample gives its own curve;
    /// of several the average of their means and the medians of their variances are taken.
    pub fn curve<'a>(
        &self,
        inputs: impl Into<Inputs<'a>>,
        feature: usize,
        grid: &[f64],
        settings: CurveSettings,
    ) -> Result<Curve> {
        let grid = Mat::from_fn(1, grid.len(), |_, g| grid[g]);
        self.curve_along(inputs, &[feature], grid.as_ref(), settings)
    }

    /// The same with several features put to the values in each column of `grid`, as a category asks that is several
    /// inputs.
    pub fn curve_along<'a>(
        &self,
        inputs: impl Into<Inputs<'a>>,
        features: &[usize],
        grid: MatRef<'_, f64>,
        settings: CurveSettings,
    ) -> Result<Curve> {
        let inputs = inputs.into();
        self.check_inputs(inputs)?;
        inside_unit_interval("coverage", settings.coverage)?;
        let (found, expected) = (grid.nrows(), features.len());
        if found != expected {
            return Err(Error::Shape { what: "grid", axis: "features", found, expected });
        }
        check_finite("grid", grid)?;
        let (d, n) = (self.n_features(), inputs.n_samples());
        for (name, number, most) in
            features.iter().map(|&f| ("feature", f, d)).chain([("target", settings.target, self.n_targets())])
        {
            if number >= most {
                let must_be = "the number of one the model has, from 0";
                return Err(Error::Setting { name, value: number as f64, must_be });
            }
        }
        let mut curve = Curve::default();
        let at_once = (ROWS / n).max(1);
        for first in (0..grid.ncols()).step_by(at_once) {
            let here = at_once.min(grid.ncols() - first);
            let rows = Mat::from_fn(d, here * n, |i, k| match features.iter().position(|&f| f == i) {
                Some(place) => grid[(place, first + k / n)],
                None => inputs.value(i, k % n),
            });
            self.along(rows.as_ref(), settings)?.chunks(n).for_each(|point| curve.push(point));
        }
        if self.task() != Task::Regression {
            let bounds = curve.lower.iter_mut().chain(&mut curve.upper);
            bounds.for_each(|bound| *bound = bound.clamp(0.0, 1.0));
        }
        Ok(curve)
    }

    /// Mean, both variances and both bounds of every sample.
    fn along(&self, rows: MatRef<'_, f64>, settings: CurveSettings) -> Result<Vec<[f64; 5]>> {
        let k = settings.target;
        let predictive = self.predict(rows)?;
        if self.task() == Task::Regression {
            let (mean, aleatoric, epistemic) =
                (predictive.mean(), predictive.aleatoric_variance(), predictive.epistemic_variance());
            let (lower, upper) = predictive.interval(settings.coverage)?;
            let all = |j: usize| [&mean, &aleatoric, &epistemic, &lower, &upper].map(|m| m[(k, j)]);
            return Ok((0..rows.ncols()).map(all).collect());
        }
        let p = predictive.class_probabilities(self.temperature())?;
        let variance = predictive.class_probability_variance(self.temperature(), DRAWS, 0)?;
        let reach = normal_quantile(0.5 + 0.5 * settings.coverage);
        let all = |j: usize| {
            let (p, own) = (p[(k, j)], p[(k, j)] * (1.0 - p[(k, j)]));
            let epistemic = variance[(k, j)].min(own);
            let half = reach * epistemic.sqrt();
            [p, own - epistemic, epistemic, (p - half).max(0.0), (p + half).min(1.0)]
        };
        Ok((0..rows.ncols()).map(all).collect())
    }
}
