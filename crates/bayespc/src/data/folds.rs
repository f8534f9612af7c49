//! Folds by content: which samples are held out together.
//!
//! Samples with the same inputs are in the same fold, or a network would be judged by what it has seen. The fold of a
//! sample depends on its inputs and the seed, not on its place or on how often it is there. Classes are spread evenly.

use std::collections::BTreeMap;

use super::samples::Samples;
use super::targets::Targets;

/// The numbers of the samples in each of at most `k` folds; fewer if there are fewer different inputs.
pub(crate) fn folds(samples: &Samples<'_>, seed: u64, k: usize) -> Vec<Vec<usize>> {
    // Inputs that share a hash without being equal share a fold too, which does no harm.
    let mut groups: BTreeMap<u64, (usize, Vec<usize>)> = BTreeMap::new();
    for j in 0..samples.n_samples() {
        let label = match samples.targets() {
            Targets::Values(_) => 0,
            Targets::Classes { labels, .. } => labels[j],
        };
        let group = groups.entry(hash(samples, seed, j)).or_insert((label, Vec::new()));
        group.0 = group.0.min(label);
        group.1.push(j);
    }
    let k = k.min(groups.len());
    let mut folds = vec![Vec::new(); k];
    let mut order: Vec<(usize, Vec<usize>)> = groups.into_values().collect();
    // Within a class by hash: the map has that order, and sorting keeps it.
    order.sort_by_key(|(label, _)| *label);
    for (place, (_, group)) in order.into_iter().enumerate() {
        folds[place % k].extend(group);
    }
    for fold in &mut folds {
        fold.sort_unstable();
    }
    folds
}

/// A hash of the inputs of sample `j`.
fn hash(samples: &Samples<'_>, seed: u64, j: usize) -> u64 {
    let mix = |state: u64, bits: u64| {
        // SplitMix64's finaliser.
        let mut z = (state ^ bits).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    // Adding zero makes −0 the same as 0.
    (0..samples.n_features())
        .fold(mix(seed, 0), |state, i| mix(state, (samples.inputs().value(i, j) + 0.0).to_bits()))
}

#[cfg(test)]
mod tests {
    use faer::Mat;

    use super::*;

    #[test]
    fn every_sample_is_in_one_fold_and_equal_inputs_are_together() {
        let x = Mat::from_fn(2, 90, |i, j| ((j % 40) * (i + 1)) as f64);
        let y = Mat::from_fn(1, 90, |_, j| j as f64);
        let folds = folds(&Samples::new(&x, &y).unwrap(), 3, 5);
        let mut all: Vec<usize> = folds.concat();
        all.sort_unstable();
        assert_eq!(all, (0..90).collect::<Vec<_>>());
        for fold in &folds {
            assert!(fold.iter().all(|j| fold.contains(&(j % 40))));
            assert!((10..=30).contains(&fold.len()), "{}", fold.len());
        }
    }

    #[test]
    fn place_and_repetition_do_not_matter_and_the_seed_does() {
        let fold_of = |values: &[f64], seed: u64, x: f64| {
            let inputs = Mat::from_fn(1, values.len(), |_, j| values[j]);
            let folds = folds(&Samples::new(&inputs, &inputs).unwrap(), seed, 3);
            folds.iter().position(|fold| fold.iter().any(|&j| values[j] == x)).unwrap()
        };
        let values: Vec<f64> = (0..30).map(f64::from).collect();
        let mut other: Vec<f64> = values.iter().rev().copied().collect();
        other.extend([4.0, 7.0, -0.0]);
        for x in &values {
            assert_eq!(fold_of(&values, 1, *x), fold_of(&other, 1, *x));
        }
        assert!(values.iter().any(|&x| fold_of(&values, 1, x) != fold_of(&values, 2, x)));
    }

    #[test]
    fn classes_are_spread_and_there_are_no_more_folds_than_inputs() {
        let x = Mat::from_fn(1, 50, |_, j| j as f64);
        let labels: Vec<usize> = (0..50).map(|j| usize::from(j >= 40)).collect();
        let samples = Samples::new(&x, Targets::classes(&labels)).unwrap();
        for fold in folds(&samples, 0, 5) {
            assert_eq!(fold.iter().filter(|&&j| labels[j] == 1).count(), 2);
        }
        let same = Mat::from_fn(1, 50, |_, j| (j % 2) as f64);
        assert_eq!(folds(&Samples::new(&same, &same).unwrap(), 0, 5).len(), 2);
    }
}
