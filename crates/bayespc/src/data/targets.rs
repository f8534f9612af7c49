//! Targets: real values or classes.

use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

use super::dataset::check_finite;
use super::scaling::Standardiser;
use crate::error::{Error, Result};
use crate::real::Real;

/// What is being predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Real-valued targets.
    Regression,
    /// One of so many classes.
    Classification {
        /// K.
        classes: usize,
    },
}

/// Targets to learn from.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Targets<'a> {
    /// `d × n` real values.
    Values(MatRef<'a, f64>),
    /// A class 0..K per sample.
    Classes {
        /// The classes.
        labels: &'a [usize],
        /// K.
        classes: usize,
    },
}

impl<'a> From<MatRef<'a, f64>> for Targets<'a> {
    fn from(values: MatRef<'a, f64>) -> Self {
        Self::Values(values)
    }
}

impl<'a> From<&'a Mat<f64>> for Targets<'a> {
    fn from(values: &'a Mat<f64>) -> Self {
        Self::Values(values.as_ref())
    }
}

impl<'a> Targets<'a> {
    /// Classes 0..K, where K − 1 is the largest of `labels`.
    pub fn classes(labels: &'a [usize]) -> Self {
        let classes = labels.iter().max().map_or(0, |&largest| largest.saturating_add(1));
        Self::Classes { labels, classes }
    }

    /// What is being predicted.
    pub fn task(&self) -> Task {
        match *self {
            Self::Values(_) => Task::Regression,
            Self::Classes { classes, .. } => Task::Classification { classes },
        }
    }

    /// Number of samples.
    pub fn n_samples(&self) -> usize {
        match self {
            Self::Values(values) => values.ncols(),
            Self::Classes { labels, .. } => labels.len(),
        }
    }

    /// Finite values, or labels of the classes there are.
    pub(crate) fn check(&self) -> Result<()> {
        match *self {
            Self::Values(values) => check_finite("target", values),
            Self::Classes { labels, classes } => match labels.iter().position(|&label| label >= classes) {
                Some(row) => Err(Error::Label { label: labels[row], row, classes }),
                None => Ok(()),
            },
        }
    }

    /// Offset and scale of real values; one-hot codes are compared as they are.
    pub(crate) fn scaling(&self, weights: Option<&[f64]>) -> Result<Standardiser> {
        match *self {
            Self::Values(values) => {
                let scaling = Standardiser::fit_with_weights(values, weights)?;
                check_target_scales(&scaling)?;
                Ok(scaling)
            }
            Self::Classes { classes, .. } => Ok(Standardiser::identity(classes)),
        }
    }

    /// The distance between neighbouring values of each target, if it has few values that are all multiples of one
    /// distance apart, as counts, grades and integers of a scale are.
    pub(crate) fn spacings(&self) -> Vec<Option<f64>> {
        let Self::Values(values) = self else { return Vec::new() };
        (0..values.nrows())
            .map(|i| {
                let mut sorted: Vec<f64> = (0..values.ncols()).map(|j| values[(i, j)]).collect();
                sorted.sort_by(f64::total_cmp);
                sorted.dedup();
                if sorted.len() < 2 || sorted.len() > MOST_VALUES.min(values.ncols() / 10) {
                    return None;
                }
                let gaps = || sorted.windows(2).map(|pair| pair[1] - pair[0]);
                let least = gaps().fold(f64::INFINITY, f64::min);
                let is_multiple = |gap: f64| (gap / least - (gap / least).round()).abs() < 1e-6;
                gaps().all(is_multiple).then_some(least)
            })
            .collect()
    }

    /// Standardised values or one-hot codes, column after column.
    pub(crate) fn standardised<T: Real>(&self, scaling: &Standardiser) -> Result<Vec<T>> {
        match *self {
            Self::Values(values) => scaling.apply_packed(values),
            Self::Classes { labels, classes } => {
                let mut codes = vec![T::zero(); classes * labels.len()];
                for (row, &label) in labels.iter().enumerate() {
                    codes[row * classes + label] = T::one();
                }
                Ok(codes)
            }
        }
    }

    /// The targets of samples `start..start + n`.
    pub(crate) fn span(&self, start: usize, n: usize) -> Self {
        match *self {
            Self::Values(values) => Self::Values(values.subcols(start, n)),
            Self::Classes { labels, classes } => Self::Classes { labels: &labels[start..start + n], classes },
        }
    }

    /// The targets of the samples with these numbers, copied.
    pub(crate) fn select(&self, samples: &[usize]) -> OwnedTargets {
        match *self {
            Self::Values(values) => {
                OwnedTargets::Values(Mat::from_fn(values.nrows(), samples.len(), |i, j| {
                    values[(i, samples[j])]
                }))
            }
            Self::Classes { labels, classes } => {
                OwnedTargets::Classes(samples.iter().map(|&sample| labels[sample]).collect(), classes)
            }
        }
    }

    /// Row `i` of the target of sample `j`, to compare samples by: a value, or the class.
    pub(crate) fn key(&self, i: usize, j: usize) -> f64 {
        match self {
            Self::Values(values) => values[(i, j)],
            Self::Classes { labels, .. } => labels[j] as f64,
        }
    }

    /// Numbers that [`Targets::key`] knows of a sample.
    pub(crate) fn n_keys(&self) -> usize {
        match self {
            Self::Values(values) => values.nrows(),
            Self::Classes { .. } => 1,
        }
    }
}

/// Deviations whose squares, and factors of some thousands on them, are numbers.
const SCALES: std::ops::RangeInclusive<f64> = 1e-142..=1e140;

/// Different values a target has at most if it is one of few values.
const MOST_VALUES: usize = 50;

/// Targets that own their memory.
#[derive(Clone, Debug)]
pub(crate) enum OwnedTargets {
    Values(Mat<f64>),
    Classes(Vec<usize>, usize),
}

impl OwnedTargets {
    pub(crate) fn view(&self) -> Targets<'_> {
        match self {
            Self::Values(values) => Targets::Values(values.as_ref()),
            Self::Classes(labels, classes) => Targets::Classes { labels, classes: *classes },
        }
    }
}

/// The variance of every target is a number, and so is the square of what a mean far from 0 is rounded by: networks that agree
/// but for rounding would disagree beyond all numbers.
fn check_target_scales(scaling: &Standardiser) -> Result<()> {
    for (column, (offset, &scale)) in scaling.offset.iter().zip(&scaling.scale).enumerate() {
        let scale = if offset.abs() > *SCALES.end() { offset.abs() } else { scale };
        if !SCALES.contains(&scale) {
            return Err(Error::TargetScale { column, scale });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_far_beyond_the_square_root_of_all_numbers_are_refused() {
        for (first, step) in [(1e141, 0.0), (-1.7e252, 0.0), (0.0, 1e142), (0.0, 1e-144)] {
            let values = Mat::from_fn(2, 3, |i, j| if i == 0 { j as f64 } else { first + step * j as f64 });
            let refused = Targets::Values(values.as_ref()).scaling(None);
            assert!(
                matches!(refused, Err(Error::TargetScale { column: 1, .. })),
                "{first} {step}: {refused:?}"
            );
        }
        let large = Mat::from_fn(1, 3, |_, j| 1e139 + 1e130 * j as f64);
        assert!(Targets::Values(large.as_ref()).scaling(None).is_ok());
    }

    #[test]
    fn targets_of_few_evenly_spaced_values_are_found() {
        let grades = Mat::from_fn(1, 200, |_, j| [3.0, 5.0, 6.0, 8.0][j % 4]);
        assert_eq!(Targets::Values(grades.as_ref()).spacings(), [Some(1.0)]);
        let halves =
            Mat::from_fn(2, 200, |i, j| if i == 0 { 0.5 * (j % 7) as f64 } else { (j as f64).sqrt() });
        assert_eq!(Targets::Values(halves.as_ref()).spacings(), [Some(0.5), None]);
        // Few values at uneven distances; one value; too few samples for so many values.
        for values in [&[0.0, 1.0, 2.5, 3.1][..], &[4.0]] {
            let uneven = Mat::from_fn(1, 200, |_, j| values[j % values.len()]);
            assert_eq!(Targets::Values(uneven.as_ref()).spacings(), [None]);
        }
        let many = Mat::from_fn(1, 60, |_, j| (j % 20) as f64);
        assert_eq!(Targets::Values(many.as_ref()).spacings(), [None]);
    }
}
