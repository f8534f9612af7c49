//! The network: hidden layers, an output layer in blocks, and a head that reads it.

use faer::{Mat, MatRef};
use rand::Rng;

use super::layer::{Layer, LayerPrior};
use super::output::OutputLayer;
use super::point::PointNetwork;
use super::posteriors::{Posteriors, block_diagonal};
use super::settings::NetworkSettings;
use crate::base::check;
use crate::base::linalg::{Cholesky, cast};
use crate::error::{Error, Result};
use crate::real::Real;

/// A Bayesian predictive-coding network.
#[derive(Clone, Debug)]
pub struct Network<T: Real> {
    settings: NetworkSettings,
    d_input: usize,
    n_targets: usize,
    hidden: Vec<Layer<T>>,
    output: OutputLayer<T>,
    hidden_noise: bool,
}

/// Where the weights of a layer start, if nobody knows better.
#[derive(Clone, Copy)]
enum Start {
    Random,
    /// Around the identity.
    Residual,
    Zero,
}

impl<T: Real> Network<T> {
    /// A network that has seen no data.
    pub fn new(
        settings: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Self> {
        Self::assembled(settings, d_input, n_targets, &mut |rows, below, start| match start {
            Start::Random => settings.init.weights(rows, below, rng),
            Start::Residual => settings.residual_weights(rows, rng),
            Start::Zero => Mat::zeros(rows, below + 1),
        })
    }

    /// A network that has seen no data, with these weights: W_1 … W_L, each with its bias in the last column. The last
    /// one has a row for each row of the output activity.
    pub fn with_weights(
        settings: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        weights: &[Mat<f64>],
    ) -> Result<Self> {
        let d_activity = settings.head.head().blocks(n_targets, &settings.prior).iter().map(|b| b.rows).sum();
        let hidden = settings.hidden_layer_sizes.iter().copied();
        let widths: Vec<usize> = std::iter::once(d_input).chain(hidden).chain([d_activity]).collect();
        let (found, expected) = (weights.len(), widths.len() - 1);
        if found != expected {
            return Err(Error::Shape { what: "the network", axis: "layers", found, expected });
        }
        for (own, width) in weights.iter().zip(widths.windows(2)) {
            check::check_shape("a layer's weights, with its bias,", own.as_ref(), width[1], width[0] + 1)?;
        }
        // The blocks of the last layer are its rows in order.
        let (mut place, mut first) = (0, 0);
        Self::assembled(settings, d_input, n_targets, &mut |rows, _, _| {
            let part = weights[place].subrows(first, rows).to_owned();
            (place, first) = if place + 1 < weights.len() { (place + 1, 0) } else { (place, first + rows) };
            part
        })
    }

    /// A network whose weights `mean` tells, layer by layer and block by block of the last, given the rows, the width
    /// below and where training would start.
    fn assembled(
        settings: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        mean: &mut dyn FnMut(usize, usize, Start) -> Mat<f64>,
    ) -> Result<Self> {
        settings.validate()?;
        if d_input == 0 {
            return Err(Error::Empty { what: "the input (no features)" });
        }
        if n_targets == 0 {
            return Err(Error::Empty { what: "the target (no columns)" });
        }
        let prior = &settings.prior;
        // A wide layer's prior is around zero, and a network is wide as a whole.
        let residual = (0..settings.hidden_layer_sizes.len()).any(|l| settings.is_residual(l));
        let columns = settings.wide_layers;
        let columns = if residual { columns.or_dense("network.residual")? } else { columns };
        let wide = columns.is_wide(d_input, &settings.hidden_layer_sizes);
        let own = &prior.input_factors;
        if !(own.is_empty() || own.len() == d_input) {
            let (found, expected) = (own.len(), d_input);
            return Err(Error::Shape { what: "prior.input_factors", axis: "inputs", found, expected });
        }
        let no_hidden = settings.hidden_layer_sizes.is_empty();
        let layer = |prior: &LayerPrior, mut mean: Mat<f64>, hidden: bool, first: bool| {
            let factors = if first { &own[..] } else { &[] };
            for (j, factor) in factors.iter().enumerate() {
                mean.col_mut(j).iter_mut().for_each(|weight| *weight *= factor.sqrt());
            }
            if wide {
                let structure = columns.structure(mean.ncols() - 1);
                return Ok(Layer::new_wide(prior, factors, mean.as_ref(), structure, hidden));
            }
            Layer::with_factors(prior, factors, mean.as_ref())
        };
        let mut hidden = Vec::with_capacity(settings.hidden_layer_sizes.len());
        let mut d_below = d_input;
        for (l, &width) in settings.hidden_layer_sizes.iter().enumerate() {
            let var = if l == 0 { prior.input_layer_var.unwrap_or(prior.var) } else { prior.var };
            let layer_prior =
                LayerPrior { var, bias_var: None, inv_scale: 1.0 / prior.scale, extra_dof: prior.extra_dof };
            hidden.push(if settings.is_residual(l) {
                Layer::residual(&layer_prior, mean(width, d_below, Start::Residual).as_ref())?
            } else {
                layer(&layer_prior, mean(width, d_below, Start::Random), true, l == 0)?
            });
            d_below = width;
        }
        let specs = settings.head.head().blocks(n_targets, prior);
        let mut blocks = Vec::with_capacity(specs.len());
        for spec in &specs {
            let start = if spec.random_start { Start::Random } else { Start::Zero };
            blocks.push(layer(&spec.prior, mean(spec.rows, d_below, start), false, no_hidden)?);
        }
        let output = OutputLayer::from_blocks(blocks, specs);
        Ok(Self { settings: settings.clone(), d_input, n_targets, hidden, output, hidden_noise: false })
    }

    /// Shape, prior and head.
    pub fn settings(&self) -> &NetworkSettings {
        &self.settings
    }

    /// Number of input features.
    pub fn d_input(&self) -> usize {
        self.d_input
    }

    /// Number of target columns.
    pub fn n_targets(&self) -> usize {
        self.n_targets
    }

    /// Hidden layers, from the input up.
    pub fn hidden(&self) -> &[Layer<T>] {
        &self.hidden
    }

    /// Hidden layers, to learn in.
    pub fn hidden_mut(&mut self) -> &mut [Layer<T>] {
        &mut self.hidden
    }

    /// The output layer.
    pub fn output(&self) -> &OutputLayer<T> {
        &self.output
    }

    /// The output layer, to learn in.
    pub fn output_mut(&mut self) -> &mut OutputLayer<T> {
        &mut self.output
    }

    /// The hidden layers and the output layer, to learn in at the same time.
    pub fn layers_mut(&mut self) -> (&mut [Layer<T>], &mut OutputLayer<T>) {
        (&mut self.hidden, &mut self.output)
    }

    /// All layers in order, output blocks last.
    pub fn layers(&self) -> impl Iterator<Item = &Layer<T>> {
        self.hidden.iter().chain(self.output.blocks())
    }

    /// Number of weights, biases included.
    pub fn n_weights(&self) -> usize {
        self.layers().map(|layer| layer.d_post() * layer.d_pre()).sum()
    }

    /// Whether Σ of a hidden layer is noise of its activity (trained by relaxation) or only the metric of
    /// its weights' uncertainty (trained by feedback).
    pub fn hidden_noise(&self) -> bool {
        self.hidden_noise
    }

    /// Say what the hidden Σ means; the training rule knows.
    pub fn set_hidden_noise(&mut self, noise: bool) {
        self.hidden_noise = noise;
    }

    /// Whether its layers keep only what is linear in their widths.
    pub fn is_wide(&self) -> bool {
        self.layers().next().is_some_and(|layer| layer.wide().is_some())
    }

    /// Every layer with all of its precisions, for what needs them whole.
    pub(crate) fn make_dense(&mut self) -> Result<()> {
        for layer in &mut self.hidden {
            layer.set_natural(layer.natural())?;
        }
        self.output.update(|_, block| block.set_natural(block.natural()))
    }

    /// d_0 … d_L, where d_L is the width of the output activity.
    pub fn widths(&self) -> Vec<usize> {
        std::iter::once(self.d_input)
            .chain(self.hidden.iter().map(Layer::d_post))
            .chain(std::iter::once(self.output.d_activity()))
            .collect()
    }

    /// M_1 … M_L in working precision.
    pub fn means(&self) -> Vec<MatRef<'_, T>> {
        self.hidden
            .iter()
            .map(Layer::working_mean)
            .chain(std::iter::once(self.output.working_mean()))
            .collect()
    }

    /// Output activity of the mean network, `d_L × n`.
    pub fn forward(&self, input: MatRef<'_, T>) -> Result<Mat<T>> {
        super::point::check_input(input, self.d_input)?;
        Ok(super::point::forward_chunks(&self.means(), self.settings.activation, input))
    }

    /// The network at its posterior mean.
    pub fn mean_network(&self) -> Result<PointNetwork<T>> {
        if self.is_wide() {
            // Without the column precisions, which would be whole.
            return Ok(PointNetwork {
                weights: self.means().into_iter().map(|m| m.to_owned()).collect(),
                activation: self.settings.activation,
                head: self.settings.head.clone(),
                output_noise: self.output_noise()?,
                hidden_noise: None,
            });
        }
        let posteriors = self.posteriors()?;
        Ok(PointNetwork {
            weights: self.means().into_iter().map(|m| m.to_owned()).collect(),
            activation: self.settings.activation,
            head: self.settings.head.clone(),
            output_noise: posteriors.output_noise()?,
            hidden_noise: self.hidden_noise.then(|| posteriors.hidden_noise_roots()).transpose()?,
        })
    }

    /// ⟨Σ_L⟩, block diagonal.
    pub fn output_noise(&self) -> Result<Mat<f64>> {
        let blocks = self.output.blocks().iter();
        let parts = blocks.map(|block| block.noise()?.expected_covariance()).collect::<Result<Vec<_>>>()?;
        Ok(block_diagonal(&parts))
    }

    /// Every layer's posterior, factored and ready to predict with.
    pub fn posteriors(&self) -> Result<Posteriors> {
        let derive = |layers: &[Layer<T>]| layers.iter().map(Layer::posterior).collect::<Result<Vec<_>>>();
        Ok(Posteriors { hidden: derive(&self.hidden)?, output: derive(self.output.blocks())? })
    }

    /// Draw a network from the posterior.
    pub fn draw(&self, posteriors: &Posteriors, rng: &mut dyn Rng) -> Result<PointNetwork<T>> {
        let mut weights = Vec::with_capacity(self.hidden.len() + 1);
        let mut noise_roots = Vec::with_capacity(self.hidden.len());
        for posterior in &posteriors.hidden {
            let draw = posterior.sample(rng);
            weights.push(cast(draw.weights.as_ref()));
            if self.hidden_noise {
                let root = Cholesky::new(draw.precision.covariance().as_ref(), "a drawn hidden covariance")?;
                noise_roots.push(cast(root.lower()));
            }
        }
        let d_activity = self.output.d_activity();
        let mut top = Mat::zeros(d_activity, self.output.blocks()[0].d_pre());
        let mut output_noise = Mat::zeros(d_activity, d_activity);
        for (posterior, (start, rows)) in posteriors.output.iter().zip(self.output.row_ranges()) {
            let draw = posterior.sample(rng);
            top.as_mut().subrows_mut(start, rows).copy_from(cast::<f64, T>(draw.weights.as_ref()));
            output_noise
                .as_mut()
                .submatrix_mut(start, start, rows, rows)
                .copy_from(draw.precision.covariance());
        }
        weights.push(top);
        Ok(PointNetwork {
            weights,
            activation: self.settings.activation,
            head: self.settings.head.clone(),
            output_noise,
            hidden_noise: self.hidden_noise.then_some(noise_roots),
        })
    }

    /// Rebuild a network from parts, as the model file does.
    pub(crate) fn from_parts(
        settings: NetworkSettings,
        d_input: usize,
        n_targets: usize,
        hidden: Vec<Layer<T>>,
        output: Vec<Layer<T>>,
        hidden_noise: bool,
    ) -> Self {
        let specs = settings.head.head().blocks(n_targets, &settings.prior);
        let output = OutputLayer::from_blocks(output, specs);
        Self { settings, d_input, n_targets, hidden, output, hidden_noise }
    }

    /// The same network with activities in another working precision.
    pub fn to_precision<S: Real>(&self) -> Result<Network<S>> {
        let convert =
            |layers: &[Layer<T>]| layers.iter().map(Layer::to_precision).collect::<Result<Vec<_>>>();
        Ok(Network::from_parts(
            self.settings.clone(),
            self.d_input,
            self.n_targets,
            convert(&self.hidden)?,
            convert(self.output.blocks())?,
            self.hidden_noise,
        ))
    }
}
