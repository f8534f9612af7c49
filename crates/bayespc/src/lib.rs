//! Bayesian predictive coding.

pub mod data;
pub mod distributions;
pub mod error;
pub mod heads;
pub mod inference;
pub mod learners;
pub mod learning;
pub mod linalg;
pub mod metrics;
pub mod model;
pub mod model_file;
pub mod network;
pub mod optim;
pub mod prediction;
pub mod real;
mod refit;
pub mod scaling;
pub mod special;
pub mod training;

pub use error::{Error, Result};
pub use network::Activation;
pub use real::Real;
