//! Work over samples in parallel: chunks of a fixed size, put together in their order, so that the
//! number of threads never changes a result.

use faer::Mat;

use crate::base::parallel::CHUNK;
pub(crate) use crate::base::parallel::over_chunks;

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
