//! The training loop: epochs of shuffled mini-batches or full batches, for any learner.
//!
//! Mini-batches all have one size; what is left over at the end of an epoch waits for the next shuffle.
//! Early stopping watches the log-likelihood of held-out samples, as the head scores it, and keeps the best learner
//! seen.

use rand::Rng;
use rand::seq::SliceRandom;

use super::observer::{Control, End, EpochReport, Observer, TrainingReport};
use super::settings::TrainingSettings;
use crate::base::linalg::cast;
use crate::base::parallel::with_company;
use crate::base::random::stream;
use crate::data::{Dataset, OwnedDataset};
use crate::error::{Error, Result};
use crate::learners::{Learner, Step};
use crate::real::Real;

/// Streams of the settings' seed.
const INIT_STREAM: u64 = 0;
const SHUFFLE_STREAM: u64 = 1;
const LEARN_STREAM: u64 = 2;

/// The generator of initial weights for a seed.
pub fn init_rng(seed: u64) -> impl Rng {
    stream(seed, INIT_STREAM)
}

/// Train `learner` on `data` from step 1 and let it finish.
pub fn fit<T: Real>(
    learner: &mut dyn Learner<T>,
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
    let mut run = Run::new(&train, settings);
    let mut best: Option<(f64, usize, Box<dyn Learner<T>>)> = None;
    let mut since_best = 0;
    run.parallel = learner.splits_batch(run.size);
    with_company(run.parallel, || -> Result<()> {
        for epoch in 1..=settings.epochs {
            let (loss, control) = run.epoch(learner, &batches, &mut rng, observer)?;
            run.report.loss.push(loss);
            run.report.epochs = epoch;
            let mut score = None;
            if n_held_out > 0 && (epoch % settings.validate_every == 0 || epoch == settings.epochs) {
                let value = held_out_score(learner, &train, &validation.view())?;
                run.report.validation.push((epoch, value));
                score = Some(value);
                if best.as_ref().is_none_or(|(best, ..)| value > *best) {
                    best = Some((value, epoch, learner.boxed_clone()));
                    since_best = 0;
                } else {
                    since_best += 1;
                }
            }
            let report = EpochReport { epoch, epochs: settings.epochs, loss, validation_score: score };
            if control == Control::Stop || observer.epoch(&report, learner)? == Control::Stop {
                run.report.end = End::Stopped;
                break;
            }
            if settings.patience.is_some_and(|patience| since_best >= patience) {
                run.report.end = End::Patience;
                break;
            }
        }
        Ok(())
    })?;
    run.report.best_epoch = run.report.epochs;
    if let (Some((_, epoch, kept)), Some(_)) = (best, settings.patience) {
        learner.restore(kept);
        run.report.best_epoch = epoch;
    }
    drop(other_input);
    learner.finish(&train)?;
    Ok(run.report)
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

/// Score of held-out samples by a finished copy of the learner: the mean log-likelihood that its head gives them.
pub fn held_out_score<T: Real>(
    learner: &dyn Learner<T>,
    train: &Dataset<'_, T>,
    validation: &Dataset<'_, T>,
) -> Result<f64> {
    let predictive = learner.finished_copy(train)?.predict(validation.input(), learner.default_method())?;
    learner.head().score(&predictive, cast(validation.target()).as_ref())
}
