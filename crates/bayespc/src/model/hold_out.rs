//! Samples held out: some to train on, others to judge by.

use faer::{Mat, MatRef};
use rand::seq::SliceRandom;

use crate::error::Result;
use crate::model::{Model, ModelSettings, Targets, Unwatched};
use crate::prediction::Predictive;
use crate::real::Real;

/// One division of the samples into those to train on and those to judge by.
pub(crate) struct HoldOut<S: Real> {
    pub(crate) train: (Mat<S>, Selected),
    pub(crate) train_weights: Option<Vec<f64>>,
    pub(crate) test: (Mat<S>, Selected),
    /// Weights of the held-out samples.
    pub(crate) shares: Vec<f64>,
}

impl<S: Real> HoldOut<S> {
    /// Hold out `held_out` of `n` samples, by a shuffle of its own for every `stream` of the seed.
    pub(crate) fn new(
        input: MatRef<'_, S>,
        targets: &Targets<'_>,
        weights: Option<&[f64]>,
        (seed, stream): (u64, u64),
        (n, held_out): (usize, usize),
    ) -> Self {
        let mut order: Vec<usize> = (0..input.ncols()).collect();
        order.shuffle(&mut crate::base::random::stream(seed, stream));
        order.truncate(n);
        let (test, train) = order.split_at(held_out);
        let pick = |rows: &[usize]| Mat::from_fn(input.nrows(), rows.len(), |i, j| input[(i, rows[j])]);
        let of = |rows: &[usize]| weights.map(|w| rows.iter().map(|&row| w[row]).collect::<Vec<f64>>());
        Self {
            train: (pick(train), targets.select(train)),
            train_weights: of(train),
            test: (pick(test), targets.select(test)),
            shares: of(test).unwrap_or_else(|| vec![1.0; test.len()]),
        }
    }

    /// Fit on one part and predict the other.
    pub(crate) fn predict(&self, settings: &ModelSettings) -> Result<Predictive> {
        let (input, targets) = &self.train;
        let weights = self.train_weights.as_deref();
        let model = Model::fit(input.as_ref(), targets.view(), weights, settings, &mut Unwatched)?;
        model.predict(self.test.0.as_ref())
    }
}

/// Targets of some of the samples.
pub(crate) enum Selected {
    Values(Mat<f64>),
    Classes(Vec<usize>, usize),
}

impl Selected {
    pub(crate) fn view(&self) -> Targets<'_> {
        match self {
            Self::Values(values) => Targets::Values(values.as_ref()),
            Self::Classes(labels, classes) => Targets::Classes { labels, classes: *classes },
        }
    }
}

impl Targets<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.ncols(),
            Self::Classes { labels, .. } => labels.len(),
        }
    }

    pub(crate) fn select(&self, rows: &[usize]) -> Selected {
        match *self {
            Self::Values(values) => {
                Selected::Values(Mat::from_fn(values.nrows(), rows.len(), |i, j| values[(i, rows[j])]))
            }
            Self::Classes { labels, classes } => {
                Selected::Classes(rows.iter().map(|&row| labels[row]).collect(), classes)
            }
        }
    }
}
