//! Scores of predicted numbers: errors of the mean, density and CRPS of the distribution, and whether its
//! intervals hold what they promise.
//!
//! ```text
//! RMSE² = mean (y − μ)²        MAE = mean |y − μ|        LL = mean_i log p(y_i)
//! PIT u = F(y)                 uniform for a calibrated predictive
//! coverage(α) = mean 1{ |2u − 1| ≤ α }        calibration error = mean_α |coverage(α) − α|
//! ```
//!
//! Means run over samples and targets alike; log densities are joint over targets, a mean over samples.

use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

use crate::base::check::{check_finite, check_shape};
use crate::error::{Error, Result};
use crate::prediction::{Predictive, filled};

/// Nominal coverage at which [`RegressionMetrics`] reports intervals.
pub const REPORTED_COVERAGE: f64 = 0.9;

/// Every score of a regression, in the units of the predictive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RegressionMetrics {
    /// Root mean squared error of the mean.
    pub rmse: f64,
    /// Mean absolute error of the mean.
    pub mae: f64,
    /// Mean log density of a sample; none for point predictions, which have no density.
    pub log_density: Option<f64>,
    /// Mean continuous ranked probability score.
    pub crps: f64,
    /// Share of targets within their central 90 % interval.
    pub coverage_90: f64,
    /// Mean width of the central 90 % intervals.
    pub width_90: f64,
    /// Mean distance of empirical from nominal coverage.
    pub calibration_error: f64,
}

/// Share of targets within their central intervals, by nominal coverage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CalibrationCurve {
    /// Nominal coverages 0.05, 0.10, …, 0.95.
    pub levels: Vec<f64>,
    /// Empirical coverage at each level.
    pub empirical: Vec<f64>,
}

/// Root mean squared error across targets and samples of `predicted` (`d × n`).
pub fn rmse(predicted: MatRef<'_, f64>, targets: MatRef<'_, f64>) -> Result<f64> {
    let squares = mean_per_target(predicted, targets, |error| error * error)?;
    Ok(mean(&squares).sqrt())
}

/// Mean absolute error across targets and samples of `predicted` (`d × n`).
pub fn mae(predicted: MatRef<'_, f64>, targets: MatRef<'_, f64>) -> Result<f64> {
    Ok(mean(&mean_per_target(predicted, targets, f64::abs)?))
}

/// Mean over samples of the log density, joint over a sample's targets.
pub fn log_predictive_density(predictive: &Predictive, targets: MatRef<'_, f64>) -> Result<f64> {
    check_some(targets)?;
    Ok(mean(&predictive.log_density(targets)?))
}

/// Mean continuous ranked probability score across targets and samples.
pub fn mean_crps(predictive: &Predictive, targets: MatRef<'_, f64>) -> Result<f64> {
    check_some(targets)?;
    Ok(mean_entry(&predictive.crps(targets)?))
}

/// Share of targets within their central intervals of nominal `coverage`.
pub fn interval_coverage(predictive: &Predictive, targets: MatRef<'_, f64>, coverage: f64) -> Result<f64> {
    check_some(targets)?;
    predictive.check_targets(targets)?;
    let (lower, upper) = predictive.interval(coverage)?;
    Ok(covered(&lower, &upper, targets))
}

/// Probability integral transforms u = F(y) of each target and sample, `d × n`.
pub fn pit(predictive: &Predictive, targets: MatRef<'_, f64>) -> Result<Mat<f64>> {
    predictive.check_targets(targets)?;
    Ok(filled(predictive.n_targets(), predictive.n_samples(), |target, sample, (): &mut ()| {
        predictive.marginal_cdf(target, sample, targets[(target, sample)])
    }))
}

/// Empirical coverage of the central intervals at nominal levels 0.05, 0.10, …, 0.95.
pub fn calibration_curve(predictive: &Predictive, targets: MatRef<'_, f64>) -> Result<CalibrationCurve> {
    check_some(targets)?;
    let transforms = pit(predictive, targets)?;
    let levels: Vec<f64> = (1..20).map(|level| f64::from(level) / 20.0).collect();
    let share = |level: &f64| mean_of(&transforms, |u| f64::from((2.0 * u - 1.0).abs() <= *level));
    let empirical = levels.iter().map(share).collect();
    Ok(CalibrationCurve { levels, empirical })
}

/// Mean |empirical − nominal| coverage over the levels of [`calibration_curve`].
pub fn calibration_error(predictive: &Predictive, targets: MatRef<'_, f64>) -> Result<f64> {
    Ok(calibration_curve(predictive, targets)?.error())
}

/// All scores at once.
pub fn regression_metrics(predictive: &Predictive, targets: MatRef<'_, f64>) -> Result<RegressionMetrics> {
    let predicted = predictive.mean();
    let (lower, upper) = predictive.interval(REPORTED_COVERAGE)?;
    Ok(RegressionMetrics {
        rmse: rmse(predicted.as_ref(), targets)?,
        mae: mae(predicted.as_ref(), targets)?,
        log_density: match log_predictive_density(predictive, targets) {
            Ok(density) => Some(density),
            Err(Error::NotPositiveDefinite { .. }) => None,
            Err(error) => return Err(error),
        },
        crps: mean_crps(predictive, targets)?,
        coverage_90: covered(&lower, &upper, targets),
        width_90: mean_entry(&(upper - lower)),
        calibration_error: calibration_error(predictive, targets)?,
    })
}

impl CalibrationCurve {
    /// Mean |empirical − nominal|.
    pub fn error(&self) -> f64 {
        let distances: Vec<f64> =
            self.levels.iter().zip(&self.empirical).map(|(a, b)| (a - b).abs()).collect();
        mean(&distances)
    }
}

/// Mean over samples of `loss(y − μ)` for each target.
fn mean_per_target(
    predicted: MatRef<'_, f64>,
    targets: MatRef<'_, f64>,
    loss: impl Fn(f64) -> f64,
) -> Result<Vec<f64>> {
    check_some(targets)?;
    check_shape("predictions", predicted, targets.nrows(), targets.ncols())?;
    check_finite("predictions", predicted)?;
    check_finite("targets", targets)?;
    let mut sums = vec![0.0; targets.nrows()];
    for sample in 0..targets.ncols() {
        for (target, sum) in sums.iter_mut().enumerate() {
            *sum += loss(targets[(target, sample)] - predicted[(target, sample)]);
        }
    }
    Ok(sums.into_iter().map(|sum| sum / targets.ncols() as f64).collect())
}

fn covered(lower: &Mat<f64>, upper: &Mat<f64>, targets: MatRef<'_, f64>) -> f64 {
    let inside = Mat::from_fn(targets.nrows(), targets.ncols(), |i, j| {
        f64::from(lower[(i, j)] <= targets[(i, j)] && targets[(i, j)] <= upper[(i, j)])
    });
    mean_entry(&inside)
}

fn check_some(targets: MatRef<'_, f64>) -> Result<()> {
    if targets.nrows() * targets.ncols() == 0 { Err(Error::Empty { what: "targets" }) } else { Ok(()) }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn mean_entry(values: &Mat<f64>) -> f64 {
    mean_of(values, |value| value)
}

fn mean_of(values: &Mat<f64>, change: impl Fn(f64) -> f64) -> f64 {
    let sum: f64 =
        values.col_iter().map(|column| column.iter().map(|&value| change(value)).sum::<f64>()).sum();
    sum / (values.nrows() * values.ncols()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::{Component, Covariance, Dof};
    use approx::assert_relative_eq;

    fn standard_normals(n: usize) -> Predictive {
        let variances = Mat::from_fn(1, n, |_, _| 1.0);
        Predictive::from_component(Component {
            mean: Mat::zeros(1, n),
            aleatoric: Covariance::Diagonal(variances),
            epistemic: Covariance::Zero,
            dof: Dof::Normal,
            skew: None,
        })
        .unwrap()
    }

    /// `sklearn.metrics` 1.9 on the same numbers: `root_mean_squared_error` and `mean_absolute_error` of
    /// the flattened arrays.
    #[test]
    fn errors_of_the_mean_match_scikit_learn() {
        let predicted = Mat::from_fn(2, 3, |i, j| [[1.0, 2.0, 3.0], [0.5, -1.0, 4.0]][i][j]);
        let targets = Mat::from_fn(2, 3, |i, j| [[1.5, 2.0, 1.0], [0.0, -2.0, 7.0]][i][j]);
        assert_relative_eq!(
            rmse(predicted.as_ref(), targets.as_ref()).unwrap(),
            1.554_563_175_514_802_4,
            max_relative = 1e-14
        );
        assert_relative_eq!(
            mae(predicted.as_ref(), targets.as_ref()).unwrap(),
            1.166_666_666_666_666_7,
            max_relative = 1e-14
        );
    }

    #[test]
    fn targets_at_equally_spaced_quantiles_are_calibrated_up_to_their_spacing() {
        let n = 1000;
        let standard = standard_normals(n);
        let targets = Mat::from_fn(1, n, |_, j| crate::special::normal_quantile((j as f64 + 0.5) / n as f64));
        // Each level holds a whole number of the n targets: the share is off by 1/n at most.
        let curve = calibration_curve(&standard, targets.as_ref()).unwrap();
        assert_eq!(curve.levels.len(), 19);
        for (level, empirical) in curve.levels.iter().zip(&curve.empirical) {
            assert!((level - empirical).abs() <= 1.0 / n as f64, "{level}: {empirical}");
        }
        let coverage = interval_coverage(&standard, targets.as_ref(), 0.9).unwrap();
        assert!((coverage - 0.9).abs() <= 1.0 / n as f64, "{coverage}");
    }

    #[test]
    fn targets_far_outside_are_never_covered() {
        let targets = Mat::from_fn(1, 7, |_, _| 50.0);
        let error = calibration_error(&standard_normals(7), targets.as_ref()).unwrap();
        assert_relative_eq!(error, 0.5, max_relative = 1e-14);
    }

    #[test]
    fn a_point_prediction_has_no_density_but_all_other_scores() {
        let point = Component {
            mean: Mat::zeros(1, 2),
            aleatoric: Covariance::Zero,
            epistemic: Covariance::Zero,
            dof: Dof::Normal,
            skew: None,
        };
        let targets = Mat::from_fn(1, 2, |_, j| j as f64);
        let scores =
            regression_metrics(&Predictive::from_component(point).unwrap(), targets.as_ref()).unwrap();
        assert_eq!(scores.log_density, None);
        assert_eq!((scores.crps, scores.mae, scores.width_90), (0.5, 0.5, 0.0));
        assert_eq!(scores.coverage_90, 0.5);
    }

    #[test]
    fn wrong_shapes_and_nothing_are_errors() {
        let predicted = Mat::<f64>::zeros(1, 3);
        let two = Mat::<f64>::zeros(1, 2);
        assert!(matches!(
            rmse(predicted.as_ref(), two.as_ref()),
            Err(Error::Shape { what: "predictions", axis: "columns", found: 3, expected: 2 })
        ));
        assert!(matches!(regression_metrics(&standard_normals(3), two.as_ref()), Err(Error::Shape { .. })));
        let none = Mat::<f64>::zeros(1, 0);
        assert!(matches!(mae(none.as_ref(), none.as_ref()), Err(Error::Empty { what: "targets" })));
    }
}
