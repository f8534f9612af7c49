//! Distribution of one target of one sample under one component: a shifted and scaled Student-t.
//!
//! ```text
//! y = location + scale · t_k ,   scale² = Var (k−2)/k
//! E|y − x| = scale · [ z (2F_k(z) − 1) + 2 f_k(z) (k + z²)/(k − 1) ] ,   z = (x − location)/scale
//! ```
//!
//! with F and f the standard distribution function and density; k = ∞ is normal and scale = 0 is a
//! point.

use super::component::Component;
use super::mixture::Predictive;
use crate::special::{student_t_cdf, student_t_ln_pdf};

/// Location-scale Student-t over the reals, with its weight in the mixture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marginal {
    pub(crate) weight: f64,
    pub(crate) location: f64,
    pub(crate) scale: f64,
    pub(crate) dof: f64,
}

impl Marginal {
    pub(crate) fn new(weight: f64, component: &Component, target: usize, sample: usize) -> Self {
        let dof = component.dof.of(sample);
        let shrinkage = if dof.is_finite() { (dof - 2.0) / dof } else { 1.0 };
        Self {
            weight,
            location: component.mean[(target, sample)],
            scale: (component.variance(target, sample) * shrinkage).sqrt(),
            dof,
        }
    }

    /// P(Y ≤ y).
    pub(crate) fn cdf(&self, y: f64) -> f64 {
        if self.scale > 0.0 {
            student_t_cdf((y - self.location) / self.scale, self.dof)
        } else {
            f64::from(y >= self.location)
        }
    }

    /// Density at y; none for a point.
    pub(crate) fn density(&self, y: f64) -> f64 {
        if self.scale > 0.0 {
            student_t_ln_pdf((y - self.location) / self.scale, self.dof).exp() / self.scale
        } else {
            0.0
        }
    }

    /// E|Y − y|.
    pub(crate) fn expected_distance(&self, y: f64) -> f64 {
        let difference = y - self.location;
        let z = difference / self.scale;
        if !z.is_finite() || self.scale == 0.0 {
            return difference.abs();
        }
        let spread = if self.dof.is_finite() { (self.dof + z * z) / (self.dof - 1.0) } else { 1.0 };
        difference * (2.0 * student_t_cdf(z, self.dof) - 1.0)
            + 2.0 * self.scale * spread * student_t_ln_pdf(z, self.dof).exp()
    }
}

/// P(Y ≤ y) under the mixture.
pub(crate) fn mixture_cdf(marginals: &[Marginal], y: f64) -> f64 {
    marginals.iter().map(|marginal| marginal.weight * marginal.cdf(y)).sum::<f64>().min(1.0)
}

impl Predictive {
    /// P(y_target ≤ y) for one sample. Panics when there is no such target or sample, as indexing does.
    pub fn marginal_cdf(&self, target: usize, sample: usize, y: f64) -> f64 {
        self.weighted_components()
            .map(|(weight, component)| weight * Marginal::new(weight, component, target, sample).cdf(y))
            .sum::<f64>()
            .min(1.0)
    }

    /// The mixture's marginals for one target of one sample, into memory that is reused.
    pub(crate) fn marginals_into(&self, target: usize, sample: usize, into: &mut Vec<Marginal>) {
        into.clear();
        into.extend(
            self.weighted_components()
                .map(|(weight, component)| Marginal::new(weight, component, target, sample)),
        );
    }
}
