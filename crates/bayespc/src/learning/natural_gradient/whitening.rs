//! The input layer in coordinates where its column precision is the identity.
//!
//! What the input layer sees never changes, so its η₁ at the end of training is known at the start:
//!
//! ```text
//! η₁ = V⁰⁻¹ + Σ w φφᵀ = T diag(I, β) Tᵀ ,   T = [L c; 0 1]        φ = [x; 1] = T φ̃
//! β  = η₁ of the bias ,   c = η₁ of x and bias over β ,   L Lᵀ = the rest of η₁ without c β cᵀ
//! x̃  = L⁻¹ (x − c) ,      M̃ = M T
//! ```
//!
//! Centred and whitened inputs x̃ need no V: the natural-gradient step is Hebbian as it stands, at the cost of a
//! plain gradient, and the widest layer has no factor to refresh:
//!
//! ```text
//! M̃ ← M̃ + κ s Σ ε φ̃ᵀ diag(I, 1/β) / (1 + h) − κ M̃ K ,    h = κ s (|x̃|² + 1/β) / (1−κ)
//! K  = T⁻¹ V⁰⁻¹ T⁻ᵀ diag(I, 1/β)                           the pull to the prior, which has mean 0
//! ```
//!
//! Where the noise is learned, Ψ⁻¹ takes κ s w εεᵀ / (1 + h) of every sample (`noise`) and, with a
//! pull of total rate k, k M̃K diag(I, β) (M̃ − k M̃K)ᵀ.
//!
//! The pull is applied when enough of it has come together. Inputs are whitened once; weights go back to the
//! coordinates of the data whenever somebody looks.

use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef, Par};

use super::error_chunk::{ErrorChunk, total_samples};
use super::noise::NoiseMemory;
use super::step::Blend;
use crate::base::linalg::{Cholesky, cast, inner, mirror_lower, product_into, symmetric_product_into};
use crate::base::parallel::{for_each_block_if, over_spans, pieces, splits_product};
use crate::data::Dataset;
use crate::error::Result;
use crate::learning::finalise::add_lower;
use crate::network::{Layer, MovingMean};
use crate::real::Real;

/// Samples whose statistics are taken in working precision before they join the sum in f64.
const SUMMED: usize = 512;

/// Σ κ at which the pull to the prior is applied: the eigenvalues of K are at most 1, so that a step of the pull
/// stays far from overshooting.
const PULL_AT: f64 = 0.5;

/// The change of coordinates, and what the layer learns by in them.
#[derive(Clone, Debug)]
pub struct Whitening<T: Real> {
    /// η₁ and η₄ on all the data.
    pre_pre: Mat<f64>,
    count: f64,
    /// L, c and β.
    root: Cholesky,
    centre: Vec<f64>,
    bias_precision: f64,
    /// K.
    pull: Mat<T>,
    /// Σ κ since the last pull; where the noise is learned, 1 − Π (1−κ).
    waiting: f64,
    /// Room for κ s ε / (1 + h), per chunk, and for M̃ K.
    weighted: Vec<Mat<T>>,
    pulled: Mat<T>,
    /// What Ψ⁻¹ has not seen yet, where it is learned.
    noise: Option<NoiseMemory<T>>,
}

impl<T: Real> Whitening<T> {
    /// Whiten `data` for `layer`, take the layer there, and return the inputs to train on.
    pub fn new(layer: &mut Layer<T>, data: &Dataset<'_, T>, with_noise: bool) -> Result<(Self, Mat<T>)> {
        let (pre_pre, d) = (column_precision(layer, data), layer.d_pre() - 1);
        let bias_precision = pre_pre[(d, d)];
        let centre: Vec<f64> = (0..d).map(|i| pre_pre[(i, d)] / bias_precision).collect();
        let spread = Mat::from_fn(d, d, |i, j| pre_pre[(i, j)] - bias_precision * (centre[i] * centre[j]));
        let root = Cholesky::new(spread.as_ref(), "the column precision of the inputs")?;
        let inverse = root.inverse_lower();
        let whitening = Self {
            pull: pull(layer, inverse.as_ref(), &centre, bias_precision),
            count: layer.prior().count + data.total_weight(),
            pre_pre,
            root,
            centre,
            bias_precision,
            waiting: 0.0,
            weighted: Vec::new(),
            pulled: Mat::zeros(layer.d_post(), d + 1),
            noise: with_noise.then(|| NoiseMemory::new(layer.d_post())),
        };
        let whitened = whitening.whitened(layer.mean());
        layer.moving().set_mean(whitened.as_ref());
        let input = whitening.whiten(inverse.as_ref(), data.input());
        Ok((whitening, input))
    }

    /// Learn from the errors of a batch of whitened inputs.
    pub fn step<C: ErrorChunk<T>>(&mut self, posterior: &mut MovingMean<T>, chunks: &[C], blend: Blend) {
        let (d, d_post) = (self.centre.len(), posterior.mean().nrows());
        if !self.weighted.iter().map(Mat::ncols).eq(chunks.iter().map(ErrorChunk::n_samples)) {
            let room = |chunk: &C| Mat::zeros(d_post, chunk.n_samples());
            self.weighted = chunks.iter().map(room).collect();
        }
        let alpha = blend.rate * blend.scale;
        let (gain, leverage) = (T::lit(alpha), T::lit(alpha / (1.0 - blend.rate).max(1e-3)));
        let bias_var = T::lit(1.0 / self.bias_precision);
        for (chunk, weighted) in chunks.iter().zip(&mut self.weighted) {
            let (input, error) = (chunk.presynaptic(0).subrows(0, d), chunk.error(0));
            for j in 0..chunk.n_samples() {
                let column = input.subcols(j, 1);
                let weight = chunk.sample_weights().map_or(T::one(), |w| T::lit(w[j]));
                let factor = gain / (T::one() + leverage * weight * (inner(column, column) + bias_var));
                for (to, from) in weighted.col_as_slice_mut(j).iter_mut().zip(error.col_as_slice(j)) {
                    *to = factor * *from;
                }
            }
        }
        // Ψ⁻¹ takes the pull as well as M, and fades: its share is 1 − Π (1−κ).
        self.waiting += if self.noise.is_some() { (1.0 - self.waiting) * blend.rate } else { blend.rate };
        let mut pull = (self.waiting >= PULL_AT).then(|| std::mem::take(&mut self.waiting));
        let parallel = splits_product(d * d_post * total_samples(chunks));
        if let Some(noise) = &mut self.noise {
            let weight =
                |chunk: &C| chunk.sample_weights().map_or(chunk.n_samples() as f64, |w| w.iter().sum());
            noise.fade(blend.rate, blend.scale, chunks.iter().map(weight).sum());
            for (chunk, weighted) in chunks.iter().zip(&self.weighted) {
                noise.add(weighted, chunk.error(0), chunk.sample_weights(), T::one());
            }
        }
        let mut mean = posterior.working_mean_mut();
        if let (Some(noise), Some(rate)) = (&mut self.noise, pull) {
            let (from, pull_to) = (mean.as_ref(), &self.pull);
            for_each_block_if(parallel, self.pulled.as_mut(), |start, block| {
                let towards = pull_to.subcols(start, block.ncols());
                product_into(block.as_mut(), Accum::Replace, from, towards, T::one());
            });
            learn_pull(noise, mean.as_mut(), &mut self.pulled, rate, self.bias_precision);
            pull = None;
        }
        if pull.is_some() {
            self.pulled.copy_from(&mean);
        }
        let (weighted, pulled, pull_to) = (&self.weighted, &self.pulled, &self.pull);
        let pull_block = |start: usize, block: &mut MatMut<'_, T>| {
            if let Some(pull) = pull {
                let towards = pull_to.subcols(start, block.ncols());
                product_into(block.as_mut(), Accum::Add, pulled.as_ref(), towards, T::lit(-pull));
            }
        };
        let (inputs, mut bias) = mean.as_mut().split_at_col_mut(d);
        for_each_block_if(parallel, inputs, |start, block| {
            pull_block(start, block);
            for (chunk, weighted) in chunks.iter().zip(weighted) {
                let input = chunk.presynaptic(0).subrows(start, block.ncols()).transpose();
                product_into(block.as_mut(), Accum::Add, weighted.as_ref(), input, T::one());
            }
        });
        pull_block(d, &mut bias);
        for column in weighted.iter().flat_map(Mat::col_iter) {
            for (bias, step) in bias.as_mut().col_mut(0).iter_mut().zip(column.iter()) {
                *bias += bias_var * *step;
            }
        }
    }

    /// Hand what waits of the noise to Ψ⁻¹ and η₄.
    pub fn hand_over_noise(&mut self, posterior: &mut MovingMean<T>) {
        if let Some(noise) = &mut self.noise {
            let (keep, count) = noise.hand_over(posterior);
            posterior.blend_count(keep, count);
        }
    }

    /// Take the layer back to the coordinates of the data, with the η₁ of all of it.
    pub fn restore(&mut self, posterior: &mut MovingMean<T>) -> Result<()> {
        let mut mean = cast::<T, f64>(posterior.working_mean());
        let mut pulled = posterior.working_mean() * &self.pull;
        faer::zip!(&mut mean, &pulled).for_each(|faer::unzip!(m, p)| *m -= self.waiting * p.as_f64());
        if let Some(noise) = &mut self.noise {
            learn_pull(noise, posterior.working_mean_mut(), &mut pulled, self.waiting, self.bias_precision);
        }
        self.hand_over_noise(posterior);
        posterior.set_weights(self.unwhitened(mean).as_ref(), &self.pre_pre, self.count)
    }

    /// M T.
    fn whitened(&self, mean: MatRef<'_, f64>) -> Mat<f64> {
        let d = self.centre.len();
        let mut whitened = Mat::zeros(mean.nrows(), d + 1);
        product_into(
            whitened.as_mut().subcols_mut(0, d),
            Accum::Replace,
            mean.subcols(0, d),
            self.root.lower(),
            1.0,
        );
        for i in 0..mean.nrows() {
            let shift: f64 = (0..d).map(|j| mean[(i, j)] * self.centre[j]).sum();
            whitened[(i, d)] = mean[(i, d)] + shift;
        }
        whitened
    }

    /// M̃ T⁻¹.
    fn unwhitened(&self, mut mean: Mat<f64>) -> Mat<f64> {
        let d = self.centre.len();
        // (M̃ L⁻¹)ᵀ = L⁻ᵀ M̃ᵀ
        self.root.solve_upper_in_place(mean.as_mut().subcols_mut(0, d).transpose_mut());
        for i in 0..mean.nrows() {
            let shift: f64 = (0..d).map(|j| mean[(i, j)] * self.centre[j]).sum();
            mean[(i, d)] -= shift;
        }
        mean
    }

    /// L⁻¹ (x − c) for every sample.
    fn whiten(&self, inverse: MatRef<'_, f64>, input: MatRef<'_, T>) -> Mat<T> {
        let (d, inverse): (usize, Mat<T>) = (input.nrows(), cast(inverse));
        let centre: Vec<T> = self.centre.iter().map(|&c| T::lit(c)).collect();
        let mut whitened = Mat::zeros(d, input.ncols());
        for_each_block_if(true, whitened.as_mut(), |start, block| {
            let width = block.ncols();
            let centred = Mat::from_fn(d, width, |i, j| input[(i, start + j)] - centre[i]);
            triangular::matmul(
                block.as_mut(),
                BlockStructure::Rectangular,
                Accum::Replace,
                &inverse,
                BlockStructure::TriangularLower,
                &centred,
                BlockStructure::Rectangular,
                T::one(),
                Par::Seq,
            );
        });
        whitened
    }
}

/// M̃ ← M̃ − k M̃K and what it leaves in Ψ⁻¹, k M̃K diag(I, β) (M̃ − k M̃K)ᵀ; `pulled` is M̃K and gets lost.
fn learn_pull<T: Real>(
    noise: &mut NoiseMemory<T>,
    mut mean: MatMut<'_, T>,
    pulled: &mut Mat<T>,
    rate: f64,
    bias_precision: f64,
) {
    let (rate, bias) = (T::lit(rate), pulled.ncols() - 1);
    faer::zip!(mean.as_mut(), &*pulled).for_each(|faer::unzip!(m, p)| *m -= rate * *p);
    let bias_precision = T::lit(bias_precision);
    pulled.col_as_slice_mut(bias).iter_mut().for_each(|x| *x *= bias_precision);
    noise.add_symmetric(pulled.as_ref(), mean.as_ref(), rate);
}

/// V⁰⁻¹ + Σ w φφᵀ.
fn column_precision<T: Real>(layer: &Layer<T>, data: &Dataset<'_, T>) -> Mat<f64> {
    let d = layer.d_pre();
    let parts = over_spans(data.len(), |span| {
        let mut sum = Mat::<f64>::zeros(d, d);
        let mut outer = Mat::<T>::zeros(d, d);
        for samples in pieces(span, SUMMED) {
            let phi = Mat::from_fn(d, samples.len(), |i, j| {
                let sample = samples.start + j;
                let root = data.weights().map_or(T::one(), |w| T::lit(w[sample].sqrt()));
                root * if i + 1 == d { T::one() } else { data.input()[(i, sample)] }
            });
            symmetric_product_into(outer.as_mut(), Accum::Replace, phi.as_ref(), phi.as_ref(), T::one());
            add_lower(&mut sum, &outer);
        }
        sum
    });
    let mut total = layer.prior().pre_pre.clone();
    for part in &parts {
        total += part;
    }
    mirror_lower(total.as_mut());
    total
}

/// K = T⁻¹ V⁰⁻¹ T⁻ᵀ diag(I, 1/β), where T⁻¹ = [L⁻¹ −L⁻¹c; 0 1].
fn pull<T: Real>(layer: &Layer<T>, inverse: MatRef<'_, f64>, centre: &[f64], bias_precision: f64) -> Mat<T> {
    let d = centre.len();
    let prior = &layer.prior().pre_pre;
    let mut roots = Mat::<f64>::zeros(d + 1, d + 1);
    for j in 0..d {
        let root = prior[(j, j)].sqrt();
        for i in j..d {
            roots[(i, j)] = inverse[(i, j)] * root;
        }
    }
    let bias_root = prior[(d, d)].sqrt();
    for i in 0..d {
        let shift: f64 = (0..=i).map(|j| inverse[(i, j)] * centre[j]).sum();
        roots[(i, d)] = -shift * bias_root;
    }
    roots[(d, d)] = bias_root;
    let mut pull = Mat::<f64>::zeros(d + 1, d + 1);
    product_into(pull.as_mut(), Accum::Replace, roots.as_ref(), roots.transpose(), 1.0);
    pull.as_mut().col_mut(d).iter_mut().for_each(|entry| *entry /= bias_precision);
    cast(pull.as_ref())
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::super::error_chunk::Known;
    use super::*;
    use crate::inference::{Feedback, FeedbackSettings};
    use crate::network::{Network, NetworkSettings};

    const N: usize = 40;

    /// A network, and correlated inputs that are not centred.
    fn setting() -> (Network<f64>, Mat<f64>, Mat<f64>, Vec<f64>) {
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(5);
        let mut settings = NetworkSettings { hidden_layer_sizes: vec![4], ..NetworkSettings::default() };
        settings.prior.var = 0.2;
        let network = Network::new(&settings, 3, 1, &mut rng).unwrap();
        let mut input = Mat::from_fn(3, N, |i, _| i as f64 + rng.random_range(-2.0..2.0));
        for j in 0..N {
            input[(2, j)] += 0.9 * input[(0, j)];
        }
        let target = Mat::from_fn(1, N, |_, j| input[(0, j)] * input[(1, j)]);
        (network, input, target, (0..N).map(|j| 0.5 + (j % 3) as f64).collect())
    }

    #[test]
    fn going_there_and_back_changes_nothing_but_the_precision_which_is_that_of_all_data() {
        let (network, input, target, weights) = setting();
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap().with_weights(&weights).unwrap();
        let mut layer = network.hidden()[0].clone();
        let (mut whitening, whitened) = Whitening::new(&mut layer, &data, false).unwrap();

        // Seen from either side, the layer does the same.
        let outputs = network.hidden()[0].mean().subcols(0, 3) * &input;
        let there = layer.mean().subcols(0, 3) * &whitened;
        for j in 0..N {
            for i in 0..4 {
                let here = outputs[(i, j)] + network.hidden()[0].mean()[(i, 3)];
                assert!((here - there[(i, j)] - layer.mean()[(i, 3)]).abs() < 1e-12);
            }
        }
        // There the precision is the identity: V⁰⁻¹ and the samples make it up together.
        let spread = Mat::from_fn(3, N, |i, j| whitened[(i, j)] * weights[j].sqrt());
        let gram = &spread * spread.transpose();
        assert!((0..3).all(|i| gram[(i, i)] < 1.0));

        whitening.restore(layer.moving()).unwrap();
        assert!((layer.mean() - network.hidden()[0].mean()).norm_max() < 1e-12);
        let phi = Mat::from_fn(4, N, |i, j| weights[j].sqrt() * if i == 3 { 1.0 } else { input[(i, j)] });
        let expected = &layer.prior().pre_pre + &phi * phi.transpose();
        assert!((layer.natural().pre_pre - expected).norm_max() < 1e-10);
        assert_eq!(layer.natural().count, layer.prior().count + weights.iter().sum::<f64>());
    }

    #[test]
    fn a_step_is_the_natural_gradient_with_the_precision_of_all_data() {
        let (mut network, input, target, weights) = setting();
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap().with_weights(&weights).unwrap();
        let before = network.hidden()[0].mean().to_owned();
        let (mut whitening, whitened) = Whitening::new(&mut network.hidden_mut()[0], &data, false).unwrap();
        let precision = whitening.pre_pre.clone();

        let samples = [3, 8, 21];
        let batch = data.with_input(whitened.as_ref()).unwrap().gather(&samples);
        let mut feedback = Feedback::new(&network);
        feedback.infer(&network, &batch.view(), &FeedbackSettings::default()).unwrap();
        // The second step is large enough to apply the pull to the prior of both.
        let errors = &feedback.chunks()[0].errors()[0];
        let layer = &mut network.hidden_mut()[0];
        let mut expected = before.clone();
        let col_cov = Cholesky::new(precision.as_ref(), "η₁").unwrap().inverse();
        for blend in [Blend { rate: 0.1, scale: 5.0 }, Blend { rate: 0.4, scale: 5.0 }] {
            whitening.step(layer.moving(), feedback.chunks(), blend);
        }
        let pulled = &before + step(&input, &weights, &samples, errors, &col_cov, 0.1);
        expected.copy_from(&pulled);
        expected += step(&input, &weights, &samples, errors, &col_cov, 0.4);
        expected -= faer::Scale(0.5) * (&pulled * &layer.prior().pre_pre * &col_cov);
        whitening.restore(layer.moving()).unwrap();
        assert!((layer.mean() - expected).norm_max() < 1e-11);
    }

    #[test]
    fn the_noise_takes_the_pull_to_the_prior_as_the_conjugate_update_does() {
        let (network, input, target, weights) = setting();
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap().with_weights(&weights).unwrap();
        let mut layer = network.hidden()[0].clone();
        let before = layer.mean().to_owned();
        let (mut whitening, _) = Whitening::new(&mut layer, &data, true).unwrap();
        let eta = whitening.pre_pre.clone();
        let inv_scale = layer.posterior().unwrap().noise().inv_scale().to_owned();

        // Without errors all that happens is the pull: 0.58 of it after two batches, the rest at the end.
        let chunk = [Known { pre: Mat::zeros(4, 2), error: Mat::zeros(4, 2), weights: None }];
        let prior = layer.prior().clone();
        let col_cov = Cholesky::new(eta.as_ref(), "η₁").unwrap().inverse();
        // M + ΔM and r M V⁰⁻¹ Mᵀ − ΔM η₁ ΔMᵀ.
        let pull = |mean: &Mat<f64>, rate: f64| {
            let direction = mean * &prior.pre_pre * faer::Scale(-rate);
            let step = &direction * &col_cov;
            let left = -(&direction * mean.transpose()) - &step * direction.transpose();
            (mean + step, left)
        };
        let fade = |inv_scale: Mat<f64>, rate: f64| {
            inv_scale * faer::Scale(1.0 - rate) + &prior.post_post * faer::Scale(rate)
        };
        let (mean, left) = pull(&before, 0.58);
        let inv_scale = fade(fade(fade(inv_scale, 0.3), 0.4) + left, 0.2);
        let (mean, left) = pull(&mean, 0.2);
        let inv_scale = inv_scale + left;

        for rate in [0.3, 0.4, 0.2] {
            whitening.step(layer.moving(), &chunk, Blend { rate, scale: 5.0 });
        }
        whitening.restore(layer.moving()).unwrap();
        assert!((layer.mean() - mean).norm_max() < 1e-11);
        assert!((layer.posterior().unwrap().noise().inv_scale() - inv_scale).norm_max() < 1e-11);
    }

    /// κ s Σ ε φᵀ V / (1 + h).
    fn step(
        input: &Mat<f64>,
        weights: &[f64],
        samples: &[usize],
        errors: &Mat<f64>,
        col_cov: &Mat<f64>,
        rate: f64,
    ) -> Mat<f64> {
        let mut sum = Mat::zeros(4, 4);
        for (k, &sample) in samples.iter().enumerate() {
            let phi = Mat::from_fn(4, 1, |i, _| if i == 3 { 1.0 } else { input[(i, sample)] });
            let lifted = col_cov * &phi;
            let height = (phi.transpose() * &lifted)[(0, 0)];
            let factor = 5.0 * rate / (1.0 + 5.0 * rate / (1.0 - rate) * weights[sample] * height);
            sum += faer::Scale(factor) * (errors.subcols(k, 1) * lifted.transpose());
        }
        sum
    }
}
