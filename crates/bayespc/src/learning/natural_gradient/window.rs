//! Presynaptic activities that wait for η₁, so that it takes many batches in one product.
//!
//! ```text
//! η₁ ← (1−κ) η₁ + κ (V⁰⁻¹ + s Σ w φφᵀ)     batch after batch, is for batches 1 … b
//! η₁ ← K η₁ + (1−K) V⁰⁻¹ + Φ Φᵀ ,           K = Π (1−κ_i) ,   Φ = [ … √(κ_i s_i Π_{j>i} (1−κ_j)) √w φ … ]
//! ```

use faer::{Accum, Mat};

use super::error_chunk::{ErrorChunk, total_samples};
use super::step::Blend;
use crate::base::linalg::{product_into, symmetric_product_into};
use crate::base::parallel::{for_each_block_if, splits_product};
use crate::network::MovingMean;
use crate::real::Real;

/// Most columns a window keeps, unless one batch has more.
const MOST: usize = 4096;

/// Rows of the matrices that products fill or read here come in multiples of this, the rest zero. faer packs a
/// last, partial vector of rows without clearing what is beside it; subnormal remains of other products there
/// can slow a product many times over.
const LANES: usize = 16;

pub(super) fn padded(rows: usize) -> usize {
    rows.next_multiple_of(LANES)
}

/// φ of the batches η₁ has not seen yet.
#[derive(Clone, Debug)]
pub(super) struct Window<T: Real> {
    d_pre: usize,
    /// φ in the first `used` columns, times the root of the samples' weights.
    columns: Mat<T>,
    used: usize,
    waiting: Vec<Waiting>,
    /// ΦΦᵀ, lower triangle.
    outer: Mat<T>,
}

/// A batch in the window.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    columns: usize,
    /// Σ w.
    count: f64,
    blend: Blend,
}

impl<T: Real> Window<T> {
    /// An empty window.
    pub fn new(d_pre: usize) -> Self {
        let outer = Mat::zeros(padded(d_pre), padded(d_pre));
        Self { d_pre, columns: Mat::new(), used: 0, waiting: Vec::new(), outer }
    }

    /// Whether a batch finds room beside those that wait.
    pub fn has_room<C: ErrorChunk<T>>(&self, chunks: &[C]) -> bool {
        self.used + total_samples(chunks) <= self.columns.ncols()
    }

    /// Add φ of a batch, for which an empty window makes room; returns the total weight of its samples.
    pub fn add<C: ErrorChunk<T>>(&mut self, l: usize, chunks: &[C], blend: Blend) -> f64 {
        let columns = total_samples(chunks);
        if columns > self.columns.ncols() {
            debug_assert_eq!(self.used, 0, "nothing waits in a window that grows");
            self.columns = Mat::zeros(padded(self.d_pre), columns.max(MOST.min(8 * columns)));
        }
        let mut count = 0.0;
        for chunk in chunks {
            let n = chunk.n_samples();
            let mut place = self.columns.as_mut().submatrix_mut(0, self.used, self.d_pre, n);
            place.copy_from(chunk.presynaptic(l));
            match chunk.sample_weights() {
                None => count += n as f64,
                Some(weights) => {
                    for (j, &weight) in weights.iter().enumerate() {
                        let root = T::lit(weight.sqrt());
                        place.as_mut().col_mut(j).iter_mut().for_each(|x| *x *= root);
                    }
                    count += weights.iter().sum::<f64>();
                }
            }
            self.used += n;
        }
        self.waiting.push(Waiting { columns, count, blend });
        count
    }

    /// Hand every batch that waits to η₁ and η₄; false if none does.
    pub fn hand_over(&mut self, posterior: &mut MovingMean<T>) -> bool {
        let Some(last) = self.waiting.last() else { return false };
        let mut keep = 1.0;
        let mut count = 0.0;
        let mut alpha = T::one();
        if self.waiting.len() == 1 {
            keep = 1.0 - last.blend.rate;
            let weight = last.blend.rate * last.blend.scale;
            count = weight * last.count;
            alpha = T::lit(weight);
        } else {
            let mut end = self.used;
            for waiting in self.waiting.iter().rev() {
                let weight = keep * waiting.blend.rate * waiting.blend.scale;
                let root = T::lit(weight.sqrt());
                for j in end - waiting.columns..end {
                    self.columns.col_as_slice_mut(j).iter_mut().for_each(|x| *x *= root);
                }
                end -= waiting.columns;
                count += weight * waiting.count;
                keep *= 1.0 - waiting.blend.rate;
            }
        }
        self.multiply(alpha);
        posterior.blend_col_precision(&self.outer, keep, count);
        self.used = 0;
        self.waiting.clear();
        true
    }

    /// outer ← alpha · ΦΦᵀ.
    fn multiply(&mut self, alpha: T) {
        let window = self.columns.subcols(0, self.used);
        let d = window.nrows();
        if !splits_product(d * d * self.used / 2) {
            symmetric_product_into(self.outer.as_mut(), Accum::Replace, window, window, alpha);
            return;
        }
        for_each_block_if(true, self.outer.as_mut(), |start, block| {
            let width = block.ncols();
            product_into(
                block.as_mut().subrows_mut(start, d - start),
                Accum::Replace,
                window.subrows(start, d - start),
                window.subrows(start, width).transpose(),
                alpha,
            );
        });
    }
}
