//! Stand-in for the special functions until the branch that holds them is merged.

use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};
use statrs::function::gamma::ln_gamma;

/// Φ(x).
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// Φ⁻¹(p).
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// Student-t distribution function.
pub fn student_t_cdf(x: f64, dof: f64) -> f64 {
    if dof.is_infinite() {
        normal_cdf(x)
    } else {
        StudentsT::new(0.0, 1.0, dof).map_or(f64::NAN, |t| t.cdf(x))
    }
}

/// Student-t quantile.
pub fn student_t_quantile(p: f64, dof: f64) -> f64 {
    if dof.is_infinite() {
        normal_quantile(p)
    } else {
        StudentsT::new(0.0, 1.0, dof).map_or(f64::NAN, |t| t.inverse_cdf(p))
    }
}

/// Student-t log density.
pub fn student_t_ln_pdf(x: f64, dof: f64) -> f64 {
    if dof.is_infinite() {
        Normal::standard().ln_pdf(x)
    } else {
        ln_gamma(0.5 * (dof + 1.0))
            - ln_gamma(0.5 * dof)
            - 0.5 * (dof * std::f64::consts::PI).ln()
            - 0.5 * (dof + 1.0) * (x * x / dof).ln_1p()
    }
}

/// log Σ exp x.
pub fn log_sum_exp(x: &[f64]) -> f64 {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max.is_infinite() {
        max
    } else {
        max + x.iter().map(|v| (v - max).exp()).sum::<f64>().ln()
    }
}
