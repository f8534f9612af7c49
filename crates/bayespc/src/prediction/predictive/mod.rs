//! What every predictor returns, a mixture of elliptical distributions per sample (`component`, `mixture`), and what
//! can be asked of it, in a file each.

mod chunks;
mod class_decomposition;
mod classes;
mod codes;
mod component;
mod density;
mod draws;
mod marginal;
mod mixture;
mod quantiles;
mod recalibrated;
mod scores;
mod skew;

pub(crate) use chunks::filled;
pub use class_decomposition::{CLASS_DRAWS, ClassDecomposition};
pub(crate) use codes::{CodeDraws, CodeMoments, Codes, Logits, entropy};
pub use component::{Component, Covariance, Dof};
pub use mixture::Predictive;
pub(crate) use skew::Part;
pub use skew::Skew;
