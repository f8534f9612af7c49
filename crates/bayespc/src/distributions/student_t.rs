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

use crate::base::linalg::Cholesky;
use crate::error::{Error, Result};
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
            return Err(Error::DegreesOfFreedom { what: "multivariate t", dof, bound: 0.0 });
        }
        let d = mean.nrows();
        for (what, axis, found, expected) in [
            ("mean", "columns", mean.ncols(), 1),
            ("scale", "rows", scale.nrows(), d),
            ("scale", "columns", scale.ncols(), d),
        ] {
            if found != expected {
                return Err(Error::Shape { what, axis, found, expected });
            }
        }
        Ok(Self { dof, mean, scale_chol: Cholesky::new(scale, "scale of multivariate t")? })
    }

    /// log p of each column of `values`, `d × n`.
    pub fn log_density(&self, values: MatRef<'_, f64>) -> Result<Vec<f64>> {
        let d = self.mean.nrows();
        if values.nrows() != d {
            return Err(Error::Shape { what: "values", axis: "rows", found: values.nrows(), expected: d });
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
        let spread = if self.dof.is_finite() { (self.dof / chi_squared(self.dof, rng)).sqrt() } else { 1.0 };
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
        let inflation = if self.dof.is_finite() { self.dof / (self.dof - 2.0) } else { 1.0 };
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
            let ratio = if dof.is_finite() { 0.5 * (i as f64 / dof).ln_1p() } else { 0.0 };
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
    ChiSquared::new(dof).expect("degrees of freedom are checked to be positive").sample(rng)
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;
    use serde::Deserialize;

    /// `scipy.stats.multivariate_t`; versions in the file, script beside it.
    const REFERENCE: &str = include_str!("../../tests/reference/distributions.json");

    #[derive(Deserialize)]
    struct Reference {
        multivariate_t: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        dof: f64,
        loc: Vec<f64>,
        x: Vec<f64>,
        shape: Table,
        logpdf: f64,
    }

    #[derive(Deserialize)]
    struct Table {
        rows: usize,
        cols: usize,
        data: Vec<f64>,
    }

    fn column(values: &[f64]) -> Mat<f64> {
        Mat::from_fn(values.len(), 1, |i, _| values[i])
    }

    fn example(dof: f64) -> MultivariateT {
        let scale = Mat::from_fn(2, 2, |i, j| [[2.0, 0.6], [0.6, 0.5]][i][j]);
        MultivariateT::new(dof, column(&[1.0, -2.0]), scale.as_ref()).unwrap()
    }

    #[test]
    fn log_density_matches_scipy() {
        let reference: Reference = serde_json::from_str(REFERENCE).unwrap();
        assert!(!reference.multivariate_t.is_empty());
        for case in reference.multivariate_t {
            let Table { rows, cols, data } = case.shape;
            let scale = Mat::from_fn(rows, cols, |i, j| data[i * cols + j]);
            let t = MultivariateT::new(case.dof, column(&case.loc), scale.as_ref()).unwrap();
            let found = t.log_density(column(&case.x).as_ref()).unwrap()[0];
            assert_relative_eq!(found, case.logpdf, max_relative = 1e-11);
        }
    }

    #[test]
    fn many_degrees_of_freedom_are_normal() {
        let values = Mat::from_fn(2, 3, |i, j| i as f64 - 1.5 * j as f64);
        let normal = example(f64::INFINITY).log_density(values.as_ref()).unwrap();
        let nearly = example(1e13).log_density(values.as_ref()).unwrap();
        for (a, b) in normal.iter().zip(&nearly) {
            assert_relative_eq!(a, b, max_relative = 1e-11);
        }
    }

    /// With k = 12 the kurtosis exists: the squared error of a sample covariance of N draws is
    /// (m₄ − m₂²)/N, estimated from the draws themselves; five standard errors.
    #[test]
    fn draws_have_the_mean_and_covariance() {
        let t = example(12.0);
        let covariance = t.covariance().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let n = 20_000;
        let draws: Vec<Mat<f64>> = (0..n).map(|_| t.sample(&mut rng)).collect();
        for i in 0..2 {
            for j in 0..=i {
                let products: Vec<f64> = draws
                    .iter()
                    .map(|y| (y[(i, 0)] - t.mean[(i, 0)]) * (y[(j, 0)] - t.mean[(j, 0)]))
                    .collect();
                let mean = products.iter().sum::<f64>() / f64::from(n);
                let square = products.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / f64::from(n);
                let tolerance = 5.0 * (square / f64::from(n)).sqrt();
                assert!((mean - covariance[(i, j)]).abs() < tolerance, "{i} {j}: {mean} {tolerance}");
            }
            let mean = draws.iter().map(|y| y[(i, 0)]).sum::<f64>() / f64::from(n);
            let tolerance = 5.0 * (covariance[(i, i)] / f64::from(n)).sqrt();
            assert!((mean - t.mean[(i, 0)]).abs() < tolerance);
        }
    }

    #[test]
    fn what_does_not_exist_is_an_error() {
        assert!(matches!(example(2.0).covariance(), Err(Error::DegreesOfFreedom { bound: 2.0, .. })));
        let scale = Mat::from_fn(1, 1, |_, _| 1.0);
        assert!(MultivariateT::new(0.0, column(&[0.0]), scale.as_ref()).is_err());
        assert!(MultivariateT::new(f64::NAN, column(&[0.0]), scale.as_ref()).is_err());
        assert!(matches!(
            MultivariateT::new(3.0, column(&[0.0, 1.0]), scale.as_ref()),
            Err(Error::Shape { what: "scale", axis: "rows", found: 1, expected: 2 })
        ));
    }
}
