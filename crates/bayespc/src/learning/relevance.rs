//! One prior variance per input of a linear model, learned: inputs that tell nothing are silenced.
//!
//! ```text
//! W_i | Σ ~ N(0, v_i Σ)                                  column i of the weights
//! S_i = φ_iᵀ(I + Φ_A v_A Φ_Aᵀ)⁻¹φ_i ,   Q_i = (y − ŷ_A)φ_i    what input i says beside the inputs A
//! r_i = Q_iᵀ⟨Σ⁻¹⟩Q_i / (d_y S_i)                          1 on average if it says nothing
//! log p(Y) grows by   d_y/2 (r_i − 1 − ln r_i)   with   v_i = (r_i − 1)/S_i
//! ```
//!
//! Evidence alone lets one input in three in that tells nothing (those with r_i > 1): with many of them it fits noise. So
//! inputs have to earn their place. Every number of inputs is equally probable beforehand, and so is every choice of
//! that number among d: the (k+1)-th must gain more than ln((d − k)/(k + 1)). Inputs join one at a time, the best first;
//! then the variances of those that are in are set to where the evidence is stationary,
//! v_i = M_iᵀ⟨Σ⁻¹⟩M_i / (d_y (1 − V_ii/v_i)). The bias keeps its prior.

use faer::Mat;

use crate::base::linalg::mirror_lower;
use crate::distributions::{MatrixNormalWishart, NaturalParams, SufficientStats};
use crate::error::Result;

/// Variance of an input that is not in, as a share of the prior's own: nothing, but still a prior.
const SILENT: f64 = 1e-9;

/// Variances stay within this factor of the prior's own.
const RANGE: (f64, f64) = (1e-6, 1e6);

/// Times that the variances are set anew when an input has joined.
const STEPS: usize = 10;

/// Inputs that may be in at most.
const MOST: usize = 100;

/// The prior with a variance for each input, by the data that gave `stats`.
pub(super) fn relevance(prior: &NaturalParams, stats: &SufficientStats) -> Result<NaturalParams> {
    let inputs = prior.d_pre() - 1;
    let own: Vec<f64> = (0..inputs).map(|i| 1.0 / prior.pre_pre[(i, i)]).collect();
    // Only their lower triangles are kept up.
    let mut stats = stats.clone();
    mirror_lower(stats.pre_pre.as_mut());
    mirror_lower(stats.post_post.as_mut());
    let mut chosen = Chosen { prior, stats: &stats, inputs: Vec::new(), vars: Vec::new() };
    while chosen.inputs.len() < inputs.min(MOST) {
        let k = chosen.inputs.len();
        let cost = ((inputs - k) as f64 / (k + 1) as f64).ln().max(0.0);
        let Some((input, var)) = chosen.best(cost)? else { break };
        chosen.inputs.push(input);
        chosen.vars.push(var);
        for _ in 0..STEPS {
            chosen.settle(&own)?;
        }
    }
    let mut learned = prior.clone();
    for (i, own) in own.iter().enumerate() {
        let place = chosen.inputs.iter().position(|&input| input == i);
        learned.pre_pre[(i, i)] = 1.0 / place.map_or(SILENT * own, |place| chosen.vars[place]);
    }
    Ok(learned)
}

/// The inputs that are in, and their variances.
struct Chosen<'a> {
    prior: &'a NaturalParams,
    stats: &'a SufficientStats,
    inputs: Vec<usize>,
    vars: Vec<f64>,
}

impl Chosen<'_> {
    /// The inputs that are in, and the bias.
    fn places(&self) -> Vec<usize> {
        self.inputs.iter().copied().chain([self.prior.d_pre() - 1]).collect()
    }

    /// The posterior of their weights and the noise when all others are silent.
    fn posterior(&self) -> Result<MatrixNormalWishart> {
        let places = self.places();
        let (d, prior, stats) = (places.len(), self.prior, self.stats);
        let mut natural = NaturalParams {
            pre_pre: Mat::from_fn(d, d, |i, j| stats.pre_pre[(places[i], places[j])]),
            post_pre: Mat::from_fn(prior.d_post(), d, |i, j| stats.post_pre[(i, places[j])]),
            post_post: &prior.post_post + &stats.post_post,
            // As many degrees of freedom as with all inputs.
            count: prior.count + stats.count + d as f64 - prior.d_pre() as f64,
        };
        for (i, &place) in places.iter().enumerate() {
            natural.pre_pre[(i, i)] +=
                self.vars.get(i).map_or(prior.pre_pre[(place, place)], |var| 1.0 / var);
        }
        MatrixNormalWishart::from_natural(&natural)
    }

    /// The input that gains most beside those that are in, if it gains more than its cost, and its variance.
    fn best(&self, cost: f64) -> Result<Option<(usize, f64)>> {
        let posterior = self.posterior()?;
        let (mean, precision) = (posterior.mean(), posterior.expected_precision());
        let outputs = posterior.d_post();
        let places = self.places();
        let pre_pre = &self.stats.pre_pre;
        let mut best = (cost, None);
        for i in (0..self.prior.d_pre() - 1).filter(|i| !self.inputs.contains(i)) {
            let beside = Mat::from_fn(places.len(), 1, |a, _| pre_pre[(places[a], i)]);
            let own = pre_pre[(i, i)];
            let sparsity = own - posterior.leverage(beside.as_ref())[0];
            // Nothing but a copy of inputs that are in.
            if sparsity <= 1e-9 * own || own == 0.0 {
                continue;
            }
            let quality = Mat::from_fn(outputs, 1, |o, _| {
                let predicted: f64 = (0..places.len()).map(|a| mean[(o, a)] * beside[(a, 0)]).sum();
                self.stats.post_pre[(o, i)] - predicted
            });
            let square = (quality.transpose() * &precision * &quality)[(0, 0)];
            let ratio = square / (outputs as f64 * sparsity);
            let gain = 0.5 * outputs as f64 * (ratio - 1.0 - ratio.ln());
            if ratio > 1.0 && gain > best.0 {
                best = (gain, Some((i, (ratio - 1.0) / sparsity)));
            }
        }
        Ok(best.1)
    }

    /// One step of the variances towards where the evidence is stationary.
    fn settle(&mut self, own: &[f64]) -> Result<()> {
        let posterior = self.posterior()?;
        let outputs = posterior.d_post() as f64;
        let (second, cov) = (posterior.expected_weights_precision_weights(), posterior.col_cov());
        for (a, (&i, var)) in self.inputs.iter().zip(&mut self.vars).enumerate() {
            let square = (second[(a, a)] / outputs - cov[(a, a)]).max(0.0);
            let determined = (1.0 - cov[(a, a)] / *var).max(f64::EPSILON);
            *var = (square / determined).clamp(RANGE.0 * own[i], RANGE.1 * own[i]);
        }
        Ok(())
    }
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
        // More inputs than samples.
        let (n, d) = (60, 200);
        let (prior, stats) = (prior(2, d + 1), stats(n, d));
        let learned = relevance(&prior, &stats).unwrap();
        let var = |i: usize| 1.0 / learned.pre_pre[(i, i)];
        assert_relative_eq!(var(d), 1.0);
        assert!(var(0) > 0.1 && var(1) > 0.1);
        assert!((2..d).all(|i| var(i) <= SILENT));
    }

    #[test]
    fn of_two_equal_inputs_one_is_in_and_a_constant_one_is_not() {
        let mut rng = stream(4, 0);
        let mut pre = Mat::from_fn(4, 50, |_, _| -> f64 { StandardNormal.sample(&mut rng) });
        for j in 0..50 {
            (pre[(1, j)], pre[(2, j)], pre[(3, j)]) = (pre[(0, j)], 0.0, 1.0);
        }
        let post = Mat::from_fn(1, 50, |_, j| pre[(0, j)] + 0.1 * (j as f64).sin());
        let stats = SufficientStats::of(pre.as_ref(), post.as_ref()).unwrap();
        let learned = relevance(&prior(1, 4), &stats).unwrap();
        let is_in = |i: usize| learned.pre_pre[(i, i)] < 1e3;
        assert!(is_in(0) != is_in(1) && !is_in(2));
    }

    #[test]
    fn targets_that_no_input_tells_of_leave_all_inputs_silent() {
        let mut rng = stream(5, 0);
        let mut silent = 0;
        for _ in 0..20 {
            let mut pre = Mat::from_fn(31, 60, |_, _| -> f64 { StandardNormal.sample(&mut rng) });
            pre.row_mut(30).fill(1.0);
            let post = Mat::from_fn(1, 60, |_, _| -> f64 { StandardNormal.sample(&mut rng) });
            let stats = SufficientStats::of(pre.as_ref(), post.as_ref()).unwrap();
            let learned = relevance(&prior(1, 31), &stats).unwrap();
            silent += usize::from((0..30).all(|i| learned.pre_pre[(i, i)] > 1e6));
        }
        // All of twenty tables but some: an input joins by chance in one of some twenty.
        assert!(silent >= 16, "{silent}");
    }
}
