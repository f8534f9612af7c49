//! Slices along a column: samples that are held out together, so that those left are all some way off.
//!
//! A network that has lost a random fold still has neighbours of every sample in it. One that has lost the middle of a
//! column, or an end, does not: it must bridge a gap or go on beyond its data, and what it then says of its own doubt can
//! be compared with how wrong it is.

use rand::seq::SliceRandom;

use super::samples::Samples;
use crate::base::random::stream;

/// Parts of the sorted column that are held out in turn: the middle, one end, the other.
const PARTS: [(f64, f64); 3] = [(1.0 / 3.0, 2.0 / 3.0), (0.0, 0.25), (0.75, 1.0)];

/// The least and the largest share of the samples in a slice. Equal values are never parted, so that a column of few
/// values may have none in between.
const SHARES: (f64, f64) = (0.05, 0.45);

/// At most `k` slices, each along a column of its own while there are any left.
pub(crate) fn slices(samples: &Samples<'_>, seed: u64, k: usize) -> Vec<Vec<usize>> {
    let (d, n) = (samples.n_features(), samples.n_samples());
    let mut columns: Vec<usize> = (0..d).collect();
    columns.shuffle(&mut stream(seed, STREAM));
    let mut slices: Vec<Vec<usize>> = Vec::new();
    // Every part of every column at most once: a third round begins where the first two have found too few.
    for round in 0..PARTS.len() {
        for (place, &column) in columns.iter().enumerate() {
            if slices.len() == k {
                return slices;
            }
            let slice = slice(samples, column, PARTS[(place + round) % PARTS.len()]);
            let share = slice.len() as f64 / n as f64;
            if (SHARES.0..=SHARES.1).contains(&share) && !slices.contains(&slice) {
                slices.push(slice);
            }
        }
    }
    slices
}

/// Stream of the seed that orders the columns.
const STREAM: u64 = 5;

/// Samples whose value is in this part of the sorted column.
fn slice(samples: &Samples<'_>, column: usize, (from, to): (f64, f64)) -> Vec<usize> {
    let n = samples.n_samples();
    let value = |j: usize| samples.inputs().value(column, j);
    let mut sorted: Vec<f64> = (0..n).map(value).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((share * n as f64) as usize).min(n - 1)];
    let (low, high) = (at(from), at(to));
    (0..n).filter(|&j| (low..high).contains(&value(j)) || (to == 1.0 && value(j) >= low)).collect()
}

#[cfg(test)]
mod tests {
    use faer::Mat;

    use super::*;

    #[test]
    fn a_slice_is_an_interval_of_a_column_and_parts_take_turns() {
        let x = Mat::from_fn(1, 90, |_, j| (j * 37 % 90) as f64);
        let slices = slices(&Samples::new(&x, &x).unwrap(), 1, 5);
        // One column has a middle and two ends.
        assert_eq!(slices.len(), 3);
        let range = |slice: &[usize]| {
            let values = slice.iter().map(|&j| x[(0, j)]);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
        };
        for (slice, (low, high)) in slices.iter().zip([(30.0, 59.0), (0.0, 21.0), (67.0, 89.0)]) {
            assert_eq!(range(slice), (low, high));
            assert_eq!(slice.len(), (high - low) as usize + 1);
        }
    }

    #[test]
    fn columns_take_turns_and_those_of_few_values_are_passed_over() {
        // Two values, a constant, and two columns that can be sliced.
        let x = Mat::from_fn(4, 100, |i, j| match i {
            0 => (j % 2) as f64,
            1 => 7.0,
            2 => (j * 3 % 100) as f64,
            _ => (j * 7 % 100) as f64,
        });
        let samples = Samples::new(&x, &x).unwrap();
        let found = slices(&samples, 0, 4);
        assert_eq!(found.len(), 4);
        for slice in &found {
            let width = |i: usize| {
                let values: Vec<f64> = slice.iter().map(|&j| x[(i, j)]).collect();
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
                    - values.iter().copied().fold(f64::INFINITY, f64::min)
            };
            assert!(width(2) < 34.0 || width(3) < 34.0);
        }
        let constant = Mat::from_fn(2, 30, |_, _| 1.0);
        assert!(slices(&Samples::new(&constant, &x.subcols(0, 30).to_owned()).unwrap(), 0, 4).is_empty());
    }
}
