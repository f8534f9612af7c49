//! Scores of predicted classes from their probabilities P (`K × n`) and the true labels c.
//!
//! ```text
//! accuracy = mean 1{argmax_k P_k = c}        NLL = −mean log P_c        Brier = mean Σ_k (P_k − 1{k = c})²
//! ECE = Σ_bins (n_bin/n) |accuracy(bin) − confidence(bin)| ,   bins of equal width over max_k P_k
//! AUROC = P(score of a positive > score of a negative) + ½ P(equal)
//! ```

use faer::MatRef;
use serde::{Deserialize, Serialize};

use crate::base::check::check_finite;
use crate::error::{Error, Result};

/// Number of bins in [`ClassificationMetrics`].
pub const CALIBRATION_BINS: usize = 15;

/// Every score of a classification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClassificationMetrics {
    /// Share of samples whose most probable class is the true one.
    pub accuracy: f64,
    /// Mean −log of the true class's probability.
    pub negative_log_likelihood: f64,
    /// Mean squared distance of the probabilities from the one-hot label.
    pub brier_score: f64,
    /// Mean distance of accuracy from confidence, over 15 bins.
    pub expected_calibration_error: f64,
}

/// The samples whose largest probability is in (lower, upper].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReliabilityBin {
    /// Left end, exclusive (but 0 belongs to the first bin).
    pub lower: f64,
    /// Right end, inclusive.
    pub upper: f64,
    /// Number of samples.
    pub count: usize,
    /// Their mean largest probability; 0 for an empty bin.
    pub confidence: f64,
    /// Share of them that are classified rightly; 0 for an empty bin.
    pub accuracy: f64,
}

/// Share of samples whose most probable class is the true one; the first one wins a tie.
pub fn accuracy(probabilities: MatRef<'_, f64>, labels: &[usize]) -> Result<f64> {
    mean_over_samples(probabilities, labels, |sample, label| {
        f64::from(most_probable(probabilities, sample).0 == label)
    })
}

/// log P_c of every sample, with probabilities raised to the machine epsilon as scikit-learn does: an impossible
/// class that happens costs 36 and not ∞.
pub fn log_probabilities(probabilities: MatRef<'_, f64>, labels: &[usize]) -> Result<Vec<f64>> {
    check(probabilities, labels)?;
    let one = |(sample, &label): (usize, &usize)| probabilities[(label, sample)].max(f64::EPSILON).ln();
    Ok(labels.iter().enumerate().map(one).collect())
}

/// Mean −log P_c, see [`log_probabilities`].
pub fn negative_log_likelihood(probabilities: MatRef<'_, f64>, labels: &[usize]) -> Result<f64> {
    Ok(-log_probabilities(probabilities, labels)?.iter().sum::<f64>() / labels.len() as f64)
}

/// Mean Σ_k (P_k − 1{k = c})², between 0 and 2.
pub fn brier_score(probabilities: MatRef<'_, f64>, labels: &[usize]) -> Result<f64> {
    mean_over_samples(probabilities, labels, |sample, label| {
        let column = probabilities.col(sample);
        (0..probabilities.nrows()).map(|k| (column[k] - f64::from(k == label)).powi(2)).sum()
    })
}

/// `n_bins` bins of equal width over the largest probability, empty ones included.
pub fn reliability_bins(
    probabilities: MatRef<'_, f64>,
    labels: &[usize],
    n_bins: usize,
) -> Result<Vec<ReliabilityBin>> {
    check(probabilities, labels)?;
    if n_bins == 0 {
        return Err(Error::Empty { what: "list of reliability bins" });
    }
    let width = 1.0 / n_bins as f64;
    let mut bins: Vec<ReliabilityBin> = (0..n_bins)
        .map(|bin| ReliabilityBin {
            lower: bin as f64 * width,
            upper: (bin + 1) as f64 * width,
            count: 0,
            confidence: 0.0,
            accuracy: 0.0,
        })
        .collect();
    for (sample, &label) in labels.iter().enumerate() {
        let (class, confidence) = most_probable(probabilities, sample);
        let index = ((confidence * n_bins as f64).ceil() as usize).clamp(1, n_bins) - 1;
        bins[index].count += 1;
        bins[index].confidence += confidence;
        bins[index].accuracy += f64::from(class == label);
    }
    for bin in bins.iter_mut().filter(|bin| bin.count > 0) {
        bin.confidence /= bin.count as f64;
        bin.accuracy /= bin.count as f64;
    }
    Ok(bins)
}

/// Mean |accuracy − confidence| over the samples' bins.
pub fn expected_calibration_error(
    probabilities: MatRef<'_, f64>,
    labels: &[usize],
    n_bins: usize,
) -> Result<f64> {
    let bins = reliability_bins(probabilities, labels, n_bins)?;
    Ok(bins.iter().map(|bin| bin.count as f64 * (bin.accuracy - bin.confidence).abs()).sum::<f64>()
        / labels.len() as f64)
}

/// Area under the receiver operating characteristic of `scores` for labels 0 (negative) and 1 (positive).
pub fn auroc(scores: &[f64], labels: &[usize]) -> Result<f64> {
    if scores.len() != labels.len() {
        let expected = scores.len();
        return Err(Error::Shape { what: "labels", axis: "samples", found: labels.len(), expected });
    }
    if let Some((row, &label)) = labels.iter().enumerate().find(|&(_, &label)| label > 1) {
        return Err(Error::Label { label, row, classes: 2 });
    }
    if let Some((row, &value)) = scores.iter().enumerate().find(|(_, score)| score.is_nan()) {
        return Err(Error::NotFinite { what: "scores", row, column: 0, value });
    }
    let positives = labels.iter().sum::<usize>();
    let negatives = labels.len() - positives;
    if positives == 0 || negatives == 0 {
        let what = if positives == 0 { "set of positive labels" } else { "set of negative labels" };
        return Err(Error::Empty { what });
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    // A positive wins against the negatives below it, and half against those that tie with it.
    let (mut wins, mut negatives_below) = (0.0, 0.0);
    for ties in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let tied_positives = ties.iter().map(|&sample| labels[sample]).sum::<usize>() as f64;
        let tied_negatives = ties.len() as f64 - tied_positives;
        wins += tied_positives * (negatives_below + 0.5 * tied_negatives);
        negatives_below += tied_negatives;
    }
    Ok(wins / (positives as f64 * negatives as f64))
}

/// All scores at once.
pub fn classification_metrics(
    probabilities: MatRef<'_, f64>,
    labels: &[usize],
) -> Result<ClassificationMetrics> {
    Ok(ClassificationMetrics {
        accuracy: accuracy(probabilities, labels)?,
        negative_log_likelihood: negative_log_likelihood(probabilities, labels)?,
        brier_score: brier_score(probabilities, labels)?,
        expected_calibration_error: expected_calibration_error(probabilities, labels, CALIBRATION_BINS)?,
    })
}

/// Class and probability of the most probable class.
fn most_probable(probabilities: MatRef<'_, f64>, sample: usize) -> (usize, f64) {
    let column = probabilities.col(sample);
    (1..probabilities.nrows()).fold(
        (0, column[0]),
        |best, k| {
            if column[k] > best.1 { (k, column[k]) } else { best }
        },
    )
}

fn mean_over_samples(
    probabilities: MatRef<'_, f64>,
    labels: &[usize],
    score: impl Fn(usize, usize) -> f64,
) -> Result<f64> {
    check(probabilities, labels)?;
    let sum: f64 = labels.iter().enumerate().map(|(sample, &label)| score(sample, label)).sum();
    Ok(sum / labels.len() as f64)
}

fn check(probabilities: MatRef<'_, f64>, labels: &[usize]) -> Result<()> {
    let (classes, n) = (probabilities.nrows(), probabilities.ncols());
    if labels.len() != n {
        return Err(Error::Shape { what: "labels", axis: "samples", found: labels.len(), expected: n });
    }
    if n == 0 {
        return Err(Error::Empty { what: "labels" });
    }
    if let Some((row, &label)) = labels.iter().enumerate().find(|&(_, &label)| label >= classes) {
        return Err(Error::Label { label, row, classes });
    }
    check_finite("class probabilities", probabilities)
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;
    use faer::Mat;

    const LABELS: [usize; 6] = [0, 1, 0, 2, 1, 2];

    fn probabilities() -> Mat<f64> {
        let samples = [
            [0.7, 0.2, 0.1],
            [0.1, 0.8, 0.1],
            [0.3, 0.3, 0.4],
            [0.05, 0.05, 0.9],
            [0.5, 0.25, 0.25],
            [0.0, 1.0, 0.0],
        ];
        Mat::from_fn(3, 6, |k, sample| samples[sample][k])
    }

    /// `accuracy_score`, `log_loss` and `brier_score_loss(scale_by_half=False)` of scikit-learn 1.9.
    #[test]
    fn scores_match_scikit_learn() {
        let p = probabilities();
        let scores = classification_metrics(p.as_ref(), &LABELS).unwrap();
        assert_relative_eq!(scores.accuracy, 0.5, max_relative = 1e-14);
        assert_relative_eq!(scores.negative_log_likelihood, 6.553_183_260_912_291_5, max_relative = 1e-13);
        assert_relative_eq!(scores.brier_score, 0.638_333_333_333_333_3, max_relative = 1e-14);
    }

    /// By hand, bins of width 0.2: (0.2, 0.4] holds 0.4 (wrong), (0.4, 0.6] 0.5 (wrong), (0.6, 0.8] 0.7 and 0.8
    /// (right), (0.8, 1] 0.9 (right) and 1 (wrong).
    #[test]
    fn calibration_error_is_the_weighted_gap_of_the_bins() {
        let p = probabilities();
        let bins = reliability_bins(p.as_ref(), &LABELS, 5).unwrap();
        assert_eq!(bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [0, 1, 1, 2, 2]);
        let error = expected_calibration_error(p.as_ref(), &LABELS, 5).unwrap();
        assert_relative_eq!(error, (0.4 + 0.5 + 2.0 * 0.25 + 2.0 * 0.45) / 6.0, max_relative = 1e-14);
    }

    /// `sklearn.metrics.roc_auc_score`'s documented example, and ties counted by hand: four of six pairs
    /// are won and two are ties.
    #[test]
    fn auroc_counts_won_pairs_and_half_of_ties() {
        assert_eq!(auroc(&[0.1, 0.4, 0.35, 0.8], &[0, 0, 1, 1]).unwrap(), 0.75);
        let tied = auroc(&[0.1, 0.4, 0.4, 0.8, 0.4], &[0, 0, 1, 1, 1]).unwrap();
        assert_relative_eq!(tied, 5.0 / 6.0, max_relative = 1e-15);
    }

    #[test]
    fn auroc_of_negated_scores_is_the_complement() {
        let scores = [0.3, -1.0, 2.0, 0.3, 0.7, 5.0, -0.2];
        let labels = [0, 1, 1, 0, 0, 1, 0];
        let negated = scores.map(|score| -score);
        let sum = auroc(&scores, &labels).unwrap() + auroc(&negated, &labels).unwrap();
        assert_relative_eq!(sum, 1.0, max_relative = 1e-15);
    }

    #[test]
    fn wrong_labels_lengths_and_nothing_are_errors() {
        let p = probabilities();
        assert!(matches!(accuracy(p.as_ref(), &[0, 1]), Err(Error::Shape { found: 2, expected: 6, .. })));
        let outside = accuracy(p.as_ref(), &[0, 1, 3, 0, 0, 0]);
        assert!(matches!(outside, Err(Error::Label { label: 3, row: 2, classes: 3 })));
        let none = Mat::<f64>::zeros(3, 0);
        assert!(matches!(brier_score(none.as_ref(), &[]), Err(Error::Empty { .. })));
        assert!(matches!(auroc(&[0.5, 0.1], &[1, 1]), Err(Error::Empty { what: "set of negative labels" })));
        assert!(matches!(reliability_bins(p.as_ref(), &LABELS, 0), Err(Error::Empty { .. })));
    }
}
