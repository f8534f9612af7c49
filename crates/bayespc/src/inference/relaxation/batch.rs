//! Relaxation of a training batch in buffers that are reused: the same descent as [`Relaxer`]'s, without what training
//! does not look at, and its errors as the natural-gradient M-step wants them.
//!
//! ```text
//! ε_l = z_l − M_l φ_{l−1} ,   z_l ← z_l − α_l ( ⟨Σ_l⁻¹⟩ ε_l + f′(z_l) ⊙ [ τ d V φ − M_{l+1}ᵀ ⟨Σ_{l+1}⁻¹⟩ ε_{l+1} ] )
//! ```
//!
//! Both ends are clamped and all hidden layers start at the forward pass, where their errors are zero. So the target's
//! error climbs down one layer per step (τ = 0), and no product is made before it arrives.

use faer::{Accum, Mat, MatRef};

use super::descent::{Presynaptic, RelaxationSettings, Relaxer, Sweep};
use super::layers::{Precision, RelaxingLayers};
use super::optimiser::{ActivityOptimiser, ActivityState};
use crate::base::linalg::{inner, product_into};
use crate::base::parallel::{CHUNK, for_each_if, splits_batch};
use crate::data::Dataset;
use crate::error::Result;
use crate::heads::Response;
use crate::inference::clamp::Clamp;
use crate::learning::ErrorChunk;
use crate::network::{Activation, Activities, Network};
use crate::real::Real;

/// The activities of a batch, and what relaxation keeps of the network from one batch to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct RelaxedBatch<T: Real> {
    layers: RelaxingLayers<T>,
    chunks: Vec<RelaxedChunk<T>>,
    response: Option<Response>,
}

/// Samples of one parallel task.
#[derive(Clone, Debug)]
pub(crate) struct RelaxedChunk<T: Real> {
    start: usize,
    /// φ̂ and ẑ of the forward pass.
    forward: Activities<T>,
    /// φ and z of the descent; z_L is the target.
    at_rest: Activities<T>,
    /// ε_1 … ε_L; after the descent those of the M-step, times the samples' weights.
    errors: Vec<Mat<T>>,
    /// ⟨Σ_l⁻¹⟩ ε_l where ⟨Σ_l⁻¹⟩ is not p · I.
    weighted: Vec<Mat<T>>,
    /// What comes from the layer above, and the gradient, of z_1 … z_{L−1}.
    upstream: Vec<Mat<T>>,
    gradients: Vec<Mat<T>>,
    states: Vec<ActivityState<T>>,
    weights: Option<Vec<f64>>,
    presynaptic: Presynaptic,
    /// ‖y − ẑ_L‖².
    square: f64,
}

impl<T: Real> RelaxedBatch<T> {
    /// Relax the activities of a batch without missing values.
    pub fn infer(
        &mut self,
        network: &Network<T>,
        batch: &Dataset<'_, T>,
        settings: &RelaxationSettings,
    ) -> Result<()> {
        self.resize(network, batch, settings);
        let (means, activation) = (network.means(), network.settings().activation);
        let parallel = splits_batch(network.n_weights(), batch.len());
        let simple =
            settings.sweep == Sweep::Simultaneous && settings.tolerance == 0.0 && !settings.halve_steps;
        if simple {
            self.layers.update(network, settings)?;
            let layers = &self.layers;
            for_each_if(parallel, &mut self.chunks, |chunk| {
                chunk.start(&means, activation, batch);
                chunk.descend(&means, activation, layers, settings);
                chunk.settle_errors(&means);
            });
        } else {
            let relaxer = Relaxer::new(network, settings, false)?;
            for_each_if(parallel, &mut self.chunks, |chunk| {
                chunk.start(&means, activation, batch);
                chunk.at_rest.pre[0].copy_from(&chunk.forward.pre[0]);
                relaxer.relax_unwatched(&mut chunk.at_rest, &Clamp::supervised());
                chunk.settle_errors(&means);
            });
        }
        Ok(())
    }

    /// V or Ψ of a hidden layer has changed: what was kept of them is no longer true.
    pub fn forget(&mut self) {
        self.layers.forget();
    }

    /// What was inferred, a chunk of samples at a time.
    pub fn chunks(&self) -> &[RelaxedChunk<T>] {
        &self.chunks
    }

    /// What the output layer learns from: the targets as they are.
    pub fn response(&self) -> Option<&Response> {
        self.response.as_ref()
    }

    /// Squared error of the forward pass, summed over samples and targets.
    pub fn squared_error(&self) -> f64 {
        self.chunks.iter().map(|chunk| chunk.square).sum()
    }

    fn resize(&mut self, network: &Network<T>, batch: &Dataset<'_, T>, settings: &RelaxationSettings) {
        let n = batch.len();
        let response = match &mut self.response {
            Some(response) if response.targets.ncols() == n => response,
            other => {
                let widths = network.widths();
                let chunk = |start| RelaxedChunk::new(start, &widths, CHUNK.min(n - start), settings);
                self.chunks = (0..n).step_by(CHUNK).map(chunk).collect();
                let mut response = Response::zeros(network.n_targets(), 1, n);
                response.weights.fill(1.0);
                other.insert(response)
            }
        };
        faer::zip!(&mut response.targets, batch.target()).for_each(|faer::unzip!(t, y)| *t = y.as_f64());
        for chunk in &mut self.chunks {
            let range = chunk.start..chunk.start + chunk.forward.capacity();
            chunk.weights = batch.weights().map(|w| w[range].to_vec());
        }
    }
}

impl<T: Real> RelaxedChunk<T> {
    fn new(start: usize, widths: &[usize], n: usize, settings: &RelaxationSettings) -> Self {
        let zeros = |widths: &[usize]| -> Vec<Mat<T>> { widths.iter().map(|&d| Mat::zeros(d, n)).collect() };
        let (all, hidden) = (&widths[1..], &widths[1..widths.len() - 1]);
        let has_state = !matches!(settings.optimiser, ActivityOptimiser::Gradient { .. });
        Self {
            start,
            forward: Activities::new(widths, n),
            at_rest: Activities::new(widths, n),
            errors: zeros(all),
            weighted: zeros(all),
            upstream: zeros(hidden),
            gradients: zeros(hidden),
            states: if has_state {
                hidden.iter().map(|&d| ActivityState::new(d, n)).collect()
            } else {
                Vec::new()
            },
            weights: None,
            presynaptic: settings.presynaptic,
            square: 0.0,
        }
    }

    /// Number of the first sample.
    pub fn first(&self) -> usize {
        self.start
    }

    /// The activities whose φ the M-step sees.
    pub fn seen(&self) -> &Activities<T> {
        match self.presynaptic {
            Presynaptic::Forward => &self.forward,
            Presynaptic::Relaxed => &self.at_rest,
        }
    }

    /// Forward pass, then clamp.
    fn start(&mut self, means: &[MatRef<'_, T>], activation: Activation, batch: &Dataset<'_, T>) {
        let n = self.forward.capacity();
        self.forward.forward(means, activation, batch.input().subcols(self.start, n));
        let top = means.len() - 1;
        for l in 0..top {
            self.at_rest.post[l].copy_from(&self.forward.post[l]);
            self.at_rest.pre[l + 1].copy_from(&self.forward.pre[l + 1]);
            self.errors[l].fill(T::zero());
        }
        self.at_rest.post[top].copy_from(batch.target().subcols(self.start, n));
        self.update_error(means, top, true);
        self.square = inner(self.errors[top].as_ref(), self.errors[top].as_ref()).as_f64();
    }

    /// All steps, every layer at once.
    fn descend(
        &mut self,
        means: &[MatRef<'_, T>],
        activation: Activation,
        layers: &RelaxingLayers<T>,
        settings: &RelaxationSettings,
    ) {
        let top = means.len() - 1;
        self.states.iter_mut().for_each(ActivityState::clear);
        // The first hidden layer that moves in the next step, and the first one that has moved.
        let all_move = settings.weight_uncertainty > 0.0;
        let (mut first, mut moved) = (if all_move { 0 } else { top.saturating_sub(1) }, top);
        for t in 1..=settings.steps {
            for l in moved..=top {
                if moved < top {
                    self.update_error(means, l, l == moved);
                }
            }
            for l in first..=top {
                if let Precision::Full(precision) = layers.precision(l) {
                    let (weighted, error) = (self.weighted[l].as_mut(), self.errors[l].as_ref());
                    product_into(weighted, Accum::Replace, precision.as_ref(), error, T::one());
                }
            }
            for l in first..top {
                self.move_layer(means[l + 1], activation, layers, settings, l, t);
            }
            moved = first;
            first = first.saturating_sub(1);
        }
        let finite = |z: &Mat<T>| (0..z.ncols()).all(|j| z.col_as_slice(j).iter().all(|x| x.is_finite()));
        if !self.at_rest.post[..top].iter().all(finite) {
            for l in 0..top {
                self.at_rest.post[l].copy_from(&self.forward.post[l]);
                self.at_rest.pre[l + 1].copy_from(&self.forward.pre[l + 1]);
            }
        }
    }

    /// ε_l; `below_rests` where φ_{l−1} is still that of the forward pass, whose prediction is known.
    fn update_error(&mut self, means: &[MatRef<'_, T>], l: usize, below_rests: bool) {
        let error = &mut self.errors[l];
        let prediction = if below_rests {
            &self.forward.post[l]
        } else {
            product_into(error.as_mut(), Accum::Replace, means[l], self.at_rest.pre[l].as_ref(), T::one());
            let post = &self.at_rest.post[l];
            for j in 0..post.ncols() {
                for (e, z) in error.col_as_slice_mut(j).iter_mut().zip(post.col_as_slice(j)) {
                    *e = *z - *e;
                }
            }
            return;
        };
        let post = &self.at_rest.post[l];
        for j in 0..post.ncols() {
            let from = post.col_as_slice(j).iter().zip(prediction.col_as_slice(j));
            for (e, (z, p)) in error.col_as_slice_mut(j).iter_mut().zip(from) {
                *e = *z - *p;
            }
        }
    }

    /// One step of the activity `post[l]`, below the weights `above`.
    fn move_layer(
        &mut self,
        above: MatRef<'_, T>,
        activation: Activation,
        layers: &RelaxingLayers<T>,
        settings: &RelaxationSettings,
        l: usize,
        t: usize,
    ) {
        let d = self.upstream[l].nrows();
        let upstream = &mut self.upstream[l];
        let (error, factor) = match layers.precision(l + 1) {
            Precision::Scalar(p) => (&self.errors[l + 1], -*p),
            Precision::Full(_) => (&self.weighted[l + 1], -T::one()),
        };
        let transposed = above.subcols(0, d).transpose();
        product_into(upstream.as_mut(), Accum::Replace, transposed, error.as_ref(), factor);
        if let Some(col_cov) = layers.col_cov(l + 1) {
            let factor = T::lit(settings.weight_uncertainty * above.nrows() as f64);
            let pre = self.at_rest.pre[l + 1].as_ref();
            product_into(upstream.as_mut(), Accum::Add, col_cov.subrows(0, d), pre, factor);
        }
        let (own, precision) = match layers.precision(l) {
            Precision::Scalar(p) => (&self.errors[l], *p),
            Precision::Full(_) => (&self.weighted[l], T::one()),
        };
        let (gradient, z) = (&mut self.gradients[l], &mut self.at_rest.post[l]);
        activation.derivative_into(z.as_ref(), gradient.as_mut());
        let rate = layers.rate(l);
        if let Some(state) = self.states.get_mut(l) {
            for j in 0..gradient.ncols() {
                let from = own.col_as_slice(j).iter().zip(upstream.col_as_slice(j));
                for (g, (own, up)) in gradient.col_as_slice_mut(j).iter_mut().zip(from) {
                    *g = precision * *own + *g * *up;
                }
            }
            state.step(settings.optimiser, gradient, rate, t);
            for j in 0..gradient.ncols() {
                for (z, step) in z.col_as_slice_mut(j).iter_mut().zip(gradient.col_as_slice(j)) {
                    *z -= *step;
                }
            }
        } else {
            let rate = T::lit(rate);
            for j in 0..gradient.ncols() {
                let from = own.col_as_slice(j).iter().zip(upstream.col_as_slice(j));
                let slopes = gradient.col_as_slice(j);
                for ((z, slope), (own, up)) in z.col_as_slice_mut(j).iter_mut().zip(slopes).zip(from) {
                    *z -= rate * (precision * *own + *slope * *up);
                }
            }
        }
        self.at_rest.activate(activation, l);
    }

    /// The hidden layers' errors as the M-step wants them.
    fn settle_errors(&mut self, means: &[MatRef<'_, T>]) {
        for l in 0..means.len() - 1 {
            self.update_error(means, l, l == 0 || self.presynaptic == Presynaptic::Forward);
            if let Some(weights) = &self.weights {
                for (j, &weight) in weights.iter().enumerate() {
                    let weight = T::lit(weight);
                    self.errors[l].col_as_slice_mut(j).iter_mut().for_each(|error| *error *= weight);
                }
            }
        }
    }
}

impl<T: Real> ErrorChunk<T> for RelaxedChunk<T> {
    fn n_samples(&self) -> usize {
        self.forward.capacity()
    }

    fn presynaptic(&self, l: usize) -> &Mat<T> {
        // The input is clamped.
        if l == 0 { &self.forward.pre[0] } else { &self.seen().pre[l] }
    }

    fn error(&self, l: usize) -> &Mat<T> {
        &self.errors[l]
    }

    fn sample_weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::inference::HiddenPrecision;
    use crate::network::NetworkSettings;

    const N: usize = CHUNK + 5;

    fn setting() -> (Network<f64>, Mat<f64>, Mat<f64>) {
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(2);
        let settings = NetworkSettings {
            hidden_layer_sizes: vec![6, 5, 4],
            activation: Activation::Tanh,
            ..NetworkSettings::default()
        };
        let network = Network::new(&settings, 3, 2, &mut rng).unwrap();
        let mut normal = |d| Mat::from_fn(d, N, |_, _| rng.random_range(-1.5..1.5));
        (network, normal(3), normal(2))
    }

    #[test]
    fn activities_and_errors_are_those_of_the_relaxer() {
        let (network, input, target) = setting();
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        let optimisers = [
            ActivityOptimiser::Gradient { rate: Some(1e-3) },
            ActivityOptimiser::Momentum { rate: Some(1e-3), momentum: 0.5 },
            ActivityOptimiser::Adam { rate: 0.01 },
        ];
        let precisions = [HiddenPrecision::Learned, HiddenPrecision::Tied(0.5), HiddenPrecision::Fixed(3.0)];
        for optimiser in optimisers {
            for hidden_precision in precisions {
                for (weight_uncertainty, sweep) in
                    [(0.0, Sweep::Simultaneous), (0.5, Sweep::Simultaneous), (0.0, Sweep::Sequential)]
                {
                    for presynaptic in [Presynaptic::Forward, Presynaptic::Relaxed] {
                        let settings = RelaxationSettings {
                            steps: 7,
                            optimiser,
                            hidden_precision,
                            weight_uncertainty,
                            presynaptic,
                            sweep,
                            ..RelaxationSettings::paper()
                        };
                        agrees(&network, &data, &settings);
                    }
                }
            }
        }
    }

    fn agrees(network: &Network<f64>, data: &Dataset<'_, f64>, settings: &RelaxationSettings) {
        let relaxer = Relaxer::new(network, settings, false).unwrap();
        let mut batch = RelaxedBatch::default();
        // Twice, so that nothing of the batch before is left.
        batch.infer(network, data, settings).unwrap();
        batch.infer(network, data, settings).unwrap();
        let mut square = 0.0;
        for chunk in batch.chunks() {
            let (start, n) = (chunk.first(), chunk.n_samples());
            let (input, target) = (data.input().subcols(start, n), data.target().subcols(start, n));
            let forward = relaxer.start(input, target, &Clamp::supervised());
            square += relaxer.squared_output_error(&forward);
            let mut relaxed = forward.clone();
            relaxer.relax_unwatched(&mut relaxed, &Clamp::supervised());
            let seen = if settings.presynaptic == Presynaptic::Forward { &forward } else { &relaxed };
            for l in 0..3 {
                assert!((&chunk.at_rest.post[l] - &relaxed.post[l]).norm_max() < 1e-11, "{settings:?}");
                assert!((chunk.presynaptic(l) - &seen.pre[l]).norm_max() < 1e-11, "{settings:?}");
                let error = &relaxed.post[l] - network.hidden()[l].mean() * &seen.pre[l];
                assert!((chunk.error(l) - error).norm_max() < 1e-11, "{settings:?}");
            }
        }
        assert!((batch.squared_error() - square).abs() < 1e-10 * square);
    }

    #[test]
    fn activities_that_diverge_stay_at_the_forward_pass() {
        let (network, input, target) = setting();
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        let optimiser = ActivityOptimiser::Gradient { rate: Some(1e200) };
        let settings = RelaxationSettings { optimiser, ..RelaxationSettings::tied() };
        let mut batch = RelaxedBatch::default();
        batch.infer(&network, &data, &settings).unwrap();
        assert!(batch.chunks().iter().all(|chunk| (0..3).all(|l| chunk.error(l).norm_max() == 0.0)));
    }
}
