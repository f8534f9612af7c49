//! Categorical head: the output activity holds the logits of K classes.
//!
//! ```text
//! p = softmax(a) ,   y one of the codes e_1 … e_K ,   log p(y | a) = yᵀ log p
//! feedback    g = y − p
//! curvature   diag(p) − ppᵀ ≼ ½ (I − 11ᵀ/K) ≼ ½ I      Böhning's bounds (1992): the same for all samples
//! target      t = a + 2 (y − p) ,   weight ½           Fisher scoring with the bound
//! ```
//!
//! The bound can only make steps shorter. The posterior of the hidden weights is built with it too, as that of the output
//! weights is: it is the posterior under a quadratic lower bound of the log-likelihood. The curvature itself would not
//! do. It vanishes where the network is sure of its training samples, and with it the precision of the hidden weights,
//! whose prior is relative to that precision: logits would have variances of thousands. A root of the bound has the
//! columns √½ (e_k − 1/K).
//!
//! A Gaussian over one-hot codes with mean a and covariance I, restricted to the codes, has the probabilities
//! softmax(a): that is how the distribution is handed on. Epistemic variances v of the logits flatten
//! them before by the mean-field rule a_k / √(1 + π v_k / 8) (MacKay 1992; Lu et al. 2020), and the unit variance is
//! shared out between noise and epistemic part as 1 to π v_k / 8.

use faer::{Mat, MatMut, MatRef};
use serde::{Deserialize, Serialize};

use super::{ActivityPredictive, Block, Head, Response};
use crate::base::check::check_shape;
use crate::error::Result;
use crate::network::{LayerPrior, PriorSettings};
use crate::prediction::{Component, Covariance, Dof, Predictive};

/// Böhning's bound on the curvature.
const CURVATURE: f64 = 0.5;

/// Classes with probabilities softmax(a).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Categorical {}

impl Head for Categorical {
    fn blocks(&self, n_targets: usize, prior: &PriorSettings) -> Vec<Block> {
        // ⟨Σ⟩ = Ψ⁻¹/(ν−d−1) = I: the weights carry the noise.
        let prior = LayerPrior {
            var: prior.output_layer_var.unwrap_or(prior.var),
            bias_var: None,
            inv_scale: prior.extra_dof - 1.0,
            extra_dof: prior.extra_dof,
        };
        vec![Block { rows: n_targets, prior, random_start: true, unit_noise: true }]
    }

    fn respond(&self, activity: MatRef<'_, f64>, target: MatRef<'_, f64>, response: &mut Response) {
        response.weights.fill(CURVATURE);
        for j in 0..target.ncols() {
            let (largest, total) = normaliser(activity, j);
            for i in 0..target.nrows() {
                let error = target[(i, j)] - (activity[(i, j)] - largest).exp() / total;
                response.feedback[(i, j)] = error;
                response.targets[(i, j)] = activity[(i, j)] + error / CURVATURE;
            }
        }
    }

    fn curvature_root(
        &self,
        _activity: MatRef<'_, f64>,
        _precision_root: MatRef<'_, f64>,
        k: usize,
        mut seed: MatMut<'_, f64>,
    ) {
        let share = 1.0 / seed.nrows() as f64;
        seed.fill(-CURVATURE.sqrt() * share);
        for j in 0..seed.ncols() {
            seed[(k, j)] = CURVATURE.sqrt() * (1.0 - share);
        }
    }

    fn density(&self, activity: ActivityPredictive) -> Result<Component> {
        let (d, n) = activity.mean.shape();
        let ratio = |i: usize, j: usize| {
            let variance = activity.epistemic.variance(i, j) + activity.hidden_noise.variance(i, j);
            std::f64::consts::FRAC_PI_8 * variance
        };
        Ok(Component {
            mean: Mat::from_fn(d, n, |i, j| activity.mean[(i, j)] / (1.0 + ratio(i, j)).sqrt()),
            aleatoric: Covariance::Diagonal(Mat::from_fn(d, n, |i, j| 1.0 / (1.0 + ratio(i, j)))),
            epistemic: Covariance::Diagonal(Mat::from_fn(d, n, |i, j| ratio(i, j) / (1.0 + ratio(i, j)))),
            dof: Dof::Normal,
            skew: None,
        })
    }

    /// Mean yᵀ log p. The density of a code under the Gaussian that hands the logits on would fall as they grow.
    fn score(&self, predictive: &Predictive, target: MatRef<'_, f64>) -> Result<f64> {
        check_shape("target", target, predictive.n_targets(), predictive.n_samples())?;
        let probabilities = predictive.class_probabilities(1.0)?;
        let mut sum = 0.0;
        for j in 0..target.ncols() {
            for i in 0..target.nrows() {
                // As `metrics::negative_log_likelihood` has it, an impossible class costs 36 and not ∞.
                sum += target[(i, j)] * probabilities[(i, j)].max(f64::EPSILON).ln();
            }
        }
        Ok(sum / target.ncols() as f64)
    }
}

/// The largest logit of a sample, and Σ exp(a − largest).
fn normaliser(activity: MatRef<'_, f64>, sample: usize) -> (f64, f64) {
    let logits = activity.col(sample);
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (largest, logits.iter().map(|a| (a - largest).exp()).sum())
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    fn logits() -> Mat<f64> {
        Mat::from_fn(3, 4, |i, j| (1.3 * i as f64 - 0.7 * j as f64).sin() * 3.0)
    }

    fn softmax(activity: &Mat<f64>, j: usize) -> Vec<f64> {
        let weights: Vec<f64> = activity.col(j).iter().map(|a| a.exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|w| w / total).collect()
    }

    #[test]
    fn the_feedback_is_the_gradient_of_the_log_likelihood_and_the_target_its_scoring_step() {
        let activity = logits();
        let target = Mat::from_fn(3, 4, |i, j| f64::from(u8::from(i == j % 3)));
        let mut response = Response::zeros(3, 1, 4);
        Categorical {}.respond(activity.as_ref(), target.as_ref(), &mut response);
        let likelihood =
            |activity: &Mat<f64>| -> f64 { (0..4).map(|j| softmax(activity, j)[j % 3].ln()).sum() };
        let h = 1e-6;
        for j in 0..4 {
            for i in 0..3 {
                let (mut up, mut down) = (activity.clone(), activity.clone());
                up[(i, j)] += h;
                down[(i, j)] -= h;
                let numeric = (likelihood(&up) - likelihood(&down)) / (2.0 * h);
                assert_relative_eq!(response.feedback[(i, j)], numeric, max_relative = 1e-7, epsilon = 1e-9);
                let step = response.weights[(0, j)] * (response.targets[(i, j)] - activity[(i, j)]);
                assert_relative_eq!(step, numeric, max_relative = 1e-7, epsilon = 1e-9);
            }
        }
    }

    #[test]
    fn the_columns_of_the_root_make_up_a_bound_of_the_curvature() {
        let activity = logits();
        let mut sum = vec![Mat::<f64>::zeros(3, 3); 4];
        for k in 0..3 {
            let mut seed = Mat::zeros(3, 4);
            Categorical {}.curvature_root(activity.as_ref(), Mat::zeros(3, 3).as_ref(), k, seed.as_mut());
            for (j, sum) in sum.iter_mut().enumerate() {
                *sum += seed.col(j) * seed.col(j).transpose();
            }
        }
        for (j, sum) in sum.iter().enumerate() {
            let p = softmax(&activity, j);
            let curvature = Mat::from_fn(3, 3, |row, column| {
                (if row == column { p[row] } else { 0.0 }) - p[row] * p[column]
            });
            for (row, column) in (0..9).map(|k| (k % 3, k / 3)) {
                let expected = 0.5 * (f64::from(u8::from(row == column)) - 1.0 / 3.0);
                assert_relative_eq!(sum[(row, column)], expected, epsilon = 1e-14);
            }
            // The bound less the curvature has no negative eigenvalue.
            let excess = (sum - curvature).self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
            assert!(excess.iter().all(|&value| value > -1e-14), "{excess:?}");
        }
    }

    #[test]
    fn the_score_of_codes_is_the_likelihood_of_their_classes_and_grows_with_right_logits() {
        let target = Mat::from_fn(3, 4, |i, j| f64::from(u8::from(i == j % 3)));
        let score = |logits: Mat<f64>| {
            let activity = ActivityPredictive {
                mean: logits,
                epistemic: Covariance::Zero,
                hidden_noise: Covariance::Zero,
                noise: Mat::identity(3, 3),
                dof: f64::INFINITY,
            };
            let component = Categorical {}.density(activity).unwrap();
            let predictive = Predictive::from_component(component).unwrap();
            Categorical {}.score(&predictive, target.as_ref()).unwrap()
        };
        let expected: f64 = (0..4).map(|j| softmax(&logits(), j)[j % 3].ln()).sum::<f64>() / 4.0;
        assert_relative_eq!(score(logits()), expected, max_relative = 1e-12);
        let scores: Vec<f64> = [1.0, 2.0, 10.0].map(|size| score(&target * faer::Scale(size))).to_vec();
        assert!(scores.is_sorted() && scores[2] > -1e-3, "{scores:?}");
    }

    #[test]
    fn without_epistemic_variance_the_probabilities_are_the_softmax_and_it_flattens_them() {
        let probabilities = |epistemic: f64| {
            let activity = ActivityPredictive {
                mean: logits(),
                epistemic: Covariance::Shared(Mat::<f64>::identity(3, 3) * faer::Scale(epistemic)),
                hidden_noise: Covariance::Zero,
                noise: Mat::identity(3, 3),
                dof: f64::INFINITY,
            };
            let component = Categorical {}.density(activity).unwrap();
            Predictive::from_component(component).unwrap().class_probabilities(1.0).unwrap()
        };
        let (sure, unsure) = (probabilities(0.0), probabilities(4.0));
        for j in 0..4 {
            for (i, expected) in softmax(&logits(), j).into_iter().enumerate() {
                assert_relative_eq!(sure[(i, j)], expected, max_relative = 1e-12);
            }
            let largest = |p: &Mat<f64>| p.col(j).iter().copied().fold(0.0, f64::max);
            assert!(largest(&unsure) < largest(&sure));
        }
    }
}
