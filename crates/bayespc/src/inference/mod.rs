//! The E-step: activities given the posterior. Inference never changes a posterior.

mod clamp;
mod energy;
mod feedback;
mod generative;
mod relaxation;

pub use clamp::Clamp;
pub use energy::{energies, layer_energies};
pub use feedback::{Feedback, FeedbackChunk, FeedbackSettings};
pub use generative::{Imputed, Parameters, generate, impute};
pub(crate) use relaxation::RelaxedBatch;
pub use relaxation::{
    ActivityOptimiser, HiddenPrecision, Presynaptic, RelaxationReport, RelaxationSettings, Relaxer, Stop,
    Sweep,
};
