//! Who watches training, what it hears, and what is reported in the end.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::learners::Learner;
use crate::real::Real;

/// News of one epoch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EpochReport {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Epochs planned.
    pub epochs: usize,
    /// Mean over batches of the squared error before each was learned.
    pub loss: f64,
    /// Mean log-likelihood of the held-out samples, when it was measured.
    pub validation_score: Option<f64>,
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
#[non_exhaustive]
pub enum End {
    /// All epochs were run.
    Epochs,
    /// The held-out samples' likelihood stopped improving.
    Patience,
    /// An observer asked for it.
    Stopped,
}

/// What training did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrainingReport {
    /// Epochs run.
    pub epochs: usize,
    /// Batches learned.
    pub steps: u64,
    /// Why it ended.
    pub end: End,
    /// Loss of every epoch.
    pub loss: Vec<f64>,
    /// (epoch, mean log-likelihood of the held-out samples), where measured.
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
