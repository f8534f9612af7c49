//! Activation functions f and their derivatives f′, pointwise.
//!
//! ```text
//! identity   z                      sigmoid    σ(z) = 1 / (1 + e^−z)
//! relu       max(0, z)              softplus   log(1 + e^z)
//! leaky_relu max(0, z) + 0.01 min(0, z)
//! tanh       tanh z                 gelu       z Φ(z), Φ the normal distribution function
//!                                   silu       z σ(z)
//! ```
//!
//! The matrix versions choose the function once and then run over contiguous columns.

use std::f64::consts::FRAC_1_SQRT_2;

use faer::{MatMut, MatRef};
use serde::{Deserialize, Serialize};

use crate::real::Real;
use crate::special::SQRT_TAU;

/// Slope of the leaky rectifier for z < 0.
pub const LEAKY_SLOPE: f64 = 0.01;

/// The nonlinearity f between layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Activation {
    /// z
    Identity,
    /// max(0, z)
    #[default]
    Relu,
    /// max(0, z) + 0.01 min(0, z)
    LeakyRelu,
    /// tanh z
    Tanh,
    /// 1 / (1 + e^−z)
    Sigmoid,
    /// log(1 + e^z)
    Softplus,
    /// z Φ(z), exact
    Gelu,
    /// z σ(z), also called swish
    Silu,
}

impl Activation {
    /// Every activation.
    pub const ALL: [Self; 8] = [
        Self::Identity,
        Self::Relu,
        Self::LeakyRelu,
        Self::Tanh,
        Self::Sigmoid,
        Self::Softplus,
        Self::Gelu,
        Self::Silu,
    ];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Relu => "relu",
            Self::LeakyRelu => "leaky_relu",
            Self::Tanh => "tanh",
            Self::Sigmoid => "sigmoid",
            Self::Softplus => "softplus",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
        }
    }

    /// f(z).
    #[inline]
    pub fn apply<T: Real>(self, z: T) -> T {
        match self {
            Self::Identity => z,
            Self::Relu => relu(z),
            Self::LeakyRelu => leaky_relu(z),
            Self::Tanh => z.tanh(),
            Self::Sigmoid => sigmoid(z),
            Self::Softplus => softplus(z),
            Self::Gelu => z * normal_cdf(z),
            Self::Silu => z * sigmoid(z),
        }
    }

    /// f′(z); at the kink of the rectifiers the slope of the left side.
    #[inline]
    pub fn derivative<T: Real>(self, z: T) -> T {
        match self {
            Self::Identity => T::one(),
            Self::Relu => step(z),
            Self::LeakyRelu => leaky_step(z),
            Self::Tanh => tanh_slope(z),
            Self::Sigmoid => sigmoid_slope(z),
            Self::Softplus => sigmoid(z),
            Self::Gelu => gelu_slope(z),
            Self::Silu => silu_slope(z),
        }
    }

    /// f″(z), zero at the kinks of the rectifiers as elsewhere.
    pub fn second_derivative(self, z: f64) -> f64 {
        match self {
            Self::Identity | Self::Relu | Self::LeakyRelu => 0.0,
            Self::Tanh => -2.0 * z.tanh() * tanh_slope(z),
            Self::Sigmoid => sigmoid_slope(z) * (1.0 - 2.0 * sigmoid(z)),
            Self::Softplus => sigmoid_slope(z),
            Self::Gelu => (2.0 - z * z) * (-0.5 * z * z).exp() / SQRT_TAU,
            Self::Silu => sigmoid_slope(z) * (2.0 + z * (1.0 - 2.0 * sigmoid(z))),
        }
    }

    /// Whether f is straight on both sides of a kink at 0, or everywhere.
    pub fn is_piecewise_linear(self) -> bool {
        matches!(self, Self::Identity | Self::Relu | Self::LeakyRelu)
    }

    /// sup |f′|.
    pub fn derivative_bound(self) -> f64 {
        match self {
            Self::Identity | Self::Relu | Self::LeakyRelu | Self::Tanh | Self::Softplus => 1.0,
            Self::Sigmoid => 0.25,
            // Φ(z) + z φ(z) at z = √2
            Self::Gelu => 1.128_904_145_185_155,
            // σ(z) (1 + z σ(−z)) where z tanh(z/2) = 2
            Self::Silu => 1.099_839_320_128_867_2,
        }
    }

    /// out ← f(z), entry by entry. Both have the same shape.
    pub fn apply_into<T: Real>(self, z: MatRef<'_, T>, out: MatMut<'_, T>) {
        match self {
            Self::Identity => map_into(z, out, |z| z),
            Self::Relu => map_into(z, out, relu),
            Self::LeakyRelu => map_into(z, out, leaky_relu),
            Self::Tanh => map_into(z, out, T::tanh),
            Self::Sigmoid => map_into(z, out, sigmoid),
            Self::Softplus => map_into(z, out, softplus),
            Self::Gelu => map_into(z, out, |z| z * normal_cdf(z)),
            Self::Silu => map_into(z, out, |z| z * sigmoid(z)),
        }
    }

    /// out ← f′(z), entry by entry. Both have the same shape.
    pub fn derivative_into<T: Real>(self, z: MatRef<'_, T>, out: MatMut<'_, T>) {
        match self {
            Self::Identity => map_into(z, out, |_| T::one()),
            Self::Relu => map_into(z, out, step),
            Self::LeakyRelu => map_into(z, out, leaky_step),
            Self::Tanh => map_into(z, out, tanh_slope),
            Self::Sigmoid => map_into(z, out, sigmoid_slope),
            Self::Softplus => map_into(z, out, sigmoid),
            Self::Gelu => map_into(z, out, gelu_slope),
            Self::Silu => map_into(z, out, silu_slope),
        }
    }
}

/// Column by column over slices when columns are contiguous, with the vector instructions this machine has.
fn map_into<T: Real>(z: MatRef<'_, T>, out: MatMut<'_, T>, f: impl Fn(T) -> T) {
    debug_assert_eq!((z.nrows(), z.ncols()), (out.nrows(), out.ncols()));
    pulp::Arch::new().dispatch(MapInto { z, out, f });
}

struct MapInto<'a, 'b, T: Real, F> {
    z: MatRef<'a, T>,
    out: MatMut<'b, T>,
    f: F,
}

impl<T: Real, F: Fn(T) -> T> pulp::NullaryFnOnce for MapInto<'_, '_, T, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        map_columns(self.z, self.out, self.f);
    }
}

#[inline(always)]
fn map_columns<T: Real>(z: MatRef<'_, T>, mut out: MatMut<'_, T>, f: impl Fn(T) -> T) {
    for j in 0..z.ncols() {
        let (source, target) = (z.col(j), out.as_mut().col_mut(j));
        match (source.try_as_col_major(), target.try_as_col_major_mut()) {
            (Some(source), Some(target)) => {
                for (out, &z) in target.as_slice_mut().iter_mut().zip(source.as_slice()) {
                    *out = f(z);
                }
            }
            _ => {
                for i in 0..z.nrows() {
                    out[(i, j)] = f(z[(i, j)]);
                }
            }
        }
    }
}

// A comparison with z on the else side lets NaN through instead of turning it into 0.
#[inline(always)]
fn relu<T: Real>(z: T) -> T {
    if z < T::zero() { T::zero() } else { z }
}

#[inline(always)]
fn step<T: Real>(z: T) -> T {
    if z > T::zero() { T::one() } else { T::zero() }
}

/// The larger of z and 0.01 z: both are at hand, so no branch.
#[inline(always)]
fn leaky_relu<T: Real>(z: T) -> T {
    let leak = T::lit(LEAKY_SLOPE) * z;
    if z < leak { leak } else { z }
}

#[inline(always)]
fn leaky_step<T: Real>(z: T) -> T {
    if z > T::zero() { T::one() } else { T::lit(LEAKY_SLOPE) }
}

/// e^−z is huge but finite for very negative z, and one over it as good as 0.
#[inline(always)]
fn sigmoid<T: Real>(z: T) -> T {
    T::one() / (T::one() + (-z).exp_of_many())
}

/// σ(z) σ(−z): unlike σ (1 − σ) it keeps its digits for large |z|.
#[inline(always)]
fn sigmoid_slope<T: Real>(z: T) -> T {
    let decay = (-z.abs()).exp_of_many();
    decay / ((T::one() + decay) * (T::one() + decay))
}

/// 1 − tanh² z = 4 σ(2z) σ(−2z).
#[inline(always)]
fn tanh_slope<T: Real>(z: T) -> T {
    T::lit(4.0) * sigmoid_slope(z + z)
}

/// max(0, z) + log(1 + e^−|z|).
#[inline]
fn softplus<T: Real>(z: T) -> T {
    relu(z) + (-z.abs()).exp().ln_1p()
}

#[inline(always)]
fn silu_slope<T: Real>(z: T) -> T {
    // σ(z) + z σ(z) σ(−z), all from one exponential.
    let decay = (-z.abs()).exp_of_many();
    let larger = T::one() / (T::one() + decay);
    let smaller = decay * larger;
    (if z < T::zero() { smaller } else { larger }) + z * (larger * smaller)
}

/// Φ(z), in f64 whatever the working type: there is no generic erf.
#[inline]
fn normal_cdf<T: Real>(z: T) -> T {
    T::lit(0.5 * libm::erfc(-z.as_f64() * FRAC_1_SQRT_2))
}

/// Φ(z) + z φ(z).
#[inline]
fn gelu_slope<T: Real>(z: T) -> T {
    normal_cdf(z) + z * (T::lit(-0.5) * z * z).exp() * T::lit(1.0 / SQRT_TAU)
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;
    use faer::Mat;

    const POINTS: [f64; 11] = [-30.0, -5.0, -2.5, -1.1, -0.3, 1e-3, 0.4, 1.3, 2.4, 6.0, 30.0];

    #[test]
    fn derivatives_match_central_differences() {
        for f in Activation::ALL {
            for z in POINTS {
                let h = 1e-5;
                let numeric = (f.apply(z + h) - f.apply(z - h)) / (2.0 * h);
                assert_relative_eq!(f.derivative(z), numeric, max_relative = 1e-8, epsilon = 1e-9);
            }
        }
    }

    #[test]
    fn the_second_derivative_is_that_of_the_slope() {
        for f in Activation::ALL {
            for z in POINTS {
                let slope = (f.derivative(z + 1e-5) - f.derivative(z - 1e-5)) / 2e-5;
                assert_relative_eq!(f.second_derivative(z), slope, epsilon = 1e-8);
            }
            let bends = POINTS.iter().any(|&z| f.second_derivative(z) != 0.0);
            assert_eq!(bends, !f.is_piecewise_linear(), "{}", f.name());
        }
    }

    #[test]
    fn the_derivative_bound_is_the_smallest_bound() {
        for f in Activation::ALL {
            let largest =
                (-40_000..=40_000).map(|i| f.derivative(f64::from(i) * 2.5e-4_f64).abs()).fold(0.0, f64::max);
            assert!(largest <= f.derivative_bound() + 1e-15, "{}: {largest}", f.name());
            assert!(largest >= f.derivative_bound() - 1e-4, "{}: {largest}", f.name());
        }
    }

    #[test]
    fn extreme_inputs_give_the_limits_in_both_precisions() {
        for f in Activation::ALL {
            for z in [-1e4_f64, -800.0, 800.0, 1e4] {
                let expected = match f {
                    Activation::Identity => z,
                    Activation::LeakyRelu => z.max(LEAKY_SLOPE * z),
                    Activation::Tanh => z.signum(),
                    Activation::Sigmoid => f64::from(z > 0.0),
                    _ => z.max(0.0),
                };
                assert_relative_eq!(f.apply(z), expected, max_relative = 1e-14);
                assert_relative_eq!(f.apply(z as f32).as_f64(), expected, max_relative = 1e-6);
                assert!(f.derivative(z).is_finite() && f.derivative(z as f32).is_finite());
            }
        }
    }

    #[test]
    fn the_kink_of_the_rectifier_has_slope_zero_and_nan_stays_nan() {
        assert_eq!(Activation::Relu.derivative(0.0), 0.0);
        for f in Activation::ALL {
            assert!(f.apply(f64::NAN).is_nan(), "{}", f.name());
        }
    }

    #[test]
    fn matrix_versions_equal_the_pointwise_ones_for_any_strides() {
        let z = Mat::from_fn(7, 5, |i, j| (i as f64 - 3.0) * 0.7 + j as f64 * 0.3 - 0.6);
        for f in Activation::ALL {
            let (mut value, mut slope) = (Mat::zeros(7, 5), Mat::zeros(5, 7));
            f.apply_into(z.as_ref(), value.as_mut());
            f.derivative_into(z.transpose(), slope.as_mut());
            for j in 0..5 {
                for i in 0..7 {
                    assert_eq!(value[(i, j)], f.apply(z[(i, j)]));
                    assert_eq!(slope[(j, i)], f.derivative(z[(i, j)]));
                }
            }
        }
    }

    #[test]
    fn settings_spell_the_name() {
        for f in Activation::ALL {
            assert_eq!(serde_json::to_string(&f).unwrap(), format!("\"{}\"", f.name()));
        }
        assert_eq!(Activation::default(), Activation::Relu);
    }
}
