//! How well a classifier tells samples of its own kind from others: by the entropy of its probabilities, and by the
//! epistemic share of the predictive variance.

use bayespc::prediction::Predictive;
use bayespc::{Result, metrics};
use faer::Mat;

/// Area under the ROC curve of both, in this order.
pub fn aurocs(known: &Predictive, strange: &Predictive, temperature: f64) -> Result<[f64; 2]> {
    let (mut entropies, mut shares) = unsure(known, temperature)?;
    let n = entropies.len();
    let (entropies_of_others, shares_of_others) = unsure(strange, temperature)?;
    entropies.extend(entropies_of_others);
    shares.extend(shares_of_others);
    let kinds: Vec<usize> = (0..entropies.len()).map(|j| usize::from(j >= n)).collect();
    Ok([metrics::auroc(&entropies, &kinds)?, metrics::auroc(&shares, &kinds)?])
}

fn unsure(predictive: &Predictive, temperature: f64) -> Result<(Vec<f64>, Vec<f64>)> {
    let probabilities = predictive.class_probabilities(temperature)?;
    let (epistemic, total) = (predictive.epistemic_variance(), predictive.variance());
    let entropy = |j: usize| {
        let terms = probabilities.col(j).iter().map(|&p| if p > 0.0 { -p * p.ln() } else { 0.0 });
        terms.sum::<f64>()
    };
    let sum = |of: &Mat<f64>, j: usize| of.col(j).iter().sum::<f64>();
    let share = |j: usize| sum(&epistemic, j) / sum(&total, j);
    let n = probabilities.ncols();
    Ok(((0..n).map(entropy).collect(), (0..n).map(share).collect()))
}
