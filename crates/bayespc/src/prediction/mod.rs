//! Prediction of outputs: four methods (`method`; `linearised` and `moments` have a file each), one result type
//! (`predictive`).

mod linearised;
mod method;
mod moments;
mod predictive;

pub use method::{Method, predict};
pub use predictive::{Component, Covariance, Dof, Predictive};
pub(crate) use predictive::{check_finite, check_shape, filled};
