//! Streams of random numbers: every use of chance has a seed and a stream of its own, so that the number of threads
//! cannot change a result.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// The generator of stream `i` of a seed.
pub(crate) fn stream(seed: u64, i: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(i);
    rng
}
