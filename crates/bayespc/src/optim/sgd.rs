//! Stochastic gradient descent with momentum.
//!
//! ```text
//! v ← μ v + g ,   θ ← θ − α v
//! ```

use crate::real::Real;

/// One step on a run of parameters; `velocity` is v.
pub(super) fn step<T: Real>(parameters: &mut [T], gradient: &[T], velocity: &mut [T], rate: T, momentum: T) {
    for ((theta, &g), v) in parameters.iter_mut().zip(gradient).zip(velocity) {
        *v = momentum * *v + g;
        *theta -= rate * *v;
    }
}

/// The same without momentum: θ ← θ − α g.
pub(super) fn plain_step<T: Real>(parameters: &mut [T], gradient: &[T], rate: T) {
    for (theta, &g) in parameters.iter_mut().zip(gradient) {
        *theta -= rate * g;
    }
}
