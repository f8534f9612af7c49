//! How good predictions are: of numbers (`regression`) and of classes (`classification`).

pub mod classification;
pub mod regression;

pub use classification::{
    ClassificationMetrics, ReliabilityBin, accuracy, auroc, brier_score, classification_metrics,
    expected_calibration_error, log_probabilities, negative_log_likelihood, reliability_bins,
};
pub use regression::{
    CalibrationCurve, RegressionMetrics, calibration_curve, calibration_error, interval_coverage,
    log_predictive_density, mae, mean_crps, pit, regression_metrics, rmse,
};
