//! How well candidates predict samples they have not seen, alone and together.
//!
//! ```text
//! score of a mixture = mean log p(y | x) − ½ log mean (y − ⟨y⟩)²
//! ```
//!
//! The second term is the log density of the best constant noise around the mixture's mean: without it a candidate that
//! is wrong but knows it would win over one that is right. Classes are scored by the first alone.

use serde::{Deserialize, Serialize};

use crate::data::{OwnedSamples, Standardiser, Targets};
use crate::error::Result;
use crate::metrics;
use crate::model::calibration::best_common_temperature;
use crate::model::spread::{Moments, Spread};
use crate::prediction::Predictive;

/// Squared error, relative to the target's variance, below which smaller is no longer better.
const EXACT: f64 = 1e-12;

/// How samples were predicted by networks that had not learned from them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HeldOutScores {
    /// Mean log density in the units of the data, or mean log probability of the classes.
    pub log_density: f64,
    /// Root mean squared error of each target in the units of the data; empty for classes.
    pub rmse: Vec<f64>,
    /// Share of the classes that were the most probable ones; none for real values.
    pub accuracy: Option<f64>,
    /// Share of the targets inside intervals of 90 %; none for classes.
    pub coverage_90: Option<f64>,
    /// Standard error of the log density.
    pub log_density_error: f64,
    /// Standard error of each root mean squared error; empty for classes.
    pub rmse_error: Vec<f64>,
}

/// Mean of values by weight, and its standard error.
pub(super) fn weighted_mean(values: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64) {
    let total: f64 = values.clone().map(|(weight, _)| weight).sum();
    let mean = values.clone().map(|(weight, value)| weight * value).sum::<f64>() / total;
    let squares: f64 = values.map(|(weight, value)| (weight * (value - mean)).powi(2)).sum();
    (mean, squares.sqrt() / total)
}

/// How one candidate predicts the held-out samples of some folds.
#[derive(Clone, Debug)]
pub(super) struct HeldOut {
    /// log p(y | x) of every sample, calibrated.
    log_densities: Vec<f64>,
    /// (y − ⟨y⟩) of every target and sample, in standard deviations of the targets; none of classes.
    errors: Vec<f64>,
    /// Weights of the samples.
    weights: Vec<f64>,
    n_targets: usize,
    /// Temperature of class probabilities that suits the samples best; 1 for regression.
    pub(super) temperature: f64,
    /// What was predicted, of standardised targets; empty for classes.
    pub(super) moments: Moments,
}

impl HeldOut {
    /// What the predictions of these folds are worth; none if a density is not finite. With `keep_temperature` that of
    /// class probabilities stays as it is.
    pub(super) fn of(
        predictions: &[Predictive],
        folds: &HeldOutFolds<'_>,
        keep_temperature: bool,
    ) -> Option<Self> {
        let tests = &folds.tests[..predictions.len()];
        let weights: Vec<f64> = tests.iter().flat_map(weights_of).collect();
        let mut all = Self {
            log_densities: vec![],
            errors: vec![],
            n_targets: folds.scaling.dim(),
            temperature: 1.0,
            moments: Moments::default(),
            weights,
        };
        if folds.is_classes() {
            if !keep_temperature {
                all.temperature = temperature(predictions, tests).ok()?;
            }
            for (predictive, test) in predictions.iter().zip(tests) {
                let Targets::Classes { labels, .. } = test.view().targets() else { return None };
                let probabilities = predictive.class_probabilities(all.temperature).ok()?;
                all.log_densities.extend(metrics::log_probabilities(probabilities.as_ref(), labels).ok()?);
            }
        } else {
            for predictive in predictions {
                all.moments.add(predictive);
            }
            let targets = folds.targets(predictions.len());
            let network = [(1.0, &all.moments)];
            let spread = Spread::fit(&network, &targets, &all.target_weights());
            let marginal = spread.log_densities(&network, &targets);
            all.log_densities = marginal.chunks(all.n_targets).map(|each| each.iter().sum()).collect();
            all.errors = targets.iter().zip(&all.moments.mean).map(|(y, mean)| y - mean).collect();
        }
        all.log_densities.iter().chain(&all.errors).all(|x| x.is_finite()).then_some(all)
    }

    /// Weights of the samples, once for every target.
    pub(super) fn target_weights(&self) -> Vec<f64> {
        self.weights.iter().flat_map(|&weight| std::iter::repeat_n(weight, self.n_targets)).collect()
    }

    /// Mean log density of standardised targets.
    pub(super) fn density(&self) -> f64 {
        let total: f64 = self.weights.iter().sum();
        self.log_densities.iter().zip(&self.weights).map(|(l, weight)| l * weight).sum::<f64>() / total
    }
}

/// The samples held out of each fold.
pub(super) struct HeldOutFolds<'a> {
    pub(super) tests: Vec<OwnedSamples>,
    /// Scaling of the targets.
    pub(super) scaling: &'a Standardiser,
}

impl HeldOutFolds<'_> {
    pub(super) fn is_classes(&self) -> bool {
        self.tests.first().is_some_and(|test| matches!(test.view().targets(), Targets::Classes { .. }))
    }

    /// Standardised targets of the first `folds`, sample after sample.
    pub(super) fn targets(&self, folds: usize) -> Vec<f64> {
        let standardised = |test: &OwnedSamples| test.view().targets().standardised::<f64>(self.scaling);
        self.tests[..folds].iter().filter_map(|test| standardised(test).ok()).flatten().collect()
    }

    /// log of the volume of a unit of standardised targets.
    pub(super) fn log_unit(&self) -> f64 {
        if self.is_classes() { 0.0 } else { self.scaling.scale.iter().map(|scale| scale.ln()).sum() }
    }
}

/// Temperature of class probabilities that suits the samples of these folds.
pub(super) fn temperature(predictions: &[Predictive], tests: &[OwnedSamples]) -> Result<f64> {
    let together: Vec<_> = predictions.iter().zip(tests.iter().map(OwnedSamples::view)).collect();
    best_common_temperature(&together)
}

fn weights_of(test: &OwnedSamples) -> Vec<f64> {
    let test = test.view();
    test.weights().map_or_else(|| vec![1.0; test.n_samples()], <[f64]>::to_vec)
}

/// The kinds of the ensemble, at most so many different ones. Those not clearly worse than the best are in from the
/// start, since kinds that differ where there are no data are worth having; then one greedy choice follows the other
/// (Caruana et al. 2004). Among equals the first.
pub(super) fn pick(judged: &[Option<HeldOut>], picks: usize, kinds: usize) -> Vec<usize> {
    let mut picked = as_good_as_the_best(judged);
    picked.truncate(kinds.min(picks));
    while picked.len() < picks {
        let different = picked.iter().enumerate().filter(|(i, c)| !picked[..*i].contains(c)).count();
        let joins = |c: usize| different < kinds && (picked.is_empty() || clearly_adds(judged, &picked, c));
        let allowed = |c: usize| picked.contains(&c) || joins(c);
        let Some(best) = best_addition(judged, &picked, allowed) else { break };
        picked.push(best);
    }
    picked
}

/// So many different kinds that do well together, each chosen for what it adds to those before.
pub(super) fn complements(judged: &[Option<HeldOut>], kinds: usize) -> Vec<usize> {
    let mut picked: Vec<usize> = Vec::new();
    while picked.len() < kinds {
        let Some(best) = best_addition(judged, &picked, |c| !picked.contains(&c)) else { break };
        picked.push(best);
    }
    picked
}

/// The candidate, among those allowed, with which the mixture is best.
fn best_addition(
    judged: &[Option<HeldOut>],
    picked: &[usize],
    allowed: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut best: Option<(f64, usize)> = None;
    for (c, candidate) in judged.iter().enumerate().filter(|&(c, _)| allowed(c)) {
        let Some(candidate) = candidate else { continue };
        let mut together = those(judged, picked);
        together.push(candidate);
        let score = score(&together);
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, c));
        }
    }
    best.map(|(_, c)| c)
}

/// Whether candidate `c` raises the mean log density of the mixture by more than the standard error of the gain: what a
/// choice among many finds by chance is no gain.
fn clearly_adds(judged: &[Option<HeldOut>], picked: &[usize], c: usize) -> bool {
    let Some(candidate) = &judged[c] else { return false };
    let before = those(judged, picked);
    let mut after = before.clone();
    after.push(candidate);
    let n = candidate.log_densities.len();
    let (mean, error) =
        mean_and_error(&(0..n).map(|j| log_density(&after, j) - log_density(&before, j)).collect::<Vec<_>>());
    mean > error
}

/// Mean of these differences and its standard error.
fn mean_and_error(differences: &[f64]) -> (f64, f64) {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

/// The best candidate and those whose densities are lower by less than the standard error of the difference, the best
/// one first.
fn as_good_as_the_best(judged: &[Option<HeldOut>]) -> Vec<usize> {
    let mut order: Vec<(usize, &HeldOut)> =
        judged.iter().enumerate().filter_map(|(c, judged)| Some((c, judged.as_ref()?))).collect();
    order.sort_by(|a, b| score(&[b.1]).total_cmp(&score(&[a.1])));
    let Some(&(_, best)) = order.first() else { return Vec::new() };
    let equal = |own: &HeldOut| {
        let differences = own.log_densities.iter().zip(&best.log_densities).map(|(l, b)| l - b);
        let (mean, error) = mean_and_error(&differences.collect::<Vec<_>>());
        mean > -error
    };
    order
        .into_iter()
        .enumerate()
        .filter(|(place, (_, own))| *place == 0 || equal(own))
        .map(|(_, (c, _))| c)
        .collect()
}

/// What is known of these candidates.
pub(super) fn those<'a>(judged: &'a [Option<HeldOut>], picked: &[usize]) -> Vec<&'a HeldOut> {
    picked.iter().filter_map(|&c| judged[c].as_ref()).collect()
}

/// Score of an equal mixture.
pub(super) fn score(members: &[&HeldOut]) -> f64 {
    let Some(first) = members.first() else { return f64::NEG_INFINITY };
    let total: f64 = first.weights.iter().sum();
    let density: f64 =
        first.weights.iter().enumerate().map(|(j, weight)| weight / total * log_density(members, j)).sum();
    density - 0.5 * mean_squares(members).iter().map(|square| square.ln()).sum::<f64>()
}

/// log p(y | x) of sample j under an equal mixture.
fn log_density(members: &[&HeldOut], j: usize) -> f64 {
    let largest = members.iter().map(|m| m.log_densities[j]).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = members.iter().map(|m| (m.log_densities[j] - largest).exp()).sum();
    largest + (sum / members.len() as f64).ln()
}

/// Squared errors of a mixture's mean in sample j, one per target; none of classes.
fn squares<'a>(members: &'a [&HeldOut], j: usize) -> impl Iterator<Item = f64> + 'a {
    let d = if members[0].errors.is_empty() { 0 } else { members[0].n_targets };
    (0..d).map(move |i| {
        let error = members.iter().map(|m| m.errors[j * d + i]).sum::<f64>() / members.len() as f64;
        error * error
    })
}

/// Their means over samples.
fn mean_squares(members: &[&HeldOut]) -> Vec<f64> {
    let weights = &members[0].weights;
    let total: f64 = weights.iter().sum();
    let mut means = vec![0.0; squares(members, 0).count()];
    for (j, weight) in weights.iter().enumerate() {
        means.iter_mut().zip(squares(members, j)).for_each(|(mean, square)| *mean += weight / total * square);
    }
    means.into_iter().map(|mean: f64| mean.max(EXACT)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two samples; the first candidate is right about the first, the second about the second, and the third
    /// middling about both.
    fn three() -> Vec<Option<HeldOut>> {
        let judged = |log_densities: [f64; 2], errors: [f64; 2]| {
            Some(HeldOut {
                log_densities: log_densities.to_vec(),
                errors: errors.to_vec(),
                weights: vec![1.0; 2],
                n_targets: 1,
                temperature: 1.0,
                moments: Moments::default(),
            })
        };
        vec![
            judged([0.0, -9.0], [0.1, 2.0]),
            None,
            judged([-9.0, 0.0], [2.0, 0.1]),
            judged([-1.5, -1.5], [1.0, 1.0]),
        ]
    }

    #[test]
    fn the_score_of_a_mixture_is_its_density_and_the_error_of_its_mean() {
        let judged = three();
        let pair = [judged[0].as_ref().unwrap(), judged[2].as_ref().unwrap()];
        let density = (0.5 * (1.0 + (-9f64).exp())).ln();
        let square = (0.5 * (0.1 + 2.0f64)).powi(2);
        assert!((score(&pair) - (density - 0.5 * square.ln())).abs() < 1e-14);
        let classes =
            HeldOut { errors: vec![], log_densities: vec![-1.0, -3.0], ..three().remove(0).unwrap() };
        assert_eq!(score(&[&classes]), -2.0);
        let weighted = HeldOut { weights: vec![3.0, 1.0], ..classes };
        assert_eq!(score(&[&weighted]), -1.5);
    }

    #[test]
    fn members_are_picked_for_what_they_add_and_failures_never() {
        // Alone the middling one is best; with it either specialist; then the other one.
        let order = pick(&three(), 3, 3);
        assert_eq!(order[0], 3);
        assert_eq!(
            {
                let mut rest = order[1..].to_vec();
                rest.sort_unstable();
                rest
            },
            [0, 2]
        );
        assert!(pick(&[None], 2, 2).is_empty() && complements(&[None], 2).is_empty());
        assert_eq!(complements(&three(), 5).len(), 3);
        // Of one kind there is no more than one kind.
        assert_eq!(pick(&three(), 3, 1), [3, 3, 3]);
    }
}
