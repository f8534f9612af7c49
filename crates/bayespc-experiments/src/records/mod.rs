//! Measured values as tidy CSV, one value per line, kept through crashes.
//!
//! ```text
//! file ─▶ writer (append whole units) · reader (whole units only) ─▶ Records ─▶ group, mean ± error
//! ```

mod file;
mod summary;
mod table;

pub use file::RecordFile;
pub use summary::{Estimate, mean_sd, mean_se, quantile};
pub use table::{Record, Records, Unit};
