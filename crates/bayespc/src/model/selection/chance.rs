//! How much of a network's error is chance: its start, and which samples it happened not to see.
//!
//! Out-of-fold predictions are each by one network of a kind, new samples are predicted by all K of them, whose mean errs
//! less. Networks differ by the variance v around their mean: so much of one network's squared error is averaged out but
//! for a K-th, while their mixture counts v once more as doubt.
//!
//! ```text
//! s²                     mean variance of one network, as out-of-fold predictions have it
//! s² − v (1 − 1/K)       what the error of the networks' mean asks for
//! c s² + v (1 − 1/K)     what their mixture has, if each network's variance is multiplied by c
//! c = 1 − 2 (1 − 1/K) v / s²
//! ```
//!
//! v on unseen samples is not known, since only one network has not seen a given sample. But it lies between two things
//! that are: the variance of those that have seen it, and the squared distance of the one that has not from their mean.
//! Their geometric mean stands for it. c is one number: where networks disagree more than elsewhere they are also wrong
//! more often, which the mixture then says.

use super::race::{Kind, Race};
use crate::error::Result;
use crate::model::ensemble::predict_member;
use crate::model::spread::Spread;
use crate::prediction::Method;
use crate::real::{Precision, Real};

/// Samples of a fold that are enough to tell one number.
const ENOUGH: usize = 400;

/// Least c.
const LEAST: f64 = 0.5;

impl Race<'_, '_> {
    /// c of an ensemble of these kinds with their weights.
    pub(super) fn without_chance(&self, kinds: &[(f64, &Kind)], spread: &Spread) -> Result<f64> {
        let k = self.folds.len();
        if k < 3 {
            return Ok(1.0);
        }
        let (mut sum, mut total) = (0.0, 0.0);
        for (weight, kind) in kinds {
            sum += weight
                * match self.settings.search.precision {
                    Precision::F32 => self.chance::<f32>(kind, spread)?,
                    Precision::F64 => self.chance::<f64>(kind, spread)?,
                };
            total += weight;
        }
        Ok(factor(sum / total, k))
    }

    /// v / s² of one kind.
    fn chance<T: Real>(&self, kind: &Kind, spread: &Spread) -> Result<f64> {
        let mut sums = Sums::default();
        for (f, fold) in self.folds.iter().enumerate() {
            let step = fold.len().div_ceil(ENOUGH).max(1);
            let places: Vec<usize> = (0..fold.len()).step_by(step).collect();
            let samples: Vec<usize> = places.iter().map(|&place| fold[place]).collect();
            let samples = self.seen_by::<T>(&kind.plan, &samples)?;
            let means = kind
                .networks
                .iter()
                .map(|network| Ok(predict_member(&network.member, &samples, Method::Mean)?.mean()))
                .collect::<Result<Vec<_>>>()?;
            let variance = spread.apply(&kind.predictions[f].select(&places)?).variance();
            for j in 0..places.len() {
                for i in 0..variance.nrows() {
                    let means: Vec<f64> = means.iter().map(|m| m[(i, j)]).collect();
                    sums.add(&means, f, variance[(i, j)]);
                }
            }
        }
        Ok(sums.share())
    }
}

/// c for a share v / s² of chance in the error of each of K networks.
fn factor(share: f64, k: usize) -> f64 {
    (1.0 - 2.0 * (1.0 - 1.0 / k as f64) * share).max(LEAST)
}

/// Sums over samples and targets.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Variance of the networks that have seen a sample.
    among: f64,
    /// Squared distance of the one that has not from their mean, less what chance puts into that mean.
    apart: f64,
    /// s².
    own: f64,
}

impl Sums {
    /// Add a target of which K networks say `means`; the `unseen`th has not learned from it, and has this variance.
    fn add(&mut self, means: &[f64], unseen: usize, variance: f64) {
        let others = || means.iter().enumerate().filter(|(g, _)| *g != unseen).map(|(_, mean)| mean);
        let n = (means.len() - 1) as f64;
        let centre = others().sum::<f64>() / n;
        self.among += others().map(|mean| (mean - centre).powi(2)).sum::<f64>() / (n - 1.0);
        self.apart += (means[unseen] - centre).powi(2) * n / (n + 1.0);
        self.own += variance;
    }

    /// v / s².
    fn share(&self) -> f64 {
        if self.own > 0.0 { (self.among * self.apart).sqrt() / self.own } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::base::random::stream;

    /// Networks that differ by chance of variance v around something that is itself wrong by b, of noisy targets: the
    /// mixture with variances c s² is as wide as the error of its mean.
    #[test]
    fn the_mixture_is_as_wide_as_its_mean_is_wrong() {
        let (noise, b, v, k, n) = (0.5_f64, 0.3_f64, 0.2_f64, 5, 20_000);
        let one = noise + b + v;
        let mut rng = stream(3, 0);
        let mut draw = |variance: f64| -> f64 {
            let z: f64 = StandardNormal.sample(&mut rng);
            variance.sqrt() * z
        };
        let (mut sums, mut error, mut disagreement) = (Sums::default(), 0.0, 0.0);
        for j in 0..n {
            let (target, bias) = (draw(noise), draw(b));
            let means: Vec<f64> = (0..k).map(|_| bias + draw(v)).collect();
            sums.add(&means, j % k, one);
            let mean = means.iter().sum::<f64>() / k as f64;
            error += (target - mean).powi(2) / n as f64;
            disagreement += means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (k * n) as f64;
        }
        assert_relative_eq!(sums.share(), v / one, max_relative = 0.05);
        let width = factor(sums.share(), k) * one + disagreement;
        // Four standard errors of a mean square of 20 000.
        assert_relative_eq!(width, error, max_relative = 4.0 * (2.0 / n as f64).sqrt());
        assert!(width < one + disagreement);
    }

    #[test]
    fn networks_that_agree_keep_their_variance_and_no_more_than_half_is_taken() {
        let mut sums = Sums::default();
        sums.add(&[1.0; 4], 2, 0.7);
        assert_eq!(factor(sums.share(), 4), 1.0);
        sums.add(&[0.0, 9.0, -9.0, 3.0], 1, 0.7);
        assert_eq!(factor(sums.share(), 4), LEAST);
        assert_eq!(Sums::default().share(), 0.0);
    }
}
