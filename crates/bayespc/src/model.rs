//! A model: scaling, one or more trained networks, and predictions in the units of the data.
//!
//! This is what the command and the Python package fit, keep and load. Members of an ensemble differ by
//! seed only; the predictive is their equal mixture.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use faer::{Mat, MatRef};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::{Dataset, one_hot};
use crate::error::{Error, Result};
use crate::learners::{Bpc, Rule};
use crate::learning::{self, FreeEnergy};
use crate::linalg::cast;
use crate::network::{Network, NetworkSettings};
use crate::prediction::{self, Method, Predictive};
use crate::real::{Precision, Real};
use crate::scaling::Standardiser;
use crate::training::{self, Control, Observer, TrainingReport, TrainingSettings};

/// Everything that can be set about a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Shape, prior and head.
    pub network: NetworkSettings,
    /// How activities are inferred.
    pub rule: Rule,
    /// Epochs, batches, seed, early stopping.
    pub training: TrainingSettings,
    /// How to predict.
    pub method: Method,
    /// Networks in the ensemble.
    pub members: usize,
    /// τ: class probabilities are those of the one-hot codes' densities to the power 1/τ, normalised.
    pub temperature: f64,
    /// Working precision of activities.
    pub precision: Precision,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            network: NetworkSettings::default(),
            rule: Rule::default(),
            training: TrainingSettings::default(),
            method: Method::default(),
            members: 1,
            temperature: 1.0,
            precision: Precision::default(),
        }
    }
}

impl ModelSettings {
    /// The paper's settings (preset `paper`): relaxation by Adam, learned precisions, 20 Monte Carlo draws.
    pub fn paper() -> Self {
        Self {
            rule: Rule::Relaxation(crate::inference::RelaxationSettings::paper()),
            training: TrainingSettings { batch_size: Some(128), ..TrainingSettings::default() },
            method: Method::monte_carlo(),
            ..Self::default()
        }
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        self.network.validate()?;
        self.rule.validate()?;
        self.training.validate()?;
        self.method.validate()?;
        if self.members == 0 {
            return Err(Error::Setting { name: "members", value: 0.0, must_be: "at least 1" });
        }
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            let must_be = "positive and finite";
            return Err(Error::Setting { name: "temperature", value: self.temperature, must_be });
        }
        Ok(())
    }
}

/// What is being predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Real-valued targets.
    Regression,
    /// One of so many classes.
    Classification {
        /// K.
        classes: usize,
    },
}

/// Targets to learn from.
#[derive(Clone, Copy, Debug)]
pub enum Targets<'a> {
    /// `d × n` real values.
    Values(MatRef<'a, f64>),
    /// A class 0..K per sample.
    Classes {
        /// The classes.
        labels: &'a [usize],
        /// K.
        classes: usize,
    },
}

impl Targets<'_> {
    pub(crate) fn task(&self) -> Task {
        match *self {
            Self::Values(_) => Task::Regression,
            Self::Classes { classes, .. } => Task::Classification { classes },
        }
    }

    fn scaling(&self, weights: Option<&[f64]>) -> Result<Standardiser> {
        match *self {
            Self::Values(values) => fit_scaling("target", values, weights),
            // One-hot codes are compared as they are.
            Self::Classes { classes, .. } => Ok(Standardiser::identity(classes)),
        }
    }

    pub(crate) fn scaled(&self, scaling: &Standardiser) -> Result<Mat<f64>> {
        match *self {
            Self::Values(values) => {
                crate::data::check_finite("target", values)?;
                scaling.apply(values)
            }
            Self::Classes { labels, classes } => one_hot(labels, classes),
        }
    }
}

/// Hears of progress and may stop it.
pub trait Progress: Send {
    /// Batches done and planned, over all members.
    fn update(&mut self, done: u64, planned: u64) -> Control;
}

/// Progress nobody watches.
pub struct Unwatched;

impl Progress for Unwatched {
    fn update(&mut self, _done: u64, _planned: u64) -> Control {
        Control::Continue
    }
}

/// One trained network and what is needed to train it further.
#[derive(Clone, Debug)]
pub struct Member {
    /// The network.
    pub network: Network<f64>,
    /// What the feedback rule knows: C_1 … C_{L−1} and the batches behind them.
    pub feedback: (Vec<Mat<f64>>, u64),
}

/// A fitted model.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) settings: ModelSettings,
    pub(crate) task: Task,
    pub(crate) input_scaling: Standardiser,
    pub(crate) target_scaling: Standardiser,
    pub(crate) temperature: f64,
    pub(crate) members: Vec<Member>,
    pub(crate) steps: u64,
    pub(crate) n_seen: f64,
    pub(crate) notes: BTreeMap<String, String>,
    pub(crate) reports: Vec<TrainingReport>,
}

impl Model {
    /// Fit a model to `input` (`d × n`) and targets.
    pub fn fit<S: Real>(
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        weights: Option<&[f64]>,
        settings: &ModelSettings,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        settings.validate()?;
        let input_scaling = fit_scaling("input", input, weights)?;
        let target_scaling = targets.scaling(weights)?;
        let target = targets.scaled(&target_scaling)?;
        let input = input_scaling.apply(input)?;
        let (members, reports) = match settings.precision {
            Precision::F64 => train::<f64>(&cast(input.as_ref()), &target, weights, settings, progress)?,
            Precision::F32 => {
                train::<f32>(&cast(input.as_ref()), &cast(target.as_ref()), weights, settings, progress)?
            }
        };
        Ok(Self {
            settings: settings.clone(),
            task: targets.task(),
            input_scaling,
            target_scaling,
            temperature: settings.temperature,
            members,
            steps: reports.iter().map(|r| r.steps).max().unwrap_or(0),
            n_seen: weights.map_or(input.ncols() as f64, |w| w.iter().sum()),
            notes: BTreeMap::new(),
            reports,
        })
    }

    /// A model that has learned nothing yet, scaled by the first data of a stream; go on with
    /// [`Model::partial_fit`] on the same data.
    pub fn for_stream<S: Real>(
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        settings: &ModelSettings,
    ) -> Result<Self> {
        settings.validate()?;
        let input_scaling = fit_scaling("input", input, None)?;
        let target_scaling = targets.scaling(None)?;
        let members = (0..settings.members)
            .map(|m| {
                let mut rng = training::init_rng(member_seed(settings.training.seed, m));
                let network = Network::<f64>::new(
                    &settings.network,
                    input_scaling.dim(),
                    target_scaling.dim(),
                    &mut rng,
                )?;
                let feedback = Bpc::new(network.clone(), settings.rule.clone())?.feedback_state();
                Ok(Member { network, feedback })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            settings: settings.clone(),
            task: targets.task(),
            input_scaling,
            target_scaling,
            temperature: settings.temperature,
            members,
            steps: 0,
            n_seen: 0.0,
            notes: BTreeMap::new(),
            reports: Vec::new(),
        })
    }

    /// Learn from more data: one pass, with the scaling of the first data and one schedule over all calls.
    /// Either all members learn, or on an error none has.
    pub fn partial_fit<S: Real>(
        &mut self,
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        weights: Option<&[f64]>,
    ) -> Result<()> {
        if targets.task() != self.task {
            return Err(Error::Conflict { first: "these targets", second: "the task of the first fit" });
        }
        self.check_input(input)?;
        let target = targets.scaled(&self.target_scaling)?;
        let input: Mat<f64> = cast(self.input_scaling.apply(input)?.as_ref());
        let mut data = Dataset::new(input.as_ref(), target.as_ref())?;
        if let Some(weights) = weights {
            data = data.with_weights(weights)?;
        }
        let n_seen = self.n_seen + data.total_weight();
        let continued: Vec<(Member, u64)> = self
            .members
            .par_iter()
            .map(|member| self.continued(member, &data, n_seen))
            .collect::<Result<_>>()?;
        self.steps = continued.iter().map(|(_, steps)| *steps).max().unwrap_or(self.steps);
        self.members = continued.into_iter().map(|(member, _)| member).collect();
        self.n_seen = n_seen;
        Ok(())
    }

    fn continued(&self, member: &Member, data: &Dataset<'_, f64>, n_seen: f64) -> Result<(Member, u64)> {
        let earlier = learning::hidden_curvature_of(&member.network)?;
        let mut learner = Bpc::new(member.network.clone(), self.settings.rule.clone())?;
        learner.restore_feedback_state(member.feedback.0.clone(), member.feedback.1)?;
        let steps = training::partial_fit(&mut learner, data, &self.settings.training, self.steps, n_seen)?;
        let feedback = learner.feedback_state();
        let mut network = learner.into_network()?;
        if matches!(self.settings.rule, Rule::Feedback(_)) {
            learning::settle_stream(&mut network, data, &earlier, data.total_weight() / n_seen)?;
        }
        Ok((Member { network, feedback }, steps))
    }

    /// Predict, in the units of the data, by the method of the settings.
    pub fn predict<S: Real>(&self, input: MatRef<'_, S>) -> Result<Predictive> {
        self.predict_by(input, self.settings.method)
    }

    /// Predict by another method.
    pub fn predict_by<S: Real>(&self, input: MatRef<'_, S>, method: Method) -> Result<Predictive> {
        self.check_input(input)?;
        let input = self.input_scaling.apply(input)?;
        let members = self
            .members
            .iter()
            .map(|member| match self.settings.precision {
                Precision::F64 => prediction::predict(&member.network, cast(input.as_ref()).as_ref(), method),
                Precision::F32 => prediction::predict(
                    &member.network.to_precision::<f32>()?,
                    cast(input.as_ref()).as_ref(),
                    method,
                ),
            })
            .collect::<Result<Vec<_>>>()?;
        Predictive::mixture(members)?.unscale(&self.target_scaling.offset, &self.target_scaling.scale)
    }

    /// Class probabilities, `K × n`.
    pub fn predict_probabilities<S: Real>(&self, input: MatRef<'_, S>) -> Result<Mat<f64>> {
        match self.task {
            Task::Regression => {
                Err(Error::Conflict { first: "class probabilities", second: "a regression model" })
            }
            Task::Classification { .. } => self.predict(input)?.class_probabilities(self.temperature),
        }
    }

    /// Free energy of every layer of every member, on data in original units.
    pub fn free_energy<S: Real>(
        &self,
        input: MatRef<'_, S>,
        targets: Targets<'_>,
    ) -> Result<Vec<Vec<FreeEnergy>>> {
        self.check_input(input)?;
        let target = targets.scaled(&self.target_scaling)?;
        let input: Mat<f64> = cast(self.input_scaling.apply(input)?.as_ref());
        let data = Dataset::new(input.as_ref(), target.as_ref())?;
        self.members.iter().map(|member| learning::free_energy(&member.network, &data)).collect()
    }

    /// Settings the model was fitted with.
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// What it predicts.
    pub fn task(&self) -> Task {
        self.task
    }

    /// Number of input features.
    pub fn n_features(&self) -> usize {
        self.input_scaling.dim()
    }

    /// Number of target columns, or classes.
    pub fn n_targets(&self) -> usize {
        self.target_scaling.dim()
    }

    /// Temperature τ of the class probabilities.
    pub fn temperature(&self) -> f64 {
        self.temperature
    }

    /// Scaling of the inputs.
    pub fn input_scaling(&self) -> &Standardiser {
        &self.input_scaling
    }

    /// Scaling of the targets.
    pub fn target_scaling(&self) -> &Standardiser {
        &self.target_scaling
    }

    /// The trained networks.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// What training did, per member; empty for a loaded model.
    pub fn reports(&self) -> &[TrainingReport] {
        &self.reports
    }

    /// Samples learned from, in all calls.
    pub fn n_seen(&self) -> f64 {
        self.n_seen
    }

    /// Notes kept with the model, such as column names; the library does not read them.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// Notes, to write.
    pub fn notes_mut(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.notes
    }

    pub(crate) fn check_input<S: Real>(&self, input: MatRef<'_, S>) -> Result<()> {
        crate::network::check_input(input, self.n_features())?;
        crate::data::check_finite("input", input)
    }
}

fn fit_scaling<S: Real>(
    what: &'static str,
    values: MatRef<'_, S>,
    weights: Option<&[f64]>,
) -> Result<Standardiser> {
    crate::data::check_finite(what, values)?;
    match weights {
        None => Standardiser::fit(values),
        Some(weights) => Standardiser::fit_weighted(values, weights),
    }
}

/// Train all members, in parallel.
fn train<T: Real>(
    input: &Mat<T>,
    target: &Mat<T>,
    weights: Option<&[f64]>,
    settings: &ModelSettings,
    progress: &mut dyn Progress,
) -> Result<(Vec<Member>, Vec<TrainingReport>)> {
    let mut data = Dataset::new(input.as_ref(), target.as_ref())?;
    if let Some(weights) = weights {
        data = data.with_weights(weights)?;
    }
    let shared = SharedProgress::new(progress, settings.members);
    let trained: Vec<(Member, TrainingReport)> = (0..settings.members)
        .into_par_iter()
        .map(|m| train_member(&data, m, settings, &mut &shared))
        .collect::<Result<_>>()?;
    Ok(trained.into_iter().unzip())
}

fn train_member<T: Real>(
    data: &Dataset<'_, T>,
    m: usize,
    settings: &ModelSettings,
    observer: &mut dyn Observer<T>,
) -> Result<(Member, TrainingReport)> {
    let seed = member_seed(settings.training.seed, m);
    let mut rng = training::init_rng(seed);
    let network = Network::new(&settings.network, data.input().nrows(), data.target().nrows(), &mut rng)?;
    let mut learner = Bpc::<T>::new(network, settings.rule.clone())?;
    let training = TrainingSettings { seed, ..settings.training.clone() };
    let report = training::fit(&mut learner, data, &training, observer)?;
    let feedback = learner.feedback_state();
    let network = learner.into_network()?.to_precision()?;
    Ok((Member { network, feedback }, report))
}

/// Seeds of members are far apart, so that neighbouring seeds of a user share no member.
pub(crate) fn member_seed(seed: u64, member: usize) -> u64 {
    seed.wrapping_add((member as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// One progress for members that train in parallel.
pub(crate) struct SharedProgress<'a> {
    progress: Mutex<&'a mut dyn Progress>,
    done: AtomicU64,
    stopped: AtomicBool,
    members: u64,
}

impl<'a> SharedProgress<'a> {
    pub(crate) fn new(progress: &'a mut dyn Progress, members: usize) -> Self {
        Self {
            progress: Mutex::new(progress),
            done: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            members: members as u64,
        }
    }
}

impl<T: Real> Observer<T> for &SharedProgress<'_> {
    fn step(&mut self, _done: u64, planned: u64) -> Control {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        // Whoever finds the lock free reports; the others go on learning.
        if let Ok(mut progress) = self.progress.try_lock()
            && progress.update(done, planned * self.members) == Control::Stop
        {
            self.stopped.store(true, Ordering::Relaxed);
        }
        if self.stopped.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    }
}
