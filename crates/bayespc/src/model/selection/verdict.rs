//! The verdict: which kinds make the ensemble, how much each counts, and what its predictions of unseen samples say of
//! noise, of doubt and of how good it is.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::choice::Choice;
use super::out_of_fold::{OutOfFold, Predicted};
use super::race::{Kind, Race, Trained};
use super::score::{HeldOut, HeldOutScores, pick, temperature, weighted_mean};
use crate::data::{OwnedSamples, Targets};
use crate::error::{Error, Result};
use crate::heads::HeadSettings;
use crate::metrics;
use crate::model::calibration::Calibrated;
use crate::model::ensemble::{
    Ensemble, Member, MemberPlan, Standardised, member_seed, predict_member, train_member,
};
use crate::model::spread::{Moments, Spread};
use crate::network::Activation;
use crate::prediction::Predictive;
use crate::real::{Precision, Real};

/// Greedy choices per kind of the ensemble: weights are multiples of one over all of them.
const PICKS_PER_KIND: usize = 2;

/// A candidate and how it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Candidate {
    /// Widths of its hidden layers.
    pub hidden_layer_sizes: Vec<usize>,
    /// V⁰.
    pub prior_var: f64,
    /// Bins of the columns' codes; 0: columns as they are.
    pub bins: usize,
    /// f of its hidden layers.
    pub activation: Activation,
    /// Its head.
    pub head: HeadSettings,
    /// Whether it learns the logarithm of the target.
    pub log_target: bool,
    /// Whether its inputs have prior variances by what they tell of samples held out.
    pub relevance: bool,
    /// Mean log density of the held-out samples by this candidate alone; none if it could not be trained.
    pub density: Option<f64>,
    /// Folds it was judged by.
    pub folds: usize,
    /// Networks of the final ensemble that are of its kind.
    pub members: usize,
    /// Temperature of class probabilities that suits the held-out samples best; 1 for regression.
    pub temperature: f64,
}

impl Race<'_, '_> {
    /// Pick the ensemble from kinds that have been through all folds, and let its predictions of unseen samples say
    /// what they are worth. So many networks as `refit` says are to be trained on all samples in their place, unless 0.
    pub(super) fn finish(mut self, finalists: &[usize], most_kinds: usize, refit: usize) -> Result<Choice> {
        let judged: Vec<Option<HeldOut>> = finalists.iter().map(|&c| self.kinds[c].judged.clone()).collect();
        let picks = if refit > 0 { refit } else { PICKS_PER_KIND * most_kinds };
        let picked: Vec<usize> =
            pick(&judged, picks, most_kinds).into_iter().map(|place| finalists[place]).collect();
        if picked.is_empty() {
            let candidates = (0..self.kinds.len()).map(|c| self.candidate(c, &[], refit)).collect();
            return Ok(Choice { candidates, ..Choice::plain(self.settings.plans()) });
        }
        let ignorant = if refit == 0 { self.ignorant(&picked)? } else { None };
        let (mut calibrated, held_out, out_of_fold) = self.judge(&picked, ignorant.as_ref())?;
        if let (Some(spread), false) = (&mut calibrated.spread, refit > 0) {
            let kinds: Vec<(f64, &Kind)> =
                counted(&picked).into_iter().map(|(c, weight)| (weight as f64, &self.kinds[c])).collect();
            *spread = spread.shrunk(self.without_chance(&kinds, spread)?);
        }
        let candidates = (0..self.kinds.len()).map(|c| self.candidate(c, &picked, refit)).collect();
        let (mut members, mut plans) = (Vec::new(), Vec::new());
        for (c, weight) in counted(&picked) {
            let temperature = self.kinds[c].judged.as_ref().map_or(1.0, |judged| judged.temperature);
            if refit > 0 {
                let plan = MemberPlan { temperature, ..self.kinds[c].plan.clone() };
                plans.extend(std::iter::repeat_n(plan, weight));
                continue;
            }
            for Trained { mut member, .. } in self.kinds[c].networks.drain(..).filter(|trained| trained.whole)
            {
                (member.temperature, member.weight) = (temperature, weight as f64);
                members.push(member);
            }
        }
        members.extend(ignorant.map(|mut member| {
            // Its share was of one network of each kind; every kind has one for each fold.
            member.weight *= self.folds.len() as f64;
            member
        }));
        let (held_out, out_of_fold) = (Some(held_out), Some(out_of_fold));
        Ok(Choice { members, plans, calibrated, candidates, held_out, out_of_fold })
    }

    /// For classes, a network that has learned nothing. Of n samples that were predicted none need have been of a class
    /// thought impossible, but the next may be: by Jeffreys' rule with a probability of ½/(n + 1). That is its share.
    fn ignorant(&self, picked: &[usize]) -> Result<Option<Member>> {
        if !self.held_out.is_classes() {
            return Ok(None);
        }
        let share = 0.5 / (self.n as f64 + 1.0);
        let weight = picked.len() as f64 * share / (1.0 - share);
        let mut plan = MemberPlan::ignorant(weight, &self.settings.training);
        // Of a wide table it keeps no more than the others.
        plan.network.wide_layers = self.settings.network.wide_layers;
        if let Some(kept) = self.settings.wide_layers_of(&plan.network, self.samples.n_features(), self.n) {
            plan.network.wide_layers = kept;
        }
        let (d, k) = (self.ensemble.width(0), self.ensemble.target_scaling.dim());
        let seed = self.settings.training.seed;
        Member::untrained(&plan, &self.settings.rule, d, k, seed).map(Some)
    }

    /// What out-of-fold predictions of the picked mixture say of noise and temperature, and how good they are.
    fn judge(
        &self,
        picked: &[usize],
        ignorant: Option<&Member>,
    ) -> Result<(Calibrated, HeldOutScores, OutOfFold)> {
        let kinds: Vec<(f64, &Kind)> =
            counted(picked).into_iter().map(|(c, weight)| (weight as f64, &self.kinds[c])).collect();
        let judged: Vec<(f64, &HeldOut)> =
            kinds.iter().filter_map(|(weight, kind)| Some((*weight, kind.judged.as_ref()?))).collect();
        let mut calibrated = Calibrated::default();
        // Of each fold the mixture of what networks say, each changed as `change` does.
        let mixed = |change: &dyn Fn(Predictive) -> Predictive| {
            let of_fold = |f: usize| {
                let tempered = |(weight, kind): &(f64, &Kind)| {
                    let temperature = kind.judged.as_ref().map_or(1.0, |judged| judged.temperature);
                    (*weight, change(kind.predictions[f].tempered(temperature)))
                };
                let mut said: Vec<(f64, Predictive)> = kinds.iter().map(tempered).collect();
                if let Some(member) = ignorant {
                    let fold = self.ensemble.standardise::<f64>(&self.held_out.tests[f].view(), 0)?;
                    said.push((member.weight, predict_member(member, &fold, self.settings.method)?));
                }
                Predictive::weighted_mixture(said)
            };
            (0..self.folds.len()).map(of_fold).collect::<Result<Vec<_>>>()
        };
        let tests = &self.held_out.tests;
        let total: f64 = tests.iter().map(|test| test.view().total_weight()).sum();
        let over = |mixtures: &[Predictive], f: &dyn Fn(&Predictive, &OwnedSamples) -> Result<f64>| {
            let mut sum = 0.0;
            for (predictive, test) in mixtures.iter().zip(tests) {
                sum += test.view().total_weight() / total * f(predictive, test)?;
            }
            Ok::<f64, Error>(sum)
        };
        let rows: Vec<usize> = self.folds.iter().flatten().copied().collect();
        if self.held_out.is_classes() {
            let mixtures = mixed(&|predictive| predictive)?;
            if self.settings.temperature == 1.0 {
                calibrated.temperature = temperature(&mixtures, tests)?;
            }
            let probabilities = |p: &Predictive| p.class_probabilities(calibrated.temperature);
            let labels = |test: &OwnedSamples| match test.view().targets() {
                Targets::Classes { labels, .. } => labels.to_vec(),
                Targets::Values(_) => Vec::new(),
            };
            let mut log_probabilities = Vec::new();
            for (predictive, test) in mixtures.iter().zip(tests) {
                let p = probabilities(predictive)?;
                let weights = test.view().weights().map(<[f64]>::to_vec);
                let each = metrics::log_probabilities(p.as_ref(), &labels(test))?.into_iter().enumerate();
                log_probabilities.extend(each.map(|(j, l)| (weights.as_ref().map_or(1.0, |w| w[j]), l)));
            }
            let scores = HeldOutScores {
                log_density: over(&mixtures, &|p, test| {
                    Ok(-metrics::negative_log_likelihood(probabilities(p)?.as_ref(), &labels(test))?)
                })?,
                log_density_error: weighted_mean(log_probabilities.iter().copied()).1,
                rmse_error: Vec::new(),
                rmse: Vec::new(),
                accuracy: Some(over(&mixtures, &|p, test| {
                    metrics::accuracy(probabilities(p)?.as_ref(), &labels(test))
                })?),
                coverage_90: None,
            };
            let temperature = self.settings.temperature * calibrated.temperature;
            let each =
                mixtures.iter().map(|p| p.class_probabilities(temperature)).collect::<Result<Vec<_>>>()?;
            let columns: Vec<_> = each.iter().flat_map(faer::Mat::col_iter).collect();
            let all = faer::Mat::from_fn(each[0].nrows(), columns.len(), |k, j| columns[j][k]);
            let out_of_fold = OutOfFold::new(&rows, &Predicted::Probabilities(all))?;
            return Ok((calibrated, scores, out_of_fold));
        }
        let networks: Vec<(f64, &Moments)> =
            judged.iter().map(|(weight, judged)| (*weight, &judged.moments)).collect();
        let (targets, weights) = (self.held_out.targets(self.folds.len()), judged[0].1.target_weights());
        let d = self.held_out.scaling.dim();
        let mut spread = Spread::fit(&networks, &targets, &weights);
        if d == 1 {
            spread = spread.and_skew(&networks, &targets, &weights);
        }
        // Whoever interrupts the fit now does without.
        let slices: u64 = self.slices.len() as u64 * self.cost(picked[0], 0);
        if slices > 0
            && self.work.has_time_for(slices)
            && let Ok((moments, targets, weights)) = self.far(picked[0])
        {
            spread = spread.and_far(&moments, &targets, &weights);
        }
        if self.work.waits() {
            return Err(Error::Interrupted);
        }
        calibrated.spread = Some(spread);
        let summed: f64 = weights.iter().sum::<f64>() / d as f64;
        let densities = spread.log_densities(&networks, &targets);
        let density = densities.iter().zip(&weights).map(|(l, weight)| l * weight).sum::<f64>() / summed;
        let share: f64 = networks.iter().map(|(weight, _)| weight).sum();
        let error = |j: usize| {
            let mean: f64 = networks.iter().map(|(weight, network)| weight / share * network.mean[j]).sum();
            (targets[j] - mean).powi(2)
        };
        let rmse = |i: usize| {
            let places = (i..targets.len()).step_by(d);
            let (square, error) = weighted_mean(places.map(|j| (weights[j], error(j))));
            let (rmse, scale) = (square.sqrt(), self.held_out.scaling.scale[i]);
            // Of a root the slope is one over twice the root.
            (rmse * scale, 0.5 * error / rmse.max(f64::MIN_POSITIVE) * scale)
        };
        let rmse: Vec<(f64, f64)> = (0..d).map(rmse).collect();
        let (_, density_error) = weighted_mean(weights.iter().copied().zip(densities.iter().copied()));
        let mixtures = mixed(&|predictive| spread.apply(&predictive))?;
        let coverage = over(&mixtures, &|predictive, test| {
            let values = test.view().targets().standardised::<f64>(self.held_out.scaling)?;
            let values = faer::Mat::from_fn(d, test.view().n_samples(), |i, j| values[j * d + i]);
            metrics::interval_coverage(predictive, values.as_ref(), 0.9)
        })?;
        let scores = HeldOutScores {
            log_density: density - self.held_out.log_unit(),
            log_density_error: density_error * d as f64,
            rmse: rmse.iter().map(|(rmse, _)| *rmse).collect(),
            rmse_error: rmse.iter().map(|(_, error)| *error).collect(),
            accuracy: None,
            coverage_90: Some(coverage),
        };
        let scaling = self.held_out.scaling;
        let all = Predictive::concat(&mixtures)?.unscale(&scaling.offset, &scaling.scale)?;
        let factor = self.settings.temperature;
        let all = if factor == 1.0 { all } else { all.tempered(factor) };
        let out_of_fold = OutOfFold::new(&rows, &Predicted::Values(all))?;
        Ok((calibrated, scores, out_of_fold))
    }

    /// What the best kind says of samples far from those it has learned from: of slices along a column, held out whole.
    /// Their predictions, standardised targets and weights.
    fn far(&self, c: usize) -> Result<(Moments, Vec<f64>, Vec<f64>)> {
        match self.settings.search.precision {
            Precision::F32 => self.far_in::<f32>(c),
            Precision::F64 => self.far_in::<f64>(c),
        }
    }

    fn far_in<T: Real>(&self, c: usize) -> Result<(Moments, Vec<f64>, Vec<f64>)> {
        let d = self.held_out.scaling.dim();
        let plan = &self.kinds[c].plan;
        let predicted: Vec<(Predictive, Standardised<T>)> = self
            .slices
            .par_iter()
            .with_max_len(1)
            .enumerate()
            .map(|(f, (rest, slice))| {
                // Scaling and codes know nothing of the slice either, as they know nothing of what is far from all samples.
                let (rest, slice) = (self.samples.select(rest), self.samples.select(slice));
                let mut own = Ensemble::untrained(&rest.view(), self.settings.input_scaling)?;
                own.target_scaling = self.held_out.scaling.clone();
                own.add_codes(&rest.view(), std::slice::from_ref(plan));
                let seed =
                    member_seed(self.settings.training.seed, (1 + self.kinds.len()) * self.folds.len() + f);
                let plan = plan.for_inputs(&own.columns(plan.bins));
                let rest = own.standardise::<T>(&rest.view(), plan.bins)?;
                let member = train_member(&plan, None, &rest, &self.settings, seed, self.work)?;
                let slice = own.standardise(&slice.view(), plan.bins)?;
                Ok((predict_member(&member.ok_or(Error::Interrupted)?, &slice, self.settings.method)?, slice))
            })
            // All slices before the first error: each says by itself which network it needs.
            .collect::<Vec<Result<_>>>()
            .into_iter()
            .collect::<Result<_>>()?;
        let (mut moments, mut targets, mut weights) = (Moments::default(), Vec::new(), Vec::new());
        for (predictive, slice) in &predicted {
            moments.add(predictive);
            targets.extend(slice.targets());
            weights.extend(slice.weights().flat_map(|weight| std::iter::repeat_n(weight, d)));
        }
        Ok((moments, targets, weights))
    }

    fn candidate(&self, c: usize, picked: &[usize], refit: usize) -> Candidate {
        let kind = &self.kinds[c];
        let (network, judged) = (&kind.plan.network, kind.judged.as_ref());
        let in_use = picked.contains(&c);
        Candidate {
            hidden_layer_sizes: network.hidden_layer_sizes.clone(),
            prior_var: network.prior.var,
            bins: kind.plan.bins,
            activation: network.activation,
            head: network.head.clone(),
            log_target: kind.plan.curve.is_some(),
            relevance: !network.prior.input_factors.is_empty(),
            density: judged.map(|judged| judged.density() - self.held_out.log_unit()),
            folds: kind.folds,
            members: match (in_use, refit) {
                (false, _) => 0,
                (true, 0) => self.folds.len(),
                (true, _) => picked.iter().filter(|&&p| p == c).count(),
            },
            temperature: judged.map_or(1.0, |judged| judged.temperature),
        }
    }
}

/// Each of these once, with how often it is there, in the order of their first appearance.
fn counted(picked: &[usize]) -> Vec<(usize, usize)> {
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for &c in picked {
        match counts.iter_mut().find(|(kind, _)| *kind == c) {
            Some((_, count)) => *count += 1,
            None => counts.push((c, 1)),
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn kinds_are_counted_in_the_order_they_were_picked() {
        assert_eq!(counted(&[3, 0, 2, 0, 1]), [(3, 1), (0, 2), (2, 1), (1, 1)]);
        assert!(counted(&[]).is_empty());
    }
}
