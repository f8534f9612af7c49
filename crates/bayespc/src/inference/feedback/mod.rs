//! Rule "feedback": the default E-step, one forward and one backward sweep.

mod gather;
mod memory;
mod settings;
mod sketched;
mod sweep;

pub(crate) use gather::gather;
pub use settings::FeedbackSettings;
pub use sweep::{Feedback, FeedbackChunk};
