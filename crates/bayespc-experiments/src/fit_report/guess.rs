//! The score of a constant guess, beside which a model's own says something.
//!
//! The guess knows the training targets and no column: their mean and deviation as a normal distribution, or the share of
//! each class.

use bayespc::metrics;
use bayespc::prediction::{Component, Covariance, Dof, Predictive};
use faer::{Mat, MatRef};

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
        })?;
        let (own, constant) = (
            metrics::regression_metrics(predictive, targets)?,
            metrics::regression_metrics(&guess, targets)?,
        );
        let mean = predictive.mean();
        let r2: Vec<f64> = (0..d)
            .map(|i| {
                let truth: Vec<f64> = targets.row(i).iter().copied().collect();
                let middle = truth.iter().sum::<f64>() / n as f64;
                let variance: f64 = truth.iter().map(|y| (y - middle).powi(2)).sum();
                let error: f64 = truth.iter().enumerate().map(|(j, y)| (y - mean[(i, j)]).powi(2)).sum();
                1.0 - error / variance
            })
            .collect();
        let row =
            |name: &str, own: f64, constant: f64| [name.to_owned(), number(own, 4), number(constant, 4)];
        let mut rows = Vec::new();
        for (k, r2) in r2.iter().enumerate() {
            let name = if d == 1 { "R²".to_owned() } else { format!("R² of {}", names[k]) };
            rows.push([name, number(*r2, 3), "0".to_owned()]);
        }
        rows.push(row("root mean squared error", own.rmse, constant.rmse));
        rows.push(row("mean absolute error", own.mae, constant.mae));
        if let (Some(own), Some(constant)) = (own.log_density, constant.log_density) {
            rows.push(row("mean log density (higher is better)", own, constant));
        }
        rows.push(row("continuous ranked probability score", own.crps, constant.crps));
        let coverage = [own.coverage_90, constant.coverage_90].map(percent);
        rows.push(["share inside 90 % intervals".to_owned(), coverage[0].clone(), coverage[1].clone()]);
        rows.push(row("mean width of 90 % intervals", own.width_90, constant.width_90));
        Ok(Self { rows, r2, accuracy: None })
    }

    /// Of classes; `shares` are those of the training rows.
    pub(super) fn classes(probabilities: MatRef<'_, f64>, labels: &[usize], shares: &[f64]) -> Result<Self> {
        let guess = Mat::from_fn(probabilities.nrows(), labels.len(), |k, _| shares[k]);
        let score = |p: MatRef<'_, f64>| -> Result<[f64; 3]> {
            Ok([
                metrics::accuracy(p, labels)?,
                metrics::negative_log_likelihood(p, labels)?,
                metrics::brier_score(p, labels)?,
            ])
        };
        let (own, constant) = (score(probabilities)?, score(guess.as_ref())?);
        let names = ["accuracy", "log loss (lower is better)", "Brier score (lower is better)"];
        let rows = (0..3).map(|i| [names[i].to_owned(), number(own[i], 4), number(constant[i], 4)]).collect();
        Ok(Self { rows, r2: Vec::new(), accuracy: Some((own[0], constant[0])) })
    }

    pub(super) fn table(&self) -> Block {
        Block::Table {
            caption: "Beside a constant guess, which knows the training targets and no column.".to_owned(),
            header: ["score", "this model", "constant guess"].map(str::to_owned).to_vec(),
            rows: self.rows.iter().map(|row| row.to_vec()).collect(),
            highlight: Vec::new(),
        }
    }
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
