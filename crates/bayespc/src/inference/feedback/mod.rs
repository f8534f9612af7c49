//! Rule "feedback": the default E-step, one forward and one backward sweep.

mod memory;
mod settings;
mod sweep;

pub use settings::FeedbackSettings;
pub use sweep::{Feedback, FeedbackChunk};
