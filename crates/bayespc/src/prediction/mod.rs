//! Prediction of outputs: four methods (`method`; `linearised` and `moments` have a file each), a network made ready for
//! them (`predictor`), one result type (`predictive`).

mod linearised;
mod method;
mod moments;
mod predictive;
mod predictor;

pub(crate) use linearised::{Follow, Point, Reading, disagreement};
pub use method::{Method, predict};
pub(crate) use predictive::filled;
pub use predictive::{ClassDecomposition, Component, Covariance, Dof, Predictive};
pub use predictor::Predictor;
