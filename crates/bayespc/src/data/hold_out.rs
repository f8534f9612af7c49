//! Samples held out: some to train on, others to judge by.

use rand::seq::SliceRandom;

use super::samples::{OwnedSamples, Samples};
use crate::base::random::stream;

/// One division of the samples.
#[derive(Clone, Debug)]
pub(crate) struct HoldOut {
    pub(crate) train: OwnedSamples,
    pub(crate) test: OwnedSamples,
}

impl HoldOut {
    /// `rounds` divisions of `n` of the samples, each with `held_out` others to judge by. The shuffle is that of the
    /// seed's stream.
    pub(crate) fn rounds(
        samples: &Samples<'_>,
        (seed, number): (u64, u64),
        (n, held_out, rounds): (usize, usize, usize),
    ) -> Vec<Self> {
        let mut order: Vec<usize> = (0..samples.n_samples()).collect();
        order.shuffle(&mut stream(seed, number));
        order.truncate(n);
        (0..rounds)
            .map(|round| {
                let (start, end) = (round * held_out, (round + 1) * held_out);
                let rest: Vec<usize> = order[..start].iter().chain(&order[end..]).copied().collect();
                Self { train: samples.select(&rest), test: samples.select(&order[start..end]) }
            })
            .collect()
    }
}
