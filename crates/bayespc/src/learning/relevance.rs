//! One prior variance per input of a linear model, learned: automatic relevance determination.
//!
//! ```text
//! W_i | Σ ~ N(0, v_i Σ)            column i of the weights
//! log p(Y | v) is stationary where   v_i = ⟨W_iᵀ Σ⁻¹ W_i⟩ / d_y = M_iᵀ⟨Σ⁻¹⟩M_i / d_y + V_ii
//! ```
//!
//! Setting v to the right-hand side is an EM step, slow for inputs that do not matter. The same fixed point, solved for
//! what the data determine, v_i ← M_iᵀ⟨Σ⁻¹⟩M_i / (d_y (1 − V_ii/v_i)), sends their variance to nothing within some
//! steps. The bias keeps its prior.

use crate::distributions::{MatrixNormalWishart, NaturalParams, SufficientStats};
use crate::error::Result;

/// Steps at most; the variances of inputs that matter are still after some ten.
const STEPS: usize = 50;

/// Steps end when no variance changes by more than this share.
const STILL: f64 = 1e-3;

/// How far a variance may go from where it began. The least is small enough to silence an input; a prior of no variance
/// at all would not be one.
const RANGE: (f64, f64) = (1e-9, 1e6);

/// The prior with the variances under which the data that gave `stats` are most probable.
pub(super) fn relevance(prior: &NaturalParams, stats: &SufficientStats) -> Result<NaturalParams> {
    let inputs = prior.d_pre() - 1;
    let first: Vec<f64> = (0..inputs).map(|i| 1.0 / prior.pre_pre[(i, i)]).collect();
    let mut var = first.clone();
    let mut prior = prior.clone();
    for _ in 0..STEPS {
        let mut natural = prior.clone();
        natural.add(stats)?;
        let posterior = MatrixNormalWishart::from_natural(&natural)?;
        let outputs = posterior.d_post() as f64;
        let (second, cov) = (posterior.expected_weights_precision_weights(), posterior.col_cov());
        let mut change: f64 = 0.0;
        for i in 0..inputs {
            let square = (second[(i, i)] / outputs - cov[(i, i)]).max(0.0);
            let determined = (1.0 - cov[(i, i)] / var[i]).max(f64::EPSILON);
            let next = (square / determined).clamp(RANGE.0 * first[i], RANGE.1 * first[i]);
            change = change.max((next / var[i]).ln().abs());
            var[i] = next;
            prior.pre_pre[(i, i)] = 1.0 / next;
        }
        if change < STILL {
            break;
        }
    }
    Ok(prior)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::base::linalg::scaled_identity;
    use crate::base::random::stream;

    fn prior(d_post: usize, d_pre: usize) -> NaturalParams {
        NaturalParams {
            pre_pre: scaled_identity(d_pre, 1.0),
            post_pre: Mat::zeros(d_post, d_pre),
            post_post: scaled_identity(d_post, 0.1),
            count: 2.0 + d_pre as f64 - 1.0,
        }
    }

    /// Two targets of which inputs 0 and 1 tell something, and others that do not.
    fn stats(n: usize, d: usize) -> SufficientStats {
        let mut rng = stream(3, 0);
        let mut normal = |_, _| -> f64 { StandardNormal.sample(&mut rng) };
        let mut pre = Mat::from_fn(d + 1, n, &mut normal);
        pre.row_mut(d).fill(1.0);
        let mut post = Mat::from_fn(2, n, &mut normal);
        for j in 0..n {
            post[(0, j)] = 0.5 * post[(0, j)] + 2.0 * pre[(0, j)] + 1.0;
            post[(1, j)] = 0.5 * post[(1, j)] - pre[(1, j)] + 0.3 * pre[(0, j)];
        }
        SufficientStats::of(pre.as_ref(), post.as_ref()).unwrap()
    }

    /// log p(Y) but for a constant: KL-free, from the normalisers of prior and posterior.
    fn log_evidence(prior: &NaturalParams, stats: &SufficientStats) -> f64 {
        let mut natural = prior.clone();
        natural.add(stats).unwrap();
        let (before, after) = (
            MatrixNormalWishart::from_natural(prior).unwrap(),
            MatrixNormalWishart::from_natural(&natural).unwrap(),
        );
        // ELBO of the exact posterior is the log evidence.
        after.expected_log_likelihood(stats) - after.kl_divergence(&before).unwrap()
    }

    #[test]
    fn evidence_is_stationary_in_the_variance_of_every_input_that_matters() {
        let (prior, stats) = (prior(2, 6), stats(80, 5));
        let learned = relevance(&prior, &stats).unwrap();
        assert!(log_evidence(&learned, &stats) > log_evidence(&prior, &stats));
        let at = |i: usize, factor: f64| {
            let mut other = learned.clone();
            other.pre_pre[(i, i)] *= factor;
            log_evidence(&other, &stats)
        };
        for i in 0..2 {
            let slope = (at(i, 1.01) - at(i, 1.0 / 1.01)) / (2.0 * 1.01_f64.ln());
            assert!(slope.abs() < 1e-2, "{i}: {slope}");
            assert!(at(i, 1.0) > at(i, 3.0) && at(i, 1.0) > at(i, 1.0 / 3.0));
        }
    }

    #[test]
    fn inputs_that_tell_nothing_are_silenced_and_the_bias_keeps_its_prior() {
        let (n, d) = (120, 80);
        let (prior, stats) = (prior(2, d + 1), stats(n, d));
        let learned = relevance(&prior, &stats).unwrap();
        let var = |i: usize| 1.0 / learned.pre_pre[(i, i)];
        assert_relative_eq!(var(d), 1.0);
        let silent = (2..d).filter(|&i| var(i) < 1e-2 * var(1).min(var(0))).count();
        assert!(silent > (d - 2) * 9 / 10, "{silent} of {}", d - 2);
    }
}
