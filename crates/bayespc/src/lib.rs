//! Bayesian predictive coding.

pub mod distributions;
pub mod error;
pub mod linalg;
pub mod metrics;
pub mod prediction;
pub mod real;
pub mod scaling;
pub mod special;

pub use error::{Error, Result};
pub use real::Real;
