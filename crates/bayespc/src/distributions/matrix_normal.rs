//! Matrix normal distribution: Gaussian weights whose rows covary by Σ and whose columns covary by V
//! (paper App. A).
//!
//! ```text
//! log MN(W | M, Σ⁻¹, V) = −½ tr(Σ⁻¹ (W−M) V⁻¹ (W−M)ᵀ) + d_x/2 log|Σ⁻¹| + d_y/2 log|V⁻¹| − d_x d_y/2 log 2π
//! ```
//!
//! Both precisions are kept as Cholesky factors: V⁻¹ = C Cᵀ gives the root V^½ = C⁻ᵀ.

use std::f64::consts::PI;

use faer::{Mat, MatRef};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::base::linalg::{Cholesky, inner};
use crate::error::{Error, Result};

/// Matrix normal distribution over `d_post × d_pre` weights.
#[derive(Clone, Debug)]
pub struct MatrixNormal {
    mean: Mat<f64>,
    row_precision_chol: Cholesky,
    col_precision_chol: Cholesky,
}

impl MatrixNormal {
    /// MN(M, Σ⁻¹, V) from the mean and the two precision matrices Σ⁻¹ and V⁻¹.
    pub fn new(
        mean: Mat<f64>,
        row_precision: MatRef<'_, f64>,
        col_precision: MatRef<'_, f64>,
    ) -> Result<Self> {
        for (what, found, expected) in [
            ("the row precision", row_precision.nrows(), mean.nrows()),
            ("the column precision", col_precision.nrows(), mean.ncols()),
        ] {
            if found != expected {
                return Err(Error::Shape { what, axis: "rows", found, expected });
            }
        }
        Ok(Self {
            mean,
            row_precision_chol: Cholesky::new(row_precision, "the row precision")?,
            col_precision_chol: Cholesky::new(col_precision, "the column precision")?,
        })
    }

    /// M.
    pub fn mean(&self) -> MatRef<'_, f64> {
        self.mean.as_ref()
    }

    /// log MN(W).
    pub fn log_density(&self, weights: MatRef<'_, f64>) -> f64 {
        let square = self.whitened_square(weights);
        -0.5 * square - 0.5 * self.log_det_covariance() - 0.5 * self.size() * (2.0 * PI).ln()
    }

    /// −⟨log MN⟩.
    pub fn entropy(&self) -> f64 {
        0.5 * self.size() * (1.0 + (2.0 * PI).ln()) + 0.5 * self.log_det_covariance()
    }

    /// KL(self ‖ other).
    pub fn kl_divergence(&self, other: &Self) -> f64 {
        // tr(Σ_p⁻¹ Σ_q) tr(V_p⁻¹ V_q) = ‖L_q⁻¹ L_p‖² ‖C_q⁻¹ C_p‖²
        let ratio = |p: &Cholesky, q: &Cholesky| {
            let mut x = p.lower().to_owned();
            q.solve_lower_in_place(x.as_mut());
            inner(x.as_ref(), x.as_ref())
        };
        let traces = ratio(&other.row_precision_chol, &self.row_precision_chol)
            * ratio(&other.col_precision_chol, &self.col_precision_chol);
        0.5 * (traces + other.whitened_square(self.mean.as_ref()) - self.size() + other.log_det_covariance()
            - self.log_det_covariance())
    }

    /// W = M + Σ^½ E V^½ᵀ with E standard normal.
    pub fn sample(&self, rng: &mut dyn Rng) -> Mat<f64> {
        let mut noise = standard_normal(self.mean.nrows(), self.mean.ncols(), rng);
        self.row_precision_chol.solve_upper_in_place(noise.as_mut());
        let mut transposed = noise.transpose().to_owned();
        self.col_precision_chol.solve_upper_in_place(transposed.as_mut());
        &self.mean + transposed.transpose()
    }

    /// tr(Σ⁻¹ (W−M) V⁻¹ (W−M)ᵀ) = ‖Lᵀ (W−M) C‖².
    fn whitened_square(&self, weights: MatRef<'_, f64>) -> f64 {
        let centred = weights - &self.mean;
        let white = self.row_precision_chol.lower().transpose() * centred * self.col_precision_chol.lower();
        inner(white.as_ref(), white.as_ref())
    }

    /// d_x log|Σ| + d_y log|V|.
    fn log_det_covariance(&self) -> f64 {
        let (d_post, d_pre) = (self.mean.nrows() as f64, self.mean.ncols() as f64);
        -d_pre * self.row_precision_chol.log_det() - d_post * self.col_precision_chol.log_det()
    }

    fn size(&self) -> f64 {
        (self.mean.nrows() * self.mean.ncols()) as f64
    }
}

/// A matrix of independent N(0, 1) entries, drawn column by column.
pub fn standard_normal(rows: usize, columns: usize, rng: &mut dyn Rng) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(rng))
}
