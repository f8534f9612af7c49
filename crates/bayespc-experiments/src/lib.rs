//! The paper's figures and table, and the benchmark table, from run to page.
//!
//! ```text
//! spec (TOML) ─▶ run: task, learner ─▶ records (tidy CSV, one line per measured value) ─▶ plot (SVG) ─▶ report (one HTML page)
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod benchmark;
mod classes;
mod depth;
pub mod error;
pub mod fit_report;
mod gaps;
mod images;
pub mod learner;
mod markup;
pub mod plot;
pub mod records;
pub mod report;
mod reproduce;
pub mod run;
pub mod spec;
pub mod splitting;
mod strangers;
mod synthetic_panels;
pub mod task;

pub use error::{Error, Result};
pub use reproduce::{Experiment, reproduce};
pub use spec::Effort;
