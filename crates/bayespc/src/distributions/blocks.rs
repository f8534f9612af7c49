//! A sum of outer products of presynaptic activity, of which blocks and the bias are kept.
//!
//! ```text
//! Σ w φφᵀ , φ = [x; 1]        kept:  Σ w x_b x_bᵀ of each block b ,   Σ w x ,   Σ w
//! V⁻¹ = T diag(S_1 … S_m, β) Tᵀ ,   T = [I c; 0 1]          β = β⁰ + Σ w ,   c = Σ w x / β
//! S_b = V⁰_b⁻¹ + Σ w x_b x_bᵀ − β c_b c_bᵀ                   what is left of a block around the mean
//! ```
//!
//! What is kept adds up exactly. V⁻¹ has every block, the row of the bias and the means of all units as they are;
//! between blocks it has the products of the means alone. Without them a direction that all units share, such as the
//! mean of rectified activity, would be counted once for each block, and steps along it would be as many times too long.
//! One block is the whole matrix.

use faer::{Accum, Mat, MatRef};

use crate::base::linalg::{Cholesky, cast, symmetric_product_into};
use crate::error::{Error, Result};
use crate::real::Real;

/// Diagonal blocks of Σ w φφᵀ, and its row of the bias.
#[derive(Clone, Debug)]
pub struct BlockSums {
    /// Units of a block; the last may have fewer.
    size: usize,
    /// Σ w x_b x_bᵀ, lower triangles.
    pub(super) blocks: Vec<Mat<f64>>,
    /// Σ w x.
    pub(super) sums: Vec<f64>,
    /// Σ w.
    pub(super) count: f64,
}

/// S_b⁻¹, c and 1/β.
#[derive(Clone, Debug)]
pub struct BlockInverse<T: Real> {
    pub(super) size: usize,
    pub(super) inverses: Vec<Mat<T>>,
    pub(super) centre: Vec<T>,
    pub(super) bias_var: T,
}

impl BlockSums {
    /// The sum of nothing, of `d` activities of which the last is the bias, in blocks of `size`.
    pub fn new(d: usize, size: usize) -> Self {
        let (units, size) = (d - 1, size.max(1));
        let width = |start: usize| size.min(units - start);
        let blocks = (0..units).step_by(size).map(|start| Mat::zeros(width(start), width(start))).collect();
        Self { size, blocks, sums: vec![0.0; units], count: 0.0 }
    }

    /// Units of a block.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Add factor · ΦΦᵀ; the last row of Φ is the bias, times the root of each sample's weight.
    pub fn absorb<T: Real>(&mut self, pre: MatRef<'_, T>, factor: f64) {
        let bias = pre.nrows() - 1;
        for (b, block) in self.blocks.iter_mut().enumerate() {
            let rows = pre.subrows(b * self.size, block.nrows());
            let mut outer = Mat::<T>::zeros(block.nrows(), block.nrows());
            symmetric_product_into(outer.as_mut(), Accum::Replace, rows, rows, T::one());
            for j in 0..block.ncols() {
                let from = &outer.col_as_slice(j)[j..];
                let to = &mut block.col_as_slice_mut(j)[j..];
                to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from.as_f64());
            }
        }
        for j in 0..pre.ncols() {
            let root = pre[(bias, j)].as_f64();
            let column = pre.col(j);
            for (sum, x) in self.sums.iter_mut().zip(column.iter()) {
                *sum += factor * root * x.as_f64();
            }
            self.count += factor * root * root;
        }
    }

    /// Times a factor.
    pub fn scale(&mut self, factor: f64) {
        for block in &mut self.blocks {
            faer::zip!(block).for_each(|faer::unzip!(x)| *x *= factor);
        }
        self.sums.iter_mut().for_each(|x| *x *= factor);
        self.count *= factor;
    }

    /// Add other sums of the same blocks.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        let (found, expected) = (other.sums.len(), self.sums.len());
        if found != expected || other.size != self.size {
            return Err(Error::Shape { what: "sums in blocks", axis: "units", found, expected });
        }
        for (own, other) in self.blocks.iter_mut().zip(&other.blocks) {
            *own += other;
        }
        self.sums.iter_mut().zip(&other.sums).for_each(|(own, other)| *own += other);
        self.count += other.count;
        Ok(())
    }

    /// S_b, c and β under this diagonal V⁰⁻¹.
    fn centred(&self, prior: &[f64]) -> (Vec<Mat<f64>>, Vec<f64>, f64) {
        let units = self.sums.len();
        let bias_precision = prior[units] + self.count;
        let centre: Vec<f64> = self.sums.iter().map(|sum| sum / bias_precision).collect();
        let blocks = self.blocks.iter().enumerate().map(|(b, block)| {
            let start = b * self.size;
            let (c, own) = (&centre[start..], &prior[start..]);
            Mat::from_fn(block.nrows(), block.nrows(), |i, j| {
                let (low, high) = (i.min(j), i.max(j));
                let diagonal = if i == j { own[i] } else { 0.0 };
                diagonal + block[(high, low)] - bias_precision * (c[i] * c[j])
            })
        });
        (blocks.collect(), centre, bias_precision)
    }

    /// V in parts.
    pub fn inverse<T: Real>(&self, prior: &[f64]) -> Result<BlockInverse<T>> {
        let (blocks, centre, bias_precision) = self.centred(prior);
        let invert = |block: &Mat<f64>| -> Result<Mat<T>> {
            Ok(cast(Cholesky::new(block.as_ref(), "a block of the column precision")?.inverse().as_ref()))
        };
        Ok(BlockInverse {
            size: self.size,
            inverses: blocks.iter().map(invert).collect::<Result<_>>()?,
            centre: centre.iter().map(|&c| T::lit(c)).collect(),
            bias_var: T::lit(1.0 / bias_precision),
        })
    }

    /// V⁻¹ as a matrix.
    pub fn dense(&self, prior: &[f64]) -> Mat<f64> {
        let (blocks, mut centre, bias_precision) = self.centred(prior);
        centre.push(1.0);
        let d = centre.len();
        let mut whole = Mat::from_fn(d, d, |i, j| bias_precision * (centre[i] * centre[j]));
        for (b, block) in blocks.iter().enumerate() {
            let start = b * self.size;
            let mut part = whole.as_mut().submatrix_mut(start, start, block.nrows(), block.nrows());
            part += block;
        }
        whole
    }
}
