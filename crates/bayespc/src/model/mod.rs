//! The layer a user touches: settings, fit, stream, refit, predict, and the file.

pub mod calibration;
pub mod file;
mod fit;
mod hold_out;
mod refit;
pub mod selection;
mod settings;

pub use fit::*;
pub use settings::{InputScaling, ModelSettings, Variant};
