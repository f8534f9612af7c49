//! How good predictions of some rows are: what `fit` prints and `evaluate` averages.

use anyhow::Result;
use bayespc::metrics;
use bayespc::model::{Model, Predicted};
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

    /// What networks of a model predicted for rows that they had not learned from, and which rows these are.
    pub fn out_of_fold(model: &Model) -> Option<(Self, &[usize])> {
        let out = model.out_of_fold()?;
        let predictions = match &out.predicted {
            Predicted::Values(predictive) => Self::Values(predictive.clone()),
            Predicted::Probabilities(probabilities) => Self::Probabilities(probabilities.clone()),
        };
        Some((predictions, &out.rows))
    }
}

/// Names and values.
pub type Named = Vec<(&'static str, f64)>;

/// Scores by name, in the order they are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// Of all targets together.
    pub joint: Named,
    /// Of each target alone, where there are several.
    pub each: Vec<(String, Named)>,
}

impl Scores {
    /// Score predictions. `scale` is what targets were divided by in training; log densities are in original
    /// units, and besides on that scale, where data sets compare. `names` are those of the targets.
    pub fn of(predictions: &Predictions, targets: &Targets, scale: &[f64], names: &[String]) -> Result<Self> {
        match (predictions, targets) {
            (Predictions::Values(predictive), Targets::Regression(values)) => {
                let scores = metrics::regression_metrics(predictive, values.as_ref())?;
                let density = scores.log_density.unwrap_or(f64::NAN);
                let standardised = density + scale.iter().map(|s| s.ln()).sum::<f64>();
                let joint = vec![
                    ("rmse", scores.rmse),
                    ("log_density", density),
                    ("log_density_standardised", standardised),
                    ("coverage_90", scores.coverage_90),
                    ("crps", scores.crps),
                ];
                let each = if values.nrows() > 1 { of_each(predictive, values, names)? } else { Vec::new() };
                Ok(Self { joint, each })
            }
            (Predictions::Probabilities(probabilities), Targets::Classification(labels)) => {
                let scores = metrics::classification_metrics(probabilities.as_ref(), labels)?;
                let joint = vec![
                    ("accuracy", scores.accuracy),
                    ("nll", scores.negative_log_likelihood),
                    ("ece", scores.expected_calibration_error),
                ];
                Ok(Self { joint, each: Vec::new() })
            }
            _ => anyhow::bail!("the predictions are not of the kind of the targets"),
        }
    }

    /// Names and values in a fixed order, of all targets and then of each.
    pub fn values(&self) -> impl Iterator<Item = &(&'static str, f64)> {
        self.joint.iter().chain(self.each.iter().flat_map(|(_, scores)| scores))
    }

    /// Values in the same order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        let each = self.each.iter_mut().flat_map(|(_, scores)| scores);
        self.joint.iter_mut().chain(each).map(|(_, value)| value)
    }

    /// Other values under the same names.
    pub fn map(&self, value: impl Fn(&str, f64) -> f64) -> Self {
        let mut mapped = self.clone();
        let values: Vec<f64> = self.values().map(|(name, old)| value(name, *old)).collect();
        mapped.values_mut().zip(values).for_each(|(slot, new)| *slot = new);
        mapped
    }

    /// Scores in a fixed order, of all targets and of each.
    pub fn flat(&self) -> Vec<Score<'_>> {
        let each = self.each.iter().flat_map(|(target, scores)| {
            scores.iter().map(move |&(name, value)| Score { target: Some(target), name, value })
        });
        self.joint.iter().map(|&(name, value)| Score { target: None, name, value }).chain(each).collect()
    }

    /// As JSON; what is not a number, as the density of a point prediction, is null.
    pub fn to_json(&self) -> Map<String, Value> {
        let object = |scores: &[(&'static str, f64)]| -> Map<String, Value> {
            scores.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
        };
        let mut json = object(&self.joint);
        if !self.each.is_empty() {
            let each: Map<_, _> =
                self.each.iter().map(|(target, scores)| (target.clone(), object(scores).into())).collect();
            json.insert(PER_TARGET.to_owned(), each.into());
        }
        json
    }

    /// As names and values to print.
    pub fn rows(&self) -> Vec<(String, String)> {
        let several = !self.each.is_empty();
        let shown = self.flat().into_iter().filter(|score| score.is_shown(several));
        shown.map(|score| (score.label(), fixed(score.value))).collect()
    }
}

/// Key of the scores of each target.
pub const PER_TARGET: &str = "per_target";

/// One score.
#[derive(Clone, Copy, Debug)]
pub struct Score<'a> {
    /// Its target; none if it is of all.
    pub target: Option<&'a String>,
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub value: f64,
}

impl Score<'_> {
    /// Whether people are shown it: errors of several targets have no common unit.
    pub fn is_shown(&self, several: bool) -> bool {
        !several || self.target.is_some() || !matches!(self.name, "rmse" | "crps")
    }

    /// Its name in words.
    pub fn label(&self) -> String {
        let name = label(self.name);
        self.target.map_or_else(|| name.to_owned(), |target| format!("{target}: {name}"))
    }
}

/// Error, coverage and CRPS of every target alone.
fn of_each(predictive: &Predictive, values: &Mat<f64>, names: &[String]) -> Result<Vec<(String, Named)>> {
    let mean = predictive.mean();
    let crps = predictive.crps(values.as_ref())?;
    let (lower, upper) = predictive.interval(0.9)?;
    let n = values.ncols();
    let average = |of: &dyn Fn(usize) -> f64| (0..n).map(of).sum::<f64>() / n as f64;
    let each = |k: usize| {
        let y = |j: usize| values[(k, j)];
        let scores = vec![
            ("rmse", average(&|j| (mean[(k, j)] - y(j)).powi(2)).sqrt()),
            (
                "coverage_90",
                average(&|j| f64::from(u8::from(lower[(k, j)] <= y(j) && y(j) <= upper[(k, j)]))),
            ),
            ("crps", average(&|j| crps[(k, j)])),
        ];
        (names.get(k).cloned().unwrap_or_else(|| k.to_string()), scores)
    };
    Ok((0..values.nrows()).map(each).collect())
}

/// Four decimals, and no minus before nothing.
pub fn fixed(value: f64) -> String {
    let text = format!("{value:.4}");
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').to_owned()
    } else {
        text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_minus() {
        assert_eq!(
            (fixed(-0.000_01).as_str(), fixed(-0.1).as_str(), fixed(2.0).as_str()),
            ("0.0000", "-0.1000", "2.0000")
        );
    }
}
