//! Choosing the networks of an ensemble from training data: their priors, activations, noise models and widths, and the
//! temperatures of their class probabilities.
//!
//! The prior's variance V⁰ is the one setting that matters: too wide overfits, too narrow underfits. Candidates train on
//! some of the samples and predict others (`race`); networks are picked one at a time for what they add to the mixture
//! of those before (`score`); where the best lies at the edge of what was tried, more is tried (`candidates`).

mod candidates;
mod race;
mod score;
mod settings;

pub use race::Candidate;
pub(super) use race::choose;
pub use settings::SearchSettings;
