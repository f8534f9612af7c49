//! Learners are siblings under one trait: each learns from batches, gives its mean network, and draws a
//! network from its posterior (a point learner knows only one). Training, prediction, metrics and figures
//! are written once, for all of them.
//!
//! | learner                | activities                 | weights                                            |
//! |------------------------|----------------------------|----------------------------------------------------|
//! | [`Bpc`]                | feedback, or relaxation    | matrix normal Wishart posterior, conjugate update  |
//! | [`PredictiveCoding`]   | relaxation, unit precision | a point, by the gradient of the same energy        |
//! | [`Backprop`]           | forward pass               | a point, by the gradient of the squared error      |
//! | [`BayesByBackprop`]    | forward pass               | independent normals, by reparametrised gradients   |
//!
//! The last three are the paper's baselines. They share the backward pass (`backward`) and what a single network
//! needs (`point`).

mod backprop;
mod backward;
mod bayes_by_backprop;
mod bpc;
mod halves;
mod point;
mod predictive_coding;
mod settings;

use std::any::Any;

use faer::{Mat, MatRef};
use rand::Rng;

pub use backprop::{Backprop, BackpropSettings};
pub use bayes_by_backprop::{BayesByBackprop, BayesByBackpropSettings, VariationalGradients};
pub use bpc::{Bpc, Rule};
pub use point::ResidualNoise;
pub use predictive_coding::{PAPER_WEIGHT_DECAY, PredictiveCoding, PredictiveCodingSettings};
pub use settings::{BpcSettings, LearnerSettings, Startable};

use crate::base::random::stream;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::heads::{Gaussian, Head};
use crate::learning::FreeEnergy;
use crate::network::PointNetwork;
use crate::prediction::{Method, Predictive};
use crate::real::Real;

/// Where in training a batch stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// t = 1, 2, …, over all calls.
    pub index: u64,
    /// Number of steps planned, if the end is known.
    pub total: Option<u64>,
    /// N: how many samples the posterior should represent.
    pub n_total: f64,
    /// The batch is all the data.
    pub full_batch: bool,
}

/// Something that learns a network from batches.
pub trait Learner<T: Real>: Copies<T> + Send + Sync {
    /// Short name, for tables and plots.
    fn name(&self) -> &'static str;

    /// Whether several threads share a batch of `n` samples.
    fn splits_batch(&self, _n: usize) -> bool {
        false
    }

    /// Look at all the data before training. A learner that wants other coordinates of the inputs returns them,
    /// and gets its batches in them until it finishes.
    fn begin(&mut self, _data: &Dataset<'_, T>) -> Result<Option<Mat<T>>> {
        Ok(None)
    }

    /// Learn from one batch; returns the mean squared error of the forward pass before learning.
    fn learn(&mut self, batch: &Dataset<'_, T>, step: &Step, rng: &mut dyn Rng) -> Result<f64>;

    /// Settle on the data trained on; training may go on afterwards.
    fn finish(&mut self, data: &Dataset<'_, T>) -> Result<()>;

    /// A copy that has settled, to measure while training goes on.
    fn finished_copy(&self, data: &Dataset<'_, T>) -> Result<Box<dyn Learner<T>>> {
        let mut copy = self.boxed_clone();
        copy.finish(data)?;
        Ok(copy)
    }

    /// The network at the posterior mean.
    fn mean_network(&self) -> Result<PointNetwork<T>>;

    /// A network drawn from the posterior; a point learner always gives the same.
    fn draw_network(&self, rng: &mut dyn Rng) -> Result<PointNetwork<T>>;

    /// Free energy of every layer, where the learner has one.
    fn free_energy(&self, _data: &Dataset<'_, T>) -> Result<Option<Vec<FreeEnergy>>> {
        Ok(None)
    }

    /// How its output is read, which also says how held-out samples are scored.
    fn head(&self) -> &dyn Head {
        &Gaussian {}
    }

    /// How it predicts where nobody asks for another way.
    fn default_method(&self) -> Method {
        Method::default()
    }

    /// Predict targets. Unless a learner knows better, it has its mean network and networks drawn from its posterior
    /// to predict by, and no other method.
    fn predict(&self, input: MatRef<'_, T>, method: Method) -> Result<Predictive> {
        method.validate()?;
        match method {
            Method::Mean => {
                let network = self.mean_network()?;
                let activity = network.forward(input)?;
                Predictive::from_component(network.density(activity.as_ref())?)
            }
            Method::MonteCarlo { draws, seed, .. } => {
                let components = (0..draws)
                    .map(|i| {
                        let network = self.draw_network(&mut stream(seed, i as u64))?;
                        let activity = network.forward(input)?;
                        network.density(activity.as_ref())
                    })
                    .collect::<Result<Vec<_>>>()?;
                Predictive::new(components)
            }
            Method::Moments { .. } | Method::Linearised => {
                Err(Error::Method { learner: self.name(), method: method.name() })
            }
        }
    }
}

/// Copies of a learner whose type is not known: every learner that can be cloned has them.
pub trait Copies<T: Real>: Any {
    /// A copy, for validation and for keeping the best.
    fn boxed_clone(&self) -> Box<dyn Learner<T>>;

    /// Go back to a copy of this learner.
    fn restore(&mut self, copy: Box<dyn Learner<T>>);
}

impl<T: Real, L: Learner<T> + Clone> Copies<T> for L {
    fn boxed_clone(&self) -> Box<dyn Learner<T>> {
        Box::new(self.clone())
    }

    fn restore(&mut self, copy: Box<dyn Learner<T>>) {
        let copy: Box<dyn Any> = copy;
        *self = *copy.downcast().expect("a copy is of the learner's own type");
    }
}
