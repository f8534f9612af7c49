//! What the natural-gradient M-step sees of a chunk of samples, whichever rule has inferred it.

use faer::Mat;

use crate::real::Real;

/// Presynaptic activities of the hidden layers, and how far their targets lie from what they predict.
pub trait ErrorChunk<T: Real>: Sync {
    /// Number of samples.
    fn n_samples(&self) -> usize;

    /// φ of hidden layer `l`, counted from 0, bias included; beyond the last hidden layer that of the output.
    fn presynaptic(&self, l: usize) -> &Mat<T>;

    /// ε of hidden layer `l`, times the weights of the samples.
    fn error(&self, l: usize) -> &Mat<T>;

    /// Weights of the samples, unless all are 1.
    fn sample_weights(&self) -> Option<&[f64]>;
}

/// Samples of all chunks.
pub(super) fn total_samples<T: Real, C: ErrorChunk<T>>(chunks: &[C]) -> usize {
    chunks.iter().map(ErrorChunk::n_samples).sum()
}

/// Errors as a rule would have left them.
#[cfg(test)]
pub(super) struct Known {
    pub(super) pre: Mat<f64>,
    pub(super) error: Mat<f64>,
    pub(super) weights: Option<Vec<f64>>,
}

#[cfg(test)]
impl ErrorChunk<f64> for Known {
    fn n_samples(&self) -> usize {
        self.pre.ncols()
    }

    fn presynaptic(&self, _l: usize) -> &Mat<f64> {
        &self.pre
    }

    fn error(&self, _l: usize) -> &Mat<f64> {
        &self.error
    }

    fn sample_weights(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }
}
