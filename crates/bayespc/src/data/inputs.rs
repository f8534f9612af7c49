//! Inputs in either float type, read where they are.
//!
//! A model takes both. What it does with them is compiled once, in the working precision of its settings.

use faer::{Mat, MatRef};

use super::dataset::check_finite;
use super::scaling::Standardiser;
use crate::error::Result;
use crate::real::Real;

/// A view of inputs, `d × n`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Inputs<'a> {
    /// In double precision.
    F64(MatRef<'a, f64>),
    /// In single precision.
    F32(MatRef<'a, f32>),
}

impl<'a> From<MatRef<'a, f64>> for Inputs<'a> {
    fn from(values: MatRef<'a, f64>) -> Self {
        Self::F64(values)
    }
}

impl<'a> From<MatRef<'a, f32>> for Inputs<'a> {
    fn from(values: MatRef<'a, f32>) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a Mat<f64>> for Inputs<'a> {
    fn from(values: &'a Mat<f64>) -> Self {
        Self::F64(values.as_ref())
    }
}

impl<'a> From<&'a Mat<f32>> for Inputs<'a> {
    fn from(values: &'a Mat<f32>) -> Self {
        Self::F32(values.as_ref())
    }
}

impl Inputs<'_> {
    /// Number of features d.
    pub fn n_features(&self) -> usize {
        match self {
            Self::F64(values) => values.nrows(),
            Self::F32(values) => values.nrows(),
        }
    }

    /// Number of samples n.
    pub fn n_samples(&self) -> usize {
        match self {
            Self::F64(values) => values.ncols(),
            Self::F32(values) => values.ncols(),
        }
    }

    /// Every entry finite, and at least one of them.
    pub fn check_finite(&self) -> Result<()> {
        match self {
            Self::F64(values) => check_finite("input", *values),
            Self::F32(values) => check_finite("input", *values),
        }
    }

    /// Entry of feature `i` of sample `j`.
    pub(crate) fn value(&self, i: usize, j: usize) -> f64 {
        match self {
            Self::F64(values) => values[(i, j)],
            Self::F32(values) => f64::from(values[(i, j)]),
        }
    }

    /// Samples `start..start + n`.
    pub(crate) fn span(&self, start: usize, n: usize) -> Self {
        match self {
            Self::F64(values) => Self::F64(values.subcols(start, n)),
            Self::F32(values) => Self::F32(values.subcols(start, n)),
        }
    }

    /// The samples with these numbers, copied.
    pub(crate) fn select(&self, samples: &[usize]) -> OwnedInputs {
        fn pick<S: Real>(values: MatRef<'_, S>, samples: &[usize]) -> Mat<S> {
            Mat::from_fn(values.nrows(), samples.len(), |i, j| values[(i, samples[j])])
        }
        match self {
            Self::F64(values) => OwnedInputs::F64(pick(*values, samples)),
            Self::F32(values) => OwnedInputs::F32(pick(*values, samples)),
        }
    }

    /// Standardised, column after column.
    pub(crate) fn standardised<T: Real>(&self, scaling: &Standardiser) -> Result<Vec<T>> {
        match self {
            Self::F64(values) => scaling.apply_packed(*values),
            Self::F32(values) => scaling.apply_packed(*values),
        }
    }

    /// Offset and scale of every feature.
    pub(crate) fn scaling(&self, weights: Option<&[f64]>) -> Result<Standardiser> {
        match self {
            Self::F64(values) => Standardiser::fit_with_weights(*values, weights),
            Self::F32(values) => Standardiser::fit_with_weights(*values, weights),
        }
    }

    /// One offset and scale for all features.
    pub(crate) fn whole_scaling(&self, weights: Option<&[f64]>) -> Result<Standardiser> {
        match self {
            Self::F64(values) => Standardiser::fit_whole(*values, weights),
            Self::F32(values) => Standardiser::fit_whole(*values, weights),
        }
    }
}

/// Inputs that own their memory.
#[derive(Clone, Debug)]
pub(crate) enum OwnedInputs {
    F64(Mat<f64>),
    F32(Mat<f32>),
}

impl OwnedInputs {
    pub(crate) fn view(&self) -> Inputs<'_> {
        match self {
            Self::F64(values) => values.into(),
            Self::F32(values) => values.into(),
        }
    }
}
