//! Where the weights start. The posterior starts at the prior in everything but its mean (paper App. F).
//!
//! ```text
//! uniform:  W, b ~ U(±gain/√fan_in)          he:  W ~ N(0, 2/fan_in), b = 0
//! ```

use faer::Mat;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Distribution of the first weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Init {
    /// U(±gain/√fan_in), bias included: the paper's, with gain 1.
    Uniform {
        /// Factor on the half width.
        gain: f64,
    },
    /// N(0, 2/fan_in), bias zero (He et al. 2015).
    He,
}

impl Default for Init {
    fn default() -> Self {
        Self::Uniform { gain: 1.0 }
    }
}

impl Init {
    /// Draw a `d_post × (d_in + 1)` weight matrix, bias in the last column.
    pub fn weights(self, d_post: usize, d_in: usize, rng: &mut dyn Rng) -> Mat<f64> {
        let fan_in = d_in.max(1) as f64;
        match self {
            Self::Uniform { gain } => {
                let half_width = gain / fan_in.sqrt();
                Mat::from_fn(d_post, d_in + 1, |_, _| half_width * (2.0 * rng.random::<f64>() - 1.0))
            }
            Self::He => {
                let std = (2.0 / fan_in).sqrt();
                Mat::from_fn(d_post, d_in + 1, |_, j| {
                    let draw: f64 = StandardNormal.sample(rng);
                    if j < d_in { std * draw } else { 0.0 }
                })
            }
        }
    }

    /// Check the setting.
    pub fn validate(self) -> Result<()> {
        match self {
            Self::Uniform { gain } if !(gain.is_finite() && gain > 0.0) => {
                Err(Error::Setting { name: "init.gain", value: gain, must_be: "positive and finite" })
            }
            _ => Ok(()),
        }
    }
}
