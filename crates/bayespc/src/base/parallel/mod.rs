//! Work cut into fixed parts, so that the number of threads cannot change a result, and done by one thread where
//! waking another costs more than it saves.
//!
//! | parts                             | helper                                                          |
//! |-----------------------------------|-----------------------------------------------------------------|
//! | two or more pieces of work        | [`join_if`], [`for_each_if`]                                    |
//! | columns of a matrix to fill       | [`for_each_block_if`], [`for_each_chunk_if`], [`for_each_pass`] |
//! | samples, results in order         | [`over_chunks`], [`over_spans`]                                 |
//! | samples of a batch, summed up     | [`for_each_worker`]                                             |
//! | samples of one task, one by one   | [`pieces`]                                                      |

mod company;
mod workers;

use std::ops::Range;

use faer::MatMut;
use rayon::prelude::*;

pub(crate) use self::company::with_company;
pub(crate) use self::workers::for_each_worker;
use crate::real::Real;

/// Samples of a batch one task takes: few enough to share costly samples out, enough to pay for a task.
pub(crate) const CHUNK: usize = 64;

/// Samples that pass through a network at a time where a whole data set does: enough to feed a matrix product.
pub(crate) const PASS: usize = 256;

/// Tasks that share a sum over a data set: each has a sum of its own, and these are added in order.
const SPANS: usize = 8;

/// Columns of a matrix one task fills.
const BLOCK: usize = 112;

/// Multiply-adds of one chunk of samples below which waking a second thread costs more than it saves.
const CHUNK_PARALLEL_FROM: usize = 2_000_000;

/// Multiply-adds of a single product below which the same holds.
const PRODUCT_PARALLEL_FROM: usize = 4_000_000;

/// Whether a batch of `n` samples is worth more than one thread in a network with so many weights.
pub(crate) fn splits_batch(n_weights: usize, n: usize) -> bool {
    n > CHUNK && n_weights * CHUNK > CHUNK_PARALLEL_FROM
}

/// Whether a product of so many multiply-adds is worth more than one thread.
pub(crate) fn splits_product(multiply_adds: usize) -> bool {
    multiply_adds > PRODUCT_PARALLEL_FROM
}

/// Both pieces of work, at the same time if `parallel`.
pub(crate) fn join_if<A: Send, B: Send>(
    parallel: bool,
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    if parallel { rayon::join(a, b) } else { (a(), b()) }
}

/// Every item of a slice, at the same time if `parallel`.
pub(crate) fn for_each_if<I: Send>(parallel: bool, items: &mut [I], work: impl Fn(&mut I) + Sync + Send) {
    if parallel {
        items.par_iter_mut().for_each(work);
    } else {
        items.iter_mut().for_each(work);
    }
}

/// Blocks of columns with their first column, at the same time if `parallel`, or all columns as one block.
pub(crate) fn for_each_block_if<T: Real>(
    parallel: bool,
    whole: MatMut<'_, T>,
    work: impl Fn(usize, &mut MatMut<'_, T>) + Sync,
) {
    for_each_columns_if(parallel, BLOCK, whole, work);
}

/// Chunks of samples with their first one, at the same time if `parallel`, or all samples as one chunk.
pub(crate) fn for_each_chunk_if<T: Real>(
    parallel: bool,
    samples: MatMut<'_, T>,
    work: impl Fn(usize, &mut MatMut<'_, T>) + Sync,
) {
    for_each_columns_if(parallel, CHUNK, samples, work);
}

/// Samples that pass through a network together, with the first of them, at the same time.
pub(crate) fn for_each_pass<T: Real>(
    samples: MatMut<'_, T>,
    work: impl Fn(usize, &mut MatMut<'_, T>) + Sync,
) {
    for_each_columns_if(true, PASS, samples, work);
}

fn for_each_columns_if<T: Real>(
    parallel: bool,
    width: usize,
    mut whole: MatMut<'_, T>,
    work: impl Fn(usize, &mut MatMut<'_, T>) + Sync,
) {
    if !parallel {
        return work(0, &mut whole);
    }
    let mut blocks = Vec::with_capacity(whole.ncols().div_ceil(width));
    let (mut rest, mut start) = (whole, 0);
    while rest.ncols() > width {
        let (block, after) = rest.split_at_col_mut(width);
        blocks.push((start, block));
        (rest, start) = (after, start + width);
    }
    blocks.push((start, rest));
    blocks.into_par_iter().for_each(|(start, mut block)| work(start, &mut block));
}

/// `work` on each chunk of samples 0..n at the same time, results in order.
pub(crate) fn over_chunks<R: Send>(n: usize, work: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    // One chunk is not worth waking a thread.
    if n <= CHUNK {
        return if n == 0 { Vec::new() } else { vec![work(0..n)] };
    }
    over_parts(n, CHUNK, work)
}

/// `work` on each of a few long spans of samples 0..n at the same time, results in order.
pub(crate) fn over_spans<R: Send>(n: usize, work: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    over_parts(n, n.div_ceil(SPANS).max(PASS), work)
}

fn over_parts<R: Send>(n: usize, size: usize, work: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    let part = |i: usize| i * size..((i + 1) * size).min(n);
    (0..n.div_ceil(size)).into_par_iter().map(|i| work(part(i))).collect()
}

/// A span of samples in pieces of `size`, in order.
pub(crate) fn pieces(span: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = span.end;
    span.step_by(size).map(move |start| start..(start + size).min(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_all_columns_once() {
        for parallel in [false, true] {
            let mut whole = faer::Mat::<f64>::zeros(2, 3 * BLOCK + 1);
            for_each_block_if(parallel, whole.as_mut(), |start, block| {
                for j in 0..block.ncols() {
                    block[(1, j)] += (start + j) as f64;
                }
            });
            assert!((0..whole.ncols()).all(|j| whole[(1, j)] == j as f64 && whole[(0, j)] == 0.0));
        }
    }

    #[test]
    fn parts_and_their_pieces_cover_all_samples_once_and_in_order() {
        for n in [0, 1, CHUNK, CHUNK + 1, SPANS * PASS + 3, 5000] {
            let all: Vec<usize> = (0..n).collect();
            assert_eq!(over_chunks(n, |part| part).into_iter().flatten().collect::<Vec<_>>(), all);
            let spans = over_spans(n, |span| pieces(span, PASS).flatten().collect::<Vec<_>>());
            assert!(spans.len() <= SPANS);
            assert_eq!(spans.concat(), all);
        }
    }
}
