//! What a network is made of: activations and what they do to Gaussian inputs.

pub mod activation;
pub mod activation_moments;

mod rectified_gaussian;
mod smooth_gaussian;

pub use activation::Activation;
pub use activation_moments::CovarianceRule;
