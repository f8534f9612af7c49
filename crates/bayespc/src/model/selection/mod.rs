//! Choosing the members of an ensemble from training data: their prior scales, activations, noise models, widths and
//! lengths of training, and the temperatures of their class probabilities.
//!
//! V⁰ is the one setting that matters: too wide overfits, too narrow underfits. Every candidate trains on four
//! fifths of the samples (at most [`SearchSettings::max_rows`] of them, so that the cost is bounded) and predicts
//! the rest, on several divisions. Members are then picked one at a time, each the candidate that helps the
//! mixture of those before it most (Caruana et al. 2004); one that is picked again trains again with another seed.
//!
//! ```text
//! score of a mixture = mean log p(y | x) − ½ log mean (y − ⟨y⟩)²
//! ```
//!
//! The second term is the log density of the best constant noise around the mixture's mean: without it a
//! candidate that is wrong but knows it would win over one that is right. Classes are scored by the first alone.
//! A single hold-out density would also prefer what does well alone; wide priors do badly alone and best together.
//!
//! Then the kinds that were picked most train again with wider layers, and members are picked anew from all. What costs
//! more must be clearly better: the new choice is kept if its score is higher by a standard error of the difference,
//! for among many candidates some are better on the held-out samples by chance. On request (`lengths`) all candidates
//! train for a short time first, and the kinds picked most for longer.

use faer::{Mat, MatRef};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::heads::{Categorical, HeadSettings, VarianceNode};
use crate::learners::Rule;
use crate::model::calibration::{self, Calibration, best_temperature};
use crate::model::hold_out::{HoldOut, Selected};
use crate::model::{Model, ModelSettings, Progress, Targets, Variant};
use crate::network::{Activation, NetworkSettings};
use crate::prediction::Predictive;
use crate::real::Real;

/// Fewer samples than this cannot choose anything.
const MIN_ROWS: usize = 20;

/// Shares of the epochs below this number are not tried: so short a training tells nothing about a longer one.
const MIN_EPOCHS: f64 = 25.0;

/// Stream of the seed that holds samples out.
const HOLD_OUT_STREAM: u64 = 3;

/// Probability of the intervals that tell overconfidence.
const NOMINAL: f64 = 0.9;

/// Key of the model's note that warns of something.
pub const WARNING_NOTE: &str = "warning";

/// Key of the model's note on what the search tried.
pub const SEARCH_NOTE: &str = "search";

/// Squared error, relative to the target's variance, below which smaller is no longer better.
const EXACT: f64 = 1e-12;

/// What to try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchSettings {
    /// Values of V⁰.
    pub col_vars: Vec<f64>,
    /// Activations of the hidden layers; those of the settings if there are none, or if the settings ask for
    /// another.
    pub activations: Vec<Activation>,
    /// By the feedback rule, try a variance node beside constant noise, and logits beside one-hot codes.
    pub noise: bool,
    /// Share of the samples held out.
    pub fraction: f64,
    /// Samples used at most.
    pub max_rows: usize,
    /// Divisions of the samples.
    pub rounds: usize,
    /// Networks a candidate trains per division, if the ensemble has as many.
    pub networks: usize,
    /// Shares of the epochs: all candidates train for the first, the finalists for each of the others as well.
    pub lengths: Vec<f64>,
    /// Factors on the widths of the hidden layers that finalists try besides; none if the settings ask for other
    /// widths than the default's.
    pub widths: Vec<f64>,
    /// Samples from which on they are tried.
    pub widths_from: usize,
    /// Candidates that train for more than one length or width.
    pub finalists: usize,
    /// Steps the final training of a member takes at most, whatever the length; of wider members in proportion fewer.
    pub max_steps: u64,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            col_vars: vec![0.3, 3.0, 30.0],
            activations: vec![Activation::Relu, Activation::Silu],
            noise: true,
            fraction: 0.2,
            max_rows: 2000,
            rounds: 2,
            networks: 1,
            lengths: vec![1.0],
            widths: vec![2.0],
            widths_from: 500,
            finalists: 2,
            max_steps: 30_000,
        }
    }
}

impl SearchSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        if self.col_vars.is_empty() {
            return Err(Error::Empty { what: "the list search.col_vars" });
        }
        if let Some(&value) = self.col_vars.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            return Err(Error::Setting { name: "search.col_vars", value, must_be: "positive and finite" });
        }
        if !(self.fraction > 0.0 && self.fraction < 1.0) {
            let (name, value) = ("search.fraction", self.fraction);
            return Err(Error::Setting { name, value, must_be: "between 0 and 1" });
        }
        if self.lengths.is_empty() {
            return Err(Error::Empty { what: "the list search.lengths" });
        }
        if let Some(&value) = self.lengths.iter().find(|v| !(**v > 0.0 && **v <= 1.0)) {
            return Err(Error::Setting { name: "search.lengths", value, must_be: "in (0, 1]" });
        }
        if let Some(&value) = self.widths.iter().find(|v| !(v.is_finite() && **v > 0.0)) {
            return Err(Error::Setting { name: "search.widths", value, must_be: "positive and finite" });
        }
        for (name, count) in [("search.rounds", self.rounds), ("search.networks", self.networks)] {
            if count == 0 {
                return Err(Error::Setting { name, value: 0.0, must_be: "at least 1" });
            }
        }
        Ok(())
    }
}

impl SearchSettings {
    /// The shares of so many epochs that are long enough to try, or else all of them.
    fn lengths_of(&self, epochs: usize) -> Vec<f64> {
        let enough = |length: &f64| length * epochs as f64 >= MIN_EPOCHS;
        let lengths: Vec<f64> = self.lengths.iter().copied().filter(enough).collect();
        if lengths.is_empty() { vec![1.0] } else { lengths }
    }

    /// What finalists try after their first training, one after the other.
    fn changes(&self, lengths: &[f64], samples: usize, network: &NetworkSettings) -> Vec<Change> {
        let by_hand = network.hidden_layer_sizes != NetworkSettings::default().hidden_layer_sizes;
        let widths = if by_hand || samples < self.widths_from { &[] } else { &self.widths[..] };
        let lengths = lengths.iter().skip(1).map(|&length| Change::Length(length));
        lengths.chain(widths.iter().map(|&width| Change::Width(width))).collect()
    }
}

/// How a finalist trains once more.
#[derive(Clone, Copy, Debug)]
enum Change {
    Length(f64),
    Width(f64),
}

impl Change {
    fn of(self, variant: &Variant) -> Variant {
        match self {
            Self::Length(length) => Variant { length, ..variant.clone() },
            Self::Width(width) => Variant { width, ..variant.clone() },
        }
    }
}

/// A candidate and how it did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// V⁰.
    pub col_var: f64,
    /// f of its hidden layers.
    pub activation: Activation,
    /// Its head.
    pub head: HeadSettings,
    /// Share of the epochs.
    pub length: f64,
    /// Factor on the widths of its hidden layers.
    pub width: f64,
    /// Mean log density of the held-out samples by this candidate alone; none if it could not be trained.
    pub density: Option<f64>,
    /// Members of the final ensemble that are of its kind.
    pub members: usize,
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
    /// What the held-out samples say against the choice, if anything.
    pub warning: Option<String>,
}

/// Choose the members of the ensemble that `settings` ask for.
pub fn choose<S: Real>(
    input: MatRef<'_, S>,
    targets: Targets<'_>,
    weights: Option<&[f64]>,
    settings: &ModelSettings,
    search: &SearchSettings,
) -> Result<Choice> {
    search.validate()?;
    let n = input.ncols().min(search.max_rows.max(MIN_ROWS));
    let held_out = (n as f64 * search.fraction).round() as usize;
    if n < MIN_ROWS || held_out == 0 || held_out == n || targets.len() != input.ncols() {
        return Ok(Choice { settings: settings.clone(), candidates: Vec::new(), warning: None });
    }
    let networks = search.networks.min(settings.members.max(1));
    let hold_outs: Vec<HoldOut<S>> = (0..search.rounds as u64)
        .map(|round| {
            let place = (settings.training.seed, HOLD_OUT_STREAM + (round << 32));
            HoldOut::new(input, &targets, weights, place, (n, held_out))
        })
        .collect();
    let lengths = search.lengths_of(settings.training.epochs);
    let mut variants = variants(&targets, settings, search, lengths[0]);
    let (mut predictions, mut judged, mut picked) = (Vec::new(), Vec::new(), Vec::new());
    let changes = search.changes(&lengths, input.ncols(), &settings.network);
    for change in std::iter::once(None).chain(changes.into_iter().map(Some)) {
        if let Some(change) = change {
            // What costs more is tried of those kinds that already help most.
            variants.extend(finalists(&picked, &variants, search.finalists, change));
        }
        let from = judged.len();
        let trials: Vec<(usize, usize)> =
            (from..variants.len()).flat_map(|c| (0..hold_outs.len()).map(move |h| (c, h))).collect();
        let new: Vec<Option<Predictive>> = trials
            .into_par_iter()
            // A candidate that cannot be trained is out of the race; the final fit reports what is wrong.
            .map(|(c, h)| hold_outs[h].predict(&trial(settings, &variants[c], networks)).ok())
            .collect();
        let keep_temperature = settings.temperature != 1.0;
        judged.extend(
            new.chunks(hold_outs.len()).map(|rounds| Judged::of(rounds, &hold_outs, keep_temperature)),
        );
        predictions.extend(new);
        let anew = pick(&judged, settings.members);
        if change.is_none() || is_clearly_better(&of(&judged, &anew), &of(&judged, &picked)) {
            picked = anew;
        }
    }
    let temperature = |c: usize| judged[c].as_ref().map_or(1.0, |judged| judged.temperature);
    let candidates = (0..variants.len())
        .map(|c| Candidate {
            col_var: variants[c].col_var,
            activation: variants[c].activation,
            head: variants[c].head.clone(),
            length: variants[c].length,
            width: variants[c].width,
            density: judged[c].as_ref().map(Judged::density),
            members: picked.iter().filter(|&&p| p == c).count(),
            temperature: temperature(c),
        })
        .collect();
    let warning = overconfidence(&picked, &predictions, &hold_outs);
    let mut chosen = settings.clone();
    if let Some(&first) = picked.first() {
        chosen.network.prior.col_var = variants[first].col_var;
        chosen.network.activation = variants[first].activation;
        chosen.network.head = variants[first].head.clone();
        let longest = longest(input.ncols(), settings, search.max_steps);
        let variant = |&c: &usize| Variant {
            temperature: temperature(c),
            length: variants[c].length.min(longest / variants[c].width.max(1.0)),
            ..variants[c].clone()
        };
        chosen.variants = picked.iter().map(variant).collect();
    }
    Ok(Choice { settings: chosen, candidates, warning })
}

/// A warning, if intervals of the chosen mixture hold far fewer of the held-out samples than they should.
fn overconfidence<S: Real>(
    picked: &[usize],
    predictions: &[Option<Predictive>],
    hold_outs: &[HoldOut<S>],
) -> Option<String> {
    let (mut held, mut samples) = (0.0, 0.0);
    for (h, hold_out) in hold_outs.iter().enumerate() {
        let Selected::Values(values) = &hold_out.test.1 else { return None };
        let members: Vec<Predictive> =
            picked.iter().map(|c| predictions[c * hold_outs.len() + h].clone()).collect::<Option<_>>()?;
        let mixture = Predictive::mixture(members).ok()?;
        let n = values.ncols() as f64;
        held += n * crate::metrics::interval_coverage(&mixture, values.as_ref(), NOMINAL).ok()?;
        samples += n;
    }
    let (coverage, nominal) = (held / samples, 100.0 * NOMINAL);
    // Three standard errors and five points below what was promised.
    let tolerated = NOMINAL - 0.05 - 3.0 * (NOMINAL * (1.0 - NOMINAL) / samples).sqrt();
    (coverage < tolerated).then(|| {
        format!(
            "overconfident: intervals of {nominal:.0} % held {:.0} % of {samples} held-out samples; \
             consider calibration = \"conformal\"",
            100.0 * coverage
        )
    })
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
    calibration::calibrated(input, targets, weights, settings, |input, targets, weights| {
        let choice = choose(input, targets, weights, settings, search)?;
        let mut model = Model::fit_uncalibrated(input, targets, weights, &choice.settings, progress)?;
        let tried =
            serde_json::to_string(&choice.candidates).expect("numbers and words can be written as JSON");
        model.notes_mut().insert(SEARCH_NOTE.to_owned(), tried);
        model.notes_mut().extend(choice.warning.map(|warning| (WARNING_NOTE.to_owned(), warning)));
        Ok(model)
    })
}

/// Every combination of prior and head to try.
fn variants(
    targets: &Targets<'_>,
    settings: &ModelSettings,
    search: &SearchSettings,
    length: f64,
) -> Vec<Variant> {
    let own = settings.network.activation;
    let activations = if search.activations.contains(&own) { &search.activations[..] } else { &[own] };
    let mut heads = vec![settings.network.head.clone()];
    if search.noise && matches!(settings.rule, Rule::Feedback(_)) {
        heads.push(match targets {
            Targets::Values(_) => HeadSettings::VarianceNode(VarianceNode::default()),
            Targets::Classes { .. } => HeadSettings::Categorical(Categorical::default()),
        });
        heads.dedup();
    }
    let mut variants = Vec::new();
    for head in &heads {
        for &activation in activations {
            for &col_var in &search.col_vars {
                let head = head.clone();
                variants.push(Variant { col_var, activation, head, temperature: 1.0, length, width: 1.0 });
            }
        }
    }
    variants
}

/// The kinds that were picked most often, changed.
fn finalists(picked: &[usize], variants: &[Variant], count: usize, change: Change) -> Vec<Variant> {
    let mut votes: Vec<(usize, usize)> = Vec::new();
    for &c in picked {
        match votes.iter_mut().find(|(kind, _)| *kind == c) {
            Some((_, votes)) => *votes += 1,
            None => votes.push((c, 1)),
        }
    }
    // Stable: among equals the one that was picked first.
    votes.sort_by_key(|&(_, votes)| std::cmp::Reverse(votes));
    votes.iter().take(count).map(|&(c, _)| change.of(&variants[c])).collect()
}

/// The factor on the epochs at which training on `n` samples takes so many steps.
fn longest(n: usize, settings: &ModelSettings, max_steps: u64) -> f64 {
    let batches = n / settings.training.batch_size.unwrap_or(n).clamp(1, n);
    max_steps as f64 / (batches * settings.training.epochs).max(1) as f64
}

/// Settings that try a candidate. What is held out here is for choosing, not for calibration.
fn trial(settings: &ModelSettings, variant: &Variant, networks: usize) -> ModelSettings {
    ModelSettings {
        members: networks,
        variants: vec![variant.clone()],
        calibration: Calibration::None,
        ..settings.clone()
    }
}

/// How one candidate predicts the held-out samples of all rounds.
struct Judged {
    /// log p(y | x) of every sample.
    log_densities: Vec<f64>,
    /// (y − ⟨y⟩) of every target and sample, in standard deviations of the held-out targets; none of classes.
    errors: Vec<f64>,
    /// Shares of the samples by weight.
    shares: Vec<f64>,
    n_targets: usize,
    temperature: f64,
}

impl Judged {
    /// None if a round failed or a density is not finite.
    fn of<S: Real>(
        rounds: &[Option<Predictive>],
        hold_outs: &[HoldOut<S>],
        keep_temperature: bool,
    ) -> Option<Self> {
        let mut judged =
            Self { log_densities: vec![], errors: vec![], shares: vec![], n_targets: 1, temperature: 1.0 };
        let rounds: Vec<(&Predictive, &HoldOut<S>)> =
            rounds.iter().zip(hold_outs).map(|(p, h)| Some((p.as_ref()?, h))).collect::<Option<_>>()?;
        if !keep_temperature {
            let mut logs = 0.0;
            for (predictive, hold_out) in &rounds {
                if matches!(hold_out.test.1, Selected::Classes(..)) {
                    logs += best_temperature(predictive, &hold_out.test.1).ok()?.ln() / rounds.len() as f64;
                }
            }
            judged.temperature = logs.exp();
        }
        for (predictive, hold_out) in rounds {
            match &hold_out.test.1 {
                Selected::Values(values) => {
                    judged.log_densities.extend(predictive.log_density(values.as_ref()).ok()?);
                    judged.n_targets = values.nrows();
                    judged.add_errors(&predictive.mean(), values);
                }
                Selected::Classes(labels, _) => {
                    let probabilities = predictive.class_probabilities(judged.temperature).ok()?;
                    let of = |(j, &label): (usize, &usize)| probabilities[(label, j)].max(f64::EPSILON).ln();
                    judged.log_densities.extend(labels.iter().enumerate().map(of));
                }
            }
            judged.shares.extend(&hold_out.shares);
        }
        judged.log_densities.iter().chain(&judged.errors).all(|x| x.is_finite()).then_some(judged)
    }

    fn add_errors(&mut self, mean: &Mat<f64>, values: &Mat<f64>) {
        let n = values.ncols() as f64;
        let scales: Vec<f64> = (0..values.nrows())
            .map(|i| {
                let centre = values.row(i).iter().sum::<f64>() / n;
                let variance = values.row(i).iter().map(|y| (y - centre).powi(2)).sum::<f64>() / n;
                if variance > 0.0 { variance.sqrt() } else { 1.0 }
            })
            .collect();
        for j in 0..values.ncols() {
            self.errors.extend((0..values.nrows()).map(|i| (values[(i, j)] - mean[(i, j)]) / scales[i]));
        }
    }

    /// Mean log density.
    fn density(&self) -> f64 {
        let total: f64 = self.shares.iter().sum();
        self.log_densities.iter().zip(&self.shares).map(|(l, share)| l * share).sum::<f64>() / total
    }
}

/// The members of the ensemble, one greedy choice after the other; among equals the first.
fn pick(judged: &[Option<Judged>], members: usize) -> Vec<usize> {
    let mut picked = Vec::new();
    for _ in 0..members {
        let mut best: Option<(f64, usize)> = None;
        for c in (0..judged.len()).filter(|&c| judged[c].is_some()) {
            let mut together = of(judged, &picked);
            together.extend(&judged[c]);
            let score = score(&together);
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, c));
            }
        }
        picked.extend(best.map(|(_, c)| c));
    }
    picked
}

/// What is known of these candidates.
fn of<'a>(judged: &'a [Option<Judged>], picked: &[usize]) -> Vec<&'a Judged> {
    picked.iter().filter_map(|&c| judged[c].as_ref()).collect()
}

/// Score of an equal mixture.
fn score(members: &[&Judged]) -> f64 {
    let shares = &members[0].shares;
    let total: f64 = shares.iter().sum();
    let density: f64 =
        shares.iter().enumerate().map(|(j, share)| share / total * log_density(members, j)).sum();
    density - 0.5 * mean_squares(members).iter().map(|square| square.ln()).sum::<f64>()
}

/// log p(y | x) of sample j under an equal mixture.
fn log_density(members: &[&Judged], j: usize) -> f64 {
    let largest = members.iter().map(|m| m.log_densities[j]).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = members.iter().map(|m| (m.log_densities[j] - largest).exp()).sum();
    largest + (sum / members.len() as f64).ln()
}

/// Squared errors of a mixture's mean in sample j, one per target; none of classes.
fn squares<'a>(members: &'a [&Judged], j: usize) -> impl Iterator<Item = f64> + 'a {
    let d = if members[0].errors.is_empty() { 0 } else { members[0].n_targets };
    (0..d).map(move |i| {
        let error = members.iter().map(|m| m.errors[j * d + i]).sum::<f64>() / members.len() as f64;
        error * error
    })
}

/// Their means over samples.
fn mean_squares(members: &[&Judged]) -> Vec<f64> {
    let shares = &members[0].shares;
    let total: f64 = shares.iter().sum();
    let mut means = vec![0.0; squares(members, 0).count()];
    for (j, share) in shares.iter().enumerate() {
        means.iter_mut().zip(squares(members, j)).for_each(|(mean, square)| *mean += share / total * square);
    }
    means.into_iter().map(|mean: f64| mean.max(EXACT)).collect()
}

/// Whether the first mixture's score exceeds the second's by more than a standard error of the difference. A sample's
/// share in the difference of −½ log mean e² is that of −½ e²/mean e², the mean by the second.
fn is_clearly_better(new: &[&Judged], old: &[&Judged]) -> bool {
    let (Some(first), false) = (new.first(), old.is_empty()) else { return !new.is_empty() };
    let means = mean_squares(old);
    let gain = |j: usize| {
        let error: f64 =
            squares(new, j).zip(squares(old, j)).zip(&means).map(|((n, o), m)| (n - o) / m).sum();
        log_density(new, j) - log_density(old, j) - 0.5 * error
    };
    let total: f64 = first.shares.iter().sum();
    let gains: Vec<(f64, f64)> = first.shares.iter().enumerate().map(|(j, s)| (s / total, gain(j))).collect();
    let mean: f64 = gains.iter().map(|(share, gain)| share * gain).sum();
    let variance: f64 = gains.iter().map(|(share, gain)| (share * (gain - mean)).powi(2)).sum();
    mean > variance.sqrt()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::base::random::stream;
    use crate::model::Unwatched;

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
        let search = SearchSettings {
            col_vars: vec![0.01, 10.0],
            activations: vec![],
            noise: false,
            ..SearchSettings::default()
        };
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
    fn every_member_is_of_a_kind_that_was_tried_and_the_first_is_the_best_alone() {
        let (x, y) = task(1, 0.1);
        let mut settings = ModelSettings { members: 4, ..ModelSettings::default() };
        settings.training.epochs = 10;
        let search = SearchSettings { rounds: 1, networks: 1, ..SearchSettings::default() };
        let choice = choose(x.as_ref(), Targets::Values(y.as_ref()), None, &settings, &search).unwrap();
        assert_eq!(choice.candidates.len(), 12);
        assert_eq!(choice.candidates.iter().map(|candidate| candidate.members).sum::<usize>(), 4);
        let chosen = &choice.settings;
        assert_eq!(chosen.variants.len(), 4);
        let first = &chosen.variants[0];
        assert_eq!((chosen.network.prior.col_var, &chosen.network.head), (first.col_var, &first.head));
        let one = ModelSettings { members: 1, ..settings };
        let alone = choose(x.as_ref(), Targets::Values(y.as_ref()), None, &one, &search).unwrap();
        assert_eq!(alone.settings.variants, std::slice::from_ref(first));
    }

    /// Two samples; the first candidate is right about the first, the second about the second, and the third
    /// middling about both.
    fn three() -> Vec<Option<Judged>> {
        let judged = |log_densities: [f64; 2], errors: [f64; 2]| {
            Some(Judged {
                log_densities: log_densities.to_vec(),
                errors: errors.to_vec(),
                shares: vec![1.0; 2],
                n_targets: 1,
                temperature: 1.0,
            })
        };
        vec![
            judged([0.0, -9.0], [0.1, 2.0]),
            None,
            judged([-9.0, 0.0], [2.0, 0.1]),
            judged([-1.5, -1.5], [1.0, 1.0]),
        ]
    }

    #[test]
    fn the_score_of_a_mixture_is_its_density_and_the_error_of_its_mean() {
        let judged = three();
        let pair = [judged[0].as_ref().unwrap(), judged[2].as_ref().unwrap()];
        let density = (0.5 * (1.0 + (-9f64).exp())).ln();
        let square = (0.5 * (0.1 + 2.0f64)).powi(2);
        assert!((score(&pair) - (density - 0.5 * square.ln())).abs() < 1e-14);
        let classes =
            Judged { errors: vec![], log_densities: vec![-1.0, -3.0], ..three().remove(0).unwrap() };
        assert_eq!(score(&[&classes]), -2.0);
        let weighted = Judged { shares: vec![3.0, 1.0], ..classes };
        assert_eq!(score(&[&weighted]), -1.5);
    }

    #[test]
    fn what_costs_more_must_be_better_by_more_than_chance() {
        // Gains of 1, 3, 1 and 3 nats: mean 2, standard error ½. The errors count like densities.
        let judged = |log_densities: [f64; 4], errors: [f64; 4]| Judged {
            log_densities: log_densities.to_vec(),
            errors: errors.to_vec(),
            shares: vec![2.0; 4],
            n_targets: 1,
            temperature: 1.0,
        };
        let old = judged([-3.0; 4], [1.0; 4]);
        let new = judged([-2.0, 0.0, -2.0, 0.0], [1.0; 4]);
        assert!(is_clearly_better(&[&new], &[&old]));
        assert!(!is_clearly_better(&[&old], &[&new]));
        // One sample that gains 4 nats: mean 1, standard error √¾.
        let one = judged([1.0, -3.0, -3.0, -3.0], [1.0; 4]);
        assert!(is_clearly_better(&[&one], &[&old]));
        // Another loses 2: mean ½, standard error √19 / 4.
        let mixed = judged([1.0, -5.0, -3.0, -3.0], [1.0; 4]);
        assert!(!is_clearly_better(&[&mixed], &[&old]));
        // Errors twice as large cost 3/2 each.
        let wrong = judged([-1.5, 0.5, -1.5, 0.5], [2.0; 4]);
        let worse = judged([-1.6, -1.5, -1.6, -1.5], [2.0; 4]);
        assert!(is_clearly_better(&[&wrong], &[&old]));
        assert!(!is_clearly_better(&[&worse], &[&old]));
        // Something is better than nothing, and nothing is not.
        assert!(is_clearly_better(&[&old], &[]) && !is_clearly_better(&[], &[&old]));
    }

    #[test]
    fn members_are_picked_for_what_they_add_and_failures_never() {
        // Alone the middling one is best; with it either specialist; then the other one.
        let order = pick(&three(), 3);
        assert_eq!(order[0], 3);
        assert_eq!(
            {
                let mut rest = order[1..].to_vec();
                rest.sort_unstable();
                rest
            },
            [0, 2]
        );
        assert!(pick(&[None], 2).is_empty());
    }

    #[test]
    fn classes_are_tried_as_codes_and_as_logits_and_a_temperature_set_by_hand_stays() {
        let (x, _) = task(2, 0.0);
        let labels: Vec<usize> = (0..120).map(|j| usize::from(x[(0, j)] > 0.2)).collect();
        let targets = Targets::Classes { labels: &labels, classes: 2 };
        let mut settings = ModelSettings { members: 2, ..ModelSettings::default() };
        settings.training.epochs = 5;
        let search = SearchSettings {
            col_vars: vec![1.0],
            activations: vec![],
            rounds: 1,
            ..SearchSettings::default()
        };
        let choice = choose(x.as_ref(), targets, None, &settings, &search).unwrap();
        let heads: Vec<_> = choice.candidates.iter().map(|candidate| &candidate.head).collect();
        assert!(matches!(heads[..], [HeadSettings::Gaussian(_), HeadSettings::Categorical(_)]));
        let by_hand = ModelSettings { temperature: 3.0, ..settings };
        let choice = choose(x.as_ref(), targets, None, &by_hand, &search).unwrap();
        assert_eq!(choice.settings.temperature, 3.0);
        assert!(choice.settings.variants.iter().all(|variant| variant.temperature == 1.0));
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
    fn the_kinds_picked_most_train_for_every_length_and_members_for_no_more_than_is_allowed() {
        let (x, y) = task(1, 0.05);
        let mut settings = ModelSettings { members: 3, ..ModelSettings::default() };
        settings.training.epochs = 60;
        let search = SearchSettings {
            activations: vec![],
            noise: false,
            rounds: 1,
            lengths: vec![0.5, 1.0],
            ..SearchSettings::default()
        };
        let targets = Targets::Values(y.as_ref());
        let choice = choose(x.as_ref(), targets, None, &settings, &search).unwrap();
        let lengths: Vec<f64> = choice.candidates.iter().map(|candidate| candidate.length).collect();
        assert_eq!(lengths[..3], [0.5; 3]);
        assert!((1..=2).contains(&lengths[3..].len()) && lengths[3..].iter().all(|&length| length == 1.0));

        // 120 samples are 3 batches of 32: 30 steps are 10 epochs.
        let short = SearchSettings { max_steps: 30, ..search };
        let choice = choose(x.as_ref(), targets, None, &settings, &short).unwrap();
        assert!((0..3).all(|m| choice.settings.epochs_of(m) == 10));

        let both = SearchSettings { lengths: vec![0.25, 1.0], ..SearchSettings::default() };
        let lengths = |epochs| both.lengths_of(epochs);
        assert_eq!((lengths(200), lengths(50), lengths(3)), (vec![0.25, 1.0], vec![1.0], vec![1.0]));
    }

    #[test]
    fn finalists_try_wider_layers_unless_samples_are_few_or_widths_are_set_by_hand() {
        let (x, y) = task(1, 0.05);
        let mut settings = ModelSettings { members: 2, ..ModelSettings::default() };
        settings.training.epochs = 5;
        let search = SearchSettings {
            activations: vec![],
            noise: false,
            rounds: 1,
            widths: vec![0.5],
            widths_from: 120,
            ..SearchSettings::default()
        };
        let widths = |settings: &ModelSettings, search: &SearchSettings| -> Vec<f64> {
            let targets = Targets::Values(y.as_ref());
            let choice = choose(x.as_ref(), targets, None, settings, search).unwrap();
            // Every member has the width of the candidate it is of.
            let network = |m| choice.settings.network_of(m).hidden_layer_sizes;
            for (m, variant) in choice.settings.variants.iter().enumerate() {
                assert_eq!(network(m)[0] as f64, 50.0 * variant.width);
            }
            choice.candidates.iter().map(|candidate| candidate.width).collect()
        };
        let tried = widths(&settings, &search);
        assert_eq!(tried[..3], [1.0; 3]);
        assert!(!tried[3..].is_empty() && tried[3..].iter().all(|&width| width == 0.5));
        assert_eq!(widths(&settings, &SearchSettings { widths_from: 121, ..search.clone() }), [1.0; 3]);
        settings.network.hidden_layer_sizes = vec![50];
        assert_eq!(widths(&settings, &search), [1.0; 3]);
    }

    #[test]
    fn finalists_are_the_kinds_with_most_votes_and_among_equals_the_first() {
        let kind = |col_var| Variant {
            col_var,
            activation: Activation::Relu,
            head: HeadSettings::default(),
            temperature: 1.0,
            length: 0.5,
            width: 1.0,
        };
        let kinds = [kind(1.0), kind(2.0), kind(3.0), kind(4.0)];
        let found = finalists(&[3, 0, 2, 0, 1], &kinds, 2, Change::Length(1.0));
        let found: Vec<(f64, f64)> = found.iter().map(|kind| (kind.col_var, kind.length)).collect();
        assert_eq!(found, [(1.0, 1.0), (4.0, 1.0)]);
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
