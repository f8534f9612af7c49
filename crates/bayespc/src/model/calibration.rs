//! Calibration on samples that were held out of training, for those who want it beside the posterior's own word.
//!
//! ```text
//! hold-out    one factor τ on all predictive covariances, where the held-out log density is largest
//!             (for classes the temperature of their probabilities)
//! conformal   s_i = |y_i − ⟨y⟩_i| / std_i of n held-out samples, sorted;
//!             interval of probability c:  ⟨y⟩ ± s_(⌈(n+1) c⌉) std      covers c whatever the model
//! ```
//!
//! The model is trained on the other samples only. Whoever learns on later, from a stream or a warm start, would
//! learn those samples too or leave what they said behind: both are refused.

use faer::MatRef;
use serde::{Deserialize, Serialize};

use super::settings::ModelSettings;
use super::spread::Spread;
use crate::data::{HoldOut, Samples, Targets, Task};
use crate::error::{Error, Result};
use crate::metrics;
use crate::prediction::Predictive;

/// Share of the samples held out, and the most and fewest it may be.
const SHARE: f64 = 0.1;
const MOST: usize = 5000;
const FEWEST: usize = 10;

/// Stream of the seed that holds samples out.
const STREAM: u64 = 4;

/// Range of log τ.
const TEMPERATURES: (f64, f64) = (-3.0, 6.0);

/// Standard deviations of log τ before anything is known, below τ = 1 and above it. Held-out samples that are all right
/// would otherwise ask for τ = 0. To be surer than the networks are is the bolder correction, and of classes it is asked
/// for by the very samples that chose them: it takes ten times the evidence that being less sure does.
const PRIOR_SPREAD: (f64, f64) = (0.3, 1.0);

/// What held-out samples are used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Calibration {
    /// Nothing is held out.
    #[default]
    None,
    /// One factor on the predictive covariance, or the temperature of class probabilities.
    Holdout,
    /// Intervals that cover what they say, by split conformal prediction; for regression.
    Conformal,
}

/// What held-out samples have said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Calibrated {
    /// τ, besides that of the settings.
    pub(super) temperature: f64,
    /// Conformal scores in rising order, per target; none unless intervals go by them.
    pub(super) scores: Vec<Vec<f64>>,
    /// What out-of-fold predictions say of noise and tails; of every network's own word.
    pub(super) spread: Option<Spread>,
}

impl Default for Calibrated {
    fn default() -> Self {
        Self { temperature: 1.0, scores: Vec::new(), spread: None }
    }
}

impl Calibrated {
    /// What a network says, with the noise and tails that rows it had not seen ask for.
    pub(super) fn spread(&self, predictive: Predictive) -> Predictive {
        match &self.spread {
            Some(spread) => spread.apply(&predictive),
            None => predictive,
        }
    }

    /// Let intervals go by the conformal scores, if there are any.
    pub(super) fn apply(&self, predictive: Predictive) -> Predictive {
        if self.scores.is_empty() { predictive } else { predictive.conformal(&self.scores) }
    }
}

/// The samples to train on and those to calibrate on, if the settings ask for any.
pub(super) fn hold_out(samples: &Samples<'_>, settings: &ModelSettings) -> Result<Option<HoldOut>> {
    if settings.calibration == Calibration::None {
        return Ok(None);
    }
    if settings.calibration == Calibration::Conformal && samples.task() != Task::Regression {
        return Err(Error::Conflict { first: "calibration = conformal", second: "classes" });
    }
    let n = samples.n_samples();
    if n < 2 * FEWEST {
        return Err(Error::TooFew { what: "samples to calibrate on", found: n, needed: 2 * FEWEST });
    }
    let held_out = ((n as f64 * SHARE).round() as usize).clamp(FEWEST, MOST);
    Ok(HoldOut::rounds(samples, (settings.training.seed, STREAM), (n, held_out, 1)).pop())
}

/// What the held-out samples say of their predictions.
pub(super) fn calibrate(
    calibration: Calibration,
    predictive: &Predictive,
    test: &Samples<'_>,
) -> Result<Calibrated> {
    Ok(match (calibration, test.targets()) {
        (Calibration::Conformal, Targets::Values(values)) => {
            Calibrated { scores: sorted_scores(predictive, values), ..Calibrated::default() }
        }
        _ => Calibrated { temperature: best_temperature(predictive, test)?, ..Calibrated::default() },
    })
}

/// |y − ⟨y⟩| / std in rising order, target by target.
fn sorted_scores(predictive: &Predictive, values: MatRef<'_, f64>) -> Vec<Vec<f64>> {
    let (mean, std) = (predictive.mean(), predictive.std());
    let score =
        |i: usize, j: usize| (values[(i, j)] - mean[(i, j)]).abs() / std[(i, j)].max(f64::MIN_POSITIVE);
    let sorted = |i: usize| {
        let mut scores: Vec<f64> = (0..values.ncols()).map(|j| score(i, j)).collect();
        scores.sort_by(f64::total_cmp);
        scores
    };
    (0..values.nrows()).map(sorted).collect()
}

/// The τ with the largest log density of the targets and of log τ under its prior, by golden section on log τ.
pub(super) fn best_temperature(predictive: &Predictive, test: &Samples<'_>) -> Result<f64> {
    best_common_temperature(&[(predictive, *test)])
}

/// The same of several predictions together.
pub(super) fn best_common_temperature(tests: &[(&Predictive, Samples<'_>)]) -> Result<f64> {
    let total: f64 = tests.iter().map(|(_, test)| test.total_weight()).sum();
    let objective = |log_temperature: f64| -> Result<f64> {
        let temperature = log_temperature.exp();
        let mut sum = log_prior(log_temperature);
        for (predictive, test) in tests {
            let log_densities = match test.targets() {
                Targets::Values(values) => predictive.tempered(temperature).log_density(values)?,
                Targets::Classes { labels, .. } => {
                    let probabilities = predictive.class_probabilities(temperature)?;
                    metrics::log_probabilities(probabilities.as_ref(), labels)?
                }
            };
            let weight = |j: usize| test.weights().map_or(1.0, |weights| weights[j]);
            sum += log_densities.iter().enumerate().map(|(j, density)| weight(j) * density).sum::<f64>();
        }
        Ok(sum / total)
    };
    maximise(objective, TEMPERATURES).map(f64::exp)
}

fn log_prior(log_temperature: f64) -> f64 {
    let spread = if log_temperature < 0.0 { PRIOR_SPREAD.0 } else { PRIOR_SPREAD.1 };
    -0.5 * (log_temperature / spread).powi(2)
}

/// Where `f` is largest between `low` and `high`, by golden section.
fn maximise(f: impl Fn(f64) -> Result<f64>, (mut low, mut high): (f64, f64)) -> Result<f64> {
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (f(left)?, f(right)?);
    while high - low > 0.01 {
        if at_left >= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = f(left)?;
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = f(right)?;
        }
    }
    Ok(0.5 * (low + high))
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::Mat;
    use crate::base::random::stream;
    use crate::model::Model;

    /// Noisy waves in one of five columns.
    fn waves(n: usize, seed: u64) -> (Mat<f64>, Mat<f64>) {
        let mut rng = stream(seed, 0);
        let x = Mat::from_fn(5, n, |_, _| 4.0 * rng.random::<f64>() - 2.0);
        let y = Mat::from_fn(1, n, |_, j| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            (3.0 * x[(0, j)]).sin() + 0.3 * noise
        });
        (x, y)
    }

    fn fitted(calibration: Calibration, n: usize) -> Result<Model> {
        let (x, y) = waves(n, 1);
        // A prior this wide overfits, and such a network is too sure of itself.
        let mut settings = ModelSettings { calibration, ..ModelSettings::fast() };
        settings.network.prior.var = 100.0;
        settings.training.epochs = 60;
        Model::fit(&Samples::new(&x, &y)?, &settings)
    }

    #[test]
    fn an_overconfident_network_covers_what_it_says_once_calibrated() {
        let (x, y) = waves(2000, 2);
        let coverage = |model: &Model| {
            let predictive = model.predict(x.as_ref()).unwrap();
            metrics::interval_coverage(&predictive, y.as_ref(), 0.9).unwrap()
        };
        let plain = fitted(Calibration::None, 400).unwrap();
        assert!(coverage(&plain) < 0.8, "{}", coverage(&plain));
        let conformal = fitted(Calibration::Conformal, 400).unwrap();
        // Coverage given 40 scores is Beta(37, 4): mean 0.902, standard deviation 0.046.
        assert!((coverage(&conformal) - 0.9).abs() < 0.1, "{}", coverage(&conformal));
        let scaled = fitted(Calibration::Holdout, 400).unwrap();
        assert!(scaled.temperature() > 1.0);
        let density = |model: &Model| {
            metrics::log_predictive_density(&model.predict(x.as_ref()).unwrap(), y.as_ref()).unwrap()
        };
        assert!(density(&scaled) > density(&plain));
    }

    #[test]
    fn the_conformal_rank_is_that_of_the_theorem() {
        let model = fitted(Calibration::Conformal, 400).unwrap();
        let (x, _) = waves(3, 3);
        let predictive = model.predict(x.as_ref()).unwrap();
        let (low, high) = predictive.interval(0.9).unwrap();
        // ⌈41 · 0.9⌉ = 37 of 40, in standard deviations of the model itself.
        let plain = Model { calibrated: Calibrated::default(), ..model.clone() };
        let own = plain.predict(x.as_ref()).unwrap();
        let scores = &model.calibrated.scores[0];
        let half = scores[36] * own.std()[(0, 1)];
        assert!((high[(0, 1)] - predictive.mean()[(0, 1)] - half).abs() < 1e-12);
        assert!((low[(0, 1)] - predictive.mean()[(0, 1)] + half).abs() < 1e-12);
        // 40 scores cannot promise 99 %: there the model's tail is stretched to begin at the largest score.
        let (_, beyond) = predictive.interval(0.99).unwrap();
        let largest = own.mean()[(0, 1)] + scores[39] * own.std()[(0, 1)];
        assert!(beyond[(0, 1)] > largest && beyond[(0, 1)].is_finite());
        // Every answer is that of one distribution.
        let upper = predictive.quantile(&[0.5 + 0.5 * 37.0 / 41.0]).unwrap();
        assert!((upper[0][(0, 1)] - high[(0, 1)]).abs() < 1e-12);
        assert!((predictive.marginal_cdf(0, 1, high[(0, 1)]) - 0.5 - 0.5 * 37.0 / 41.0).abs() < 1e-12);
        // The file keeps it.
        let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(again.predict(x.as_ref()).unwrap().interval(0.9).unwrap(), (low, high));
    }

    #[test]
    fn the_temperature_is_where_the_held_out_density_is_flat() {
        let model = fitted(Calibration::None, 200).unwrap();
        let (x, y) = waves(100, 4);
        let predictive = model.predict(x.as_ref()).unwrap();
        let best = best_temperature(&predictive, &Samples::new(&x, &y).unwrap()).unwrap();
        // 100 samples, and the prior of log τ beside them.
        let prior = |temperature: f64| -log_prior(temperature.ln()) / 100.0;
        let density = |temperature: f64| {
            let density = metrics::log_predictive_density(&predictive.tempered(temperature), y.as_ref());
            density.unwrap() - prior(temperature)
        };
        assert!(density(best) > density(0.9 * best) && density(best) > density(1.1 * best));

        let labels: Vec<usize> = (0..100).map(|j| usize::from(y[(0, j)] > 0.0)).collect();
        let codes = Targets::Classes { labels: &labels, classes: 2 };
        let mut settings = ModelSettings::fast();
        settings.training.epochs = 10;
        let model = Model::fit(&Samples::new(&x, codes).unwrap(), &settings).unwrap();
        let (x, y) = waves(100, 6);
        let labels: Vec<usize> = (0..100).map(|j| usize::from(y[(0, j)] > 0.0)).collect();
        let predictive = model.predict(x.as_ref()).unwrap();
        let best =
            best_temperature(&predictive, &Samples::new(&x, Targets::classes(&labels)).unwrap()).unwrap();
        let loss = |temperature: f64| {
            let probabilities = predictive.class_probabilities(temperature).unwrap();
            metrics::negative_log_likelihood(probabilities.as_ref(), &labels).unwrap() + prior(temperature)
        };
        assert!(loss(best) < loss(0.9 * best) && loss(best) < loss(1.1 * best));
    }

    #[test]
    fn held_out_samples_that_are_all_right_do_not_make_probabilities_certain() {
        let (x, _) = waves(60, 8);
        let labels: Vec<usize> = (0..60).map(|j| usize::from(x[(0, j)] > 0.0)).collect();
        let far: Vec<usize> = (0..60).filter(|&j| x[(0, j)].abs() > 0.7).collect();
        let easy = Samples::new(&x, Targets::classes(&labels)).unwrap().select(&far);
        let mut settings = ModelSettings::fast();
        settings.training.epochs = 30;
        let model = Model::fit(&Samples::new(&x, Targets::classes(&labels)).unwrap(), &settings).unwrap();
        let predictive = model.predict(easy.view().inputs()).unwrap();
        let best = best_temperature(&predictive, &easy.view()).unwrap();
        // Without the prior it runs to the floor, e⁻³.
        assert!(best > 0.3, "{best}");
    }

    #[test]
    fn what_cannot_be_calibrated_says_so() {
        let few = fitted(Calibration::Holdout, 12);
        assert!(matches!(few, Err(Error::TooFew { found: 12, .. })));
        let (x, _) = waves(50, 5);
        let labels = vec![0; 50];
        let settings = ModelSettings { calibration: Calibration::Conformal, ..ModelSettings::fast() };
        let codes = Targets::Classes { labels: &labels, classes: 2 };
        let refused = Model::fit(&Samples::new(&x, codes).unwrap(), &settings);
        assert!(matches!(refused, Err(Error::Conflict { first: "calibration = conformal", .. })));
    }

    #[test]
    fn a_stream_is_not_calibrated_and_a_calibrated_model_learns_no_stream() {
        let (x, y) = waves(40, 7);
        let samples = Samples::new(&x, &y).unwrap();
        for calibration in [Calibration::Holdout, Calibration::Conformal] {
            let settings = ModelSettings { calibration, ..ModelSettings::fast() };
            let refused = Model::for_stream(&samples, &settings);
            assert!(matches!(refused, Err(Error::Conflict { .. })));
            let mut model = fitted(calibration, 40).unwrap();
            let refused = model.partial_fit(&samples);
            assert!(matches!(refused, Err(Error::Conflict { .. })));
        }
    }
}
