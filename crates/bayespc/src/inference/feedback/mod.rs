//! Rule "feedback": the default E-step, one forward and one backward sweep.

mod memory;
mod sweep;

pub use sweep::{Feedback, FeedbackChunk, FeedbackSettings};
