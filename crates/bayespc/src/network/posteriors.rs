//! The posteriors of a network as distributions, factored and ready to predict with.

use faer::Mat;

use crate::base::linalg::{Cholesky, cast};
use crate::distributions::MatrixNormalWishart;
use crate::error::Result;
use crate::real::Real;

/// The posteriors of all layers as distributions.
#[derive(Clone, Debug)]
pub struct Posteriors {
    /// Hidden layers, from the input up.
    pub hidden: Vec<MatrixNormalWishart>,
    /// Blocks of the output layer.
    pub output: Vec<MatrixNormalWishart>,
}

impl Posteriors {
    /// ⟨Σ_L⟩, block diagonal.
    pub fn output_noise(&self) -> Result<Mat<f64>> {
        let parts =
            self.output.iter().map(MatrixNormalWishart::expected_covariance).collect::<Result<Vec<_>>>()?;
        Ok(block_diagonal(&parts))
    }

    /// ⟨Σ_L⁻¹⟩, block diagonal.
    pub fn output_precision(&self) -> Mat<f64> {
        let parts: Vec<_> = self.output.iter().map(MatrixNormalWishart::expected_precision).collect();
        block_diagonal(&parts)
    }

    /// Degrees of freedom ν − d + 1 of the output's predictive: of the least certain block.
    pub fn output_dof(&self) -> f64 {
        self.output.iter().map(|q| q.dof() - q.d_post() as f64 + 1.0).fold(f64::INFINITY, f64::min)
    }

    pub(super) fn hidden_noise_roots<T: Real>(&self) -> Result<Vec<Mat<T>>> {
        self.hidden
            .iter()
            .map(|q| {
                Ok(cast(Cholesky::new(q.expected_covariance()?.as_ref(), "a hidden covariance")?.lower()))
            })
            .collect()
    }
}

/// Square matrices along the diagonal of one.
pub(crate) fn block_diagonal(parts: &[Mat<f64>]) -> Mat<f64> {
    let d = parts.iter().map(Mat::nrows).sum();
    let mut whole = Mat::zeros(d, d);
    let mut start = 0;
    for part in parts {
        whole.as_mut().submatrix_mut(start, start, part.nrows(), part.nrows()).copy_from(part);
        start += part.nrows();
    }
    whole
}
