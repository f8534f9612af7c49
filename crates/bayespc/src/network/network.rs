//! The network: hidden layers, an output layer in blocks, and a head that reads it.

use faer::{Mat, MatRef};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::activation::Activation;
use super::init::Init;
use super::layer::{Layer, LayerPrior, PriorSettings};
use super::point::PointNetwork;
use crate::base::linalg::{Cholesky, cast};
use crate::distributions::MatrixNormalWishart;
use crate::error::{Error, Result};
use crate::heads::{Block, HeadSettings};
use crate::real::Real;

/// Shape, prior and head of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSettings {
    /// Widths of the hidden layers; may be empty.
    pub hidden_layer_sizes: Vec<usize>,
    /// f of the hidden layers. The input is never passed through it.
    pub activation: Activation,
    /// Where the weights start.
    pub init: Init,
    /// Prior of every layer.
    pub prior: PriorSettings,
    /// Likelihood of the target.
    pub head: HeadSettings,
    /// Variance of the prior z_0 ~ N(0, `input_var` · I), used only where z_0 is not clamped.
    pub input_var: f64,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            hidden_layer_sizes: vec![50, 50],
            activation: Activation::default(),
            init: Init::default(),
            prior: PriorSettings::default(),
            head: HeadSettings::default(),
            input_var: 1.0,
        }
    }
}

impl NetworkSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        if let Some(l) = self.hidden_layer_sizes.iter().position(|&d| d == 0) {
            return Err(Error::Setting {
                name: "hidden_layer_sizes",
                value: l as f64,
                must_be: "a list of widths of at least 1 (the value is the index of the empty layer)",
            });
        }
        if !(self.input_var.is_finite() && self.input_var > 0.0) {
            return Err(Error::Setting {
                name: "input_var",
                value: self.input_var,
                must_be: "positive and finite",
            });
        }
        self.init.validate()?;
        self.prior.validate()?;
        self.head.validate()
    }
}

/// The output layer: blocks of rows, each with a posterior of its own.
#[derive(Clone, Debug)]
pub struct OutputLayer<T: Real> {
    blocks: Vec<Layer<T>>,
    specs: Vec<Block>,
    working_mean: Mat<T>,
}

impl<T: Real> OutputLayer<T> {
    fn from_blocks(blocks: Vec<Layer<T>>, specs: Vec<Block>) -> Self {
        let d_pre = blocks[0].d_pre();
        let rows = blocks.iter().map(Layer::d_post).sum();
        let mut layer = Self { blocks, specs, working_mean: Mat::zeros(rows, d_pre) };
        layer.stack_means();
        layer
    }

    /// The blocks, top rows first.
    pub fn blocks(&self) -> &[Layer<T>] {
        &self.blocks
    }

    /// What the head asked of each block.
    pub fn specs(&self) -> &[Block] {
        &self.specs
    }

    /// Change the blocks, then bring the stacked mean up to date.
    pub fn update(&mut self, mut change: impl FnMut(usize, &mut Layer<T>) -> Result<()>) -> Result<()> {
        for (b, block) in self.blocks.iter_mut().enumerate() {
            change(b, block)?;
        }
        self.stack_means();
        Ok(())
    }

    /// Means of all blocks, stacked: `d_activity × d_pre`.
    pub fn working_mean(&self) -> MatRef<'_, T> {
        self.working_mean.as_ref()
    }

    /// Width of the output activity.
    pub fn d_activity(&self) -> usize {
        self.working_mean.nrows()
    }

    /// First row and number of rows of each block.
    pub fn row_ranges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.blocks.iter().scan(0, |start, block| {
            let range = (*start, block.d_post());
            *start += block.d_post();
            Some(range)
        })
    }

    fn stack_means(&mut self) {
        let mut start = 0;
        for block in &self.blocks {
            self.working_mean.as_mut().subrows_mut(start, block.d_post()).copy_from(block.working_mean());
            start += block.d_post();
        }
    }
}

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

impl<T: Real> Network<T> {
    /// A network that has seen no data.
    pub fn new(
        settings: &NetworkSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Self> {
        settings.validate()?;
        if d_input == 0 {
            return Err(Error::Empty { what: "the input (no features)" });
        }
        if n_targets == 0 {
            return Err(Error::Empty { what: "the target (no columns)" });
        }
        let prior = &settings.prior;
        let mut hidden = Vec::with_capacity(settings.hidden_layer_sizes.len());
        let mut d_below = d_input;
        for (l, &width) in settings.hidden_layer_sizes.iter().enumerate() {
            let col_var = if l == 0 { prior.input_col_var.unwrap_or(prior.col_var) } else { prior.col_var };
            let layer_prior = LayerPrior {
                col_var,
                bias_var: None,
                inv_scale: 1.0 / prior.scale,
                extra_dof: prior.extra_dof,
            };
            let mean = settings.init.weights(width, d_below, rng);
            hidden.push(Layer::new(&layer_prior, mean.as_ref())?);
            d_below = width;
        }
        let specs = settings.head.head().blocks(n_targets, prior);
        let mut blocks = Vec::with_capacity(specs.len());
        for spec in &specs {
            let mean = if spec.random_start {
                settings.init.weights(spec.rows, d_below, rng)
            } else {
                Mat::zeros(spec.rows, d_below + 1)
            };
            blocks.push(Layer::new(&spec.prior, mean.as_ref())?);
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
        self.hidden.iter().chain(&self.output.blocks)
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
        let posteriors = self.posteriors()?;
        Ok(PointNetwork {
            weights: self.means().into_iter().map(|m| m.to_owned()).collect(),
            activation: self.settings.activation,
            head: self.settings.head.clone(),
            output_noise: posteriors.output_noise()?,
            hidden_noise: self.hidden_noise.then(|| posteriors.hidden_noise_roots()).transpose()?,
        })
    }

    /// Every layer's posterior, factored and ready to predict with.
    pub fn posteriors(&self) -> Result<Posteriors> {
        let derive = |layers: &[Layer<T>]| layers.iter().map(Layer::posterior).collect::<Result<Vec<_>>>();
        Ok(Posteriors { hidden: derive(&self.hidden)?, output: derive(&self.output.blocks)? })
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
        let mut top = Mat::zeros(d_activity, self.output.blocks[0].d_pre());
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
        let convert = |layers: &[Layer<T>]| {
            layers
                .iter()
                .map(|l| Layer::from_natural(l.prior().clone(), l.natural()))
                .collect::<Result<Vec<_>>>()
        };
        Ok(Network::from_parts(
            self.settings.clone(),
            self.d_input,
            self.n_targets,
            convert(&self.hidden)?,
            convert(&self.output.blocks)?,
            self.hidden_noise,
        ))
    }
}

/// The posteriors of all layers as distributions.
#[derive(Clone, Debug)]
pub struct Posteriors {
    /// Hidden layers, from the input up.
    pub hidden: Vec<MatrixNormalWishart>,
    /// Blocks of the output layer.
    pub output: Vec<MatrixNormalWishart>,
}

impl Posteriors {
    /// ⟨Σ_L⟩, block diagonal.
    pub fn output_noise(&self) -> Result<Mat<f64>> {
        let parts =
            self.output.iter().map(MatrixNormalWishart::expected_covariance).collect::<Result<Vec<_>>>()?;
        Ok(block_diagonal(&parts))
    }

    /// ⟨Σ_L⁻¹⟩, block diagonal.
    pub fn output_precision(&self) -> Mat<f64> {
        let parts: Vec<_> = self.output.iter().map(MatrixNormalWishart::expected_precision).collect();
        block_diagonal(&parts)
    }

    /// Degrees of freedom ν − d + 1 of the output's predictive: of the least certain block.
    pub fn output_dof(&self) -> f64 {
        self.output.iter().map(|q| q.dof() - q.d_post() as f64 + 1.0).fold(f64::INFINITY, f64::min)
    }

    fn hidden_noise_roots<T: Real>(&self) -> Result<Vec<Mat<T>>> {
        self.hidden
            .iter()
            .map(|q| {
                Ok(cast(Cholesky::new(q.expected_covariance()?.as_ref(), "a hidden covariance")?.lower()))
            })
            .collect()
    }
}

fn block_diagonal(parts: &[Mat<f64>]) -> Mat<f64> {
    let d = parts.iter().map(Mat::nrows).sum();
    let mut whole = Mat::zeros(d, d);
    let mut start = 0;
    for part in parts {
        whole.as_mut().submatrix_mut(start, start, part.nrows(), part.nrows()).copy_from(part);
        start += part.nrows();
    }
    whole
}
