//! What a model can do without, by its posterior and by samples it has not learned from.
//!
//! Nothing is trained again: what the other weights are without a column is the posterior given that its weights are zero,
//! which is in closed form (`columns`).

mod columns;

pub use columns::{Pruned, Pruning};

use faer::Mat;

use super::explain::Loss;
use super::model::Model;
use crate::data::Samples;
use crate::error::{Error, Result};

impl Model {
    /// Mean log density of samples, by weight; `rows` are their inputs.
    fn mean_log_density(&self, rows: &Mat<f64>, samples: &Samples<'_>) -> Result<f64> {
        let losses = self.losses(rows, samples, Loss::LogDensity)?;
        let weight = |j: usize| samples.weights().map_or(1.0, |weights| weights[j]);
        let sum: f64 = losses.iter().enumerate().map(|(j, loss)| weight(j) * loss).sum();
        Ok(-sum / samples.total_weight())
    }
}

fn check_tolerance(tolerance: f64) -> Result<()> {
    if tolerance >= 0.0 && tolerance.is_finite() {
        return Ok(());
    }
    Err(Error::Setting { name: "tolerance", value: tolerance, must_be: "zero or more" })
}

fn rows_of(samples: &Samples<'_>) -> Mat<f64> {
    Mat::from_fn(samples.n_features(), samples.n_samples(), |i, j| samples.inputs().value(i, j))
}
