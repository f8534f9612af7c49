//! Quantiles and central intervals of each target.
//!
//! One component is a shifted and scaled Student-t: its quantile is exact. The quantile of a mixture
//! solves log F(y) = log p, F = Σ_c w_c F_c, in the lower half; the upper half is the lower half of −Y, so
//! that tails keep their digits. The solution lies between the smallest and the largest of the components'
//! quantiles. Newton's method starts at the quantile of one Student-t with the mixture's mean and variance; bisection
//! replaces it whenever it leaves the bracket or slows down.
//!
//! ```text
//! y ← y + F(y)/f(y) · log(p/F(y))        until a step is below 1e-7 of the smallest scale: the next would be
//!                                        about its square, 1e-14
//! ```

use faer::Mat;

use super::chunks::filled;
use super::marginal::{Marginal, Marginals, mixture_cdf_and_density};
use super::mixture::Predictive;
use crate::base::check::inside_unit_interval;
use crate::error::Result;
use crate::special::student_t_quantile;

/// Bisection alone needs about 1100 steps across all of f64, but 60 across a bracket of one scale.
const MAX_STEPS: usize = 200;

/// Step, in smallest scales, after which the next would be below rounding.
const LAST_STEP: f64 = 1e-7;

/// Samples from which on tables of the components' distribution functions pay.
const TABULATE_FROM: usize = 24;

/// A probability as the tail it leaves out: below the quantile, or above it.
#[derive(Clone, Debug)]
struct Level {
    tail: f64,
    upper: bool,
    /// Quantiles of the components' standard Student-t at `tail`; none is positive.
    standard: Vec<f64>,
}

impl Predictive {
    /// For each probability in `p` the quantiles of each target and sample, `d × n`.
    pub fn quantile(&self, p: &[f64]) -> Result<Vec<Mat<f64>>> {
        p.iter().try_for_each(|&p| inside_unit_interval("quantile", p))?;
        Ok(self.quantiles(p))
    }

    /// Bounds (lower, upper), `d × n` each, that leave out (1 − `coverage`)/2 on either side. Those of a model
    /// calibrated by conformal prediction are ⟨y⟩ ± s · std, with s the score of rank ⌈(n+1) `coverage`⌉ while there is
    /// one: the quantiles of the next higher rank, so that they cover at least what they say.
    pub fn interval(&self, coverage: f64) -> Result<(Mat<f64>, Mat<f64>)> {
        inside_unit_interval("coverage", coverage)?;
        if let Some(recalibrated) = self.recalibrated() {
            let radii: Vec<f64> = recalibrated.iter().map(|z| z.radius(coverage)).collect();
            let bound = |sign: f64| self.shifted(|target| sign * radii[target]);
            return Ok((bound(-1.0), bound(1.0)));
        }
        let mut bounds = self.quantiles(&[0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage]);
        let upper = bounds.swap_remove(1);
        Ok((bounds.swap_remove(0), upper))
    }

    /// ⟨y⟩ + z · std with the model's own standard deviation and a z for each target.
    fn shifted(&self, z: impl Fn(usize) -> f64 + Sync) -> Mat<f64> {
        filled(self.n_targets(), self.n_samples(), |target, sample, (): &mut ()| {
            let (mean, std) = self.own_moments(target, sample);
            mean + z(target) * std
        })
    }

    /// Quantiles at each probability, all of a sample's at a time.
    fn quantiles(&self, p: &[f64]) -> Vec<Mat<f64>> {
        if let Some(recalibrated) = self.recalibrated() {
            return p.iter().map(|&p| self.shifted(|target| recalibrated[target].quantile(p))).collect();
        }
        let tabulate_from = if self.n_parts() > 1 { TABULATE_FROM } else { usize::MAX };
        let shared = Marginals::new(self, tabulate_from);
        let levels = self.levels(p);
        let (d, n, n_levels) = (self.n_targets(), self.n_samples(), levels.len());
        let all = filled(d * n_levels, n, |row, sample, marginals: &mut Vec<Marginal<'_>>| {
            let (target, level) = (row / n_levels, row % n_levels);
            if level == 0 {
                shared.fill(target, sample, marginals);
            }
            mixture_quantile(marginals, &levels[level])
        });
        if n_levels == 1 {
            return vec![all];
        }
        (0..n_levels).map(|k| Mat::from_fn(d, n, |i, j| all[(i * n_levels + k, j)])).collect()
    }

    /// The standard quantiles are costly for Student-t; components and levels share them where they can.
    fn levels(&self, p: &[f64]) -> Vec<Level> {
        let mut known: Vec<(f64, f64, f64)> = Vec::new();
        let mut standard = |tail: f64, dof: f64| {
            if let Some(&(.., quantile)) = known.iter().find(|known| (known.0, known.1) == (tail, dof)) {
                return quantile;
            }
            let quantile = student_t_quantile(tail, dof);
            known.push((tail, dof, quantile));
            quantile
        };
        p.iter()
            .map(|&p| {
                let tail = p.min(1.0 - p);
                let each = self.components().iter().flat_map(|c| c.parts().map(|_| c.dof.value()));
                let standard = each.map(|dof| standard(tail, dof)).collect();
                Level { tail, upper: p > 0.5, standard }
            })
            .collect()
    }
}

/// y that leaves out the probability `tail` below it, or above it if `upper`.
pub(crate) fn tail_quantile(marginals: &mut [Marginal<'_>], tail: f64, upper: bool) -> f64 {
    let standard = marginals.iter().map(|m| student_t_quantile(tail, m.shape.dof())).collect();
    mixture_quantile(marginals, &Level { tail, upper, standard })
}

fn mixture_quantile(marginals: &mut [Marginal<'_>], level: &Level) -> f64 {
    if !level.upper {
        return lower_quantile(marginals, level);
    }
    let mirror = |marginals: &mut [Marginal<'_>]| marginals.iter_mut().for_each(|m| m.location = -m.location);
    mirror(marginals);
    let quantile = -lower_quantile(marginals, level);
    mirror(marginals);
    quantile
}

/// y with F(y) = `level.tail`.
fn lower_quantile(marginals: &[Marginal<'_>], level: &Level) -> f64 {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut mean, mut square, mut deviation) = (0.0, 0.0, 0.0);
    for (marginal, standard) in marginals.iter().zip(&level.standard) {
        let quantile = marginal.location + marginal.scale * standard;
        low = low.min(quantile);
        high = high.max(quantile);
        mean += marginal.weight * marginal.location;
        square += marginal.weight * marginal.scale * marginal.scale;
        deviation += marginal.weight * standard;
    }
    if low >= high {
        return low;
    }
    for marginal in marginals {
        square += marginal.weight * (marginal.location - mean) * (marginal.location - mean);
    }
    solve(marginals, level.tail, low, high, mean + deviation * square.sqrt())
}

/// y in [low, high] with F(y) = p, from a guess.
fn solve(marginals: &[Marginal<'_>], p: f64, mut low: f64, mut high: f64, guess: f64) -> f64 {
    let sharpest = marginals.iter().map(|marginal| marginal.scale).fold(f64::INFINITY, f64::min);
    let mut y = guess.clamp(low, high);
    let mut last_step = high - low;
    for _ in 0..MAX_STEPS {
        let (cdf, density) = mixture_cdf_and_density(marginals, y);
        if cdf == p {
            return y;
        }
        if cdf < p {
            low = y;
        } else {
            high = y;
        }
        let step = cdf / density * (p / cdf).ln();
        let newton = y + step;
        let fast = step.abs() < 0.5 * last_step.abs();
        let next = if fast && newton >= low && newton <= high { newton } else { low + 0.5 * (high - low) };
        last_step = next - y;
        let tolerance = (LAST_STEP * sharpest).max(f64::EPSILON * y.abs());
        if next == newton && last_step.abs() <= tolerance || high - low <= f64::EPSILON * high.abs() {
            return next;
        }
        y = next;
    }
    y
}
