//! How well candidates predict samples they have not seen, alone and together.
//!
//! ```text
//! score of a mixture = mean log p(y | x) − ½ log mean (y − ⟨y⟩)²
//! ```
//!
//! The second term is the log density of the best constant noise around the mixture's mean: without it a candidate that
//! is wrong but knows it would win over one that is right. Classes are scored by the first alone.

use faer::{Mat, MatRef};

use crate::data::{OwnedSamples, Targets};
use crate::metrics;
use crate::model::calibration::best_temperature;
use crate::prediction::Predictive;

/// Squared error, relative to the target's variance, below which smaller is no longer better.
const EXACT: f64 = 1e-12;

/// How one candidate predicts the held-out samples of all rounds.
#[derive(Clone, Debug)]
pub(super) struct HeldOut {
    /// log p(y | x) of every sample.
    log_densities: Vec<f64>,
    /// (y − ⟨y⟩) of every target and sample, in standard deviations of the held-out targets; none of classes.
    errors: Vec<f64>,
    /// Weights of the samples.
    weights: Vec<f64>,
    n_targets: usize,
    /// Temperature of class probabilities that suits the samples best; 1 for regression.
    pub(super) temperature: f64,
}

impl HeldOut {
    /// What the predictions of all rounds are worth; none if a density is not finite. With `keep_temperature` that of
    /// class probabilities stays as it is.
    pub(super) fn of(
        predictions: &[Predictive],
        tests: &[&OwnedSamples],
        keep_temperature: bool,
    ) -> Option<Self> {
        let mut all =
            Self { log_densities: vec![], errors: vec![], weights: vec![], n_targets: 1, temperature: 1.0 };
        let rounds = || predictions.iter().zip(tests.iter().map(|test| test.view()));
        if !keep_temperature {
            let mut logs = 0.0;
            for (predictive, test) in rounds() {
                if matches!(test.targets(), Targets::Classes { .. }) {
                    logs += best_temperature(predictive, &test).ok()?.ln() / predictions.len() as f64;
                }
            }
            all.temperature = logs.exp();
        }
        for (predictive, test) in rounds() {
            match test.targets() {
                Targets::Values(values) => {
                    all.log_densities.extend(predictive.log_density(values).ok()?);
                    all.n_targets = values.nrows();
                    all.add_errors(&predictive.mean(), values);
                }
                Targets::Classes { labels, .. } => {
                    let probabilities = predictive.class_probabilities(all.temperature).ok()?;
                    all.log_densities
                        .extend(metrics::log_probabilities(probabilities.as_ref(), labels).ok()?);
                }
            }
            let ones = vec![1.0; test.n_samples()];
            all.weights.extend(test.weights().unwrap_or(&ones));
        }
        all.log_densities.iter().chain(&all.errors).all(|x| x.is_finite()).then_some(all)
    }

    fn add_errors(&mut self, mean: &Mat<f64>, values: MatRef<'_, f64>) {
        let n = values.ncols() as f64;
        let scales: Vec<f64> = (0..values.nrows())
            .map(|i| {
                let centre = values.row(i).iter().sum::<f64>() / n;
                let variance = values.row(i).iter().map(|y| (y - centre).powi(2)).sum::<f64>() / n;
                if variance > 0.0 { variance.sqrt() } else { 1.0 }
            })
            .collect();
        for j in 0..values.ncols() {
            self.errors.extend((0..values.nrows()).map(|i| (values[(i, j)] - mean[(i, j)]) / scales[i]));
        }
    }

    /// Mean log density.
    pub(super) fn density(&self) -> f64 {
        let total: f64 = self.weights.iter().sum();
        self.log_densities.iter().zip(&self.weights).map(|(l, weight)| l * weight).sum::<f64>() / total
    }
}

/// The networks of the ensemble, one greedy choice after the other; among equals the first (Caruana et al. 2004).
pub(super) fn pick(judged: &[Option<HeldOut>], members: usize) -> Vec<usize> {
    let mut picked = Vec::new();
    for _ in 0..members {
        let mut best: Option<(f64, usize)> = None;
        for (c, candidate) in judged.iter().enumerate() {
            let Some(candidate) = candidate else { continue };
            let mut together = those(judged, &picked);
            together.push(candidate);
            let score = score(&together);
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, c));
            }
        }
        picked.extend(best.map(|(_, c)| c));
    }
    picked
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

/// Whether the first mixture's score exceeds the second's by more than a standard error of the difference. A sample's
/// share in the difference of −½ log mean e² is that of −½ e²/mean e², the mean by the second.
pub(super) fn is_clearly_better(new: &[&HeldOut], old: &[&HeldOut]) -> bool {
    let (Some(first), false) = (new.first(), old.is_empty()) else { return !new.is_empty() };
    let means = mean_squares(old);
    let gain = |j: usize| {
        let error: f64 =
            squares(new, j).zip(squares(old, j)).zip(&means).map(|((n, o), m)| (n - o) / m).sum();
        log_density(new, j) - log_density(old, j) - 0.5 * error
    };
    let total: f64 = first.weights.iter().sum();
    let gains: Vec<(f64, f64)> =
        first.weights.iter().enumerate().map(|(j, weight)| (weight / total, gain(j))).collect();
    let mean: f64 = gains.iter().map(|(share, gain)| share * gain).sum();
    let variance: f64 = gains.iter().map(|(share, gain)| (share * (gain - mean)).powi(2)).sum();
    mean > variance.sqrt()
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
    fn what_costs_more_must_be_better_by_more_than_chance() {
        // Gains of 1, 3, 1 and 3 nats: mean 2, standard error ½. The errors count like densities.
        let judged = |log_densities: [f64; 4], errors: [f64; 4]| HeldOut {
            log_densities: log_densities.to_vec(),
            errors: errors.to_vec(),
            weights: vec![2.0; 4],
            n_targets: 1,
            temperature: 1.0,
        };
        let old = judged([-3.0; 4], [1.0; 4]);
        let new = judged([-2.0, 0.0, -2.0, 0.0], [1.0; 4]);
        assert!(is_clearly_better(&[&new], &[&old]));
        assert!(!is_clearly_better(&[&old], &[&new]));
        // One sample that gains 4 nats: mean 1, standard error √¾.
        let one = judged([1.0, -3.0, -3.0, -3.0], [1.0; 4]);
        assert!(is_clearly_better(&[&one], &[&old]));
        // Another loses 2: mean ½, standard error √19 / 4.
        let mixed = judged([1.0, -5.0, -3.0, -3.0], [1.0; 4]);
        assert!(!is_clearly_better(&[&mixed], &[&old]));
        // Errors twice as large cost 3/2 each.
        let wrong = judged([-1.5, 0.5, -1.5, 0.5], [2.0; 4]);
        let worse = judged([-1.6, -1.5, -1.6, -1.5], [2.0; 4]);
        assert!(is_clearly_better(&[&wrong], &[&old]));
        assert!(!is_clearly_better(&[&worse], &[&old]));
        // Something is better than nothing, and nothing is not.
        assert!(is_clearly_better(&[&old], &[]) && !is_clearly_better(&[], &[&old]));
    }

    #[test]
    fn members_are_picked_for_what_they_add_and_failures_never() {
        // Alone the middling one is best; with it either specialist; then the other one.
        let order = pick(&three(), 3);
        assert_eq!(order[0], 3);
        assert_eq!(
            {
                let mut rest = order[1..].to_vec();
                rest.sort_unstable();
                rest
            },
            [0, 2]
        );
        assert!(pick(&[None], 2).is_empty());
    }
}
