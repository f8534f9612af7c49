//! What the rows a model has learned from look like, and how unlike them another row is.
//!
//! ```text
//! e(x) = mean over targets of the epistemic variance, in squared deviations of the target
//! unlike(x) = √( e(x) / e₉₅ )                       e₉₅: all but a twentieth of the rows learned from have less
//! ```
//!
//! Above 1 a row is further from what was learned than nearly all of those rows. Where nothing was kept of them, or a
//! method knows no epistemic variance, it is the distance of the inputs, √(mean of z²) of standardised inputs z, which is
//! 1 on the average (root mean square) over the rows learned from.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::model::Model;
use crate::data::{Inputs, Task};
use crate::error::Result;
use crate::prediction::Predictive;

/// Probabilities of the quantiles that are kept of every input.
pub const LEVELS: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];

/// Share of the rows that are not unlike themselves.
const USUAL: f64 = 0.95;

/// Rows that are enough for quantiles, and for the epistemic variance.
const ENOUGH: (usize, usize) = (5000, 2000);

/// What is kept of the rows a model has learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// Quantiles of every input at [`LEVELS`].
    pub quantiles: Vec<Vec<f64>>,
    /// e₉₅.
    pub epistemic: f64,
}

impl Reference {
    /// What `inputs`, which the model has learned from, look like.
    pub(super) fn of(model: &Model, inputs: Inputs<'_>) -> Result<Self> {
        let n = inputs.n_samples();
        let step = |enough: usize| n.div_ceil(enough).max(1);
        let quantiles = (0..inputs.n_features())
            .map(|i| {
                let row = || (0..n).map(|j| inputs.value(i, j));
                let mut values: Vec<f64> = row().step_by(step(ENOUGH.0)).collect();
                values.sort_unstable_by(f64::total_cmp);
                let mut kept: Vec<f64> = LEVELS.iter().map(|&p| quantile(&values, p)).collect();
                // The ends are those of all rows.
                kept[0] = row().fold(f64::INFINITY, f64::min);
                kept[LEVELS.len() - 1] = row().fold(f64::NEG_INFINITY, f64::max);
                kept
            })
            .collect();
        let places: Vec<usize> = (0..n).step_by(step(ENOUGH.1)).collect();
        let some = Mat::from_fn(inputs.n_features(), places.len(), |i, j| inputs.value(i, places[j]));
        let mut epistemic = epistemic(model, &model.predict(&some)?);
        epistemic.sort_unstable_by(f64::total_cmp);
        Ok(Self { quantiles, epistemic: quantile(&epistemic, USUAL) })
    }

    /// Whether this is of a model with `d` inputs, with quantiles that rise.
    pub fn is_of(&self, d: usize) -> bool {
        let rises = |row: &Vec<f64>| {
            row.len() == LEVELS.len()
                && row.iter().all(|x| x.is_finite())
                && row.windows(2).all(|w| w[0] <= w[1])
        };
        self.quantiles.len() == d && self.quantiles.iter().all(rises) && self.epistemic.is_finite()
    }
}

impl Model {
    /// How unlike the rows learned from each sample is; `predictive` is what the model says of `inputs`.
    pub fn unlike<'a>(&self, inputs: impl Into<Inputs<'a>>, predictive: &Predictive) -> Vec<f64> {
        match self.reference.as_ref().filter(|reference| reference.epistemic > 0.0) {
            Some(reference) => {
                epistemic(self, predictive).iter().map(|e| (e / reference.epistemic).sqrt()).collect()
            }
            None => distances(self, inputs.into()),
        }
    }
}

/// e of each sample.
fn epistemic(model: &Model, predictive: &Predictive) -> Vec<f64> {
    let variance = predictive.epistemic_variance();
    let scale = |k: usize| match model.task() {
        Task::Regression => model.target_scaling().scale[k],
        Task::Classification { .. } => 1.0,
    };
    let d = variance.nrows();
    (0..variance.ncols())
        .map(|j| (0..d).map(|k| variance[(k, j)] / scale(k).powi(2)).sum::<f64>() / d as f64)
        .collect()
}

/// √(mean of z²) of each sample.
fn distances(model: &Model, inputs: Inputs<'_>) -> Vec<f64> {
    let scaling = model.input_scaling();
    let d = inputs.n_features();
    let z = |i: usize, j: usize| (inputs.value(i, j) - scaling.offset[i]) / scaling.scale[i];
    (0..inputs.n_samples())
        .map(|j| ((0..d).map(|i| z(i, j).powi(2)).sum::<f64>() / d as f64).sqrt())
        .collect()
}

/// The value below which a share `p` of sorted values lies, without interpolation.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((p * last as f64).round() as usize).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Samples;
    use crate::model::ModelSettings;
    use crate::prediction::Method;

    fn fitted() -> (Model, Mat<f64>) {
        let x = Mat::from_fn(2, 101, |i, j| if i == 0 { j as f64 / 100.0 } else { ((j * 37) % 101) as f64 });
        let y = Mat::from_fn(1, 101, |_, j| (6.0 * x[(0, j)]).sin() + 0.05 * (17.0 * j as f64).sin());
        let mut settings = ModelSettings::fast();
        settings.training.epochs = 20;
        (Model::fit(&Samples::new(&x, &y).unwrap(), &settings).unwrap(), x)
    }

    #[test]
    fn nearly_all_rows_learned_from_are_like_themselves_and_far_ones_are_not() {
        let (model, x) = fitted();
        let reference = model.reference().unwrap();
        assert_eq!(reference.quantiles[0], [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0]);
        assert!(reference.is_of(2) && !reference.is_of(3));
        let unlike = model.unlike(&x, &model.predict(&x).unwrap());
        // By definition of e₉₅: the rows above it are a twentieth, five of 101.
        assert_eq!(unlike.iter().filter(|u| **u > 1.0).count(), 5);
        let far = Mat::from_fn(2, 1, |i, _| [5.0, 500.0][i]);
        assert!(model.unlike(&far, &model.predict(&far).unwrap())[0] > 2.0);
    }

    #[test]
    fn without_a_reference_it_is_the_distance_of_the_inputs_which_is_one_on_the_average() {
        let (model, x) = fitted();
        let predictive = model.predict_by(&x, Method::Mean).unwrap();
        let gone = Model { reference: None, ..model.clone() };
        let unlike = gone.unlike(&x, &predictive);
        let square = unlike.iter().map(|u| u * u).sum::<f64>() / unlike.len() as f64;
        assert!((square - 1.0).abs() < 1e-12, "{square}");
        // A method without epistemic variance leaves nothing to compare with.
        let reference = model.reference.clone().map(|reference| Reference { epistemic: 0.0, ..reference });
        let blind = Model { reference, ..model };
        assert_eq!(blind.unlike(&x, &predictive), unlike);
    }
}
