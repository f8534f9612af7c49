//! Prediction of outputs: four methods (`method`; `linearised` and `moments` have a file each), a network made ready for
//! them (`predictor`), one result type (`predictive`).

mod linearised;
mod method;
mod moments;
mod predictive;
mod predictor;

pub(crate) use linearised::{Follow, Point, Precision, Reading, Readings, disagreement, entropy_of_mean};
pub use method::{Method, predict};
pub use predictive::{CLASS_DRAWS, ClassDecomposition, Component, Covariance, Dof, Predictive, Skew};
pub(crate) use predictive::{CodeDraws, CodeMoments, Codes, Logits, Part, filled};
pub use predictor::Predictor;
