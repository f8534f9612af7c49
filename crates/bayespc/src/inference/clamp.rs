//! Which entries of the two ends are observed. Missing ones are activities like any other.
//!
//! A missing entry is NaN in the data, as NumPy and pandas have it. It is set free and inferred: entries of
//! z_0 under their prior N(0, σ_0² I) and the layer above, entries of z_L under the layer below.

use faer::{Mat, MatRef};

use crate::error::{Error, Result};
use crate::real::Real;

/// Masks of the free entries at both ends; `None` if every entry is clamped.
#[derive(Clone, Debug, Default)]
pub struct Clamp<T: Real> {
    /// 1 where an entry of z_0 is free, `d_0 × n`.
    pub free_input: Option<Mat<T>>,
    /// 1 where an entry of z_L is free, `d_L × n`.
    pub free_output: Option<Mat<T>>,
    /// 1/σ_0².
    pub input_precision: T,
    /// What the head says of every sample, where its weights carry the noise.
    pub(crate) head: Option<HeadWeights<T>>,
}

/// Weights of the output's errors, sample by sample: its noise is that of the head and not of the layer.
#[derive(Clone, Debug)]
pub(crate) struct HeadWeights<T: Real> {
    /// Of every row of the output activity, `d_L × n`.
    pub rows: Mat<T>,
    /// Of every block of rows, `n_blocks × n`.
    pub blocks: Mat<T>,
}

impl<T: Real> Clamp<T> {
    /// Both ends clamped: supervised learning.
    pub fn supervised() -> Self {
        Self { free_input: None, free_output: None, input_precision: T::one(), head: None }
    }

    /// NaN entries free, all others clamped; infinities are errors.
    pub fn missing(input: MatRef<'_, T>, output: MatRef<'_, T>, input_var: f64) -> Result<Self> {
        if input.ncols() != output.ncols() {
            return Err(Error::Shape {
                what: "target",
                axis: "samples",
                found: output.ncols(),
                expected: input.ncols(),
            });
        }
        Ok(Self {
            free_input: free_entries("input", input)?,
            free_output: free_entries("target", output)?,
            input_precision: T::lit(1.0 / input_var),
            head: None,
        })
    }

    /// The same for some of the samples. What a head says of them comes with their forward pass.
    pub(crate) fn columns(&self, start: usize, n: usize) -> Self {
        let part = |mask: &Option<Mat<T>>| mask.as_ref().map(|mask| mask.subcols(start, n).to_owned());
        Self {
            free_input: part(&self.free_input),
            free_output: part(&self.free_output),
            input_precision: self.input_precision,
            head: None,
        }
    }
}

fn free_entries<T: Real>(what: &'static str, values: MatRef<'_, T>) -> Result<Option<Mat<T>>> {
    let mut any = false;
    for row in 0..values.ncols() {
        for column in 0..values.nrows() {
            let value = values[(column, row)];
            if value.is_infinite() {
                return Err(Error::NotFinite { what, row, column, value: value.as_f64() });
            }
            any |= value.is_nan();
        }
    }
    let mask = |i, j| {
        if Real::as_f64(values[(i, j)]).is_nan() { T::one() } else { T::zero() }
    };
    Ok(any.then(|| Mat::from_fn(values.nrows(), values.ncols(), mask)))
}
