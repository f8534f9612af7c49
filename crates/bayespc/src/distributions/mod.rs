//! Probability distributions of weights, noise and predictions, always in `f64`.

pub mod matrix_normal_wishart;
pub mod stats;
mod stats_bytes;
pub mod student_t;
pub mod wishart;

pub(crate) use matrix_normal_wishart::noise;
pub use matrix_normal_wishart::{LayerDraw, MatrixNormalWishart};
pub use stats::{NaturalParams, SufficientStats};
pub use student_t::MultivariateT;
pub use wishart::{PrecisionDraw, Wishart};
