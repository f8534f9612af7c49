//! What the learners of a single network share: where it starts, what it accepts, and the noise of its
//! output, estimated from residuals.
//!
//! ```text
//! R = Σ_j w_j r_j r_jᵀ / Σ_j w_j ,   r = y − a
//! Σ_ii = R_ii + 10⁻⁶ var(y_i) ,      Σ_ij = R_ij · n/(n + d)   (0 for diagonal noise)
//! ```
//!
//! The floor gives a network that interpolates its data a density all the same; the shrinkage keeps Σ
//! positive definite and sane when samples are few.

use faer::{Mat, MatRef};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::base::linalg::cast;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::network::{NetworkSettings, PointNetwork, check_input};
use crate::prediction::Predictive;
use crate::real::Real;

/// Smallest noise variance relative to the target's variance.
const NOISE_FLOOR: f64 = 1e-6;

/// Shape of the output noise estimated from residuals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResidualNoise {
    /// Targets have independent noise.
    Diagonal,
    /// A full covariance, like the Bayesian output layer's.
    #[default]
    Full,
}

/// A network with the first weights `settings` ask for: the same, from the same generator, as the means of
/// the Bayesian network. Its output noise is I until it has been estimated.
pub(super) fn start<T: Real>(
    settings: &NetworkSettings,
    d_input: usize,
    n_targets: usize,
    rng: &mut dyn Rng,
) -> Result<PointNetwork<T>> {
    settings.validate()?;
    settings.head.require_gaussian("a learner by gradient descent")?;
    for (what, width) in [("the input (no features)", d_input), ("the target (no columns)", n_targets)] {
        if width == 0 {
            return Err(Error::Empty { what });
        }
    }
    let mut weights = Vec::with_capacity(settings.hidden_layer_sizes.len() + 1);
    let mut d_below = d_input;
    for (l, &width) in settings.hidden_layer_sizes.iter().chain(&[n_targets]).enumerate() {
        let first = if settings.is_residual(l) {
            settings.residual_weights(width, rng)
        } else {
            settings.init.weights(width, d_below, rng)
        };
        weights.push(cast(first.as_ref()));
        d_below = width;
    }
    Ok(PointNetwork {
        weights,
        activation: settings.activation,
        head: settings.head.clone(),
        output_noise: Mat::identity(n_targets, n_targets),
        hidden_noise: None,
    })
}

/// The data fit the network and have no gaps.
pub(super) fn check_batch<T: Real>(network: &PointNetwork<T>, batch: &Dataset<'_, T>) -> Result<()> {
    check_input(batch.input(), network.d_input())?;
    let (found, expected) = (batch.target().nrows(), network.output_noise.nrows());
    if found != expected {
        return Err(Error::Shape { what: "target", axis: "columns", found, expected });
    }
    if batch.has_missing() {
        return Err(Error::Conflict {
            first: "a learner by gradient descent",
            second: "missing values (use bpc with relaxation)",
        });
    }
    Ok(())
}

/// Predict by the one network there is: every method comes to the same.
pub(super) fn predict<T: Real>(network: &PointNetwork<T>, input: MatRef<'_, T>) -> Result<Predictive> {
    let activity = network.forward(input)?;
    Predictive::from_component(network.density(activity.as_ref())?)
}

/// Σ of the output noise, from the network's residuals on `data`.
pub(super) fn residual_noise<T: Real>(
    network: &PointNetwork<T>,
    data: &Dataset<'_, T>,
    shape: ResidualNoise,
) -> Result<Mat<f64>> {
    check_batch(network, data)?;
    let output = network.forward(data.input())?;
    let (d, n) = (output.nrows(), data.total_weight());
    let weight = |j: usize| data.weights().map_or(1.0, |w| w[j]);
    let mut noise = Mat::<f64>::zeros(d, d);
    let mut residual = vec![0.0; d];
    for j in 0..data.len() {
        for (i, r) in residual.iter_mut().enumerate() {
            *r = data.target()[(i, j)].as_f64() - output[(i, j)].as_f64();
        }
        let share = weight(j) / n;
        for k in 0..d {
            for i in 0..d {
                noise[(i, k)] += share * residual[i] * residual[k];
            }
        }
    }
    let off_diagonal = match shape {
        ResidualNoise::Diagonal => 0.0,
        ResidualNoise::Full => n / (n + d as f64),
    };
    for k in 0..d {
        for i in 0..d {
            if i != k {
                noise[(i, k)] *= off_diagonal;
            }
        }
        noise[(k, k)] += NOISE_FLOOR * target_variance(data.target(), weight, k, n);
    }
    Ok(noise)
}

/// Variance of one target, or 1 where it has none to speak of: the unit of a standardised target.
fn target_variance<T: Real>(
    target: MatRef<'_, T>,
    weight: impl Fn(usize) -> f64,
    row: usize,
    total: f64,
) -> f64 {
    let average =
        |value: &dyn Fn(usize) -> f64| (0..target.ncols()).map(|j| weight(j) * value(j)).sum::<f64>() / total;
    let mean = average(&|j| target[(row, j)].as_f64());
    let variance = average(&|j| (target[(row, j)].as_f64() - mean).powi(2));
    // Rounding leaves a constant target a spread of its own magnitude times the machine's precision.
    if variance > (8.0 * T::epsilon().as_f64() * mean).powi(2) { variance } else { 1.0 }
}
