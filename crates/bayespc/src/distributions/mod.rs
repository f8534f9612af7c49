//! Probability distributions of weights, noise and predictions, always in `f64`.

mod blocks;
mod columns;
pub mod matrix_normal_wishart;
mod sketch;
pub mod stats;
mod stats_bytes;
pub mod student_t;
pub mod wishart;

pub use blocks::{BlockInverse, BlockSums};
pub use columns::{ColumnCovariance, ColumnPrecision, ColumnSums, Purpose, SketchInverse, Structure};
pub(crate) use matrix_normal_wishart::noise;
pub use matrix_normal_wishart::{LayerDraw, MatrixNormalWishart};
pub use sketch::{Directions, FrequentDirections};
pub use stats::{NaturalParams, SufficientStats};
pub use student_t::MultivariateT;
pub use wishart::{PrecisionDraw, Wishart};
