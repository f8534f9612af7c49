//! Wishart distribution over precision matrices Λ = Σ⁻¹ (paper App. A).
//!
//! ```text
//! log W(Λ | Ψ, ν) = (ν−d−1)/2 log|Λ| − ½ tr(Λ Ψ⁻¹) − νd/2 log 2 − ν/2 log|Ψ| − log Γ_d(ν/2)
//! ⟨Λ⟩ = νΨ      ⟨Λ⁻¹⟩ = Ψ⁻¹/(ν−d−1)      ⟨log|Λ|⟩ = Σ_i ψ((ν+1−i)/2) + d log 2 + log|Ψ|
//! ```
//!
//! The conjugate update delivers Ψ⁻¹, so that is what is kept, with its factor Ψ⁻¹ = L Lᵀ. Then L⁻ᵀ is a
//! root of Ψ, and a draw needs no inverse: Λ = (L⁻ᵀA)(L⁻ᵀA)ᵀ with Bartlett's lower-triangular A.

use faer::{Mat, MatRef};
use rand::Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use crate::base::linalg::{Cholesky, inner, mirror_lower};
use crate::error::{Error, Result};
use crate::special::{ln_multigamma, multi_digamma};

/// Wishart distribution of a `d × d` precision matrix.
#[derive(Clone, Debug)]
pub struct Wishart {
    inv_scale: Mat<f64>,
    inv_scale_chol: Cholesky,
    dof: f64,
}

/// A draw Λ = R Rᵀ of a precision matrix, kept as what makes it cheap to use.
#[derive(Clone, Debug)]
pub struct PrecisionDraw {
    /// Bartlett's factor A, lower triangular.
    bartlett: Mat<f64>,
    /// L with Ψ⁻¹ = L Lᵀ.
    inv_scale_lower: Mat<f64>,
}

impl Wishart {
    /// W(Ψ, ν) from Ψ⁻¹ and ν > d − 1.
    pub fn from_inv_scale(inv_scale: Mat<f64>, dof: f64) -> Result<Self> {
        let d = inv_scale.nrows() as f64;
        if !(dof > d - 1.0) {
            return Err(Error::DegreesOfFreedom { what: "the Wishart distribution", dof, bound: d - 1.0 });
        }
        let inv_scale_chol = Cholesky::new(inv_scale.as_ref(), "the inverse scale matrix of the noise")?;
        Ok(Self { inv_scale, inv_scale_chol, dof })
    }

    /// Width d.
    pub fn dim(&self) -> usize {
        self.inv_scale.nrows()
    }

    /// ν.
    pub fn dof(&self) -> f64 {
        self.dof
    }

    /// Ψ⁻¹.
    pub fn inv_scale(&self) -> MatRef<'_, f64> {
        self.inv_scale.as_ref()
    }

    /// Factor of Ψ⁻¹.
    pub fn inv_scale_chol(&self) -> &Cholesky {
        &self.inv_scale_chol
    }

    /// ⟨Λ⟩ = νΨ.
    pub fn expected_precision(&self) -> Mat<f64> {
        self.inv_scale_chol.inverse() * faer::Scale(self.dof)
    }

    /// ⟨Λ⁻¹⟩ = Ψ⁻¹/(ν−d−1), which exists for ν > d + 1.
    pub fn expected_covariance(&self) -> Result<Mat<f64>> {
        let spare = self.dof - self.dim() as f64 - 1.0;
        if spare > 0.0 {
            Ok(&self.inv_scale * faer::Scale(1.0 / spare))
        } else {
            Err(Error::DegreesOfFreedom {
                what: "the expected covariance",
                dof: self.dof,
                bound: self.dim() as f64 + 1.0,
            })
        }
    }

    /// ⟨log|Λ|⟩.
    pub fn expected_log_det(&self) -> f64 {
        let d = self.dim();
        multi_digamma(self.dof / 2.0, d) + d as f64 * std::f64::consts::LN_2 - self.inv_scale_chol.log_det()
    }

    /// log W(Λ | Ψ, ν).
    pub fn log_density(&self, precision: MatRef<'_, f64>) -> Result<f64> {
        let chol = Cholesky::new(precision, "the precision")?;
        Ok(self.log_normaliser() + 0.5 * (self.dof - self.dim() as f64 - 1.0) * chol.log_det()
            - 0.5 * inner(precision, self.inv_scale.as_ref()))
    }

    /// −⟨log W⟩.
    pub fn entropy(&self) -> f64 {
        let d = self.dim() as f64;
        -self.log_normaliser() - 0.5 * (self.dof - d - 1.0) * self.expected_log_det() + 0.5 * self.dof * d
    }

    /// KL(self ‖ other).
    pub fn kl_divergence(&self, other: &Self) -> f64 {
        let d = self.dim() as f64;
        // ⟨log q − log p⟩ with ⟨Λ⟩ = νΨ
        self.log_normaliser() - other.log_normaliser()
            + 0.5 * (self.dof - other.dof) * self.expected_log_det()
            - 0.5 * self.dof * d
            + 0.5 * inner(self.expected_precision().as_ref(), other.inv_scale.as_ref())
    }

    /// Draw Λ by Bartlett's decomposition.
    pub fn sample(&self, rng: &mut dyn Rng) -> PrecisionDraw {
        let d = self.dim();
        let mut bartlett = Mat::zeros(d, d);
        for j in 0..d {
            let chi = ChiSquared::new(self.dof - j as f64).expect("ν > d − 1, so every ν − j is positive");
            let square: f64 = chi.sample(rng);
            bartlett[(j, j)] = square.sqrt();
            for i in j + 1..d {
                bartlett[(i, j)] = StandardNormal.sample(rng);
            }
        }
        PrecisionDraw { bartlett, inv_scale_lower: self.inv_scale_chol.lower().to_owned() }
    }

    /// −νd/2 log 2 − ν/2 log|Ψ| − log Γ_d(ν/2).
    fn log_normaliser(&self) -> f64 {
        let d = self.dim();
        -0.5 * self.dof * d as f64 * std::f64::consts::LN_2 + 0.5 * self.dof * self.inv_scale_chol.log_det()
            - ln_multigamma(self.dof / 2.0, d)
    }
}

impl PrecisionDraw {
    /// Λ = L⁻ᵀ A Aᵀ L⁻¹.
    pub fn precision(&self) -> Mat<f64> {
        let mut root = self.bartlett.clone();
        faer::linalg::triangular_solve::solve_upper_triangular_in_place(
            self.inv_scale_lower.transpose(),
            root.as_mut(),
            faer::Par::Seq,
        );
        let mut precision = &root * root.transpose();
        mirror_lower(precision.as_mut());
        precision
    }

    /// X ← Σ^½ X with Σ = Λ⁻¹ and the root Σ^½ = L A⁻ᵀ.
    pub fn covariance_root_times(&self, mut x: Mat<f64>) -> Mat<f64> {
        faer::linalg::triangular_solve::solve_upper_triangular_in_place(
            self.bartlett.transpose(),
            x.as_mut(),
            faer::Par::Seq,
        );
        &self.inv_scale_lower * x
    }

    /// Σ = L A⁻ᵀ A⁻¹ Lᵀ.
    pub fn covariance(&self) -> Mat<f64> {
        let d = self.bartlett.nrows();
        let root = self.covariance_root_times(Mat::identity(d, d));
        let mut covariance = &root * root.transpose();
        mirror_lower(covariance.as_mut());
        covariance
    }
}
