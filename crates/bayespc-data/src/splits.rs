//! Train/test splits: the standard twenty of the UCI benchmark, files of splits, and k folds.
//!
//! The standard splits are those of Hernández-Lobato & Adams (ICML 2015): one 32-bit Mersenne
//! Twister seeded by `init_genrand(1)` per data set, then for each split a Fisher–Yates shuffle
//!
//! ```text
//! p = [0, 1, …, n−1]
//! for i = n−1 down to 1:
//!     mask = smallest 2^b − 1 ≥ i
//!     repeat j = next_u32() & mask until j ≤ i
//!     swap p[i], p[j]
//! train = p[0 .. round(0.9 n)],  test = p[round(0.9 n) .. n]
//! ```
//!
//! which is NumPy's `np.random.seed(1)`, then `np.random.choice(range(n), n, replace=False)`
//! once per split; `round` is NumPy's too, so halves go to the even number.

use std::path::Path;

use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::ChaCha8Rng};

use crate::{Error, Result};

/// Row numbers, from 0, of one division of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Rows to learn from.
    pub train: Vec<usize>,
    /// Rows to report on.
    pub test: Vec<usize>,
}

/// The first `n_splits` standard splits of a table of `n` rows, in permutation order.
///
/// The splits are independent draws, not a partition.
pub fn standard_splits(n: usize, n_splits: usize) -> Vec<Split> {
    let mut twister = MersenneTwister::new(1);
    let n_train = (0.9 * n as f64).round_ties_even() as usize;
    (0..n_splits)
        .map(|_| {
            let mut train = twister.permutation(n);
            let test = train.split_off(n_train);
            Split { train, test }
        })
        .collect()
}

/// Splits of a table of `n` rows from a file whose line `k` lists the test rows of split `k`.
///
/// Row numbers count from 0 and are separated by commas; the training set is every other row, in
/// the order of the table.
pub fn parse_splits(path: &Path, n: usize) -> Result<Vec<Split>> {
    let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
    let file = path.display().to_string();
    text.lines().enumerate().map(|(k, line)| parse_split(line, n, &file, k + 1)).collect()
}

/// `k` folds of `n` rows: a seeded shuffle cut into `k` test sets whose sizes differ by at most one.
pub fn k_folds(n: usize, k: usize, seed: u64) -> Result<Vec<Split>> {
    if k < 2 || k > n {
        let must_be = "at least 2 and at most the number of rows";
        return Err(Error::Setting { name: "k", value: k as f64, must_be });
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let cut = |fold: usize| fold * n / k;
    Ok((0..k)
        .map(|fold| {
            let (start, end) = (cut(fold), cut(fold + 1));
            Split { train: [&order[..start], &order[end..]].concat(), test: order[start..end].to_vec() }
        })
        .collect())
}

fn parse_split(line: &str, n: usize, file: &str, number: usize) -> Result<Split> {
    let wrong = |value: &str, must_be: String| Error::Split {
        file: file.to_owned(),
        line: number,
        value: value.to_owned(),
        must_be,
    };
    let mut is_test = vec![false; n];
    let mut test = Vec::new();
    for entry in line.split(',').map(str::trim) {
        let row: usize = entry
            .parse()
            .ok()
            .filter(|&row| row < n)
            .ok_or_else(|| wrong(entry, format!("a row number in 0..{n}")))?;
        if std::mem::replace(&mut is_test[row], true) {
            return Err(wrong(entry, "a row that is listed once".to_owned()));
        }
        test.push(row);
    }
    let train = (0..n).filter(|&row| !is_test[row]).collect();
    Ok(Split { train, test })
}

/// MT19937 of Matsumoto & Nishimura (1998), as in their `mt19937ar.c`.
struct MersenneTwister {
    state: [u32; 624],
    next: usize,
}

impl MersenneTwister {
    /// `init_genrand(seed)`.
    fn new(seed: u32) -> Self {
        let mut state = [0; 624];
        state[0] = seed;
        for i in 1..624 {
            let last: u32 = state[i - 1];
            state[i] = 1_812_433_253_u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: 624 }
    }

    /// `genrand_int32()`.
    fn next_u32(&mut self) -> u32 {
        if self.next == 624 {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..624 {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % 624] & 0x7fff_ffff);
            let mixed = if y & 1 == 0 { 0 } else { 0x9908_b0df };
            self.state[i] = self.state[(i + 397) % 624] ^ (y >> 1) ^ mixed;
        }
        self.next = 0;
    }

    /// NumPy's legacy `permutation(n)`: Fisher–Yates with masked rejection.
    fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut p: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            let mask = u32::MAX >> (i as u32).leading_zeros();
            let j = loop {
                let j = (self.next_u32() & mask) as usize;
                if j <= i {
                    break j;
                }
            };
            p.swap(i, j);
        }
        p
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `mt19937ar.c` with `init_genrand(5489)`: the C++ standard ([rand.predef]) names the 10000th draw.
    #[test]
    fn the_ten_thousandth_draw_is_the_one_the_cpp_standard_names() {
        let mut twister = MersenneTwister::new(5489);
        let draws: Vec<u32> = (0..10_000).map(|_| twister.next_u32()).collect();
        assert_eq!(draws[0], 3_499_211_612);
        assert_eq!(draws[9_999], 4_123_659_995);
    }

    /// NumPy: `np.random.seed(1)`, then `np.random.choice(range(15), 15, replace=False)` twice.
    #[test]
    fn two_small_splits_match_numpy_in_order() {
        let splits = standard_splits(15, 2);
        assert_eq!(splits[0].train, NUMPY_FIRST[..14]);
        assert_eq!(splits[0].test, NUMPY_FIRST[14..]);
        assert_eq!(splits[1].train, NUMPY_SECOND[..14]);
        assert_eq!(splits[1].test, NUMPY_SECOND[14..]);
    }

    const NUMPY_FIRST: [usize; 15] = [3, 7, 6, 2, 10, 4, 1, 13, 0, 14, 9, 8, 12, 11, 5];
    const NUMPY_SECOND: [usize; 15] = [8, 3, 13, 9, 0, 6, 1, 7, 11, 12, 10, 14, 2, 5, 4];

    /// `np.round(0.9 * 5)` is 4, the even neighbour of 4.5.
    #[test]
    fn half_a_row_is_rounded_as_numpy_does() {
        assert_eq!(standard_splits(5, 1)[0].train.len(), 4);
        assert_eq!(standard_splits(15, 1)[0].train.len(), 14);
    }

    #[test]
    fn no_rows_and_one_row_give_splits_without_test_rows() {
        assert!(standard_splits(0, 1)[0].train.is_empty());
        assert_eq!(standard_splits(1, 1), [Split { train: vec![0], test: vec![] }]);
    }

    proptest! {
        #[test]
        fn folds_partition_the_rows_into_nearly_equal_parts(n in 2_usize..200, k in 2_usize..20, seed: u64) {
            prop_assume!(k <= n);
            let folds = k_folds(n, k, seed).unwrap();
            let mut seen: Vec<usize> = folds.iter().flat_map(|fold| fold.test.clone()).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..n).collect::<Vec<_>>());
            for fold in &folds {
                prop_assert!(fold.test.len() == n / k || fold.test.len() == n.div_ceil(k));
                let mut all = [fold.train.clone(), fold.test.clone()].concat();
                all.sort_unstable();
                prop_assert_eq!(all, (0..n).collect::<Vec<_>>());
            }
            prop_assert_eq!(&folds, &k_folds(n, k, seed).unwrap());
        }
    }

    #[test]
    fn a_number_of_folds_that_cannot_be_is_an_error() {
        assert!(matches!(k_folds(10, 1, 0), Err(Error::Setting { name: "k", .. })));
        assert!(matches!(k_folds(10, 11, 0), Err(Error::Setting { name: "k", .. })));
    }

    #[test]
    fn a_splits_file_gives_test_rows_in_its_order_and_all_others_for_training() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "3,0\n1,4\n").unwrap();
        let splits = parse_splits(file.path(), 5).unwrap();
        assert_eq!(splits[0], Split { train: vec![1, 2, 4], test: vec![3, 0] });
        assert_eq!(splits[1], Split { train: vec![0, 2, 3], test: vec![1, 4] });
    }

    #[test]
    fn a_wrong_splits_file_names_line_and_entry() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, culprit, at) in [("0,1\n2,5\n", "5", 2), ("0,0\n", "0", 1), ("0,x\n", "x", 1)] {
            std::fs::write(file.path(), text).unwrap();
            match parse_splits(file.path(), 5) {
                Err(Error::Split { line, value, .. }) => assert_eq!((line, value.as_str()), (at, culprit)),
                other => panic!("{other:?}"),
            }
        }
    }
}
