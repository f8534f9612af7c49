//! Samples in a form that does not depend on how they were written down.
//!
//! A sample of weight 0 is as good as absent. Of a full batch the order and repetition of samples carry no
//! information: they are sorted, and equal ones become one that weighs as much. Not even rounding then tells a sample
//! of weight 2 from two samples.

use std::cmp::Ordering;

use super::samples::{OwnedSamples, Samples};

/// Samples of a full batch that are worth sorting; of more, a copy would cost memory.
const MOST: usize = 1024;

/// Samples in canonical form.
pub(crate) struct Canonical {
    pub(crate) samples: OwnedSamples,
    /// For each of them the given samples that it stands for.
    pub(crate) stands_for: Vec<Vec<usize>>,
}

/// The canonical form of `samples`, if they are not in it. Those that fit one batch are sorted and merged.
pub(crate) fn canonical(samples: &Samples<'_>, batch: usize) -> Option<Canonical> {
    let weighted = samples.weights().is_some_and(|weights| weights.contains(&0.0));
    let weight = |&j: &usize| samples.weights().is_none_or(|weights| weights[j] > 0.0);
    let kept: Vec<usize> = (0..samples.n_samples()).filter(weight).collect();
    if kept.len() <= batch.min(MOST) {
        return Some(merged(samples, kept));
    }
    weighted.then(|| Canonical {
        samples: without_unit_weights(samples.select(&kept)),
        stands_for: kept.into_iter().map(|j| vec![j]).collect(),
    })
}

/// Those in `order`, sorted, equal samples as one.
fn merged(samples: &Samples<'_>, mut order: Vec<usize>) -> Canonical {
    let compare = |&a: &usize, &b: &usize| {
        let inputs = (0..samples.n_features())
            .map(|i| samples.inputs().value(i, a).total_cmp(&samples.inputs().value(i, b)));
        let targets = (0..samples.targets().n_keys())
            .map(|i| samples.targets().key(i, a).total_cmp(&samples.targets().key(i, b)));
        inputs.chain(targets).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    order.sort_by(compare);
    let stands_for: Vec<Vec<usize>> =
        order.chunk_by(|a, b| compare(a, b).is_eq()).map(<[usize]>::to_vec).collect();
    let weight = |&j: &usize| samples.weights().map_or(1.0, |weights| weights[j]);
    let weights = stands_for.iter().map(|equal| equal.iter().map(weight).sum()).collect();
    let first: Vec<usize> = stands_for.iter().map(|equal| equal[0]).collect();
    let samples = without_unit_weights(OwnedSamples { weights: Some(weights), ..samples.select(&first) });
    Canonical { samples, stands_for }
}

fn without_unit_weights(samples: OwnedSamples) -> OwnedSamples {
    let weights = samples.weights.filter(|weights| weights.iter().any(|&weight| weight != 1.0));
    OwnedSamples { weights, ..samples }
}

#[cfg(test)]
mod tests {
    use faer::Mat;

    use super::*;
    use crate::data::Targets;

    #[test]
    fn order_repetition_and_absent_samples_make_no_difference() {
        let x = Mat::from_fn(1, 5, |_, j| [3.0, 1.0, 2.0, 1.0, 9.0][j]);
        let y = Mat::from_fn(1, 5, |_, j| [0.5, 0.2, 0.1, 0.2, 7.0][j]);
        let weights = [1.0, 1.0, 2.0, 1.0, 0.0];
        let found = canonical(&Samples::new(&x, &y).unwrap().weighted(&weights).unwrap(), 32).unwrap();
        assert_eq!(found.stands_for, [vec![1, 3], vec![2], vec![0]]);
        let found = found.samples.view();
        let values: Vec<f64> = (0..found.n_samples()).map(|j| found.inputs().value(0, j)).collect();
        assert_eq!(values, [1.0, 2.0, 3.0]);
        assert_eq!(found.weights().unwrap(), [2.0, 2.0, 1.0]);
        // The same input with another class is another sample.
        let classes = Samples::new(&x, Targets::classes(&[0, 0, 0, 1, 0])).unwrap();
        assert_eq!(canonical(&classes, 32).unwrap().samples.view().n_samples(), 5);
    }

    #[test]
    fn more_samples_than_a_batch_stay_in_their_order() {
        let x = Mat::from_fn(1, 5, |_, j| -(j as f64));
        let samples = Samples::new(&x, &x).unwrap();
        assert!(canonical(&samples, 4).is_none());
        let present = canonical(&samples.weighted(&[1.0, 0.0, 1.0, 1.0, 1.0]).unwrap(), 3).unwrap();
        assert_eq!(present.stands_for, [[0], [2], [3], [4]]);
        let present = present.samples.view();
        assert_eq!(present.weights(), None);
        assert_eq!((0..4).map(|j| present.inputs().value(0, j)).collect::<Vec<_>>(), [0.0, -2.0, -3.0, -4.0]);
    }
}
