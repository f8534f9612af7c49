//! What relaxation takes from the layers beside their means: precisions, V and step sizes, renewed only as often as
//! they change. This is the one place that decides which ⟨Σ_l⁻¹⟩ relaxation believes in.

use faer::MatRef;

use super::settings::{HiddenPrecision, RelaxationSettings, Variables};
use super::step_size::{Above, Curvature, StepSize};
use crate::base::linalg::trace;
use crate::error::{Error, Result};
use crate::heads::HeadSettings;
use crate::inference::energy::{Energy, LayerTerms, Precision};
use crate::network::{Activation, Layer, Network};
use crate::optim::Optimiser;
use crate::real::Real;

/// Precisions, V and step sizes of a network's layers.
#[derive(Clone, Debug, Default)]
pub(crate) struct RelaxingLayers<T: Real> {
    /// Of layers 1 … L.
    terms: Vec<LayerTerms<T>>,
    /// Of z_0 … z_L; none of z_0 where it is always clamped.
    step_sizes: Vec<Option<StepSize<T>>>,
    /// Whether V and Ψ of the hidden layers are still those of `terms`.
    current: bool,
}

/// An energy, and how to descend it.
#[derive(Clone, Debug)]
pub(crate) struct Relaxation<'a, T: Real> {
    /// The energy.
    pub energy: Energy<'a, T>,
    /// The settings.
    pub settings: &'a RelaxationSettings,
    /// The head, if it does not clamp targets as they are, and the rows of each block of the output.
    pub head: Option<(&'a HeadSettings, Vec<usize>)>,
    step_sizes: &'a [Option<StepSize<T>>],
}

impl<'a, T: Real> Relaxation<'a, T> {
    /// The same for targets that this network's head reads.
    pub fn read_by(self, network: &'a Network<T>) -> Self {
        let head = &network.settings().head;
        let rows = || network.output().blocks().iter().map(Layer::d_post).collect();
        Self { head: (!head.head().is_gaussian()).then(|| (head, rows())), ..self }
    }

    /// How z_k steps, if it ever does.
    pub fn optimiser(&self, k: usize) -> Option<Optimiser> {
        self.step_sizes[k].as_ref().map(|step| self.settings.optimiser.at_rate(step.rate()))
    }
}

impl<T: Real> RelaxingLayers<T> {
    /// Look at a network for the first time. Unless `input_is_free`, z_0 never moves.
    pub fn new(network: &Network<T>, settings: &RelaxationSettings, input_is_free: bool) -> Result<Self> {
        let mut layers = Self::default();
        layers.update(network, settings, input_is_free)?;
        Ok(layers)
    }

    /// Layers with ⟨Σ_l⁻¹⟩ = I and certain weights: plain predictive coding.
    pub fn of_unit_precision(n_layers: usize) -> Self {
        let unit = LayerTerms { precision: Precision::Scalar(T::one()), col_cov: None, blocks: Vec::new() };
        Self { terms: vec![unit; n_layers], ..Self::default() }
    }

    /// V or Ψ of a hidden layer has changed.
    pub fn forget(&mut self) {
        self.current = false;
    }

    /// ⟨Σ⁻¹⟩ and V of layers 1 … L.
    pub fn terms(&self) -> &[LayerTerms<T>] {
        &self.terms
    }

    /// The energy with these means, and how to descend it.
    pub fn relaxation<'a>(
        &'a self,
        means: Vec<MatRef<'a, T>>,
        activation: Activation,
        settings: &'a RelaxationSettings,
    ) -> Relaxation<'a, T> {
        let energy =
            Energy { means, terms: &self.terms, activation, temperature: settings.weight_uncertainty };
        Relaxation { energy, settings, head: None, step_sizes: &self.step_sizes }
    }

    /// Look at the network again: at its means and its output layer always, at the rest if it has changed.
    pub fn update(
        &mut self,
        network: &Network<T>,
        settings: &RelaxationSettings,
        input_is_free: bool,
    ) -> Result<()> {
        if network.is_wide() {
            return Err(Error::Conflict {
                first: "network.wide_layers other than dense",
                second: "relaxation",
            });
        }
        let (hidden, output) = (network.hidden(), &network.output().blocks()[0]);
        // The term of a clamped input is constant.
        let col_cov = |l: usize, layer: &Layer<T>| {
            (settings.weight_uncertainty > 0.0 && (l > 0 || input_is_free)).then(|| layer.col_cov())
        };
        let (top, mean_precision) = if let Some(p) = settings.output_precision {
            (Precision::Scalar(T::lit(p)), p)
        } else {
            let learned = output.expected_precision()?;
            let mean = trace(learned.as_ref()).as_f64() / learned.nrows() as f64;
            (Precision::Full(learned), mean)
        };
        let scalar = match settings.hidden_precision {
            HiddenPrecision::Learned => None,
            HiddenPrecision::Tied(r) => Some(T::lit(r * mean_precision)),
            HiddenPrecision::Fixed(p) => Some(T::lit(p)),
        };
        let changed = !self.current || self.terms.len() != hidden.len() + 1;
        if changed {
            self.terms.clear();
            for (l, layer) in hidden.iter().enumerate() {
                let precision = match scalar {
                    Some(p) => Precision::Scalar(p),
                    None => Precision::Full(layer.expected_precision()?),
                };
                self.terms.push(LayerTerms { precision, col_cov: col_cov(l, layer), blocks: Vec::new() });
            }
        } else {
            self.terms.truncate(hidden.len());
            if let Some(p) = scalar {
                self.terms.iter_mut().for_each(|terms| terms.precision = Precision::Scalar(p));
            }
        }
        let blocks = network.output().blocks();
        self.terms.push(if network.settings().head.head().is_gaussian() {
            LayerTerms { precision: top, col_cov: col_cov(hidden.len(), output), blocks: Vec::new() }
        } else {
            // Weights of the samples carry the noise of such a head.
            let own = |block: &Layer<T>| Some((col_cov(hidden.len(), block)?, block.d_post()));
            let blocks = blocks.iter().filter_map(own).collect();
            LayerTerms { precision: Precision::Scalar(T::one()), col_cov: None, blocks }
        });
        self.current = true;
        let input_precision = input_is_free.then(|| 1.0 / network.settings().input_var);
        self.bound_steps(&network.means(), network.settings().activation, settings, input_precision, changed);
        Ok(())
    }

    /// Step sizes under these means; that of z_0 only if it has a prior. `check` looks at every eigenvalue.
    pub fn bound_steps(
        &mut self,
        means: &[MatRef<'_, T>],
        activation: Activation,
        settings: &RelaxationSettings,
        input_precision: Option<f64>,
        check: bool,
    ) {
        let top = means.len();
        let d_above = |k: usize| means.get(k).map_or(0, MatRef::nrows);
        if self.step_sizes.len() != top + 1 || self.step_sizes[0].is_some() != input_precision.is_some() {
            let input = input_precision.map(|_| StepSize::new(means[0].ncols() - 1, d_above(0)));
            let others = (1..=top).map(|k| Some(StepSize::new(means[k - 1].nrows(), d_above(k))));
            self.step_sizes = std::iter::once(input).chain(others).collect();
        }
        let prior = Precision::Scalar(T::lit(input_precision.unwrap_or(0.0)));
        for (k, step_size) in self.step_sizes.iter_mut().enumerate() {
            let Some(step_size) = step_size else { continue };
            if let Some(rate) = settings.optimiser.fixed_rate() {
                step_size.fix(rate);
                continue;
            }
            if settings.variables == Variables::Errors {
                // Errors find the length of a step by themselves.
                continue;
            }
            // A slope below 1 leaves room for f″, which the bound does not see: it stays.
            let slope = if k == 0 { 1.0 } else { activation.derivative_bound().max(1.0) };
            let above = means.get(k).map(|mean| {
                let d = mean.ncols() - 1;
                let factor = T::lit(settings.weight_uncertainty * mean.nrows() as f64);
                let col_cov = self.terms[k].col_cov.as_ref();
                Above {
                    slope_squared: T::lit(slope * slope),
                    weights: mean.subcols(0, d),
                    precision: &self.terms[k].precision,
                    col_cov: col_cov.map(|v| (v.submatrix(0, 0, d, d), factor)),
                }
            });
            let own = if k == 0 { &prior } else { &self.terms[k - 1].precision };
            step_size.update(&Curvature { own, above }, check);
        }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand::SeedableRng;

    use super::*;
    use crate::base::linalg::largest_eigenvalue;
    use crate::network::NetworkSettings;

    fn network(hidden: &[usize], activation: Activation) -> Network<f64> {
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(6);
        let hidden_layer_sizes = hidden.to_vec();
        let settings = NetworkSettings { hidden_layer_sizes, activation, ..NetworkSettings::default() };
        Network::new(&settings, 4, 2, &mut rng).unwrap()
    }

    #[test]
    fn the_step_of_a_single_unit_is_one_over_its_largest_curvature() {
        for (activation, slope) in [
            (Activation::Sigmoid, 1.0),
            (Activation::Tanh, 1.0),
            (Activation::Gelu, 1.128_904_145_185_155),
            (Activation::Silu, 1.099_839_320_128_867_2),
        ] {
            let network = network(&[1], activation);
            let settings = RelaxationSettings {
                hidden_precision: HiddenPrecision::Fixed(0.1),
                output_precision: Some(2.0),
                ..RelaxationSettings::tied()
            };
            let layers = RelaxingLayers::new(&network, &settings, false).unwrap();
            let weights = network.means()[1].col(0);
            let curvature = 0.1 + slope * slope * 2.0 * weights.squared_norm_l2();
            assert_relative_eq!(rate(&layers, 1), 1.0 / curvature, max_relative = 1e-12);
            assert_relative_eq!(rate(&layers, 2), 0.5, max_relative = 1e-12);
            assert!(layers.step_sizes[0].is_none(), "a clamped input does not move");
        }
    }

    #[test]
    fn steps_keep_to_the_spectral_bound_while_weights_move() {
        for activation in [Activation::Relu, Activation::Gelu] {
            let mut network = network(&[9, 7], activation);
            for weight_uncertainty in [0.0, 0.3] {
                let settings = RelaxationSettings { weight_uncertainty, ..RelaxationSettings::tied() };
                let mut layers = RelaxingLayers::default();
                for _ in 0..6 {
                    layers.update(&network, &settings, false).unwrap();
                    for l in 0..2 {
                        let product = rate(&layers, l + 1) * largest_curvature(&network, &layers, l);
                        assert!((0.9..1.25).contains(&product), "{activation:?}: {product} instead of 1");
                    }
                    for layer in network.hidden_mut() {
                        layer.moving().change_working_mean(|mut mean| {
                            let factor = 1.0 + 0.3 * mean[(1, 2)];
                            faer::zip!(&mut mean).for_each(|faer::unzip!(m)| *m *= factor);
                        });
                    }
                }
            }
        }
    }

    fn rate(layers: &RelaxingLayers<f64>, k: usize) -> f64 {
        layers.step_sizes[k].as_ref().unwrap().rate()
    }

    /// λ_max for `post[l]`, with f′ at its largest everywhere.
    fn largest_curvature(network: &Network<f64>, layers: &RelaxingLayers<f64>, l: usize) -> f64 {
        let (mean, above) = (network.means()[l + 1], &layers.terms[l + 1]);
        let d = mean.ncols() - 1;
        let weights = mean.subcols(0, d);
        let mut from_above = weights.transpose() * above.precision.to_matrix(mean.nrows()) * weights;
        if let Some(col_cov) = &above.col_cov {
            from_above += col_cov.submatrix(0, 0, d, d) * faer::Scale(0.3 * mean.nrows() as f64);
        }
        let slope = network.settings().activation.derivative_bound();
        let curvature = layers.terms[l].precision.to_matrix(d) + from_above * faer::Scale(slope * slope);
        largest_eigenvalue(curvature.as_ref())
    }
}
