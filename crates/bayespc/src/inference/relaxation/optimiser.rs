//! How activities descend the energy: plain gradient steps, momentum, or Adam, all with fresh state per
//! batch.
//!
//! ```text
//! gradient   z ← z − α g ,            α_l = 1/λ_max(⟨Σ_l⁻¹⟩ + M_{l+1}ᵀ⟨Σ_{l+1}⁻¹⟩M_{l+1} + τ d_{l+1} V_{l+1})
//! momentum   v ← μ v + g ,            z ← z − α v
//! Adam       m, v moving moments,     z ← z − α m̂/(√v̂ + 10⁻⁸)
//! ```

use faer::Mat;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::real::Real;

/// Step rule of the activities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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

/// Optimiser state of one activity matrix.
#[derive(Clone, Debug)]
pub(super) struct ActivityState<T: Real> {
    first: Mat<T>,
    second: Mat<T>,
}

impl<T: Real> ActivityState<T> {
    pub fn new(rows: usize, columns: usize) -> Self {
        Self { first: Mat::zeros(rows, columns), second: Mat::zeros(rows, columns) }
    }

    /// Forget the batch before.
    pub fn clear(&mut self) {
        self.first.fill(T::zero());
        self.second.fill(T::zero());
    }

    /// Turn the gradient into the step to subtract, for step number t = 1, 2, …
    pub fn step(&mut self, optimiser: ActivityOptimiser, gradient: &mut Mat<T>, rate: f64, t: usize) {
        let alpha = T::lit(rate);
        match optimiser {
            ActivityOptimiser::Gradient { .. } => {
                faer::zip!(gradient).for_each(|faer::unzip!(g)| *g = alpha * *g);
            }
            ActivityOptimiser::Momentum { momentum, .. } => {
                let mu = T::lit(momentum);
                faer::zip!(gradient, &mut self.first).for_each(|faer::unzip!(g, v)| {
                    *v = mu * *v + *g;
                    *g = alpha * *v;
                });
            }
            ActivityOptimiser::Adam { .. } => {
                let (b1, b2) = (T::lit(0.9), T::lit(0.999));
                let c1 = T::lit(1.0 / (1.0 - 0.9f64.powf(t as f64)));
                let c2 = T::lit(1.0 / (1.0 - 0.999f64.powf(t as f64)));
                let tiny = T::lit(1e-8);
                faer::zip!(gradient, &mut self.first, &mut self.second).for_each(|faer::unzip!(g, m, v)| {
                    *m = b1 * *m + (T::one() - b1) * *g;
                    *v = b2 * *v + (T::one() - b2) * *g * *g;
                    *g = alpha * (c1 * *m) / (num_traits::Float::sqrt(c2 * *v) + tiny);
                });
            }
        }
    }
}
