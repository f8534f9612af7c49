//! Distribution of one target of one sample under one component, or a part of its noise: a shifted and scaled Student-t.
//!
//! ```text
//! y = location + scale · t_k ,   scale² = Var (k−2)/k
//! ∫_{−∞}^y F dx = E(y − Y)₊ = scale · [ z F_k(z) + f_k(z) (k + z²)/(k − 1) ] ,   z = (y − location)/scale
//! E|Y − y| = 2 E(y − Y)₊ − (y − location)
//! ```
//!
//! with F and f the standard distribution function and density; k = ∞ is normal and scale = 0 is a
//! point. Where very many values are asked for, the standard functions are tabulated.

use std::sync::Arc;

use super::component::Component;
use super::mixture::Predictive;
use super::skew::Part;
use crate::special::{StudentTTable, tail_and_density};

/// Standard Student-t of a component.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Computed at every place, with its degrees of freedom.
    Exact(f64),
    /// Interpolated.
    Table(Arc<StudentTTable>),
}

impl Shape {
    /// P(t > z) and the density, for z ≥ 0.
    #[inline]
    fn tail_and_density(&self, z: f64) -> (f64, f64) {
        match self {
            Self::Exact(dof) => tail_and_density(z, *dof),
            Self::Table(table) => table.tail_and_density(z),
        }
    }

    /// Degrees of freedom.
    pub(crate) fn dof(&self) -> f64 {
        match self {
            Self::Exact(dof) => *dof,
            Self::Table(table) => table.dof(),
        }
    }
}

/// Location-scale Student-t over the reals, with its weight in the mixture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marginal<'a> {
    pub(crate) weight: f64,
    pub(crate) location: f64,
    pub(crate) scale: f64,
    pub(crate) shape: &'a Shape,
}

impl Marginal<'_> {
    /// P(Y ≤ y) and the density at y, which a point has not.
    #[inline]
    pub(crate) fn cdf_and_density(&self, y: f64) -> (f64, f64) {
        if self.scale > 0.0 {
            let z = (y - self.location) / self.scale;
            let (tail, density) = self.shape.tail_and_density(z.abs());
            (if z < 0.0 { tail } else { 1.0 - tail }, density / self.scale)
        } else {
            (f64::from(y >= self.location), 0.0)
        }
    }

    /// E(y − Y)₊ = ∫ F over (−∞, y).
    pub(crate) fn expected_shortfall(&self, y: f64) -> f64 {
        let difference = y - self.location;
        let z = difference / self.scale;
        if !z.is_finite() || self.scale == 0.0 {
            return difference.max(0.0);
        }
        let dof = self.shape.dof();
        let (tail, density) = self.shape.tail_and_density(z.abs());
        let spread = if dof.is_finite() { (dof + z * z) / (dof - 1.0) } else { 1.0 };
        let below = if z < 0.0 { tail } else { 1.0 - tail };
        difference * below + self.scale * spread * density
    }

    /// E|Y − y|.
    pub(crate) fn expected_distance(&self, y: f64) -> f64 {
        2.0 * self.expected_shortfall(y) - (y - self.location)
    }
}

/// P(Y ≤ y) and the density of the mixture.
#[inline]
pub(crate) fn mixture_cdf_and_density(marginals: &[Marginal<'_>], y: f64) -> (f64, f64) {
    let (mut cdf, mut density) = (0.0, 0.0);
    for marginal in marginals {
        let (own_cdf, own_density) = marginal.cdf_and_density(y);
        cdf += marginal.weight * own_cdf;
        density += marginal.weight * own_density;
    }
    (cdf.min(1.0), density)
}

/// What the marginals of all samples share: weights and shapes of the components.
#[derive(Debug)]
pub(crate) struct Marginals<'a> {
    predictive: &'a Predictive,
    weights: Vec<f64>,
    shapes: Vec<Shape>,
}

impl<'a> Marginals<'a> {
    /// Those of a predictive, by tables if it has at least `tabulate_from` samples.
    pub(crate) fn new(predictive: &'a Predictive, tabulate_from: usize) -> Self {
        let mut shapes: Vec<Shape> = Vec::with_capacity(predictive.components().len());
        for component in predictive.components() {
            let dof = component.dof.value();
            let shape = if predictive.n_samples() < tabulate_from {
                Shape::Exact(dof)
            } else if let Some(same) = shapes.iter().find(|shape| shape.dof() == dof) {
                same.clone()
            } else {
                Shape::Table(Arc::new(StudentTTable::new(dof)))
            };
            shapes.push(shape);
        }
        Self { predictive, weights: predictive.log_weights().iter().map(|w| w.exp()).collect(), shapes }
    }

    /// The marginals of one target of one sample, into memory that is reused.
    pub(crate) fn fill<'b>(&'b self, target: usize, sample: usize, into: &mut Vec<Marginal<'b>>) {
        into.clear();
        let components = self.predictive.components().iter();
        for ((component, &weight), shape) in components.zip(&self.weights).zip(&self.shapes) {
            into.extend(component.parts().map(|part| {
                let (location, scale) = location_and_scale(component, &part, shape.dof(), target, sample);
                Marginal { weight: weight * part.weight, location, scale, shape }
            }));
        }
    }
}

fn location_and_scale(
    component: &Component,
    part: &Part,
    dof: f64,
    target: usize,
    sample: usize,
) -> (f64, f64) {
    let shrinkage = if dof.is_finite() { (dof - 2.0) / dof } else { 1.0 };
    let (mean, variance) = component.within(part, target, sample);
    (mean, (variance * shrinkage).sqrt())
}

impl Predictive {
    /// P(y_target ≤ y) for one sample. Panics when there is no such target or sample, as indexing does.
    pub fn marginal_cdf(&self, target: usize, sample: usize, y: f64) -> f64 {
        let Some(recalibrated) = self.recalibrated() else {
            return self.own_marginal_cdf(target, sample, y);
        };
        let (mean, std) = self.own_moments(target, sample);
        if std > 0.0 { recalibrated[target].cdf((y - mean) / std) } else { f64::from(y >= mean) }
    }

    /// The same without recalibration.
    pub(crate) fn own_marginal_cdf(&self, target: usize, sample: usize, y: f64) -> f64 {
        let mut below = 0.0;
        for (weight, component) in self.weighted_components() {
            let shape = Shape::Exact(component.dof.value());
            for part in component.parts() {
                let (location, scale) = location_and_scale(component, &part, shape.dof(), target, sample);
                let weight = weight * part.weight;
                below += weight * Marginal { weight, location, scale, shape: &shape }.cdf_and_density(y).0;
            }
        }
        below.min(1.0)
    }
}
