//! What an activation does to Gaussian inputs: mean, variance, mean slope and covariance of f(z) for z ~ N(m, S).
//!
//! ```text
//! moments     E f(z) ,  Var f(z) ,  gain E f′(z) = Cov(f(z), z) / Var z              (Stein)
//! covariance  Cov(f(a), f(b)) for jointly Gaussian a, b
//! leaky ReLU  f = (1−α) relu + α id:  Cov = (1−α)² Cov(r_a, r_b) + α(1−α) S_ab (Φ_a + Φ_b) + α² S_ab
//! ```
//!
//! Identity and the rectifiers are closed forms (`rectified`), the smooth activations quadrature (`smooth`). The absolute error of the exact rule is about 1e-13 for the former and 1e-10 output variances
//! for the latter, up to input standard deviations of 1000.

use faer::{MatMut, MatRef};
use serde::{Deserialize, Serialize};

use super::function::{Activation, LEAKY_SLOPE};
use super::rectified;
use super::smooth::{self, APPROXIMATE_ORDER, Expansion, ORDER};
use crate::error::{Error, Result};

/// How covariances between units pass through an activation. Means and variances are exact in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CovarianceRule {
    /// The bivariate integral.
    #[default]
    Exact,
    /// Rectifiers by the approximation of Wu et al. (2019), smooth activations by the first six terms of their Hermite expansion.
    Approximate,
    /// None: outputs are taken as uncorrelated.
    Diagonal,
}

/// Moments of f(z), z ~ N(m, v).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// E f(z).
    pub mean: f64,
    /// Var f(z), never negative.
    pub var: f64,
    /// E f′(z).
    pub gain: f64,
}

/// Moments of f(z) for z ~ N(mean, var); a variance that rounding made negative counts as zero.
pub fn moments(activation: Activation, mean: f64, var: f64) -> Moments {
    if mean.is_nan() || var.is_nan() {
        return Moments { mean: f64::NAN, var: f64::NAN, gain: f64::NAN };
    }
    let s = var.max(0.0).sqrt();
    // Also where s is so small that mean / s overflows.
    if s == 0.0 || (mean / s).is_infinite() {
        return Moments { mean: activation.apply(mean), var: 0.0, gain: activation.derivative(mean) };
    }
    let (mean, var, gain) = match activation {
        Activation::Identity => (mean, var, 1.0),
        Activation::Relu => scaled_rectifier(mean, var),
        Activation::LeakyRelu => {
            let (rectified_mean, rectified_var, open) = scaled_rectifier(mean, var);
            let (a, b) = (LEAKY_SLOPE, 1.0 - LEAKY_SLOPE);
            (
                b * rectified_mean + a * mean,
                b * b * rectified_var + (2.0 * a * b * open + a * a) * var,
                b * open + a,
            )
        }
        _ => smooth::moments(activation, mean, var),
    };
    Moments { mean, var, gain }
}

fn scaled_rectifier(mean: f64, var: f64) -> (f64, f64, f64) {
    let s = var.sqrt();
    let (standard_mean, standard_var, open) = rectified::moments(mean / s);
    (s * standard_mean, var * standard_var, open)
}

/// Cov(f(a), f(b)) for a ~ N(mean_a, var_a), b ~ N(mean_b, var_b) with Cov(a, b) = `cov_ab`.
pub fn covariance(
    activation: Activation,
    (mean_a, var_a): (f64, f64),
    (mean_b, var_b): (f64, f64),
    cov_ab: f64,
) -> f64 {
    let (a, b) = (
        Unit::new(activation, mean_a, var_a, CovarianceRule::Exact),
        Unit::new(activation, mean_b, var_b, CovarianceRule::Exact),
    );
    a.covariance(&b, activation, cov_ab, CovarianceRule::Exact)
}

/// Mean and covariance of f(z) for z ~ N(mean, cov), into `out_mean` and `out_cov` (exactly symmetric). Of `cov` only the
/// lower triangle is read.
pub fn propagate(
    activation: Activation,
    mean: &[f64],
    cov: MatRef<'_, f64>,
    out_mean: &mut [f64],
    mut out_cov: MatMut<'_, f64>,
    approximation: CovarianceRule,
) -> Result<()> {
    let n = mean.len();
    let sizes = [
        ("cov", "rows", cov.nrows()),
        ("cov", "columns", cov.ncols()),
        ("out_mean", "entries", out_mean.len()),
        ("out_cov", "rows", out_cov.nrows()),
        ("out_cov", "columns", out_cov.ncols()),
    ];
    for (what, axis, found) in sizes {
        if found != n {
            return Err(Error::Shape { what, axis, found, expected: n });
        }
    }
    let units: Vec<Unit> =
        (0..n).map(|i| Unit::new(activation, mean[i], cov[(i, i)], approximation)).collect();
    for (j, unit) in units.iter().enumerate() {
        out_mean[j] = unit.output.mean;
        out_cov[(j, j)] = unit.output.var;
        for i in j + 1..n {
            let value = units[i].covariance(unit, activation, cov[(i, j)], approximation);
            out_cov[(i, j)] = value;
            out_cov[(j, i)] = value;
        }
    }
    Ok(())
}

/// One unit: what its pairs share.
struct Unit {
    mean: f64,
    deviation: f64,
    output: Moments,
    /// Only for smooth activations.
    expansion: Option<Expansion>,
}

impl Unit {
    fn new(activation: Activation, mean: f64, var: f64, rule: CovarianceRule) -> Self {
        let output = moments(activation, mean, var);
        let closed_form =
            matches!(activation, Activation::Identity | Activation::Relu | Activation::LeakyRelu);
        let order = match rule {
            CovarianceRule::Exact => ORDER,
            CovarianceRule::Approximate => APPROXIMATE_ORDER,
            CovarianceRule::Diagonal => 0,
        };
        let expansion = (order > 0 && !closed_form && output.var > 0.0)
            .then(|| Expansion::new(activation, mean, var, output.var, output.gain, order));
        Self { mean, deviation: var.max(0.0).sqrt(), output, expansion }
    }

    fn covariance(&self, other: &Self, activation: Activation, cov: f64, rule: CovarianceRule) -> f64 {
        let scale = self.deviation * other.deviation;
        if rule == CovarianceRule::Diagonal
            || self.output.var == 0.0
            || other.output.var == 0.0
            || scale == 0.0
        {
            return 0.0;
        }
        let rho = (cov / scale).clamp(-1.0, 1.0);
        let rectified = || {
            let (h, k) = (self.mean / self.deviation, other.mean / other.deviation);
            scale
                * match rule {
                    CovarianceRule::Exact => rectified::covariance(h, k, rho),
                    _ => rectified::approximate_covariance(h, k, rho),
                }
        };
        let value = match (activation, &self.expansion, &other.expansion) {
            (Activation::Relu, ..) => rectified(),
            (Activation::LeakyRelu, ..) => {
                let (a, b) = (LEAKY_SLOPE, 1.0 - LEAKY_SLOPE);
                // gain = (1−α) Φ + α
                let open = (self.output.gain - a) + (other.output.gain - a);
                b * b * rectified() + a * (open + a) * rho * scale
            }
            (_, Some(a), Some(b)) if rule == CovarianceRule::Exact => a.covariance(b, activation, rho),
            (_, Some(a), Some(b)) => a.mehler(b, rho, APPROXIMATE_ORDER),
            // The identity: the only one left without an expansion.
            _ => rho * scale,
        };
        // Cauchy–Schwarz, which an approximation may break.
        let bound = (self.output.var * other.output.var).sqrt();
        value.max(-bound).min(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::gauss_hermite;
    use approx::{assert_abs_diff_eq, assert_relative_eq};
    use faer::{Mat, Side};
    use proptest::prelude::*;
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    const SMOOTH: [Activation; 5] =
        [Activation::Tanh, Activation::Sigmoid, Activation::Softplus, Activation::Gelu, Activation::Silu];

    /// E g(x), x ~ N(0, 1), by Simpson's rule with 2·10⁵ panels on ±9: slow, and independent of the code under test.
    fn simpson(g: impl Fn(f64) -> f64) -> f64 {
        let (n, h) = (200_000, 18.0 / 200_000.0);
        let sum: f64 = (0..=n)
            .map(|i| {
                let x = -9.0 + h * f64::from(i);
                let weight = if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
                weight * g(x) * (-0.5 * x * x).exp()
            })
            .sum();
        sum * h / 3.0 / std::f64::consts::TAU.sqrt()
    }

    #[test]
    fn moments_match_a_fine_quadrature_at_every_scale() {
        for f in Activation::ALL {
            for (m, s) in [
                (0.3_f64, 0.01_f64),
                (-1.2, 0.4),
                (0.0, 1.0),
                (2.0, 0.65),
                (-3.0, 2.5),
                (5.0, 30.0),
                (100.0, 1000.0),
            ] {
                let found = moments(f, m, s * s);
                let mean = simpson(|x| f.apply(m + s * x));
                let var = simpson(|x| (f.apply(m + s * x) - mean).powi(2));
                // Simpson itself is good to h² at the kink of a rectifier and to h at the jump of its slope.
                let kinked = matches!(f, Activation::Relu | Activation::LeakyRelu);
                let tolerance = if kinked { 1e-7 } else { 1e-11 };
                assert_relative_eq!(found.mean, mean, max_relative = tolerance, epsilon = tolerance);
                assert_relative_eq!(found.var, var, max_relative = tolerance, epsilon = tolerance * s * s);
                let gain = simpson(|x| f.derivative(m + s * x));
                assert_relative_eq!(found.gain, gain, epsilon = if kinked { 1e-4 } else { 1e-11 });
            }
        }
    }

    #[test]
    fn gelu_means_match_their_closed_form() {
        use crate::special::{normal_cdf, normal_pdf};
        for (m, var) in [(0.5_f64, 0.3_f64), (-2.0, 4.0), (1.0, 1e4)] {
            let t = m / (1.0 + var).sqrt();
            let closed = m * normal_cdf(t) + var / (1.0 + var).sqrt() * normal_pdf(t);
            assert_relative_eq!(moments(Activation::Gelu, m, var).mean, closed, max_relative = 1e-12);
        }
    }

    #[test]
    fn without_variance_the_moments_are_the_function() {
        for f in Activation::ALL {
            for m in [-2.0, 0.0, 0.7] {
                for var in [0.0, -1e-18] {
                    let expected = Moments { mean: f.apply(m), var: 0.0, gain: f.derivative(m) };
                    assert_eq!(moments(f, m, var), expected);
                }
                let tiny = moments(f, m + 0.1, 1e-18);
                assert_relative_eq!(tiny.mean, f.apply(m + 0.1), max_relative = 1e-12);
                assert_relative_eq!(tiny.var, f.derivative(m + 0.1_f64).powi(2) * 1e-18, max_relative = 1e-8);
            }
            assert!(moments(f, 0.0, f64::NAN).mean.is_nan());
            assert!(moments(f, 1.0, 1e-320).mean.is_finite());
        }
    }

    #[test]
    fn smooth_covariances_match_two_dimensional_gauss_hermite() {
        let (nodes, weights) = gauss_hermite(120);
        for f in SMOOTH {
            for (rho, (ma, sa), (mb, sb)) in [
                (0.3_f64, (0.2_f64, 0.7_f64), (-0.5, 0.5_f64)),
                (-0.9, (1.0, 0.8), (0.4, 0.6)),
                (0.999, (0.0, 0.8), (0.1, 0.8)),
            ] {
                let bar = (1.0 - rho * rho).sqrt();
                let (mut ab, mut a, mut b) = (0.0, 0.0, 0.0);
                for (x, u) in nodes.iter().zip(&weights) {
                    for (y, v) in nodes.iter().zip(&weights) {
                        let (fa, fb) = (f.apply(ma + sa * x), f.apply(mb + sb * (rho * x + bar * y)));
                        ab += u * v * fa * fb;
                        a += u * v * fa;
                        b += u * v * fb;
                    }
                }
                let found = covariance(f, (ma, sa * sa), (mb, sb * sb), rho * sa * sb);
                assert_abs_diff_eq!(found, ab - a * b, epsilon = 1e-10);
            }
        }
    }

    #[test]
    fn perfect_correlation_gives_the_variance_at_every_scale() {
        for f in Activation::ALL {
            for (m, var) in [(0.3, 1e-6), (-0.4, 0.5), (0.2, 4.0), (1.0, 400.0)] {
                let expected = moments(f, m, var).var;
                assert_relative_eq!(covariance(f, (m, var), (m, var), var), expected, max_relative = 1e-9);
            }
        }
    }

    #[test]
    fn the_approximation_of_wu_stays_within_its_stated_error() {
        for (size, bound) in [(0.1, 1.5e-7), (0.5, 1.4e-4), (0.9, 3.8e-3), (1.0, 0.0155)] {
            for rho in [-size, size] {
                for (i, j) in (-40..=40).flat_map(|i| (-40..=40).map(move |j| (i, j))) {
                    let (h, k) = (f64::from(i) * 0.125, f64::from(j) * 0.125);
                    let error =
                        rectified::approximate_covariance(h, k, rho) - rectified::covariance(h, k, rho);
                    assert!(error.abs() < bound, "rho {rho}, h {h}, k {k}: {error}");
                }
            }
        }
    }

    fn random_input(seed: u64, n: usize) -> (Vec<f64>, Mat<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Fewer factors than units: strong correlations and a singular matrix.
        let root = Mat::from_fn(n, n - 2, |_, _| rng.random_range(-1.0..1.0));
        let mean = (0..n).map(|_| rng.random_range(-2.0..2.0)).collect();
        (mean, &root * root.transpose())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn propagation_keeps_symmetry_and_variances_and_the_exact_rule_stays_positive(seed in any::<u64>()) {
            let n = 6;
            let (mean, cov) = random_input(seed, n);
            for f in Activation::ALL {
                for rule in [CovarianceRule::Exact, CovarianceRule::Approximate, CovarianceRule::Diagonal] {
                    let (mut out_mean, mut out_cov) = (vec![0.0; n], Mat::zeros(n, n));
                    propagate(f, &mean, cov.as_ref(), &mut out_mean, out_cov.as_mut(), rule).unwrap();
                    for j in 0..n {
                        let expected = moments(f, mean[j], cov[(j, j)]);
                        prop_assert_eq!((out_mean[j], out_cov[(j, j)]), (expected.mean, expected.var));
                        for i in 0..n {
                            prop_assert_eq!(out_cov[(i, j)], out_cov[(j, i)]);
                            if i > j && rule == CovarianceRule::Exact {
                                let pair = covariance(f, (mean[i], cov[(i, i)]), (mean[j], cov[(j, j)]), cov[(i, j)]);
                                prop_assert_eq!(out_cov[(i, j)], pair);
                            }
                            if i != j && rule == CovarianceRule::Diagonal {
                                prop_assert_eq!(out_cov[(i, j)], 0.0);
                            }
                        }
                    }
                    if rule == CovarianceRule::Exact {
                        let smallest = out_cov.self_adjoint_eigenvalues(Side::Lower).unwrap()[0];
                        prop_assert!(smallest > -1e-9, "{}: eigenvalue {}", f.name(), smallest);
                    }
                }
            }
        }
    }

    #[test]
    fn a_wrong_shape_is_an_error_that_names_the_argument() {
        let cov = Mat::<f64>::zeros(2, 2);
        let mut out = Mat::zeros(3, 3);
        let error = propagate(
            Activation::Relu,
            &[0.0; 3],
            cov.as_ref(),
            &mut [0.0; 3],
            out.as_mut(),
            CovarianceRule::Exact,
        );
        assert!(matches!(error, Err(Error::Shape { what: "cov", axis: "rows", found: 2, expected: 3 })));
    }
}
