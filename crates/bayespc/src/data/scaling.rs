//! Standardisation of features and targets: offset and scale per row, fitted on training data.
//!
//! ```text
//! m = Σ w_i x_i / Σ w_i ,   s² = Σ w_i (x_i − m)² / Σ w_i ,   x ↦ (x − m)/s
//! ```
//!
//! A constant row gets s = 1, so that it becomes zero and not NaN. Sums are of quantities divided by the
//! largest deviation: they neither overflow nor underflow at any magnitude the input itself can have.

use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::real::Real;

/// Offset and scale of each of d rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standardiser {
    /// Means m, one per row.
    pub offset: Vec<f64>,
    /// Standard deviations s > 0, one per row; 1 for a constant row.
    pub scale: Vec<f64>,
}

impl Standardiser {
    /// Leaves `d` rows as they are.
    pub fn identity(d: usize) -> Self {
        Self { offset: vec![0.0; d], scale: vec![1.0; d] }
    }

    /// Mean and population standard deviation of each row of `data` (`d × n`).
    pub fn fit<T: Real>(data: MatRef<'_, T>) -> Result<Self> {
        Self::fit_with(data, |_| 1.0)
    }

    /// Mean and standard deviation of each row of `data` (`d × n`), sample i counting `weights[i]` times.
    pub fn fit_weighted<T: Real>(data: MatRef<'_, T>, weights: &[f64]) -> Result<Self> {
        if weights.len() != data.ncols() {
            let expected = data.ncols();
            return Err(Error::Shape {
                what: "sample weights",
                axis: "samples",
                found: weights.len(),
                expected,
            });
        }
        if let Some(&value) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
            return Err(Error::Setting { name: "sample weight", value, must_be: "finite and not negative" });
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return Err(Error::Empty { what: "set of samples with positive weight" });
        }
        Self::fit_with(data, |sample| weights[sample] / largest)
    }

    /// The same with or without weights.
    pub(crate) fn fit_with_weights<T: Real>(data: MatRef<'_, T>, weights: Option<&[f64]>) -> Result<Self> {
        weights.map_or_else(|| Self::fit(data), |weights| Self::fit_weighted(data, weights))
    }

    /// One mean and one standard deviation for all rows of `data`, as images want it: pixels keep their relative
    /// spread, and one that is hardly ever on is not blown up. Sample i counts `weights[i]` times.
    pub fn fit_whole<T: Real>(data: MatRef<'_, T>, weights: Option<&[f64]>) -> Result<Self> {
        let rows = match weights {
            None => Self::fit(data)?,
            Some(weights) => Self::fit_weighted(data, weights)?,
        };
        let d = rows.dim() as f64;
        let offset = rows.offset.iter().sum::<f64>() / d;
        let weight = |sample: usize| weights.map_or(1.0, |w| w[sample]);
        let total: f64 = (0..data.ncols()).map(weight).sum();
        let spread = |column: usize| {
            let deviations = data.col(column).iter().map(|x| (x.as_f64() - offset).powi(2));
            weight(column) / total * deviations.sum::<f64>() / d
        };
        let variance: f64 = (0..data.ncols()).map(spread).sum();
        let scale = if variance.is_finite() && variance > 0.0 { variance.sqrt() } else { 1.0 };
        Ok(Self { offset: vec![offset; rows.dim()], scale: vec![scale; rows.dim()] })
    }

    fn fit_with<T: Real>(data: MatRef<'_, T>, weight: impl Fn(usize) -> f64) -> Result<Self> {
        if data.ncols() == 0 {
            return Err(Error::Empty { what: "data to standardise" });
        }
        let mut fitted = Self::identity(data.nrows());
        for row in 0..data.nrows() {
            for sample in 0..data.ncols() {
                let value = data[(row, sample)].as_f64();
                if !value.is_finite() {
                    return Err(Error::NotFinite {
                        what: "data to standardise",
                        row: sample,
                        column: row,
                        value,
                    });
                }
            }
            let values = || {
                (0..data.ncols())
                    .map(|sample| (data[(row, sample)].as_f64(), weight(sample)))
                    .filter(|&(_, weight)| weight > 0.0)
            };
            (fitted.offset[row], fitted.scale[row]) = moments(values, T::epsilon().as_f64());
        }
        Ok(fitted)
    }

    /// Number of rows d.
    pub fn dim(&self) -> usize {
        self.offset.len()
    }

    /// (x − m)/s of each column of `data` (`d × n`).
    pub fn apply<T: Real>(&self, data: MatRef<'_, T>) -> Result<Mat<T>> {
        self.apply_as(data)
    }

    /// The same in another working precision, without a copy between.
    pub fn apply_as<S: Real, T: Real>(&self, data: MatRef<'_, S>) -> Result<Mat<T>> {
        self.check_rows(data.nrows())?;
        Ok(Mat::from_fn(data.nrows(), data.ncols(), |row, sample| {
            T::lit((data[(row, sample)].as_f64() - self.offset[row]) / self.scale[row])
        }))
    }

    /// The same, column after column: a matrix of faer's own pads every column to 64 bytes, which for a
    /// single row is eight times its size.
    pub fn apply_packed<S: Real, T: Real>(&self, data: MatRef<'_, S>) -> Result<Vec<T>> {
        self.check_rows(data.nrows())?;
        let mut packed = Vec::with_capacity(data.nrows() * data.ncols());
        for column in data.col_iter() {
            let rows = column.iter().zip(self.offset.iter().zip(&self.scale));
            packed.extend(rows.map(|(value, (offset, scale))| T::lit((value.as_f64() - offset) / scale)));
        }
        Ok(packed)
    }

    /// m + s x of each column of `data` (`d × n`).
    pub fn undo<T: Real>(&self, data: MatRef<'_, T>) -> Result<Mat<T>> {
        self.check_rows(data.nrows())?;
        Ok(Mat::from_fn(data.nrows(), data.ncols(), |row, sample| {
            T::lit(self.offset[row] + self.scale[row] * data[(row, sample)].as_f64())
        }))
    }

    /// This standardises `d` rows, by finite offsets and positive scales.
    pub fn validate(&self, d: usize) -> Result<()> {
        for (what, found) in [("offset", self.offset.len()), ("scale", self.scale.len())] {
            if found != d {
                return Err(Error::Shape { what, axis: "rows", found, expected: d });
            }
        }
        if let Some(&value) = self.offset.iter().find(|offset| !offset.is_finite()) {
            return Err(Error::Setting { name: "offset", value, must_be: "finite" });
        }
        if let Some(&value) = self.scale.iter().find(|scale| !scale.is_finite() || **scale <= 0.0) {
            return Err(Error::Setting { name: "scale", value, must_be: "positive and finite" });
        }
        Ok(())
    }

    fn check_rows(&self, found: usize) -> Result<()> {
        if found == self.dim() {
            return Ok(());
        }
        Err(Error::Shape { what: "data to standardise", axis: "rows", found, expected: self.dim() })
    }
}

/// Offset and scale of one row; `values` gives pairs of value and weight > 0.
fn moments<I: Iterator<Item = (f64, f64)>>(values: impl Fn() -> I, epsilon: f64) -> (f64, f64) {
    // A running mean is as large as the values and never as large as their sum.
    let (mut offset, mut total) = (0.0, 0.0);
    for (value, weight) in values() {
        total += weight;
        // Halves, because the difference of two huge values of opposite sign overflows.
        offset += 2.0 * (weight / total) * (0.5 * value - 0.5 * offset);
    }
    let magnitude = values().map(|(value, _)| value.abs()).fold(0.0, f64::max);
    let deviation = values().map(|(value, _)| (value - offset).abs()).fold(0.0, f64::max);
    // What rounding alone does to a constant row.
    if deviation <= 8.0 * epsilon * magnitude || !deviation.is_finite() {
        return (offset, 1.0);
    }
    let square: f64 = values().map(|(value, weight)| weight * ((value - offset) / deviation).powi(2)).sum();
    let scale = deviation * (square / total).sqrt();
    // A weight can be so small that only rounding is left of the row's spread.
    (offset, if scale > 8.0 * epsilon * magnitude { scale } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn normal(d: usize, n: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
        Mat::from_fn(d, n, |_, _| StandardNormal.sample(rng))
    }

    #[test]
    fn the_whole_has_one_mean_and_one_deviation() {
        let data = Mat::from_fn(2, 3, |i, j| [[0.0, 0.0, 0.0], [1.0, 2.0, 6.0]][i][j]);
        let fitted = Standardiser::fit_whole(data.as_ref(), None).unwrap();
        // Mean 9/6; squares 0, 0, 0, 1, 4, 36.
        let scale = (41.0 / 6.0 - 1.5f64.powi(2)).sqrt();
        assert_eq!(fitted.offset, [1.5, 1.5]);
        assert!(fitted.scale.iter().all(|s| (s - scale).abs() < 1e-14));
        let weighted = Standardiser::fit_whole(data.as_ref(), Some(&[1.0, 1.0, 0.0])).unwrap();
        assert_eq!(weighted, Standardiser::fit_whole(data.subcols(0, 2), None).unwrap());
        let constant = Standardiser::fit_whole(Mat::<f64>::zeros(2, 3).as_ref(), None).unwrap();
        assert_eq!(constant, Standardiser::identity(2));
    }

    #[test]
    fn constant_rows_become_zero_at_any_magnitude() {
        for value in [0.0, 0.1, -7.0, 1e12, 1e-12, 1e150, 1e-150, f64::MAX] {
            let data = Mat::from_fn(1, 7, |_, _| value);
            let standardiser = Standardiser::fit(data.as_ref()).unwrap();
            assert_eq!(standardiser.scale, [1.0], "{value}");
            assert_relative_eq!(standardiser.offset[0], value, max_relative = 1e-15);
        }
    }

    #[test]
    fn rounding_around_a_large_constant_is_not_blown_up() {
        let data = Mat::from_fn(1, 4, |_, j| 1e9 * (1.0 + f64::EPSILON * j as f64));
        assert_eq!(Standardiser::fit(data.as_ref()).unwrap().scale, [1.0]);
    }

    #[test]
    fn a_single_sample_is_constant() {
        let data = Mat::from_fn(3, 1, |i, _| i as f64 - 1.0);
        let standardiser = Standardiser::fit(data.as_ref()).unwrap();
        assert_eq!(standardiser, Standardiser { offset: vec![-1.0, 0.0, 1.0], scale: vec![1.0; 3] });
    }

    #[test]
    fn no_samples_and_values_that_are_not_finite_are_errors() {
        let none = Mat::<f64>::zeros(2, 0);
        assert!(matches!(Standardiser::fit(none.as_ref()), Err(Error::Empty { .. })));
        let data = Mat::from_fn(2, 3, |i, j| if (i, j) == (1, 2) { f64::NAN } else { 1.0 });
        let error = Standardiser::fit(data.as_ref()).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 2, column: 1, .. }), "{error}");
        assert!(Standardiser::identity(3).apply(data.as_ref()).is_err());
        let zero_scale = Standardiser { offset: vec![0.0], scale: vec![0.0] };
        assert!(matches!(zero_scale.validate(1), Err(Error::Setting { name: "scale", .. })));
        assert!(Standardiser::identity(2).validate(2).is_ok());
    }

    proptest! {
        #[test]
        fn standardised_rows_have_mean_zero_and_variance_one_at_any_magnitude(
            seed: u64, exponent in -300i32..300, n in 2usize..60
        ) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let magnitude = 10f64.powi(exponent);
            let data = normal(3, n, &mut rng) * faer::Scale(magnitude);
            let z = Standardiser::fit(data.as_ref()).unwrap().apply(data.as_ref()).unwrap();
            for i in 0..3 {
                let mean = (0..n).map(|j| z[(i, j)]).sum::<f64>() / n as f64;
                let square = (0..n).map(|j| z[(i, j)] * z[(i, j)]).sum::<f64>() / n as f64;
                assert_relative_eq!(mean, 0.0, epsilon = 1e-12);
                assert_relative_eq!(square, 1.0, max_relative = 1e-12);
            }
        }

        #[test]
        fn undo_takes_back_apply(seed: u64, exponent in -150i32..150) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let data = normal(2, 20, &mut rng) * faer::Scale(10f64.powi(exponent));
            let standardiser = Standardiser::fit(data.as_ref()).unwrap();
            let back = standardiser.undo(standardiser.apply(data.as_ref()).unwrap().as_ref()).unwrap();
            for j in 0..20 {
                for i in 0..2 {
                    assert_relative_eq!(back[(i, j)], data[(i, j)], epsilon = 1e-14 * standardiser.scale[i]);
                }
            }
        }

        #[test]
        fn a_weight_of_two_is_the_sample_twice(seed: u64, repeated in 0usize..8) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let data = normal(2, 8, &mut rng);
            let twice = Mat::from_fn(2, 9, |i, j| data[(i, if j == 8 { repeated } else { j })]);
            let weights: Vec<f64> = (0..8).map(|j| if j == repeated { 2.0 } else { 1.0 }).collect();
            let weighted = Standardiser::fit_weighted(data.as_ref(), &weights).unwrap();
            let plain = Standardiser::fit(twice.as_ref()).unwrap();
            for i in 0..2 {
                assert_relative_eq!(weighted.offset[i], plain.offset[i], epsilon = 1e-14);
                assert_relative_eq!(weighted.scale[i], plain.scale[i], max_relative = 1e-13);
            }
        }
    }

    #[test]
    fn samples_of_weight_zero_do_not_count() {
        let data = Mat::from_fn(1, 3, |_, j| [1.0, 3.0, 1e9][j]);
        let standardiser = Standardiser::fit_weighted(data.as_ref(), &[1.0, 1.0, 0.0]).unwrap();
        assert_eq!(standardiser, Standardiser { offset: vec![2.0], scale: vec![1.0] });
        assert!(matches!(Standardiser::fit_weighted(data.as_ref(), &[0.0; 3]), Err(Error::Empty { .. })));
    }

    #[test]
    fn single_precision_data_is_standardised_in_double() {
        let data = Mat::from_fn(1, 4, |_, j| 1e4_f32 + j as f32);
        let z = Standardiser::fit(data.as_ref()).unwrap().apply(data.as_ref()).unwrap();
        assert_relative_eq!(z[(0, 3)], 1.5 / 1.25f32.sqrt(), max_relative = 1e-6);
        let wide: Mat<f64> = Standardiser::fit(data.as_ref()).unwrap().apply_as(data.as_ref()).unwrap();
        assert_relative_eq!(wide[(0, 3)], 1.5 / 1.25f64.sqrt(), max_relative = 1e-12);
    }

    #[test]
    fn packed_columns_are_those_of_the_matrix() {
        let data = normal(3, 5, &mut ChaCha8Rng::seed_from_u64(0));
        let standardiser = Standardiser::fit(data.as_ref()).unwrap();
        let packed: Vec<f64> = standardiser.apply_packed(data.as_ref()).unwrap();
        let matrix = standardiser.apply(data.as_ref()).unwrap();
        assert_eq!(MatRef::from_column_major_slice(&packed, 3, 5), matrix.as_ref());
        assert!(standardiser.apply_packed::<f64, f64>(data.as_ref().subrows(0, 2)).is_err());
    }
}
