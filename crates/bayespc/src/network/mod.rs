//! The network: layers with posteriors, activations and their Gaussian moments, and point networks drawn
//! from the posterior.

mod activation;
pub mod activation_moments;
mod init;
mod layer;
#[expect(clippy::module_inception, reason = "the folder's main type")]
mod network;
mod point;
mod rectified_gaussian;
mod smooth_gaussian;

pub use activation::Activation;
pub use activation_moments::CovarianceRule;
pub use init::Init;
pub use layer::{Expectations, Layer, LayerPrior, PriorSettings};
pub use network::{Network, NetworkSettings, OutputLayer, Posteriors};
pub use point::{Activities, PointNetwork, activated, with_bias};
pub(crate) use point::{CHUNK, check_input};
