//! Long work tells an observer what is being done and how far it is, and may be stopped by it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::elsewhere::Elsewhere;
use crate::error::{Error, Result};
use crate::learners::Learner;
use crate::network::NetworkSettings;
use crate::real::Real;
pub use crate::training::Control;
use crate::training::{self, EpochReport};

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Candidates are trained and judged by samples they have not seen.
    Search,
    /// The networks of the ensemble are trained.
    Training,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Search => "choosing settings",
            Self::Training => "training",
        })
    }
}

/// How far long work is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Share of all the work that is done, from 0 to 1. It never falls.
    pub share: f64,
    /// Mean squared error of the last epoch that any network ended.
    pub loss: Option<f64>,
    /// Best mean log density of held-out samples so far.
    pub held_out: Option<f64>,
}

/// Watches long work: progress bars, keyboard interrupts.
pub trait Observer: Send {
    /// Hear of progress; may ask to stop.
    fn update(&mut self, progress: &Progress) -> Control;
}

/// Nobody watches.
impl Observer for () {
    fn update(&mut self, _progress: &Progress) -> Control {
        Control::Continue
    }
}

/// Share of the time that is left which work may be planned for: what it costs is known roughly.
const MARGIN: f64 = 0.8;

/// One piece of work, shared by the threads that do it.
pub(crate) struct Work<'a> {
    watch: Mutex<Watch<'a>>,
    begun: Instant,
    /// Time it may take, if that is limited.
    limit: Option<Duration>,
    /// Who trains networks, if that is somebody else.
    elsewhere: Option<&'a Elsewhere<'a>>,
    done: AtomicU64,
    planned: AtomicU64,
    stopped: AtomicBool,
}

struct Watch<'a> {
    observer: &'a mut dyn Observer,
    progress: Progress,
}

impl<'a> Work<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer) -> Self {
        Self::within(observer, None)
    }

    /// Work that may take so many seconds.
    pub(crate) fn within(observer: &'a mut dyn Observer, seconds: Option<f64>) -> Self {
        let progress = Progress { stage: Stage::Training, share: 0.0, loss: None, held_out: None };
        Self {
            watch: Mutex::new(Watch { observer, progress }),
            begun: Instant::now(),
            // A limit beyond what a duration can say is none.
            limit: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            elsewhere: None,
            done: AtomicU64::new(0),
            planned: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Work whose networks are trained elsewhere.
    pub(crate) fn with_help(observer: &'a mut dyn Observer, elsewhere: &'a Elsewhere<'a>) -> Self {
        Self { elsewhere: Some(elsewhere), ..Self::new(observer) }
    }

    pub(super) fn elsewhere(&self) -> Option<&'a Elsewhere<'a>> {
        self.elsewhere
    }

    /// Whether a network is needed that somebody else has to train first.
    pub(super) fn waits(&self) -> bool {
        self.elsewhere.is_some_and(Elsewhere::waits)
    }

    /// So much more work lies ahead.
    pub(crate) fn plan(&self, cost: u64) {
        self.planned.fetch_add(cost, Ordering::Relaxed);
    }

    /// So much work is left, whatever was planned before.
    pub(crate) fn replan(&self, rest: u64) {
        self.planned.store(self.done.load(Ordering::Relaxed) + rest, Ordering::Relaxed);
        self.report(0);
    }

    /// So much work that was planned need not be done.
    pub(crate) fn skip(&self, cost: u64) {
        self.done.fetch_add(cost, Ordering::Relaxed);
    }

    /// Tell that another stage begins; an error if the observer has asked to stop.
    pub(crate) fn enter(&self, stage: Stage) -> Result<()> {
        self.tell(|progress| progress.stage = stage);
        self.report(0);
        self.check()
    }

    /// Tell how well held-out samples are predicted.
    pub(crate) fn hold_out(&self, density: f64) {
        self.tell(|p| p.held_out = Some(p.held_out.map_or(density, |best| best.max(density))));
    }

    /// An error if the observer has asked to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_stopped() { Err(Error::Interrupted) } else { Ok(()) }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether the time is up.
    pub(crate) fn is_late(&self) -> bool {
        self.limit.is_some_and(|limit| self.begun.elapsed() >= limit)
    }

    /// Whether nothing more is to be begun.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopped() || self.is_late()
    }

    /// Whether work of this cost can be expected to end in time, by what the work so far has taken.
    pub(crate) fn has_time_for(&self, cost: u64) -> bool {
        let Some(limit) = self.limit else { return true };
        let (done, elapsed) = (self.done.load(Ordering::Relaxed) as f64, self.begun.elapsed().as_secs_f64());
        cost as f64 * elapsed <= MARGIN * (limit.as_secs_f64() - elapsed) * done
    }

    /// What watches the training of one network whose steps cost so much each.
    pub(crate) fn of_network(&self, step_cost: u64) -> NetworkWork<'a, '_> {
        NetworkWork { work: self, step_cost, steps: 0 }
    }

    fn tell(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.watch.lock().unwrap_or_else(PoisonError::into_inner).progress);
    }

    pub(super) fn report(&self, cost: u64) -> Control {
        let done = self.done.fetch_add(cost, Ordering::Relaxed) + cost;
        // Whoever finds the lock free reports; the others go on learning.
        if let Ok(mut watch) = self.watch.try_lock() {
            let share = done as f64 / self.planned.load(Ordering::Relaxed).max(1) as f64;
            watch.progress.share = share.min(1.0).max(watch.progress.share);
            let progress = watch.progress;
            if watch.observer.update(&progress) == Control::Stop {
                self.stopped.store(true, Ordering::Relaxed);
            }
        }
        if self.is_over() { Control::Stop } else { Control::Continue }
    }
}

/// Watches the training of one network.
pub(crate) struct NetworkWork<'a, 'b> {
    work: &'b Work<'a>,
    step_cost: u64,
    steps: u64,
}

impl NetworkWork<'_, '_> {
    /// Work of this network that early stopping has saved.
    pub(crate) fn end(self, planned_steps: u64) {
        self.work.skip(planned_steps.saturating_sub(self.steps) * self.step_cost);
    }
}

impl<T: Real> training::Observer<T> for NetworkWork<'_, '_> {
    fn step(&mut self, _done: u64, _planned: u64) -> Control {
        self.steps += 1;
        self.work.report(self.step_cost)
    }

    fn epoch(&mut self, report: &EpochReport, _learner: &dyn Learner<T>) -> Result<Control> {
        self.work.tell(|progress| progress.loss = Some(report.loss));
        if let Some(density) = report.validation_score {
            self.work.hold_out(density);
        }
        Ok(if self.work.is_over() { Control::Stop } else { Control::Continue })
    }
}

/// Multiply-adds of one training step, roughly: products with a batch, and a factorisation per layer.
pub(crate) fn step_cost(network: &NetworkSettings, d_input: usize, d_output: usize, batch: usize) -> u64 {
    let widths = std::iter::once(d_input).chain(network.hidden_layer_sizes.iter().copied());
    let above = network.hidden_layer_sizes.iter().copied().chain([d_output]);
    let cost = |(below, above): (usize, usize)| {
        let (below, above, batch) = (below as u64 + 1, above as u64, batch as u64);
        batch * below * (below + 3 * above) + below * below * (below / 3 + above)
    };
    // No step is free: a little for what is not arithmetic.
    10_000 + widths.zip(above).map(cost).sum::<u64>()
}
