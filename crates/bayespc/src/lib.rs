//! Bayesian predictive coding.

pub mod error;
pub mod linalg;
pub mod network;
pub mod real;
pub mod special;

pub use error::{Error, Result};
pub use network::Activation;
pub use real::Real;
