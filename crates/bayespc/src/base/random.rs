//! Streams of random numbers: every use of chance has a seed and a stream of its own, so that the number of threads
//! cannot change a result.

use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// The generator of stream `i` of a seed.
pub(crate) fn stream(seed: u64, i: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(i);
    rng
}

/// A matrix of independent N(0, 1) entries, drawn column by column.
pub(crate) fn standard_normal(rows: usize, columns: usize, rng: &mut dyn Rng) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(rng))
}
