//! Samples: inputs, targets and weights that belong together, checked once.
//!
//! ```
//! # fn main() -> bayespc::Result<()> {
//! use bayespc::{Mat, Samples, Targets};
//!
//! // Samples are columns, d × n.
//! let x = Mat::from_fn(2, 4, |i, j| (i + j) as f64);
//! let y = Mat::from_fn(1, 4, |_, j| j as f64);
//! let regression = Samples::new(&x, &y)?.weighted(&[1.0, 1.0, 2.0, 1.0])?;
//! let classification = Samples::new(&x, Targets::classes(&[0, 1, 1, 0]))?;
//! // Rows one after the other, as most other libraries have them: the same memory.
//! let rows = [0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0];
//! let same = Samples::from_rows(&rows, 2, &[0.0, 1.0, 2.0, 3.0])?;
//! assert_eq!((same.n_samples(), same.n_features()), (regression.n_samples(), classification.n_features()));
//! # Ok(())
//! # }
//! ```

use faer::MatRef;

use super::inputs::{Inputs, OwnedInputs};
use super::targets::{OwnedTargets, Targets, Task};
use crate::error::{Error, Result};

/// Inputs, targets and weights of n ≥ 1 samples, finite and of matching lengths.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    inputs: Inputs<'a>,
    targets: Targets<'a>,
    weights: Option<&'a [f64]>,
}

impl<'a> Samples<'a> {
    /// Pair inputs (`d × n`) with targets: real values (`k × n`) or classes.
    pub fn new(inputs: impl Into<Inputs<'a>>, targets: impl Into<Targets<'a>>) -> Result<Self> {
        let (inputs, targets) = (inputs.into(), targets.into());
        let (found, expected) = (targets.n_samples(), inputs.n_samples());
        if found != expected {
            return Err(Error::Shape { what: "target", axis: "samples", found, expected });
        }
        inputs.check_finite()?;
        targets.check()?;
        Ok(Self { inputs, targets, weights: None })
    }

    /// Inputs row by row (a C-order array of shape `(n, n_features)`) and one real target per row.
    pub fn from_rows(inputs: &'a [f64], n_features: usize, target: &'a [f64]) -> Result<Self> {
        let n = target.len();
        check_length(inputs, n_features, n)?;
        Self::new(
            MatRef::from_column_major_slice(inputs, n_features, n),
            MatRef::from_column_major_slice(target, 1, n),
        )
    }

    /// Inputs column by column (a Fortran-order array of shape `(n, n_features)`) and one real target per row.
    pub fn from_columns(inputs: &'a [f64], n_features: usize, target: &'a [f64]) -> Result<Self> {
        let n = target.len();
        check_length(inputs, n_features, n)?;
        Self::new(
            MatRef::from_row_major_slice(inputs, n_features, n),
            MatRef::from_column_major_slice(target, 1, n),
        )
    }

    /// Arrays of shape `(n, d)` and `(n,)`. The inputs must be contiguous, in either order.
    #[cfg(feature = "ndarray")]
    pub fn from_arrays(
        inputs: ndarray::ArrayView2<'a, f64>,
        target: ndarray::ArrayView1<'a, f64>,
    ) -> Result<Self> {
        let (contiguous, d) = ("contiguous memory", inputs.ncols());
        let target =
            target.to_slice().ok_or(Error::Conflict { first: "the target array", second: contiguous })?;
        if let Some(rows) = inputs.to_slice() {
            return Self::from_rows(rows, d, target);
        }
        let columns = inputs.reversed_axes().to_slice();
        Self::from_columns(
            columns.ok_or(Error::Conflict { first: "the input array", second: contiguous })?,
            d,
            target,
        )
    }

    /// Weight the samples: weight 2 counts a sample twice, weight 0 ignores it.
    pub fn weighted(self, weights: &'a [f64]) -> Result<Self> {
        super::dataset::check_weights(weights, self.n_samples())?;
        Ok(Self { weights: Some(weights), ..self })
    }

    /// Number of samples n.
    pub fn n_samples(&self) -> usize {
        self.inputs.n_samples()
    }

    /// Number of features d.
    pub fn n_features(&self) -> usize {
        self.inputs.n_features()
    }

    /// Number of target rows, or classes.
    pub fn n_outputs(&self) -> usize {
        match self.targets {
            Targets::Values(values) => values.nrows(),
            Targets::Classes { classes, .. } => classes,
        }
    }

    /// Inputs.
    pub fn inputs(&self) -> Inputs<'a> {
        self.inputs
    }

    /// Targets.
    pub fn targets(&self) -> Targets<'a> {
        self.targets
    }

    /// Weights, if any.
    pub fn weights(&self) -> Option<&'a [f64]> {
        self.weights
    }

    /// What is being predicted.
    pub fn task(&self) -> Task {
        self.targets.task()
    }

    /// Sum of the weights.
    pub fn total_weight(&self) -> f64 {
        self.weights.map_or(self.n_samples() as f64, |weights| weights.iter().sum())
    }

    /// Samples `start..start + n`; none where they have no weight.
    pub(crate) fn span(&self, start: usize, n: usize) -> Option<Self> {
        let weights = self.weights.map(|weights| &weights[start..start + n]);
        if weights.is_some_and(|weights| weights.iter().all(|&weight| weight == 0.0)) {
            return None;
        }
        Some(Self { inputs: self.inputs.span(start, n), targets: self.targets.span(start, n), weights })
    }

    /// The samples with these numbers, copied.
    pub(crate) fn select(&self, samples: &[usize]) -> OwnedSamples {
        OwnedSamples {
            inputs: self.inputs.select(samples),
            targets: self.targets.select(samples),
            weights: self.weights.map(|weights| samples.iter().map(|&sample| weights[sample]).collect()),
        }
    }
}

/// Samples that own their memory.
#[derive(Clone, Debug)]
pub(crate) struct OwnedSamples {
    pub(super) inputs: OwnedInputs,
    pub(super) targets: OwnedTargets,
    pub(super) weights: Option<Vec<f64>>,
}

impl OwnedSamples {
    /// View them; they come from checked [`Samples`].
    pub(crate) fn view(&self) -> Samples<'_> {
        Samples { inputs: self.inputs.view(), targets: self.targets.view(), weights: self.weights.as_deref() }
    }
}

fn check_length(inputs: &[f64], n_features: usize, n: usize) -> Result<()> {
    match n_features.checked_mul(n) {
        Some(expected) if inputs.len() == expected => Ok(()),
        expected => Err(Error::Shape {
            what: "input",
            axis: "numbers (samples times features)",
            found: inputs.len(),
            expected: expected.unwrap_or(usize::MAX),
        }),
    }
}
