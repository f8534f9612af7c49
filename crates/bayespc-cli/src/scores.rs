//! How good predictions of some rows are: what `fit` prints and `evaluate` averages.

use anyhow::Result;
use bayespc::metrics;
use bayespc::model::Model;
use bayespc::prediction::Predictive;
use bayespc_data::Targets;
use faer::Mat;
use serde_json::{Map, Value, json};

use crate::input::Part;

/// Predictions for some rows, in the units of the data.
pub enum Predictions {
    /// A distribution of values.
    Values(Predictive),
    /// Class probabilities, `K × n`.
    Probabilities(Mat<f64>),
}

impl Predictions {
    /// What a model predicts for these rows, of the kind of their targets.
    pub fn of(model: &Model, part: &Part) -> Result<Self> {
        let input = part.features.as_ref();
        Ok(match part.targets {
            Targets::Regression(_) => Self::Values(model.predict(input)?),
            Targets::Classification(_) => Self::Probabilities(model.predict_probabilities(input)?),
        })
    }
}

/// Scores by name, in the order they are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores(pub Vec<(&'static str, f64)>);

impl Scores {
    /// Score predictions. `scale` is what targets were divided by in training; log densities are in original
    /// units, and besides on that scale, where data sets compare.
    pub fn of(predictions: &Predictions, targets: &Targets, scale: &[f64]) -> Result<Self> {
        match (predictions, targets) {
            (Predictions::Values(predictive), Targets::Regression(values)) => {
                let scores = metrics::regression_metrics(predictive, values.as_ref())?;
                let density = scores.log_density.unwrap_or(f64::NAN);
                let standardised = density + scale.iter().map(|s| s.ln()).sum::<f64>();
                Ok(Self(vec![
                    ("rmse", scores.rmse),
                    ("log_density", density),
                    ("log_density_standardised", standardised),
                    ("coverage_90", scores.coverage_90),
                    ("crps", scores.crps),
                ]))
            }
            (Predictions::Probabilities(probabilities), Targets::Classification(labels)) => {
                let scores = metrics::classification_metrics(probabilities.as_ref(), labels)?;
                Ok(Self(vec![
                    ("accuracy", scores.accuracy),
                    ("nll", scores.negative_log_likelihood),
                    ("ece", scores.expected_calibration_error),
                ]))
            }
            _ => anyhow::bail!("the predictions are not of the kind of the targets"),
        }
    }

    /// As JSON; what is not a number, as the density of a point prediction, is null.
    pub fn to_json(&self) -> Map<String, Value> {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    }

    /// As names and values to print.
    pub fn rows(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| (label(name).to_owned(), format!("{value:.4}"))).collect()
    }
}

/// A score's name in words.
pub fn label(name: &str) -> &str {
    match name {
        "rmse" => "RMSE",
        "log_density" => "log density (original units)",
        "log_density_standardised" => "log density (standardised)",
        "coverage_90" => "coverage of the 90 % interval",
        "crps" => "CRPS",
        "accuracy" => "accuracy",
        "nll" => "negative log-likelihood",
        "ece" => "expected calibration error",
        other => other,
    }
}
