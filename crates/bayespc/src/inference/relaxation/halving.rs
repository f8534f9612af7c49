//! Step halving: a sample's step is halved until its energy does not rise.

use std::ops::Range;

use super::descent::{activate, activity, activity_mut};
use crate::inference::clamp::Clamp;
use crate::inference::energy::Energy;
use crate::network::Activities;
use crate::real::Real;

/// A step that is 2⁻⁶⁰ of its length and still does not descend: the sample is at rest to rounding.
const HALVINGS: usize = 60;

/// Shorten the step that brought the activities `moved` from `start` to z. `before` is the energy of every sample in
/// `layers` before the step.
pub(super) fn halve<T: Real>(
    energy: &Energy<'_, T>,
    z: &mut Activities<T>,
    clamp: &Clamp<T>,
    (start, before): (&Activities<T>, &[f64]),
    moved: Range<usize>,
    layers: Range<usize>,
) {
    let end = z.clone();
    let mut share = T::one();
    for halving in 0..=HALVINGS {
        let after = energy.of_samples(z, clamp, layers.clone());
        // A sample that does not descend yet has been halved in every round: all of them have the same share.
        let rising: Vec<usize> = (0..before.len()).filter(|&j| !(after[j] <= before[j])).collect();
        if rising.is_empty() {
            return;
        }
        share *= T::lit(0.5);
        for k in moved.clone() {
            let (start, end) = (activity(start, k), activity(&end, k));
            for &j in &rising {
                let ends = start.col_as_slice(j).iter().zip(end.col_as_slice(j));
                for (z, (&start, &end)) in activity_mut(z, k).col_as_slice_mut(j).iter_mut().zip(ends) {
                    *z = if halving < HALVINGS { start + share * (end - start) } else { start };
                }
            }
            activate(energy, z, k);
        }
    }
}
