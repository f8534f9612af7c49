//! The network: layers with posteriors, activations and their Gaussian moments, and point networks drawn
//! from the posterior.

pub mod activation;
mod backward;
mod init;
mod layer;
#[expect(clippy::module_inception, reason = "the folder's main type")]
mod network;
mod output;
mod point;
mod posteriors;
mod settings;
mod wide_layers;

pub use activation::{Activation, CovarianceRule};
pub(crate) use backward::{back_one, back_one_into, slopes};
pub use init::Init;
pub use layer::{Expectations, Layer, LayerPrior};
pub(crate) use layer::{Metric, MovingMean, WideLayer, WideNoise, WideParts, prior_inv_scale};
pub use network::Network;
pub use output::OutputLayer;
pub(crate) use point::check_input;
pub use point::{Activities, PointNetwork, activated, with_bias};
pub use posteriors::Posteriors;
pub(crate) use posteriors::block_diagonal;
pub use settings::{NetworkSettings, PriorSettings};
pub use wide_layers::WideLayers;
