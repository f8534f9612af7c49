//! Linearised prediction of a single output, where G_l is one row g_lᵀ for every sample.
//!
//! ```text
//! g_{L−1} = f′(ẑ_{L−1}) ⊙ m_L ,   g_l = f′(ẑ_l) ⊙ (M_{l+1}ᵀ g_{l+1})_{without bias}
//! epistemic = ‖C_L⁻¹ φ̂_{L−1}‖² ⟨Σ_L⟩ + Σ_l ‖C_l⁻¹ φ̂_{l−1}‖² · ‖Lᵀ g_l‖²/ν
//! ```
//!
//! Here samples are rows, `n × d`: vectors then run along samples, of which there are enough to fill them, and a
//! triangular root is cut into blocks of columns that leave most of its zeros out. Every chunk of samples passes
//! through the same memory, because fresh memory would cost as much as the products. The row m_L of the output's
//! weights is part of what g_{L−1} is multiplied by, so that f′ alone is kept of it.

use std::ops::Range;

use faer::{Accum, Mat, MatMut, MatRef};

use super::{ChunkResult, Factors, Top};
use crate::base::linalg::product_into;
use crate::network::Network;
use crate::real::Real;

/// Columns of a triangular root multiplied at a time.
const BLOCK: usize = 20;

/// What a chunk of samples is computed in.
pub(super) struct OneOutput<T: Real> {
    /// φ̂_0 … φ̂_{L−1}, each `n × (d_l + 1)`, the last column ones.
    pre: Vec<Mat<T>>,
    /// ẑ_1 … ẑ_L, each `n × d_l`.
    post: Vec<Mat<T>>,
    /// g_l as rows, and g_{l+1}, `n ×` the widest layer.
    feedback: Mat<T>,
    feedback_above: Mat<T>,
    /// f′(ẑ_l), `n ×` the widest layer.
    slope: Mat<T>,
    /// Some columns of a root's product, `n × BLOCK`.
    block: Mat<T>,
    /// φ̂ᵀVφ̂ of every sample.
    leverage: Vec<f64>,
    /// gᵀ⟨Σ_l⁻¹⟩⁻¹g of every sample.
    reach: Vec<f64>,
}

impl<T: Real> OneOutput<T> {
    /// Room for chunks of `n` samples.
    pub(super) fn new(network: &Network<T>, n: usize) -> Self {
        let widths = network.widths();
        let widest = widths.iter().copied().max().unwrap_or(0);
        let with_ones = |&d: &usize| Mat::from_fn(n, d + 1, |_, i| if i == d { T::one() } else { T::zero() });
        Self {
            pre: widths[..widths.len() - 1].iter().map(with_ones).collect(),
            post: widths[1..].iter().map(|&d| Mat::zeros(n, d)).collect(),
            feedback: Mat::zeros(n, widest),
            feedback_above: Mat::zeros(n, widest),
            slope: Mat::zeros(n, widest),
            block: Mat::zeros(n, BLOCK),
            leverage: vec![0.0; n],
            reach: vec![0.0; n],
        }
    }

    /// How many samples it takes, no more and no less.
    pub(super) fn capacity(&self) -> usize {
        self.leverage.len()
    }

    /// Mean and variances of one chunk of samples (columns of `input`).
    pub(super) fn predict(
        &mut self,
        network: &Network<T>,
        factors: &Factors<T>,
        top: &Top<T>,
        input: MatRef<'_, T>,
    ) -> ChunkResult {
        let (n, n_hidden) = (input.ncols(), network.hidden().len());
        let (means, activation) = (network.means(), network.settings().activation);
        self.forward(network, input);
        let Self { pre, post, feedback, feedback_above, slope, block, leverage, reach } = self;

        let noise = factors.block_noise[0][(0, 0)];
        leverages(&factors.inv_col_roots[n_hidden], &pre[n_hidden], block, leverage);
        let mut epistemic: Vec<f64> = leverage.iter().map(|h| h * noise).collect();
        let mut hidden_noise = vec![0.0; if network.hidden_noise() { n } else { 0 }];
        for l in (0..n_hidden).rev() {
            let width = post[l].ncols();
            std::mem::swap(feedback, feedback_above);
            let mut feedback = feedback.as_mut().subcols_mut(0, width);
            let root = if l + 1 == n_hidden {
                activation.derivative_into(post[l].as_ref(), feedback.as_mut());
                &top.root
            } else {
                let mean = if l + 2 == n_hidden { top.mean.as_ref() } else { means[l + 1].subcols(0, width) };
                let above = feedback_above.as_ref().subcols(0, mean.nrows());
                product_into(feedback.as_mut(), Accum::Replace, above, mean, T::one());
                let mut slope = slope.as_mut().subcols_mut(0, width);
                activation.derivative_into(post[l].as_ref(), slope.as_mut());
                for i in 0..width {
                    let slope = column(slope.as_ref(), i);
                    column_mut(feedback.as_mut(), i).iter_mut().zip(slope).for_each(|(g, &s)| *g *= s);
                }
                &factors.metric_roots[l]
            };
            leverages(&factors.inv_col_roots[l], &pre[l], block, leverage);
            // Lᵀ is an upper triangle: the blocks of its rows begin at the diagonal.
            squared_lengths(root.as_ref(), |rows| rows.start..width, feedback.as_ref(), block, reach);
            for ((sum, h), r) in epistemic.iter_mut().zip(&*leverage).zip(&*reach) {
                *sum += h * r;
            }
            for (sum, r) in hidden_noise.iter_mut().zip(&*reach) {
                *sum += factors.noise_ratio[l] * r;
            }
        }
        ChunkResult {
            mean: post[n_hidden].col_as_slice(0).iter().map(|a| a.as_f64()).collect(),
            epistemic,
            hidden_noise,
        }
    }

    /// φ̂ and ẑ of every layer.
    fn forward(&mut self, network: &Network<T>, input: MatRef<'_, T>) {
        self.pre[0].as_mut().subcols_mut(0, input.nrows()).copy_from(input.transpose());
        for (l, mean) in network.means().into_iter().enumerate() {
            product_into(
                self.post[l].as_mut(),
                Accum::Replace,
                self.pre[l].as_ref(),
                mean.transpose(),
                T::one(),
            );
            if let Some(pre) = self.pre.get_mut(l + 1) {
                let d = self.post[l].ncols();
                network
                    .settings()
                    .activation
                    .apply_into(self.post[l].as_ref(), pre.as_mut().subcols_mut(0, d));
            }
        }
    }
}

/// φ̂ᵀVφ̂ = ‖C⁻¹φ̂‖² of every sample; C⁻¹ is a lower triangle: the blocks of its rows end at the diagonal.
fn leverages<T: Real>(inv_col_root: &Mat<T>, pre: &Mat<T>, block: &mut Mat<T>, lengths: &mut [f64]) {
    squared_lengths(inv_col_root.as_ref(), |rows| 0..rows.end, pre.as_ref(), block, lengths);
}

/// ‖R x‖² of every row xᵀ, where rows of R are zero outside the columns `within`.
fn squared_lengths<T: Real>(
    root: MatRef<'_, T>,
    within: impl Fn(Range<usize>) -> Range<usize>,
    x: MatRef<'_, T>,
    block: &mut Mat<T>,
    lengths: &mut [f64],
) {
    lengths.fill(0.0);
    for start in (0..root.nrows()).step_by(BLOCK) {
        let n_rows = BLOCK.min(root.nrows() - start);
        let Range { start: first, end } = within(start..start + n_rows);
        let part = root.submatrix(start, first, n_rows, end - first).transpose();
        let mut block = block.as_mut().subcols_mut(0, n_rows);
        product_into(block.as_mut(), Accum::Replace, x.subcols(first, end - first), part, T::one());
        for i in 0..n_rows {
            let values = column(block.as_ref(), i);
            lengths.iter_mut().zip(values).for_each(|(length, &v)| *length += (v * v).as_f64());
        }
    }
}

pub(super) fn column<T: Real>(x: MatRef<'_, T>, j: usize) -> &[T] {
    x.col(j).try_as_col_major().expect("columns of a matrix are contiguous").as_slice()
}

fn column_mut<T: Real>(x: MatMut<'_, T>, j: usize) -> &mut [T] {
    x.col_mut(j).try_as_col_major_mut().expect("columns of a matrix are contiguous").as_slice_mut()
}
