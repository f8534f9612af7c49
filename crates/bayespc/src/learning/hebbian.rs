//! The Hebbian update: statistics of what inference left in the activities, blended into every posterior.
//!
//! ```text
//! T = ( Σ w φφᵀ , Σ w zφᵀ , Σ w zzᵀ , n )        η ← (1−κ) η + κ (η⁰ + scale · T)
//! ```
//!
//! Statistics are accumulated in `f64` whatever the working precision: batches smaller than a layer are
//! rank deficient, and Ψ⁻¹ is a difference of large matrices.

use faer::{Accum, Mat, MatRef};

use crate::base::linalg::{cast_into, product_into, symmetric_product_into};
use crate::distributions::SufficientStats;
use crate::error::Result;
use crate::heads::Response;
use crate::network::{Activities, Layer, Network, OutputLayer};
use crate::real::Real;

/// Reusable buffers of the M-step.
#[derive(Clone, Debug)]
pub struct Hebbian {
    hidden: Vec<SufficientStats>,
    output: Vec<SufficientStats>,
    pre: Vec<Mat<f64>>,
    post: Vec<Mat<f64>>,
    weighted_pre: Vec<Mat<f64>>,
    weighted_post: Vec<Mat<f64>>,
}

impl Hebbian {
    /// Buffers for a network.
    pub fn new<T: Real>(network: &Network<T>) -> Self {
        let zero = |layer: &Layer<T>| SufficientStats::zero(layer.d_post(), layer.d_pre());
        Self { hidden: network.hidden().iter().map(zero).collect(), ..Self::of_output(network) }
    }

    /// Buffers for nothing.
    pub(crate) fn empty() -> Self {
        Self {
            hidden: Vec::new(),
            output: Vec::new(),
            pre: Vec::new(),
            post: Vec::new(),
            weighted_pre: Vec::new(),
            weighted_post: Vec::new(),
        }
    }

    /// Buffers for the output layer of a network alone.
    pub fn of_output<T: Real>(network: &Network<T>) -> Self {
        let zero = |layer: &Layer<T>| SufficientStats::zero(layer.d_post(), layer.d_pre());
        Self { output: network.output().blocks().iter().map(zero).collect(), ..Self::empty() }
    }

    /// Forget the batch before.
    pub fn clear(&mut self) {
        self.hidden.iter_mut().for_each(clear);
        self.clear_output();
    }

    /// Forget the batch before in the output layer alone.
    pub fn clear_output(&mut self) {
        self.output.iter_mut().for_each(clear);
    }

    /// Add the statistics of inferred activities. `block_weights` (`n_blocks × n`) weighs the samples in
    /// each output block, `sample_weights` in every layer.
    pub fn accumulate<T: Real>(
        &mut self,
        activities: &Activities<T>,
        block_weights: MatRef<'_, f64>,
        sample_weights: Option<&[f64]>,
    ) {
        self.load(activities);
        let count: f64 = sample_weights.map_or(activities.capacity() as f64, |w| w.iter().sum());
        for (l, stats) in self.hidden.iter_mut().enumerate() {
            let (pre, post) = (self.pre[l].as_ref(), self.post[l].as_ref());
            match sample_weights {
                None => accumulate(stats, pre, pre, post, post),
                Some(weights) => {
                    let weighted_pre = weighted_copy(&mut self.weighted_pre[l], pre, |j| weights[j]);
                    let weighted_post = weighted_copy(&mut self.weighted_post[l], post, |j| weights[j]);
                    accumulate(stats, pre, weighted_pre, post, weighted_post);
                }
            }
            stats.count += count;
        }
        let top = self.pre.len() - 1;
        self.add_output(top, block_weights, sample_weights, count);
    }

    /// Add the statistics of the output layer alone: φ̂_{L−1} of a chunk of samples, from `start` on in the
    /// response, and the head's working targets.
    pub fn accumulate_output<T: Real>(
        &mut self,
        activities: &Activities<T>,
        response: &Response,
        start: usize,
        sample_weights: Option<&[f64]>,
    ) {
        let top = activities.pre.len() - 1;
        let n = activities.capacity();
        self.resize(activities);
        cast_into(&mut self.pre[top], activities.pre[top].as_ref());
        self.post[top].copy_from(response.targets.subcols(start, n));
        let count = sample_weights.map_or(n as f64, |w| w.iter().sum());
        self.add_output(top, response.weights.subcols(start, n), sample_weights, count);
    }

    fn add_output(
        &mut self,
        top: usize,
        block_weights: MatRef<'_, f64>,
        sample_weights: Option<&[f64]>,
        count: f64,
    ) {
        let mut start = 0;
        for (b, stats) in self.output.iter_mut().enumerate() {
            let pre = self.pre[top].as_ref();
            let post = self.post[top].subrows(start, stats.d_post());
            start += stats.d_post();
            let weight = |j: usize| block_weights[(b, j)] * sample_weights.map_or(1.0, |w| w[j]);
            if (0..pre.ncols()).all(|j| weight(j) == 1.0) {
                accumulate(stats, pre, pre, post, post);
            } else {
                let weighted_pre = weighted_copy(&mut self.weighted_pre[top], pre, weight);
                let weighted_post = weighted_copy(&mut self.weighted_post[top], post, weight);
                accumulate(stats, pre, weighted_pre, post, weighted_post);
            }
            stats.count += count;
        }
    }

    /// Blend the gathered statistics into the hidden layers alone.
    pub fn blend_hidden<T: Real>(&self, network: &mut Network<T>, rate: f64, scale: f64) -> Result<()> {
        network
            .hidden_mut()
            .iter_mut()
            .zip(&self.hidden)
            .try_for_each(|(layer, stats)| layer.blend(stats, rate, scale))
    }

    /// Blend the gathered statistics into the output layer alone.
    pub fn blend_output<T: Real>(&self, output: &mut OutputLayer<T>, rate: f64, scale: f64) -> Result<()> {
        output.update(|b, block| block.blend(&self.output[b], rate, scale))
    }

    /// Statistics of the output blocks; only lower triangles of the symmetric parts are filled.
    pub(crate) fn into_output(self) -> Vec<SufficientStats> {
        self.output
    }

    fn load<T: Real>(&mut self, activities: &Activities<T>) {
        self.resize(activities);
        let copies =
            self.pre.iter_mut().zip(&activities.pre).chain(self.post.iter_mut().zip(&activities.post));
        for (copy, source) in copies {
            cast_into(copy, source.as_ref());
        }
    }

    fn resize<T: Real>(&mut self, activities: &Activities<T>) {
        if self.pre.first().is_none_or(|pre| pre.ncols() != activities.capacity()) {
            let like = |parts: &[Mat<T>]| parts.iter().map(|m| Mat::zeros(m.nrows(), m.ncols())).collect();
            self.pre = like(&activities.pre);
            self.post = like(&activities.post);
            self.weighted_pre = like(&activities.pre);
            self.weighted_post = like(&activities.post);
        }
    }
}

fn clear(stats: &mut SufficientStats) {
    stats.pre_pre.fill(0.0);
    stats.post_pre.fill(0.0);
    stats.post_post.fill(0.0);
    stats.count = 0.0;
}

/// Columns of `source` times their weights, in the top rows of a buffer.
fn weighted_copy<'a>(
    buffer: &'a mut Mat<f64>,
    source: MatRef<'_, f64>,
    weight: impl Fn(usize) -> f64,
) -> MatRef<'a, f64> {
    for j in 0..source.ncols() {
        let w = weight(j);
        for i in 0..source.nrows() {
            buffer[(i, j)] = w * source[(i, j)];
        }
    }
    buffer.subrows(0, source.nrows())
}

/// Lower triangles of Σ w φφᵀ and Σ w zzᵀ, and Σ w zφᵀ.
fn accumulate(
    stats: &mut SufficientStats,
    pre: MatRef<'_, f64>,
    weighted_pre: MatRef<'_, f64>,
    post: MatRef<'_, f64>,
    weighted_post: MatRef<'_, f64>,
) {
    symmetric_product_into(stats.pre_pre.as_mut(), Accum::Add, weighted_pre, pre, 1.0);
    product_into(stats.post_pre.as_mut(), Accum::Add, post, weighted_pre.transpose(), 1.0);
    symmetric_product_into(stats.post_post.as_mut(), Accum::Add, weighted_post, post, 1.0);
}
