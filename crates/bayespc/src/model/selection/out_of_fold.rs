//! Predictions of samples by networks that had not learned from them.

use faer::Mat;

use crate::error::Result;
use crate::prediction::Predictive;

/// Predictions of some of the samples that a model was fitted to, each by networks that had not learned from it.
#[derive(Clone, Debug)]
pub struct OutOfFold {
    /// Which samples, in rising order.
    pub rows: Vec<usize>,
    /// What is predicted for each of them.
    pub predicted: Predicted,
}

/// Predictions in the units of the data.
#[derive(Clone, Debug)]
pub enum Predicted {
    /// A distribution of values.
    Values(Predictive),
    /// Class probabilities, `K × n`.
    Probabilities(Mat<f64>),
}

impl OutOfFold {
    /// Predictions for the samples `rows`, in any order.
    pub(super) fn new(rows: &[usize], predicted: &Predicted) -> Result<Self> {
        Self::ordered(rows.iter().copied().zip(0..).collect(), predicted)
    }

    /// The same where sample j stands for the samples `stands_for[j]`.
    pub(in crate::model) fn for_rows(&self, stands_for: &[Vec<usize>]) -> Result<Self> {
        let places = self.rows.iter().zip(0..);
        let places = places.flat_map(|(&j, place)| stands_for[j].iter().map(move |&row| (row, place)));
        Self::ordered(places.collect(), &self.predicted)
    }

    /// Pairs of a sample and the place of its prediction.
    fn ordered(mut places: Vec<(usize, usize)>, predicted: &Predicted) -> Result<Self> {
        places.sort_unstable();
        let (rows, places): (Vec<usize>, Vec<usize>) = places.into_iter().unzip();
        let predicted = match predicted {
            Predicted::Values(predictive) => Predicted::Values(predictive.select(&places)?),
            Predicted::Probabilities(p) => {
                Predicted::Probabilities(Mat::from_fn(p.nrows(), places.len(), |k, j| p[(k, places[j])]))
            }
        };
        Ok(Self { rows, predicted })
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;

    use super::*;
    use crate::data::{Samples, Targets};
    use crate::metrics;
    use crate::model::{Model, ModelSettings};

    fn quick() -> ModelSettings {
        let mut settings = ModelSettings::default();
        settings.network.hidden_layer_sizes = vec![6];
        settings.training.epochs = 20;
        settings.search.widths = Vec::new();
        settings
    }

    fn wave(i: usize, j: usize) -> f64 {
        (((3 * i + 1) * (j + 1)) as f64 * 0.618).sin()
    }

    /// Scores of the predictions are those of `Model::held_out`, in the order of the caller's rows. One row is there twice.
    #[test]
    fn predictions_out_of_fold_have_the_scores_of_the_fit() {
        let x = Mat::from_fn(2, 60, |i, j| wave(i, j % 59));
        let y = Mat::from_fn(1, 60, |_, j| 50.0 + 7.0 * wave(0, j % 59).powi(2) + wave(4, j % 59));
        let model = Model::fit(&Samples::new(&x, &y).unwrap(), &quick()).unwrap();
        let (expected, out) = (model.held_out().unwrap(), model.out_of_fold().unwrap());
        assert_eq!(out.rows, (0..60).collect::<Vec<_>>());
        let Predicted::Values(predictive) = &out.predicted else { panic!("{out:?}") };
        let scores = metrics::regression_metrics(predictive, y.as_ref()).unwrap();
        assert_relative_eq!(scores.rmse, expected.rmse[0], max_relative = 1e-9);
        assert_relative_eq!(scores.log_density.unwrap(), expected.log_density, max_relative = 1e-9);
        assert_relative_eq!(scores.coverage_90, expected.coverage_90.unwrap(), max_relative = 1e-9);
        // No network has learned from the row that it predicts: they do worse than all together.
        let all = metrics::regression_metrics(&model.predict(&x).unwrap(), y.as_ref()).unwrap();
        assert!(all.rmse < scores.rmse, "{} to {}", all.rmse, scores.rmse);
        assert!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap().out_of_fold().is_none());
    }

    #[test]
    fn probabilities_out_of_fold_have_the_scores_of_the_fit() {
        let x = Mat::from_fn(2, 80, wave);
        let labels: Vec<usize> = (0..80).map(|j| usize::from(wave(0, j) + 0.5 * wave(5, j) > 0.0)).collect();
        let samples = Samples::new(&x, Targets::classes(&labels)).unwrap();
        let model = Model::fit(&samples, &quick()).unwrap();
        let (expected, out) = (model.held_out().unwrap(), model.out_of_fold().unwrap());
        let Predicted::Probabilities(p) = &out.predicted else { panic!("{out:?}") };
        let nll = metrics::negative_log_likelihood(p.as_ref(), &labels).unwrap();
        assert_relative_eq!(-nll, expected.log_density, max_relative = 1e-9);
        assert_relative_eq!(metrics::accuracy(p.as_ref(), &labels).unwrap(), expected.accuracy.unwrap());
    }
}
