//! The score of a constant guess, beside which a model's own says something.
//!
//! The guess knows the training targets and no column: their mean and deviation as a normal distribution, or the share of
//! each class.

use bayespc::metrics;
use bayespc::prediction::{Component, Covariance, Dof, Predictive};
use faer::{Mat, MatRef};

use super::BINS;
use super::shared::{number, percent};
use crate::error::Result;
use crate::report::Block;

/// Scores of a model and of a guess, and the share of the variance that the model explains.
pub(super) struct Beside {
    /// Name, model, guess.
    pub(super) rows: Vec<[String; 3]>,
    /// 1 − mean squared error / variance of the scored targets, of each target; empty for classes.
    pub(super) r2: Vec<f64>,
    /// Accuracy, and share of the class that is most frequent in training; none for values.
    pub(super) accuracy: Option<(f64, f64)>,
}

impl Beside {
    /// Of values; `centre` and `scale` are mean and deviation of the training targets.
    pub(super) fn values(
        predictive: &Predictive,
        targets: MatRef<'_, f64>,
        names: &[String],
        (centre, scale): (&[f64], &[f64]),
    ) -> Result<Self> {
        let (d, n) = (targets.nrows(), targets.ncols());
        let guess = Predictive::from_component(Component {
            mean: Mat::from_fn(d, n, |i, _| centre[i]),
            aleatoric: Covariance::Diagonal(Mat::from_fn(d, n, |i, _| scale[i] * scale[i])),
            epistemic: Covariance::Zero,
            dof: Dof::Normal,
            skew: None,
        })?;
        let mut rows = Vec::new();
        let (own, constant) = (each_target(predictive, targets)?, each_target(&guess, targets)?);
        for (k, (own, constant)) in own.iter().zip(&constant).enumerate() {
            let of = if d == 1 { String::new() } else { format!(" of {}", names[k]) };
            let row = |name: &str, score: fn(&TargetScores) -> f64| {
                [format!("{name}{of}"), number(score(own), 4), number(score(constant), 4)]
            };
            rows.push([format!("R²{of}"), number(own.r2, 3), "0".to_owned()]);
            rows.push(row("root mean squared error", |scores| scores.rmse));
            rows.push(row("mean absolute error", |scores| scores.mae));
            rows.push(row("continuous ranked probability score", |scores| scores.crps));
            let coverage = [own.coverage, constant.coverage].map(percent);
            rows.push([format!("share inside 90 % intervals{of}"), coverage[0].clone(), coverage[1].clone()]);
            rows.push(row("mean width of 90 % intervals", |scores| scores.width));
        }
        let density = |predictive: &Predictive| metrics::regression_metrics(predictive, targets);
        if let (Some(own), Some(constant)) = (density(predictive)?.log_density, density(&guess)?.log_density)
        {
            let name = "mean log density (higher is better)".to_owned();
            rows.push([name, number(own, 4), number(constant, 4)]);
        }
        let r2 = own.iter().map(|scores| scores.r2).collect();
        Ok(Self { rows, r2, accuracy: None })
    }

    /// Of classes; `shares` are those of the training rows.
    pub(super) fn classes(probabilities: MatRef<'_, f64>, labels: &[usize], shares: &[f64]) -> Result<Self> {
        let guess = Mat::from_fn(probabilities.nrows(), labels.len(), |k, _| shares[k]);
        let score = |p: MatRef<'_, f64>| -> Result<[f64; 4]> {
            Ok([
                metrics::accuracy(p, labels)?,
                metrics::negative_log_likelihood(p, labels)?,
                metrics::brier_score(p, labels)?,
                metrics::expected_calibration_error(p, labels, BINS)?,
            ])
        };
        let (own, constant) = (score(probabilities)?, score(guess.as_ref())?);
        let names = [
            "accuracy",
            "log loss (lower is better)",
            "Brier score (lower is better)",
            "expected calibration error (lower is better)",
        ];
        let rows = (0..names.len())
            .map(|i| [names[i].to_owned(), number(own[i], 4), number(constant[i], 4)])
            .collect();
        Ok(Self { rows, r2: Vec::new(), accuracy: Some((own[0], constant[0])) })
    }

    /// The scores, of these rows.
    pub(super) fn table(&self, of_rows: &str) -> Block {
        Block::Table {
            caption: format!(
                "Scores on {of_rows}. The constant guess knows the training targets and no column."
            ),
            header: ["score", "this model", "constant guess"].map(str::to_owned).to_vec(),
            rows: self.rows.iter().map(|row| row.to_vec()).collect(),
            highlight: Vec::new(),
        }
    }
}

/// Scores of one target.
struct TargetScores {
    /// 1 − mean squared error / variance of the scored targets.
    r2: f64,
    rmse: f64,
    mae: f64,
    crps: f64,
    /// Share of the targets inside their 90 % intervals.
    coverage: f64,
    width: f64,
}

fn each_target(predictive: &Predictive, targets: MatRef<'_, f64>) -> Result<Vec<TargetScores>> {
    let (mean, crps, (lower, upper)) =
        (predictive.mean(), predictive.crps(targets)?, predictive.interval(0.9)?);
    let n = targets.ncols() as f64;
    let of_target = |i: usize| {
        let average = |of: &dyn Fn(usize) -> f64| (0..targets.ncols()).map(of).sum::<f64>() / n;
        let middle = average(&|j| targets[(i, j)]);
        let error = |j: usize| mean[(i, j)] - targets[(i, j)];
        let square = average(&|j| error(j).powi(2));
        let inside = |j: usize| lower[(i, j)] <= targets[(i, j)] && targets[(i, j)] <= upper[(i, j)];
        TargetScores {
            r2: 1.0 - square / average(&|j| (targets[(i, j)] - middle).powi(2)),
            rmse: square.sqrt(),
            mae: average(&|j| error(j).abs()),
            crps: average(&|j| crps[(i, j)]),
            coverage: average(&|j| f64::from(u8::from(inside(j)))),
            width: average(&|j| upper[(i, j)] - lower[(i, j)]),
        }
    };
    Ok((0..targets.nrows()).map(of_target).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_guesses_the_mean_explains_nothing_and_scores_as_the_guess() {
        let targets = Mat::from_fn(1, 6, |_, j| j as f64);
        let (centre, scale) = ([2.5], [1.7]);
        let guess = Predictive::from_component(Component {
            mean: Mat::from_fn(1, 6, |_, _| 2.5),
            aleatoric: Covariance::Diagonal(Mat::from_fn(1, 6, |_, _| 1.7 * 1.7)),
            epistemic: Covariance::Zero,
            dof: Dof::Normal,
            skew: None,
        })
        .unwrap();
        let names = ["y".to_owned()];
        let beside = Beside::values(&guess, targets.as_ref(), &names, (&centre, &scale)).unwrap();
        assert!(beside.r2[0].abs() < 1e-12);
        assert!(beside.rows[1..].iter().all(|row| row[1] == row[2]), "{:?}", beside.rows);
    }

    #[test]
    fn the_constant_guess_of_classes_has_the_accuracy_of_the_most_frequent_one() {
        let probabilities = Mat::from_fn(2, 4, |k, j| if k == usize::from(j == 3) { 0.9 } else { 0.1 });
        let beside = Beside::classes(probabilities.as_ref(), &[0, 0, 0, 1], &[0.7, 0.3]).unwrap();
        assert_eq!(beside.accuracy, Some((1.0, 0.75)));
    }
}
