//! Moments of a smooth activation of a Gaussian, z = m + s x with x ~ N(0, 1).
//!
//! ```text
//! E f(z)          = ∫ f(m + s x) φ(x) dx ≈ δ Σ_i φ(iδ) f(m + s iδ)             trapezoid rule
//! Cov(f(a), f(b)) = Σ_{k≥1} ρᵏ c_k(a) c_k(b) ,   c_k = E[ f(m + s x) He_k(x) ] / √k!      Mehler
//! ```
//!
//! For an analytic f the trapezoid rule converges exponentially: with the nearest singularity of f at height η above the
//! real line its error is e^(−2πη/sδ) (and e^(−2π²/δ²) from φ), so the step follows s and the error stays below 1e-11 up
//! to s = 1000. A Gauss–Hermite rule of fixed size has no such control: for s ≫ 1 the function is a step to it.
//!
//! Σ_{k≥0} c_k² = E f², so what a truncated Mehler sum misses is known: at most |ρ|^(K+1) √(tail_a tail_b) with
//! tail = Var f − Σ_{1≤k≤K} c_k². Where that exceeds the tolerance, the covariance is integrated in two dimensions.

use std::f64::consts::PI;

use super::function::Activation;
use crate::special::normal_pdf;

/// Terms of the Mehler sum.
pub(super) const ORDER: u8 = 48;

/// Terms of the Mehler sum in the approximate rule. Its error falls as |ρ|⁷; at |ρ| = 0.9, relative to √(Var f(a) Var f(b)),
/// it is below 1e-3 for input standard deviations up to 1, and reaches 0.035 where tanh or sigmoid of two very wide
/// inputs are steps (Cov of signs: 2/π arcsin ρ against the first three odd terms of its series).
pub(super) const APPROXIMATE_ORDER: u8 = 6;

/// Largest accepted remainder of the Mehler sum, relative to √(Var f(a) Var f(b)).
const TOLERANCE: f64 = 1e-11;

/// φ(8.5) ≈ 1e-16.
const REACH: f64 = 8.5;

/// Hermite functions of order 48 carry mass further out: φ He_48/√48! is below 1e-16 from here.
const HERMITE_REACH: f64 = 13.0;

/// Step of the trapezoid rule in units of x.
fn step(f: Activation, s: f64) -> f64 {
    // Steps below that of s = 1000 would only cost time.
    let s = s.min(1000.0);
    match f {
        // Entire, but f² grows like exp(s² (Im x)²) along the imaginary axis.
        Activation::Gelu => 0.7 / (1.0 + 2.0 * s * s).sqrt(),
        Activation::Tanh => PI * PI / (33.0 * s),
        _ => 2.0 * PI * PI / (33.0 * s),
    }
    .min(0.5)
}

/// δ Σ φ(iδ) visit(iδ): calls `visit` with every node and its weight.
fn trapezoid(step: f64, reach: f64, mut visit: impl FnMut(f64, f64)) {
    let n = (reach / step) as i32;
    for i in -n..=n {
        let x = f64::from(i) * step;
        visit(x, step * normal_pdf(x));
    }
}

/// E f, Var f and E f′ of f(N(mean, var)).
pub(super) fn moments(f: Activation, mean: f64, var: f64) -> (f64, f64, f64) {
    let s = var.sqrt();
    let centre = f.apply(mean);
    let (mut first, mut second, mut gain) = (0.0, 0.0, 0.0);
    trapezoid(step(f, s), REACH, |x, weight| {
        let z = mean + s * x;
        let deviation = f.apply(z) - centre;
        first += weight * deviation;
        second += weight * deviation * deviation;
        gain += weight * f.derivative(z);
    });
    // For a tiny s the deviations are all rounding, and Var f = (E f′)² s² (1 + O(s²)).
    let spread = if s < 1e-6 { gain * gain * var } else { second - first * first };
    (centre + first, spread.max(0.0), gain)
}

/// One Gaussian input and the Hermite coefficients of its activation.
pub(super) struct Expansion {
    mean: f64,
    deviation: f64,
    /// Var f.
    var: f64,
    /// c_1 … c_K.
    coefficients: Vec<f64>,
}

impl Expansion {
    /// Expand f(N(mean, var)), of which the moments are known, to `order` terms.
    pub(super) fn new(f: Activation, mean: f64, var: f64, output_var: f64, gain: f64, order: u8) -> Self {
        let s = var.sqrt();
        let centre = f.apply(mean);
        // With h_k = He_k/√k!: h_{k+1} = (x h_k − √k h_{k−1}) / √(k+1)
        let recurrence: Vec<(f64, f64)> =
            (1..=order).map(f64::from).map(|k| ((k + 1.0).sqrt().recip(), (k / (k + 1.0)).sqrt())).collect();
        let mut coefficients = vec![0.0; usize::from(order)];
        trapezoid(step(f, s).min(0.25), HERMITE_REACH, |x, weight| {
            let weighted = weight * (f.apply(mean + s * x) - centre);
            let (mut previous, mut current) = (1.0, x);
            for (c, (rise, fall)) in coefficients.iter_mut().zip(&recurrence) {
                *c += weighted * current;
                (previous, current) = (current, x * rise * current - fall * previous);
            }
        });
        // Stein: c_1 = s E f′, exact also where s is tiny.
        coefficients[0] = s * gain;
        Self { mean, deviation: s, var: output_var, coefficients }
    }

    /// Cov(f(a), f(b)): Mehler, or two-dimensional quadrature where Mehler's remainder is too large.
    pub(super) fn covariance(&self, other: &Self, f: Activation, rho: f64) -> f64 {
        let bound = (self.var * other.var).sqrt();
        let remainder = rho.abs().powi(i32::from(ORDER) + 1) * (self.tail() * other.tail()).sqrt();
        let value = if remainder <= TOLERANCE * bound {
            self.mehler(other, rho, ORDER)
        } else {
            self.quadrature(other, f, rho)
        };
        value.clamp(-bound, bound)
    }

    /// The Mehler sum of the first `order` terms.
    pub(super) fn mehler(&self, other: &Self, rho: f64, order: u8) -> f64 {
        let pairs = self.coefficients.iter().zip(&other.coefficients).take(usize::from(order));
        // Horner, from the highest term down.
        pairs.rev().fold(0.0, |sum, (a, b)| rho * (sum + a * b))
    }

    /// Var f − Σ c_k². The difference knows nothing below the accuracy of its terms, so it is never taken as less.
    fn tail(&self) -> f64 {
        (self.var - self.coefficients.iter().map(|c| c * c).sum::<f64>()).max(1e-13 * self.var)
    }

    /// E over a of f(a) E[f(b) | a], b | a ~ N(m_b + ρ s_b x, (1−ρ²) s_b²).
    fn quadrature(&self, other: &Self, f: Activation, rho: f64) -> f64 {
        let inner_s = other.deviation * ((1.0 - rho) * (1.0 + rho)).sqrt();
        let inner_step = step(f, inner_s);
        let (centre_a, centre_b) = (f.apply(self.mean), f.apply(other.mean));
        let (mut product, mut first_a, mut first_b) = (0.0, 0.0, 0.0);
        trapezoid(step(f, self.deviation.max(other.deviation)), REACH, |x, weight| {
            let a = f.apply(self.mean + self.deviation * x) - centre_a;
            let inner_mean = other.mean + rho * other.deviation * x;
            let mut b = 0.0;
            trapezoid(inner_step, REACH, |t, weight| {
                b += weight * (f.apply(inner_mean + inner_s * t) - centre_b);
            });
            product += weight * a * b;
            first_a += weight * a;
            first_b += weight * b;
        });
        product - first_a * first_b
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMOOTH: [Activation; 5] =
        [Activation::Tanh, Activation::Sigmoid, Activation::Softplus, Activation::Gelu, Activation::Silu];

    fn expansion(f: Activation, mean: f64, var: f64) -> Expansion {
        let (_, output_var, gain) = moments(f, mean, var);
        Expansion::new(f, mean, var, output_var, gain, ORDER)
    }

    /// Pairs of inputs from nearly linear to nearly a step.
    const PAIRS: [[(f64, f64); 2]; 4] = [
        [(0.2, 0.01), (-1.0, 0.3)],
        [(0.0, 1.0), (0.5, 1.0)],
        [(-2.0, 4.0), (1.0, 2.0)],
        [(3.0, 100.0), (-1.0, 0.5)],
    ];

    #[test]
    fn covariances_match_two_dimensional_quadrature_whichever_way_they_are_computed() {
        for f in SMOOTH {
            for [(mean_a, var_a), (mean_b, var_b)] in PAIRS {
                let (a, b) = (expansion(f, mean_a, var_a), expansion(f, mean_b, var_b));
                for rho in [-1.0, -0.95, -0.6, -0.1, 0.3, 0.8, 0.99, 1.0] {
                    let scale = (a.var * b.var).sqrt();
                    let error = (a.covariance(&b, f, rho) - a.quadrature(&b, f, rho)).abs() / scale;
                    assert!(
                        error < 1e-10,
                        "{} {rho} {:?}: {error:e}",
                        f.name(),
                        (mean_a, var_a, mean_b, var_b)
                    );
                    // The order of the pair decides which variable is integrated first.
                    let swapped = (b.quadrature(&a, f, rho) - a.quadrature(&b, f, rho)).abs() / scale;
                    assert!(swapped < 1e-11, "{} {rho} swapped: {swapped:e}", f.name());
                }
            }
        }
    }

    #[test]
    fn very_wide_inputs_obey_the_arcsine_law_of_signs() {
        // tanh differs from the sign on a strip of probability about 1/s, here 1/1000.
        let wide = expansion(Activation::Tanh, 0.0, 1e6);
        for rho in [-0.7_f64, 0.3, 0.9] {
            let truncated = wide.mehler(&wide, rho, APPROXIMATE_ORDER);
            let law = std::f64::consts::FRAC_2_PI * rho.asin();
            let allowed = 0.035 * (rho.abs() / 0.9).powi(7) + 2e-3;
            assert!((truncated - law).abs() < allowed, "{rho}: {truncated} against {law}");
        }
    }

    #[test]
    fn a_truncated_sum_is_off_by_no_more_than_its_tail_allows() {
        for f in SMOOTH {
            for [(mean_a, var_a), (mean_b, var_b)] in PAIRS {
                let (a, b) = (expansion(f, mean_a, var_a), expansion(f, mean_b, var_b));
                let tail = |e: &Expansion| {
                    e.var
                        - e.coefficients[..usize::from(APPROXIMATE_ORDER)].iter().map(|c| c * c).sum::<f64>()
                };
                for rho in [-1.0_f64, -0.5, 0.4, 0.9, 1.0] {
                    let error = (a.mehler(&b, rho, APPROXIMATE_ORDER) - a.quadrature(&b, f, rho)).abs();
                    let allowed = rho.abs().powi(i32::from(APPROXIMATE_ORDER) + 1)
                        * (tail(&a).max(0.0) * tail(&b).max(0.0)).sqrt();
                    assert!(
                        error <= allowed + 1e-11 * (a.var * b.var).sqrt(),
                        "{} {rho}: {error:e} > {allowed:e}",
                        f.name()
                    );
                }
            }
        }
    }
}
