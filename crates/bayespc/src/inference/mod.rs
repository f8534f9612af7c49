//! The E-step: activities given the posterior. Inference never changes a posterior.

mod clamp;
mod energy;
mod feedback;
mod generative;
mod langevin;
mod newton;
mod relaxation;

pub use clamp::Clamp;
pub(crate) use feedback::gather;
pub use feedback::{Feedback, FeedbackChunk, FeedbackSettings};
pub use generative::{Imputed, Parameters, generate, impute};
pub use langevin::{Drawn, LangevinSettings, draw_missing};
pub use relaxation::{
    ActivityOptimiser, HiddenPrecision, Presynaptic, RelaxationReport, RelaxationSettings, Relaxer, Stop,
    Sweep, Variables,
};
pub(crate) use relaxation::{RelaxedBatch, RelaxedChunk, RelaxingLayers};
