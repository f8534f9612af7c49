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
#[non_exhaustive]
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
    let target: faer::Mat<f64> = crate::base::linalg::cast(data.target());
    let activity: faer::Mat<f64> = crate::base::linalg::cast(activity.as_ref());
    network.settings().head.head().respond(activity.as_ref(), target.as_ref(), &mut response);
    let pre: faer::Mat<f64> = crate::base::linalg::cast(pre.as_ref());
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
    let pre: faer::Mat<f64> = crate::base::linalg::cast(pre.as_ref());
    let post: faer::Mat<f64> = crate::base::linalg::cast(post.as_ref());
    match weights {
        None => SufficientStats::of(pre.as_ref(), post.as_ref()),
        Some(weights) => SufficientStats::weighted(pre.as_ref(), post.as_ref(), weights),
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::{Mat, Scale};
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::base::linalg::scaled_identity;

    /// Log evidence of z given φ, by the free energy at the exact posterior; Ψ⁰⁻¹ = `inv_scale` · I.
    fn evidence(pre: &Mat<f64>, post: &Mat<f64>, inv_scale: f64) -> f64 {
        let (d_post, d_pre) = (post.nrows(), pre.nrows());
        let prior = MatrixNormalWishart::new(
            Mat::zeros(d_post, d_pre),
            scaled_identity(d_pre, 0.1),
            scaled_identity(d_post, inv_scale),
            d_post as f64 + 2.0,
        )
        .unwrap();
        let stats = SufficientStats::of(pre.as_ref(), post.as_ref()).unwrap();
        let mut natural = prior.to_natural();
        natural.pre_pre += &stats.pre_pre;
        natural.post_pre += &stats.post_pre;
        natural.post_post += &stats.post_post;
        natural.count += stats.count;
        let posterior = MatrixNormalWishart::from_natural(&natural).unwrap();
        -FreeEnergy::of(&posterior, &prior, &stats).unwrap().total()
    }

    /// Why evidence cannot compare scales of hidden layers (docs/decisions/0014): a ReLU layer c times as large under a
    /// next layer 1/c as large predicts the same, and its own evidence changes without bound.
    #[test]
    fn the_evidence_of_a_layer_changes_with_the_units_of_its_activities() {
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(1);
        let mut normal = |d: usize| Mat::from_fn(d, 30, |_, _| rng.random_range(-1.0..1.0));
        let (pre, post) = (normal(3), normal(2));
        let whole = evidence(&pre, &post, 1e-3);
        for c in [0.01, 0.5, 20.0] {
            // Exact where the prior's noise is in the same units; with the prior as it is, small is good.
            let same_units = evidence(&pre, &(&post * Scale(c)), 1e-3 * c * c);
            assert_relative_eq!(same_units, whole - 60.0 * f64::ln(c), max_relative = 1e-11);
            let fixed_prior = evidence(&pre, &(&post * Scale(c)), 1e-3);
            assert_eq!(fixed_prior > whole, c < 1.0, "{c}: {fixed_prior} beside {whole}");
        }
    }
}
