//! Learning in two halves: what a batch says, and what the posterior makes of it.
//!
//! ```text
//! statistics(network, batch) → sums          needs the samples, changes nothing
//! absorb(sums)                               needs no sample, changes the network
//! ```
//!
//! One after the other they are a step of the feedback rule with factors that are renewed at every step
//! (`refresh_every = 1`). Sums of parts of a batch add up, so the first half may be done in pieces, by other threads,
//! processes or machines. What a step between two renewals does, each sample has a share of its own in; it needs the
//! samples themselves.

use faer::Mat;

use super::bpc::{Bpc, Rule};
use super::{Learner, Step};
use crate::base::linalg::mirror_lower;
use crate::base::parallel::over_spans;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::inference::{FeedbackSettings, gather};
use crate::learning::{BatchStatistics, Blend};
use crate::network::Layer;
use crate::real::Real;

impl<T: Real> Bpc<T> {
    /// What a batch says: sums over its samples. Several threads share a large one, in fixed parts.
    pub fn statistics(&self, batch: &Dataset<'_, T>) -> Result<BatchStatistics> {
        self.check_halves()?;
        self.check_batch(batch)?;
        if !self.splits_batch(batch.len()) {
            return Ok(gather(&self.network, batch, 0..batch.len()));
        }
        let mut parts = over_spans(batch.len(), |span| gather(&self.network, batch, span)).into_iter();
        let mut sums = parts.next().ok_or(Error::Empty { what: "the batch" })?;
        parts.try_for_each(|part| sums.add(&part))?;
        Ok(sums)
    }

    /// Learn what a batch has said; returns the mean squared error it had before.
    pub fn absorb(&mut self, sums: &BatchStatistics, step: &Step) -> Result<f64> {
        let settings = self.check_halves()?;
        if !(sums.weight > 0.0) {
            return Err(Error::Empty { what: "the batch, of samples with positive weight" });
        }
        let rate = settings.schedule.rate(step.index, step.total);
        let scale = if settings.scale_batches { step.n_total / sums.weight } else { 1.0 };
        let mean_square = sums.square / (sums.weight * self.network.n_targets() as f64);
        let factor = self.network.settings().head.head().feedback_factor(mean_square);

        // C_l and A_l of the feedback with its factor.
        let outers: Vec<Mat<f64>> = sums
            .hidden
            .iter()
            .map(|layer| {
                let mut outer = &layer.feedback_outer * faer::Scale(factor * factor);
                mirror_lower(outer.as_mut());
                outer
            })
            .collect();
        let memory = self.feedback.memory_mut();
        memory.absorb(&outers, sums.weight, &settings)?;

        let steps: Vec<(Mat<f64>, Mat<f64>)> = sums
            .hidden
            .iter()
            .zip(outers)
            .enumerate()
            .map(|(l, (layer, outer))| {
                // Σ w |A⁻¹ g|² = tr(A⁻¹ G A⁻¹) , G = Σ w g gᵀ
                let d = outer.nrows();
                let mut once = outer;
                memory.solve_in_place(l, once.as_mut());
                let mut twice = once.transpose().to_owned();
                memory.solve_in_place(l, twice.as_mut());
                let square: f64 = (0..d).map(|i| twice[(i, i)]).sum();
                let rms = settings.gain * (square.max(0.0) / (sums.weight * d as f64)).sqrt();
                let shrink = settings.gain * (settings.trust / (rms + 1e-30)).min(1.0);
                let mut gradient = layer.feedback_pre.clone();
                memory.solve_in_place(l, gradient.as_mut());
                let gain = rate * scale * shrink * factor;
                let outer = &layer.pre_pre * faer::Scale(rate * scale);
                (outer, gradient * faer::Scale(gain))
            })
            .collect();
        let (hidden, output) = self.network.layers_mut();
        self.natural_gradient.absorb(hidden, &steps, sums.weight, Blend { rate, scale })?;
        output.update(|b, block| block.blend(&sums.output[b], rate, scale))?;
        Ok(mean_square)
    }

    /// Whether sums are the cheaper way to a step: where samples outnumber the widest layer.
    pub(super) fn sums_are_cheaper(&self, n: usize) -> bool {
        !self.natural_gradient.is_whitened() && self.network.hidden().iter().map(Layer::d_pre).all(|d| n > d)
    }

    /// The feedback rule on inputs as they are; other rules have other halves.
    fn check_halves(&self) -> Result<FeedbackSettings> {
        let Rule::Feedback(settings) = &self.rule else {
            return Err(Error::Conflict { first: "rule = relaxation", second: "learning in two halves" });
        };
        if self.network.is_wide() {
            let second = "learning in two halves (rounds, sums in several places)";
            return Err(Error::Conflict { first: "network.wide_layers other than dense", second });
        }
        if self.natural_gradient.is_whitened() {
            return Err(Error::Conflict { first: "whitened inputs", second: "learning in two halves" });
        }
        Ok(settings.clone())
    }
}
