//! Adam (Kingma and Ba 2015), with decoupled weight decay (AdamW: Loshchilov and Hutter 2019).
//!
//! ```text
//! m ← β₁ m + (1−β₁) g ,   v ← β₂ v + (1−β₂) g²        β₁ = 0.9, β₂ = 0.999
//! m̂ = m/(1−β₁ᵗ) ,         v̂ = v/(1−β₂ᵗ)
//! θ ← (1 − α λ) θ − α m̂/(√v̂ + 10⁻⁸)                  λ = 0 for plain Adam
//! ```
//!
//! Decoupled: the decay is no part of the gradient, so the moments never see it.

use num_traits::Float;

use crate::real::Real;

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// The factors of step t, the same for every parameter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors<T> {
    /// α/(1−β₁ᵗ).
    rate: T,
    /// 1/(1−β₂ᵗ).
    second_correction: T,
    /// 1 − α λ.
    keep: T,
}

impl<T: Real> Factors<T> {
    /// Factors of step t = 1, 2, …
    pub fn new(rate: f64, weight_decay: f64, t: u64) -> Self {
        let correction = |beta: f64| 1.0 / (1.0 - beta.powf(t as f64));
        Self {
            rate: T::lit(rate * correction(BETA_1)),
            second_correction: T::lit(correction(BETA_2)),
            keep: T::lit(1.0 - rate * weight_decay),
        }
    }
}

/// One step on a run of parameters; `first` and `second` are m and v.
pub(super) fn step<T: Real>(
    parameters: &mut [T],
    gradient: &[T],
    first: &mut [T],
    second: &mut [T],
    factors: Factors<T>,
) {
    let (b1, b2, tiny) = (T::lit(BETA_1), T::lit(BETA_2), T::lit(EPSILON));
    let (new1, new2) = (T::lit(1.0 - BETA_1), T::lit(1.0 - BETA_2));
    for (((theta, &g), m), v) in parameters.iter_mut().zip(gradient).zip(first).zip(second) {
        *m = b1 * *m + new1 * g;
        *v = b2 * *v + new2 * g * g;
        *theta =
            factors.keep * *theta - factors.rate * *m / (Float::sqrt(factors.second_correction * *v) + tiny);
    }
}
