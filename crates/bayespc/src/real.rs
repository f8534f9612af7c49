//! The one scalar trait: `f32` and `f64`, and the only place that lists what faer and rand ask of them.
//!
//! Posteriors and statistics are always `f64`; activities and whatever is computed per sample are `T: Real`.

use faer::traits::RealField;
use num_traits::Float;
use serde::{Deserialize, Serialize};

use crate::base::exp::{exp_f32, exp_f64};

/// A working precision: `f32` or `f64`.
pub trait Real:
    RealField + Float + Default + std::fmt::Debug + std::fmt::Display + Send + Sync + 'static
{
    /// Magnitude below which a number cannot matter beside others; the product of two such is still normal.
    const DUST: Self;
    /// The literal `x` in this precision.
    fn lit(x: f64) -> Self;
    /// This number as `f64`, exactly.
    fn as_f64(self) -> f64;
    /// eˣ for loops over many numbers, finite whatever x.
    fn exp_of_many(self) -> Self;
}

impl Real for f32 {
    const DUST: Self = 1e-18;
    #[inline]
    fn lit(x: f64) -> Self {
        x as Self
    }
    #[inline]
    fn as_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn exp_of_many(self) -> Self {
        exp_f32(self)
    }
}

impl Real for f64 {
    const DUST: Self = 1e-150;
    #[inline]
    fn lit(x: f64) -> Self {
        x
    }
    #[inline]
    fn as_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn exp_of_many(self) -> Self {
        exp_f64(self)
    }
}

/// The working precision by name, for settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Activities in `f32`.
    F32,
    /// Activities in `f64`.
    #[default]
    F64,
}
