//! Work over samples in parallel: chunks of a fixed size, put together in their order, so that the
//! number of threads never changes a result.

use std::ops::Range;

use faer::Mat;
use rayon::prelude::*;

/// Samples per task: small enough to share costly rows out, large enough to pay for a task.
const CHUNK: usize = 64;

/// `work` on each chunk of 0..n, results in order.
pub(crate) fn over_chunks<R: Send>(n: usize, work: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    // One chunk is not worth waking a thread.
    if n <= CHUNK {
        return if n == 0 { Vec::new() } else { vec![work(0..n)] };
    }
    (0..n.div_ceil(CHUNK))
        .into_par_iter()
        .map(|chunk| work(chunk * CHUNK..((chunk + 1) * CHUNK).min(n)))
        .collect()
}

/// The `d × n` matrix of `entry(row, sample, scratch)`, with one scratch space per chunk.
pub(crate) fn filled<S: Default>(
    d: usize,
    n: usize,
    entry: impl Fn(usize, usize, &mut S) -> f64 + Sync,
) -> Mat<f64> {
    let chunks = over_chunks(n, |samples| {
        let mut scratch = S::default();
        let mut values = Vec::with_capacity(d * samples.len());
        for sample in samples {
            for row in 0..d {
                values.push(entry(row, sample, &mut scratch));
            }
        }
        values
    });
    from_columns(d, n, &chunks)
}

/// The `d × n` matrix whose columns are written one after the other in `chunks`.
pub(crate) fn from_columns(d: usize, n: usize, chunks: &[Vec<f64>]) -> Mat<f64> {
    Mat::from_fn(d, n, |row, sample| chunks[sample / CHUNK][sample % CHUNK * d + row])
}
