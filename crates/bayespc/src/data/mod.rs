//! Data: samples as a user has them (`samples`, `inputs`, `targets`), as learning sees them (`dataset`, `scaling`),
//! as codes (`codes`) and through a curve (`curve`), and in parts (`hold_out`, `folds`, `slices`).

mod canonical;
mod codes;
mod curve;
mod dataset;
mod folds;
mod hold_out;
mod inputs;
mod line;
mod samples;
mod scaling;
mod slices;
mod targets;

pub(crate) use canonical::canonical;
pub use codes::Codes;
pub use curve::LogCurve;
pub use dataset::{Dataset, OwnedDataset, check_finite, one_hot};
pub(crate) use folds::folds;
pub(crate) use hold_out::HoldOut;
pub use inputs::Inputs;
pub(crate) use line::{Line, SAME_TIME};
pub(crate) use samples::OwnedSamples;
pub use samples::Samples;
pub use scaling::Standardiser;
pub(crate) use slices::slices;
pub use targets::{Targets, Task};
