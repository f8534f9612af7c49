//! What a hidden layer learns of its noise Σ while its mean moves by natural gradient. Relaxation needs it; under
//! the feedback rule the hidden Σ is no noise and comes from finalisation.
//!
//! With z = M φ + ε the blended conjugate update of Ψ⁻¹ is, without a difference of large matrices,
//!
//! ```text
//! Ψ⁻¹ ← (1−κ) Ψ⁻¹ + κ Ψ⁰⁻¹ + κ s Σ w εεᵀ + κ D V⁰⁻¹ Dᵀ − ΔM η₁ ΔMᵀ        D = M − M⁰, η₁ the new one
//! ```
//!
//! Every term but the last two waits here until the layer's η₁ is renewed, so that Ψ and ν always speak of the same
//! samples. A step with an old V takes every sample as if it were the only new one (`step`). Then the last term is known,
//! and the sample's two terms add up to κ s w εεᵀ / (1 + h). No batch can make Ψ⁻¹ indefinite.

use faer::{Accum, Mat, MatRef};

use crate::base::linalg::symmetric_product_into;
use crate::network::MovingMean;
use crate::real::Real;

/// Noise statistics of the batches that wait.
#[derive(Clone, Debug)]
pub(super) struct NoiseMemory<T: Real> {
    /// κ s Σ w εεᵀ / (1 + h), lower triangle, batches faded like Ψ⁻¹ itself.
    outer: Mat<T>,
    /// Π (1−κ), and the samples' share of η₄.
    keep: f64,
    count: f64,
    /// Room for errors without the weights of their samples.
    plain: Mat<T>,
}

impl<T: Real> NoiseMemory<T> {
    pub fn new(d_post: usize) -> Self {
        Self { outer: Mat::zeros(d_post, d_post), keep: 1.0, count: 0.0, plain: Mat::new() }
    }

    /// Fade what waits before a batch of total weight `weight` joins.
    pub fn fade(&mut self, rate: f64, scale: f64, weight: f64) {
        self.keep *= 1.0 - rate;
        self.count = (1.0 - rate) * self.count + rate * scale * weight;
        let keep = T::lit(1.0 - rate);
        for j in 0..self.outer.ncols() {
            self.outer.col_as_slice_mut(j)[j..].iter_mut().for_each(|x| *x *= keep);
        }
    }

    /// Add factor · Σ a bᵀ/w of a chunk, where both a and b are errors times the weights w of their samples.
    pub fn add(&mut self, a: &Mat<T>, b: &Mat<T>, weights: Option<&[f64]>, factor: T) {
        let Some(weights) = weights else {
            self.add_symmetric(a.as_ref(), b.as_ref(), factor);
            return;
        };
        if (self.plain.nrows(), self.plain.ncols()) != (b.nrows(), b.ncols()) {
            self.plain = Mat::zeros(b.nrows(), b.ncols());
        }
        for (j, &weight) in weights.iter().enumerate() {
            let inverse = T::lit(if weight > 0.0 { 1.0 / weight } else { 0.0 });
            for (to, from) in self.plain.col_as_slice_mut(j).iter_mut().zip(b.col_as_slice(j)) {
                *to = inverse * *from;
            }
        }
        symmetric_product_into(self.outer.as_mut(), Accum::Add, a.as_ref(), self.plain.as_ref(), factor);
    }

    /// Add factor · Σ a bᵀ that is symmetric, such as what the pull to the prior leaves.
    pub fn add_symmetric(&mut self, a: MatRef<'_, T>, b: MatRef<'_, T>, factor: T) {
        symmetric_product_into(self.outer.as_mut(), Accum::Add, a, b, factor);
    }

    /// Hand what waits to Ψ⁻¹; returns Π (1−κ) and the samples' share of η₄.
    pub fn hand_over(&mut self, posterior: &mut MovingMean<T>) -> (f64, f64) {
        let faded = (self.keep, self.count);
        posterior.blend_inv_scale(&self.outer, self.keep);
        self.outer.fill(T::zero());
        (self.keep, self.count) = (1.0, 0.0);
        faded
    }
}
