//! What a batch says to a network: sums over its samples, and nothing else of them.
//!
//! ```text
//! hidden layer l    Σ w φφᵀ ,  Σ w g φᵀ ,  Σ w g gᵀ       g: feedback, but for the head's factor f of the whole batch
//! output layer      T of every block                      (paper Eq. 7)
//! whole batch       Σ w ,  Σ w |y − a|²
//! ```
//!
//! The error at rest ε = s f A⁻¹ g is linear in the feedback, with f, s and A the same for all samples. So the M-step
//! needs no sample (`absorb`):
//!
//! ```text
//! Σ w ε φᵀ = s f A⁻¹ Σ w g φᵀ ,    Σ w |ε|² = s² f² tr(A⁻¹ (Σ w g gᵀ) A⁻¹) ,    C: Σ w f² g gᵀ
//! ```
//!
//! Sums of parts of a batch add up to those of the batch. As plain numbers they can be kept in a file, sent
//! elsewhere and added there.

use faer::Mat;

use super::packed::{Packer, Unpacker};
use crate::distributions::SufficientStats;
use crate::error::Result;
use crate::network::{Layer, Network};
use crate::real::Real;

/// Sums over the samples of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchStatistics {
    /// Of the hidden layers, from the input up.
    pub(crate) hidden: Vec<HiddenSums>,
    /// Of the output blocks; only lower triangles of the symmetric parts.
    pub(crate) output: Vec<SufficientStats>,
    /// Σ w.
    pub(crate) weight: f64,
    /// Σ w |y − a|² over the target's own rows.
    pub(crate) square: f64,
}

/// Sums of one hidden layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HiddenSums {
    /// Σ w φφᵀ, lower triangle.
    pub(crate) pre_pre: Mat<f64>,
    /// Σ w g φᵀ, `d_post × d_pre`.
    pub(crate) feedback_pre: Mat<f64>,
    /// Σ w g gᵀ, lower triangle.
    pub(crate) feedback_outer: Mat<f64>,
}

impl BatchStatistics {
    /// Of no samples.
    pub fn zero<T: Real>(network: &Network<T>) -> Self {
        let hidden = |layer: &Layer<T>| HiddenSums {
            pre_pre: Mat::zeros(layer.d_pre(), layer.d_pre()),
            feedback_pre: Mat::zeros(layer.d_post(), layer.d_pre()),
            feedback_outer: Mat::zeros(layer.d_post(), layer.d_post()),
        };
        let output = |layer: &Layer<T>| SufficientStats::zero(layer.d_post(), layer.d_pre());
        Self {
            hidden: network.hidden().iter().map(hidden).collect(),
            output: network.output().blocks().iter().map(output).collect(),
            weight: 0.0,
            square: 0.0,
        }
    }

    /// Total weight of the samples.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Add the sums of other samples of the same network.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        crate::base::check::same_length("batch statistics", other.len(), self.len())?;
        for (own, others) in self.hidden.iter_mut().zip(&other.hidden) {
            own.pre_pre += &others.pre_pre;
            own.feedback_pre += &others.feedback_pre;
            own.feedback_outer += &others.feedback_outer;
        }
        for (own, others) in self.output.iter_mut().zip(&other.output) {
            own.add(others)?;
        }
        self.weight += other.weight;
        self.square += other.square;
        Ok(())
    }

    /// As plain numbers, of which those of two batches add up one by one.
    pub fn values(&self) -> Vec<f64> {
        let mut packer = Packer::default();
        self.pack(&mut packer);
        packer.into_values()
    }

    /// From plain numbers, for the network they were made with.
    pub fn from_values<T: Real>(network: &Network<T>, values: &[f64]) -> Result<Self> {
        let mut sums = Self::zero(network);
        crate::base::check::same_length("batch statistics", values.len(), sums.len())?;
        sums.unpack(&mut Unpacker::new(values));
        Ok(sums)
    }

    /// How many plain numbers there are.
    pub(crate) fn len(&self) -> usize {
        let lower = |d: usize| d * (d + 1) / 2;
        let hidden = |sums: &HiddenSums| {
            let (d_post, d_pre) = (sums.feedback_pre.nrows(), sums.feedback_pre.ncols());
            lower(d_pre) + d_post * d_pre + lower(d_post)
        };
        let output = |stats: &SufficientStats| {
            let (d_post, d_pre) = (stats.d_post(), stats.d_pre());
            lower(d_pre) + d_post * d_pre + lower(d_post) + 1
        };
        2 + self.hidden.iter().map(hidden).sum::<usize>() + self.output.iter().map(output).sum::<usize>()
    }

    pub(crate) fn pack(&self, to: &mut Packer) {
        to.number(self.weight);
        to.number(self.square);
        for sums in &self.hidden {
            to.lower(&sums.pre_pre);
            to.whole(&sums.feedback_pre);
            to.lower(&sums.feedback_outer);
        }
        self.output.iter().for_each(|stats| to.statistics(stats));
    }

    pub(crate) fn unpack(&mut self, from: &mut Unpacker<'_>) {
        self.weight = from.number();
        self.square = from.number();
        for sums in &mut self.hidden {
            from.lower(&mut sums.pre_pre);
            from.whole(&mut sums.feedback_pre);
            from.lower(&mut sums.feedback_outer);
        }
        self.output.iter_mut().for_each(|stats| from.statistics(stats));
    }
}
