//! Choosing the networks of an ensemble from training data: codes, priors, activations, noise models and widths, their
//! weights, and what noise they should speak of.
//!
//! Where there is anything to choose (`choice`), candidates learn from all folds of the samples but one and predict that
//! one (`race`). The prior's variance V⁰ matters
//! most: too wide overfits, too narrow underfits. Kinds are picked one at a time for what they add to the mixture of
//! those before (`score`); around the best of the first, more are tried (`candidates`). What the ensemble says of unseen
//! samples says how much noise it should speak of (`verdict`), and how much of that their mean is rid of (`chance`).

mod candidates;
mod chance;
mod choice;
mod out_of_fold;
mod race;
mod relevance;
mod score;
mod settings;
mod verdict;

pub use choice::MIN_ROWS;
pub(super) use choice::choose;
pub use out_of_fold::{OutOfFold, Predicted};
pub use score::HeldOutScores;
pub use settings::SearchSettings;
pub use verdict::Candidate;
