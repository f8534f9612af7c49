//! The paper's figures and table, and the benchmark table, from run to page.
//!
//! ```text
//! runs ─▶ records (tidy CSV, one line per measured value) ─▶ plot (SVG) ─▶ report (one HTML page)
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod error;
pub mod fit_report;
mod markup;
pub mod plot;
pub mod records;
pub mod report;

pub use error::{Error, Result};
