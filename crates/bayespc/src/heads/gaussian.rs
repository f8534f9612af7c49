//! Gaussian head: y = a + noise with one covariance Σ_L for all inputs (the paper's output).
//!
//! ```text
//! t = y ,   w = 1 ,   g = e / mean(e²) ,   e = y − a          the mean by sample weights
//! ```
//!
//! The feedback uses the precision of the batch's own residual: it is right from the first step, while the
//! posterior still remembers its start.

use faer::{MatMut, MatRef};
use serde::{Deserialize, Serialize};

use super::{ActivityPredictive, Block, Head, Response};
use crate::error::Result;
use crate::network::{LayerPrior, PriorSettings};
use crate::prediction::{Component, Dof};

/// Residual variance below which a fit counts as exact.
const EXACT: f64 = 1e-12;

/// Constant Gaussian noise with a full covariance, learned by the output layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gaussian {}

impl Head for Gaussian {
    fn blocks(&self, n_targets: usize, prior: &PriorSettings) -> Vec<Block> {
        let prior = LayerPrior {
            var: prior.output_layer_var.unwrap_or(prior.var),
            bias_var: None,
            inv_scale: 1.0 / prior.scale,
            extra_dof: prior.extra_dof,
        };
        vec![Block { rows: n_targets, prior, random_start: true, unit_noise: false }]
    }

    fn respond(&self, activity: MatRef<'_, f64>, target: MatRef<'_, f64>, response: &mut Response) {
        response.targets.copy_from(target);
        response.weights.fill(1.0);
        faer::zip!(&mut response.feedback, activity, target)
            .for_each(|faer::unzip!(g, activity, target)| *g = *target - *activity);
    }

    fn feedback_factor(&self, mean_square: f64) -> f64 {
        1.0 / mean_square.max(EXACT)
    }

    fn curvature_root(
        &self,
        _activity: MatRef<'_, f64>,
        precision_root: MatRef<'_, f64>,
        k: usize,
        mut seed: MatMut<'_, f64>,
    ) {
        for j in 0..seed.ncols() {
            seed.as_mut().col_mut(j).copy_from(precision_root.col(k));
        }
    }

    fn is_gaussian(&self) -> bool {
        true
    }

    fn density(&self, activity: ActivityPredictive) -> Result<Component> {
        let dof = if activity.dof.is_finite() { Dof::Shared(activity.dof) } else { Dof::Normal };
        Ok(Component {
            mean: activity.mean,
            aleatoric: activity.hidden_noise.plus_shared(&activity.noise),
            epistemic: activity.epistemic,
            dof,
            skew: None,
        })
    }
}
