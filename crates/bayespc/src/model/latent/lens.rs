//! The latents of a row given the cells that are there: the E-step of a linear layer, exact.
//!
//! ```text
//! φ = [z; 1] ,   cell d says   −½ φᵀ P_d φ + x_d τ_d m_dᵀ φ − ½ τ_d x_d² + c_d
//! P_d = τ_d m_d m_dᵀ + V_d ,   c_d = ½ (⟨log τ_d⟩ − log 2π)
//! A = Σ P_d , q = Σ x_d τ_d m_d  over the cells that are there
//! z ~ N(H⁻¹ g, H⁻¹) ,   H = I + A_zz ,   g = q_z − A_z1
//! log evidence = ½ gᵀ H⁻¹ g − ½ log|H| − ½ A_11 + q_1 + Σ (c_d − ½ τ_d x_d²)
//! ```
//!
//! With V the posterior covariance and τ = ⟨σ⁻²⟩ this is the variational E-step, and the second term of P_d is the paper's:
//! it keeps latents away from where weights are unsure. With V = 0 and known weights it is the density of a normal
//! distribution. A missing cell says nothing.

use std::f64::consts::PI;

use faer::Mat;

use crate::base::linalg::Cholesky;
use crate::error::Result;

/// What the cells of a row say of its latents.
#[derive(Clone, Debug)]
pub(super) struct Lens {
    /// k.
    n_latents: usize,
    /// τ_d m_d, `(k + 1) × d`.
    pull: Mat<f64>,
    /// τ_d.
    precision: Vec<f64>,
    /// P_d, all its entries one after another, `(k + 1)² × d`.
    curvature: Mat<f64>,
    /// c_d.
    constant: Vec<f64>,
    /// Σ P_d over all cells.
    total_curvature: Vec<f64>,
    /// Σ c_d over all cells.
    total_constant: f64,
}

/// One column of a layer: m_d, V_d (flat; empty: zero), τ_d and ⟨log τ_d⟩.
pub(super) struct Column<'a> {
    pub mean: &'a [f64],
    pub covariance: &'a [f64],
    pub precision: f64,
    pub log_precision: f64,
}

/// The latents of one row.
pub(super) struct Inferred {
    /// log p of the cells that are there.
    pub log_evidence: f64,
    /// H⁻¹ g, `k × 1`.
    pub mean: Mat<f64>,
    /// Factor of H.
    pub precision: Cholesky,
}

impl Lens {
    /// From the columns of a layer with `n_latents` k.
    pub fn new<'a>(n_latents: usize, columns: impl ExactSizeIterator<Item = Column<'a>>) -> Self {
        let (width, d) = (n_latents + 1, columns.len());
        let mut lens = Self {
            n_latents,
            pull: Mat::zeros(width, d),
            precision: vec![0.0; d],
            curvature: Mat::zeros(width * width, d),
            constant: vec![0.0; d],
            total_curvature: vec![0.0; width * width],
            total_constant: 0.0,
        };
        for (j, column) in columns.enumerate() {
            for a in 0..width {
                lens.pull[(a, j)] = column.precision * column.mean[a];
                for b in 0..width {
                    let spread = column.covariance.get(a * width + b).copied().unwrap_or(0.0);
                    let entry = column.precision * column.mean[a] * column.mean[b] + spread;
                    lens.curvature[(a * width + b, j)] = entry;
                    lens.total_curvature[a * width + b] += entry;
                }
            }
            lens.precision[j] = column.precision;
            lens.constant[j] = 0.5 * (column.log_precision - (2.0 * PI).ln());
            lens.total_constant += lens.constant[j];
        }
        lens
    }

    /// k.
    pub fn n_latents(&self) -> usize {
        self.n_latents
    }

    /// The latents of a row with standardised `values` (0 where missing).
    pub fn infer(&self, values: &[f64], missing: &[usize]) -> Result<Inferred> {
        let (k, width) = (self.n_latents, self.n_latents + 1);
        let mut curvature = self.total_curvature.clone();
        let mut log_evidence = self.total_constant;
        for &j in missing {
            for (sum, own) in curvature.iter_mut().zip(self.curvature.col_as_slice(j)) {
                *sum -= own;
            }
            log_evidence -= self.constant[j];
        }
        let mut pull = vec![0.0; width];
        for (j, &x) in values.iter().enumerate() {
            for (sum, own) in pull.iter_mut().zip(self.pull.col_as_slice(j)) {
                *sum += x * own;
            }
            log_evidence -= 0.5 * self.precision[j] * x * x;
        }
        let hessian = Mat::from_fn(k, k, |a, b| f64::from(a == b) + curvature[a * width + b]);
        let gradient = Mat::from_fn(k, 1, |a, _| pull[a] - curvature[a * width + k]);
        let precision = Cholesky::new(hessian.as_ref(), "the precision of the latents")?;
        let mean = precision.solve(gradient.as_ref());
        let explained: f64 = (0..k).map(|a| gradient[(a, 0)] * mean[(a, 0)]).sum();
        log_evidence += 0.5 * (explained - precision.log_det() - curvature[k * width + k]) + pull[k];
        Ok(Inferred { log_evidence, mean, precision })
    }
}
