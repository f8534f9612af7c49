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

use faer::{Accum, Mat};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::heads::Response;
use crate::learning::{Schedule, refresh_is_due};
use crate::linalg::{
    Cholesky, cast, cast_into, inner, mirror_lower, product_into, symmetric_product_into, trace, without_dust,
};
use crate::network::{Activities, Network};
use crate::real::Real;

/// Samples per parallel task: fixed, so that the number of threads cannot change a result.
const CHUNK: usize = 64;

/// Multiply-adds of one chunk below which waking a second thread costs more than it saves.
const PARALLEL_FROM: usize = 2_000_000;

/// Settings of the feedback rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedbackSettings {
    /// s: how much of the error at rest is taken.
    pub gain: f64,
    /// λ: ridge on C_l, relative to its mean eigenvalue.
    pub damping: f64,
    /// Largest root mean square of ε_l in a batch.
    pub trust: f64,
    /// ρ: rate of the running mean C_l.
    pub rate: f64,
    /// κ_t.
    pub schedule: Schedule,
    /// Scale batch statistics by N/|B|, so that the posterior represents N samples.
    pub scale_batches: bool,
    /// k: batches between two refreshes of the hidden layers' V_l and A_l⁻¹. At 1 every step is exact.
    pub refresh_every: u64,
    /// Learn the first layer in coordinates where its column precision, known from all the data beforehand, is
    /// the identity: for wide inputs, and for data that are all there. A stream does not use it.
    pub whiten_input: bool,
}

impl Default for FeedbackSettings {
    fn default() -> Self {
        Self {
            gain: 1.0,
            damping: 0.3,
            trust: 0.2,
            rate: 0.05,
            schedule: Schedule::Cosine { first: 0.3, last: 0.005 },
            scale_batches: true,
            refresh_every: 1,
            whiten_input: false,
        }
    }
}

impl FeedbackSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        let positive = [
            ("feedback.gain", self.gain),
            ("feedback.damping", self.damping),
            ("feedback.trust", self.trust),
        ];
        for (name, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::Setting { name, value, must_be: "positive and finite" });
            }
        }
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            return Err(Error::Setting { name: "feedback.rate", value: self.rate, must_be: "in (0, 1]" });
        }
        if self.refresh_every == 0 {
            return Err(Error::Setting { name: "feedback.refresh_every", value: 0.0, must_be: "at least 1" });
        }
        self.schedule.validate()
    }
}

/// The rule's state and buffers: what it has learned of the feedback, and the batch at hand.
#[derive(Clone, Debug)]
pub struct Feedback<T: Real> {
    /// C_1 … C_{L−1}, lower triangles.
    covariance: Vec<Mat<f64>>,
    steps: u64,
    chunks: Vec<FeedbackChunk<T>>,
    activity: Mat<f64>,
    target: Mat<f64>,
    response: Response,
    damped: Vec<Damped<T>>,
    refreshed: u64,
}

/// A_l with its factor, and A_l⁻¹ where it is kept for several steps.
#[derive(Clone, Debug)]
struct Damped<T: Real> {
    matrix: Mat<f64>,
    factor: Cholesky,
    root: Mat<f64>,
    inverse: Mat<f64>,
    working: Mat<T>,
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
    /// Mᵀ g without the bias row.
    upstream: Vec<Mat<T>>,
    /// Σ g gᵀ over the chunk.
    outer: Vec<Mat<T>>,
    /// Room for a solve in f64.
    wide: Vec<Mat<f64>>,
    weights: Option<Vec<f64>>,
}

impl<T: Real> Feedback<T> {
    /// A rule that has seen no feedback.
    pub fn new(network: &Network<T>) -> Self {
        let widths: Vec<usize> = network.hidden().iter().map(crate::network::Layer::d_post).collect();
        Self {
            covariance: widths.iter().map(|&d| Mat::zeros(d, d)).collect(),
            steps: 0,
            chunks: Vec::new(),
            activity: Mat::new(),
            target: Mat::new(),
            response: Response::zeros(0, 0, 0),
            damped: Vec::new(),
            refreshed: 0,
        }
    }

    /// C_1 … C_{L−1}, without bias correction.
    pub fn covariance(&self) -> Vec<Mat<f64>> {
        let whole = |lower: &Mat<f64>| {
            let mut whole = lower.clone();
            mirror_lower(whole.as_mut());
            whole
        };
        self.covariance.iter().map(whole).collect()
    }

    /// Number of batches seen.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Restore what had been learned of the feedback.
    pub(crate) fn restore(&mut self, covariance: Vec<Mat<f64>>, steps: u64) {
        self.covariance = covariance;
        self.steps = steps;
    }

    /// Infer the activities of a batch; they wait in [`Feedback::chunks`] for the M-step.
    pub fn infer(
        &mut self,
        network: &Network<T>,
        batch: &Dataset<'_, T>,
        settings: &FeedbackSettings,
    ) -> Result<()> {
        self.resize(network, batch);
        let means = network.means();
        let activation = network.settings().activation;
        let parallel = self.is_parallel(network);

        for_each_chunk(&mut self.chunks, parallel, |chunk| {
            let input = batch.input().subcols(chunk.start, chunk.activities.capacity());
            chunk.activities.forward(&means, activation, input);
        });
        self.respond(network, batch);
        let last = means.len() - 1;
        for_each_chunk(&mut self.chunks, parallel, |chunk| {
            for l in (0..last).rev() {
                let (below, above) = chunk.feedback.split_at_mut(l + 1);
                let without_bias = means[l + 1].subcols(0, below[l].nrows());
                product_into(
                    chunk.upstream[l].as_mut(),
                    Accum::Replace,
                    without_bias.transpose(),
                    above[0].as_ref(),
                    T::one(),
                );
                activation.derivative_into(chunk.activities.post[l].as_ref(), below[l].as_mut());
                faer::zip!(&mut below[l], &chunk.upstream[l]).for_each(|faer::unzip!(g, up)| *g *= *up);
                chunk.sum_outer(l);
            }
        });
        self.update_covariance(batch, settings)?;
        self.settle_errors(settings, parallel);
        Ok(())
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

    fn is_parallel(&self, network: &Network<T>) -> bool {
        let weights: usize = network.layers().map(|l| l.d_post() * l.d_pre()).sum();
        self.chunks.len() > 1 && weights * CHUNK > PARALLEL_FROM
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
        network.settings().head.head().respond(
            self.activity.as_ref(),
            self.target.as_ref(),
            batch.weights(),
            &mut self.response,
        );
        for chunk in &mut self.chunks {
            let last = chunk.feedback.len() - 1;
            let n = chunk.activities.capacity();
            faer::zip!(&mut chunk.feedback[last], self.response.feedback.subcols(chunk.start, n))
                .for_each(|faer::unzip!(g, from)| *g = T::lit(*from));
        }
    }

    /// C_l ← (1−ρ) C_l + ρ mean(g gᵀ), then A_l⁻¹ of the bias-corrected, damped C_l.
    fn update_covariance(&mut self, batch: &Dataset<'_, T>, settings: &FeedbackSettings) -> Result<()> {
        self.steps += 1;
        let rate = settings.rate;
        let correction = 1.0 / (1.0 - (1.0 - rate).powf(self.steps as f64));
        let share = rate / batch.total_weight();
        if self.damped.is_empty() {
            for cov in &self.covariance {
                let matrix = Mat::<f64>::identity(cov.nrows(), cov.nrows());
                let factor = Cholesky::new(matrix.as_ref(), "the feedback covariance")?;
                let (root, inverse) = (matrix.clone(), matrix.clone());
                self.damped.push(Damped { matrix, factor, root, inverse, working: Mat::new() });
            }
        }
        let due = refresh_is_due(self.steps, self.refreshed, settings.refresh_every);
        for (l, cov) in self.covariance.iter_mut().enumerate() {
            let d = cov.nrows();
            for j in 0..d {
                let column = &mut cov.col_as_slice_mut(j)[j..];
                let mut keep = 1.0 - rate;
                for chunk in &self.chunks {
                    let outer = &chunk.outer[l].col_as_slice(j)[j..];
                    for (c, o) in column.iter_mut().zip(outer) {
                        *c = without_dust(keep * *c + share * o.as_f64());
                    }
                    keep = 1.0;
                }
            }
            if !due {
                continue;
            }
            let ridge = correction * settings.damping * trace(cov.as_ref()) / d as f64 + 1e-12;
            let damped = &mut self.damped[l];
            for j in 0..d {
                let (to, from) = (&mut damped.matrix.col_as_slice_mut(j)[j..], &cov.col_as_slice(j)[j..]);
                to.iter_mut().zip(from).for_each(|(a, c)| *a = correction * *c);
                to[0] += ridge;
            }
            damped.factor.refactor(damped.matrix.as_ref(), "the feedback covariance")?;
            if settings.refresh_every > 1 || self.chunks.len() > 1 {
                damped.factor.inverse_into(&mut damped.root, &mut damped.inverse);
                damped.working = cast(damped.inverse.as_ref());
            } else {
                damped.working = Mat::new();
            }
        }
        if due {
            self.refreshed = self.steps;
        }
        Ok(())
    }

    /// ε_l = s A_l⁻¹ g_l, shrunk if its root mean square exceeds the trust radius.
    fn settle_errors(&mut self, settings: &FeedbackSettings, parallel: bool) {
        let damped = &self.damped;
        for_each_chunk(&mut self.chunks, parallel, |chunk| {
            for (l, damped) in damped.iter().enumerate() {
                chunk.apply_inverse(l, damped);
            }
        });
        for l in 0..damped.len() {
            let (mut square, mut size) = (0.0, 0.0);
            for chunk in &self.chunks {
                let (chunk_square, weight) = chunk.squared_error(l);
                square += chunk_square;
                size += weight * chunk.errors[l].nrows() as f64;
            }
            let rms = settings.gain * (square / size).sqrt();
            let shrink = settings.gain * (settings.trust / (rms + 1e-30)).min(1.0);
            for chunk in &mut self.chunks {
                for j in 0..chunk.len() {
                    let factor = T::lit(shrink * chunk.weights.as_ref().map_or(1.0, |w| w[j]));
                    chunk.errors[l].col_as_slice_mut(j).iter_mut().for_each(|error| *error *= factor);
                }
            }
        }
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

    /// errors ← A⁻¹ g: by the inverse where it is kept, by the factor otherwise.
    fn apply_inverse(&mut self, l: usize, damped: &Damped<T>) {
        let feedback = self.feedback[l].as_ref();
        if damped.working.nrows() > 0 {
            let inverse = damped.working.as_ref();
            product_into(self.errors[l].as_mut(), Accum::Replace, inverse, feedback, T::one());
        } else {
            if self.wide[l].ncols() != feedback.ncols() {
                self.wide[l] = Mat::zeros(feedback.nrows(), feedback.ncols());
            }
            cast_into(&mut self.wide[l], feedback);
            damped.factor.solve_in_place(self.wide[l].as_mut());
            cast_into(&mut self.errors[l], self.wide[l].as_ref());
        }
    }

    fn new(start: usize, widths: &[usize], n: usize) -> Self {
        let hidden = &widths[1..widths.len() - 1];
        Self {
            start,
            activities: Activities::new(widths, n),
            feedback: widths[1..].iter().map(|&d| Mat::zeros(d, n)).collect(),
            errors: hidden.iter().map(|&d| Mat::zeros(d, n)).collect(),
            upstream: hidden.iter().map(|&d| Mat::zeros(d, n)).collect(),
            outer: hidden.iter().map(|&d| Mat::zeros(d, d)).collect(),
            wide: hidden.iter().map(|_| Mat::new()).collect(),
            weights: None,
        }
    }

    /// Σ w ‖ε_l‖² and Σ w.
    fn squared_error(&self, l: usize) -> (f64, f64) {
        let error = self.errors[l].as_ref();
        match &self.weights {
            None => (inner(error, error).as_f64(), error.ncols() as f64),
            Some(weights) => {
                let square = (0..error.ncols())
                    .map(|j| weights[j] * inner(error.subcols(j, 1), error.subcols(j, 1)).as_f64())
                    .sum();
                (square, weights.iter().sum())
            }
        }
    }

    /// Lower triangle of Σ w g gᵀ.
    fn sum_outer(&mut self, l: usize) {
        let feedback = self.feedback[l].as_ref();
        match &self.weights {
            None => {
                symmetric_product_into(self.outer[l].as_mut(), Accum::Replace, feedback, feedback, T::one());
            }
            Some(weights) => {
                let weighted = Mat::from_fn(feedback.nrows(), feedback.ncols(), |i, j| {
                    T::lit(weights[j]) * feedback[(i, j)]
                });
                symmetric_product_into(
                    self.outer[l].as_mut(),
                    Accum::Replace,
                    weighted.as_ref(),
                    feedback,
                    T::one(),
                );
            }
        }
    }
}

fn for_each_chunk<T: Real>(
    chunks: &mut [FeedbackChunk<T>],
    parallel: bool,
    work: impl Fn(&mut FeedbackChunk<T>) + Sync + Send,
) {
    if parallel {
        chunks.par_iter_mut().for_each(work);
    } else {
        chunks.iter_mut().for_each(work);
    }
}
