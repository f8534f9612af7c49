//! The layer a user touches: settings in, a fitted model out, predictions in the units of the data.
//!
//! ```text
//! samples ─▶ fit ─▶ selection ─▶ a plan per network ─▶ ensemble ─▶ networks ─▶ predict
//!             └──▶ calibration: samples held out  ───────────────▶ factors ──────┘
//! ```
//!
//! Selection and calibration know nothing of each other or of [`Model`]: they give plans and factors, and only `fit`
//! calls them.

pub mod calibration;
mod ensemble;
mod evidence;
pub mod file;
mod fit;
mod memory;
#[expect(clippy::module_inception, reason = "the folder's main type")]
mod model;
mod observer;
mod predict;
mod refit;
pub mod selection;
mod settings;
mod spread;
mod stream;

pub use calibration::Calibration;
pub use ensemble::{Member, MemberPlan};
pub use model::Model;
pub use observer::{Control, Observer, Progress, Stage};
pub use selection::{HeldOutScores, SearchSettings};
pub use settings::{InputScaling, ModelSettings};
pub use spread::Spread;
