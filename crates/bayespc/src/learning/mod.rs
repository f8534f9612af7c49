//! The M-step: Hebbian statistics into natural parameters. Learning never changes an activity.

mod batch_statistics;
mod curvature;
mod finalise;
mod free_energy;
mod hebbian;
mod natural_gradient;
mod packed;
mod relevance;
mod schedule;
mod settle_wide;

pub use batch_statistics::BatchStatistics;
pub(crate) use curvature::{CurvatureSums, curvature_root};
pub(crate) use finalise::{WeightSums, add_lower, pin_output_noise};
pub use finalise::{finalise, hidden_curvature_of, settle_around, settle_stream};
pub use free_energy::{FreeEnergy, free_energy};
pub use hebbian::Hebbian;
pub use natural_gradient::{Blend, ErrorChunk, NaturalGradient};
pub use schedule::Schedule;
pub(crate) use schedule::refresh_is_due;
