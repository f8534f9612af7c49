//! Bayes by backprop (Blundell et al. 2015): independent normals over all weights, by stochastic gradients.
//!
//! ```text
//! q(W) = N(μ, σ²) ,   σ = log(1 + e^ρ) ,   p(W) = N(0, σ_p²) ,   y ~ N(a, diag s²)
//! draw       W = μ + σ ε ,   ε ~ N(0, 1), one draw for the batch
//! objective  F/N = Σ_j w_j (−log N(y_j | a_j, s²)) / Σ_j w_j  +  KL(q ‖ p)/N
//! KL         Σ [ log(σ_p/σ) + (σ² + μ²)/(2σ_p²) − ½ ]
//! gradients  ∂μ = G + μ/(N σ_p²) ,   ∂ρ = (G ε + (σ/σ_p² − 1/σ)/N) · 1/(1 + e^−ρ) ,   G = ∂/∂W of the fit
//!            ∂ log s_i = 1 − Σ_j w_j (y_ij − a_ij)² / (s_i² Σ_j w_j)
//! ```
//!
//! Times |B| the objective is the batch's free energy, in which the KL has weight |B|/N. The noise s is a
//! point estimate and descends with the rest.

use faer::Mat;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::backward::{Backward, zeros_like};
use super::point;
use super::{Learner, Step};
use crate::base::check;
use crate::base::parallel::splits_batch;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::network::{Activation, NetworkSettings, PointNetwork};
use crate::optim::{Descent, Optimiser};
use crate::prediction::Method;
use crate::real::Real;

/// log s below which a fit counts as exact: a thousandth of a standardised target.
const LOG_NOISE_FLOOR: f64 = -6.907_755_278_982_137;

const LOG_TAU: f64 = 1.837_877_066_409_345_3;

/// Settings of Bayes by backprop; the default is the paper's where it says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BayesByBackpropSettings {
    /// Optimiser of means, spreads and noise.
    pub optimiser: Optimiser,
    /// σ_p.
    pub prior_std: f64,
    /// σ of every weight at the start. From a wide start (0.05) the noise of the draws drowns the gradient and
    /// units are pruned before they have learned anything: the fit is much worse.
    pub initial_std: f64,
    /// s of every output at the start.
    pub initial_noise_std: f64,
    /// Networks drawn per batch, their gradients averaged.
    pub draws_per_batch: usize,
}

impl Default for BayesByBackpropSettings {
    fn default() -> Self {
        Self {
            optimiser: Optimiser::default(),
            prior_std: 1.0,
            initial_std: 0.007,
            initial_noise_std: 1.0,
            draws_per_batch: 1,
        }
    }
}

impl BayesByBackpropSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        let positive = [
            ("bayes_by_backprop.prior_std", self.prior_std),
            ("bayes_by_backprop.initial_std", self.initial_std),
            ("bayes_by_backprop.initial_noise_std", self.initial_noise_std),
        ];
        positive.into_iter().try_for_each(|(name, value)| check::positive(name, value))?;
        if self.draws_per_batch == 0 {
            return Err(Error::Setting {
                name: "bayes_by_backprop.draws_per_batch",
                value: 0.0,
                must_be: "at least 1",
            });
        }
        self.optimiser.validate()
    }
}

/// Gradients of F/N, in the shape of the parameters.
#[derive(Clone, Debug)]
pub struct VariationalGradients<T: Real> {
    /// ∂μ_1 … ∂μ_L.
    pub means: Vec<Mat<T>>,
    /// ∂ρ_1 … ∂ρ_L.
    pub spreads: Vec<Mat<T>>,
    /// ∂ log s, `d_L × 1`.
    pub log_noise: Mat<T>,
}

/// A learner by Bayes by backprop.
#[derive(Clone, Debug)]
pub struct BayesByBackprop<T: Real> {
    settings: BayesByBackpropSettings,
    /// μ in `weights`; `output_noise` is brought up to date when a network is asked for.
    network: PointNetwork<T>,
    /// ρ.
    spreads: Vec<Mat<T>>,
    /// log s, `d_L × 1`.
    log_noise: Mat<T>,
    drawn: Vec<Mat<T>>,
    noises: Vec<Mat<T>>,
    backward: Backward<T>,
    gradients: VariationalGradients<T>,
    descent: Descent<T>,
}

impl<T: Real> BayesByBackprop<T> {
    /// A network of this shape, whose means start where the Bayesian predictive-coding network's would. Its
    /// prior settings are not used.
    pub fn new(
        network: &NetworkSettings,
        settings: &BayesByBackpropSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Self> {
        settings.validate()?;
        let network = point::start::<T>(network, d_input, n_targets, rng)?;
        // σ = log(1 + e^ρ)  ⇔  ρ = log(e^σ − 1) = σ + log(1 − e^−σ)
        let sigma = settings.initial_std;
        let rho = T::lit(sigma + (-(-sigma).exp_m1()).ln());
        let spreads: Vec<Mat<T>> =
            network.weights.iter().map(|w| Mat::from_fn(w.nrows(), w.ncols(), |_, _| rho)).collect();
        let log_noise = Mat::from_fn(n_targets, 1, |_, _| T::lit(settings.initial_noise_std.ln()));
        let shapes = network.weights.iter().chain(&spreads).chain([&log_noise]);
        Ok(Self {
            descent: Descent::new(settings.optimiser, shapes.map(Mat::shape))?,
            drawn: zeros_like(&network.weights),
            noises: zeros_like(&network.weights),
            backward: Backward::new(&network.weights),
            gradients: VariationalGradients {
                means: zeros_like(&network.weights),
                spreads: zeros_like(&network.weights),
                log_noise: Mat::zeros(n_targets, 1),
            },
            settings: settings.clone(),
            network,
            spreads,
            log_noise,
        })
    }

    /// The settings.
    pub fn settings(&self) -> &BayesByBackpropSettings {
        &self.settings
    }

    /// σ_1 … σ_L.
    pub fn weight_std(&self) -> Vec<Mat<T>> {
        self.spreads
            .iter()
            .map(|rho| Mat::from_fn(rho.nrows(), rho.ncols(), |i, j| std(rho[(i, j)])))
            .collect()
    }

    /// s of every output.
    pub fn noise_std(&self) -> Vec<f64> {
        self.log_noise.col_as_slice(0).iter().map(|log| log.as_f64().exp()).collect()
    }

    /// KL(q ‖ p) over all weights, in nats.
    pub fn kl_divergence(&self) -> f64 {
        let prior = self.settings.prior_std;
        let mut kl = 0.0;
        for (mean, rho) in self.network.weights.iter().zip(&self.spreads) {
            for j in 0..mean.ncols() {
                for (mean, &rho) in mean.col_as_slice(j).iter().zip(rho.col_as_slice(j)) {
                    let (ratio, shift) = (std(rho).as_f64() / prior, mean.as_f64() / prior);
                    kl += 0.5 * (ratio * ratio + shift * shift - 1.0) - ratio.ln();
                }
            }
        }
        kl
    }

    /// F/N of a batch when the data are `n_total` samples, by one fresh draw per network asked for.
    pub fn objective(&self, batch: &Dataset<'_, T>, n_total: f64, rng: &mut dyn Rng) -> Result<f64> {
        point::check_batch(&self.network, batch)?;
        let mut fit = 0.0;
        for _ in 0..self.settings.draws_per_batch {
            let output = self.draw_network(rng)?.forward(batch.input())?;
            for j in 0..batch.len() {
                let weight = batch.weights().map_or(1.0, |w| w[j]);
                for i in 0..output.nrows() {
                    let log_noise = self.log_noise[(i, 0)].as_f64();
                    let error = (batch.target()[(i, j)].as_f64() - output[(i, j)].as_f64()) / log_noise.exp();
                    fit += weight * (0.5 * error * error + log_noise + 0.5 * LOG_TAU);
                }
            }
        }
        let draws = self.settings.draws_per_batch as f64;
        Ok(fit / (draws * batch.total_weight()) + self.kl_divergence() / n_total)
    }

    /// Gradients of [`BayesByBackprop::objective`] for the same draws.
    pub fn gradients(
        &mut self,
        batch: &Dataset<'_, T>,
        n_total: f64,
        rng: &mut dyn Rng,
    ) -> Result<&VariationalGradients<T>> {
        self.accumulate_gradients(batch, n_total, rng)?;
        Ok(&self.gradients)
    }

    /// Gradients into the buffers; returns the mean squared error of the drawn networks.
    fn accumulate_gradients(
        &mut self,
        batch: &Dataset<'_, T>,
        n_total: f64,
        rng: &mut dyn Rng,
    ) -> Result<f64> {
        point::check_batch(&self.network, batch)?;
        let (share, total) = (1.0 / self.settings.draws_per_batch as f64, batch.total_weight());
        let precisions: Vec<f64> = self.noise_std().iter().map(|s| 1.0 / (s * s)).collect();
        let scales: Vec<f64> = precisions.iter().map(|p| share * p / total).collect();
        self.start_from_the_prior(n_total);
        let mut squares = 0.0;
        for _ in 0..self.settings.draws_per_batch {
            draw(&self.network.weights, &self.spreads, &mut self.drawn, &mut self.noises, rng);
            self.backward.run(&self.drawn, self.network.activation, batch, &scales);
            for (l, fit) in self.backward.gradients().iter().enumerate() {
                for j in 0..fit.ncols() {
                    let means = self.gradients.means[l].col_as_slice_mut(j);
                    let spreads = self.gradients.spreads[l].col_as_slice_mut(j);
                    let (rho, noise) = (self.spreads[l].col_as_slice(j), self.noises[l].col_as_slice(j));
                    for (i, &g) in fit.col_as_slice(j).iter().enumerate() {
                        means[i] += g;
                        spreads[i] += g * noise[i] * Activation::Sigmoid.apply(rho[i]);
                    }
                }
            }
            for (i, &square) in self.backward.squared_errors().iter().enumerate() {
                let gradient = share * (1.0 - precisions[i] * square / total);
                self.gradients.log_noise[(i, 0)] += T::lit(gradient);
                squares += square;
            }
        }
        Ok(share * squares / (total * scales.len() as f64))
    }

    /// The part of the gradients that comes from KL/N.
    fn start_from_the_prior(&mut self, n_total: f64) {
        let per_sample = T::lit(1.0 / n_total);
        let precision = T::lit(1.0 / (self.settings.prior_std * self.settings.prior_std));
        for (l, mean) in self.network.weights.iter().enumerate() {
            for j in 0..mean.ncols() {
                let (mean, rho) = (mean.col_as_slice(j), self.spreads[l].col_as_slice(j));
                let means = self.gradients.means[l].col_as_slice_mut(j);
                let spreads = self.gradients.spreads[l].col_as_slice_mut(j);
                for i in 0..mean.len() {
                    let sigma = std(rho[i]);
                    means[i] = per_sample * precision * mean[i];
                    spreads[i] = per_sample
                        * (precision * sigma - T::one() / sigma)
                        * Activation::Sigmoid.apply(rho[i]);
                }
            }
        }
        self.gradients.log_noise.fill(T::zero());
    }

    fn output_noise(&self) -> Mat<f64> {
        let std = self.noise_std();
        Mat::from_fn(std.len(), std.len(), |i, j| if i == j { std[i] * std[i] } else { 0.0 })
    }
}

/// σ = log(1 + e^ρ), and never 0: far down e^ρ would underflow and log σ with it.
fn std<T: Real>(rho: T) -> T {
    let (sigma, tiny) = (Activation::Softplus.apply(rho), T::lit(1e-30));
    if sigma < tiny { tiny } else { sigma }
}

/// W = μ + σ ε, layer by layer, column by column.
fn draw<T: Real>(
    means: &[Mat<T>],
    spreads: &[Mat<T>],
    drawn: &mut [Mat<T>],
    noises: &mut [Mat<T>],
    rng: &mut dyn Rng,
) {
    for (l, mean) in means.iter().enumerate() {
        for j in 0..mean.ncols() {
            let (mean, rho) = (mean.col_as_slice(j), spreads[l].col_as_slice(j));
            let (drawn, noise) = (drawn[l].col_as_slice_mut(j), noises[l].col_as_slice_mut(j));
            for i in 0..mean.len() {
                let draw: f64 = StandardNormal.sample(rng);
                noise[i] = T::lit(draw);
                drawn[i] = mean[i] + std(rho[i]) * noise[i];
            }
        }
    }
}

impl<T: Real> Learner<T> for BayesByBackprop<T> {
    fn name(&self) -> &'static str {
        "bayes-by-backprop"
    }

    fn splits_batch(&self, n: usize) -> bool {
        splits_batch(self.network.n_weights(), n)
    }

    fn learn(&mut self, batch: &Dataset<'_, T>, step: &Step, rng: &mut dyn Rng) -> Result<f64> {
        let error = self.accumulate_gradients(batch, step.n_total, rng)?;
        self.descent.step(
            self.network.weights.iter_mut().chain(&mut self.spreads).chain([&mut self.log_noise]),
            self.gradients.means.iter().chain(&self.gradients.spreads).chain([&self.gradients.log_noise]),
        );
        for log in self.log_noise.col_as_slice_mut(0) {
            // A comparison and not `max`, which would turn NaN into the floor and hide a divergence.
            if *log < T::lit(LOG_NOISE_FLOOR) {
                *log = T::lit(LOG_NOISE_FLOOR);
            }
        }
        Ok(error)
    }

    fn finish(&mut self, _data: &Dataset<'_, T>) -> Result<()> {
        Ok(())
    }

    fn mean_network(&self) -> Result<PointNetwork<T>> {
        Ok(PointNetwork { output_noise: self.output_noise(), ..self.network.clone() })
    }

    /// The paper's 20 draws.
    fn default_method(&self) -> Method {
        Method::monte_carlo()
    }

    fn draw_network(&self, rng: &mut dyn Rng) -> Result<PointNetwork<T>> {
        let mut network = self.mean_network()?;
        let mut noises = zeros_like(&self.network.weights);
        draw(&self.network.weights, &self.spreads, &mut network.weights, &mut noises, rng);
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    const N_TOTAL: f64 = 40.0;

    fn learner(activation: Activation, draws_per_batch: usize) -> BayesByBackprop<f64> {
        let network =
            NetworkSettings { hidden_layer_sizes: vec![4, 3], activation, ..NetworkSettings::default() };
        let settings = BayesByBackpropSettings {
            prior_std: 0.7,
            initial_std: 0.3,
            initial_noise_std: 0.6,
            draws_per_batch,
            ..BayesByBackpropSettings::default()
        };
        BayesByBackprop::new(&network, &settings, 2, 2, &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
    }

    fn difference(
        learner: &BayesByBackprop<f64>,
        batch: &Dataset<'_, f64>,
        change: impl Fn(&mut BayesByBackprop<f64>, f64),
    ) -> f64 {
        let h = 1e-5;
        let value = |h| {
            let mut moved = learner.clone();
            change(&mut moved, h);
            // The same draw every time.
            let mut rng = ChaCha8Rng::seed_from_u64(3);
            moved.objective(batch, N_TOTAL, &mut rng).unwrap()
        };
        (value(h) - value(-h)) / (2.0 * h)
    }

    #[test]
    fn gradients_match_central_differences_with_the_draw_held_fixed() {
        let input = Mat::from_fn(2, 9, |i, j| ((3 * i + 5 * j) as f64).sin());
        let target = Mat::from_fn(2, 9, |i, j| ((i + 2 * j) as f64).cos());
        let weights: Vec<f64> = (0..9).map(|j| 0.5 + f64::from(j % 3)).collect();
        let batch = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        let batch = batch.with_weights(&weights).unwrap();
        for (activation, draws) in [(Activation::Tanh, 1), (Activation::Relu, 1), (Activation::Silu, 3)] {
            let mut learner = learner(activation, draws);
            let gradients =
                learner.gradients(&batch, N_TOTAL, &mut ChaCha8Rng::seed_from_u64(3)).unwrap().clone();
            let close = |analytic: f64, numeric: f64| {
                assert_relative_eq!(analytic, numeric, max_relative = 1e-6, epsilon = 1e-8);
            };
            for l in 0..3 {
                for j in 0..learner.spreads[l].ncols() {
                    for i in 0..learner.spreads[l].nrows() {
                        close(
                            gradients.means[l][(i, j)],
                            difference(&learner, &batch, |q, h| q.network.weights[l][(i, j)] += h),
                        );
                        close(
                            gradients.spreads[l][(i, j)],
                            difference(&learner, &batch, |q, h| q.spreads[l][(i, j)] += h),
                        );
                    }
                }
            }
            for i in 0..2 {
                close(
                    gradients.log_noise[(i, 0)],
                    difference(&learner, &batch, |q, h| q.log_noise[(i, 0)] += h),
                );
            }
        }
    }

    #[test]
    fn the_divergence_is_zero_at_the_prior_and_positive_elsewhere() {
        let mut q = learner(Activation::Relu, 1);
        let start = q.kl_divergence();
        assert!(start > 0.0);
        let rho = 0.7 + (-(-0.7_f64).exp_m1()).ln();
        for l in 0..3 {
            q.network.weights[l].fill(0.0);
            q.spreads[l].fill(rho);
        }
        assert_relative_eq!(q.kl_divergence(), 0.0, epsilon = 1e-12);
        q.network.weights[1][(0, 0)] = 1e-3;
        assert!(q.kl_divergence() > 0.0);
    }

    #[test]
    fn the_divergence_matches_monte_carlo() {
        let q = learner(Activation::Relu, 1);
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let (mut sum, mut squares, draws) = (0.0, 0.0, 4000);
        let stds = q.weight_std();
        for _ in 0..draws {
            let drawn = q.draw_network(&mut rng).unwrap().weights;
            let mut ratio = 0.0;
            for l in 0..3 {
                for j in 0..drawn[l].ncols() {
                    for i in 0..drawn[l].nrows() {
                        let (w, mean, std) =
                            (drawn[l][(i, j)], q.network.weights[l][(i, j)], stds[l][(i, j)]);
                        ratio += -0.5 * ((w - mean) / std).powi(2) - std.ln();
                        ratio -= -0.5 * (w / 0.7).powi(2) - 0.7_f64.ln();
                    }
                }
            }
            sum += ratio;
            squares += ratio * ratio;
        }
        let mean = sum / f64::from(draws);
        let error = ((squares / f64::from(draws) - mean * mean) / f64::from(draws)).sqrt();
        // Four standard errors of the estimate.
        assert!((mean - q.kl_divergence()).abs() < 4.0 * error, "{mean} ± {error}");
    }

    #[test]
    fn the_initial_spread_is_the_one_asked_for() {
        for std in learner(Activation::Relu, 1).weight_std() {
            assert_relative_eq!(std[(0, 0)], 0.3, max_relative = 1e-14);
        }
    }
}
