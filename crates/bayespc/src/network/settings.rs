//! Settings of a network: its shape, its prior, where it starts and how its output is read.

use faer::Mat;
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::activation::Activation;
use super::init::Init;
use super::wide_layers::WideLayers;
use crate::error::{Error, Result};
use crate::heads::HeadSettings;

/// Shape, prior and head of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSettings {
    /// Widths of the hidden layers; may be empty.
    pub hidden_layer_sizes: Vec<usize>,
    /// Hidden layers as wide as the one below begin at the identity, and their prior is around it: what a layer learns it
    /// adds to what comes from below. For deep networks.
    pub residual: bool,
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
    /// How much of the precisions of wide layers is kept. What is linear in a layer's width takes less memory and time;
    /// only the feedback rule knows it.
    pub wide_layers: WideLayers,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        Self {
            hidden_layer_sizes: vec![50, 50],
            residual: false,
            activation: Activation::default(),
            init: Init::default(),
            prior: PriorSettings::default(),
            head: HeadSettings::default(),
            input_var: 1.0,
            wide_layers: WideLayers::default(),
        }
    }
}

impl NetworkSettings {
    /// Whether layer `l`, counted from 0, adds to the one below.
    pub fn is_residual(&self, l: usize) -> bool {
        let width = |l: usize| self.hidden_layer_sizes.get(l);
        self.residual && l > 0 && width(l).is_some() && width(l) == width(l - 1)
    }

    /// First weights of a residual layer: I + W/√K with W as `init` has it, bias included, and K such layers. Then what
    /// the layers add up to is as large as what one of them would be (µPC, Innocenti et al. 2025).
    pub(crate) fn residual_weights(&self, width: usize, rng: &mut dyn Rng) -> Mat<f64> {
        let layers = (0..self.hidden_layer_sizes.len()).filter(|&l| self.is_residual(l)).count();
        let mut weights = self.init.weights(width, width, rng) * faer::Scale(1.0 / (layers as f64).sqrt());
        (0..width).for_each(|i| weights[(i, i)] += 1.0);
        weights
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        if self.hidden_layer_sizes.contains(&0) {
            return Err(Error::Setting {
                name: "hidden_layer_sizes",
                value: 0.0,
                must_be: "a list of widths, each at least 1",
            });
        }
        if !(self.input_var.is_finite() && self.input_var > 0.0) {
            return Err(Error::Setting {
                name: "input_var",
                value: self.input_var,
                must_be: "positive and finite",
            });
        }
        if self.prior.relevance && !self.hidden_layer_sizes.is_empty() {
            return Err(Error::Conflict { first: "prior.relevance", second: "hidden layers" });
        }
        if self.prior.relevance {
            self.head.require_gaussian("prior.relevance")?;
        }
        self.wide_layers.validate()?;
        self.init.validate()?;
        self.prior.validate()?;
        self.head.validate()
    }
}

/// Prior of every layer's weights and noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriorSettings {
    /// V⁰ = `var` · I: how large weights may be, relative to the layer's noise. The one setting that
    /// matters: too wide overfits, too narrow underfits.
    pub var: f64,
    /// V⁰ of the first layer, if it differs.
    pub input_layer_var: Option<f64>,
    /// Factors on V⁰ of the first layer, one for each of its inputs; empty: all alike. The search sets them by what
    /// inputs tell of samples held out.
    pub input_factors: Vec<f64>,
    /// V⁰ of the output layer, if it differs.
    pub output_layer_var: Option<f64>,
    /// Ψ⁰ = `scale` · I.
    pub scale: f64,
    /// ν⁰ = d_y + `extra_dof`; above 1, so that ⟨Σ⟩ exists.
    pub extra_dof: f64,
    /// One V⁰ for each input, learned from the data: inputs that tell nothing are silenced. Of
    /// networks without hidden layers and of constant noise.
    pub relevance: bool,
}

impl Default for PriorSettings {
    /// The paper's prior.
    fn default() -> Self {
        Self {
            var: 10.0,
            input_layer_var: None,
            input_factors: Vec::new(),
            output_layer_var: None,
            scale: 1000.0,
            extra_dof: 2.0,
            relevance: false,
        }
    }
}

impl PriorSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        let positive = |name, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(Error::Setting { name, value, must_be: "positive and finite" })
            }
        };
        positive("prior.var", self.var)?;
        positive("prior.input_layer_var", self.input_layer_var.unwrap_or(1.0))?;
        self.input_factors.iter().try_for_each(|&factor| positive("prior.input_factors", factor))?;
        positive("prior.output_layer_var", self.output_layer_var.unwrap_or(1.0))?;
        positive("prior.scale", self.scale)?;
        if self.extra_dof.is_finite() && self.extra_dof > 1.0 {
            Ok(())
        } else {
            Err(Error::DegreesOfFreedom {
                what: "the prior (prior.extra_dof)",
                dof: self.extra_dof,
                bound: 1.0,
            })
        }
    }
}
