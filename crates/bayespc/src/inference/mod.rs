//! The E-step: activities given the posterior. Inference never changes a posterior.

mod clamp;
mod energy;
mod feedback;
mod feedback_memory;
mod generative;
mod optimiser;
mod relaxation;
mod relaxed_batch;
mod relaxing_layers;

pub use clamp::Clamp;
pub use energy::{energies, layer_energies};
pub use feedback::{Feedback, FeedbackChunk, FeedbackSettings};
pub use generative::{Imputed, Parameters, generate, impute};
pub use optimiser::ActivityOptimiser;
pub use relaxation::{
    HiddenPrecision, Presynaptic, RelaxationReport, RelaxationSettings, Relaxer, Stop, Sweep,
};
pub(crate) use relaxed_batch::RelaxedBatch;
