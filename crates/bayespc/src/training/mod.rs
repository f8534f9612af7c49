//! The training loop, for any learner.

mod run;

pub use run::*;
