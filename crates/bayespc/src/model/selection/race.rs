//! The race: candidates are compared on one fold, the better ones on two, what lies around the best joins them, and the
//! best of all train on every fold. Exact linear models need no race and go through all folds. These networks are the
//! ensemble.
//!
//! A network learns from all folds but one and predicts that one, so that every sample has a prediction by a network
//! that has not seen it. These predictions choose the kinds of networks and their weights (`score`), and say how much
//! noise there is. Nothing is trained twice, unless there are so many samples that candidates are compared on a part of
//! them, or fewer networks are asked for than there are folds, or `refit`: then networks of the kinds chosen train on all
//! samples.

use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::candidates::{around, relevant};
use super::choice::Choice;
use super::score::{HeldOut, HeldOutFolds, complements, score};
use crate::base::random::stream;
use crate::data::{LogCurve, Samples, Task, slices};
use crate::error::{Error, Result};
use crate::model::ensemble::{
    Ensemble, Member, MemberPlan, Standardised, all_training_cost, member_seed, predict_member, train_member,
};
use crate::model::observer::{Stage, Work};
use crate::model::settings::ModelSettings;
use crate::prediction::{Method, Predictive};
use crate::real::{Precision, Real};

/// Samples of classes that candidates are compared by in a round at least, if three folds have them.
const ROUND: usize = 100;

/// Exact linear models that may join the ensemble, and how many are compared at a time, if there is room for the matrices
/// of so many.
const LINES: usize = 2;
const LINES_AT_ONCE: usize = 6;

/// Inputs of all networks that learn side by side, numbers in all. Each has them twice, as they are and whitened: in
/// single precision half a gigabyte.
const ROOM: usize = 1 << 26;

/// First of the streams of the seed that take a part of many samples, one for each fold.
const PART_STREAM: u64 = 100;

/// A kind of network, and what became of it.
pub(super) struct Kind {
    pub(super) plan: MemberPlan,
    /// Of each fold so far, the network that has not seen it.
    pub(super) networks: Vec<Trained>,
    /// What it predicts for the samples of the fold; none any more once it is out of the race.
    pub(super) predictions: Vec<Predictive>,
    /// Folds it is judged by.
    pub(super) folds: usize,
    pub(super) judged: Option<HeldOut>,
    failed: bool,
}

/// A network of the race.
pub(super) struct Trained {
    pub(super) member: Member,
    /// Whether it has learned from all samples that are not in its fold, not from a part of them only.
    pub(super) whole: bool,
}

/// A network, and what it predicts for its fold.
type Trial = (Trained, Predictive);

pub(super) struct Race<'a, 'b> {
    pub(super) settings: ModelSettings,
    pub(super) work: &'a Work<'b>,
    pub(super) ensemble: &'a Ensemble,
    /// Samples to learn from when a fold is held out, and when candidates are compared.
    rest: Vec<Vec<usize>>,
    parts: Vec<Vec<usize>>,
    pub(super) folds: Vec<Vec<usize>>,
    pub(super) held_out: HeldOutFolds<'a>,
    /// Samples to learn from and to predict when a slice is held out.
    pub(super) slices: Vec<(Vec<usize>, Vec<usize>)>,
    pub(super) samples: Samples<'a>,
    pub(super) n: usize,
    /// The logarithm of the target, if it has one worth trying.
    curve: Option<LogCurve>,
    pub(super) kinds: Vec<Kind>,
}

impl<'a, 'b> Race<'a, 'b> {
    pub(super) fn new(
        samples: &Samples<'a>,
        ensemble: &'a Ensemble,
        folds: Vec<Vec<usize>>,
        settings: &ModelSettings,
        work: &'a Work<'b>,
    ) -> Self {
        let n = samples.n_samples();
        let mut fold_of = vec![0; n];
        for (f, fold) in folds.iter().enumerate() {
            for &j in fold {
                fold_of[j] = f;
            }
        }
        let rest: Vec<Vec<usize>> =
            (0..folds.len()).map(|f| (0..n).filter(|&j| fold_of[j] != f).collect()).collect();
        let part = |(f, mut part): (usize, Vec<usize>)| {
            if part.len() > settings.search.max_rows {
                part.shuffle(&mut stream(settings.training.seed, PART_STREAM + f as u64));
                part.truncate(settings.search.max_rows);
            }
            part
        };
        let slices = match samples.task() {
            Task::Regression => slices(samples, settings.training.seed, settings.search.slices),
            Task::Classification { .. } => Vec::new(),
        };
        let around = |slice: Vec<usize>| {
            let mut inside = vec![false; n];
            for &j in &slice {
                inside[j] = true;
            }
            let outside = (0..n).filter(|&j| !inside[j]).collect();
            (part((folds.len(), outside)), part((folds.len() + 1, slice)))
        };
        let curve = if settings.search.log_target {
            LogCurve::of(samples.targets(), samples.weights(), &ensemble.target_scaling)
        } else {
            None
        };
        let settings = ModelSettings {
            method: if settings.method == Method::Mean { Method::Linearised } else { settings.method },
            ..settings.clone()
        };
        Self {
            slices: slices.into_iter().map(around).collect(),
            parts: rest.iter().cloned().enumerate().map(part).collect(),
            rest,
            held_out: HeldOutFolds {
                tests: folds.iter().map(|fold| samples.select(fold)).collect(),
                scaling: &ensemble.target_scaling,
            },
            folds,
            settings,
            work,
            ensemble,
            samples: *samples,
            n,
            curve,
            kinds: Vec::new(),
        }
    }

    pub(super) fn run(mut self, first: Vec<MemberPlan>) -> Result<Choice> {
        let search = self.settings.search.clone();
        let k = self.folds.len();
        let few = self.settings.members < search.folds;
        let refit = if few { self.settings.members } else { search.refit };
        let most_kinds = if few { refit } else { search.kinds };
        let last = search.kinds.max(most_kinds);
        self.plan_ahead(&first, search.survivors, last);
        let (deep, linear): (Vec<usize>, Vec<usize>) =
            (0..first.len()).partition(|&c| !first[c].network.hidden_layer_sizes.is_empty());
        self.add(first);
        // By two folds if there are so many samples that two say enough.
        let enough = if self.n > search.max_rows { 2.min(k) } else { k };
        // With a time limit what is cheap comes first, so that there is something when the time is up.
        let early = self.settings.time_limit.map(|_| self.advance_lines(&linear, enough)).transpose()?;
        // A fold of few samples says little, of classes less than of values.
        let folds = if self.held_out.is_classes() { ROUND.div_ceil(self.folds[0].len()) } else { 1 };
        let round = folds.clamp(1, 3);
        self.advance(&deep, round.min(k), false)?;
        let survivors = self.in_time(&self.best(&deep, search.survivors), 2 * round);
        self.forget(deep.iter().filter(|c| !survivors.contains(c)));
        self.advance(&survivors, (2 * round).min(k), false)?;
        let mut contenders = survivors.clone();
        let mut more = Vec::new();
        if let [best] = self.best(&survivors, 1)[..] {
            let best = self.relevant(best, (2 * round).min(k), &mut contenders)?;
            let tried: Vec<&MemberPlan> = self.kinds.iter().map(|kind| &kind.plan).collect();
            more = self.around(best, &tried);
            more.extend(self.with_other_codes(best));
        }
        let fresh: Vec<usize> = (self.kinds.len()..self.kinds.len() + more.len()).collect();
        self.add(more);
        let fresh = self.in_time(&fresh, k + 2 * round);
        self.advance(&fresh, (2 * round).min(k), false)?;
        contenders.extend(&fresh);
        let mut finalists = self.in_time(&self.complements(&contenders, last), k);
        self.forget(contenders.iter().filter(|c| !finalists.contains(c)));
        self.work.enter(Stage::Training)?;
        self.advance(&finalists, k, true)?;
        // Exact linear models cost next to nothing: all are judged by all folds, and what lies around the best of them.
        let mut lines = early.map_or_else(|| self.advance_lines(&linear, enough), Ok)?;
        if let [best] = self.best(&linear, 1)[..] {
            let tried: Vec<&MemberPlan> = self.kinds.iter().map(|kind| &kind.plan).collect();
            let mut more = self.around(best, &tried);
            more.extend(relevant(self.n, self.samples.n_features(), &self.settings));
            let fresh: Vec<usize> = (self.kinds.len()..self.kinds.len() + more.len()).collect();
            self.add(more);
            self.advance(&fresh, enough, false)?;
            lines.extend(fresh);
        }
        let best_lines = self.best(&lines, LINES);
        finalists.extend(&best_lines);
        self.forget(lines.iter().filter(|c| !best_lines.contains(c)));
        self.advance(&best_lines, k, true)?;
        if self.work.is_over() {
            self.keep_what_is_there(&mut finalists)?;
        }
        self.finish(&finalists, most_kinds, refit)
    }

    /// What lies around a kind and was not tried yet.
    fn around(&self, c: usize, tried: &[&MemberPlan]) -> Vec<MemberPlan> {
        around(&self.kinds[c].plan, tried, self.n, &self.settings, self.curve.as_ref())
    }

    /// Judge a kind by the first folds only, as those are that it is compared with.
    pub(super) fn judge_by(&mut self, c: usize, folds: usize) {
        let kind = &mut self.kinds[c];
        let predictions = &kind.predictions[..folds.min(kind.predictions.len())];
        kind.judged = HeldOut::of(predictions, &self.held_out, self.settings.temperature != 1.0);
        kind.folds = predictions.len();
    }

    /// Train and judge linear models on the first `folds` folds, a few at a time, since many of them with wide codes would
    /// take much memory. The best are returned; of the others it is known how they did.
    fn advance_lines(&mut self, lines: &[usize], folds: usize) -> Result<Vec<usize>> {
        let mut kept: Vec<usize> = Vec::new();
        let width = lines.iter().map(|&c| self.ensemble.width(self.kinds[c].plan.bins)).max().unwrap_or(0);
        // Prior and posterior of every fold.
        let at_once = ROOM / (2 * folds * width * width).max(1);
        for some in lines.chunks(at_once.clamp(1, LINES_AT_ONCE)) {
            self.advance(some, folds, false)?;
            let best = self.best(&[&kept[..], some].concat(), LINES);
            self.forget(kept.iter().chain(some).filter(|c| !best.contains(c)));
            kept = best;
        }
        Ok(kept)
    }

    /// Let go of what these kinds have learned and said. How they did is kept.
    fn forget<'c>(&mut self, kinds: impl Iterator<Item = &'c usize>) {
        for &c in kinds {
            let kind = &mut self.kinds[c];
            (kind.networks, kind.predictions) = (Vec::new(), Vec::new());
        }
    }

    /// The first of these kinds, as many as there is time for to take them through so many folds; one at least.
    fn in_time(&self, kinds: &[usize], folds: usize) -> Vec<usize> {
        let mut cost = 0;
        let mut fits = |place: usize, c: usize| {
            cost += (0..folds.min(self.folds.len())).map(|f| self.cost(c, f)).sum::<u64>();
            place == 0 || self.work.has_time_for(cost)
        };
        kinds.iter().enumerate().take_while(|&(place, &c)| fits(place, c)).map(|(_, &c)| c).collect()
    }

    /// Kinds that do well together, at most so many.
    fn complements(&self, contenders: &[usize], most: usize) -> Vec<usize> {
        let judged: Vec<Option<HeldOut>> = contenders.iter().map(|&c| self.kinds[c].judged.clone()).collect();
        complements(&judged, most).into_iter().map(|place| contenders[place]).collect()
    }

    /// After an interruption: go on with those folds that all finalists have been through, if these are enough to
    /// judge by.
    fn keep_what_is_there(&mut self, finalists: &mut Vec<usize>) -> Result<()> {
        let through = |&c: &usize| self.kinds[c].networks.iter().take_while(|trained| trained.whole).count();
        if !self.work.is_stopped() {
            // The time was up: whoever has not been through two folds came too late.
            finalists.retain(|c| through(c) >= 2);
        }
        let folds = finalists.iter().map(through).min().unwrap_or(0);
        if folds < 2 {
            let seconds = self.settings.time_limit.filter(|_| !self.work.is_stopped());
            return Err(seconds.map_or(Error::Interrupted, |seconds| Error::TimeLimit { seconds }));
        }
        self.folds.truncate(folds);
        self.held_out.tests.truncate(folds);
        for &c in finalists.iter() {
            let kind = &mut self.kinds[c];
            kind.networks.truncate(folds);
            kind.predictions.truncate(folds);
            kind.folds = folds;
            kind.judged = HeldOut::of(&kind.predictions, &self.held_out, self.settings.temperature != 1.0);
        }
        Ok(())
    }

    /// Say how much work there will be, so that the bar tells the whole from the start.
    fn plan_ahead(&self, first: &[MemberPlan], survivors: usize, last: usize) {
        let n = self.parts[0].len();
        let cost = |plan: &MemberPlan| {
            all_training_cost(std::slice::from_ref(plan), &self.settings, self.ensemble, n)
        };
        let total: u64 = first.iter().map(cost).sum();
        let each = first.iter().map(cost).max().unwrap_or(0);
        let later = survivors + 2 * 3 + last * (self.folds.len() - 2) + self.slices.len();
        self.work.plan(total + each * later as u64);
    }

    pub(super) fn add(&mut self, plans: Vec<MemberPlan>) {
        self.kinds.extend(plans.into_iter().map(|plan| Kind {
            plan,
            networks: Vec::new(),
            predictions: Vec::new(),
            folds: 0,
            judged: None,
            failed: false,
        }));
    }

    /// Train and judge these kinds on the first `folds` folds, as far as they are not yet. In the end (`whole`) every
    /// network has learned from all samples that are not in its fold. What is stopped has failed.
    pub(super) fn advance(&mut self, kinds: &[usize], folds: usize, whole: bool) -> Result<()> {
        let mut trials: Vec<(usize, usize)> = Vec::new();
        for &c in kinds {
            for f in 0..folds {
                let kind = &self.kinds[c];
                let done = kind.networks.get(f).is_some_and(|trained| trained.whole || !whole);
                if !done && !kind.failed {
                    trials.push((c, f));
                }
            }
        }
        // The longest first, so that no thread waits for one that began late.
        trials.sort_by_key(|&(c, f)| std::cmp::Reverse(self.cost(c, f)));
        let mut results: Vec<((usize, usize), Option<Trial>)> = Vec::with_capacity(trials.len());
        for side_by_side in trials.chunks(self.at_once(&trials, whole)) {
            let trained = side_by_side.par_iter().with_max_len(1);
            // A candidate that cannot be trained is out of the race.
            results.par_extend(trained.map(|&(c, f)| ((c, f), self.train(c, f, whole).ok())));
        }
        if self.work.waits() {
            return Err(Error::Interrupted);
        }
        results.sort_by_key(|((c, f), _)| (*c, *f));
        for ((c, f), result) in results {
            let kind = &mut self.kinds[c];
            let Some((network, predictive)) = result else {
                kind.failed = true;
                continue;
            };
            if f > kind.networks.len() {
                continue;
            }
            if f < kind.networks.len() {
                (kind.networks[f], kind.predictions[f]) = (network, predictive);
            } else {
                kind.networks.push(network);
                kind.predictions.push(predictive);
            }
        }
        let keep_temperature = self.settings.temperature != 1.0;
        let judged: Vec<Option<HeldOut>> = kinds
            .par_iter()
            .with_max_len(1)
            .map(|&c| {
                let kind = &self.kinds[c];
                if kind.failed {
                    None
                } else {
                    HeldOut::of(&kind.predictions, &self.held_out, keep_temperature)
                }
            })
            .collect();
        let best = judged.iter().flatten().map(HeldOut::density).fold(f64::NEG_INFINITY, f64::max);
        if best.is_finite() {
            self.work.hold_out(best - self.held_out.log_unit());
        }
        for (&c, judged) in kinds.iter().zip(judged) {
            let kind = &mut self.kinds[c];
            (kind.judged, kind.folds) = (judged, kind.predictions.len());
        }
        Ok(())
    }

    /// How many of these networks may learn side by side, whatever the number of threads.
    fn at_once(&self, trials: &[(usize, usize)], whole: bool) -> usize {
        let rows = if whole { &self.rest } else { &self.parts };
        let size = |&(c, f): &(usize, usize)| rows[f].len() * self.ensemble.width(self.kinds[c].plan.bins);
        let largest = trials.iter().map(size).max().unwrap_or(0);
        (ROOM / largest.max(1)).max(1)
    }

    pub(super) fn cost(&self, c: usize, f: usize) -> u64 {
        let plan = std::slice::from_ref(&self.kinds[c].plan);
        all_training_cost(plan, &self.settings, self.ensemble, self.parts[f].len())
    }

    /// Train kind `c` without fold `f` and predict that fold.
    fn train(&self, c: usize, f: usize, whole: bool) -> Result<Trial> {
        if self.work.is_over() {
            return Err(Error::Interrupted);
        }
        match self.settings.search.precision {
            Precision::F32 => self.train_in::<f32>((c, f), whole),
            Precision::F64 => self.train_in::<f64>((c, f), whole),
        }
    }

    fn train_in<T: Real>(&self, (c, f): (usize, usize), whole: bool) -> Result<Trial> {
        let rows = if whole { &self.rest[f] } else { &self.parts[f] };
        let mut plan = self.kinds[c].plan.clone();
        // As many steps on a part as there would be passes over all, or networks of long data were judged untrained.
        let shorter = self.rest[f].len() as f64 / rows.len() as f64;
        if shorter > 1.0 && !plan.network.hidden_layer_sizes.is_empty() {
            plan.epochs = (plan.epochs as f64 * shorter.sqrt()).round() as usize;
        }
        let seed = member_seed(self.settings.training.seed, c * self.folds.len() + f);
        let train = self.seen_by::<T>(&plan, rows)?;
        let member = train_member(&plan, None, &train, &self.settings, seed, self.work)?;
        drop(train);
        let member = member.ok_or(Error::Interrupted)?;
        let fold = self.seen_by::<T>(&plan, &self.folds[f])?;
        let predictive = predict_member(&member, &fold, self.settings.method)?;
        Ok((Trained { member, whole: rows.len() == self.rest[f].len() }, predictive))
    }

    /// Samples as a network of this plan sees them. Codes are made where they are needed: those of all samples at once
    /// would take many times the memory of a long table.
    pub(super) fn seen_by<T: Real>(&self, plan: &MemberPlan, samples: &[usize]) -> Result<Standardised<T>> {
        self.ensemble.standardise(&self.samples.select(samples).view(), plan.bins)
    }

    /// The best of these kinds, at most so many, the best one first.
    pub(super) fn best(&self, kinds: &[usize], most: usize) -> Vec<usize> {
        let alone = |&c: &usize| Some((c, score(&[self.kinds[c].judged.as_ref()?])));
        let mut order: Vec<(usize, f64)> = kinds.iter().filter_map(alone).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        order.into_iter().take(most).map(|(c, _)| c).collect()
    }
}
