//! Optimisers of parameters, for learners that descend a gradient, and of activities, for relaxation. `optimiser` has
//! the settings and what a run remembers; the update laws are in `sgd` and `adam`.

mod adam;
mod optimiser;
mod sgd;

pub(crate) use optimiser::Moments;
pub use optimiser::{Descent, Optimiser};
