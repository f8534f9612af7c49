//! The race: candidates train on some samples, are judged by others, and the ensemble is picked from them.
//!
//! Every candidate trains on four fifths of the samples (at most [`SearchSettings::max_rows`] of them, so that the cost
//! is bounded) and predicts the rest, in two rounds. Where the best of a kind lies at the edge of the priors tried, the
//! next one beyond is tried too. Then the kinds that were picked most train again with wider layers. What costs more
//! must be clearly better: wider layers are taken if the score is higher by a standard error of the difference, for
//! among many candidates some are better on the held-out samples by chance.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::candidates::{beyond, first, linear, may_widen, same_kind, wider};
use super::score::{HeldOut, is_clearly_better, pick, score, those};
use crate::data::{HoldOut, OwnedSamples, Samples, Targets};
use crate::error::Result;
use crate::heads::HeadSettings;
use crate::learning;
use crate::model::calibration::Calibration;
use crate::model::ensemble::{Ensemble, MemberPlan, all_training_cost};
use crate::model::observer::{Stage, Work};
use crate::model::settings::ModelSettings;
use crate::network::Activation;
use crate::prediction::{Method, Predictive};

/// Fewer samples than this are too few to hold any out.
const MIN_ROWS: usize = 20;

/// Stream of the seed that holds samples out.
const HOLD_OUT_STREAM: u64 = 3;

/// Probability of the intervals that tell overconfidence.
const NOMINAL: f64 = 0.9;

/// Kinds that may try priors beyond the edge.
const CONTENDERS: usize = 2;

/// A candidate and how it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Widths of its hidden layers.
    pub hidden_layer_sizes: Vec<usize>,
    /// V⁰.
    pub prior_var: f64,
    /// f of its hidden layers.
    pub activation: Activation,
    /// Its head.
    pub head: HeadSettings,
    /// Mean log density of the held-out samples by this candidate alone; none if it could not be trained.
    pub density: Option<f64>,
    /// Networks of the final ensemble that are of its kind.
    pub members: usize,
    /// Temperature of class probabilities that suits the held-out samples best; 1 for regression.
    pub temperature: f64,
}

/// What was chosen, and all that was tried.
#[derive(Clone, Debug)]
pub(in crate::model) struct Choice {
    /// A plan for each network of the ensemble.
    pub(in crate::model) members: Vec<MemberPlan>,
    /// Every candidate; empty if nothing was searched.
    pub(in crate::model) candidates: Vec<Candidate>,
    /// What the held-out samples say against the choice.
    pub(in crate::model) warnings: Vec<String>,
}

/// Choose the networks of the ensemble that `settings` ask for.
pub(in crate::model) fn choose(
    samples: &Samples<'_>,
    settings: &ModelSettings,
    work: &Work<'_>,
) -> Result<Choice> {
    let search = &settings.search;
    let own = settings.plans();
    let n = samples.n_samples().min(search.max_rows.max(MIN_ROWS));
    let held_out = ((n as f64 * search.fraction).round() as usize).min(n / search.rounds);
    if !search.enabled || search.has_nothing_to_choose() || held_out == 0 || held_out == n {
        work.plan(all_training_cost(&own, settings, samples));
        return Ok(Choice { members: own, candidates: Vec::new(), warnings: Vec::new() });
    }
    if n < MIN_ROWS {
        let members = best_linear(samples, settings)?.map_or(own, |plan| vec![plan]);
        work.plan(all_training_cost(&members, settings, samples));
        return Ok(Choice { members, candidates: Vec::new(), warnings: Vec::new() });
    }
    let place = (settings.training.seed, HOLD_OUT_STREAM);
    let rounds = HoldOut::rounds(samples, place, (n, held_out, search.rounds));
    // The final training is part of the work from the start, so that the bar tells the whole.
    let last = all_training_cost(&own, settings, samples);
    work.plan(last);
    let mut race =
        Race { settings, work, rounds, plans: Vec::new(), predictions: Vec::new(), judged: Vec::new() };
    let choice = race.run(samples)?;
    let planned = all_training_cost(&choice.members, settings, samples);
    work.plan(planned.saturating_sub(last));
    work.skip(last.saturating_sub(planned));
    Ok(choice)
}

struct Race<'a, 'b> {
    settings: &'a ModelSettings,
    work: &'a Work<'b>,
    rounds: Vec<HoldOut>,
    plans: Vec<MemberPlan>,
    /// Of every plan in every round; none if it could not be trained.
    predictions: Vec<Option<Vec<Predictive>>>,
    judged: Vec<Option<HeldOut>>,
}

impl Race<'_, '_> {
    fn run(&mut self, samples: &Samples<'_>) -> Result<Choice> {
        self.work.enter(Stage::Search)?;
        let (settings, search) = (self.settings, &self.settings.search);
        self.try_all(first(samples.task(), settings))?;
        loop {
            let more = self.beyond_the_edge();
            if more.is_empty() {
                break;
            }
            self.try_all(more)?;
        }
        let mut picked = pick(&self.judged, settings.members);
        if may_widen(samples.n_samples(), settings) {
            for &factor in &search.widths {
                // What costs more is tried of those kinds that already help most.
                let kinds = most_voted(&picked, search.finalists);
                self.try_all(kinds.iter().filter_map(|&c| wider(&self.plans[c], factor)).collect())?;
                let anew = pick(&self.judged, settings.members);
                if is_clearly_better(&those(&self.judged, &anew), &those(&self.judged, &picked)) {
                    picked = anew;
                }
            }
        }
        let candidates = (0..self.plans.len()).map(|c| self.candidate(c, &picked)).collect();
        let warnings = self.overconfidence(&picked).into_iter().collect();
        let members = if picked.is_empty() {
            settings.plans()
        } else {
            picked.iter().map(|&c| self.member(c, samples.n_samples())).collect()
        };
        Ok(Choice { members, candidates, warnings })
    }

    /// Train these on every round and judge them by its held-out samples.
    fn try_all(&mut self, plans: Vec<MemberPlan>) -> Result<()> {
        let rounds = &self.rounds;
        let trials: Vec<(usize, usize)> =
            (0..plans.len()).flat_map(|p| (0..rounds.len()).map(move |r| (p, r))).collect();
        for &(p, r) in &trials {
            self.work.plan(all_training_cost(&plans[p..=p], self.settings, &rounds[r].train.view()));
        }
        let results: Vec<Option<Predictive>> = trials
            .into_par_iter()
            // A candidate that cannot be trained is out of the race; the final fit reports what is wrong.
            .map(|(p, r)| predict_held_out(&rounds[r], &plans[p], self.settings, self.work).ok())
            .collect();
        self.work.check()?;
        let keep_temperature = self.settings.temperature != 1.0;
        let tests: Vec<&OwnedSamples> = rounds.iter().map(|round| &round.test).collect();
        let results: Vec<Option<Vec<Predictive>>> =
            results.chunks(rounds.len()).map(|all| all.iter().cloned().collect()).collect();
        let judged: Vec<Option<HeldOut>> =
            results.par_iter().map(|all| HeldOut::of(all.as_ref()?, &tests, keep_temperature)).collect();
        let best = judged.iter().flatten().map(HeldOut::density).fold(f64::NEG_INFINITY, f64::max);
        if best.is_finite() {
            self.work.hold_out(best);
        }
        self.plans.extend(plans);
        self.predictions.extend(results);
        self.judged.extend(judged);
        Ok(())
    }

    /// The next priors of the best kinds whose best one is at the edge of what was tried.
    fn beyond_the_edge(&self) -> Vec<MemberPlan> {
        let alone = |c: usize| self.judged[c].as_ref().map(|judged| score(&[judged]));
        let mut order: Vec<(usize, f64)> =
            (0..self.plans.len()).filter_map(|c| Some((c, alone(c)?))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut best: Vec<usize> = Vec::new();
        for (c, _) in order {
            if !best.iter().any(|&b| same_kind(&self.plans[b], &self.plans[c])) {
                best.push(c);
            }
        }
        let contenders = best.iter().take(CONTENDERS);
        contenders.filter_map(|&c| beyond(&self.plans[c], &self.plans, &self.settings.search)).collect()
    }

    /// The plan of a network of kind `c` that learns from all samples.
    fn member(&self, c: usize, n: usize) -> MemberPlan {
        let plan = &self.plans[c];
        let training = &self.settings.training;
        let batches = n / training.batch_size.unwrap_or(n).clamp(1, n);
        let width = |plan: &MemberPlan| plan.network.hidden_layer_sizes.iter().sum::<usize>().max(1) as f64;
        let own: usize = self.settings.network.hidden_layer_sizes.iter().sum();
        let wider = (width(plan) / own.max(1) as f64).max(1.0);
        let most = (self.settings.search.max_steps as f64 / (wider * batches.max(1) as f64)).round() as usize;
        let temperature = self.judged[c].as_ref().map_or(1.0, |judged| judged.temperature);
        MemberPlan { epochs: plan.epochs.min(most.max(1)), temperature, ..plan.clone() }
    }

    fn candidate(&self, c: usize, picked: &[usize]) -> Candidate {
        let (network, judged) = (&self.plans[c].network, self.judged[c].as_ref());
        Candidate {
            hidden_layer_sizes: network.hidden_layer_sizes.clone(),
            prior_var: network.prior.var,
            activation: network.activation,
            head: network.head.clone(),
            density: judged.map(HeldOut::density),
            members: picked.iter().filter(|&&p| p == c).count(),
            temperature: judged.map_or(1.0, |judged| judged.temperature),
        }
    }

    /// A warning, if intervals of the chosen mixture hold far fewer of the held-out samples than they should.
    fn overconfidence(&self, picked: &[usize]) -> Option<String> {
        if self.settings.calibration != Calibration::None {
            return None;
        }
        let (mut held, mut total, mut squares) = (0.0, 0.0, 0.0);
        for (r, round) in self.rounds.iter().enumerate() {
            let test = round.test.view();
            let Targets::Values(values) = test.targets() else { return None };
            let members: Vec<Predictive> = picked
                .iter()
                .map(|&c| Some(self.predictions[c].as_ref()?[r].clone()))
                .collect::<Option<_>>()?;
            let mixture = Predictive::mixture(members).ok()?;
            let (low, high) = mixture.interval(NOMINAL).ok()?;
            for j in 0..values.ncols() {
                let weight = test.weights().map_or(1.0, |weights| weights[j]);
                let inside = |&i: &usize| low[(i, j)] <= values[(i, j)] && values[(i, j)] <= high[(i, j)];
                held += weight * (0..values.nrows()).filter(inside).count() as f64 / values.nrows() as f64;
                total += weight;
                squares += weight * weight;
            }
        }
        let (coverage, nominal) = (held / total, 100.0 * NOMINAL);
        // Three standard errors and five points below what was promised.
        let tolerated = NOMINAL - 0.05 - 3.0 * (NOMINAL * (1.0 - NOMINAL) * squares).sqrt() / total;
        (coverage < tolerated).then(|| {
            format!(
                "overconfident: intervals of {nominal:.0} % held {:.0} % of {total} held-out samples; \
                 consider calibration = \"conformal\"",
                100.0 * coverage
            )
        })
    }
}

/// Train one network on a part of the samples and predict the other.
fn predict_held_out(
    round: &HoldOut,
    plan: &MemberPlan,
    settings: &ModelSettings,
    work: &Work<'_>,
) -> Result<Predictive> {
    work.check()?;
    let train = round.train.view();
    let mut ensemble = Ensemble::untrained(&train, settings.input_scaling)?;
    ensemble.train(&train, std::slice::from_ref(plan), settings, work)?;
    let method = if settings.method == Method::Mean { Method::Linearised } else { settings.method };
    ensemble.predict(round.test.view().inputs(), method, settings.precision)
}

/// The exact linear model with the largest evidence, which for a single layer is exact and needs no held-out samples.
/// None where the settings ask for another kind of network.
fn best_linear(samples: &Samples<'_>, settings: &ModelSettings) -> Result<Option<MemberPlan>> {
    let mut best: Option<(f64, MemberPlan)> = None;
    for plan in linear(settings) {
        let mut ensemble = Ensemble::untrained(samples, settings.input_scaling)?;
        ensemble.train(samples, std::slice::from_ref(&plan), settings, &Work::new(&mut ()))?;
        let standardised = ensemble.standardise::<f64>(samples)?;
        let energies = learning::free_energy(ensemble.members[0].network(), &standardised.view()?)?;
        let evidence: f64 = energies.iter().map(|f| f.expected_log_likelihood - f.complexity).sum();
        if best.as_ref().is_none_or(|(largest, _)| evidence > *largest) {
            best = Some((evidence, plan));
        }
    }
    Ok(best.map(|(_, plan)| plan))
}

/// The kinds that were picked most often; among equals the one that was picked first.
fn most_voted(picked: &[usize], count: usize) -> Vec<usize> {
    let mut votes: Vec<(usize, usize)> = Vec::new();
    for &c in picked {
        match votes.iter_mut().find(|(kind, _)| *kind == c) {
            Some((_, votes)) => *votes += 1,
            None => votes.push((c, 1)),
        }
    }
    votes.sort_by_key(|&(_, votes)| std::cmp::Reverse(votes));
    votes.iter().take(count).map(|&(c, _)| c).collect()
}

#[cfg(test)]
mod tests {
    use super::most_voted;

    #[test]
    fn finalists_are_the_kinds_with_most_votes_and_among_equals_the_first() {
        assert_eq!(most_voted(&[3, 0, 2, 0, 1], 2), [0, 3]);
        assert!(most_voted(&[], 2).is_empty());
    }
}
