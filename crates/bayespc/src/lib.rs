//! Bayesian predictive coding.

pub mod error;
pub mod linalg;
pub mod real;
pub mod special;

pub use error::{Error, Result};
pub use real::Real;
