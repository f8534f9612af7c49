//! Optimisers of parameters, for learners that descend a gradient. `optimiser` has the settings and the
//! state of a run; the update laws are in `sgd` and `adam`.

mod adam;
mod optimiser;
mod sgd;

pub use optimiser::{Descent, Optimiser};
