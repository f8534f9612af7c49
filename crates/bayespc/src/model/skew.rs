//! To which side noise leans, as standardised residuals of unseen samples tell it.
//!
//! ```text
//! ε_j = (y_j − ⟨y⟩_j)/std_j
//! τ ε ~ t_ν                                       symmetric: scale and tails
//! τ ε ~ w t_ν(δ₁, c₁) + (1 − w) t_ν(δ₂, c₂)        leaning: three numbers more (`prediction`'s `Skew`)
//! ```
//!
//! Both where the density of the residuals is largest, under a prior that keeps the three numbers moderate. Nothing is
//! said unless the second is clearly better; whoever asks then fits everything else again with this shape, and decides.

use crate::base::nelder_mead::minimise;
use crate::prediction::{Part, Skew};
use crate::special::{ln_gamma, log_sum_exp};

/// What a shape with three more numbers must gain in log density over all samples. By chance it gains as much one time in
/// two hundred (twice the gain is χ² with three degrees of freedom).
pub(super) const LEAST_GAIN: f64 = 6.5;

/// Residuals that are enough to tell five numbers.
const ENOUGH: usize = 2000;

/// Fewest residuals of which a shape is asked.
const FEWEST: usize = 100;

/// Least ν, as of the spread.
const LEAST_DOF: f64 = 2.5;

/// Standard deviations of logit w, d and log r before anything is known; their means are 0.
const PRIOR: [f64; 3] = [1.5, 2.0, 1.0];

/// Where the search begins: a small wide part to the right, and to the left.
const STARTS: [[f64; 3]; 2] = [[0.8, 1.5, 0.4], [0.8, -1.5, 0.4]];

/// The shape of these residuals if they lean; `weights` are those of the samples.
pub(super) fn of(residuals: &[f64], weights: &[f64]) -> Option<Skew> {
    if residuals.len() < FEWEST || residuals.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let step = residuals.len().div_ceil(ENOUGH).max(1);
    // Each of those that are looked at stands for `step` of them.
    let some: Vec<(f64, f64)> =
        residuals.iter().zip(weights).step_by(step).map(|(x, w)| (*x, w * step as f64)).collect();
    let symmetric = minimise(|p: &[f64; 2]| -log_density(&some, p, None), [0.0, 1.0], 0.3, (1e-3, 200));
    let [scale, tails] = symmetric.0;
    let leaning = |[share, distance, ratio]: [f64; 3]| {
        let loss = |p: &[f64; 5]| {
            let prior: f64 = p[2..].iter().zip(PRIOR).map(|(x, s)| 0.5 * (x / s).powi(2)).sum();
            prior - log_density(&some, &[p[0], p[1]], Some(shape(p)))
        };
        minimise(loss, [scale, tails + 1.0, share, distance, ratio], 0.4, (1e-3, 500))
    };
    let (one, other) = (leaning(STARTS[0]), leaning(STARTS[1]));
    let best = if other.1 < one.1 { other } else { one };
    let skew = shape(&best.0);
    (symmetric.1 - best.1 > LEAST_GAIN && skew.validate().is_ok()).then_some(skew)
}

fn shape(p: &[f64; 5]) -> Skew {
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    Skew {
        share: logistic(p[2].clamp(-4.0, 4.0)),
        distance: p[3].clamp(-20.0, 20.0),
        ratio: p[4].clamp(-4.0, 4.0).exp(),
    }
}

/// Of residuals with their weights, under log scale, log(ν − 2.5) and a shape.
fn log_density(residuals: &[(f64, f64)], [log_scale, tails]: &[f64; 2], skew: Option<Skew>) -> f64 {
    let (scale, dof) = (log_scale.exp(), LEAST_DOF + tails.clamp(-20.0, 12.0).exp());
    let constant = ln_gamma(0.5 * (dof + 1.0))
        - ln_gamma(0.5 * dof)
        - 0.5 * (std::f64::consts::PI * (dof - 2.0)).ln()
        - log_scale;
    let kernel = |z: f64, variance: f64| {
        -0.5 * variance.ln() - 0.5 * (dof + 1.0) * (z * z / (variance * (dof - 2.0))).ln_1p()
    };
    let parts = skew.map(|skew| skew.parts().map(|part: Part| (part, part.weight.ln())));
    let one = |z: f64| match &parts {
        None => kernel(z, 1.0),
        Some(parts) => {
            log_sum_exp(&parts.map(|(part, log_weight)| log_weight + kernel(z - part.shift, part.variance)))
        }
    };
    residuals.iter().map(|(x, weight)| weight * (constant + one(x / scale))).sum()
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, Exp1, Gamma, StandardNormal, StudentT};

    use super::*;
    use crate::base::random::stream;

    fn draws(n: usize, seed: u64, distribution: impl Distribution<f64>) -> Vec<f64> {
        let mut rng = stream(seed, 0);
        (0..n).map(|_| distribution.sample(&mut rng)).collect()
    }

    #[test]
    fn residuals_that_lean_are_found_out_and_to_which_side() {
        let exponential: Vec<f64> = draws(600, 1, Exp1).iter().map(|x| x - 1.0).collect();
        let ones = vec![1.0; 600];
        let right = of(&exponential, &ones).unwrap();
        assert!(right.skewness() > 0.5, "{right:?}");
        let mirrored: Vec<f64> = exponential.iter().map(|x| -x).collect();
        assert!(of(&mirrored, &ones).unwrap().skewness() < -0.5);
        let mild: Vec<f64> =
            draws(1500, 2, Gamma::new(4.0, 0.5).unwrap()).iter().map(|x: &f64| x - 2.0).collect();
        assert!(of(&mild, &[1.0; 1500]).unwrap().skewness() > 0.2);
    }

    /// By chance one set of residuals in two hundred or so would pass; of forty none or one.
    #[test]
    fn residuals_that_do_not_lean_are_left_alone() {
        let ones = vec![1.0; 400];
        let found = (0..40)
            .filter(|&seed| {
                let residuals: Vec<f64> = if seed % 2 == 0 {
                    draws(400, 100 + seed, StandardNormal)
                } else {
                    draws(400, 100 + seed, StudentT::new(4.0).unwrap())
                };
                of(&residuals, &ones).is_some()
            })
            .count();
        assert!(found <= 1, "{found} of 40");
    }

    #[test]
    fn the_density_is_that_of_a_shape_that_integrates_to_one() {
        let skew = Skew { share: 0.3, distance: -1.4, ratio: 0.6 };
        for shape in [None, Some(skew)] {
            let h = 0.01;
            let total: f64 = (-20_000..20_000)
                .map(|i| h * log_density(&[(h * f64::from(i), 1.0)], &[0.3, 0.7], shape).exp())
                .sum();
            assert!((total - 1.0).abs() < 1e-4, "{total}");
        }
    }

    #[test]
    fn few_residuals_and_those_that_are_no_numbers_say_nothing() {
        let exponential: Vec<f64> = draws(99, 1, Exp1);
        assert!(of(&exponential, &[1.0; 99]).is_none());
        let mut broken = draws(200, 1, Exp1);
        broken[7] = f64::INFINITY;
        assert!(of(&broken, &[1.0; 200]).is_none());
        assert!(of(&[0.0; 200], &[1.0; 200]).is_none_or(|skew| skew.validate().is_ok()));
    }
}
