//! What every predictor returns, a mixture of elliptical distributions per sample (`component`, `mixture`), and what
//! can be asked of it, in a file each.

mod chunks;
mod classes;
mod component;
mod density;
mod draws;
mod marginal;
mod mixture;
mod quantiles;
mod scores;

pub(crate) use chunks::filled;
pub use component::{Component, Covariance, Dof};
pub(crate) use component::{check_finite, check_shape};
pub use mixture::Predictive;
