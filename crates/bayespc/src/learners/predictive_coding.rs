//! Predictive coding: activities at a minimum of the energy, weights by its gradient there.
//!
//! ```text
//! E(Z, W) = ½ Σ_l ‖ε_l‖² ,   ε_l = z_l − W_l φ_{l−1}
//! infer    T steps of descent on E from the forward pass, both ends clamped
//! learn    ∂E/∂W_l = − Σ_j w_j ε_lj φ_{l−1,j}ᵀ / Σ_j w_j
//! ```
//!
//! This is the energy of the Bayesian learner with ⟨Σ_l⁻¹⟩ = I and V = 0, and it is relaxed by the same code.

use faer::{Accum, Mat, MatRef};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::backward::{add, zeros_like};
use super::point::{self, ResidualNoise};
use super::{Learner, Step};
use crate::base::linalg::product_into;
use crate::base::parallel::{for_each_worker, splits_batch};
use crate::data::Dataset;
use crate::error::Result;
use crate::inference::{
    ActivityOptimiser, Clamp, Presynaptic, RelaxationSettings, RelaxedChunk, RelaxingLayers, Sweep, Variables,
};
use crate::learning::ErrorChunk;
use crate::network::{NetworkSettings, PointNetwork};
use crate::optim::{Descent, Optimiser};
use crate::prediction::{Method, Predictive};
use crate::real::Real;

/// The weight decay printed in the paper (App. F). It equals the momentum printed beside it, and the
/// benchmark it is said to follow has 3.6·10⁻⁴, the default here: almost certainly a slip of the print.
pub const PAPER_WEIGHT_DECAY: f64 = 0.65;

/// Rate of the weights' AdamW.
const WEIGHT_RATE: f64 = 2e-4;

/// Settings of predictive coding; the default is the paper's but for the weight decay, see
/// [`PAPER_WEIGHT_DECAY`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PredictiveCodingSettings {
    /// T: steps of the activities; 0 leaves them at the forward pass.
    pub inference_steps: usize,
    /// How activities descend the energy.
    pub activity_optimiser: ActivityOptimiser,
    /// Whether activities descend, or errors.
    pub variables: Variables,
    /// Optimiser of the weights.
    pub optimiser: Optimiser,
    /// Output noise estimated when training ends.
    pub noise: ResidualNoise,
}

impl Default for PredictiveCodingSettings {
    fn default() -> Self {
        Self {
            inference_steps: 10,
            activity_optimiser: ActivityOptimiser::Momentum { rate: Some(0.01), momentum: 0.65 },
            variables: Variables::Activities,
            optimiser: Optimiser::AdamW { rate: WEIGHT_RATE, weight_decay: 3.6e-4 },
            noise: ResidualNoise::default(),
        }
    }
}

impl PredictiveCodingSettings {
    /// The paper's settings as printed, [`PAPER_WEIGHT_DECAY`] included.
    pub fn paper() -> Self {
        Self {
            optimiser: Optimiser::AdamW { rate: WEIGHT_RATE, weight_decay: PAPER_WEIGHT_DECAY },
            ..Self::default()
        }
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        self.optimiser.validate()?;
        self.relaxation().validate()
    }

    /// The same as settings of the relaxation rule, whose precisions are not asked.
    fn relaxation(&self) -> RelaxationSettings {
        RelaxationSettings {
            steps: self.inference_steps,
            tolerance: 0.0,
            optimiser: self.activity_optimiser,
            variables: self.variables,
            sweep: Sweep::Simultaneous,
            halve_steps: false,
            presynaptic: Presynaptic::Relaxed,
            weight_uncertainty: 0.0,
            ..RelaxationSettings::paper()
        }
    }
}

/// A learner by predictive coding.
#[derive(Clone, Debug)]
pub struct PredictiveCoding<T: Real> {
    settings: PredictiveCodingSettings,
    relaxation: RelaxationSettings,
    network: PointNetwork<T>,
    layers: RelaxingLayers<T>,
    gradients: Vec<Mat<T>>,
    squared_error: f64,
    workers: Vec<Worker<T>>,
    descent: Descent<T>,
}

/// One chunk of samples and its share of the gradients.
#[derive(Clone, Debug)]
struct Worker<T: Real> {
    chunk: RelaxedChunk<T>,
    gradients: Vec<Mat<T>>,
}

impl<T: Real> PredictiveCoding<T> {
    /// A network of this shape, with the weights the Bayesian network would start from. Its prior settings
    /// are not used.
    pub fn new(
        network: &NetworkSettings,
        settings: &PredictiveCodingSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Self> {
        settings.validate()?;
        let network = point::start(network, d_input, n_targets, rng)?;
        Ok(Self {
            gradients: zeros_like(&network.weights),
            squared_error: 0.0,
            workers: Vec::new(),
            descent: Descent::new(settings.optimiser, network.weights.iter().map(Mat::shape))?,
            settings: settings.clone(),
            relaxation: settings.relaxation(),
            layers: RelaxingLayers::of_unit_precision(network.weights.len()),
            network,
        })
    }

    /// The settings.
    pub fn settings(&self) -> &PredictiveCodingSettings {
        &self.settings
    }

    /// ∂E/∂W_1 … ∂E/∂W_L of a batch, at its relaxed activities.
    pub fn gradients(&mut self, batch: &Dataset<'_, T>) -> Result<&[Mat<T>]> {
        point::check_batch(&self.network, batch)?;
        let (weights, activation) = (&self.network.weights, self.network.activation);
        let means: Vec<MatRef<'_, T>> = weights.iter().map(Mat::as_ref).collect();
        self.layers.bound_steps(&means, activation, &self.relaxation, None, true);
        let relaxation = self.layers.relaxation(means, activation, &self.relaxation);
        let (clamp, total) = (Clamp::supervised(), batch.total_weight());
        for gradient in &mut self.gradients {
            gradient.fill(T::zero());
        }
        self.squared_error = 0.0;
        for_each_worker(
            &mut self.workers,
            batch.len(),
            self.network.n_weights() * self.settings.inference_steps.max(1),
            || Worker { chunk: RelaxedChunk::new(&relaxation, 0), gradients: zeros_like(weights) },
            |worker, first, n| {
                worker.chunk.infer(&relaxation, batch, &clamp, first, n);
                worker.chunk.settle_errors(&relaxation);
                worker.update_gradients(total);
            },
            |worker| {
                add(&mut self.gradients, &worker.gradients);
                self.squared_error += worker.squared_error();
            },
        );
        Ok(&self.gradients)
    }
}

impl<T: Real> Worker<T> {
    /// − Σ_j w_j ε_lj φ_{l−1,j}ᵀ / `total`; the errors have their weights already.
    fn update_gradients(&mut self, total: f64) {
        for (l, gradient) in self.gradients.iter_mut().enumerate() {
            let (error, pre) = (self.chunk.error(l).as_ref(), self.chunk.presynaptic(l).transpose());
            product_into(gradient.as_mut(), Accum::Replace, error, pre, T::lit(-1.0 / total));
        }
    }

    /// Σ_j w_j ‖y_j − ẑ_j‖².
    fn squared_error(&self) -> f64 {
        let squares = self.chunk.squared_errors().iter();
        match self.chunk.sample_weights() {
            None => squares.sum(),
            Some(weights) => squares.zip(weights).map(|(square, weight)| weight * square).sum(),
        }
    }
}

impl<T: Real> Learner<T> for PredictiveCoding<T> {
    fn name(&self) -> &'static str {
        "predictive-coding"
    }

    fn splits_batch(&self, n: usize) -> bool {
        splits_batch(self.network.n_weights(), n)
    }

    fn learn(&mut self, batch: &Dataset<'_, T>, _step: &Step, _rng: &mut dyn Rng) -> Result<f64> {
        self.gradients(batch)?;
        self.descent.step(&mut self.network.weights, &self.gradients);
        Ok(self.squared_error / (batch.total_weight() * batch.target().nrows() as f64))
    }

    fn finish(&mut self, data: &Dataset<'_, T>) -> Result<()> {
        self.network.output_noise = point::residual_noise(&self.network, data, self.settings.noise)?;
        Ok(())
    }

    fn mean_network(&self) -> Result<PointNetwork<T>> {
        Ok(self.network.clone())
    }

    fn draw_network(&self, _rng: &mut dyn Rng) -> Result<PointNetwork<T>> {
        Ok(self.network.clone())
    }

    fn predict(&self, input: MatRef<'_, T>, _method: Method) -> Result<Predictive> {
        point::predict(&self.network, input)
    }
}
