//! Data: samples as a user has them (`samples`, `inputs`, `targets`), as learning sees them (`dataset`, `scaling`),
//! and in parts (`hold_out`).

mod canonical;
mod dataset;
mod hold_out;
mod inputs;
mod samples;
mod scaling;
mod targets;

pub(crate) use canonical::canonical;
pub use dataset::{Dataset, OwnedDataset, check_finite, one_hot};
pub(crate) use hold_out::HoldOut;
pub use inputs::Inputs;
pub(crate) use samples::OwnedSamples;
pub use samples::Samples;
pub use scaling::Standardiser;
pub use targets::{Targets, Task};
