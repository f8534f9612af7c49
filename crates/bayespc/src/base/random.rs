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

/// The odd number nearest to 2⁶⁴ over the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number drawn for row `row` alone, whoever has that row: uniform over 64 bits, independent between seeds and uses.
pub(crate) fn of_row(seed: u64, usage: u64, row: u64) -> u64 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood 2014), once for each argument.
    let mixed = |x: u64| {
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let seeded = mixed(seed.wrapping_add(STEP));
    let used = mixed(seeded ^ usage.wrapping_add(1).wrapping_mul(STEP));
    mixed(used ^ row.wrapping_add(1).wrapping_mul(STEP))
}

/// A matrix of independent N(0, 1) entries, drawn column by column.
pub(crate) fn standard_normal(rows: usize, columns: usize, rng: &mut dyn Rng) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(rng))
}
