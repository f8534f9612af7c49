//! Variance node: noise that depends on the input (after the method of Wu et al. 2019 that the paper cites).
//!
//! ```text
//! output (m, ℓ),  y ~ N(m, e^ℓ) independently per target,   r = y − m,  w = e^−ℓ,  u = min(r²w, cap) − 1
//! mean rows:          t = y ,      weight w
//! log-variance rows:  t = ℓ + u ,  weight ½          (Fisher scoring of the log-likelihood)
//! feedback:           g = ( w r ,  ½ u )
//! ```
//!
//! With d targets the activity has 2d rows: d means, then d log-variances. Each mean row has weights of its
//! own and hence its own posterior; the log-variances share theirs. The bias of ℓ has a nearly flat prior.

use faer::{Mat, MatMut, MatRef};
use serde::{Deserialize, Serialize};

use super::{ActivityPredictive, Block, Head, Response};
use crate::base::check;
use crate::error::{Error, Result};
use crate::network::{LayerPrior, PriorSettings};
use crate::prediction::{Component, Covariance, Dof};

/// Weight of the log-variance rows: the Fisher information of ℓ.
const FISHER: f64 = 0.5;

/// Gaussian noise whose log-variance is an output of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VarianceNode {
    /// V⁰ of the log-variance weights.
    pub var: f64,
    /// V⁰ of the log-variance bias.
    pub bias_var: f64,
    /// Smallest log-variance, relative to a target of variance 1.
    pub floor: f64,
    /// Largest log-variance, relative to a target of variance 1.
    pub ceiling: f64,
    /// Largest standardised squared residual r²w one sample may claim.
    pub outlier_cap: f64,
    /// Degrees of freedom of the predictive: heavier tails than the Gaussian, for an uncertain ℓ.
    pub tail_dof: f64,
}

impl Default for VarianceNode {
    fn default() -> Self {
        Self { var: 1.0, bias_var: 1000.0, floor: -9.0, ceiling: 3.0, outlier_cap: 25.0, tail_dof: 30.0 }
    }
}

impl VarianceNode {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        let positive = [
            ("head.var", self.var),
            ("head.bias_var", self.bias_var),
            ("head.outlier_cap", self.outlier_cap),
        ];
        positive.into_iter().try_for_each(|(name, value)| check::positive(name, value))?;
        if !(self.floor.is_finite() && self.ceiling.is_finite() && self.floor < self.ceiling) {
            return Err(Error::Setting {
                name: "head.floor",
                value: self.floor,
                must_be: "finite and below head.ceiling",
            });
        }
        if !(self.tail_dof > 2.0) {
            return Err(Error::DegreesOfFreedom {
                what: "the predictive (head.tail_dof)",
                dof: self.tail_dof,
                bound: 2.0,
            });
        }
        Ok(())
    }

    fn log_variance(&self, activity: f64) -> f64 {
        activity.clamp(self.floor, self.ceiling)
    }
}

impl Head for VarianceNode {
    fn blocks(&self, n_targets: usize, prior: &PriorSettings) -> Vec<Block> {
        // ⟨Σ⟩ = Ψ⁻¹/(ν−d−1) = 1: the weights carry the noise.
        let unit = |var, bias_var| LayerPrior {
            var,
            bias_var,
            inv_scale: prior.extra_dof - 1.0,
            extra_dof: prior.extra_dof,
        };
        let mean_prior = unit(prior.output_layer_var.unwrap_or(prior.var), None);
        let mean = Block { rows: 1, prior: mean_prior, random_start: true, unit_noise: true };
        let log_prior = unit(self.var, Some(self.bias_var));
        let log_variance = Block { rows: n_targets, prior: log_prior, random_start: false, unit_noise: true };
        let mut blocks = vec![mean; n_targets];
        blocks.push(log_variance);
        blocks
    }

    fn respond(&self, activity: MatRef<'_, f64>, target: MatRef<'_, f64>, response: &mut Response) {
        let d = target.nrows();
        for j in 0..target.ncols() {
            for i in 0..d {
                let log_variance = self.log_variance(activity[(d + i, j)]);
                let weight = (-log_variance).exp();
                let residual = target[(i, j)] - activity[(i, j)];
                let surprise = (residual * residual * weight).min(self.outlier_cap) - 1.0;
                response.targets[(i, j)] = target[(i, j)];
                response.weights[(i, j)] = weight;
                response.feedback[(i, j)] = weight * residual;
                response.targets[(d + i, j)] = log_variance + surprise;
                response.feedback[(d + i, j)] = FISHER * surprise;
            }
            response.weights[(d, j)] = FISHER;
        }
    }

    fn curvature_root(
        &self,
        activity: MatRef<'_, f64>,
        _precision_root: MatRef<'_, f64>,
        k: usize,
        mut seed: MatMut<'_, f64>,
    ) {
        let d = activity.nrows() / 2;
        seed.fill(0.0);
        for j in 0..seed.ncols() {
            seed[(k, j)] =
                if k < d { (-0.5 * self.log_variance(activity[(d + k, j)])).exp() } else { FISHER.sqrt() };
        }
    }

    fn density(&self, activity: ActivityPredictive) -> Result<Component> {
        let (d, n) = (activity.mean.nrows() / 2, activity.mean.ncols());
        // Where hidden layers have noise of their own, it reaches the mean.
        let variance = Mat::from_fn(d, n, |i, j| {
            self.log_variance(activity.mean[(d + i, j)]).exp() + activity.hidden_noise.variance(i, j)
        });
        Ok(Component {
            mean: activity.mean.subrows(0, d).to_owned(),
            aleatoric: Covariance::Diagonal(variance),
            epistemic: activity.epistemic.leading(d),
            dof: Dof::Shared(self.tail_dof),
            skew: None,
        })
    }
}
