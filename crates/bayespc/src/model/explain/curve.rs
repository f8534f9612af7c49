//! The prediction along one column, the others as they are: of one row, or averaged over rows (partial dependence).
//!
//! ```text
//! mean(g) = 1/n Σ_j ⟨y | x_j with the column at g⟩       variances and bounds of the interval are averaged alike
//! ```
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
    /// Mean, or probability of a class.
    pub mean: Vec<f64>,
    /// Standard deviation of the noise.
    pub aleatoric_std: Vec<f64>,
    /// Standard deviation that more data would take away.
    pub epistemic_std: Vec<f64>,
    /// Lower end of the interval.
    pub lower: Vec<f64>,
    /// Upper end of the interval.
    pub upper: Vec<f64>,
}

impl Model {
    /// The prediction with one feature of these samples put to each value of a grid. A single sample gives its own curve;
    /// of several the average is taken.
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
        let mut sums = vec![[0.0; 5]; grid.ncols()];
        let at_once = (ROWS / n).max(1);
        for first in (0..grid.ncols()).step_by(at_once) {
            let here = at_once.min(grid.ncols() - first);
            let rows = Mat::from_fn(d, here * n, |i, k| match features.iter().position(|&f| f == i) {
                Some(place) => grid[(place, first + k / n)],
                None => inputs.value(i, k % n),
            });
            for (k, values) in self.along(rows.as_ref(), settings)?.into_iter().enumerate() {
                let sums = &mut sums[first + k / n];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / n as f64);
            }
        }
        Ok(Curve {
            mean: sums.iter().map(|s| s[0]).collect(),
            aleatoric_std: sums.iter().map(|s| s[1].sqrt()).collect(),
            epistemic_std: sums.iter().map(|s| s[2].sqrt()).collect(),
            lower: sums.iter().map(|s| s[3]).collect(),
            upper: sums.iter().map(|s| s[4]).collect(),
        })
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
