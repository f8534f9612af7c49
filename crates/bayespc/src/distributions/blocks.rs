//! A sum of outer products of which diagonal blocks are kept, and the directions that blocks share.
//!
//! ```text
//! A = Σ w φφᵀ           kept:  A_bb of each block b ,   B of a sketch, B Bᵀ ≤ A          (`sketch`)
//! V⁻¹ = diag( V⁰⁻¹ + A_bb − (B Bᵀ)_bb ) + B Bᵀ
//! ```
//!
//! Every block of V⁻¹ is exact, and adds up exactly; between blocks it has what the directions in B tell. Without them
//! a direction in which the units of m blocks vary together, such as the mean of rectified activity, would be counted
//! once in each block, and steps along it would be m times too long. What is left beside B Bᵀ is positive definite, since
//! B Bᵀ is a lower bound. One block, or a B that has all directions, is the whole matrix.

use faer::{Accum, Mat, MatMut, MatRef};

use super::sketch::{Directions, FrequentDirections};
use crate::base::linalg::{Cholesky, cast, product_into, symmetric_product_into};
use crate::error::{Error, Result};
use crate::real::Real;

/// Directions that blocks share.
const SHARED: usize = 64;

/// Diagonal blocks of Σ w φφᵀ, and directions of all of it.
#[derive(Clone, Debug)]
pub struct BlockSums {
    /// Activities of a block; the last may have fewer.
    size: usize,
    /// A_bb, lower triangles.
    blocks: Vec<Mat<f64>>,
    /// B.
    shared: FrequentDirections,
}

/// D_b⁻¹ of the blocks beside B, and G with V = D⁻¹ − G Gᵀ:  G = D⁻¹ B L⁻ᵀ ,  L Lᵀ = I + Bᵀ D⁻¹ B.
#[derive(Clone, Debug)]
pub struct BlockInverse<T: Real> {
    size: usize,
    inverses: Vec<Mat<T>>,
    shared: Mat<T>,
}

impl BlockSums {
    /// The sum of nothing, of `d` activities in blocks of `size`.
    pub fn new(d: usize, size: usize) -> Self {
        let size = size.max(1);
        let width = |start: usize| size.min(d - start);
        let blocks = (0..d).step_by(size).map(|start| Mat::zeros(width(start), width(start))).collect();
        Self { size, blocks, shared: FrequentDirections::new(d, SHARED) }
    }

    /// Sums that were kept.
    pub(super) fn from_parts(size: usize, blocks: Vec<Mat<f64>>, shared: FrequentDirections) -> Self {
        Self { size, blocks, shared }
    }

    /// A_bb, lower triangles.
    pub fn blocks(&self) -> &[Mat<f64>] {
        &self.blocks
    }

    /// B.
    pub fn shared(&self) -> &FrequentDirections {
        &self.shared
    }

    /// Activities of a block.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Add factor · ΦΦᵀ.
    pub fn absorb<T: Real>(&mut self, pre: MatRef<'_, T>, factor: f64) -> Result<()> {
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
        self.shared.absorb(pre, factor)
    }

    /// Times a factor.
    pub fn scale(&mut self, factor: f64) {
        for block in &mut self.blocks {
            faer::zip!(block).for_each(|faer::unzip!(x)| *x *= factor);
        }
        self.shared.scale(factor);
    }

    /// Add other sums of the same blocks.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        let (found, expected) = (other.size, self.size);
        if found != expected {
            return Err(Error::Shape { what: "sums in blocks", axis: "units of a block", found, expected });
        }
        self.shared.add(&other.shared)?;
        for (own, other) in self.blocks.iter_mut().zip(&other.blocks) {
            *own += other;
        }
        Ok(())
    }

    /// D_b = V⁰⁻¹ + A_bb − (B Bᵀ)_bb, and B with orthogonal columns.
    fn beside_shared(&self, prior: &[f64]) -> Result<(Vec<Mat<f64>>, Mat<f64>)> {
        let Directions { mut basis, values } = self.shared.directions()?;
        for (j, value) in values.iter().enumerate() {
            let root = value.sqrt();
            basis.col_as_slice_mut(j).iter_mut().for_each(|x| *x *= root);
        }
        let beside = |(b, block): (usize, &Mat<f64>)| {
            let start = b * self.size;
            let mut rest = block.clone();
            let own = basis.subrows(start, block.nrows());
            symmetric_product_into(rest.as_mut(), Accum::Add, own, own, -1.0);
            for i in 0..rest.nrows() {
                // B Bᵀ is below A: what is less is rounding.
                rest[(i, i)] = rest[(i, i)].max(0.0) + prior[start + i];
            }
            rest
        };
        Ok((self.blocks.iter().enumerate().map(beside).collect(), basis))
    }

    /// V in parts.
    pub fn inverse<T: Real>(&self, prior: &[f64]) -> Result<BlockInverse<T>> {
        let (blocks, mut shared) = self.beside_shared(prior)?;
        let before = shared.clone();
        let mut inverses = Vec::with_capacity(blocks.len());
        for (b, block) in blocks.iter().enumerate() {
            let factor = Cholesky::new(block.as_ref(), "a block of the column precision")?;
            factor.solve_in_place(shared.as_mut().subrows_mut(b * self.size, block.nrows()));
            inverses.push(cast(factor.inverse().as_ref()));
        }
        let mut inner = before.transpose() * &shared;
        (0..inner.nrows()).for_each(|i| inner[(i, i)] += 1.0);
        let root = Cholesky::new(inner.as_ref(), "what blocks of the column precision share")?;
        // G = D⁻¹ B L⁻ᵀ: Gᵀ = L⁻¹ (D⁻¹ B)ᵀ.
        root.solve_lower_in_place(shared.as_mut().transpose_mut());
        Ok(BlockInverse { size: self.size, inverses, shared: cast(shared.as_ref()) })
    }

    /// V⁻¹ as a matrix.
    pub fn dense(&self, prior: &[f64]) -> Result<Mat<f64>> {
        let (blocks, shared) = self.beside_shared(prior)?;
        let mut whole = &shared * shared.transpose();
        for (b, block) in blocks.iter().enumerate() {
            let start = b * self.size;
            for j in 0..block.ncols() {
                for i in j..block.nrows() {
                    whole[(start + i, start + j)] += block[(i, j)];
                }
            }
        }
        crate::base::linalg::mirror_lower(whole.as_mut());
        Ok(whole)
    }
}

impl<T: Real> BlockInverse<T> {
    /// V Φ = D⁻¹ Φ − G Gᵀ Φ.
    pub(super) fn times(&self, pre: MatRef<'_, T>, mut product: MatMut<'_, T>) {
        let mut along = Mat::zeros(self.shared.ncols(), pre.ncols());
        product_into(along.as_mut(), Accum::Replace, self.shared.transpose(), pre, T::one());
        for (b, inverse) in self.inverses.iter().enumerate() {
            let (start, width) = (b * self.size, inverse.nrows());
            let to = product.as_mut().subrows_mut(start, width);
            product_into(to, Accum::Replace, inverse.as_ref(), pre.subrows(start, width), T::one());
        }
        product_into(product, Accum::Add, self.shared.as_ref(), along.as_ref(), -T::one());
    }

    /// Multiply-adds of a sample.
    pub(super) fn cost(&self) -> usize {
        self.shared.nrows() * (self.size + 2 * self.shared.ncols())
    }
}

impl BlockInverse<f64> {
    /// Diagonal of V.
    pub(super) fn diagonal(&self) -> Vec<f64> {
        let blocks = self.inverses.iter().flat_map(|block| (0..block.nrows()).map(|i| block[(i, i)]));
        let mut diagonal: Vec<f64> = blocks.collect();
        for column in self.shared.col_iter() {
            diagonal.iter_mut().zip(column.iter()).for_each(|(v, g)| *v -= g * g);
        }
        diagonal
    }
}
