//! Draws of targets from a predictive, noise included.
//!
//! ```text
//! c ~ w ,   y_i = μ_i + C_i^½ ξ √((k−2)/g) ,   ξ ~ N(0, I) ,   g ~ χ²_k        (√… = 1 for a normal)
//! ```
//!
//! A draw takes one component for all samples, because a component is one network: the draw is then a
//! noisy copy of one function and not a patchwork of several. Which part of a leaning noise a sample has is chance, each
//! sample's own.

use faer::Mat;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use super::component::Component;
use super::mixture::Predictive;
use super::skew::Part;
use crate::distributions::student_t::chi_squared;

impl Predictive {
    /// `n_draws` sets of targets, `d × n` each.
    pub fn sample(&self, n_draws: usize, rng: &mut dyn Rng) -> Vec<Mat<f64>> {
        (0..n_draws)
            .map(|_| {
                let mut left: f64 = rng.random();
                let mut chosen = &self.components()[0];
                for (weight, component) in self.weighted_components() {
                    chosen = component;
                    left -= weight;
                    if left < 0.0 {
                        break;
                    }
                }
                let mut values = draw(chosen, rng);
                self.recalibrate(&mut values);
                values
            })
            .collect()
    }
}

impl Predictive {
    /// Draws of the model's own distribution become draws of the recalibrated one, by the probability below them.
    fn recalibrate(&self, values: &mut Mat<f64>) {
        let Some(recalibrated) = self.recalibrated() else { return };
        for sample in 0..self.n_samples() {
            for (target, z) in recalibrated.iter().enumerate() {
                let below = self.own_marginal_cdf(target, sample, values[(target, sample)]);
                let (mean, std) = self.own_moments(target, sample);
                // A draw so far out that nothing is left above it belongs to the last probability that is left.
                let below = below.clamp(f64::MIN_POSITIVE, 1.0 - 0.5 * f64::EPSILON);
                values[(target, sample)] = mean + std * z.quantile(below);
            }
        }
    }
}

fn draw(component: &Component, rng: &mut dyn Rng) -> Mat<f64> {
    let d = component.n_targets();
    let mut root = Mat::zeros(d, d);
    let mut normal = vec![0.0; d];
    let mut values = component.mean.clone();
    let parts: Vec<Part> = component.parts().collect();
    for sample in 0..component.n_samples() {
        if let [first, second] = parts[..] {
            let part = if rng.random::<f64>() < first.weight { first } else { second };
            let (mean, variance) = component.within(&part, 0, sample);
            values[(0, sample)] = mean;
            root[(0, 0)] = variance.sqrt();
        } else if sample == 0 || !component.is_shared() {
            component.covariance_into(sample, &mut root);
            semidefinite_root(&mut root);
        }
        normal.fill_with(|| StandardNormal.sample(rng));
        let dof = component.dof.value();
        let spread = if dof.is_finite() { ((dof - 2.0) / chi_squared(dof, rng)).sqrt() } else { 1.0 };
        for j in 0..d {
            for i in j..d {
                values[(i, sample)] += spread * root[(i, j)] * normal[j];
            }
        }
    }
    values
}

/// a ← L with L Lᵀ = a, in the lower triangle, for a covariance that may be singular: a direction without
/// variance gets a column of zeros.
pub(super) fn semidefinite_root(a: &mut Mat<f64>) {
    let d = a.nrows();
    for j in 0..d {
        let variance = a[(j, j)];
        let mut pivot = variance;
        for k in 0..j {
            pivot -= a[(j, k)] * a[(j, k)];
        }
        let root = if pivot > 4.0 * d as f64 * f64::EPSILON * variance { pivot.sqrt() } else { 0.0 };
        a[(j, j)] = root;
        for i in j + 1..d {
            let mut product = a[(i, j)];
            for k in 0..j {
                product -= a[(i, k)] * a[(j, k)];
            }
            a[(i, j)] = if root > 0.0 { product / root } else { 0.0 };
        }
    }
}

/// Slopes by the lower triangle of `a` of what has these slopes by the root L of `a`, in their place: the steps of
/// `semidefinite_root` backwards. A direction without variance has none.
pub(super) fn root_slopes(root: &Mat<f64>, slopes: &mut Mat<f64>) {
    for j in (0..root.nrows()).rev() {
        let pivot = root[(j, j)];
        for i in j + 1..root.nrows() {
            let by = if pivot > 0.0 { slopes[(i, j)] / pivot } else { 0.0 };
            slopes[(i, j)] = by;
            slopes[(j, j)] -= by * root[(i, j)];
            for k in 0..j {
                slopes[(i, k)] -= by * root[(j, k)];
                slopes[(j, k)] -= by * root[(i, k)];
            }
        }
        let by = if pivot > 0.0 { 0.5 * slopes[(j, j)] / pivot } else { 0.0 };
        slopes[(j, j)] = by;
        for k in 0..j {
            slopes[(j, k)] -= 2.0 * by * root[(j, k)];
        }
    }
}
