//! Class probabilities from a predictive over one-hot targets: its density restricted to the K codes.
//!
//! ```text
//! p(k) ∝ N(e_k | μ, C)^{1/τ}    ⇒    p = softmax_k( (e_kᵀC⁻¹μ − ½ (C⁻¹)_kk) / τ )
//! ```
//!
//! averaged over components. The terms −½ μᵀC⁻¹μ and −½ log|C| are the same for all codes.

use faer::Mat;

use super::chunks::{from_columns, over_chunks};
use super::component::Component;
use super::mixture::Predictive;
use crate::base::check::positive;
use crate::base::linalg::Cholesky;
use crate::error::{Error, Result};

/// Name of C in errors.
pub(super) const WHAT: &str = "predictive covariance";

impl Predictive {
    /// Probabilities of the K classes, `K × n`, for targets that are one-hot codes. `temperature` τ > 1
    /// flattens them.
    pub fn class_probabilities(&self, temperature: f64) -> Result<Mat<f64>> {
        positive("temperature", temperature)?;
        let (n_classes, n) = (self.n_targets(), self.n_samples());
        let shared: Vec<_> = self.components().iter().map(shared_precision).collect::<Result<_>>()?;
        let chunks = over_chunks(n, |samples| -> Result<Vec<f64>> {
            let mut probabilities = vec![0.0; n_classes * samples.len()];
            let mut logits = vec![0.0; n_classes];
            for ((weight, component), precision) in self.weighted_components().zip(&shared) {
                for (sample, average) in samples.clone().zip(probabilities.chunks_exact_mut(n_classes)) {
                    logits_into(component, precision.as_ref(), sample, &mut logits)?;
                    softmax(&mut logits, temperature);
                    for (sum, p) in average.iter_mut().zip(&logits) {
                        *sum += weight * p;
                    }
                }
            }
            Ok(probabilities)
        });
        Ok(from_columns(n_classes, n, &chunks.into_iter().collect::<Result<Vec<_>>>()?))
    }
}

/// C⁻¹ if all samples share it and it is not diagonal.
pub(super) fn shared_precision(component: &Component) -> Result<Option<Mat<f64>>> {
    if component.is_diagonal() || !component.is_shared() || component.n_samples() == 0 {
        return Ok(None);
    }
    precision(component, 0).map(Some)
}

fn precision(component: &Component, sample: usize) -> Result<Mat<f64>> {
    let mut covariance = Mat::zeros(component.n_targets(), component.n_targets());
    component.covariance_into(sample, &mut covariance);
    Ok(Cholesky::new(covariance.as_ref(), WHAT)?.inverse())
}

/// e_kᵀC⁻¹μ − ½ (C⁻¹)_kk for each k.
pub(super) fn logits_into(
    component: &Component,
    shared: Option<&Mat<f64>>,
    sample: usize,
    logits: &mut [f64],
) -> Result<()> {
    let mean = component.mean.col(sample);
    if component.is_diagonal() {
        for (k, logit) in logits.iter_mut().enumerate() {
            let variance = component.variance(k, sample);
            if variance <= 0.0 {
                return Err(Error::NotPositiveDefinite { what: WHAT, pivot: k });
            }
            *logit = (mean[k] - 0.5) / variance;
        }
        return Ok(());
    }
    let own;
    let precision = if let Some(shared) = shared {
        shared
    } else {
        own = precision(component, sample)?;
        &own
    };
    logits.iter_mut().enumerate().for_each(|(k, logit)| *logit = -0.5 * precision[(k, k)]);
    // By columns of the symmetric C⁻¹, which are contiguous.
    for j in 0..logits.len() {
        for (k, logit) in logits.iter_mut().enumerate() {
            *logit += precision[(k, j)] * mean[j];
        }
    }
    Ok(())
}

/// logits ← softmax(logits/τ).
pub(super) fn softmax(logits: &mut [f64], temperature: f64) {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut total = 0.0;
    for logit in logits.iter_mut() {
        *logit = ((*logit - largest) / temperature).exp();
        total += *logit;
    }
    for logit in logits.iter_mut() {
        *logit /= total;
    }
}
