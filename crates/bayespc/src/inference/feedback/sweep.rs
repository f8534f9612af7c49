//! Rule "feedback": hidden errors at the self-consistent point, in one forward and one backward sweep.
//!
//! ```text
//! forward    ẑ_l = M_l φ̂_{l−1}
//! feedback   g_L = P e ,   g_l = f′(ẑ_l) ⊙ (M_{l+1}ᵀ g_{l+1})_{without bias}
//! learn      C_l = E[g_l g_lᵀ]  as a running mean (rate ρ, bias-corrected)
//! error      ε_l = s · A_l⁻¹ g_l ,   A_l = C_l + λ tr(C_l)/d_l · I ,   shrunk to the trust radius
//! targets    ẑ_l + ε_l in hidden layers, the head's working targets at the top
//! ```
//!
//! At rest the relaxation rule has ⟨Σ_l⁻¹⟩ ε_l = g_l, and its Wishart update has the unstable fixed point
//! Σ_l⁻¹ = E[g gᵀ]. This rule puts the hidden precision at that point instead of iterating towards it.
//! Everything stays local: presynaptic activity, postsynaptic feedback, one running outer product per layer.

use faer::{Mat, MatRef};

use super::memory::FeedbackMemory;
use super::settings::FeedbackSettings;
use crate::base::linalg::inner;
use crate::base::parallel::{CHUNK, for_each_if, splits_batch};
use crate::data::Dataset;
use crate::error::Result;
use crate::heads::Response;
use crate::learning::ErrorChunk;
use crate::network::{Activities, Layer, Network, back_one_into};
use crate::real::Real;

/// The rule's state and buffers: what it has learned of the feedback, and the batch at hand.
#[derive(Clone, Debug)]
pub struct Feedback<T: Real> {
    memory: FeedbackMemory<T>,
    chunks: Vec<FeedbackChunk<T>>,
    activity: Mat<f64>,
    target: Mat<f64>,
    response: Response,
    /// What is left of the errors of every layer.
    shrink: Vec<f64>,
}

/// Activities, feedback and errors of the samples of one parallel task.
#[derive(Clone, Debug)]
pub struct FeedbackChunk<T: Real> {
    start: usize,
    activities: Activities<T>,
    /// g_1 … g_L.
    feedback: Vec<Mat<T>>,
    /// ε_1 … ε_{L−1}, times the samples' weights.
    errors: Vec<Mat<T>>,
    /// Σ w ‖ε_l‖² before anything is shrunk.
    squares: Vec<f64>,
    /// Room for a solve in f64.
    wide: Vec<Mat<f64>>,
    weights: Option<Vec<f64>>,
}

impl<T: Real> Feedback<T> {
    /// A rule that has seen no feedback.
    pub fn new(network: &Network<T>) -> Self {
        let columns = network.settings().wide_layers;
        let wide = network.is_wide();
        let kept = |layer: &Layer<T>| {
            let width = layer.d_post();
            (width, if wide { columns.feedback_directions(width) } else { width })
        };
        Self {
            memory: FeedbackMemory::new(network.hidden().iter().map(kept)),
            chunks: Vec::new(),
            activity: Mat::new(),
            target: Mat::new(),
            response: Response::zeros(0, 0, 0),
            shrink: Vec::new(),
        }
    }

    /// C_1 … C_{L−1}, without bias correction.
    pub fn covariance(&self) -> Vec<Mat<f64>> {
        self.memory.covariance()
    }

    /// Number of batches seen.
    pub fn steps(&self) -> u64 {
        self.memory.steps()
    }

    /// Restore what had been learned of the feedback.
    pub(crate) fn restore(&mut self, covariance: Vec<Mat<f64>>, steps: u64) {
        self.memory.restore(covariance, steps);
    }

    /// Infer the activities of a batch; they wait in [`Feedback::chunks`] for the M-step.
    pub fn infer(
        &mut self,
        network: &Network<T>,
        batch: &Dataset<'_, T>,
        settings: &FeedbackSettings,
    ) -> Result<()> {
        if !self.sweep(network, batch, settings)? {
            let parallel = splits_batch(network.n_weights(), batch.len());
            self.memory.learn(&self.chunks, settings, false, parallel)?;
        }
        Ok(())
    }

    /// Infer the activities of a batch. True if its feedback has joined the memory: that of a new A⁻¹ has to at
    /// once, other feedback may while layers learn.
    pub(crate) fn sweep(
        &mut self,
        network: &Network<T>,
        batch: &Dataset<'_, T>,
        settings: &FeedbackSettings,
    ) -> Result<bool> {
        self.resize(network, batch);
        let means = network.means();
        let activation = network.settings().activation;
        let parallel = splits_batch(network.n_weights(), batch.len());

        for_each_if(parallel, &mut self.chunks, |chunk| {
            let input = batch.input().subcols(chunk.start, chunk.activities.capacity());
            chunk.activities.forward(&means, activation, input);
        });
        self.respond(network, batch);
        let refresh = self.memory.count_batch(settings.refresh_every);
        let memory = &self.memory;
        let last = means.len() - 1;
        for_each_if(parallel, &mut self.chunks, |chunk| {
            for l in (0..last).rev() {
                let (below, above) = chunk.feedback.split_at_mut(l + 1);
                let (z, above) = (chunk.activities.post[l].as_ref(), above[0].as_ref());
                // The product finds room where the error will be.
                back_one_into(means[l + 1], activation, z, above, &mut chunk.errors[l], &mut below[l]);
                if !refresh {
                    chunk.settle_error(l, memory);
                }
            }
        });
        if refresh {
            self.memory.learn(&self.chunks, settings, true, parallel)?;
            let memory = &self.memory;
            for_each_if(parallel, &mut self.chunks, |chunk| {
                (0..last).for_each(|l| chunk.settle_error(l, memory));
            });
        }
        self.shrink_errors(settings, parallel);
        Ok(refresh)
    }

    /// What a batch left: the memory its feedback may have to join, the chunks and the head's response.
    pub(crate) fn parts(&mut self) -> (&mut FeedbackMemory<T>, &[FeedbackChunk<T>], &Response) {
        (&mut self.memory, &self.chunks, &self.response)
    }

    /// What the rule remembers from batch to batch.
    pub(crate) fn memory_mut(&mut self) -> &mut FeedbackMemory<T> {
        &mut self.memory
    }

    /// What was inferred, a chunk of samples at a time.
    pub fn chunks(&self) -> &[FeedbackChunk<T>] {
        &self.chunks
    }

    /// What the head asks of the output layer for the batch.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Mean squared error of the forward pass on the batch, over the target's own rows.
    pub fn mean_squared_error(&self) -> f64 {
        let (d, n) = (self.target.nrows(), self.target.ncols());
        let mut square = 0.0;
        for j in 0..n {
            for i in 0..d {
                let error = self.target[(i, j)] - self.activity[(i, j)];
                square += error * error;
            }
        }
        square / (d * n) as f64
    }

    fn resize(&mut self, network: &Network<T>, batch: &Dataset<'_, T>) {
        let n = batch.len();
        if self.activity.ncols() != n {
            let widths = network.widths();
            let d_activity = network.output().d_activity();
            self.activity = Mat::zeros(d_activity, n);
            self.target = Mat::zeros(network.n_targets(), n);
            self.response = Response::zeros(d_activity, network.output().blocks().len(), n);
            self.chunks = (0..n)
                .step_by(CHUNK)
                .map(|start| FeedbackChunk::new(start, &widths, CHUNK.min(n - start)))
                .collect();
        }
        for chunk in &mut self.chunks {
            let range = chunk.start..chunk.start + chunk.activities.capacity();
            chunk.weights = batch.weights().map(|w| w[range].to_vec());
        }
    }

    /// g_L from the head, on the whole batch.
    fn respond(&mut self, network: &Network<T>, batch: &Dataset<'_, T>) {
        for chunk in &self.chunks {
            let n = chunk.activities.capacity();
            let output = &chunk.activities.post[chunk.activities.post.len() - 1];
            faer::zip!(self.activity.as_mut().subcols_mut(chunk.start, n), output)
                .for_each(|faer::unzip!(a, out)| *a = out.as_f64());
        }
        faer::zip!(&mut self.target, batch.target()).for_each(|faer::unzip!(t, y)| *t = y.as_f64());
        let head = network.settings().head.head();
        head.respond(self.activity.as_ref(), self.target.as_ref(), &mut self.response);
        let square = squared_error(self.activity.as_ref(), self.target.as_ref(), batch.weights());
        let factor = head.feedback_factor(square / (batch.total_weight() * self.target.nrows() as f64));
        for chunk in &mut self.chunks {
            let last = chunk.feedback.len() - 1;
            let n = chunk.activities.capacity();
            faer::zip!(&mut chunk.feedback[last], self.response.feedback.subcols(chunk.start, n))
                .for_each(|faer::unzip!(g, from)| *g = T::lit(*from * factor));
        }
    }

    /// ε_l = s A_l⁻¹ g_l, shrunk if its root mean square exceeds the trust radius.
    fn shrink_errors(&mut self, settings: &FeedbackSettings, parallel: bool) {
        let total_weight: f64 = self.chunks.iter().map(FeedbackChunk::total_weight).sum();
        let Some(first) = self.chunks.first() else { return };
        self.shrink.clear();
        for (l, error) in first.errors.iter().enumerate() {
            let square: f64 = self.chunks.iter().map(|chunk| chunk.squares[l]).sum();
            let rms = settings.gain * (square / (total_weight * error.nrows() as f64)).sqrt();
            self.shrink.push(settings.gain * (settings.trust / (rms + 1e-30)).min(1.0));
        }
        let shrink = &self.shrink;
        for_each_if(parallel, &mut self.chunks, |chunk| {
            for (error, shrink) in chunk.errors.iter_mut().zip(shrink) {
                for j in 0..error.ncols() {
                    let factor = T::lit(shrink * chunk.weights.as_ref().map_or(1.0, |w| w[j]));
                    error.col_as_slice_mut(j).iter_mut().for_each(|error| *error *= factor);
                }
            }
        });
    }
}

/// Σ w |y − a|² over the rows of the target.
pub(crate) fn squared_error(
    activity: MatRef<'_, f64>,
    target: MatRef<'_, f64>,
    weights: Option<&[f64]>,
) -> f64 {
    let mut square = 0.0;
    for j in 0..target.ncols() {
        let weight = weights.map_or(1.0, |w| w[j]);
        for i in 0..target.nrows() {
            let error = target[(i, j)] - activity[(i, j)];
            square += weight * (error * error);
        }
    }
    square
}

impl<T: Real> ErrorChunk<T> for FeedbackChunk<T> {
    fn n_samples(&self) -> usize {
        self.len()
    }

    fn presynaptic(&self, l: usize) -> &Mat<T> {
        &self.activities.pre[l]
    }

    fn error(&self, l: usize) -> &Mat<T> {
        &self.errors[l]
    }

    fn sample_weights(&self) -> Option<&[f64]> {
        self.weights()
    }
}

impl<T: Real> FeedbackChunk<T> {
    /// Number of the first sample.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.activities.capacity()
    }

    /// There is never a chunk without samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Activities of the forward pass: φ̂_{l−1} in `pre`, ẑ_l in `post`.
    pub fn activities(&self) -> &Activities<T> {
        &self.activities
    }

    /// ε_1 … ε_{L−1}, each times the weights of the samples.
    pub fn errors(&self) -> &[Mat<T>] {
        &self.errors
    }

    /// Weights of the samples, unless all are 1.
    pub fn weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// w (t − a) of some rows of the output, of the block of this number, and the weights w.
    pub(crate) fn output_error(
        &self,
        response: &Response,
        block: usize,
        (first, rows): (usize, usize),
    ) -> (Mat<T>, Vec<f64>) {
        let post = &self.activities.post;
        let (activity, start) = (&post[post.len() - 1], self.start);
        let own = |j: usize| self.weights.as_ref().map_or(1.0, |w| w[j]);
        let weights: Vec<f64> =
            (0..self.len()).map(|j| response.weights[(block, start + j)] * own(j)).collect();
        let error = Mat::from_fn(rows, self.len(), |i, j| {
            let aim = response.targets[(first + i, start + j)];
            T::lit(weights[j] * (aim - activity[(first + i, j)].as_f64()))
        });
        (error, weights)
    }

    /// g_{l+1}.
    pub(super) fn feedback(&self, l: usize) -> MatRef<'_, T> {
        self.feedback[l].as_ref()
    }

    /// Σ w.
    pub(super) fn total_weight(&self) -> f64 {
        self.weights.as_ref().map_or(self.len() as f64, |weights| weights.iter().sum())
    }

    /// ε ← A⁻¹ g and Σ w ‖ε‖².
    fn settle_error(&mut self, l: usize, memory: &FeedbackMemory<T>) {
        memory.damped(l).apply(self.feedback[l].as_ref(), &mut self.errors[l], &mut self.wide[l]);
        let error = self.errors[l].as_ref();
        self.squares[l] = match &self.weights {
            None => inner(error, error).as_f64(),
            Some(weights) => {
                let square = |j: usize| inner(error.subcols(j, 1), error.subcols(j, 1)).as_f64();
                weights.iter().enumerate().map(|(j, weight)| weight * square(j)).sum()
            }
        };
    }

    fn new(start: usize, widths: &[usize], n: usize) -> Self {
        let hidden = &widths[1..widths.len() - 1];
        Self {
            start,
            activities: Activities::new(widths, n),
            feedback: widths[1..].iter().map(|&d| Mat::zeros(d, n)).collect(),
            errors: hidden.iter().map(|&d| Mat::zeros(d, n)).collect(),
            squares: vec![0.0; hidden.len()],
            wide: hidden.iter().map(|_| Mat::new()).collect(),
            weights: None,
        }
    }
}
