//! Backpropagation: a point network trained by the gradient of its squared error.
//!
//! ```text
//! ℒ = Σ_j w_j ‖y_j − a_j‖² / (2 Σ_j w_j)
//! ```
//!
//! Squared error on standardised or one-hot targets is the loss of the other learners too, so figures
//! compare how they learn and not what.

use faer::{Mat, MatRef};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::backward::Backward;
use super::point::{self, ResidualNoise};
use super::{Learner, Step};
use crate::base::parallel::splits_batch;
use crate::data::Dataset;
use crate::error::Result;
use crate::network::{NetworkSettings, PointNetwork};
use crate::optim::{Descent, Optimiser};
use crate::prediction::{Method, Predictive};
use crate::real::Real;

/// Settings of backpropagation; the default is the paper's: Adam at 0.001.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackpropSettings {
    /// Optimiser of the weights.
    pub optimiser: Optimiser,
    /// Output noise estimated when training ends.
    pub noise: ResidualNoise,
}

impl BackpropSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        self.optimiser.validate()
    }
}

/// A learner by backpropagation.
#[derive(Clone, Debug)]
pub struct Backprop<T: Real> {
    settings: BackpropSettings,
    network: PointNetwork<T>,
    backward: Backward<T>,
    descent: Descent<T>,
}

impl<T: Real> Backprop<T> {
    /// A network of this shape, with the weights the Bayesian network would start from. Its prior settings
    /// are not used.
    pub fn new(
        network: &NetworkSettings,
        settings: &BackpropSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Self> {
        let network = point::start(network, d_input, n_targets, rng)?;
        Ok(Self {
            backward: Backward::new(&network.weights),
            descent: Descent::new(settings.optimiser, network.weights.iter().map(Mat::shape))?,
            settings: settings.clone(),
            network,
        })
    }

    /// The settings.
    pub fn settings(&self) -> &BackpropSettings {
        &self.settings
    }

    /// ∂ℒ/∂W_1 … ∂ℒ/∂W_L of a batch.
    pub fn gradients(&mut self, batch: &Dataset<'_, T>) -> Result<&[Mat<T>]> {
        point::check_batch(&self.network, batch)?;
        let scales = vec![1.0 / batch.total_weight(); batch.target().nrows()];
        self.backward.run(&self.network.weights, self.network.activation, batch, &scales);
        Ok(self.backward.gradients())
    }
}

impl<T: Real> Learner<T> for Backprop<T> {
    fn name(&self) -> &'static str {
        "backprop"
    }

    fn splits_batch(&self, n: usize) -> bool {
        splits_batch(self.network.n_weights(), n)
    }

    fn learn(&mut self, batch: &Dataset<'_, T>, _step: &Step, _rng: &mut dyn Rng) -> Result<f64> {
        self.gradients(batch)?;
        self.descent.step(&mut self.network.weights, self.backward.gradients());
        let squares: f64 = self.backward.squared_errors().iter().sum();
        Ok(squares / (batch.total_weight() * batch.target().nrows() as f64))
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
