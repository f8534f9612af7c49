//! The network: layers with posteriors, activations and their Gaussian moments, and point networks drawn
//! from the posterior.

pub mod activation;
mod init;
mod layer;
#[expect(clippy::module_inception, reason = "the folder's main type")]
mod network;
mod output;
mod point;
mod posteriors;
mod settings;

pub use activation::{Activation, CovarianceRule};
pub use init::Init;
pub use layer::{Expectations, Layer, LayerPrior};
pub use network::Network;
pub use output::OutputLayer;
pub use point::{Activities, PointNetwork, activated, with_bias};
pub(crate) use point::{CHUNK, check_input};
pub use posteriors::Posteriors;
pub use settings::{NetworkSettings, PriorSettings};
