//! Permutation importance: how much worse predictions get when a column says nothing of its own row any more.
//!
//! ```text
//! I = L(column shuffled over rows) − L(as it is)            mean over rows, and over shuffles
//! ```
//!
//! Its standard error is that of a mean over rows of the differences of their losses, each a mean over shuffles. Rows should
//! be ones the model has not learned from. A column that another one stands in for has little importance.

use faer::Mat;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::base::check::at_least_one;
use crate::base::random::stream;
use crate::data::{Samples, Targets};
use crate::error::{Error, Result};
use crate::metrics;
use crate::model::Model;

/// What a wrong prediction costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Loss {
    /// Minus the log density of the targets, or of the class.
    #[default]
    LogDensity,
    /// Continuous ranked probability score, mean over targets; for regression.
    Crps,
    /// Root mean squared error; for regression.
    Rmse,
}

/// How columns are shuffled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PermutationSettings {
    /// What a wrong prediction costs.
    pub loss: Loss,
    /// Shuffles of each column.
    pub repeats: usize,
    /// Seed of the shuffles: same seed, same importance.
    pub seed: u64,
}

impl Default for PermutationSettings {
    fn default() -> Self {
        Self { loss: Loss::default(), repeats: 5, seed: 0 }
    }
}

/// Importance of one column.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColumnImportance {
    /// By how much the loss grows.
    pub mean: f64,
    /// Standard error of that.
    pub std_error: f64,
}

impl Model {
    /// Importance of columns, each given by the numbers of its features, which are shuffled together.
    pub fn permutation_importance(
        &self,
        samples: &Samples<'_>,
        columns: &[Vec<usize>],
        settings: PermutationSettings,
    ) -> Result<Vec<ColumnImportance>> {
        at_least_one("repeats", settings.repeats)?;
        let (d, n) = (self.n_features(), samples.n_samples());
        if let Some(&feature) = columns.iter().flatten().find(|&&feature| feature >= d) {
            let must_be = "the number of one the model has, from 0";
            return Err(Error::Setting { name: "feature", value: feature as f64, must_be });
        }
        let mut rows = Mat::from_fn(d, n, |i, j| samples.inputs().value(i, j));
        let own = self.losses(&rows, samples, settings.loss)?;
        let weight = |j: usize| samples.weights().map_or(1.0, |weights| weights[j]) / samples.total_weight();
        let mean = |values: &[f64]| -> f64 { values.iter().enumerate().map(|(j, v)| weight(j) * v).sum() };
        let mut all = Vec::with_capacity(columns.len());
        for (c, features) in columns.iter().enumerate() {
            let mut rng = stream(settings.seed, c as u64);
            let mut order: Vec<usize> = (0..n).collect();
            let mut shuffled = vec![0.0; n];
            for _ in 0..settings.repeats {
                order.shuffle(&mut rng);
                for &i in features {
                    (0..n).for_each(|j| rows[(i, j)] = samples.inputs().value(i, order[j]));
                }
                let losses = self.losses(&rows, samples, settings.loss)?;
                shuffled
                    .iter_mut()
                    .zip(losses)
                    .for_each(|(sum, loss)| *sum += loss / settings.repeats as f64);
            }
            for &i in features {
                (0..n).for_each(|j| rows[(i, j)] = samples.inputs().value(i, j));
            }
            let more: Vec<f64> = shuffled.iter().zip(&own).map(|(after, before)| after - before).collect();
            let difference = mean(&more);
            let squares: f64 =
                more.iter().enumerate().map(|(j, m)| (weight(j) * (m - difference)).powi(2)).sum();
            // Of a root the slope is 1/(a + b) for a² − b².
            let slope = match settings.loss {
                Loss::Rmse => 1.0 / (mean(&shuffled).sqrt() + mean(&own).sqrt()).max(f64::MIN_POSITIVE),
                Loss::LogDensity | Loss::Crps => 1.0,
            };
            all.push(ColumnImportance { mean: slope * difference, std_error: slope * squares.sqrt() });
        }
        Ok(all)
    }

    /// Loss of every sample; of the root mean square its square.
    pub(in crate::model) fn losses(
        &self,
        rows: &Mat<f64>,
        samples: &Samples<'_>,
        loss: Loss,
    ) -> Result<Vec<f64>> {
        match (samples.targets(), loss) {
            (Targets::Classes { labels, .. }, Loss::LogDensity) => {
                let probabilities = self.predict_probabilities(rows)?;
                let densities = metrics::log_probabilities(probabilities.as_ref(), labels)?;
                Ok(densities.into_iter().map(|density| -density).collect())
            }
            (Targets::Classes { .. }, _) => {
                Err(Error::Conflict { first: "a loss other than log_density", second: "classes" })
            }
            (Targets::Values(values), loss) => {
                let predictive = self.predict(rows)?;
                let d = values.nrows() as f64;
                if loss == Loss::LogDensity {
                    return Ok(predictive.log_density(values)?.into_iter().map(|density| -density).collect());
                }
                predictive.check_targets(values)?;
                let each = if loss == Loss::Crps {
                    predictive.crps(values)?
                } else {
                    let mean = predictive.mean();
                    Mat::from_fn(values.nrows(), values.ncols(), |i, j| {
                        (mean[(i, j)] - values[(i, j)]).powi(2)
                    })
                };
                Ok(each.col_iter().map(|column| column.iter().sum::<f64>() / d).collect())
            }
        }
    }
}
