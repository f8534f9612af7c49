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
use crate::inference::{ActivityOptimiser, Clamp, HiddenPrecision, RelaxationSettings, Relaxer, Sweep};
use crate::network::{Activities, Expectations, NetworkSettings, PointNetwork};
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

    /// The same as settings of the relaxation rule: no weight uncertainty, precisions as they are.
    fn relaxation(&self) -> RelaxationSettings {
        RelaxationSettings {
            steps: self.inference_steps,
            tolerance: 0.0,
            optimiser: self.activity_optimiser,
            sweep: Sweep::Simultaneous,
            halve_steps: false,
            hidden_precision: HiddenPrecision::Learned,
            weight_uncertainty: 0.0,
            ..RelaxationSettings::paper()
        }
    }
}

/// A learner by predictive coding.
#[derive(Clone, Debug)]
pub struct PredictiveCoding<T: Real> {
    settings: PredictiveCodingSettings,
    network: PointNetwork<T>,
    gradients: Vec<Mat<T>>,
    squared_error: f64,
    workers: Vec<Worker<T>>,
    descent: Descent<T>,
}

/// Sums of one chunk of samples.
#[derive(Clone, Debug)]
struct Worker<T: Real> {
    gradients: Vec<Mat<T>>,
    squared_error: f64,
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
        let relaxer = self.relaxer()?;
        for gradient in &mut self.gradients {
            gradient.fill(T::zero());
        }
        self.squared_error = 0.0;
        let weights = &self.network.weights;
        for_each_worker(
            &mut self.workers,
            batch.len(),
            self.network.n_weights(),
            || Worker { gradients: zeros_like(weights), squared_error: 0.0 },
            |worker, start, n| worker.run(&relaxer, batch, start, n),
            |worker| {
                add(&mut self.gradients, &worker.gradients);
                self.squared_error += worker.squared_error;
            },
        );
        Ok(&self.gradients)
    }

    /// The energy with unit precisions and certain weights.
    fn relaxer(&self) -> Result<Relaxer<T>> {
        let layers = self.network.weights.iter().map(|weights| Expectations {
            mean: weights.clone(),
            precision: Mat::identity(weights.nrows(), weights.nrows()),
            col_cov: Mat::new(),
        });
        // The input is clamped, so the variance of its prior is never used.
        Relaxer::from_expectations(
            layers.collect(),
            self.network.activation,
            &self.settings.relaxation(),
            1.0,
        )
    }
}

impl<T: Real> Worker<T> {
    fn run(&mut self, relaxer: &Relaxer<T>, batch: &Dataset<'_, T>, start: usize, n: usize) {
        let clamp = Clamp::supervised();
        let (input, target) = (batch.input().subcols(start, n), batch.target().subcols(start, n));
        let mut activities = relaxer.start(input, target, &clamp);
        let weight = |j: usize| batch.weights().map_or(1.0, |w| w[start + j]);
        let top = relaxer.layers().len() - 1;
        let error = errors(relaxer, &activities, top);
        self.squared_error = (0..n)
            .map(|j| {
                let squares = error.col_as_slice(j).iter().map(|e| e.as_f64() * e.as_f64());
                weight(j) * squares.sum::<f64>()
            })
            .sum();
        relaxer.relax_unwatched(&mut activities, &clamp);
        let total = batch.total_weight();
        for (l, gradient) in self.gradients.iter_mut().enumerate() {
            let mut error = errors(relaxer, &activities, l);
            for j in 0..n {
                let share = T::lit(weight(j) / total);
                error.col_as_slice_mut(j).iter_mut().for_each(|e| *e = share * *e);
            }
            product_into(
                gradient.as_mut(),
                Accum::Replace,
                error.as_ref(),
                activities.pre[l].transpose(),
                -T::one(),
            );
        }
    }
}

/// ε_l = z_l − W_l φ_{l−1}: the product first and as the forward pass has it, so that an activity that has
/// not moved has no error at all.
fn errors<T: Real>(relaxer: &Relaxer<T>, activities: &Activities<T>, l: usize) -> Mat<T> {
    let (pre, post) = (&activities.pre[l], &activities.post[l]);
    let mut error = Mat::zeros(post.nrows(), post.ncols());
    product_into(error.as_mut(), Accum::Replace, relaxer.layers()[l].mean.as_ref(), pre.as_ref(), T::one());
    faer::zip!(&mut error, post).for_each(|faer::unzip!(e, z)| *e = *z - *e);
    error
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
