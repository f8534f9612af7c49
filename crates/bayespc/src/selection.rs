//! Choosing the prior scale, the noise model and the temperature of class probabilities from training data.
//!
//! V⁰ is the one setting that matters: too wide overfits, too narrow underfits. Every candidate trains one
//! network on four fifths of the samples (at most [`SearchSettings::max_rows`] of them, so that the cost is
//! bounded) and is scored by the mean log density of the rest. One hold-out is a noisy judge: the best few are
//! judged again on others, and the best average is used for the fit on all samples.

use faer::{Mat, MatRef};
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::heads::{HeadSettings, VarianceNode};
use crate::learners::Rule;
use crate::model::{Model, ModelSettings, Progress, Targets, Unwatched};
use crate::prediction::{Predictive, stream};
use crate::real::Real;

/// Fewer samples than this cannot choose anything.
const MIN_ROWS: usize = 20;

/// Stream of the seed that holds samples out.
const HOLD_OUT_STREAM: u64 = 3;

/// Key of the model's note on what the search tried.
pub const SEARCH_NOTE: &str = "search";

/// Range of log τ.
const TEMPERATURES: (f64, f64) = (-3.0, 6.0);

/// What to try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchSettings {
    /// Values of V⁰.
    pub col_vars: Vec<f64>,
    /// Try a variance node beside constant noise, for regression by feedback.
    pub noise: bool,
    /// Share of the samples held out.
    pub fraction: f64,
    /// Samples used at most.
    pub max_rows: usize,
    /// How many of the best candidates are judged again.
    pub finalists: usize,
    /// Hold-outs in all; the first judges every candidate.
    pub rounds: usize,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            col_vars: vec![0.1, 0.3, 1.0, 3.0, 10.0, 30.0],
            noise: true,
            fraction: 0.2,
            max_rows: 2000,
            finalists: 4,
            rounds: 3,
        }
    }
}

/// A candidate and how it did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// V⁰.
    pub col_var: f64,
    /// With a variance node?
    pub variance_node: bool,
    /// Mean log density of the held-out samples, over all rounds it was in; none if it could not be trained.
    pub density: Option<f64>,
    /// Rounds it was in.
    pub rounds: usize,
    /// Temperature of class probabilities that suits the held-out samples best; 1 for regression.
    pub temperature: f64,
}

/// The settings chosen, and all that was tried.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Settings for the fit on all samples.
    pub settings: ModelSettings,
    /// Every candidate; empty if there were too few samples to choose.
    pub candidates: Vec<Candidate>,
}

/// Choose V⁰ and the noise model for `settings` by held-out density.
pub fn choose<S: Real>(
    input: MatRef<'_, S>,
    targets: Targets<'_>,
    weights: Option<&[f64]>,
    settings: &ModelSettings,
    search: &SearchSettings,
) -> Result<Choice> {
    let n = input.ncols().min(search.max_rows.max(MIN_ROWS));
    let held_out = (n as f64 * search.fraction).round() as usize;
    if n < MIN_ROWS || held_out == 0 || held_out == n || targets.len() != input.ncols() {
        return Ok(Choice { settings: settings.clone(), candidates: Vec::new() });
    }
    let tried = candidates(&targets, settings, search);
    let mut judged: Vec<Judged> = vec![Judged::default(); tried.len()];
    let mut running: Vec<usize> = (0..tried.len()).collect();
    for round in 0..search.rounds.max(1) {
        let hold_out =
            HoldOut::new(input, &targets, weights, settings.training.seed, round as u64, n, held_out);
        let scores: Vec<Option<(f64, f64)>> = running
            .par_iter()
            // A candidate that cannot be trained is out of the race; the final fit reports what is wrong.
            .map(|&c| hold_out.score(&tried[c].0).ok().filter(|(density, _)| density.is_finite()))
            .collect();
        for (&c, score) in running.iter().zip(scores) {
            judged[c].add(score);
        }
        running.retain(|&c| judged[c].density().is_some());
        // A stable sort: among equals the narrower prior and the simpler noise come first.
        running.sort_by(|&a, &b| f64::total_cmp(&judged[b].mean(), &judged[a].mean()));
        running.truncate(search.finalists.max(1));
    }
    let report = |(judged, (_, col_var, node)): (&Judged, &(ModelSettings, f64, bool))| Candidate {
        col_var: *col_var,
        variance_node: *node,
        density: judged.density(),
        rounds: judged.rounds,
        temperature: judged.temperature(),
    };
    let chosen = match running.first() {
        None => settings.clone(),
        Some(&best) => ModelSettings {
            members: settings.members,
            temperature: judged[best].temperature(),
            ..tried[best].0.clone()
        },
    };
    Ok(Choice { settings: chosen, candidates: judged.iter().zip(&tried).map(report).collect() })
}

/// Choose settings as [`choose`] does, fit with them, and keep what was tried in the model's notes.
pub fn choose_and_fit<S: Real>(
    input: MatRef<'_, S>,
    targets: Targets<'_>,
    weights: Option<&[f64]>,
    settings: &ModelSettings,
    search: &SearchSettings,
    progress: &mut dyn Progress,
) -> Result<Model> {
    let choice = choose(input, targets, weights, settings, search)?;
    let mut model = Model::fit(input, targets, weights, &choice.settings, progress)?;
    let tried = serde_json::to_string(&choice.candidates).expect("numbers and words can be written as JSON");
    model.notes_mut().insert(SEARCH_NOTE.to_owned(), tried);
    Ok(model)
}

/// Every combination of prior and head to try, with one member.
fn candidates(
    targets: &Targets<'_>,
    settings: &ModelSettings,
    search: &SearchSettings,
) -> Vec<(ModelSettings, f64, bool)> {
    let heads: &[bool] = match (targets, &settings.rule) {
        (Targets::Values(_), Rule::Feedback(_)) if search.noise => &[false, true],
        _ => &[false],
    };
    heads
        .iter()
        .flat_map(|&node| search.col_vars.iter().map(move |&col_var| (col_var, node)))
        .map(|(col_var, node)| {
            let mut candidate = ModelSettings { members: 1, ..settings.clone() };
            candidate.network.prior.col_var = col_var;
            if node {
                candidate.network.head = HeadSettings::VarianceNode(VarianceNode::default());
            }
            (candidate, col_var, node)
        })
        .collect()
}

/// Scores of one candidate so far.
#[derive(Clone, Debug, Default)]
struct Judged {
    density: f64,
    log_temperature: f64,
    rounds: usize,
    failed: bool,
}

impl Judged {
    fn add(&mut self, score: Option<(f64, f64)>) {
        match score {
            None => self.failed = true,
            Some((density, temperature)) => {
                self.density += density;
                self.log_temperature += temperature.ln();
                self.rounds += 1;
            }
        }
    }

    fn mean(&self) -> f64 {
        self.density / self.rounds.max(1) as f64
    }

    fn density(&self) -> Option<f64> {
        (!self.failed && self.rounds > 0).then(|| self.mean())
    }

    /// Geometric mean over the rounds.
    fn temperature(&self) -> f64 {
        (self.log_temperature / self.rounds.max(1) as f64).exp()
    }
}

/// One division of the samples into those to train on and those to judge by.
struct HoldOut<S: Real> {
    train: (Mat<S>, Selected),
    train_weights: Option<Vec<f64>>,
    test: (Mat<S>, Selected),
}

impl<S: Real> HoldOut<S> {
    fn new(
        input: MatRef<'_, S>,
        targets: &Targets<'_>,
        weights: Option<&[f64]>,
        seed: u64,
        round: u64,
        n: usize,
        held_out: usize,
    ) -> Self {
        let mut order: Vec<usize> = (0..input.ncols()).collect();
        order.shuffle(&mut stream(seed, HOLD_OUT_STREAM + (round << 32)));
        order.truncate(n);
        let (test, train) = order.split_at(held_out);
        let pick = |rows: &[usize]| Mat::from_fn(input.nrows(), rows.len(), |i, j| input[(i, rows[j])]);
        Self {
            train: (pick(train), targets.select(train)),
            train_weights: weights.map(|w| train.iter().map(|&row| w[row]).collect()),
            test: (pick(test), targets.select(test)),
        }
    }

    /// Mean log density of the held-out samples, and the temperature it was reached with.
    fn score(&self, settings: &ModelSettings) -> Result<(f64, f64)> {
        let (input, targets) = &self.train;
        let weights = self.train_weights.as_deref();
        let model = Model::fit(input.as_ref(), targets.view(), weights, settings, &mut Unwatched)?;
        let predictive = model.predict(self.test.0.as_ref())?;
        match &self.test.1 {
            Selected::Values(values) => {
                Ok((crate::metrics::log_predictive_density(&predictive, values.as_ref())?, 1.0))
            }
            Selected::Classes(labels, _) => best_temperature(&predictive, labels),
        }
    }
}

/// The temperature of class probabilities with the best mean log likelihood: golden section on log τ, which
/// is where the softmax has one maximum.
fn best_temperature(predictive: &Predictive, labels: &[usize]) -> Result<(f64, f64)> {
    let likelihood = |log_temperature: f64| -> Result<f64> {
        let probabilities = predictive.class_probabilities(log_temperature.exp())?;
        Ok(-crate::metrics::negative_log_likelihood(probabilities.as_ref(), labels)?)
    };
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let (mut low, mut high) = TEMPERATURES;
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (likelihood(left)?, likelihood(right)?);
    while high - low > 0.01 {
        if at_left >= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = likelihood(left)?;
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = likelihood(right)?;
        }
    }
    let best = 0.5 * (low + high);
    Ok((likelihood(best)?, best.exp()))
}

/// Targets of some of the samples.
enum Selected {
    Values(Mat<f64>),
    Classes(Vec<usize>, usize),
}

impl Selected {
    fn view(&self) -> Targets<'_> {
        match self {
            Self::Values(values) => Targets::Values(values.as_ref()),
            Self::Classes(labels, classes) => Targets::Classes { labels, classes: *classes },
        }
    }
}

impl Targets<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.ncols(),
            Self::Classes { labels, .. } => labels.len(),
        }
    }

    fn select(&self, rows: &[usize]) -> Selected {
        match *self {
            Self::Values(values) => {
                Selected::Values(Mat::from_fn(values.nrows(), rows.len(), |i, j| values[(i, rows[j])]))
            }
            Self::Classes { labels, classes } => {
                Selected::Classes(rows.iter().map(|&row| labels[row]).collect(), classes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    /// Pure noise in many columns, or an exact curve in one.
    fn task(d: usize, noise: f64) -> (Mat<f64>, Mat<f64>) {
        let mut rng = stream(5, 0);
        let x = Mat::from_fn(d, 120, |_, _| 4.0 * rng.random::<f64>() - 2.0);
        let y = Mat::from_fn(1, 120, |_, j| {
            let draw: f64 = StandardNormal.sample(&mut rng);
            (3.0 * x[(0, j)]).sin() + noise * draw
        });
        (x, y)
    }

    fn chosen(d: usize, noise: f64) -> Choice {
        let (x, y) = task(d, noise);
        let mut settings = ModelSettings { members: 3, ..ModelSettings::default() };
        settings.training.epochs = 40;
        let search = SearchSettings { col_vars: vec![0.01, 10.0], noise: false, ..SearchSettings::default() };
        choose(x.as_ref(), Targets::Values(y.as_ref()), None, &settings, &search).unwrap()
    }

    #[test]
    fn noise_asks_for_a_narrow_prior_and_structure_for_a_wide_one() {
        assert_eq!(chosen(20, 5.0).settings.network.prior.col_var, 0.01);
        assert_eq!(chosen(1, 0.01).settings.network.prior.col_var, 10.0);
    }

    #[test]
    fn the_choice_keeps_everything_else_and_lists_what_was_tried() {
        let choice = chosen(1, 0.1);
        assert_eq!(choice.settings.members, 3);
        assert_eq!(choice.candidates.len(), 2);
        assert!(choice.candidates.iter().all(|candidate| candidate.density.is_some()));
    }

    #[test]
    fn the_same_seed_makes_the_same_choice() {
        assert_eq!(chosen(2, 0.3).candidates, chosen(2, 0.3).candidates);
    }

    #[test]
    fn the_first_hold_out_judges_all_and_the_best_are_judged_again() {
        let (x, y) = task(1, 0.1);
        let mut settings = ModelSettings::default();
        settings.training.epochs = 10;
        let search = SearchSettings { finalists: 2, rounds: 3, ..SearchSettings::default() };
        let choice = choose(x.as_ref(), Targets::Values(y.as_ref()), None, &settings, &search).unwrap();
        let rounds: Vec<usize> = choice.candidates.iter().map(|candidate| candidate.rounds).collect();
        assert_eq!(rounds.iter().filter(|&&r| r == 3).count(), 2);
        assert_eq!(rounds.iter().filter(|&&r| r == 1).count(), 10);
        let finalists = choice.candidates.iter().filter(|candidate| candidate.rounds == 3);
        let best = finalists.max_by(|a, b| a.density.unwrap().total_cmp(&b.density.unwrap())).unwrap();
        assert_eq!(choice.settings.network.prior.col_var, best.col_var);
    }

    #[test]
    fn the_temperature_is_where_the_held_out_likelihood_is_flat() {
        let mut rng = stream(6, 0);
        let x = Mat::from_fn(2, 200, |_, _| 2.0 * rng.random::<f64>() - 1.0);
        let labels: Vec<usize> =
            (0..200).map(|j| usize::from(x[(0, j)] + 0.5 * rng.random::<f64>() > 0.25)).collect();
        let targets = Targets::Classes { labels: &labels, classes: 2 };
        let mut settings = ModelSettings::default();
        settings.training.epochs = 10;
        let model = Model::fit(x.as_ref(), targets, None, &settings, &mut Unwatched).unwrap();
        let predictive = model.predict(x.as_ref()).unwrap();
        let (likelihood, temperature) = best_temperature(&predictive, &labels).unwrap();
        for factor in [0.9, 1.1] {
            let other = predictive.class_probabilities(factor * temperature).unwrap();
            assert!(-crate::metrics::negative_log_likelihood(other.as_ref(), &labels).unwrap() < likelihood);
        }
    }

    #[test]
    fn a_fitted_model_keeps_what_was_tried() {
        let (x, y) = task(1, 0.1);
        let mut settings = ModelSettings::default();
        settings.training.epochs = 2;
        let (targets, search) = (Targets::Values(y.as_ref()), SearchSettings::default());
        let model = choose_and_fit(x.as_ref(), targets, None, &settings, &search, &mut Unwatched).unwrap();
        let tried: Vec<serde_json::Value> = serde_json::from_str(&model.notes()[SEARCH_NOTE]).unwrap();
        assert_eq!(tried.len(), 12);
        let chosen = model.settings().network.prior.col_var;
        assert!(tried.iter().any(|candidate| candidate["col_var"] == chosen));
    }

    #[test]
    fn a_handful_of_samples_chooses_nothing() {
        let (x, y) = task(2, 0.1);
        let settings = ModelSettings::default();
        let few = Targets::Values(y.subcols(0, 10));
        let choice = choose(x.subcols(0, 10), few, None, &settings, &SearchSettings::default()).unwrap();
        assert!(choice.candidates.is_empty());
        assert_eq!(choice.settings, settings);
    }
}
