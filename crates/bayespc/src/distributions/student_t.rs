//! Multivariate Student-t: the predictive distribution of a single Bayesian layer.
//!
//! ```text
//! log t_k(y | μ, S) = log Γ((k+d)/2) − log Γ(k/2) − d/2 log kπ − ½ log|S| − (k+d)/2 log(1 + q/k)
//! q = (y − μ)ᵀ S⁻¹ (y − μ) ,   Cov = S k/(k−2)
//! y = μ + S^½ ξ √(k/g) ,   ξ ~ N(0, I) ,   g ~ χ²_k
//! ```
//!
//! k = ∞ is the normal distribution.

use faer::{Mat, MatRef};
use rand::Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::error::{Error, Result};
use crate::linalg::Cholesky;
use crate::special::student_t_ln_pdf;

/// t_k(μ, S) over d dimensions.
#[derive(Clone, Debug)]
pub struct MultivariateT {
    /// Degrees of freedom k > 0; ∞ is normal.
    pub dof: f64,
    /// Centre μ, `d × 1`.
    pub mean: Mat<f64>,
    /// Lower factor of the scale S, `d × d`.
    pub scale_chol: Cholesky,
}

impl MultivariateT {
    /// t_k(μ, S) with `dof` k, `mean` μ (`d × 1`) and `scale` S (`d × d`).
    pub fn new(dof: f64, mean: Mat<f64>, scale: MatRef<'_, f64>) -> Result<Self> {
        if dof.is_nan() || dof <= 0.0 {
            return Err(Error::DegreesOfFreedom {
                what: "multivariate t",
                dof,
                bound: 0.0,
            });
        }
        let d = mean.nrows();
        for (what, axis, found, expected) in [
            ("mean", "columns", mean.ncols(), 1),
            ("scale", "rows", scale.nrows(), d),
            ("scale", "columns", scale.ncols(), d),
        ] {
            if found != expected {
                return Err(Error::Shape {
                    what,
                    axis,
                    found,
                    expected,
                });
            }
        }
        Ok(Self {
            dof,
            mean,
            scale_chol: Cholesky::new(scale, "scale of multivariate t")?,
        })
    }

    /// log p of each column of `values`, `d × n`.
    pub fn log_density(&self, values: MatRef<'_, f64>) -> Result<Vec<f64>> {
        let d = self.mean.nrows();
        if values.nrows() != d {
            return Err(Error::Shape {
                what: "values",
                axis: "rows",
                found: values.nrows(),
                expected: d,
            });
        }
        let mut whitened = Mat::from_fn(d, values.ncols(), |i, j| values[(i, j)] - self.mean[(i, 0)]);
        self.scale_chol.solve_lower_in_place(whitened.as_mut());
        let constant = log_normaliser(d, self.dof) - 0.5 * self.scale_chol.log_det();
        Ok((0..values.ncols())
            .map(|j| constant + log_kernel(d, self.dof, whitened.col(j).squared_norm_l2(), self.dof))
            .collect())
    }

    /// A draw, `d × 1`.
    pub fn sample(&self, rng: &mut dyn Rng) -> Mat<f64> {
        let normal: Mat<f64> = Mat::from_fn(self.mean.nrows(), 1, |_, _| StandardNormal.sample(rng));
        let spread = if self.dof.is_finite() {
            (self.dof / chi_squared(self.dof, rng)).sqrt()
        } else {
            1.0
        };
        &self.mean + faer::Scale(spread) * (self.scale_chol.lower() * normal)
    }

    /// S k/(k−2), `d × d`; an error unless k > 2.
    pub fn covariance(&self) -> Result<Mat<f64>> {
        if self.dof <= 2.0 {
            return Err(Error::DegreesOfFreedom {
                what: "covariance of multivariate t",
                dof: self.dof,
                bound: 2.0,
            });
        }
        let inflation = if self.dof.is_finite() {
            self.dof / (self.dof - 2.0)
        } else {
            1.0
        };
        Ok(faer::Scale(inflation) * (self.scale_chol.lower() * self.scale_chol.lower().transpose()))
    }
}

/// log Γ((k+d)/2) − log Γ(k/2) − d/2 log kπ, or −d/2 log 2π for k = ∞.
///
/// Written as a sum over one dimension at a time, of log t_{k+i}(0) + ½ log((k+i)/k): no difference of
/// large numbers at large k.
pub(crate) fn log_normaliser(d: usize, dof: f64) -> f64 {
    (0..d)
        .map(|i| {
            let raised = dof + i as f64;
            let ratio = if dof.is_finite() {
                0.5 * (i as f64 / dof).ln_1p()
            } else {
                0.0
            };
            student_t_ln_pdf(0.0, raised) + ratio
        })
        .sum()
}

/// −(k+d)/2 log(1 + q/s), or −q/2 for k = ∞. With s = k, q is the distance by the scale; with
/// s = k − 2 it is the distance by the covariance.
pub(crate) fn log_kernel(d: usize, dof: f64, squared_distance: f64, denominator: f64) -> f64 {
    if dof.is_finite() {
        -0.5 * (dof + d as f64) * (squared_distance / denominator).ln_1p()
    } else {
        -0.5 * squared_distance
    }
}

/// A draw from χ²_k, for finite k > 0.
pub(crate) fn chi_squared(dof: f64, rng: &mut dyn Rng) -> f64 {
    ChiSquared::new(dof)
        .expect("degrees of freedom are checked to be positive")
        .sample(rng)
}
