//! Views of data: samples are columns, `d × n`, which is the memory of a C-order array of shape `(n, d)`.

use faer::{Mat, MatRef};

use crate::base::check;
use crate::base::parallel::for_each_chunk_if;
use crate::error::{Error, Result};
use crate::real::Real;

/// Inputs and targets that belong together, checked once: same number of samples, not empty, finite.
#[derive(Clone, Copy, Debug)]
pub struct Dataset<'a, T: Real> {
    input: MatRef<'a, T>,
    target: MatRef<'a, T>,
    weights: Option<&'a [f64]>,
    missing: bool,
}

impl<'a, T: Real> Dataset<'a, T> {
    /// Pair `input` (`d_in × n`) with `target` (`d_out × n`).
    pub fn new(input: MatRef<'a, T>, target: MatRef<'a, T>) -> Result<Self> {
        check_samples(input, target)?;
        check_finite("input", input)?;
        check_finite("target", target)?;
        Ok(Self { input, target, weights: None, missing: false })
    }

    /// The same where NaN entries are missing, to be inferred by relaxation. With every input missing,
    /// learning is unsupervised.
    pub fn with_missing(input: MatRef<'a, T>, target: MatRef<'a, T>) -> Result<Self> {
        check_samples(input, target)?;
        check_not_infinite("input", input)?;
        check_not_infinite("target", target)?;
        Ok(Self { input, target, weights: None, missing: true })
    }

    /// Whether NaN entries stand for missing values.
    pub fn has_missing(&self) -> bool {
        self.missing
    }

    /// Weight the samples: weight 2 counts a sample twice, weight 0 ignores it.
    pub fn with_weights(self, weights: &'a [f64]) -> Result<Self> {
        check_weights(weights, self.len())?;
        Ok(Self { weights: Some(weights), ..self })
    }

    /// The same samples with other inputs.
    pub fn with_input(self, input: MatRef<'a, T>) -> Result<Self> {
        check_samples(input, self.target)?;
        check_finite("input", input)?;
        Ok(Self { input, ..self })
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.input.ncols()
    }

    /// Never true of a checked data set; here because `len` is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inputs, `d_in × n`.
    pub fn input(&self) -> MatRef<'a, T> {
        self.input
    }

    /// Targets, `d_out × n`.
    pub fn target(&self) -> MatRef<'a, T> {
        self.target
    }

    /// Sample weights, if any.
    pub fn weights(&self) -> Option<&'a [f64]> {
        self.weights
    }

    /// Sum of the weights: the N of N/|B|.
    pub fn total_weight(&self) -> f64 {
        self.weights.map_or(self.len() as f64, |w| w.iter().sum())
    }

    /// The samples with these numbers, copied.
    pub fn gather(&self, samples: &[usize]) -> OwnedDataset<T> {
        OwnedDataset {
            input: Mat::from_fn(self.input.nrows(), samples.len(), |i, j| self.input[(i, samples[j])]),
            target: Mat::from_fn(self.target.nrows(), samples.len(), |i, j| self.target[(i, samples[j])]),
            weights: self.weights.map(|w| samples.iter().map(|&s| w[s]).collect()),
            missing: self.missing,
        }
    }
}

/// A data set that owns its memory; a buffer for mini-batches.
#[derive(Clone, Debug)]
pub struct OwnedDataset<T: Real> {
    /// Inputs, `d_in × n`.
    pub input: Mat<T>,
    /// Targets, `d_out × n`.
    pub target: Mat<T>,
    /// Sample weights, if any.
    pub weights: Option<Vec<f64>>,
    missing: bool,
}

impl<T: Real> OwnedDataset<T> {
    /// View it; its values are trusted to come from a checked [`Dataset`].
    pub fn view(&self) -> Dataset<'_, T> {
        Dataset {
            input: self.input.as_ref(),
            target: self.target.as_ref(),
            weights: self.weights.as_deref(),
            missing: self.missing,
        }
    }

    /// Refill from the samples with these numbers, as many as there is room for; by several threads if `parallel`.
    pub fn refill(&mut self, source: &Dataset<'_, T>, samples: &[usize], parallel: bool) {
        debug_assert_eq!(samples.len(), self.input.ncols());
        for_each_chunk_if(parallel, self.input.as_mut(), |start, chunk| {
            for j in 0..chunk.ncols() {
                chunk.as_mut().col_mut(j).copy_from(source.input.col(samples[start + j]));
            }
        });
        for (j, &sample) in samples.iter().enumerate() {
            self.target.as_mut().col_mut(j).copy_from(source.target.col(sample));
        }
        if let (Some(buffer), Some(weights)) = (self.weights.as_mut(), source.weights) {
            for (slot, &sample) in buffer.iter_mut().zip(samples) {
                *slot = weights[sample];
            }
        }
    }
}

/// As many weights as samples, none negative, one of them positive.
pub(crate) fn check_weights(weights: &[f64], n: usize) -> Result<()> {
    if weights.len() != n {
        let (what, axis) = ("sample weights", "entries");
        return Err(Error::Shape { what, axis, found: weights.len(), expected: n });
    }
    if let Some(row) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
        let (what, value) = ("sample weight (must be ≥ 0)", weights[row]);
        return Err(Error::NotFinite { what, row, column: 0, value });
    }
    if !(weights.iter().sum::<f64>() > 0.0) {
        return Err(Error::Empty { what: "the data with positive sample weight" });
    }
    Ok(())
}

/// Every entry finite, and at least one of them.
pub fn check_finite<T: Real>(what: &'static str, values: MatRef<'_, T>) -> Result<()> {
    check_some(what, values)?;
    check::check_finite(what, values)
}

fn check_not_infinite<T: Real>(what: &'static str, values: MatRef<'_, T>) -> Result<()> {
    check_some(what, values)?;
    for row in 0..values.ncols() {
        for column in 0..values.nrows() {
            let value = values[(column, row)];
            if value.is_infinite() {
                return Err(Error::NotFinite { what, row, column, value: value.as_f64() });
            }
        }
    }
    Ok(())
}

fn check_some<T: Real>(what: &'static str, values: MatRef<'_, T>) -> Result<()> {
    if values.nrows() == 0 || values.ncols() == 0 { Err(Error::Empty { what }) } else { Ok(()) }
}

fn check_samples<T: Real>(input: MatRef<'_, T>, target: MatRef<'_, T>) -> Result<()> {
    if target.ncols() == input.ncols() {
        Ok(())
    } else {
        Err(Error::Shape { what: "target", axis: "samples", found: target.ncols(), expected: input.ncols() })
    }
}

/// Labels 0..K as one-hot columns, `K × n`.
pub fn one_hot<T: Real>(labels: &[usize], classes: usize) -> Result<Mat<T>> {
    if let Some(row) = labels.iter().position(|&label| label >= classes) {
        return Err(Error::Label { label: labels[row], row, classes });
    }
    Ok(Mat::from_fn(classes, labels.len(), |k, j| if labels[j] == k { T::one() } else { T::zero() }))
}
