//! Linearised prediction of a single output for a few samples, one after the other: the formulas of `one_output` with
//! vectors that run along layers.
//!
//! A matrix is read column by column, as it lies in memory; of a triangle only the part that is not zero.

use faer::MatRef;

use super::one_output::column;
use super::{ChunkResult, Factors, Top};
use crate::base::linalg::dot;
use crate::network::Network;
use crate::real::Real;

/// Samples up to which this is faster than vectors along samples.
pub(super) const MAX_ROWS: usize = 3;

/// Mean and variances of each sample.
pub(super) fn predict<T: Real>(
    network: &Network<T>,
    factors: &Factors<T>,
    top: &Top<T>,
    input: MatRef<'_, T>,
) -> ChunkResult {
    let (n, n_hidden) = (input.ncols(), network.hidden().len());
    let (means, widths, activation) = (network.means(), network.widths(), network.settings().activation);
    let with_one = |&d: &usize| {
        let mut pre = vec![T::zero(); d + 1];
        pre[d] = T::one();
        pre
    };
    let mut pre: Vec<Vec<T>> = widths[..=n_hidden].iter().map(with_one).collect();
    let mut slopes: Vec<Vec<T>> = widths[1..=n_hidden].iter().map(|&d| vec![T::zero(); d]).collect();
    let widest = widths.iter().copied().max().unwrap_or(0) + 1;
    let (mut room, mut feedback, mut below) =
        (vec![T::zero(); widest], vec![T::zero(); widest], vec![T::zero(); widest]);
    let mut leverages = vec![0.0; n_hidden + 1];
    let with_noise = network.hidden_noise();
    let mut result = ChunkResult {
        mean: Vec::with_capacity(n),
        epistemic: Vec::with_capacity(n),
        hidden_noise: Vec::new(),
    };
    for sample in 0..n {
        for (to, from) in pre[0].iter_mut().zip(input.col(sample).iter()) {
            *to = *from;
        }
        for l in 0..=n_hidden {
            let root = factors.inv_col_roots[l].as_ref();
            leverages[l] = squared_length(root, &pre[l], &mut room, |column, rows| column..rows);
            let z = &mut room[..means[l].nrows()];
            times(means[l], &pre[l], z, |_, rows| 0..rows);
            if l == n_hidden {
                result.mean.push(z[0].as_f64());
            } else {
                for (i, &z) in z.iter().enumerate() {
                    slopes[l][i] = activation.derivative(z);
                    pre[l + 1][i] = activation.apply(z);
                }
            }
        }
        let mut epistemic = leverages[n_hidden] * factors.block_noise[0][(0, 0)];
        let mut hidden_noise = 0.0;
        for l in (0..n_hidden).rev() {
            let slope = &slopes[l];
            if l + 1 == n_hidden {
                feedback[..slope.len()].copy_from_slice(&top.row);
            } else {
                // Mᵀg: a column of M for each unit below.
                let above = &feedback[..means[l + 1].nrows()];
                for (j, to) in below[..slope.len()].iter_mut().enumerate() {
                    *to = dot(column(means[l + 1], j), above);
                }
                std::mem::swap(&mut feedback, &mut below);
            }
            feedback.iter_mut().zip(slope).for_each(|(g, &s)| *g *= s);
            let root = factors.metric_roots[l].as_ref();
            let reach = squared_length(root, &feedback[..slope.len()], &mut room, |column, _| 0..column + 1);
            epistemic += leverages[l] * reach;
            hidden_noise += factors.noise_ratio[l] * reach;
        }
        result.epistemic.push(epistemic);
        if with_noise {
            result.hidden_noise.push(hidden_noise);
        }
    }
    result
}

/// ‖R x‖² for a root whose column j is zero outside the rows `within(j, n_rows)`.
fn squared_length<T: Real>(
    root: MatRef<'_, T>,
    x: &[T],
    room: &mut [T],
    within: impl Fn(usize, usize) -> std::ops::Range<usize>,
) -> f64 {
    let product = &mut room[..root.nrows()];
    times(root, x, product, within);
    product.iter().map(|&v| (v * v).as_f64()).sum()
}

/// y ← A x, column by column.
fn times<T: Real>(
    a: MatRef<'_, T>,
    x: &[T],
    y: &mut [T],
    within: impl Fn(usize, usize) -> std::ops::Range<usize>,
) {
    y.fill(T::zero());
    for (j, &x) in x.iter().enumerate() {
        let rows = within(j, a.nrows());
        y[rows.clone()].iter_mut().zip(&column(a, j)[rows]).for_each(|(y, &a)| *y += a * x);
    }
}
