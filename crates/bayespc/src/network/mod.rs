//! The network: layers with posteriors, activations and their Gaussian moments, and point networks drawn
//! from the posterior.

pub mod activation;
mod init;
mod layer;
#[expect(clippy::module_inception, reason = "the folder's main type")]
mod network;
mod point;

pub use activation::{Activation, CovarianceRule};
pub use init::Init;
pub use layer::{Expectations, Layer, LayerPrior, PriorSettings};
pub use network::{Network, NetworkSettings, OutputLayer, Posteriors};
pub use point::{Activities, PointNetwork, activated, with_bias};
pub(crate) use point::{CHUNK, check_input};
