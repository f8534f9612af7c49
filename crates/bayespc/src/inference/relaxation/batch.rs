//! Relaxation of training batches, in chunks of samples whose buffers are reused: activities and errors as the
//! M-steps want them.

use faer::{Mat, MatRef};

use super::descent::{Descent, Stop, Task, clamp_copy, pass_forward};
use super::layers::{Relaxation, RelaxingLayers};
use super::settings::{Presynaptic, RelaxationSettings};
use crate::base::linalg::cast;
use crate::base::parallel::{CHUNK, for_each_if, splits_batch};
use crate::data::Dataset;
use crate::error::Result;
use crate::heads::{Head, Response};
use crate::inference::clamp::{Clamp, HeadWeights};
use crate::learning::ErrorChunk;
use crate::network::{Activities, Network};
use crate::real::Real;

/// Samples of one parallel task.
#[derive(Clone, Debug)]
pub(crate) struct RelaxedChunk<T: Real> {
    first: usize,
    /// φ̂ and ẑ of the forward pass.
    forward: Activities<T>,
    /// z of the descent, and the φ that the M-step sees.
    at_rest: Activities<T>,
    descent: Descent<T>,
    weights: Option<Vec<f64>>,
    /// What the head makes of the targets, where they are not clamped as they are.
    response: Option<Response>,
    /// ‖y − ẑ_L‖² of every sample.
    squared_errors: Vec<f64>,
}

impl<T: Real> RelaxedChunk<T> {
    /// Room for `n` samples.
    pub fn new(relaxation: &Relaxation<'_, T>, n: usize) -> Self {
        let widths = relaxation.energy.widths();
        Self {
            first: 0,
            forward: Activities::new(&widths, n),
            at_rest: Activities::new(&widths, n),
            descent: Descent::new(relaxation, n),
            weights: None,
            response: None,
            squared_errors: vec![0.0; n],
        }
    }

    /// Relax the activities of `n` samples of a batch, from `first` on. `clamp` is that of the whole batch.
    pub fn infer(
        &mut self,
        relaxation: &Relaxation<'_, T>,
        batch: &Dataset<'_, T>,
        clamp: &Clamp<T>,
        first: usize,
        n: usize,
    ) {
        if self.forward.capacity() != n {
            *self = Self::new(relaxation, n);
        }
        self.first = first;
        self.weights = batch.weights().map(|w| w[first..first + n].to_vec());
        let (input, target) = (batch.input().subcols(first, n), batch.target().subcols(first, n));
        let mut clamp = clamp.columns(first, n);
        let (forward, at_rest) = (&mut self.forward, &mut self.at_rest);
        pass_forward(&relaxation.energy, input, &clamp, forward);
        if let Some((head, rows)) = &relaxation.head {
            let activity = forward.post[forward.post.len() - 1].as_ref();
            let (response, weights) = respond(head.head(), rows, activity, target);
            clamp.head = Some(weights);
            clamp_copy(cast::<f64, T>(response.targets.as_ref()).as_ref(), &clamp, (forward, at_rest));
            self.response = Some(response);
        } else {
            clamp_copy(target, &clamp, (forward, at_rest));
        }
        let top = forward.post.len() - 1;
        for (j, sum) in self.squared_errors.iter_mut().enumerate() {
            // The mean comes first in the activity of every head; a free entry is at its prediction.
            let known = if relaxation.head.is_some() { target } else { at_rest.post[top].as_ref() };
            let pairs = known.col(j).iter().zip(forward.post[top].col_as_slice(j));
            *sum = pairs.map(|(y, a)| (*y - *a).as_f64().powi(2)).sum();
        }
        let task = Task { relaxation, start: forward, predictions: &forward.post, clamp: &clamp };
        let report = self.descent.run(&task, at_rest, false);
        if relaxation.settings.presynaptic == Presynaptic::Forward {
            // Around the forward pass a layer has its own error alone, none that came from below.
            if let Some(errors) = self.descent.errors().filter(|_| report.stop != Stop::Diverged) {
                for (l, error) in errors.iter().enumerate().take(top) {
                    faer::zip!(&mut at_rest.post[l], &forward.post[l], error)
                        .for_each(|faer::unzip!(z, prediction, error)| *z = *prediction + *error);
                }
            }
            // A free input has no forward value; its inferred one is the input.
            at_rest.pre[1..].swap_with_slice(&mut forward.pre[1..]);
            self.descent.gradients.begin();
        }
    }

    /// Bring the errors to what the M-step sees, times the weights of the samples.
    pub fn settle_errors(&mut self, relaxation: &Relaxation<'_, T>) {
        let (n_layers, gradients) = (relaxation.energy.n_layers(), &mut self.descent.gradients);
        gradients.update_errors(&relaxation.energy, &self.at_rest, &self.forward.post, 0..n_layers);
        if let Some(weights) = &self.weights {
            for l in 0..n_layers {
                for (j, &weight) in weights.iter().enumerate() {
                    let weight = T::lit(weight);
                    gradients.error_mut(l).col_as_slice_mut(j).iter_mut().for_each(|e| *e *= weight);
                }
            }
        }
    }

    /// Number of the first sample.
    pub fn first(&self) -> usize {
        self.first
    }

    /// z at rest, and the φ that the M-step sees.
    pub fn activities(&self) -> &Activities<T> {
        &self.at_rest
    }

    /// What the head makes of the targets, where they are not clamped as they are.
    pub fn response(&self) -> Option<&Response> {
        self.response.as_ref()
    }

    /// ‖y − ẑ_L‖² of every sample, at the forward pass.
    pub fn squared_errors(&self) -> &[f64] {
        &self.squared_errors
    }
}

/// What a head makes of targets at these activities, and its weights row by row.
pub(super) fn respond<T: Real>(
    head: &dyn Head,
    rows: &[usize],
    activity: MatRef<'_, T>,
    target: MatRef<'_, T>,
) -> (Response, HeadWeights<T>) {
    let (d, n) = activity.shape();
    let mut response = Response::zeros(d, rows.len(), n);
    head.respond(cast::<T, f64>(activity).as_ref(), cast::<T, f64>(target).as_ref(), &mut response);
    let block_of: Vec<usize> =
        rows.iter().enumerate().flat_map(|(b, &rows)| std::iter::repeat_n(b, rows)).collect();
    let weights = HeadWeights {
        rows: Mat::from_fn(d, n, |i, j| T::lit(response.weights[(block_of[i], j)])),
        blocks: cast(response.weights.as_ref()),
    };
    (response, weights)
}

impl<T: Real> ErrorChunk<T> for RelaxedChunk<T> {
    fn n_samples(&self) -> usize {
        self.at_rest.capacity()
    }

    fn presynaptic(&self, l: usize) -> &Mat<T> {
        &self.at_rest.pre[l]
    }

    fn error(&self, l: usize) -> &Mat<T> {
        self.descent.gradients.error(l)
    }

    fn sample_weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }
}

/// The activities of a batch, and what relaxation keeps of the network from one batch to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct RelaxedBatch<T: Real> {
    layers: RelaxingLayers<T>,
    chunks: Vec<RelaxedChunk<T>>,
    response: Option<Response>,
}

impl<T: Real> RelaxedBatch<T> {
    /// Relax the activities of a batch without missing values.
    pub fn infer(
        &mut self,
        network: &Network<T>,
        batch: &Dataset<'_, T>,
        settings: &RelaxationSettings,
    ) -> Result<()> {
        let n = batch.len();
        self.layers.update(network, settings, false)?;
        let relaxation = self.layers.relaxation(network.means(), network.settings().activation, settings);
        let relaxation = relaxation.read_by(network);
        self.chunks.resize_with(n.div_ceil(CHUNK), || RelaxedChunk::new(&relaxation, 0));
        for (c, chunk) in self.chunks.iter_mut().enumerate() {
            chunk.first = c * CHUNK;
        }
        let clamp = Clamp::supervised();
        for_each_if(splits_batch(network.n_weights(), n), &mut self.chunks, |chunk| {
            let first = chunk.first;
            chunk.infer(&relaxation, batch, &clamp, first, CHUNK.min(n - first));
            chunk.settle_errors(&relaxation);
        });
        let (d, blocks) = (network.output().d_activity(), network.output().blocks().len());
        let response = match &mut self.response {
            Some(response) if response.targets.ncols() == n => response,
            other => {
                let mut response = Response::zeros(d, blocks, n);
                response.weights.fill(1.0);
                other.insert(response)
            }
        };
        if relaxation.head.is_none() {
            faer::zip!(&mut response.targets, batch.target()).for_each(|faer::unzip!(t, y)| *t = y.as_f64());
        }
        for chunk in &self.chunks {
            let Some(own) = chunk.response() else { continue };
            let (first, n) = (chunk.first, own.targets.ncols());
            response.targets.as_mut().subcols_mut(first, n).copy_from(&own.targets);
            response.weights.as_mut().subcols_mut(first, n).copy_from(&own.weights);
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

    /// The chunks as buffers for other batches.
    pub fn chunks_mut(&mut self) -> &mut Vec<RelaxedChunk<T>> {
        &mut self.chunks
    }

    /// What the output layer learns from: the targets as they are, or what the head makes of them.
    pub fn response(&self) -> Option<&Response> {
        self.response.as_ref()
    }

    /// Squared error of the forward pass, summed over samples and targets.
    pub fn squared_error(&self) -> f64 {
        self.chunks.iter().flat_map(RelaxedChunk::squared_errors).sum()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::super::{ActivityOptimiser, HiddenPrecision, Relaxer, Sweep, Variables};
    use super::*;
    use crate::heads::{Categorical, HeadSettings, VarianceNode};
    use crate::inference::energy::{Errors, Gradients};
    use crate::network::{Activation, NetworkSettings, back_one_into};

    const N: usize = CHUNK + 5;
    const HIDDEN: usize = 3;

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
    fn activities_and_errors_are_those_of_a_descent_as_it_is_written() {
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
                for sweep in [Sweep::Simultaneous, Sweep::Sequential] {
                    for weight_uncertainty in [0.0, 0.5] {
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
            square += (target - network.means()[HIDDEN] * &forward.pre[HIDDEN]).squared_norm_l2();
            let mut relaxed = forward.clone();
            descend(&relaxer, settings, &mut relaxed);
            let seen = if settings.presynaptic == Presynaptic::Forward { &forward } else { &relaxed };
            let close = |a: &Mat<f64>, b: &Mat<f64>| assert!((a - b).norm_max() < 1e-11, "{settings:?}");
            for l in 0..HIDDEN {
                close(&chunk.activities().post[l], &relaxed.post[l]);
                close(chunk.presynaptic(l), &seen.pre[l]);
                close(chunk.error(l), &(&relaxed.post[l] - network.hidden()[l].mean() * &seen.pre[l]));
            }
        }
        assert!((batch.squared_error() - square).abs() < 1e-10 * square);
    }

    /// Every step from all gradients anew.
    fn descend(relaxer: &Relaxer<f64>, settings: &RelaxationSettings, z: &mut Activities<f64>) {
        let rate = settings.optimiser.fixed_rate().unwrap();
        let zeros = || z.post.iter().map(|z| Mat::<f64>::zeros(z.nrows(), z.ncols())).collect::<Vec<_>>();
        let (mut first, mut second) = (zeros(), zeros());
        let clamp = Clamp::supervised();
        for t in 1..=settings.steps {
            let (_, mut gradients) = relaxer.gradients(z, &clamp);
            for l in (0..HIDDEN).rev() {
                if settings.sweep == Sweep::Sequential {
                    gradients = relaxer.gradients(z, &clamp).1;
                }
                for j in 0..z.capacity() {
                    for i in 0..z.post[l].nrows() {
                        let g = gradients[l][(i, j)];
                        let (m, v) = (&mut first[l][(i, j)], &mut second[l][(i, j)]);
                        let step = match settings.optimiser {
                            ActivityOptimiser::Gradient { .. } => g,
                            ActivityOptimiser::Momentum { momentum, .. } => {
                                *m = momentum * *m + g;
                                *m
                            }
                            ActivityOptimiser::Adam { .. } => {
                                (*m, *v) = (0.9 * *m + 0.1 * g, 0.999 * *v + 0.001 * g * g);
                                let corrected = |x: f64, beta: f64| x / (1.0 - beta.powf(t as f64));
                                corrected(*m, 0.9) / (corrected(*v, 0.999).sqrt() + 1e-8)
                            }
                        };
                        z.post[l][(i, j)] -= rate * step;
                    }
                }
                z.activate(Activation::Tanh, l);
            }
        }
    }

    #[test]
    fn around_the_forward_pass_a_layer_learns_its_own_error_where_errors_descend() {
        let (network, input, target) = setting();
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        let optimisers = [
            ActivityOptimiser::Gradient { rate: None },
            ActivityOptimiser::Gradient { rate: Some(1e-3) },
            ActivityOptimiser::Adam { rate: 0.01 },
        ];
        for optimiser in optimisers {
            for presynaptic in [Presynaptic::Forward, Presynaptic::Relaxed] {
                let variables = Variables::Errors;
                let settings =
                    RelaxationSettings { optimiser, variables, presynaptic, ..RelaxationSettings::tied() };
                let relaxer = Relaxer::new(&network, &settings, false).unwrap();
                let mut batch = RelaxedBatch::default();
                // Twice, so that nothing of the batch before is left.
                batch.infer(&network, &data, &settings).unwrap();
                batch.infer(&network, &data, &settings).unwrap();
                for chunk in batch.chunks() {
                    let (start, n) = (chunk.first(), chunk.n_samples());
                    let (input, target) = (input.subcols(start, n), target.subcols(start, n));
                    let forward = relaxer.start(input, target, &Clamp::supervised());
                    let mut z = forward.clone();
                    relaxer.relax(&mut z, &Clamp::supervised());
                    let own = |l: usize| &z.post[l] - network.hidden()[l].mean() * &z.pre[l];
                    for l in 0..HIDDEN {
                        let seen = if presynaptic == Presynaptic::Forward { &forward } else { &z };
                        let target = network.hidden()[l].mean() * &seen.pre[l] + own(l);
                        assert!(own(l).norm_max() > 1e-3);
                        assert!((chunk.error(l) - own(l)).norm_max() < 1e-11);
                        assert!((chunk.presynaptic(l) - &seen.pre[l]).norm_max() < 1e-11);
                        assert!((&chunk.activities().post[l] - target).norm_max() < 1e-11);
                    }
                }
            }
        }
    }

    #[test]
    fn activities_that_diverge_stay_at_the_forward_pass() {
        let (network, input, target) = setting();
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        let optimiser = ActivityOptimiser::Gradient { rate: Some(1e200) };
        for presynaptic in [Presynaptic::Forward, Presynaptic::Relaxed] {
            let settings = RelaxationSettings { optimiser, presynaptic, ..RelaxationSettings::tied() };
            let mut batch = RelaxedBatch::default();
            batch.infer(&network, &data, &settings).unwrap();
            assert!(batch.chunks().iter().all(|chunk| (0..HIDDEN).all(|l| chunk.error(l).norm_max() == 0.0)));
        }
    }

    /// A network with this head whose every weight is drawn, and targets it can read.
    fn under_a_head(head: &HeadSettings) -> (Network<f64>, Mat<f64>, Mat<f64>) {
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(3);
        let settings = NetworkSettings {
            hidden_layer_sizes: vec![5, 4],
            activation: Activation::Tanh,
            head: head.clone(),
            ..NetworkSettings::default()
        };
        let rows = if matches!(head, HeadSettings::VarianceNode(_)) { 4 } else { 2 };
        let mut normal = |d, n| Mat::from_fn(d, n, |_, _| rng.random_range(-1.0..1.0));
        let weights = [normal(5, 4), normal(4, 6), normal(rows, 5)];
        let network = Network::with_weights(&settings, 3, 2, &weights).unwrap();
        let target = match head {
            HeadSettings::Categorical(_) => Mat::from_fn(2, 7, |i, j| f64::from(u8::from(i == j % 2))),
            _ => normal(2, 7),
        };
        (network, normal(3, 7), target)
    }

    #[test]
    fn under_a_head_a_relaxer_comes_to_rest_where_learning_does() {
        let heads = [
            HeadSettings::VarianceNode(VarianceNode::default()),
            HeadSettings::Categorical(Categorical::default()),
        ];
        for head in heads {
            let (network, input, target) = under_a_head(&head);
            let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
            for variables in [Variables::Activities, Variables::Errors] {
                let hidden_precision = HiddenPrecision::Fixed(2.0);
                let settings =
                    RelaxationSettings { variables, hidden_precision, ..RelaxationSettings::paper() };
                let mut batch = RelaxedBatch::default();
                batch.infer(&network, &data, &settings).unwrap();
                let learned = batch.chunks()[0].activities();
                let relaxer = Relaxer::new(&network, &settings, false).unwrap();
                let mut clamp = Clamp::supervised();
                let working = relaxer.clamped_target(input.as_ref(), target.as_ref(), &mut clamp).unwrap();
                let mut relaxed = relaxer.start(input.as_ref(), working.as_ref(), &clamp);
                let report = relaxer.relax(&mut relaxed, &clamp);
                assert!(report.energy[10] < report.energy[0], "{head:?}");
                for (found, expected) in relaxed.post.iter().zip(&learned.post) {
                    assert!((found - expected).norm_max() < 1e-12, "{head:?}, {variables:?}");
                }
                let total = report.energy[10];
                let layers: f64 = relaxer.layer_energies(&relaxed, &clamp).iter().sum();
                assert!((layers - total).abs() < 1e-12 * total.abs(), "{head:?}: {layers}, {total}");
            }
        }
    }

    #[test]
    fn under_a_head_the_gradient_is_that_of_the_energy_and_at_first_that_of_the_likelihood() {
        let heads = [
            HeadSettings::VarianceNode(VarianceNode::default()),
            HeadSettings::Categorical(Categorical::default()),
        ];
        for head in heads {
            let (network, input, target) = under_a_head(&head);
            for weight_uncertainty in [0.0, 0.7] {
                let settings = RelaxationSettings {
                    weight_uncertainty,
                    hidden_precision: HiddenPrecision::Fixed(2.0),
                    ..RelaxationSettings::paper()
                };
                let layers = RelaxingLayers::new(&network, &settings, false).unwrap();
                let relaxation = layers.relaxation(network.means(), Activation::Tanh, &settings);
                let relaxation = relaxation.read_by(&network);
                let energy = &relaxation.energy;
                let mut clamp = Clamp::supervised();
                let mut forward = Activities::new(&energy.widths(), 7);
                let mut z = forward.clone();
                pass_forward(energy, input.as_ref(), &clamp, &mut forward);
                let rows = &relaxation.head.as_ref().unwrap().1;
                let (response, weights) =
                    respond(head.head(), rows, forward.post[2].as_ref(), target.as_ref());
                clamp.head = Some(weights);
                clamp_copy(response.targets.as_ref(), &clamp, (&mut forward, &mut z));
                let gradients = |z: &Activities<f64>| {
                    let mut gradients = Gradients::new(&energy.widths(), 7);
                    gradients.update_errors(energy, z, &[], 0..3);
                    (0..=3).for_each(|k| gradients.update_gradient(energy, z, &clamp, k));
                    gradients.into_parts().1
                };
                if weight_uncertainty == 0.0 {
                    // Nothing errs below the top: what is left is the slope of −log p(y | a).
                    let (mut room, mut slope) = (Mat::zeros(4, 7), Mat::zeros(4, 7));
                    let top = network.means()[2];
                    let (at, feedback) = (z.post[1].as_ref(), response.feedback.as_ref());
                    back_one_into(top, Activation::Tanh, at, feedback, &mut room, &mut slope);
                    assert!((&gradients(&z)[1] + slope).norm_max() < 1e-12);
                }
                // Anywhere else: differences.
                for (l, shift) in [(0, 0.3), (1, -0.2)] {
                    faer::zip!(&mut z.post[l]).for_each(|faer::unzip!(z)| *z += shift);
                    z.activate(Activation::Tanh, l);
                }
                let found = gradients(&z);
                // An error moves its own activity, and through it the one above.
                let mut errors = Errors::new(&energy.widths(), 7);
                errors.begin(&z, &(0..3).map(|l| energy.means[l] * &z.pre[l]).collect::<Vec<_>>());
                errors.update_gradients(energy, &z, &clamp, 1);
                let (mut room, mut moved) = (Mat::zeros(5, 7), Mat::zeros(5, 7));
                let (at, above) = (z.post[0].as_ref(), errors.gradient(2).as_ref());
                back_one_into(network.means()[1], Activation::Tanh, at, above, &mut room, &mut moved);
                let scale = 1e-12 * (1.0 + found[0].norm_max() + found[1].norm_max());
                assert!((errors.gradient(2) - &found[1]).norm_max() < scale);
                assert!((errors.gradient(1) - &found[0] - moved).norm_max() < scale);
                let h = 1e-5;
                for (l, i, j) in [(0, 0, 0), (0, 4, 6), (1, 0, 3), (1, 3, 6)] {
                    let at = |sign: f64| {
                        let mut moved = z.clone();
                        moved.post[l][(i, j)] += sign * h;
                        moved.activate(Activation::Tanh, l);
                        energy.of_samples(&moved, &clamp, 0..3)[j]
                    };
                    let numeric = (at(1.0) - at(-1.0)) / (2.0 * h);
                    // With V⁰ = 10 the energy of a sample is below 10⁴ and rounded to 2e-12; over 2h that is 1e-7.
                    let (found, error) = (found[l][(i, j)], 2e-7 * (1.0 + numeric.abs()));
                    assert!((found - numeric).abs() < error, "{found} {numeric}");
                }
            }
        }
    }

    #[test]
    fn the_curvature_along_errors_is_that_of_the_energy_where_the_network_is_linear() {
        let heads = [
            HeadSettings::default(),
            HeadSettings::VarianceNode(VarianceNode::default()),
            HeadSettings::Categorical(Categorical::default()),
        ];
        for head in heads {
            let (network, input, target) = under_a_head(&head);
            for weight_uncertainty in [0.0, 0.7] {
                let settings = RelaxationSettings {
                    weight_uncertainty,
                    hidden_precision: HiddenPrecision::Fixed(2.0),
                    output_precision: Some(3.0),
                    ..RelaxationSettings::paper()
                };
                let layers = RelaxingLayers::new(&network, &settings, true).unwrap();
                let relaxation = layers.relaxation(network.means(), Activation::Identity, &settings);
                let relaxation = relaxation.read_by(&network);
                let energy = &relaxation.energy;
                // Some entries are free, but for heads that read whole targets.
                let mut clamp = Clamp::supervised();
                let some = |i: usize, j: usize| f64::from(u8::from((i + j).is_multiple_of(3)));
                clamp.free_input = Some(Mat::from_fn(3, 7, some));
                let mut z = Activities::new(&energy.widths(), 7);
                let mut forward = z.clone();
                forward.forward(&energy.means, Activation::Identity, input.as_ref());
                if let Some((head, rows)) = &relaxation.head {
                    let (response, weights) =
                        respond(head.head(), rows, forward.post[2].as_ref(), target.as_ref());
                    clamp.head = Some(weights);
                    clamp_copy(response.targets.as_ref(), &clamp, (&mut forward, &mut z));
                } else {
                    clamp.free_output = Some(Mat::from_fn(2, 7, some));
                    clamp_copy(target.as_ref(), &clamp, (&mut forward, &mut z));
                }
                let mut errors = Errors::new(&energy.widths(), 7);
                errors.begin(&z, &(0..3).map(|l| energy.means[l] * &z.pre[l]).collect::<Vec<_>>());
                errors.update_gradients(energy, &z, &clamp, 0);
                let mut direction: Vec<Mat<f64>> = energy
                    .widths()
                    .iter()
                    .map(|&d| Mat::from_fn(d, 7, |i, j| ((3 * i + 5 * j + d) as f64).sin()))
                    .collect();
                for (k, free) in [(0, &clamp.free_input), (3, &clamp.free_output)] {
                    let (d, n) = direction[k].shape();
                    let mask = |i, j| free.as_ref().map_or(0.0, |free| free[(i, j)]);
                    direction[k] = Mat::from_fn(d, n, |i, j| mask(i, j) * direction[k][(i, j)]);
                }
                let at = |sign: f64| {
                    let (mut z, mut errors) = (z.clone(), errors.clone());
                    let mut input = z.pre[0].as_mut().subrows_mut(0, 3);
                    input += &direction[0] * faer::Scale(sign);
                    for (error, direction) in errors.values_mut().iter_mut().zip(&direction[1..]) {
                        *error += direction * faer::Scale(sign);
                    }
                    errors.run(energy, &mut z, &clamp);
                    let energies = errors.energies(energy, &z, &clamp);
                    let others = energy.of_samples(&z, &clamp, 0..3);
                    assert!(energies.iter().zip(others).all(|(a, b)| (a - b).abs() < 1e-9 * b));
                    energies
                };
                let [back, here, on] = [-1.0, 0.0, 1.0].map(at);
                let found = errors.curvature(energy, &clamp, &direction, 0);
                for (j, found) in found.iter().enumerate() {
                    let expected = back[j] + on[j] - 2.0 * here[j];
                    assert!((found - expected).abs() < 1e-9 * (here[j] + on[j]), "{found} {expected}");
                }
            }
        }
    }
}
