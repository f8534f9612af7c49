//! Prediction of outputs: what every predictor returns, and what can be asked of it.
//!
//! `method` has the four ways to predict (`linearised` and `moments` in a file each). `predictive` is the
//! result type, a mixture of the elliptical distributions of `component`; its
//! questions live in a file each: `density`, `marginal` and `quantiles`, `scores`, `draws`, `classes`.

mod chunks;
mod classes;
pub mod component;
mod density;
mod draws;
mod linearised;
mod marginal;
mod method;
mod moments;
mod one_output;
pub mod predictive;
mod quantiles;
mod scores;

pub(crate) use chunks::filled;
pub use component::{Component, Covariance, Dof};
pub(crate) use component::{check_finite, check_shape};
pub(crate) use method::stream;
pub use method::{Method, predict};
pub use predictive::Predictive;
