//! Continuous ranked probability score of each target: a proper score in the target's own units, which
//! for a point prediction is the absolute error.
//!
//! ```text
//! CRPS(F, y) = ∫ (F(x) − 1{x ≥ y})² dx = E|Y − y| − ½ E|Y − Y′|
//! ½ E|Y − Y′| = scale · 2√k/(k−1) · B(½, k − ½)/B(½, k/2)²              one Student-t (σ/√π if normal)
//!             = ½ Σ_c Σ_c′ w_c w_c′ E|N(μ_c − μ_c′, σ_c² + σ_c′²)|       normals (Grimit et al. 2006)
//!             = ∫ F (1 − F) dx                                           otherwise, numerically
//! ```
//!
//! The first term is closed in all cases (Jordan, Krüger and Lerch 2019). The integral is taken by Gauss-Legendre rules on
//! panels that are as wide as the distance of F's singularities μ_c ± i√k σ_c allows: equal ones between and around the
//! components' locations, each three times as far as the last in the tails, and a closed form beyond.
//!
//! ```text
//! ∫_{−∞}^a F (1 − F) dx ≈ ∫_{−∞}^a F dx · (1 − F(a) (k−1)/(2k−1))           F ~ |x|^−k far out, small F(a)
//! ```
//!
//! Few samples, or scales that differ by orders of magnitude, are integrated by adaptive Gauss-Kronrod instead. The
//! error of either is below 1e-7 standard deviations.

use faer::{Mat, MatRef};

use super::chunks::filled;
use super::marginal::{Marginal, Marginals, Shape, mixture_cdf_and_density};
use super::mixture::Predictive;
use crate::error::Result;
use crate::special::{GAUSS_12, GAUSS_20, student_t_ln_pdf};

/// Difference of the Gauss and Kronrod rules at which a panel is accepted, in largest scales.
const TOLERANCE: f64 = 1e-9;

/// Halvings of a panel at most.
const MAX_DEPTH: usize = 40;

/// Samples from which on tables pay.
const TABULATE_FROM: usize = 4;

/// Half-width of a panel of twenty nodes, in scales and in distances of a singularity, and how many there may be.
const PANEL: (f64, f64) = (3.0, 1.6);
const MAX_PANELS: f64 = 60.0;

/// F beyond which a tail is closed.
const CLOSED: f64 = 3e-5;

impl Predictive {
    /// CRPS of each target and sample, `d × n`; lower is better.
    pub fn crps(&self, targets: MatRef<'_, f64>) -> Result<Mat<f64>> {
        self.check_targets(targets)?;
        let (d, n) = (self.n_targets(), self.n_samples());
        if let Some(recalibrated) = self.recalibrated() {
            return Ok(filled(d, n, |target, sample, (): &mut ()| {
                let ((mean, std), y) = (self.own_moments(target, sample), targets[(target, sample)]);
                if std > 0.0 { std * recalibrated[target].crps((y - mean) / std) } else { (y - mean).abs() }
            }));
        }
        let tabulate_from = if self.n_parts() > 1 { TABULATE_FROM } else { usize::MAX };
        let shared = Marginals::new(self, tabulate_from);
        Ok(filled(d, n, |target, sample, marginals: &mut Vec<Marginal<'_>>| {
            shared.fill(target, sample, marginals);
            let y = targets[(target, sample)];
            let distance: f64 = marginals.iter().map(|m| m.weight * m.expected_distance(y)).sum();
            distance - half_spread(marginals)
        }))
    }
}

/// ½ E|Y − Y′| for independent Y, Y′ from the mixture.
fn half_spread(marginals: &mut [Marginal<'_>]) -> f64 {
    match marginals {
        [single] => student_half_spread(single.scale, single.shape.dof()),
        _ if marginals.iter().all(|m| m.shape.dof().is_infinite() || m.scale == 0.0) => {
            normal_half_spread(marginals)
        }
        _ => panelled_half_spread(marginals).unwrap_or_else(|| integrated_half_spread(marginals)),
    }
}

fn student_half_spread(scale: f64, k: f64) -> f64 {
    if k.is_infinite() {
        return scale / std::f64::consts::PI.sqrt();
    }
    // log B(½, k/2) = −log t_k(0) − ½ log k, and likewise B(½, k − ½) from t_{2k−1}(0).
    let log_beta = |k: f64| -student_t_ln_pdf(0.0, k) - 0.5 * k.ln();
    scale * 2.0 * k.sqrt() / (k - 1.0) * (log_beta(2.0 * k - 1.0) - 2.0 * log_beta(k)).exp()
}

fn normal_half_spread(marginals: &[Marginal<'_>]) -> f64 {
    let mut sum = 0.0;
    for (c, first) in marginals.iter().enumerate() {
        sum += first.weight * first.weight * student_half_spread(first.scale, f64::INFINITY);
        for second in &marginals[c + 1..] {
            let difference = Marginal {
                weight: 1.0,
                location: first.location - second.location,
                scale: first.scale.hypot(second.scale),
                shape: &Shape::Exact(f64::INFINITY),
            };
            // Each pair is met once and counts twice.
            sum += first.weight * second.weight * difference.expected_distance(0.0);
        }
    }
    sum
}

/// ∫ F (1 − F) by fixed panels, or nothing where that would take too many.
fn panelled_half_spread(marginals: &mut [Marginal<'_>]) -> Option<f64> {
    let (mut left, mut right, mut widest) = (f64::INFINITY, f64::NEG_INFINITY, 0.0_f64);
    let (mut half_width, mut dof) = (f64::INFINITY, f64::INFINITY);
    for m in marginals.iter() {
        left = left.min(m.location);
        right = right.max(m.location);
        widest = widest.max(m.scale);
        half_width = half_width.min(m.scale * PANEL.0.min(PANEL.1 * m.shape.dof().sqrt()));
        dof = dof.min(m.shape.dof());
    }
    let margin = PANEL.0 * widest;
    let (start, width) = (left - margin, right - left + 2.0 * margin);
    let n_panels = (0.5 * width / half_width).ceil();
    // Also where nothing is known of a point's panel, or of values out of range.
    if !(n_panels <= MAX_PANELS) || marginals.iter().any(|m| matches!(m.shape, Shape::Exact(_))) {
        return None;
    }
    let half = 0.5 * width / n_panels;
    let mut sum = 0.0;
    for panel in 0..n_panels as usize {
        sum += gauss(&GAUSS_20, start + half * (2 * panel + 1) as f64, half, |x| product(marginals, x));
    }
    sum += lower_tail(marginals, left, margin, dof);
    // The upper tail is the lower tail of −Y, where F has all its digits and 1 − F would not.
    mirror(marginals);
    sum += lower_tail(marginals, -right, margin, dof);
    mirror(marginals);
    Some(sum)
}

/// The marginals of −Y.
fn mirror(marginals: &mut [Marginal<'_>]) {
    for marginal in marginals {
        marginal.location = -marginal.location;
    }
}

/// ∫ F (1 − F) over (−∞, left − margin).
fn lower_tail(marginals: &[Marginal<'_>], left: f64, margin: f64, dof: f64) -> f64 {
    let (mut sum, mut reach) = (0.0, margin);
    loop {
        let end = left - reach;
        let below = mixture_cdf_and_density(marginals, end).0;
        if !(below > CLOSED) {
            let rest: f64 = marginals.iter().map(|m| m.weight * m.expected_shortfall(end)).sum();
            let ratio = if dof.is_finite() { (dof - 1.0) / (2.0 * dof - 1.0) } else { 0.5 };
            return sum + rest * (1.0 - below * ratio);
        }
        sum += gauss(&GAUSS_12, left - 2.0 * reach, reach, |x| product(marginals, x));
        reach *= 3.0;
    }
}

/// ∫ f over (middle − half, middle + half) by a Gauss-Legendre rule.
fn gauss(rule: &[(f64, f64)], middle: f64, half: f64, f: impl Fn(f64) -> f64) -> f64 {
    half * rule.iter().map(|&(x, w)| w * (f(middle - half * x) + f(middle + half * x))).sum::<f64>()
}

fn integrated_half_spread(marginals: &[Marginal<'_>]) -> f64 {
    let mut locations: Vec<f64> = marginals.iter().map(|m| m.location).collect();
    locations.sort_by(f64::total_cmp);
    locations.dedup();
    let scale = marginals.iter().map(|m| m.scale).fold(0.0, f64::max);
    let tolerance = TOLERANCE * scale;
    let between: f64 = locations
        .windows(2)
        .map(|ends| integral(&|x| product(marginals, x), ends[0], ends[1], tolerance, MAX_DEPTH))
        .sum();
    // x = end − scale t/(1−t) maps the lower tail to 0 < t < 1.
    let tail = |marginals: &[Marginal<'_>], end: f64| {
        let mapped = |t: f64| {
            let rest = 1.0 - t;
            scale / (rest * rest) * product(marginals, end - scale * t / rest)
        };
        integral(&mapped, 0.0, 1.0, tolerance, MAX_DEPTH)
    };
    let mirrored: Vec<Marginal<'_>> =
        marginals.iter().map(|m| Marginal { location: -m.location, ..*m }).collect();
    between + tail(marginals, locations[0]) + tail(&mirrored, -locations[locations.len() - 1])
}

/// F (1 − F) at x.
fn product(marginals: &[Marginal<'_>], x: f64) -> f64 {
    let below = mixture_cdf_and_density(marginals, x).0;
    below * (1.0 - below)
}

/// Positive nodes of the 15-point Kronrod rule with its weights and those of the 7-point Gauss rule
/// (QUADPACK, qk15).
const KRONROD: [(f64, f64, f64); 8] = [
    (0.991_455_371_120_812_6, 0.022_935_322_010_529_224, 0.0),
    (0.949_107_912_342_758_5, 0.063_092_092_629_978_56, 0.129_484_966_168_869_7),
    (0.864_864_423_359_769_1, 0.104_790_010_322_250_18, 0.0),
    (0.741_531_185_599_394_4, 0.140_653_259_715_525_92, 0.279_705_391_489_276_64),
    (0.586_087_235_467_691_1, 0.169_004_726_639_267_9, 0.0),
    (0.405_845_151_377_397_2, 0.190_350_578_064_785_4, 0.381_830_050_505_118_9),
    (0.207_784_955_007_898_47, 0.204_432_940_075_298_9, 0.0),
    (0.0, 0.209_482_141_084_727_82, 0.417_959_183_673_469_4),
];

/// ∫ f over (a, b), halving the panel until both rules agree.
pub(super) fn integral(f: &impl Fn(f64) -> f64, a: f64, b: f64, tolerance: f64, depth: usize) -> f64 {
    let (middle, half) = (a + 0.5 * (b - a), 0.5 * (b - a));
    let (mut kronrod, mut gauss) = (0.0, 0.0);
    for (node, kronrod_weight, gauss_weight) in KRONROD {
        let both = if node == 0.0 { f(middle) } else { f(middle - half * node) + f(middle + half * node) };
        kronrod += kronrod_weight * both;
        gauss += gauss_weight * both;
    }
    if depth == 0 || half * (kronrod - gauss).abs() <= tolerance {
        return half * kronrod;
    }
    integral(f, a, middle, tolerance, depth - 1) + integral(f, middle, b, tolerance, depth - 1)
}
