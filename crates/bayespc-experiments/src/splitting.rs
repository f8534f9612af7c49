//! Which rows of a table a split learns from: the standard splits, or a gap in one feature and its mirror.
//!
//! ```text
//! rows sorted by feature f:   outer third | middle third | outer third
//! gap                         learn       | predict      | learn          (Foong et al. 2019)
//! outside                     predict     | learn        | predict
//! ```

use std::fmt;

use bayespc_data::{Split, standard_splits};
use faer::Mat;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What the splits of a table are to test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Splitting {
    /// The standard splits: a random tenth.
    #[default]
    Standard,
    /// Between the data: split f is the middle third by feature f.
    Gap,
    /// Beyond the data: split f is all but the middle third by feature f.
    Outside,
}

impl Splitting {
    /// Split `number` of a table whose features are `d × n`. Rows of a gap are in the order of the table.
    pub fn split(self, features: &Mat<f64>, number: usize) -> Result<Split> {
        let (d, n) = features.shape();
        if self == Self::Standard {
            return Ok(standard_splits(n, number + 1).swap_remove(number));
        }
        if number >= d {
            return Err(Error::NoFeature { number, features: d });
        }
        let mut order: Vec<usize> = (0..n).collect();
        // Stable, so that rows with equal values stay in the order of the table.
        order.sort_by(|&a, &b| features[(number, a)].total_cmp(&features[(number, b)]));
        let mut middle = order.split_off(n / 3);
        order.extend(middle.split_off(2 * n / 3 - n / 3));
        for rows in [&mut middle, &mut order] {
            rows.sort_unstable();
        }
        Ok(match self {
            Self::Outside => Split { train: middle, test: order },
            Self::Standard | Self::Gap => Split { train: order, test: middle },
        })
    }
}

impl fmt::Display for Splitting {
    /// What the name of a table gets in records: nothing for standard splits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "",
            Self::Gap => "+gap",
            Self::Outside => "+outside",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seven rows: feature 0 falls, feature 1 has ties.
    fn features() -> Mat<f64> {
        let values = [[7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]];
        Mat::from_fn(2, 7, |i, j| values[i][j])
    }

    #[test]
    fn a_gap_is_the_middle_third_by_its_feature() {
        let falling = Splitting::Gap.split(&features(), 0).unwrap();
        assert_eq!(falling, Split { train: vec![0, 1, 2, 5, 6], test: vec![3, 4] });
        // By value, then by place: 0, 2 | 4, 6 | 1, 3, 5.
        let tied = Splitting::Gap.split(&features(), 1).unwrap();
        assert_eq!(tied, Split { train: vec![0, 1, 2, 3, 5], test: vec![4, 6] });
    }

    #[test]
    fn outside_is_the_mirror_of_the_gap() {
        for number in 0..2 {
            let gap = Splitting::Gap.split(&features(), number).unwrap();
            let outside = Splitting::Outside.split(&features(), number).unwrap();
            assert_eq!((outside.train, outside.test), (gap.test, gap.train));
        }
    }

    #[test]
    fn there_are_as_many_gaps_as_features() {
        let missing = Splitting::Outside.split(&features(), 2);
        assert!(matches!(missing, Err(Error::NoFeature { number: 2, features: 2 })));
    }

    #[test]
    fn without_a_word_splits_are_the_standard_ones() {
        let split = Splitting::default().split(&features(), 1).unwrap();
        assert_eq!(split, standard_splits(7, 2)[1]);
    }
}
