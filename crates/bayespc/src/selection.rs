//! Choosing the prior scale and the noise model from training data.
//!
//! V⁰ is the one setting that matters: too wide overfits, too narrow underfits. Every candidate trains one
//! network on four fifths of the samples (at most [`SearchSettings::max_rows`] of them, so that the cost is
//! bounded) and is scored by the mean log density of the rest; the best is used for the fit on all samples.

use faer::{Mat, MatRef};
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::heads::{HeadSettings, VarianceNode};
use crate::learners::Rule;
use crate::model::{Model, ModelSettings, Targets, Unwatched};
use crate::prediction::stream;
use crate::real::Real;

/// Fewer samples than this cannot choose anything.
const MIN_ROWS: usize = 20;

/// Stream of the seed that holds samples out.
const HOLD_OUT_STREAM: u64 = 3;

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
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self { col_vars: vec![0.1, 0.3, 1.0, 3.0, 10.0, 30.0], noise: true, fraction: 0.2, max_rows: 2000 }
    }
}

/// A candidate and how it did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// V⁰.
    pub col_var: f64,
    /// With a variance node?
    pub variance_node: bool,
    /// Mean log density of the held-out samples; none if it could not be trained.
    pub density: Option<f64>,
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
    let mut order: Vec<usize> = (0..input.ncols()).collect();
    order.shuffle(&mut stream(settings.training.seed, HOLD_OUT_STREAM));
    order.truncate(search.max_rows.max(MIN_ROWS));
    let held_out = (order.len() as f64 * search.fraction).round() as usize;
    if order.len() < MIN_ROWS || held_out == 0 || held_out == order.len() || targets.len() != input.ncols() {
        return Ok(Choice { settings: settings.clone(), candidates: Vec::new() });
    }
    let (test, train) = order.split_at(held_out);
    let pick = |rows: &[usize]| Mat::from_fn(input.nrows(), rows.len(), |i, j| input[(i, rows[j])]);
    let (train_input, test_input) = (pick(train), pick(test));
    let (train_targets, test_targets) = (targets.select(train), targets.select(test));
    let train_weights: Option<Vec<f64>> = weights.map(|w| train.iter().map(|&row| w[row]).collect());
    let heads: &[bool] = match (&targets, &settings.rule) {
        (Targets::Values(_), Rule::Feedback(_)) if search.noise => &[false, true],
        _ => &[false],
    };
    let tried: Vec<(ModelSettings, f64, bool)> = heads
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
        .collect();
    let candidates: Vec<Candidate> = tried
        .par_iter()
        .map(|(candidate, col_var, node)| {
            // A candidate that cannot be trained is out of the race; the final fit reports what is wrong.
            let density = score(
                &train_input,
                &train_targets,
                train_weights.as_deref(),
                &test_input,
                &test_targets,
                candidate,
            );
            Candidate {
                col_var: *col_var,
                variance_node: *node,
                density: density.ok().filter(|d| d.is_finite()),
            }
        })
        .collect();
    let best = candidates
        .iter()
        .zip(&tried)
        .filter_map(|(candidate, (settings, ..))| Some((candidate.density?, settings)))
        .fold(None, |best: Option<(f64, &ModelSettings)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        });
    let chosen = best.map_or_else(|| settings.clone(), |(_, chosen)| chosen.clone());
    Ok(Choice { settings: ModelSettings { members: settings.members, ..chosen }, candidates })
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

fn score<S: Real>(
    train_input: &Mat<S>,
    train_targets: &Selected,
    train_weights: Option<&[f64]>,
    test_input: &Mat<S>,
    test_targets: &Selected,
    settings: &ModelSettings,
) -> Result<f64> {
    let model =
        Model::fit(train_input.as_ref(), train_targets.view(), train_weights, settings, &mut Unwatched)?;
    match test_targets {
        Selected::Values(values) => {
            crate::metrics::log_predictive_density(&model.predict(test_input.as_ref())?, values.as_ref())
        }
        Selected::Classes(labels, _) => {
            let probabilities = model.predict_probabilities(test_input.as_ref())?;
            Ok(-crate::metrics::negative_log_likelihood(probabilities.as_ref(), labels)?)
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
    fn a_handful_of_samples_chooses_nothing() {
        let (x, y) = task(2, 0.1);
        let settings = ModelSettings::default();
        let few = Targets::Values(y.subcols(0, 10));
        let choice = choose(x.subcols(0, 10), few, None, &settings, &SearchSettings::default()).unwrap();
        assert!(choice.candidates.is_empty());
        assert_eq!(choice.settings, settings);
    }
}
