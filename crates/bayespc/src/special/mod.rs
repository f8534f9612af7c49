//! Special functions, `f64`: what libm gives accurately is taken from it, the rest is here.
//!
//! ```text
//! log Γ_d(a) = d(d−1)/4 log π + Σ_{i=1..d} log Γ(a + (1−i)/2)
//! ψ_d(a)     = Σ_{i=1..d} ψ(a + (1−i)/2)                          so that ⟨log|Σ⁻¹|⟩ = ψ_d(ν/2) + d log 2 + log|Ψ|
//! ψ(x)       = ψ(x+1) − 1/x ,  ψ(x) ~ log x − 1/2x − Σ_k B_2k / (2k x^2k)
//! ```
//!
//! The Student-t and the bivariate normal distribution function have files of their own and are re-exported here.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

pub use bivariate_normal::bivariate_normal_cdf;
pub(crate) use bivariate_normal::{GAUSS_12, GAUSS_20};
#[cfg(test)]
pub(crate) use gauss_hermite::gauss_hermite;
pub use normal_quantile::normal_quantile;
pub(crate) use student_t::tail_and_density;
pub use student_t::{student_t_cdf, student_t_ln_pdf, student_t_quantile};
pub(crate) use student_t_table::StudentTTable;

mod bivariate_normal;
#[cfg(test)]
mod gauss_hermite;
mod normal_quantile;
mod student_t;
mod student_t_table;

/// √(2π).
pub(crate) const SQRT_TAU: f64 = 2.506_628_274_631_000_5;

/// ½ log 2π.
pub(crate) const HALF_LN_TAU: f64 = 0.918_938_533_204_672_8;

/// Above this argument the asymptotic series below are exact to rounding.
const ASYMPTOTIC: f64 = 12.0;

/// log Γ(x), x > 0.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// ψ(x) = d/dx log Γ(x), x > 0; NaN otherwise.
pub fn digamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    // Near its root ψ is a difference of numbers of order one: expand about the root instead.
    if (x - DIGAMMA_ROOT_HIGH).abs() < 0.05 {
        return digamma_near_root((x - DIGAMMA_ROOT_HIGH) - DIGAMMA_ROOT_LOW);
    }
    let (mut x, mut shift) = (x, 0.0);
    while x < ASYMPTOTIC {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = r
        * (1.0 / 12.0
            - r * (1.0 / 120.0
                - r * (1.0 / 252.0
                    - r * (1.0 / 240.0 - r * (1.0 / 132.0 - r * (691.0 / 32_760.0 - r * (1.0 / 12.0)))))));
    shift + x.ln() - 0.5 / x - series
}

/// The positive root of ψ, in two parts.
const DIGAMMA_ROOT_HIGH: f64 = 1.461_632_144_968_362_2;
const DIGAMMA_ROOT_LOW: f64 = 9.549_995_429_965_697e-17;

/// ψ(x₀ + t) = t Σ_k 1 / ((x₀+k)(x₀+k+t)), as the Taylor series of its derivatives at the root x₀.
fn digamma_near_root(t: f64) -> f64 {
    // ψ^(k)(x₀)/k!, k = 1, 2, …: the Hurwitz zeta functions (−1)^(k+1) ζ(k+1, x₀).
    let mut sum = 0.0;
    for k in (1..=14).rev() {
        let sign = if k % 2 == 0 { -1.0 } else { 1.0 };
        sum = sum * t + sign * hurwitz_zeta(k + 1, DIGAMMA_ROOT_HIGH);
    }
    sum * t
}

/// ζ(s, x) = Σ_{k≥0} (x+k)^−s for integer s ≥ 2, by Euler–Maclaurin; ψ^(m)(x) = (−1)^(m+1) m! ζ(m+1, x).
fn hurwitz_zeta(s: i32, x: f64) -> f64 {
    /// B_2j / (2j)!, j = 1, 2, …
    const BERNOULLI: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30_240.0,
        -1.0 / 1_209_600.0,
        1.0 / 47_900_160.0,
        -691.0 / 1_307_674_368_000.0,
        1.0 / 74_724_249_600.0,
        -3617.0 / 10_670_622_842_880_000.0,
    ];
    let (mut x, mut sum) = (x, 0.0);
    while x < ASYMPTOTIC {
        sum += x.powi(-s);
        x += 1.0;
    }
    let power = x.powi(-s);
    let s = f64::from(s);
    sum += power * (x / (s - 1.0) + 0.5);
    // s (s+1) … (s+2j−2) x^(−s−2j+1)
    let mut rising = s * power / x;
    for (j, b) in BERNOULLI.iter().enumerate() {
        sum += b * rising;
        let step = s + 2.0 * j as f64;
        rising *= (step + 1.0) * (step + 2.0) / (x * x);
    }
    sum
}

/// log Γ_d(a), a > (d−1)/2.
pub fn ln_multigamma(a: f64, d: usize) -> f64 {
    let n = d as f64;
    let constant = 0.25 * n * (n - 1.0) * PI.ln();
    (0..d).fold(constant, |sum, i| sum + ln_gamma(a - 0.5 * i as f64))
}

/// ψ_d(a) = d/da log Γ_d(a), a > (d−1)/2.
pub fn multi_digamma(a: f64, d: usize) -> f64 {
    (0..d).map(|i| digamma(a - 0.5 * i as f64)).sum()
}

/// N(x | 0, 1).
pub fn normal_pdf(x: f64) -> f64 {
    (-0.5 * x * x).exp() / SQRT_TAU
}

/// Φ(x) = P(N(0, 1) ≤ x), with full relative accuracy in the lower tail.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// log Σ exp(xᵢ), without overflow; −∞ for an empty slice.
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, |a, b| if a.is_nan() || a > b { a } else { b });
    if !max.is_finite() {
        return max;
    }
    max + values.iter().map(|x| (x - max).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    #[test]
    fn digamma_is_the_slope_of_ln_gamma_and_obeys_its_recurrence() {
        for x in [0.02, 0.7, 1.42, 1.46, 1.4616, 1.51, 6.0, 11.9, 12.1, 300.0] {
            let h = 1e-5 * x;
            assert_relative_eq!(
                digamma(x),
                (ln_gamma(x + h) - ln_gamma(x - h)) / (2.0 * h),
                max_relative = 1e-7,
                epsilon = 1e-8
            );
            assert_relative_eq!(
                digamma(x + 1.0),
                digamma(x) + 1.0 / x,
                max_relative = 1e-13,
                epsilon = 1e-15
            );
        }
        assert!(digamma(-1.0).is_nan());
    }

    #[test]
    fn log_sum_exp_neither_overflows_nor_invents_mass() {
        assert_relative_eq!(log_sum_exp(&[1000.0, 1000.0]), 1000.0 + 2.0_f64.ln(), max_relative = 1e-15);
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f64::NEG_INFINITY, 3.0]), 3.0);
        assert!(log_sum_exp(&[1.0, f64::NAN]).is_nan());
        assert!(log_sum_exp(&[f64::NAN, 1.0]).is_nan());
    }

    #[test]
    fn bivariate_normal_limits_are_the_marginals() {
        for (h, rho) in [(0.3, 0.2), (-1.2, 0.8), (0.9, -0.97), (-0.4, 0.99)] {
            assert_relative_eq!(
                bivariate_normal_cdf(h, f64::INFINITY, rho),
                normal_cdf(h),
                max_relative = 1e-15
            );
            assert_relative_eq!(bivariate_normal_cdf(h, 12.0, rho), normal_cdf(h), max_relative = 1e-14);
            // P(a ≤ h, b ≤ k) + P(a ≤ h, b > k) = P(a ≤ h)
            let (below, above) = (bivariate_normal_cdf(h, 0.5, rho), bivariate_normal_cdf(h, -0.5, -rho));
            assert_relative_eq!(below + above, normal_cdf(h), max_relative = 1e-13);
        }
    }
}
