//! How activities descend the energy: plain gradient steps, momentum, or Adam, all with fresh state per
//! batch. The update laws are those of the weights, in `optim`; α of the first two is the step size of each
//! activity (`step_size`) unless it is given.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::optim::Optimiser;

/// Step rule of the activities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ActivityOptimiser {
    /// Gradient descent.
    Gradient {
        /// α, or the spectral bound of each layer if not given.
        rate: Option<f64>,
    },
    /// Gradient descent with momentum.
    Momentum {
        /// α, or the spectral bound of each layer if not given.
        rate: Option<f64>,
        /// μ.
        momentum: f64,
    },
    /// Adam (β₁ = 0.9, β₂ = 0.999): the paper's, with rate 0.01.
    Adam {
        /// α.
        rate: f64,
    },
}

impl ActivityOptimiser {
    /// α where it is fixed; `None` asks for the spectral bound.
    pub(super) fn fixed_rate(self) -> Option<f64> {
        match self {
            Self::Gradient { rate } | Self::Momentum { rate, .. } => rate,
            Self::Adam { rate } => Some(rate),
        }
    }

    /// The optimiser of an activity whose step size is `rate`.
    pub(super) fn at_rate(self, rate: f64) -> Optimiser {
        match self {
            Self::Gradient { .. } => Optimiser::Sgd { rate, momentum: 0.0 },
            Self::Momentum { momentum, .. } => Optimiser::Sgd { rate, momentum },
            Self::Adam { .. } => Optimiser::Adam { rate },
        }
    }

    /// Check the settings.
    pub fn validate(self) -> Result<()> {
        if let Some(rate) = self.fixed_rate()
            && !(rate.is_finite() && rate > 0.0)
        {
            return Err(Error::Setting {
                name: "relaxation.optimiser.rate",
                value: rate,
                must_be: "positive and finite",
            });
        }
        match self {
            Self::Momentum { momentum, .. } if !(0.0..1.0).contains(&momentum) => Err(Error::Setting {
                name: "relaxation.optimiser.momentum",
                value: momentum,
                must_be: "in [0, 1)",
            }),
            _ => Ok(()),
        }
    }
}
