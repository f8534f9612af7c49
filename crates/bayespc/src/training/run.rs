//! The training loop: epochs of shuffled mini-batches or full batches, for any learner.
//!
//! Mini-batches all have one size; what is left over at the end of an epoch waits for the next shuffle.
//! Early stopping watches the log density of held-out samples and keeps the best learner seen.

use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::base::linalg::cast;
use crate::base::parallel::with_company;
use crate::base::random::stream;
use crate::data::{Dataset, OwnedDataset};
use crate::error::{Error, Result};
use crate::learners::{Learner, Step};
use crate::metrics;
use crate::prediction::Method;
use crate::real::Real;

/// Settings of the loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingSettings {
    /// Passes over the data.
    pub epochs: usize,
    /// Samples per batch; `None`, or no fewer than there are: the full batch. In files a number or `"full"`.
    #[serde(with = "batch_size")]
    pub batch_size: Option<usize>,
    /// Seed of initial weights, shuffles and splits.
    pub seed: u64,
    /// Share of the samples held out for validation; 0 for none.
    pub validation_fraction: f64,
    /// Stop after this many validations without a better density; needs `validation_fraction`.
    pub patience: Option<usize>,
    /// Validate every so many epochs.
    pub validate_every: usize,
}

impl Default for TrainingSettings {
    fn default() -> Self {
        Self {
            epochs: 100,
            batch_size: Some(32),
            seed: 0,
            validation_fraction: 0.0,
            patience: None,
            validate_every: 5,
        }
    }
}

impl TrainingSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        if self.batch_size == Some(0) {
            return Err(Error::Setting { name: "training.batch_size", value: 0.0, must_be: "at least 1" });
        }
        if self.validate_every == 0 {
            return Err(Error::Setting {
                name: "training.validate_every",
                value: 0.0,
                must_be: "at least 1",
            });
        }
        if !(0.0..1.0).contains(&self.validation_fraction) {
            return Err(Error::Setting {
                name: "training.validation_fraction",
                value: self.validation_fraction,
                must_be: "in [0, 1)",
            });
        }
        if self.patience.is_some() && self.validation_fraction == 0.0 {
            return Err(Error::Conflict {
                first: "training.patience",
                second: "training.validation_fraction = 0 (nothing to watch)",
            });
        }
        Ok(())
    }
}

/// A batch size in files: a number, or `"full"`, since a format without null cannot say `None`.
mod batch_size {
    use std::fmt;

    use serde::de::{Deserializer, Error, Unexpected, Visitor};
    use serde::ser::Serializer;

    /// The full batch.
    const FULL: &str = "full";

    #[allow(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(size: &Option<usize>, to: S) -> Result<S::Ok, S::Error> {
        match size {
            Some(size) => to.serialize_u64(*size as u64),
            None => to.serialize_str(FULL),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
        from.deserialize_any(SizeVisitor)
    }

    struct SizeVisitor;

    impl Visitor<'_> for SizeVisitor {
        type Value = Option<usize>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a number of samples or \"{FULL}\"")
        }

        fn visit_u64<E: Error>(self, size: u64) -> Result<Self::Value, E> {
            usize::try_from(size).map(Some).map_err(|_| E::invalid_value(Unexpected::Unsigned(size), &self))
        }

        fn visit_i64<E: Error>(self, size: i64) -> Result<Self::Value, E> {
            usize::try_from(size).map(Some).map_err(|_| E::invalid_value(Unexpected::Signed(size), &self))
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
            if word == FULL { Ok(None) } else { Err(E::invalid_value(Unexpected::Str(word), &self)) }
        }

        // JSON's null.
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
}

/// News of one epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochReport {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Epochs planned.
    pub epochs: usize,
    /// Mean over batches of the squared error before each was learned.
    pub loss: f64,
    /// Mean log density of the held-out samples, when it was measured.
    pub validation_density: Option<f64>,
}

/// What an observer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Stop now and keep what has been learned.
    Stop,
}

/// Watches training: progress bars, recorders, keyboard interrupts.
pub trait Observer<T: Real> {
    /// Before the first batch, when the learner has seen the data.
    fn begin(&mut self) {}

    /// After every batch: batches done and planned in all.
    fn step(&mut self, _done: u64, _planned: u64) -> Control {
        Control::Continue
    }

    /// After every epoch.
    fn epoch(&mut self, _report: &EpochReport, _learner: &dyn Learner<T>) -> Result<Control> {
        Ok(Control::Continue)
    }
}

/// The observer that does nothing.
pub struct Silent;

impl<T: Real> Observer<T> for Silent {}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All epochs were run.
    Epochs,
    /// The validation density stopped improving.
    Patience,
    /// An observer asked for it.
    Stopped,
}

/// What training did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingReport {
    /// Epochs run.
    pub epochs: usize,
    /// Batches learned.
    pub steps: u64,
    /// Why it ended.
    pub end: End,
    /// Loss of every epoch.
    pub loss: Vec<f64>,
    /// (epoch, held-out log density), where measured.
    pub validation: Vec<(usize, f64)>,
    /// Epoch of the learner that was kept.
    pub best_epoch: usize,
}

impl TrainingReport {
    /// Of a learner that has not been trained.
    pub(crate) fn none() -> Self {
        Self {
            epochs: 0,
            steps: 0,
            end: End::Epochs,
            loss: Vec::new(),
            validation: Vec::new(),
            best_epoch: 0,
        }
    }
}

/// Streams of the settings' seed.
const INIT_STREAM: u64 = 0;
const SHUFFLE_STREAM: u64 = 1;
const LEARN_STREAM: u64 = 2;

/// The generator of initial weights for a seed.
pub fn init_rng(seed: u64) -> impl Rng {
    stream(seed, INIT_STREAM)
}

/// Train `learner` on `data` from step 1 and let it finish.
pub fn fit<T: Real, L: Learner<T> + Clone>(
    learner: &mut L,
    data: &Dataset<'_, T>,
    settings: &TrainingSettings,
    observer: &mut dyn Observer<T>,
) -> Result<TrainingReport> {
    settings.validate()?;
    let mut rng = stream(settings.seed, SHUFFLE_STREAM);
    let mut order: Vec<usize> = (0..data.len()).collect();
    let n_held_out = held_out(data.len(), settings.validation_fraction)?;
    if n_held_out > 0 {
        order.shuffle(&mut rng);
    }
    let validation = data.gather(&order.split_off(data.len() - n_held_out));
    let owned = (n_held_out > 0).then(|| data.gather(&order));
    let train = owned.as_ref().map_or(*data, OwnedDataset::view);
    let other_input = learner.begin(&train)?;
    let batches = other_input.as_ref().map_or(Ok(train), |input| train.with_input(input.as_ref()))?;
    observer.begin();
    let mut progress = Run::new(&train, settings);
    let mut best: Option<(f64, usize, L)> = None;
    let mut since_best = 0;
    progress.parallel = learner.splits_batch(progress.size);
    with_company(progress.parallel, || -> Result<()> {
        for epoch in 1..=settings.epochs {
            let (loss, control) = progress.epoch(learner, &batches, &mut rng, observer)?;
            progress.report.loss.push(loss);
            progress.report.epochs = epoch;
            let mut density = None;
            if n_held_out > 0 && (epoch % settings.validate_every == 0 || epoch == settings.epochs) {
                let value = held_out_density(learner, &train, &validation.view())?;
                progress.report.validation.push((epoch, value));
                density = Some(value);
                if best.as_ref().is_none_or(|(best, ..)| value > *best) {
                    best = Some((value, epoch, learner.clone()));
                    since_best = 0;
                } else {
                    since_best += 1;
                }
            }
            let report = EpochReport { epoch, epochs: settings.epochs, loss, validation_density: density };
            if control == Control::Stop || observer.epoch(&report, learner)? == Control::Stop {
                progress.report.end = End::Stopped;
                break;
            }
            if settings.patience.is_some_and(|patience| since_best >= patience) {
                progress.report.end = End::Patience;
                break;
            }
        }
        Ok(())
    })?;
    progress.report.best_epoch = progress.report.epochs;
    if let (Some((_, epoch, kept)), Some(_)) = (best, settings.patience) {
        *learner = kept;
        progress.report.best_epoch = epoch;
    }
    drop(other_input);
    learner.finish(&train)?;
    Ok(progress.report)
}

/// Learn from more data of a stream: the same learner, one pass, one schedule that goes on from
/// `steps_done`. `n_seen` counts all samples so far, these included. Returns the steps done.
pub fn partial_fit<T: Real>(
    learner: &mut dyn Learner<T>,
    data: &Dataset<'_, T>,
    settings: &TrainingSettings,
    steps_done: u64,
    n_seen: f64,
) -> Result<u64> {
    settings.validate()?;
    let size = settings.batch_size.unwrap_or(data.len()).min(data.len());
    let mut rng = stream(settings.seed, SHUFFLE_STREAM + 16 + steps_done);
    let mut step = steps_done;
    let order: Vec<usize> = (0..data.len()).collect();
    // The last samples of a stream may not come again: a short batch is learned like any other.
    for samples in order.chunks(size) {
        step += 1;
        let batch = data.gather(samples);
        let place = Step { index: step, total: None, n_total: n_seen, full_batch: false };
        learner.learn(&batch.view(), &place, &mut rng)?;
    }
    Ok(step)
}

/// The loop's own state.
struct Run<T: Real> {
    report: TrainingReport,
    order: Vec<usize>,
    buffer: Option<OwnedDataset<T>>,
    planned: u64,
    size: usize,
    /// Whether several threads share a batch.
    parallel: bool,
    learn_rng: rand::rngs::ChaCha8Rng,
}

impl<T: Real> Run<T> {
    fn new(train: &Dataset<'_, T>, settings: &TrainingSettings) -> Self {
        let size = settings.batch_size.unwrap_or(train.len()).min(train.len());
        let order: Vec<usize> = (0..train.len()).collect();
        Self {
            report: TrainingReport::none(),
            buffer: (size < train.len()).then(|| train.gather(&order[..size])),
            planned: (settings.epochs * (train.len() / size)) as u64,
            order,
            size,
            parallel: false,
            learn_rng: stream(settings.seed, LEARN_STREAM),
        }
    }

    fn epoch(
        &mut self,
        learner: &mut dyn Learner<T>,
        train: &Dataset<'_, T>,
        rng: &mut dyn Rng,
        observer: &mut dyn Observer<T>,
    ) -> Result<(f64, Control)> {
        let full_batch = self.buffer.is_none();
        if !full_batch {
            self.order.shuffle(rng);
        }
        let (mut loss, mut batches) = (0.0, 0.0);
        for samples in self.order.chunks_exact(self.size) {
            self.report.steps += 1;
            let place = Step {
                index: self.report.steps,
                total: Some(self.planned),
                n_total: train.total_weight(),
                full_batch,
            };
            let batch = match &mut self.buffer {
                None => *train,
                Some(buffer) => {
                    buffer.refill(train, samples, self.parallel);
                    buffer.view()
                }
            };
            if batch.total_weight() > 0.0 {
                loss += learner.learn(&batch, &place, &mut self.learn_rng)?;
                batches += 1.0;
            }
            if observer.step(self.report.steps, self.planned) == Control::Stop {
                return Ok((loss / f64::max(batches, 1.0), Control::Stop));
            }
        }
        Ok((loss / f64::max(batches, 1.0), Control::Continue))
    }
}

fn held_out(n: usize, fraction: f64) -> Result<usize> {
    let n_held_out = (n as f64 * fraction).round() as usize;
    if fraction > 0.0 && (n_held_out == 0 || n_held_out == n) {
        return Err(Error::Setting {
            name: "training.validation_fraction",
            value: fraction,
            must_be: "such that both parts have at least one sample",
        });
    }
    Ok(n_held_out)
}

/// Mean log density of held-out samples by a finished copy of the learner.
pub fn held_out_density<T: Real>(
    learner: &dyn Learner<T>,
    train: &Dataset<'_, T>,
    validation: &Dataset<'_, T>,
) -> Result<f64> {
    let predictive = learner.finished_copy(train)?.predict(validation.input(), Method::Linearised)?;
    metrics::log_predictive_density(&predictive, cast(validation.target()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_size_is_a_number_or_full_and_survives_the_way_through_json() {
        for batch_size in [Some(1), Some(32), None] {
            let settings = TrainingSettings { batch_size, ..TrainingSettings::default() };
            let text = serde_json::to_string(&settings).unwrap();
            assert_eq!(serde_json::from_str::<TrainingSettings>(&text).unwrap(), settings, "{text}");
        }
        let size = |text: &str| serde_json::from_str::<TrainingSettings>(text).map(|s| s.batch_size);
        assert_eq!(size("{}").unwrap(), TrainingSettings::default().batch_size);
        assert_eq!(size(r#"{"batch_size": "full"}"#).unwrap(), None);
        assert_eq!(size(r#"{"batch_size": null}"#).unwrap(), None);
        for wrong in [r#"{"batch_size": "all"}"#, r#"{"batch_size": -3}"#, r#"{"batch_size": 1.5}"#] {
            let error = size(wrong).unwrap_err().to_string();
            assert!(error.contains("a number of samples or \"full\""), "{error}");
        }
    }
}
