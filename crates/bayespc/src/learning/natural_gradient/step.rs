//! The M-step of hidden layers in its natural-gradient form.
//!
//! A hidden target is M φ + ε, with ε from the feedback rule or from relaxation, so the blended conjugate update
//! moves the mean by the errors alone:
//!
//! ```text
//! η₁ ← (1−κ) η₁ + κ (V⁰⁻¹ + s Σ φφᵀ)          s = N/|B|
//! M  ← M + κ (s Σ ε φᵀ + (M⁰ − M) V⁰⁻¹) V ,   V = η₁⁻¹
//! ```
//!
//! That is exact when V is that of the new η₁. Its factor costs more than everything else in a step, and V
//! changes slowly, so it may be refreshed every k batches: the fixed point stays where it is. In between, φ and the
//! pull to the prior wait for η₁ (`window`). The mean moves by V of the last refresh, corrected for each new sample as
//! if that were the only one since (Sherman–Morrison):
//!
//! ```text
//! M ← M + κ s Σ ε (Vφ)ᵀ / (1 + h) ,   h = κ s φᵀVφ / (1−κ)
//! ```
//!
//! Without the divisor a direction of φ never seen before, where V is still the prior's, would be overshot.
//!
//! Relaxation learns the noise of hidden layers as well (`noise`).

use faer::{Accum, Mat};
use rayon::prelude::*;

use super::error_chunk::{ErrorChunk, total_samples};
use super::noise::NoiseMemory;
use super::whitening::Whitening;
use super::wide::{Seen, WideState};
use super::window::{Window, padded};
use crate::base::linalg::{inner, product_into};
use crate::base::parallel::{for_each_block_if, join_if, splits_product};
use crate::data::Dataset;
use crate::error::Result;
use crate::learning::schedule::refresh_is_due;
use crate::network::{Layer, MovingMean, Network, OutputLayer};
use crate::real::Real;

/// State and buffers of the M-step of all hidden layers.
#[derive(Clone, Debug)]
pub struct NaturalGradient<T: Real> {
    layers: Vec<LayerState<T>>,
    /// The first layer's coordinates while it learns from whitened inputs.
    whitening: Option<Whitening<T>>,
    /// What the hidden layers and the output blocks of a wide network keep; `layers` is then empty.
    wide: Vec<WideState<T>>,
    steps: u64,
    refreshed: u64,
}

/// κ and s of a step.
#[derive(Clone, Copy, Debug)]
pub struct Blend {
    /// κ.
    pub rate: f64,
    /// s = N/|B|, or 1.
    pub scale: f64,
}

impl<T: Real> NaturalGradient<T> {
    /// Nothing learned yet; Ψ of the hidden layers stays as it is.
    pub fn new(network: &Network<T>) -> Self {
        if network.is_wide() {
            let wide = network.layers().map(|_| WideState::new()).collect();
            return Self { layers: Vec::new(), whitening: None, wide, steps: 0, refreshed: 0 };
        }
        let layers = network.hidden().iter().map(LayerState::new).collect();
        Self { layers, whitening: None, wide: Vec::new(), steps: 0, refreshed: 0 }
    }

    /// Nothing learned yet; Ψ of the hidden layers is learned with their means.
    pub fn with_noise(network: &Network<T>) -> Self {
        let mut all = Self::new(network);
        for (state, layer) in all.layers.iter_mut().zip(network.hidden()) {
            state.noise = Some(NoiseMemory::new(layer.d_post()));
        }
        all
    }

    /// Take the first layer to whitened coordinates of `data`, and return the inputs to train on; `None` if
    /// the network has no hidden layer.
    pub fn whiten(&mut self, network: &mut Network<T>, data: &Dataset<'_, T>) -> Result<Option<Mat<T>>> {
        self.settle(network)?;
        let Some(first) = network.hidden_mut().first_mut() else { return Ok(None) };
        if let (Some(state), Some(first)) = (self.wide.first_mut(), first.wide_mut()) {
            state.know(first, data)?;
            return Ok(None);
        }
        let with_noise = self.layers.first().is_some_and(|state| state.noise.is_some());
        let (whitening, input) = Whitening::new(first, data, with_noise)?;
        self.whitening = Some(whitening);
        Ok(Some(input))
    }

    /// Whether η₁ of the first layer is that of all the data, by whitened coordinates or as it is.
    pub fn knows_first(&self) -> bool {
        self.is_whitened() || self.wide.first().is_some_and(WideState::is_known)
    }

    /// Whether the first layer is in whitened coordinates.
    pub fn is_whitened(&self) -> bool {
        self.whitening.is_some()
    }

    /// Whether the last step has renewed V and Ψ.
    pub(crate) fn is_fresh(&self) -> bool {
        self.steps == self.refreshed
    }

    /// Learn from the errors of a batch; V is refreshed if it is `refresh_every` steps old, or young.
    pub fn step<C: ErrorChunk<T>>(
        &mut self,
        layers: &mut [Layer<T>],
        chunks: &[C],
        blend: Blend,
        refresh_every: u64,
        parallel: bool,
    ) -> Result<()> {
        self.steps += 1;
        let due = refresh_is_due(self.steps, self.refreshed, refresh_every);
        if due {
            self.refreshed = self.steps;
        }
        let learn = |(l, (layer, state)): (usize, (&mut Layer<T>, &mut LayerState<T>))| {
            let posterior = layer.moving();
            state.record(posterior, l, chunks, blend);
            if due {
                return state.exact_step(posterior, l, chunks, blend, refresh_every > 1);
            }
            state.stale_step(posterior, l, chunks, blend);
            Ok(())
        };
        let (whitened, others) = layers.split_at_mut(usize::from(self.whitening.is_some()));
        let (whitening, states) = (&mut self.whitening, &mut self.layers[whitened.len()..]);
        let first = whitened.len();
        let ((), learned) = join_if(
            parallel,
            || {
                if let (Some(whitening), [layer]) = (whitening, whitened) {
                    let posterior = layer.moving();
                    whitening.step(posterior, chunks, blend);
                    if due {
                        whitening.hand_over_noise(posterior);
                    }
                }
            },
            || {
                let mut pairs = others.iter_mut().zip(states).enumerate().map(|(i, pair)| (first + i, pair));
                if parallel {
                    pairs.collect::<Vec<_>>().into_par_iter().try_for_each(learn)
                } else {
                    pairs.try_for_each(learn)
                }
            },
        );
        learned
    }

    /// Learn from a batch in every layer of a wide network, output blocks included. `output_error` gives w ε and w of the
    /// samples of a chunk, by the number of the block and of the chunk.
    pub(crate) fn step_wide<C: ErrorChunk<T>>(
        &mut self,
        (hidden, output): (&mut [Layer<T>], &mut OutputLayer<T>),
        chunks: &[C],
        output_error: impl Fn(usize, usize) -> (Mat<T>, Vec<f64>),
        blend: Blend,
        refresh_every: u64,
    ) -> Result<()> {
        self.steps += 1;
        let due = refresh_is_due(self.steps, self.refreshed, refresh_every);
        if due {
            self.refreshed = self.steps;
        }
        let top = hidden.len();
        let (below, above) = self.wide.split_at_mut(top);
        for (l, (layer, state)) in hidden.iter_mut().zip(below).enumerate() {
            let seen: Vec<Seen<'_, T>> = chunks
                .iter()
                .map(|chunk| {
                    let (pre, error) = (chunk.presynaptic(l).as_ref(), chunk.error(l).as_ref());
                    Seen { pre, error, weights: chunk.sample_weights() }
                })
                .collect();
            state.step(layer, &seen, blend, due)?;
        }
        output.update(|b, block| {
            let errors: Vec<_> = (0..chunks.len()).map(|c| output_error(b, c)).collect();
            let seen: Vec<Seen<'_, T>> = chunks
                .iter()
                .zip(&errors)
                .map(|(chunk, (error, weights))| {
                    let pre = chunk.presynaptic(top).as_ref();
                    Seen { pre, error: error.as_ref(), weights: Some(weights) }
                })
                .collect();
            above[b].step(block, &seen, blend, due)
        })
    }

    /// An exact step from sums alone: κ s Σ w φφᵀ (lower triangle) and κ s Σ w ε φᵀ of every layer, of samples of
    /// total weight `weight`. Inputs must not be whitened, nor noise be learned.
    pub(crate) fn absorb(
        &mut self,
        layers: &mut [Layer<T>],
        sums: &[(Mat<f64>, Mat<f64>)],
        weight: f64,
        blend: Blend,
    ) -> Result<()> {
        debug_assert!(self.whitening.is_none(), "whitened inputs have a step of their own");
        self.steps += 1;
        self.refreshed = self.steps;
        for ((layer, state), (pre_pre, gradient)) in layers.iter_mut().zip(&mut self.layers).zip(sums) {
            let posterior = layer.moving();
            state.hand_over(posterior);
            posterior.blend_col_precision(pre_pre, 1.0 - blend.rate, blend.rate * blend.scale * weight);
            posterior.factor()?;
            posterior.step_by_factor(gradient, std::mem::take(&mut state.pull) + blend.rate);
            if state.col_cov.nrows() > 0 {
                posterior.col_cov_into(&mut state.col_cov);
            }
        }
        Ok(())
    }

    /// Bring η₁ of every layer up to date and apply the pull to the prior that is still waiting; inputs are
    /// those of the data again.
    pub fn settle(&mut self, network: &mut Network<T>) -> Result<()> {
        if let (Some(mut whitening), Some(first)) = (self.whitening.take(), network.hidden_mut().first_mut())
        {
            whitening.restore(first.moving())?;
        }
        if !self.wide.is_empty() {
            let (below, above) = self.wide.split_at_mut(network.hidden().len());
            for (layer, state) in network.hidden_mut().iter_mut().zip(below) {
                state.settle(layer)?;
            }
            network.output_mut().update(|b, block| above[b].settle(block))?;
        }
        for (layer, state) in network.hidden_mut().iter_mut().zip(&mut self.layers) {
            if state.pull > 0.0 {
                let nothing = Mat::zeros(layer.d_post(), layer.d_pre());
                let posterior = layer.moving();
                state.hand_over(posterior);
                posterior.factor()?;
                if state.noise.is_some() {
                    posterior.step_with_noise(&nothing, state.pull);
                } else {
                    posterior.step_by_factor(&nothing, state.pull);
                }
                state.pull = 0.0;
                state.col_cov = Mat::new();
            }
        }
        self.refreshed = 0;
        Ok(())
    }
}

/// What one layer keeps between refreshes.
#[derive(Clone, Debug)]
struct LayerState<T: Real> {
    /// V of the last refresh; `0 × 0` before the first.
    col_cov: Mat<T>,
    /// φ of the batches η₁ has not seen yet.
    window: Window<T>,
    /// Σ κ since the last pull to the prior; where the noise is learned, 1 − Π (1−κ).
    pull: f64,
    /// κ s Σ ε φᵀ, `d_post × d_pre`.
    gradient: Mat<T>,
    /// V φ and κ s ε / (1 + h), per chunk.
    lifted: Vec<Mat<T>>,
    weighted: Vec<Mat<T>>,
    /// What Ψ⁻¹ has not seen yet, where it is learned.
    noise: Option<NoiseMemory<T>>,
}

impl<T: Real> LayerState<T> {
    fn new(layer: &Layer<T>) -> Self {
        Self {
            col_cov: Mat::new(),
            window: Window::new(layer.d_pre()),
            pull: 0.0,
            gradient: Mat::zeros(layer.d_post(), layer.d_pre()),
            lifted: Vec::new(),
            weighted: Vec::new(),
            noise: None,
        }
    }

    /// Let a batch wait for η₁, and for Ψ⁻¹ where it is learned.
    fn record<C: ErrorChunk<T>>(
        &mut self,
        posterior: &mut MovingMean<T>,
        l: usize,
        chunks: &[C],
        blend: Blend,
    ) {
        if !self.window.has_room(chunks) {
            self.hand_over(posterior);
        }
        let count = self.window.add(l, chunks, blend);
        match &mut self.noise {
            None => self.pull += blend.rate,
            Some(noise) => {
                // Ψ⁻¹ takes the pull as well as M, and must not take more of it than η₁ has taken of V⁰⁻¹.
                self.pull += (1.0 - self.pull) * blend.rate;
                noise.fade(blend.rate, blend.scale, count);
            }
        }
    }

    /// Hand what waits to η₁, to η₄ and, where it is learned, to Ψ⁻¹.
    fn hand_over(&mut self, posterior: &mut MovingMean<T>) {
        if self.window.hand_over(posterior)
            && let Some(noise) = &mut self.noise
        {
            noise.hand_over(posterior);
        }
    }

    /// A step with V of the new η₁: exact.
    fn exact_step<C: ErrorChunk<T>>(
        &mut self,
        posterior: &mut MovingMean<T>,
        l: usize,
        chunks: &[C],
        blend: Blend,
        keep_col_cov: bool,
    ) -> Result<()> {
        let alpha = T::lit(blend.rate * blend.scale);
        if let Some(noise) = &mut self.noise {
            for chunk in chunks {
                noise.add(chunk.error(l), chunk.error(l), chunk.sample_weights(), alpha);
            }
        }
        self.hand_over(posterior);
        posterior.factor()?;
        let (d_post, d_pre) = (self.gradient.nrows(), self.gradient.ncols());
        let parallel = splits_product(d_pre * d_post * total_samples(chunks));
        for_each_block_if(parallel, self.gradient.as_mut(), |start, block| {
            let width = block.ncols();
            let mut accum = Accum::Replace;
            for chunk in chunks {
                let pre = chunk.presynaptic(l).subrows(start, width);
                product_into(block.as_mut(), accum, chunk.error(l).as_ref(), pre.transpose(), alpha);
                accum = Accum::Add;
            }
        });
        if keep_col_cov && self.col_cov.nrows() == 0 {
            self.col_cov = Mat::zeros(padded(d_pre), d_pre);
        }
        if self.noise.is_some() {
            posterior.step_with_noise(&self.gradient, std::mem::take(&mut self.pull));
            if keep_col_cov {
                posterior.col_cov_into(&mut self.col_cov);
            }
            return Ok(());
        }
        let pull = std::mem::take(&mut self.pull);
        if keep_col_cov {
            posterior.step_by_inverse(&mut self.gradient, pull, &mut self.col_cov);
        } else {
            posterior.step_by_factor(&self.gradient, pull);
        }
        Ok(())
    }

    /// A step with V of the last refresh.
    fn stale_step<C: ErrorChunk<T>>(
        &mut self,
        posterior: &mut MovingMean<T>,
        l: usize,
        chunks: &[C],
        blend: Blend,
    ) {
        let (d_post, d_pre) = (self.gradient.nrows(), self.gradient.ncols());
        let sizes = || chunks.iter().map(ErrorChunk::n_samples);
        if !self.lifted.iter().map(Mat::ncols).eq(sizes()) {
            self.lifted = sizes().map(|n| Mat::zeros(padded(d_pre), n)).collect();
            self.weighted = sizes().map(|n| Mat::zeros(d_post, n)).collect();
        }
        let alpha = blend.rate * blend.scale;
        let (gain, leverage) = (T::lit(alpha), T::lit(alpha / (1.0 - blend.rate).max(1e-3)));
        let col_cov = self.col_cov.as_ref();
        let lift = |((chunk, lifted), weighted): ((&C, &mut Mat<T>), &mut Mat<T>)| {
            let pre = chunk.presynaptic(l).as_ref();
            product_into(lifted.as_mut(), Accum::Replace, col_cov, pre, T::one());
            let error = chunk.error(l);
            for j in 0..chunk.n_samples() {
                let weight = chunk.sample_weights().map_or(T::one(), |w| T::lit(w[j]));
                let height = leverage * weight * inner(pre.subcols(j, 1), lifted.submatrix(0, j, d_pre, 1));
                let factor = gain / (T::one() + height);
                for (to, from) in weighted.col_as_slice_mut(j).iter_mut().zip(error.col_as_slice(j)) {
                    *to = factor * *from;
                }
            }
        };
        let work = chunks.iter().zip(&mut self.lifted).zip(&mut self.weighted);
        if chunks.len() > 1 && splits_product(d_pre * d_pre * chunks[0].n_samples()) {
            chunks.par_iter().zip(&mut self.lifted).zip(&mut self.weighted).for_each(lift);
        } else {
            work.for_each(lift);
        }
        if let Some(noise) = &mut self.noise {
            for (chunk, weighted) in chunks.iter().zip(&self.weighted) {
                noise.add(weighted, chunk.error(l), chunk.sample_weights(), T::one());
            }
        }
        let parallel = splits_product(d_pre * d_post * total_samples(chunks));
        let (lifted, weighted) = (&self.lifted, &self.weighted);
        posterior.change_working_mean(|mean| {
            for_each_block_if(parallel, mean, |start, block| {
                let width = block.ncols();
                for (lifted, weighted) in lifted.iter().zip(weighted) {
                    let lifted = lifted.subrows(start, width).transpose();
                    product_into(block.as_mut(), Accum::Add, weighted.as_ref(), lifted, T::one());
                }
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand::{RngExt, SeedableRng};

    use super::super::error_chunk::Known;
    use super::*;
    use crate::data::Dataset;
    use crate::distributions::SufficientStats;
    use crate::inference::{Feedback, FeedbackChunk, FeedbackSettings};
    use crate::network::NetworkSettings;

    /// A network with one hidden layer, and three inferred batches for it.
    fn setting() -> (Network<f64>, Vec<Vec<FeedbackChunk<f64>>>) {
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(3);
        let settings = NetworkSettings { hidden_layer_sizes: vec![5], ..NetworkSettings::default() };
        let network = Network::new(&settings, 2, 1, &mut rng).unwrap();
        let mut feedback = Feedback::new(&network);
        let batches = (0..3)
            .map(|_| {
                let input = Mat::from_fn(2, 7, |_, _| rng.random_range(-2.0..2.0));
                let target = Mat::from_fn(1, 7, |_, j| input[(0, j)] * input[(1, j)]);
                let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
                feedback.infer(&network, &data, &FeedbackSettings::default()).unwrap();
                feedback.chunks().to_vec()
            })
            .collect();
        (network, batches)
    }

    const BLENDS: [Blend; 3] = [
        Blend { rate: 0.3, scale: 10.0 },
        Blend { rate: 0.2, scale: 10.0 },
        Blend { rate: 0.05, scale: 4.0 },
    ];

    #[test]
    fn a_window_of_batches_equals_one_blend_after_another() {
        let (network, batches) = setting();
        let mut layer = network.hidden()[0].clone();
        let mut expected = layer.natural();
        let mut state = LayerState::new(&layer);
        for (chunks, blend) in batches.iter().zip(BLENDS) {
            state.record(layer.moving(), 0, chunks, blend);
            let pre = chunks[0].activities().pre[0].as_ref();
            let stats = SufficientStats::of(pre, Mat::<f64>::zeros(5, 7).as_ref()).unwrap();
            expected.blend(layer.prior(), &stats, blend.rate, blend.scale).unwrap();
        }
        state.hand_over(layer.moving());
        let found = layer.natural();
        assert_relative_eq!(found.count, expected.count, max_relative = 1e-14);
        for j in 0..3 {
            for i in 0..3 {
                let (found, expected) = (found.pre_pre[(i, j)], expected.pre_pre[(i, j)]);
                assert_relative_eq!(found, expected, max_relative = 1e-13, epsilon = 1e-13);
            }
        }
    }

    #[test]
    fn an_exact_step_is_the_blended_conjugate_update_with_or_without_the_inverse() {
        let (network, batches) = setting();
        for keep_col_cov in [false, true] {
            let mut layer = network.hidden()[0].clone();
            let mut exact = layer.clone();
            let mut state = LayerState::new(&layer);
            for (chunks, blend) in batches.iter().zip(BLENDS) {
                let pre = &chunks[0].activities().pre[0];
                let post = layer.mean() * pre + &chunks[0].errors()[0];
                exact
                    .blend(
                        &SufficientStats::of(pre.as_ref(), post.as_ref()).unwrap(),
                        blend.rate,
                        blend.scale,
                    )
                    .unwrap();
                state.record(layer.moving(), 0, chunks, blend);
                state.exact_step(layer.moving(), 0, chunks, blend, keep_col_cov).unwrap();
                assert!((layer.mean() - exact.mean()).norm_max() < 1e-13);
            }
        }
    }

    #[test]
    fn a_stale_step_with_one_sample_is_exact_but_for_the_pull_to_the_prior() {
        let (network, batches) = setting();
        let mut layer = network.hidden()[0].clone();
        let mut state = LayerState::new(&layer);
        let (first, blend) = (&batches[0], BLENDS[0]);
        state.record(layer.moving(), 0, first, blend);
        state.exact_step(layer.moving(), 0, first, blend, true).unwrap();

        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(4);
        let input = Mat::from_fn(2, 1, |_, _| rng.random_range(-2.0..2.0));
        let target = Mat::from_fn(1, 1, |_, _| 3.0);
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        let mut feedback = Feedback::new(&network);
        feedback.infer(&network, &data, &FeedbackSettings::default()).unwrap();
        let chunks = feedback.chunks();

        // η₁ ← (1−κ) η₁ + κ s φφᵀ, without the prior's share, and the step by its inverse.
        let (rate, scale) = (0.2, 30.0);
        let pre = &chunks[0].activities().pre[0];
        let eta = layer.natural().pre_pre * faer::Scale(1.0 - rate)
            + pre * pre.transpose() * faer::Scale(rate * scale);
        let inverse = crate::base::linalg::Cholesky::new(eta.as_ref(), "η₁").unwrap().inverse();
        let gradient = &chunks[0].errors()[0] * pre.transpose() * faer::Scale(rate * scale);
        // V of the last refresh stands for V/(1−κ): the decay of η₁ itself is left to the next refresh.
        let expected = layer.mean() + gradient * inverse * faer::Scale(1.0 - rate);
        state.stale_step(layer.moving(), 0, chunks, Blend { rate, scale });
        assert!((layer.mean() - expected).norm_max() < 1e-13);
    }

    #[test]
    fn with_the_noise_an_exact_step_is_the_whole_conjugate_update() {
        let (network, _) = setting();
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(8);
        for (weighted, keep_col_cov) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut layer = network.hidden()[0].clone();
            let mut exact = layer.clone();
            let mut state = LayerState::new(&layer);
            state.noise = Some(NoiseMemory::new(5));
            for blend in BLENDS {
                let pre = crate::network::with_bias(
                    Mat::from_fn(2, 7, |_, _| rng.random_range(-2.0..2.0)).as_ref(),
                );
                let plain = Mat::from_fn(5, 7, |_, _| rng.random_range(-1.0..1.0));
                let weights: Vec<f64> =
                    (0..7).map(|j| if weighted { f64::from(j % 3) } else { 1.0 }).collect();
                // A weight counts a sample again: statistics of samples times its root.
                let post = layer.mean() * &pre + &plain;
                let rooted = |m: &Mat<f64>| Mat::from_fn(m.nrows(), 7, |i, j| m[(i, j)] * weights[j].sqrt());
                let mut stats = SufficientStats::of(rooted(&pre).as_ref(), rooted(&post).as_ref()).unwrap();
                stats.count = weights.iter().sum();
                exact.blend(&stats, blend.rate, blend.scale).unwrap();

                let error = Mat::from_fn(5, 7, |i, j| plain[(i, j)] * weights[j]);
                let chunk = [Known { pre, error, weights: weighted.then_some(weights) }];
                state.record(layer.moving(), 0, &chunk, blend);
                state.exact_step(layer.moving(), 0, &chunk, blend, keep_col_cov).unwrap();

                let (found, expected) = (layer.posterior().unwrap(), exact.posterior().unwrap());
                assert!((found.mean() - expected.mean()).norm_max() < 1e-12);
                let scale = expected.noise().inv_scale().norm_max();
                let gap = (found.noise().inv_scale() - expected.noise().inv_scale()).norm_max();
                assert!(gap < 1e-12 * scale, "{gap} beside {scale}");
                assert_relative_eq!(found.dof(), expected.dof(), max_relative = 1e-14);
            }
        }
    }

    #[test]
    fn with_one_sample_the_noise_of_a_stale_step_is_exact_but_for_the_pull_to_the_prior() {
        let (network, batches) = setting();
        let mut layer = network.hidden()[0].clone();
        let mut state = LayerState::new(&layer);
        state.noise = Some(NoiseMemory::new(5));
        state.record(layer.moving(), 0, &batches[0], BLENDS[0]);
        state.exact_step(layer.moving(), 0, &batches[0], BLENDS[0], true).unwrap();

        let pre = Mat::from_fn(3, 1, |i, _| [0.7, -1.2, 1.0][i]);
        let error = Mat::from_fn(5, 1, |i, _| 0.3 * i as f64 - 0.5);
        let (rate, scale) = (0.2, 30.0);
        let before = layer.natural();
        let inv_scale = layer.posterior().unwrap().noise().inv_scale().to_owned();
        // α εεᵀ − ΔM η₁ ΔMᵀ, where η₁ has taken the sample but not the prior's share.
        let alpha = rate * scale;
        let eta = &before.pre_pre * faer::Scale(1.0 - rate) + &pre * pre.transpose() * faer::Scale(alpha);
        let direction = &error * pre.transpose() * faer::Scale(alpha);
        let inverse = crate::base::linalg::Cholesky::new(eta.as_ref(), "η₁").unwrap().inverse();
        let expected = inv_scale * faer::Scale(1.0 - rate)
            + &layer.prior().post_post * faer::Scale(rate)
            + &error * error.transpose() * faer::Scale(alpha)
            - &direction * inverse * direction.transpose();

        let chunk = [Known { pre, error, weights: None }];
        let blend = Blend { rate, scale };
        state.record(layer.moving(), 0, &chunk, blend);
        state.stale_step(layer.moving(), 0, &chunk, blend);
        state.hand_over(layer.moving());
        assert!((layer.posterior().unwrap().noise().inv_scale() - expected).norm_max() < 1e-12);
    }
}
