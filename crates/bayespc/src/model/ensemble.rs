//! Networks trained side by side on standardised samples, and their mixture in the units of the data.
//!
//! A network may see columns as they are or with codes beside them; each kind of codes is made once for all networks
//! that see it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use faer::{Mat, MatRef};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::observer::{Work, step_cost};
use super::settings::{InputScaling, ModelSettings};
use crate::data::{Codes, Dataset, Inputs, LogCurve, Samples, Standardiser, Task};
use crate::error::{Error, Result};
use crate::heads::{Categorical, HeadSettings};
use crate::inference::FeedbackSettings;
use crate::learners::{Bpc, Rule};
use crate::network::{Init, Network, NetworkSettings};
use crate::prediction::{Method, Predictive, Predictor};
use crate::real::{Precision, Real};
use crate::training::{self, End, TrainingReport, TrainingSettings};

/// A network that was stopped is kept if it has run this share of its epochs.
const USEFUL: f64 = 0.1;

/// Inputs from which on they are whitened.
const WIDE: usize = 64;

/// V⁰ and first weights of a network that knows nothing and stays so, whatever it is shown.
const NOTHING: f64 = 1e-12;

/// What one network is to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberPlan {
    /// Shape, prior and head.
    pub network: NetworkSettings,
    /// Passes over the data.
    pub epochs: usize,
    /// Samples per batch; none: all of them.
    pub batch_size: Option<usize>,
    /// Factor on the covariance of its predictions. For classes that is the temperature of its probabilities.
    pub temperature: f64,
    /// Bins of the piecewise-linear code of each column; 0: columns as they are.
    pub bins: usize,
    /// How much it counts in the mixture.
    pub weight: f64,
    /// The curve it sees its target through; none: the target as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<LogCurve>,
}

impl MemberPlan {
    /// A network that counts like any other and whose predictions stand as they are.
    pub fn new(network: NetworkSettings, training: &TrainingSettings, bins: usize) -> Self {
        let TrainingSettings { epochs, batch_size, .. } = *training;
        Self { network, epochs, batch_size, temperature: 1.0, bins, weight: 1.0, curve: None }
    }

    /// A network that has learned nothing and never will: to it all classes are equally probable.
    pub(super) fn ignorant(weight: f64, training: &TrainingSettings) -> Self {
        let mut network = NetworkSettings {
            hidden_layer_sizes: Vec::new(),
            init: Init::Uniform { gain: NOTHING },
            head: HeadSettings::Categorical(Categorical::default()),
            ..NetworkSettings::default()
        };
        network.prior.var = NOTHING;
        Self { weight, ..Self::new(network, training, 0) }
    }

    /// Whether it is such a network.
    pub fn is_ignorant(&self) -> bool {
        self.network.hidden_layer_sizes.is_empty() && self.network.prior.var == NOTHING
    }

    /// The settings of training with this plan's passes and batches.
    pub(super) fn training(&self, settings: &TrainingSettings) -> TrainingSettings {
        TrainingSettings { epochs: self.epochs, batch_size: self.batch_size, ..settings.clone() }
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        crate::base::check::positive("member.temperature", self.temperature)?;
        crate::base::check::positive("member.weight", self.weight)?;
        self.batch_size
            .map_or(Ok(()), |batch| crate::base::check::at_least_one("member.batch_size", batch))?;
        self.curve.as_ref().map_or(Ok(()), LogCurve::validate)?;
        self.network.validate()
    }
}

/// One trained network and what is needed to train it further.
#[derive(Clone, Debug)]
pub struct Member {
    /// The network, with what prediction has derived from it.
    predictor: Predictor<f64>,
    /// The same in single precision, made when it is first asked for.
    single: OnceLock<Predictor<f32>>,
    /// What the feedback rule knows: C_1 … C_{L−1} and the batches behind them.
    pub feedback: (Vec<Mat<f64>>, u64),
    /// Factor on the covariance of its predictions.
    pub temperature: f64,
    /// Bins of the codes it sees.
    pub bins: usize,
    /// How much it counts in the mixture.
    pub weight: f64,
    /// The curve it sees its target through.
    pub curve: Option<LogCurve>,
    /// Samples per batch it has learned in; none: all of them.
    pub batch_size: Option<usize>,
    /// Batches it has learned from.
    pub steps: u64,
    /// What its training did.
    pub report: TrainingReport,
}

impl Member {
    /// A network made to `plan`.
    pub(super) fn new(
        network: Network<f64>,
        plan: &MemberPlan,
        feedback: (Vec<Mat<f64>>, u64),
        steps: u64,
        report: TrainingReport,
    ) -> Self {
        Self {
            predictor: Predictor::new(network),
            single: OnceLock::new(),
            feedback,
            temperature: plan.temperature,
            bins: plan.bins,
            weight: plan.weight,
            curve: plan.curve,
            batch_size: plan.batch_size,
            steps,
            report,
        }
    }

    /// A network that has learned nothing yet.
    pub(super) fn untrained(plan: &MemberPlan, rule: &Rule, d: usize, k: usize, seed: u64) -> Result<Self> {
        let learner = start::<f64>(&plan.network, rule, d, k, seed)?;
        let feedback = learner.feedback_state();
        Ok(Self::new(learner.into_network()?, plan, feedback, 0, TrainingReport::none()))
    }

    /// The same with another network in its place.
    pub(super) fn with_network(&self, network: Network<f64>) -> Self {
        let plan = self.plan(self.report.epochs);
        Self::new(network, &plan, self.feedback.clone(), self.steps, self.report.clone())
    }

    /// The network.
    pub fn network(&self) -> &Network<f64> {
        self.predictor.network()
    }

    /// The network, made ready to predict.
    pub(super) fn predictor(&self) -> &Predictor<f64> {
        &self.predictor
    }

    fn in_single_precision(&self) -> Result<&Predictor<f32>> {
        if self.single.get().is_none() {
            let predictor = Predictor::new(self.network().to_precision()?);
            // Another thread may have been faster; both are the same.
            let _ = self.single.set(predictor);
        }
        self.single.get().ok_or(Error::NotFitted)
    }

    /// What it is, as a plan: to train another like it.
    pub fn plan(&self, epochs: usize) -> MemberPlan {
        MemberPlan {
            network: self.network().settings().clone(),
            epochs,
            batch_size: self.batch_size,
            temperature: self.temperature,
            bins: self.bins,
            weight: self.weight,
            curve: self.curve,
        }
    }

    /// What the network says, of the target as it is.
    fn in_targets(&self, predictive: Predictive) -> Predictive {
        let Some(curve) = &self.curve else { return predictive };
        predictive.through(&|z| {
            let (value, slope, _) = curve.unbend(z);
            (value, slope)
        })
    }

    /// A learner that goes on where this network stopped.
    pub(super) fn learner<T: Real>(&self, rule: &Rule) -> Result<Bpc<T>> {
        let mut learner = Bpc::new(self.network().to_precision()?, rule.clone())?;
        learner.restore_feedback_state(self.feedback.0.clone(), self.feedback.1)?;
        Ok(learner)
    }
}

/// Trained networks and the scaling they share.
#[derive(Clone, Debug)]
pub(crate) struct Ensemble {
    pub(super) task: Task,
    pub(super) input_scaling: Standardiser,
    pub(super) target_scaling: Standardiser,
    /// Codes of the columns, by their number of bins.
    pub(super) codes: BTreeMap<usize, Codes>,
    pub(super) members: Vec<Member>,
}

impl Ensemble {
    /// The scaling of these samples, and no networks.
    pub(super) fn untrained(samples: &Samples<'_>, scaling: InputScaling) -> Result<Self> {
        let (inputs, weights) = (samples.inputs(), samples.weights());
        Ok(Self {
            task: samples.task(),
            input_scaling: match scaling {
                InputScaling::Auto | InputScaling::Features => inputs.scaling(weights)?,
                InputScaling::Whole => inputs.whole_scaling(weights)?,
            },
            target_scaling: samples.targets().scaling(weights)?,
            codes: BTreeMap::new(),
            members: Vec::new(),
        })
    }

    /// Make the codes that these plans ask for, where they are not there yet.
    pub(super) fn add_codes(&mut self, samples: &Samples<'_>, plans: &[MemberPlan]) {
        for plan in plans.iter().filter(|plan| plan.bins > 0) {
            let codes = || Codes::fit(samples.inputs(), samples.weights(), plan.bins);
            self.codes.entry(plan.bins).or_insert_with(codes);
        }
    }

    /// Leave out the codes that no network sees.
    pub(super) fn forget_unused_codes(&mut self) {
        self.codes.retain(|&bins, _| self.members.iter().any(|member| member.bins == bins));
    }

    /// Inputs of a network that sees codes of so many bins.
    pub(super) fn width(&self, bins: usize) -> usize {
        self.input_scaling.dim() + self.codes.get(&bins).map_or(0, Codes::width)
    }

    /// The column that each input of such a network tells of.
    pub(super) fn columns(&self, bins: usize) -> Vec<usize> {
        let codes = self.codes.get(&bins).into_iter().flat_map(Codes::columns);
        (0..self.input_scaling.dim()).chain(codes).collect()
    }

    /// Inputs as a network sees them, sample after sample.
    fn encode<T: Real>(&self, inputs: Inputs<'_>, bins: usize) -> Result<Vec<T>> {
        match self.codes.get(&bins) {
            Some(codes) => Ok(codes.encode(inputs, &self.input_scaling)),
            None => inputs.standardised(&self.input_scaling),
        }
    }

    /// Standardise samples, once for all networks that learn from them.
    pub(super) fn standardise<T: Real>(&self, samples: &Samples<'_>, bins: usize) -> Result<Standardised<T>> {
        Ok(Standardised {
            inputs: self.encode(samples.inputs(), bins)?,
            targets: samples.targets().standardised(&self.target_scaling)?,
            weights: samples.weights().map(<[f64]>::to_vec),
            widths: (self.width(bins), self.target_scaling.dim()),
        })
    }

    /// The same for all the codes that are seen.
    pub(super) fn standardise_all<T: Real>(
        &self,
        samples: &Samples<'_>,
        bins: impl Iterator<Item = usize>,
    ) -> Result<BTreeMap<usize, Standardised<T>>> {
        let bins: BTreeSet<usize> = bins.collect();
        bins.into_iter().map(|bins| Ok((bins, self.standardise(samples, bins)?))).collect()
    }

    /// Train a network per plan on these samples, in parallel: from where they are, or from the start if there are
    /// none yet. Where the observer stops the work, those that have learned enough are kept.
    pub(super) fn train(
        &mut self,
        samples: &Samples<'_>,
        plans: &[MemberPlan],
        settings: &ModelSettings,
        work: &Work<'_>,
    ) -> Result<()> {
        self.add_codes(samples, plans);
        let members = match settings.precision {
            Precision::F64 => self.trained::<f64>(samples, plans, settings, work)?,
            Precision::F32 => self.trained::<f32>(samples, plans, settings, work)?,
        };
        self.members = members.into_iter().flatten().collect();
        if self.members.is_empty() || work.waits() { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn trained<T: Real>(
        &self,
        samples: &Samples<'_>,
        plans: &[MemberPlan],
        settings: &ModelSettings,
        work: &Work<'_>,
    ) -> Result<Vec<Option<Member>>> {
        let standardised = self.standardise_all::<T>(samples, plans.iter().map(|plan| plan.bins))?;
        plans
            .par_iter()
            .enumerate()
            .map(|(m, plan)| {
                if work.is_over() {
                    return Ok(None);
                }
                let seed = member_seed(settings.training.seed, m);
                train_member(plan, self.members.get(m), &standardised[&plan.bins], settings, seed, work)
            })
            .collect()
    }

    /// The mixture of all networks, in the units of the data; `change` is what calibration makes of each member's word.
    pub(super) fn predict(
        &self,
        inputs: Inputs<'_>,
        method: Method,
        precision: Precision,
        change: &dyn Fn(Predictive) -> Predictive,
    ) -> Result<Predictive> {
        method.validate()?;
        let mut members: Vec<Option<Predictive>> = vec![None; self.members.len()];
        let bins: BTreeSet<usize> = self.members.iter().map(|member| member.bins).collect();
        for bins in bins {
            let width = self.width(bins);
            let those = self.members.iter().zip(&mut members).filter(|(member, _)| member.bins == bins);
            match precision {
                Precision::F64 => {
                    let packed = self.encode::<f64>(inputs, bins)?;
                    for (member, to) in those {
                        let input = columns(&packed, width);
                        let said = member.predictor.predict_unchecked(input, method)?;
                        *to = Some(member.in_targets(said));
                    }
                }
                Precision::F32 => {
                    let packed = self.encode::<f32>(inputs, bins)?;
                    for (member, to) in those {
                        let input = columns(&packed, width);
                        let said = member.in_single_precision()?.predict_unchecked(input, method)?;
                        *to = Some(member.in_targets(said));
                    }
                }
            }
        }
        let tempered = self.members.iter().zip(members.into_iter().flatten()).map(|(member, predictive)| {
            let own = member.temperature == 1.0;
            (member.weight, change(if own { predictive } else { predictive.tempered(member.temperature) }))
        });
        let mixture = Predictive::weighted_mixture(tempered.collect())?;
        match self.task {
            Task::Regression => mixture.unscale(&self.target_scaling.offset, &self.target_scaling.scale),
            Task::Classification { .. } => Ok(mixture),
        }
    }
}

/// Train one network on samples as it sees them, from where `member` is or from the start. None if it was stopped too
/// early to be of use, or has to be trained elsewhere first.
pub(super) fn train_member<T: Real>(
    plan: &MemberPlan,
    member: Option<&Member>,
    samples: &Standardised<T>,
    settings: &ModelSettings,
    seed: u64,
    work: &Work<'_>,
) -> Result<Option<Member>> {
    if let (None, Some(elsewhere)) = (member, work.elsewhere()) {
        let n = samples.targets.len() / samples.widths.1.max(1);
        let cost = training_cost(plan, &settings.training, samples.widths, n);
        let train = || train_here(plan, None, samples, settings, seed, work);
        return elsewhere.member((plan, seed, settings), samples, cost, train);
    }
    train_here(plan, member, samples, settings, seed, work)
}

fn train_here<T: Real>(
    plan: &MemberPlan,
    member: Option<&Member>,
    samples: &Standardised<T>,
    settings: &ModelSettings,
    seed: u64,
    work: &Work<'_>,
) -> Result<Option<Member>> {
    let rule = rule_of(samples.widths.0, &settings.rule);
    let learner = match member {
        Some(member) => member.learner(&rule)?,
        None => start(&plan.network, &rule, samples.widths.0, samples.widths.1, seed)?,
    };
    let training = TrainingSettings { seed, ..plan.training(&settings.training) };
    samples.with_view(plan.curve.as_ref(), |data| train_network(learner, plan, data, &training, work))
}

/// The rule for a network of so many inputs: many are whitened before training, which costs a copy of them, so that
/// their precision need not be factored again and again.
fn rule_of(width: usize, rule: &Rule) -> Rule {
    match rule {
        Rule::Feedback(own) if width >= WIDE => {
            Rule::Feedback(FeedbackSettings { whiten_input: true, ..own.clone() })
        }
        _ => rule.clone(),
    }
}

/// What a network trained in this precision predicts for samples as it sees them.
pub(super) fn predict_member<T: Real>(
    member: &Member,
    samples: &Standardised<T>,
    method: Method,
) -> Result<Predictive> {
    let predictor = Predictor::<T>::new(member.network().to_precision()?);
    let said = predictor.predict_unchecked(columns(&samples.inputs, samples.widths.0), method)?;
    Ok(member.in_targets(said))
}

/// Samples as networks see them.
pub(super) struct Standardised<T> {
    inputs: Vec<T>,
    targets: Vec<T>,
    weights: Option<Vec<f64>>,
    /// Features and targets.
    widths: (usize, usize),
}

impl<T: Real> Standardised<T> {
    /// Targets in double precision, sample after sample.
    pub(super) fn targets(&self) -> impl Iterator<Item = f64> + '_ {
        self.targets.iter().map(|y| y.as_f64())
    }

    /// Weights of the samples.
    pub(super) fn weights(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.targets.len() / self.widths.1.max(1))
            .map(|j| self.weights.as_ref().map_or(1.0, |weights| weights[j]))
    }

    /// Everything that is learned from, in double precision.
    pub(super) fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        let weights = self.weights.iter().flatten().copied();
        self.inputs.iter().chain(&self.targets).map(|x| x.as_f64()).chain(weights)
    }

    /// The same with some inputs taken from other samples.
    pub(super) fn shuffled(&self, inputs: &[usize], order: &[usize]) -> Self {
        let mut shuffled = self.inputs.clone();
        let d = self.widths.0;
        for (j, &from) in order.iter().enumerate() {
            for &i in inputs {
                shuffled[j * d + i] = self.inputs[from * d + i];
            }
        }
        Self {
            inputs: shuffled,
            targets: self.targets.clone(),
            weights: self.weights.clone(),
            widths: self.widths,
        }
    }

    pub(super) fn view(&self) -> Result<Dataset<'_, T>> {
        self.view_of(&self.targets)
    }

    fn view_of<'a>(&'a self, targets: &'a [T]) -> Result<Dataset<'a, T>> {
        let data = Dataset::new(columns(&self.inputs, self.widths.0), columns(targets, self.widths.1))?;
        self.weights.as_ref().map_or(Ok(data), |weights| data.with_weights(weights))
    }

    /// Do something with the samples as a network sees them that sees its target through this curve.
    pub(super) fn with_view<R>(
        &self,
        curve: Option<&LogCurve>,
        and: impl FnOnce(&Dataset<'_, T>) -> Result<R>,
    ) -> Result<R> {
        let Some(curve) = curve else { return and(&self.view()?) };
        let bent: Vec<T> = self.targets.iter().map(|y| T::lit(curve.bend(y.as_f64()))).collect();
        and(&self.view_of(&bent)?)
    }
}

/// Columns of `d` values, one after the other, as the matrix they are.
fn columns<T: Real>(values: &[T], d: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(values, d, values.len().checked_div(d).unwrap_or(0))
}

/// A learner at its start.
fn start<T: Real>(network: &NetworkSettings, rule: &Rule, d: usize, k: usize, seed: u64) -> Result<Bpc<T>> {
    let mut rng = training::init_rng(seed);
    Bpc::new(Network::new(network, d, k, &mut rng)?, rule.clone())
}

/// Train one network; none if it was stopped too early to be of use.
fn train_network<T: Real>(
    mut learner: Bpc<T>,
    plan: &MemberPlan,
    data: &Dataset<'_, T>,
    training: &TrainingSettings,
    work: &Work<'_>,
) -> Result<Option<Member>> {
    let batch = training.batch_size.unwrap_or(data.len()).min(data.len());
    let mut watch = work.of_network(step_cost(
        learner.network().settings(),
        data.input().nrows(),
        data.target().nrows(),
        batch,
    ));
    let report = training::fit(&mut learner, data, training, &mut watch)?;
    watch.end(planned_steps(training, data.len()));
    let needed = (USEFUL * training.epochs as f64).max(1.0);
    if report.end == End::Stopped && (report.epochs as f64) < needed {
        return Ok(None);
    }
    let feedback = learner.feedback_state();
    let network = learner.into_network()?.to_precision()?;
    Ok(Some(Member::new(network, plan, feedback, report.steps, report)))
}

pub(super) fn planned_steps(training: &TrainingSettings, n: usize) -> u64 {
    let batch = training.batch_size.unwrap_or(n).clamp(1, n);
    (training.epochs * (n / batch)) as u64
}

/// Multiply-adds of training a network on `n` samples, roughly.
pub(super) fn training_cost(
    plan: &MemberPlan,
    training: &TrainingSettings,
    (d, k): (usize, usize),
    n: usize,
) -> u64 {
    let training = plan.training(training);
    let batch = training.batch_size.unwrap_or(n).clamp(1, n);
    planned_steps(&training, n) * step_cost(&plan.network, d, k, batch)
}

/// The same of training all of these on `n` samples.
pub(super) fn all_training_cost(
    plans: &[MemberPlan],
    settings: &ModelSettings,
    ensemble: &Ensemble,
    n: usize,
) -> u64 {
    let widths = |plan: &MemberPlan| (ensemble.width(plan.bins), ensemble.target_scaling.dim());
    plans.iter().map(|plan| training_cost(plan, &settings.training, widths(plan), n)).sum()
}

/// Seeds of members are far apart, so that neighbouring seeds of a user share no member.
pub fn member_seed(seed: u64, member: usize) -> u64 {
    seed.wrapping_add((member as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}
