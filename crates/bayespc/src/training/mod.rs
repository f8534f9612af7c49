//! The training loop, for any learner: its settings, who watches it, the loop itself.

mod observer;
mod run;
mod settings;

pub use observer::{Control, End, EpochReport, Observer, Silent, TrainingReport};
pub use run::{fit, held_out_score, init_rng, partial_fit};
pub use settings::TrainingSettings;
