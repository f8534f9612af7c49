//! The standard Student-t distribution with ν degrees of freedom; ν = ∞ is the normal.
//!
//! ```text
//! log f(x) = log Γ((ν+1)/2) − log Γ(ν/2) − ½ log νπ − (ν+1)/2 log(1 + x²/ν)
//! P(0 < t < x) = x f(x) Σ_n ((ν+1)/2)_n / (3/2)_n yⁿ ,   y = x²/(ν+x²)              small x
//! P(t > x)     = ½ x f(x) · r ,   r a continued fraction of I_{1−y}(ν/2, ½)          large x
//! ```
//!
//! Every term is computed without differences of large numbers, so accuracy holds from ν < 1 to ν = 1e9, where the
//! usual route through a general incomplete beta function keeps nine digits. The continued fraction is that of
//! DiDonato and Morris (1992, TOMS 708), in which λ = ν/2 − (ν+1)/2 (1−y) = (νy − (1−y))/2 enters as one number.

use super::{HALF_LN_TAU, ln_gamma, normal_cdf, normal_quantile};

/// x² at which the central series gives way to the continued fraction of the tail.
const TAIL: f64 = 2.0;

/// log f(x).
pub fn student_t_ln_pdf(x: f64, dof: f64) -> f64 {
    if dof == f64::INFINITY {
        return -0.5 * x * x - HALF_LN_TAU;
    }
    // Γ((ν+1)/2)/Γ(ν/2) ≈ √(ν/2): together with −½ log νπ it leaves −½ log 2π and a small correction.
    log_gamma_ratio(0.5 * dof) - HALF_LN_TAU - 0.5 * (dof + 1.0) * log_one_plus_square(x / dof.sqrt())
}

/// P(t ≤ x), with full relative accuracy in the lower tail.
pub fn student_t_cdf(x: f64, dof: f64) -> f64 {
    if dof == f64::INFINITY {
        return normal_cdf(x);
    }
    if x.is_nan() || dof.is_nan() || dof <= 0.0 {
        return f64::NAN;
    }
    let (centre, tail) = centre_and_tail(x.abs(), dof);
    if x < 0.0 { tail } else { 0.5 + centre }
}

/// P(t > x) and the density at x, for x ≥ 0, at the cost of one.
pub(crate) fn tail_and_density(x: f64, dof: f64) -> (f64, f64) {
    let density = student_t_ln_pdf(x, dof).exp();
    if dof == f64::INFINITY {
        (normal_cdf(-x), density)
    } else {
        (centre_and_tail_given(x, dof, density).1, density)
    }
}

/// The x with P(t ≤ x) = p; ∓∞ at 0 and 1, NaN outside.
pub fn student_t_quantile(p: f64, dof: f64) -> f64 {
    if dof == f64::INFINITY {
        return normal_quantile(p);
    }
    if !(0.0..=1.0).contains(&p) || dof.is_nan() || dof <= 0.0 {
        return f64::NAN;
    }
    let sign = if p < 0.5 { -1.0 } else { 1.0 };
    let centre = (p - 0.5).abs();
    if centre == 0.0 {
        return 0.0;
    }
    let tail = p.min(1.0 - p);
    if tail == 0.0 {
        return sign * f64::INFINITY;
    }
    // Newton's method on the logarithm of the smaller of centre and tail as a function of u = log x. Both are concave
    // in u, so after the first step the iterates approach the root from one side.
    let by_centre = centre < 0.25;
    let start = if by_centre { centre / student_t_ln_pdf(0.0, dof).exp() } else { -normal_quantile(tail) };
    let mut u = start.ln();
    for _ in 0..100 {
        let x = u.exp();
        if x.is_infinite() {
            break;
        }
        let (found_centre, found_tail) = centre_and_tail(x, dof);
        let mass = x * student_t_ln_pdf(x, dof).exp();
        let step = if by_centre {
            (centre / found_centre).ln() * found_centre / mass
        } else {
            (found_tail / tail).ln() * found_tail / mass
        };
        u += step;
        if step.is_nan() || step.abs() < 2e-16 * (1.0 + u.abs()) {
            break;
        }
    }
    sign * u.exp()
}

/// P(0 < t < x) and P(t > x) for x ≥ 0.
fn centre_and_tail(x: f64, dof: f64) -> (f64, f64) {
    centre_and_tail_given(x, dof, student_t_ln_pdf(x, dof).exp())
}

/// The same, given the density at x.
fn centre_and_tail_given(x: f64, dof: f64, density: f64) -> (f64, f64) {
    if x == f64::INFINITY {
        return (0.5, 0.0);
    }
    let mass = x * density;
    let ratio = x * x / dof;
    // 1 − y and y
    let (z, y) = (1.0 / (1.0 + ratio), 1.0 / (1.0 + 1.0 / ratio));
    if x * x < TAIL {
        let (mut term, mut sum, mut n) = (1.0, 1.0, 0.0);
        while term > 1e-17 * sum {
            term *= (0.5 * (dof + 1.0) + n) / (1.5 + n) * y;
            sum += term;
            n += 1.0;
        }
        let centre = mass * sum;
        (centre, 0.5 - centre)
    } else {
        let tail = 0.5 * mass * tail_fraction(0.5 * dof, z, y);
        (0.5 - tail, tail)
    }
}

/// I_z(a, ½) · B(a, ½) / (zᵃ y^½), y = 1 − z: the continued fraction of TOMS 708 (`bfrac`).
fn tail_fraction(a: f64, z: f64, y: f64) -> f64 {
    let b = 0.5;
    let c = 1.0 + (a * y - b * z);
    let (c0, c1) = (b / a, 1.0 + 1.0 / a);
    let (mut p, mut s) = (1.0, a + 1.0);
    let (mut a_previous, mut b_previous) = (0.0, 1.0);
    let (mut a_current, mut b_current) = (1.0, c / c1);
    let mut fraction = c1 / c;
    for n in 1..10_000 {
        let n = f64::from(n);
        let t = n / a;
        let w = n * (b - n) * z;
        let e = a / s;
        let alpha = p * (p + c0) * e * e * (w * z);
        let beta = n + w / s + (1.0 + t) / (c1 + t + t) * (c + n * (1.0 + y));
        p = 1.0 + t;
        s += 2.0;
        (a_previous, a_current) = (a_current, alpha * a_previous + beta * a_current);
        (b_previous, b_current) = (b_current, alpha * b_previous + beta * b_current);
        let before = fraction;
        fraction = a_current / b_current;
        if (fraction - before).abs() <= 1e-16 * fraction {
            break;
        }
        // Keep numerator and denominator in range: only their ratio counts.
        a_previous /= b_current;
        b_previous /= b_current;
        a_current = fraction;
        b_current = 1.0;
    }
    fraction
}

/// log(1 + r²), also where r² overflows.
fn log_one_plus_square(r: f64) -> f64 {
    if r.abs() > 1e100 { 2.0 * r.abs().ln() } else { (r * r).ln_1p() }
}

/// log Γ(a+½) − log Γ(a) − ½ log a, by its asymptotic series when a is large.
fn log_gamma_ratio(a: f64) -> f64 {
    if a < 15.0 {
        return ln_gamma(a + 0.5) - ln_gamma(a) - 0.5 * a.ln();
    }
    let r = 1.0 / (a * a);
    (-1.0 / 8.0 + r * (1.0 / 192.0 - r * (1.0 / 640.0 - r * (17.0 / 14_336.0 - r * (31.0 / 18_432.0))))) / a
}

#[cfg(test)]
mod tests {
    use super::super::normal_pdf;
    use super::*;
    use approx::assert_relative_eq;

    #[test]
    fn the_quantile_inverts_the_distribution_function() {
        for dof in [0.3, 1.0, 2.5, 7.0, 60.0, 1e4, 1e8] {
            for p in [1e-30, 1e-8, 0.01, 0.2, 0.2501, 0.3, 0.4999, 0.6, 0.9] {
                assert_relative_eq!(student_t_cdf(student_t_quantile(p, dof), dof), p, max_relative = 2e-13);
            }
        }
    }

    #[test]
    fn one_degree_of_freedom_is_the_cauchy_distribution() {
        for x in [1e-3_f64, 0.4, 1.0, 1.414, 1.415, 3.0, 1e5, 1e200] {
            let tail = (1.0 / x).atan() / std::f64::consts::PI;
            assert_relative_eq!(student_t_cdf(-x, 1.0), tail, max_relative = 1e-14);
        }
    }

    #[test]
    fn the_density_is_the_slope_of_the_distribution_function() {
        for dof in [0.7, 3.0, 29.9, 30.1, 1e5, f64::INFINITY] {
            for x in [-4.0, -1.3, 0.2, 1.42, 2.5] {
                let h = 1e-5;
                let slope = (student_t_cdf(x + h, dof) - student_t_cdf(x - h, dof)) / (2.0 * h);
                assert_relative_eq!(student_t_ln_pdf(x, dof).exp(), slope, max_relative = 1e-6);
            }
        }
        assert_relative_eq!(
            student_t_ln_pdf(1.0, f64::INFINITY).exp(),
            normal_pdf(1.0),
            max_relative = 1e-15
        );
    }

    #[test]
    fn the_ends_of_the_range_are_infinite_and_outside_is_not_a_number() {
        assert_eq!(student_t_quantile(0.0, 3.0), f64::NEG_INFINITY);
        assert_eq!(student_t_quantile(1.0, 3.0), f64::INFINITY);
        assert!(student_t_quantile(1.5, 3.0).is_nan());
        assert!(student_t_quantile(0.5, -1.0).is_nan());
        assert!(student_t_cdf(f64::NAN, 3.0).is_nan());
        assert_eq!(student_t_cdf(f64::INFINITY, 3.0), 1.0);
    }
}
