//! Log density of targets under a predictive: log-mean-exp over components, never the mean of logs.
//!
//! ```text
//! log p(y) = log Σ_c w_c p_c(y)
//! log p_c(y) = log N(y | μ, C)                                       normal
//!            = log t_k(y | μ, C (k−2)/k)                             Student-t, with covariance C
//!            = const(k, d) − d/2 log((k−2)/k) − ½ log|C| − (k+d)/2 log(1 + m/(k−2))
//! m = (y − μ)ᵀ C⁻¹ (y − μ)
//! ```

use std::ops::Range;

use faer::{Mat, MatRef};

use super::chunks::{filled, over_chunks};
use super::component::Component;
use super::marginal::{Marginals, mixture_cdf_and_density};
use super::mixture::Predictive;
use super::quantiles::tail_quantile;
use super::recalibrated::Recalibrated;
use super::skew::Part;
use crate::base::linalg::Cholesky;
use crate::distributions::student_t::{log_kernel, log_normaliser};
use crate::error::{Error, Result};
use crate::special::log_sum_exp;

/// Name of C in errors.
const WHAT: &str = "predictive covariance";

/// How a component's covariance is brought to distances and determinants.
enum Root {
    /// Independent targets: entry by entry.
    Diagonal,
    /// One factor for all samples, with log|C|.
    Shared(Cholesky, f64),
    /// A factor for each sample.
    PerSample,
}

/// Memory that a chunk of samples reuses from component to component.
struct Scratch {
    residual: Mat<f64>,
    covariance: Mat<f64>,
    factor: Option<Cholesky>,
}

impl Predictive {
    /// log p(y_i) of each sample, jointly over its d targets. An error for point predictions, which have
    /// no density.
    pub fn log_density(&self, targets: MatRef<'_, f64>) -> Result<Vec<f64>> {
        self.check_targets(targets)?;
        match self.recalibrated() {
            Some(recalibrated) => self.recalibrated_log_density(recalibrated, targets),
            None => self.own_log_density(targets),
        }
    }

    /// The model's own dependence between targets with recalibrated marginals: y_i belongs to the y⁰_i that has the same
    /// probability below it under the model's own marginal F⁰_i,
    ///
    /// ```text
    /// log p(y) = log p⁰(y⁰) + Σ_i log p_i(y_i) − log p⁰_i(y⁰_i) ,   F_i(y_i) = F⁰_i(y⁰_i)
    /// ```
    fn recalibrated_log_density(&self, z: &[Recalibrated], targets: MatRef<'_, f64>) -> Result<Vec<f64>> {
        let (d, n) = (self.n_targets(), self.n_samples());
        let shared = Marginals::new(self, usize::MAX);
        // Of each target y⁰, and log p_i − log p⁰_i in the row below it; of a single target log p_i alone.
        let moved = filled(2 * d, n, |row, sample, pair: &mut (f64, f64)| {
            if row % 2 == 1 {
                return pair.1;
            }
            let target = row / 2;
            let (mean, std) = self.own_moments(target, sample);
            let place = (targets[(target, sample)] - mean) / std;
            let log_density = (z[target].density(place) / std).ln();
            *pair = (targets[(target, sample)], log_density);
            if d > 1 && std > 0.0 {
                let mut marginals = Vec::new();
                shared.fill(target, sample, &mut marginals);
                let own = tail_quantile(&mut marginals, z[target].smaller_tail(place), place > 0.0);
                *pair = (own, log_density - mixture_cdf_and_density(&marginals, own).1.ln());
            }
            pair.0
        });
        if let Some(pivot) = (0..d).find(|&target| (0..n).any(|j| !(self.own_moments(target, j).1 > 0.0))) {
            return Err(Error::NotPositiveDefinite { what: WHAT, pivot });
        }
        if d == 1 {
            return Ok((0..n).map(|j| moved[(1, j)]).collect());
        }
        let own = Mat::from_fn(d, n, |i, j| moved[(2 * i, j)]);
        let mut densities = self.own_log_density(own.as_ref())?;
        for (j, density) in densities.iter_mut().enumerate() {
            *density += (0..d).map(|i| moved[(2 * i + 1, j)]).sum::<f64>();
        }
        Ok(densities)
    }

    fn own_log_density(&self, targets: MatRef<'_, f64>) -> Result<Vec<f64>> {
        let (d, n_parts) = (self.n_targets(), self.n_parts());
        let prepared = self.components().iter().map(prepare).collect::<Result<Vec<_>>>()?;
        let chunks = over_chunks(self.n_samples(), |samples| {
            let mut scratch = Scratch {
                residual: Mat::zeros(d, samples.len()),
                covariance: Mat::zeros(d, d),
                factor: None,
            };
            let mut terms = vec![0.0; samples.len() * n_parts];
            let each = self.components().iter().zip(&prepared).zip(self.log_weights());
            let each = each.flat_map(|((component, prepared), log_weight)| {
                component.parts().map(move |part| (component, part, prepared, log_weight + part.weight.ln()))
            });
            for (c, (component, part, (root, constant), log_weight)) in each.enumerate() {
                component_terms(
                    (component, &part),
                    root,
                    targets,
                    samples.clone(),
                    &mut scratch,
                    |i, log_det, distance| {
                        let dof = component.dof.value();
                        terms[i * n_parts + c] =
                            log_weight + constant - 0.5 * log_det + log_kernel(d, dof, distance, dof - 2.0);
                    },
                )?;
            }
            Ok(terms.chunks_exact(n_parts).map(log_sum_exp).collect::<Vec<_>>())
        });
        Ok(chunks.into_iter().collect::<Result<Vec<_>>>()?.concat())
    }
}

/// The normaliser for a density given its covariance, not its scale.
fn log_constant(d: usize, dof: f64) -> f64 {
    let shrinkage = if dof.is_finite() { 0.5 * d as f64 * (-2.0 / dof).ln_1p() } else { 0.0 };
    log_normaliser(d, dof) - shrinkage
}

/// What all samples of a component share: the factor if they do, and the constant.
fn prepare(component: &Component) -> Result<(Root, f64)> {
    let d = component.n_targets();
    let root = if component.is_diagonal() {
        Root::Diagonal
    } else if component.is_shared() && component.n_samples() > 0 {
        let mut covariance = Mat::zeros(d, d);
        component.covariance_into(0, &mut covariance);
        let factor = Cholesky::new(covariance.as_ref(), WHAT)?;
        let log_det = factor.log_det();
        Root::Shared(factor, log_det)
    } else {
        Root::PerSample
    };
    Ok((root, log_constant(d, component.dof.value())))
}

/// Hand (index in the chunk, log|C|, squared distance of the target) of each sample in a part of the noise to `term`.
/// Noise of several targets has one part.
fn component_terms(
    (component, part): (&Component, &Part),
    root: &Root,
    targets: MatRef<'_, f64>,
    samples: Range<usize>,
    scratch: &mut Scratch,
    mut term: impl FnMut(usize, f64, f64),
) -> Result<()> {
    let d = component.n_targets();
    if let Root::Diagonal = root {
        for (i, sample) in samples.enumerate() {
            let (mut log_det, mut distance) = (0.0, 0.0);
            for target in 0..d {
                let (mean, variance) = component.within(part, target, sample);
                if variance <= 0.0 {
                    return Err(Error::NotPositiveDefinite { what: WHAT, pivot: target });
                }
                let residual = targets[(target, sample)] - mean;
                log_det += variance.ln();
                distance += residual * residual / variance;
            }
            term(i, log_det, distance);
        }
        return Ok(());
    }
    for (i, sample) in samples.enumerate() {
        for target in 0..d {
            scratch.residual[(target, i)] = targets[(target, sample)] - component.mean[(target, sample)];
        }
        if let Root::PerSample = root {
            component.covariance_into(sample, &mut scratch.covariance);
            let factor = match &mut scratch.factor {
                Some(factor) => {
                    factor.refactor(scratch.covariance.as_ref(), WHAT)?;
                    factor
                }
                empty => empty.insert(Cholesky::new(scratch.covariance.as_ref(), WHAT)?),
            };
            factor.solve_lower_in_place(scratch.residual.as_mut().subcols_mut(i, 1));
            term(i, factor.log_det(), scratch.residual.col(i).squared_norm_l2());
        }
    }
    if let Root::Shared(factor, log_det) = root {
        factor.solve_lower_in_place(scratch.residual.as_mut());
        for i in 0..scratch.residual.ncols() {
            term(i, *log_det, scratch.residual.col(i).squared_norm_l2());
        }
    }
    Ok(())
}
