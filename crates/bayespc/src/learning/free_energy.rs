//! Free energy of the layers, to monitor training and to compare models (paper Eq. 3).
//!
//! ```text
//! F_l = KL(q_l ‖ p_l) − Σ_n ⟨log N(z_n | Wφ_n, Σ)⟩          with the activities fixed
//! ```
//!
//! After a conjugate update from the prior, −F_l is exactly the log evidence of the layer's data.

use crate::data::Dataset;
use crate::distributions::{MatrixNormalWishart, SufficientStats};
use crate::error::Result;
use crate::network::{Network, activated, with_bias};
use crate::real::Real;

/// Free energy of one layer, in nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FreeEnergy {
    /// KL(q ‖ p): what the posterior has learned beyond the prior.
    pub complexity: f64,
    /// Σ_n ⟨log N(z_n | Wφ_n, Σ)⟩.
    pub expected_log_likelihood: f64,
}

impl FreeEnergy {
    /// Of a layer with this posterior, prior and data.
    pub fn of(
        posterior: &MatrixNormalWishart,
        prior: &MatrixNormalWishart,
        stats: &SufficientStats,
    ) -> Result<Self> {
        Ok(Self {
            complexity: posterior.kl_divergence(prior)?,
            expected_log_likelihood: posterior.expected_log_likelihood(stats),
        })
    }

    /// F = complexity − expected log-likelihood.
    pub fn total(&self) -> f64 {
        self.complexity - self.expected_log_likelihood
    }
}

/// Free energy of every layer (hidden, then output blocks) with activities at the forward pass and the
/// targets clamped at the top. Hidden layers then have no error, and theirs is complexity plus the cost of
/// uncertain weights and noise.
pub fn free_energy<T: Real>(network: &Network<T>, data: &Dataset<'_, T>) -> Result<Vec<FreeEnergy>> {
    let mut energies = Vec::new();
    let mut pre = with_bias(data.input());
    for layer in network.hidden() {
        let post = layer.working_mean() * &pre;
        let stats = statistics(&pre, &post, data.weights())?;
        energies.push(FreeEnergy::of(&layer.posterior()?, &layer.prior_distribution()?, &stats)?);
        pre = activated(network.settings().activation, post.as_ref());
    }
    let activity = network.output().working_mean() * &pre;
    let n = data.len();
    let blocks = network.output().blocks().len();
    let mut response = crate::heads::Response::zeros(activity.nrows(), blocks, n);
    let target: faer::Mat<f64> = crate::linalg::cast(data.target());
    let activity: faer::Mat<f64> = crate::linalg::cast(activity.as_ref());
    network.settings().head.head().respond(activity.as_ref(), target.as_ref(), data.weights(), &mut response);
    let pre: faer::Mat<f64> = crate::linalg::cast(pre.as_ref());
    for (b, (block, (start, rows))) in
        network.output().blocks().iter().zip(network.output().row_ranges()).enumerate()
    {
        let weights: Vec<f64> =
            (0..n).map(|j| response.weights[(b, j)] * data.weights().map_or(1.0, |w| w[j])).collect();
        let mut stats =
            SufficientStats::weighted(pre.as_ref(), response.targets.subrows(start, rows), &weights)?;
        stats.count = data.total_weight();
        let mut energy = FreeEnergy::of(&block.posterior()?, &block.prior_distribution()?, &stats)?;
        // A precision weight w scales the noise to Σ/w, which adds ½ d log w per sample.
        let log_weights: f64 =
            (0..n).map(|j| response.weights[(b, j)].ln() * data.weights().map_or(1.0, |w| w[j])).sum();
        energy.expected_log_likelihood += 0.5 * rows as f64 * log_weights;
        energies.push(energy);
    }
    Ok(energies)
}

fn statistics<T: Real>(
    pre: &faer::Mat<T>,
    post: &faer::Mat<T>,
    weights: Option<&[f64]>,
) -> Result<SufficientStats> {
    let pre: faer::Mat<f64> = crate::linalg::cast(pre.as_ref());
    let post: faer::Mat<f64> = crate::linalg::cast(post.as_ref());
    match weights {
        None => SufficientStats::of(pre.as_ref(), post.as_ref()),
        Some(weights) => SufficientStats::weighted(pre.as_ref(), post.as_ref(), weights),
    }
}
