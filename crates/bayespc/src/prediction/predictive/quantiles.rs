//! Quantiles and central intervals of each target.
//!
//! One component is a shifted and scaled Student-t: its quantile is exact. The quantile of a mixture
//! solves Σ_c w_c F_c(y) = p; it lies between the smallest and the largest of the components' quantiles,
//! where Newton's method, replaced by bisection whenever it leaves the bracket or slows down, finds it.

use faer::Mat;

use super::chunks::filled;
use super::marginal::{Marginal, mixture_cdf};
use super::mixture::Predictive;
use crate::error::{Error, Result};
use crate::special::student_t_quantile;

/// Bisection alone needs about 1100 steps across all of f64, but 60 across a bracket of one scale.
const MAX_STEPS: usize = 200;

impl Predictive {
    /// For each probability in `p` the quantiles of each target and sample, `d × n`.
    pub fn quantile(&self, p: &[f64]) -> Result<Vec<Mat<f64>>> {
        if let Some(&value) = p.iter().find(|&&p| !(p > 0.0 && p < 1.0)) {
            return Err(Error::Setting { name: "quantile", value, must_be: "between 0 and 1, exclusive" });
        }
        Ok(p.iter().map(|&p| self.one_quantile(p)).collect())
    }

    /// Bounds (lower, upper), `d × n` each, that leave out (1 − `coverage`)/2 on either side. Those of a model
    /// calibrated by conformal prediction are ⟨y⟩ ± s · std, with s the score of rank ⌈(n+1) `coverage`⌉.
    pub fn interval(&self, coverage: f64) -> Result<(Mat<f64>, Mat<f64>)> {
        if !(coverage > 0.0 && coverage < 1.0) {
            let must_be = "between 0 and 1, exclusive";
            return Err(Error::Setting { name: "coverage", value: coverage, must_be });
        }
        if let Some(scores) = self.scores() {
            let n = scores.first().map_or(0, Vec::len);
            let rank = ((n + 1) as f64 * coverage).ceil() as usize;
            if rank > n {
                let must_be = "at most n/(n+1) for n calibration samples";
                return Err(Error::Setting { name: "coverage", value: coverage, must_be });
            }
            let (mean, std) = (self.mean(), self.std());
            let bound = |sign: f64| {
                Mat::from_fn(self.n_targets(), self.n_samples(), |i, j| {
                    mean[(i, j)] + sign * scores[i][rank - 1] * std[(i, j)]
                })
            };
            return Ok((bound(-1.0), bound(1.0)));
        }
        Ok((self.one_quantile(0.5 - 0.5 * coverage), self.one_quantile(0.5 + 0.5 * coverage)))
    }

    fn one_quantile(&self, p: f64) -> Mat<f64> {
        // The standard quantile is costly for Student-t; most components share it between samples.
        let shared: Vec<_> =
            self.components().iter().map(|c| c.dof.shared().map(|dof| student_t_quantile(p, dof))).collect();
        filled(self.n_targets(), self.n_samples(), |target, sample, marginals: &mut Vec<Marginal>| {
            self.marginals_into(target, sample, marginals);
            let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
            for (marginal, standard) in marginals.iter().zip(&shared) {
                let standard = standard.unwrap_or_else(|| student_t_quantile(p, marginal.dof));
                let quantile = marginal.location + marginal.scale * standard;
                low = low.min(quantile);
                high = high.max(quantile);
            }
            if low < high { solve(marginals, p, low, high) } else { low }
        })
    }
}

/// y in [low, high] with mixture_cdf(y) = p.
fn solve(marginals: &[Marginal], p: f64, mut low: f64, mut high: f64) -> f64 {
    let mut y = low + 0.5 * (high - low);
    let mut last_step = high - low;
    for _ in 0..MAX_STEPS {
        let excess = mixture_cdf(marginals, y) - p;
        if excess == 0.0 {
            return y;
        }
        if excess < 0.0 {
            low = y;
        } else {
            high = y;
        }
        let density: f64 = marginals.iter().map(|marginal| marginal.weight * marginal.density(y)).sum();
        let newton = y - excess / density;
        let fast = (2.0 * excess).abs() < (last_step * density).abs();
        let next = if fast && newton > low && newton < high { newton } else { low + 0.5 * (high - low) };
        last_step = next - y;
        if last_step.abs() <= f64::EPSILON * y.abs() || high - low <= f64::EPSILON * high.abs() {
            return next;
        }
        y = next;
    }
    y
}
