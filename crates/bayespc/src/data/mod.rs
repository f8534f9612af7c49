//! Data: checked views of samples, and how they are standardised.

mod dataset;
mod scaling;

pub use dataset::{Dataset, OwnedDataset, check_finite, one_hot};
pub use scaling::Standardiser;
