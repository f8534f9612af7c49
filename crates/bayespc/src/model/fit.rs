//! A model: scaling, one or more trained networks, and predictions in the units of the data.
//!
//! This is what the command and the Python package fit, keep and load. Members of an ensemble differ by seed,
//! and by prior and head where the settings have variants; the predictive is their equal mixture.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use faer::{Mat, MatRef};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::data::Standardiser;
use crate::error::{Error, Result};
use crate::heads::HeadSettings;
use crate::learners::{Bpc, Rule};
use crate::learning::{self, FreeEnergy};
use crate::model::calibration::{self, Calibration};
use crate::model::settings::{InputScaling, ModelSettings};
use crate::network::Network;
use crate::prediction::{self, Method, Predictive};
use crate::real::{Precision, Real};
use crate::training::{self, Control, Observer, TrainingReport, TrainingSettings};

/// Samples whose free energy is taken at a time.
const CHUNK: usize = 1024;

/// Parallel tasks over samples: fixed, so that sums have one order whatever the number of threads, and few,
/// because what each keeps stands between blocks of memory that could be used again.
const SPANS: usize = 8;

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

    /// Standardised values or one-hot codes, column after column.
    fn scaled<T: Real>(&self, scaling: &Standardiser) -> Result<Vec<T>> {
        match *self {
            Self::Values(values) => {
                crate::data::check_finite("target", values)?;
                scaling.apply_packed(values)
            }
            Self::Classes { labels, classes } => {
                let mut codes = vec![T::zero(); classes * labels.len()];
                for (row, &label) in labels.iter().enumerate() {
                    if label >= classes {
                        return Err(Error::Label { label, row, classes });
                    }
                    codes[row * classes + label] = T::one();
                }
                Ok(codes)
            }
        }
    }

    /// The targets of samples `start..start + n`.
    fn subset(self, start: usize, n: usize) -> Self {
        match self {
            Self::Values(values) => Self::Values(values.subcols(start, n)),
            Self::Classes { labels, classes } => Self::Classes { labels: &labels[start..start + n], classes },
        }
    }

    fn n_samples(&self) -> usize {
        match self {
            Self::Values(values) => values.ncols(),
            Self::Classes { labels, .. } => labels.len(),
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

impl Member {
    fn of<T: Real>(learner: Bpc<T>) -> Result<Self> {
        let feedback = learner.feedback_state();
        Ok(Self { network: learner.into_network()?.to_precision()?, feedback })
    }

    fn learner<T: Real>(&self, rule: &Rule) -> Result<Bpc<T>> {
        let mut learner = Bpc::new(self.network.to_precision()?, rule.clone())?;
        learner.restore_feedback_state(self.feedback.0.clone(), self.feedback.1)?;
        Ok(learner)
    }
}

/// A fitted model.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) settings: ModelSettings,
    pub(crate) task: Task,
    pub(crate) input_scaling: Standardiser,
    pub(crate) target_scaling: Standardiser,
    pub(crate) temperature: f64,
    /// Conformal scores in rising order, per target; none if the model was not calibrated so.
    pub(crate) scores: Vec<Vec<f64>>,
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
        calibration::calibrated(input, targets, weights, settings, |input, targets, weights| {
            Self::fit_uncalibrated(input, targets, weights, settings, progress)
        })
    }

    /// Fit to all samples, whatever the settings say of calibration.
    pub(crate) fn fit_uncalibrated<S: Real>(
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        weights: Option<&[f64]>,
        settings: &ModelSettings,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        Self::untrained(input, targets, weights, settings)?.train(input, targets, weights, progress)
    }

    /// The scaling of this data, and no members.
    fn untrained<S: Real>(
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        weights: Option<&[f64]>,
        settings: &ModelSettings,
    ) -> Result<Self> {
        settings.validate()?;
        let categorical = |m| matches!(settings.network_of(m).head, HeadSettings::Categorical(_));
        if targets.task() == Task::Regression && (0..settings.members).any(categorical) {
            return Err(Error::Conflict {
                first: "head.kind = categorical",
                second: "targets that are no classes",
            });
        }
        Ok(Self {
            settings: settings.clone(),
            task: targets.task(),
            input_scaling: match settings.input_scaling {
                InputScaling::Features => fit_scaling("input", input, weights)?,
                InputScaling::Whole => {
                    crate::data::check_finite("input", input)?;
                    Standardiser::fit_whole(input, weights)?
                }
            },
            target_scaling: targets.scaling(weights)?,
            temperature: settings.temperature,
            scores: Vec::new(),
            members: Vec::new(),
            steps: 0,
            n_seen: 0.0,
            notes: BTreeMap::new(),
            reports: Vec::new(),
        })
    }

    /// A model that has learned nothing yet, scaled by the first data of a stream; go on with
    /// [`Model::partial_fit`] on the same data. A stream holds nothing out, so the settings must not ask for
    /// calibration.
    pub fn for_stream<S: Real>(
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        settings: &ModelSettings,
    ) -> Result<Self> {
        if settings.calibration != Calibration::None {
            return Err(Error::Conflict {
                first: "calibration on held-out samples",
                second: "a stream, which holds none out (use calibration = none)",
            });
        }
        let mut model = Self::untrained(input, targets, None, settings)?;
        model.members =
            (0..settings.members).map(|m| Member::of(model.new_learner::<f64>(m)?)).collect::<Result<_>>()?;
        Ok(model)
    }

    fn new_learner<T: Real>(&self, m: usize) -> Result<Bpc<T>> {
        let mut rng = training::init_rng(member_seed(self.settings.training.seed, m));
        let network =
            Network::new(&self.settings.network_of(m), self.n_features(), self.n_targets(), &mut rng)?;
        Bpc::new(network, self.settings.rule.clone())
    }

    /// Train all members on this data only, in parallel: from where they are, or from the start if there
    /// are none yet.
    pub(crate) fn train<S: Real>(
        mut self,
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        weights: Option<&[f64]>,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let trained = match self.settings.precision {
            Precision::F64 => self.trained::<S, f64>(input, targets, weights, progress)?,
            Precision::F32 => self.trained::<S, f32>(input, targets, weights, progress)?,
        };
        (self.members, self.reports) = trained.into_iter().unzip();
        self.steps = self.reports.iter().map(|r| r.steps).max().unwrap_or(0);
        self.n_seen = weights.map_or(input.ncols() as f64, |w| w.iter().sum());
        Ok(self)
    }

    fn trained<S: Real, T: Real>(
        &self,
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        weights: Option<&[f64]>,
        progress: &mut dyn Progress,
    ) -> Result<Vec<(Member, TrainingReport)>> {
        // The only copies of the data: standardised, in the working precision.
        let target: Vec<T> = targets.scaled(&self.target_scaling)?;
        let input: Vec<T> = self.input_scaling.apply_packed(input)?;
        let data = self.dataset(&input, &target, weights)?;
        let shared = SharedProgress::new(progress, &self.settings);
        (0..self.settings.members)
            .into_par_iter()
            .map(|m| {
                let seed = member_seed(self.settings.training.seed, m);
                let mut learner = match self.members.get(m) {
                    Some(member) => member.learner(&self.settings.rule)?,
                    None => self.new_learner::<T>(m)?,
                };
                let epochs = self.settings.epochs_of(m);
                let training = TrainingSettings { epochs, seed, ..self.settings.training.clone() };
                let report = training::fit(&mut learner, &data, &training, &mut shared.of_member(epochs))?;
                Ok((Member::of(learner)?, report))
            })
            .collect()
    }

    /// Learn from more data: one pass, with the scaling of the first data and one schedule over all calls.
    /// Either all members learn, or on an error none has. A calibrated model is refused: its calibration would
    /// speak of networks it no longer has.
    pub fn partial_fit<S: Real>(
        &mut self,
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        weights: Option<&[f64]>,
    ) -> Result<()> {
        if targets.task() != self.task {
            return Err(Error::Conflict { first: "these targets", second: "the task of the first fit" });
        }
        if self.settings.calibration != Calibration::None {
            return Err(Error::Conflict {
                first: "the model's calibration on held-out samples",
                second: "learning on from a stream, after which it no longer holds (fit with calibration = none)",
            });
        }
        self.check_input(input)?;
        let target: Vec<f64> = targets.scaled(&self.target_scaling)?;
        let input: Vec<f64> = self.input_scaling.apply_packed(input)?;
        let data = self.dataset(&input, &target, weights)?;
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
        let members: Vec<Predictive> = match self.settings.precision {
            Precision::F64 => {
                let input = self.input_scaling.apply_as::<S, f64>(input)?;
                let one = |member: &Member| prediction::predict(&member.network, input.as_ref(), method);
                self.members.iter().map(one).collect::<Result<_>>()?
            }
            Precision::F32 => {
                let input = self.input_scaling.apply_as::<S, f32>(input)?;
                let one = |member: &Member| {
                    prediction::predict(&member.network.to_precision()?, input.as_ref(), method)
                };
                self.members.iter().map(one).collect::<Result<_>>()?
            }
        };
        let tempered = members.into_iter().enumerate().map(|(m, predictive)| {
            let temperature = self.settings.variant(m).map_or(1.0, |variant| variant.temperature);
            if temperature == 1.0 { predictive } else { predictive.tempered(temperature) }
        });
        let mut predictive = Predictive::mixture(tempered.collect())?;
        if self.task == Task::Regression && self.temperature != 1.0 {
            predictive = predictive.tempered(self.temperature);
        }
        let predictive = predictive.unscale(&self.target_scaling.offset, &self.target_scaling.scale)?;
        Ok(if self.scores.is_empty() { predictive } else { predictive.conformal(&self.scores) })
    }

    /// Predict by this method from now on.
    pub fn set_method(&mut self, method: Method) -> Result<()> {
        method.validate()?;
        self.settings.method = method;
        Ok(())
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

    /// Free energy of every layer of every member, on data in original units; weight 2 counts a sample twice.
    ///
    /// The expected log-likelihood is a sum over samples, so they pass through in chunks: only those are copied.
    pub fn free_energy<S: Real>(
        &self,
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        weights: Option<&[f64]>,
    ) -> Result<Vec<Vec<FreeEnergy>>> {
        self.check_input(input)?;
        let n = input.ncols();
        for (what, found) in
            [("target", targets.n_samples()), ("sample weights", weights.map_or(n, <[f64]>::len))]
        {
            if found != n {
                return Err(Error::Shape { what, axis: "samples", found, expected: n });
            }
        }
        let energy = |range: Range<usize>| -> Result<Option<Vec<Vec<FreeEnergy>>>> {
            let (start, n) = (range.start, range.len());
            let weights = weights.map(|w| &w[range]);
            if weights.is_some_and(|w| w.iter().all(|&weight| weight == 0.0)) {
                return Ok(None);
            }
            let target: Vec<f64> = targets.subset(start, n).scaled(&self.target_scaling)?;
            let input: Vec<f64> = self.input_scaling.apply_packed(input.subcols(start, n))?;
            let data = self.dataset(&input, &target, weights)?;
            self.members
                .iter()
                .map(|member| learning::free_energy(&member.network, &data))
                .collect::<Result<_>>()
                .map(Some)
        };
        let length = n.div_ceil(SPANS).max(CHUNK);
        let spans: Vec<usize> = (0..n).step_by(length).collect();
        let sums: Vec<Option<Vec<Vec<FreeEnergy>>>> = spans
            .into_par_iter()
            .map(|span| {
                let end = (span + length).min(n);
                (span..end)
                    .step_by(CHUNK)
                    .try_fold(None, |sum, start| Ok(joined(sum, energy(start..(start + CHUNK).min(end))?)))
            })
            .collect::<Result<_>>()?;
        let what = "the data with positive sample weight";
        sums.into_iter().fold(None, joined).ok_or(Error::Empty { what })
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

    /// Standardised columns, one after the other, as the data they are.
    fn dataset<'a, T: Real>(
        &self,
        input: &'a [T],
        target: &'a [T],
        weights: Option<&'a [f64]>,
    ) -> Result<Dataset<'a, T>> {
        let columns = |values: &'a [T], d: usize| {
            let n = values.len().checked_div(d).unwrap_or(0);
            MatRef::from_column_major_slice(values, d, n)
        };
        let data = Dataset::new(columns(input, self.n_features()), columns(target, self.n_targets()))?;
        weights.map_or(Ok(data), |weights| data.with_weights(weights))
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

/// Free energies of more samples: the posteriors are the same, the log-likelihoods add.
fn joined(
    sum: Option<Vec<Vec<FreeEnergy>>>,
    part: Option<Vec<Vec<FreeEnergy>>>,
) -> Option<Vec<Vec<FreeEnergy>>> {
    match (sum, part) {
        (Some(mut sum), Some(part)) => {
            for (sum, part) in sum.iter_mut().flatten().zip(part.iter().flatten()) {
                sum.expected_log_likelihood += part.expected_log_likelihood;
            }
            Some(sum)
        }
        (sum, part) => sum.or(part),
    }
}

/// Seeds of members are far apart, so that neighbouring seeds of a user share no member.
fn member_seed(seed: u64, member: usize) -> u64 {
    seed.wrapping_add((member as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// One progress for members that train in parallel.
struct SharedProgress<'a> {
    progress: Mutex<&'a mut dyn Progress>,
    done: AtomicU64,
    stopped: AtomicBool,
    /// Of all members together.
    epochs: usize,
}

/// What one member reports to.
struct MemberProgress<'a, 'b> {
    shared: &'b SharedProgress<'a>,
    epochs: usize,
}

impl<'a> SharedProgress<'a> {
    fn new(progress: &'a mut dyn Progress, settings: &ModelSettings) -> Self {
        Self {
            progress: Mutex::new(progress),
            done: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            epochs: (0..settings.members).map(|m| settings.epochs_of(m)).sum(),
        }
    }

    fn of_member(&self, epochs: usize) -> MemberProgress<'a, '_> {
        MemberProgress { shared: self, epochs }
    }
}

impl<T: Real> Observer<T> for MemberProgress<'_, '_> {
    fn step(&mut self, _done: u64, planned: u64) -> Control {
        let shared = self.shared;
        let done = shared.done.fetch_add(1, Ordering::Relaxed) + 1;
        let planned = planned / self.epochs.max(1) as u64 * shared.epochs as u64;
        // Whoever finds the lock free reports; the others go on learning.
        if let Ok(mut progress) = shared.progress.try_lock()
            && progress.update(done, planned) == Control::Stop
        {
            shared.stopped.store(true, Ordering::Relaxed);
        }
        if shared.stopped.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn normal(d: usize, n: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
        Mat::from_fn(d, n, |_, _| StandardNormal.sample(rng))
    }

    fn settings(head: &str) -> ModelSettings {
        let mut settings = ModelSettings::default();
        settings.network.hidden_layer_sizes = vec![4];
        settings.network.head = serde_json::from_value(serde_json::json!({ "kind": head })).unwrap();
        settings.training.epochs = 3;
        settings
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn the_free_energy_of_a_sample_of_weight_two_is_that_of_the_sample_twice(
            seed: u64, repeated in 0usize..30, head in prop::sample::select(vec!["gaussian", "variance_node"])
        ) {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (x, y) = (normal(2, 30, &mut rng), normal(1, 30, &mut rng));
            let model =
                Model::fit(x.as_ref(), Targets::Values(y.as_ref()), None, &settings(head), &mut Unwatched).unwrap();
            let weights: Vec<f64> = (0..30).map(|j| if j == repeated { 2.0 } else { 1.0 }).collect();
            let twice = |a: &Mat<f64>| Mat::from_fn(a.nrows(), 31, |i, j| a[(i, if j == 30 { repeated } else { j })]);
            let (x2, y2) = (twice(&x), twice(&y));
            let weighted = model.free_energy(x.as_ref(), Targets::Values(y.as_ref()), Some(&weights)).unwrap();
            let plain = model.free_energy(x2.as_ref(), Targets::Values(y2.as_ref()), None).unwrap();
            for (a, b) in weighted[0].iter().zip(&plain[0]) {
                assert_relative_eq!(a.expected_log_likelihood, b.expected_log_likelihood, max_relative = 1e-10);
                assert_eq!(a.complexity, b.complexity);
            }
        }
    }

    #[test]
    fn the_free_energy_in_chunks_is_that_of_all_samples_at_once() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let n = (SPANS + 2) * CHUNK + 17;
        let (x, y) = (normal(2, n, &mut rng), normal(1, n, &mut rng));
        let model = Model::fit(
            x.as_ref().subcols(0, 200),
            Targets::Values(y.as_ref().subcols(0, 200)),
            None,
            &settings("gaussian"),
            &mut Unwatched,
        )
        .unwrap();
        // The first chunk weighs nothing at all.
        let weights: Vec<f64> = (0..n).map(|j| if j < CHUNK { 0.0 } else { 0.5 + (j % 3) as f64 }).collect();
        for weights in [None, Some(&weights[..])] {
            let chunked = model.free_energy(x.as_ref(), Targets::Values(y.as_ref()), weights).unwrap();
            let input: Mat<f64> = model.input_scaling.apply(x.as_ref()).unwrap();
            let target: Mat<f64> = model.target_scaling.apply(y.as_ref()).unwrap();
            let mut data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
            if let Some(weights) = weights {
                data = data.with_weights(weights).unwrap();
            }
            let whole = learning::free_energy(&model.members[0].network, &data).unwrap();
            for (a, b) in chunked[0].iter().zip(&whole) {
                // Sums of n terms in another order: n ε at most.
                assert_relative_eq!(
                    a.expected_log_likelihood,
                    b.expected_log_likelihood,
                    max_relative = 1e-11
                );
                assert_eq!(a.complexity, b.complexity);
            }
        }
    }

    #[test]
    fn weights_that_do_not_fit_the_samples_have_no_free_energy() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let (x, y) = (normal(2, 20, &mut rng), normal(1, 20, &mut rng));
        let targets = Targets::Values(y.as_ref());
        let model = Model::fit(x.as_ref(), targets, None, &settings("gaussian"), &mut Unwatched).unwrap();
        let energy = |weights: &[f64]| model.free_energy(x.as_ref(), targets, Some(weights));
        assert!(matches!(energy(&[1.0; 19]), Err(Error::Shape { what: "sample weights", .. })));
        assert!(matches!(energy(&[0.0; 20]), Err(Error::Empty { .. })));
        assert!(energy(&[-1.0; 20]).is_err());
        let few = Targets::Values(y.as_ref().subcols(0, 19));
        let refused = model.free_energy(x.as_ref(), few, None);
        assert!(matches!(refused, Err(Error::Shape { what: "target", .. })));
    }
}
