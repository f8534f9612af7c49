//! Frequent directions: a sum of outer products kept in k directions, bounded from both sides
//! (Ghashami et al. 2016; the robust form is Luo et al. 2019).
//!
//! ```text
//! A = Σ w x xᵀ          B Bᵀ ≤ A ≤ B Bᵀ + δ I
//! when B is full:       B Bᵀ = U diag(λ) Uᵀ  →  U diag(λ − λ_{k+1})₊ Uᵀ ,   δ ← δ + λ_{k+1}
//! ```
//!
//! B has 2k columns, so that k new ones share an eigendecomposition. Two sketches merge: their columns stand beside
//! each other and their δ add up. Where A has at most k directions nothing is ever shrunk, and B Bᵀ = A.
//! The robust form takes A to be in the middle, B Bᵀ + δ/2 I. The trace of A is kept exactly.

use faer::{Accum, Mat, MatRef};

use crate::base::linalg::{product_into, symmetric_product_into};
use crate::error::{Error, Result};
use crate::real::Real;

/// Directions whose eigenvalue is smaller than this beside the largest are rounding.
const ROUNDING: f64 = 1e-11;

/// A sum of outer products in k directions.
#[derive(Clone, Debug)]
pub struct FrequentDirections {
    k: usize,
    /// B in its first `used` columns, `d × 2k`.
    columns: Mat<f64>,
    used: usize,
    /// δ.
    shrunk: f64,
    /// tr A.
    trace: f64,
}

/// U and λ of B Bᵀ = U diag(λ) Uᵀ.
#[derive(Clone, Debug)]
pub struct Directions {
    /// U, `d × r`, orthonormal columns.
    pub basis: Mat<f64>,
    /// λ, largest first.
    pub values: Vec<f64>,
}

impl FrequentDirections {
    /// The sum of nothing, of vectors with `d` entries; more than `d` directions there cannot be.
    pub fn new(d: usize, k: usize) -> Self {
        let k = k.clamp(1, d.max(1));
        Self { k, columns: Mat::zeros(d, 2 * k), used: 0, shrunk: 0.0, trace: 0.0 }
    }

    /// A sketch that was kept: its columns (`d × r`), δ and the trace.
    pub fn from_parts(k: usize, columns: MatRef<'_, f64>, shrunk: f64, trace: f64) -> Result<Self> {
        let mut sketch = Self::new(columns.nrows(), k);
        sketch.push(columns, |x| x)?;
        (sketch.shrunk, sketch.trace) = (shrunk, trace);
        Ok(sketch)
    }

    /// Entries of a vector.
    pub fn d(&self) -> usize {
        self.columns.nrows()
    }

    /// k.
    pub fn k(&self) -> usize {
        self.k
    }

    /// B, of at most 2k columns.
    pub fn columns(&self) -> MatRef<'_, f64> {
        self.columns.subcols(0, self.used)
    }

    /// δ: how much A may exceed B Bᵀ in any direction.
    pub fn shrunk(&self) -> f64 {
        self.shrunk
    }

    /// tr A.
    pub fn trace(&self) -> f64 {
        self.trace
    }

    /// A ← A + factor · X Xᵀ, samples in columns.
    pub fn absorb<T: Real>(&mut self, x: MatRef<'_, T>, factor: f64) -> Result<()> {
        let root = factor.sqrt();
        let mut square = 0.0;
        for j in 0..x.ncols() {
            square += x.col(j).iter().map(|x| x.as_f64() * x.as_f64()).sum::<f64>();
        }
        self.trace += factor * square;
        self.push(x, |x| root * x.as_f64())
    }

    /// A ← factor · A.
    pub fn scale(&mut self, factor: f64) {
        let root = factor.sqrt();
        for j in 0..self.used {
            self.columns.col_as_slice_mut(j).iter_mut().for_each(|x| *x *= root);
        }
        self.shrunk *= factor;
        self.trace *= factor;
    }

    /// A ← A + other.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        if other.d() != self.d() {
            let (found, expected) = (other.d(), self.d());
            return Err(Error::Shape { what: "a sketch", axis: "rows", found, expected });
        }
        self.push(other.columns(), |x| x)?;
        self.shrunk += other.shrunk;
        self.trace += other.trace;
        Ok(())
    }

    /// U and λ of B Bᵀ.
    pub fn directions(&self) -> Result<Directions> {
        let (mut basis, values) = self.rotated(|_| 0.0)?;
        for (j, value) in values.iter().enumerate() {
            let inverse = 1.0 / value.sqrt();
            basis.col_as_slice_mut(j).iter_mut().for_each(|x| *x *= inverse);
        }
        Ok(Directions { basis, values })
    }

    fn push<S: Copy>(&mut self, x: MatRef<'_, S>, value: impl Fn(S) -> f64) -> Result<()> {
        for j in 0..x.ncols() {
            if self.used == self.columns.ncols() {
                self.shrink()?;
            }
            let to = self.columns.col_as_slice_mut(self.used);
            to.iter_mut().zip(x.col(j).iter()).for_each(|(to, from)| *to = value(*from));
            self.used += 1;
        }
        Ok(())
    }

    /// Make room: at most k columns are left.
    fn shrink(&mut self) -> Result<()> {
        let mut least = 0.0;
        let k = self.k;
        let (columns, values) = self.rotated(|values| {
            least = values.get(k).copied().unwrap_or(0.0);
            least
        })?;
        self.used = values.len().min(k);
        self.columns.as_mut().subcols_mut(0, self.used).copy_from(columns.subcols(0, self.used));
        self.shrunk += least;
        Ok(())
    }

    /// B rotated to orthogonal columns, and their squared lengths, largest first, each less a number that depends on
    /// all of them; none that is rounding.
    fn rotated(&self, less: impl FnOnce(&[f64]) -> f64) -> Result<(Mat<f64>, Vec<f64>)> {
        let columns = self.columns();
        if self.used == 0 {
            return Ok((Mat::zeros(self.d(), 0), Vec::new()));
        }
        let mut gram = Mat::zeros(self.used, self.used);
        symmetric_product_into(gram.as_mut(), Accum::Replace, columns.transpose(), columns.transpose(), 1.0);
        let eigen = gram
            .self_adjoint_eigen(faer::Side::Lower)
            .map_err(|_| Error::NotPositiveDefinite { what: "the sketch of a layer", pivot: 0 })?;
        // faer has them ascending.
        let all: Vec<f64> = (0..self.used).rev().map(|i| eigen.S().column_vector()[i]).collect();
        let kept = all.iter().take_while(|&&value| value > ROUNDING * all[0]).count();
        let less = less(&all[..kept]);
        let values: Vec<f64> = all[..kept].iter().map(|value| (value - less).max(0.0)).collect();
        let turn = Mat::from_fn(self.used, kept, |i, j| {
            eigen.U()[(i, self.used - 1 - j)] * (values[j] / all[j]).sqrt()
        });
        let mut rotated = Mat::zeros(self.d(), kept);
        product_into(rotated.as_mut(), Accum::Replace, columns, turn.as_ref(), 1.0);
        Ok((rotated, values))
    }
}
