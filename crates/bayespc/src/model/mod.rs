//! The layer a user touches: settings in, a fitted model out, predictions in the units of the data.
//!
//! ```text
//! samples ─▶ fit ─▶ selection: folds ─▶ networks, and how much noise they should speak of ─▶ predict
//!             └──▶ calibration: samples held out besides ─▶ factors ─────────────────────────┘
//! ```
//!
//! Selection and calibration know nothing of [`Model`]: they give networks and factors. `fit` calls both; `trained`,
//! `rounds` and selection call calibration too.

pub mod calibration;
mod elsewhere;
mod ensemble;
mod evidence;
mod explain;
pub mod file;
mod fit;
mod latent;
mod memory;
#[expect(clippy::module_inception, reason = "the folder's main type")]
mod model;
mod noise;
mod observer;
mod of_network;
mod pictures;
mod predict;
mod pruning;
pub mod reference;
mod refit;
mod rescale;
pub mod rounds;
pub mod selection;
mod settings;
mod skew;
mod spread;
mod stream;
mod tensors;
pub mod trained;
mod wide_tensors;

pub use calibration::Calibration;
pub use elsewhere::{Networks, Step};
pub use ensemble::{Member, MemberPlan, member_seed};
pub use explain::{ColumnImportance, Curve, CurveSettings, Explanation, Loss, PermutationSettings, Quantity};
pub use latent::{Completed, LatentCandidate, LatentModel, LatentSettings};
pub use model::Model;
pub use noise::Noise;
pub use observer::{Control, Observer, Progress, Stage};
pub use pruning::{Pruned, Pruning};
pub use reference::Reference;
pub use selection::{HeldOutScores, OutOfFold, Predicted, SearchSettings};
pub use settings::{InputScaling, ModelSettings};
pub use spread::Spread;
