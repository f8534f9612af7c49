//! Networks trained side by side on the same standardised samples, and their mixture in the units of the data.

use std::sync::OnceLock;

use faer::{Mat, MatRef};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::observer::{Work, step_cost};
use super::settings::{InputScaling, ModelSettings};
use crate::data::{Dataset, Inputs, Samples, Standardiser, Task};
use crate::error::{Error, Result};
use crate::learners::{Bpc, Rule};
use crate::network::{Network, NetworkSettings};
use crate::prediction::{Method, Predictive, Predictor};
use crate::real::{Precision, Real};
use crate::training::{self, End, TrainingReport, TrainingSettings};

/// A network that was stopped is kept if it has run this share of its epochs.
const USEFUL: f64 = 0.1;

/// What one network is to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberPlan {
    /// Shape, prior and head.
    pub network: NetworkSettings,
    /// Passes over the data.
    pub epochs: usize,
    /// Factor on the covariance of its predictions. For classes that is the temperature of its probabilities.
    pub temperature: f64,
}

impl MemberPlan {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        crate::base::check::positive("member.temperature", self.temperature)?;
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
    /// Batches it has learned from.
    pub steps: u64,
    /// What its training did.
    pub report: TrainingReport,
}

impl Member {
    pub(super) fn new(
        network: Network<f64>,
        feedback: (Vec<Mat<f64>>, u64),
        temperature: f64,
        steps: u64,
        report: TrainingReport,
    ) -> Self {
        let predictor = Predictor::new(network);
        Self { predictor, single: OnceLock::new(), feedback, temperature, steps, report }
    }

    /// A network that has learned nothing yet.
    pub(super) fn untrained(plan: &MemberPlan, rule: &Rule, d: usize, k: usize, seed: u64) -> Result<Self> {
        let learner = start::<f64>(&plan.network, rule, d, k, seed)?;
        let feedback = learner.feedback_state();
        Ok(Self::new(learner.into_network()?, feedback, plan.temperature, 0, TrainingReport::none()))
    }

    /// The network.
    pub fn network(&self) -> &Network<f64> {
        self.predictor.network()
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
        MemberPlan { network: self.network().settings().clone(), epochs, temperature: self.temperature }
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
    pub(super) members: Vec<Member>,
}

impl Ensemble {
    /// The scaling of these samples, and no networks.
    pub(super) fn untrained(samples: &Samples<'_>, scaling: InputScaling) -> Result<Self> {
        let (inputs, weights) = (samples.inputs(), samples.weights());
        Ok(Self {
            task: samples.task(),
            input_scaling: match scaling {
                InputScaling::Features => inputs.scaling(weights)?,
                InputScaling::Whole => inputs.whole_scaling(weights)?,
            },
            target_scaling: samples.targets().scaling(weights)?,
            members: Vec::new(),
        })
    }

    /// Standardise samples, once for all networks that learn from them.
    pub(super) fn standardise<T: Real>(&self, samples: &Samples<'_>) -> Result<Standardised<T>> {
        Ok(Standardised {
            inputs: samples.inputs().standardised(&self.input_scaling)?,
            targets: samples.targets().standardised(&self.target_scaling)?,
            weights: samples.weights().map(<[f64]>::to_vec),
            widths: (self.input_scaling.dim(), self.target_scaling.dim()),
        })
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
        let members = match settings.precision {
            Precision::F64 => self.trained(&self.standardise::<f64>(samples)?, plans, settings, work)?,
            Precision::F32 => self.trained(&self.standardise::<f32>(samples)?, plans, settings, work)?,
        };
        self.members = members.into_iter().flatten().collect();
        if self.members.is_empty() { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn trained<T: Real>(
        &self,
        samples: &Standardised<T>,
        plans: &[MemberPlan],
        settings: &ModelSettings,
        work: &Work<'_>,
    ) -> Result<Vec<Option<Member>>> {
        let data = samples.view()?;
        plans
            .par_iter()
            .enumerate()
            .map(|(m, plan)| {
                if work.is_stopped() {
                    return Ok(None);
                }
                let seed = member_seed(settings.training.seed, m);
                let learner = match self.members.get(m) {
                    Some(member) => member.learner(&settings.rule)?,
                    None => start(&plan.network, &settings.rule, samples.widths.0, samples.widths.1, seed)?,
                };
                let training = TrainingSettings { epochs: plan.epochs, seed, ..settings.training.clone() };
                train_network(learner, plan.temperature, &data, &training, work)
            })
            .collect()
    }

    /// The mixture of all networks, in the units of the data.
    pub(super) fn predict(
        &self,
        inputs: Inputs<'_>,
        method: Method,
        precision: Precision,
    ) -> Result<Predictive> {
        method.validate()?;
        let members = match precision {
            Precision::F64 => {
                let packed = inputs.standardised::<f64>(&self.input_scaling)?;
                let input = columns(&packed, self.input_scaling.dim());
                let one = |member: &Member| member.predictor.predict_unchecked(input, method);
                self.members.iter().map(one).collect::<Result<Vec<_>>>()?
            }
            Precision::F32 => {
                let packed = inputs.standardised::<f32>(&self.input_scaling)?;
                let input = columns(&packed, self.input_scaling.dim());
                let one = |member: &Member| member.in_single_precision()?.predict_unchecked(input, method);
                self.members.iter().map(one).collect::<Result<Vec<_>>>()?
            }
        };
        let tempered = self.members.iter().zip(members).map(|(member, predictive)| {
            if member.temperature == 1.0 { predictive } else { predictive.tempered(member.temperature) }
        });
        let mixture = Predictive::mixture(tempered.collect())?;
        match self.task {
            Task::Regression => mixture.unscale(&self.target_scaling.offset, &self.target_scaling.scale),
            Task::Classification { .. } => Ok(mixture),
        }
    }
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
    pub(super) fn view(&self) -> Result<Dataset<'_, T>> {
        let data = Dataset::new(columns(&self.inputs, self.widths.0), columns(&self.targets, self.widths.1))?;
        self.weights.as_ref().map_or(Ok(data), |weights| data.with_weights(weights))
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
    temperature: f64,
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
    Ok(Some(Member::new(network, feedback, temperature, report.steps, report)))
}

fn planned_steps(training: &TrainingSettings, n: usize) -> u64 {
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
    let training = TrainingSettings { epochs: plan.epochs, ..training.clone() };
    let batch = training.batch_size.unwrap_or(n).clamp(1, n);
    planned_steps(&training, n) * step_cost(&plan.network, d, k, batch)
}

/// The same of training all of these on the samples.
pub(super) fn all_training_cost(
    plans: &[MemberPlan],
    settings: &ModelSettings,
    samples: &Samples<'_>,
) -> u64 {
    let widths = (samples.n_features(), samples.n_outputs());
    plans.iter().map(|plan| training_cost(plan, &settings.training, widths, samples.n_samples())).sum()
}

/// Seeds of members are far apart, so that neighbouring seeds of a user share no member.
pub(super) fn member_seed(seed: u64, member: usize) -> u64 {
    seed.wrapping_add((member as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}
