//! What the feedback rule remembers of a wide layer: its feedback in few directions.
//!
//! ```text
//! C = E[g gᵀ] ≈ B Bᵀ + δ/2 I ,      A = C + λ tr(C)/d · I = U diag(a) Uᵀ + ρ (I − U Uᵀ)
//! A⁻¹ g = g/ρ + U diag(1/a − 1/ρ) Uᵀ g
//! ```
//!
//! Feedback comes from the few outputs of a network, and the damping λ covers what is small; so few directions say
//! nearly all (`distributions::sketch`). The trace is exact.

use faer::{Accum, Mat, MatRef};

use super::sweep::FeedbackChunk;
use crate::base::linalg::{cast, product_into};
use crate::distributions::{Directions, FrequentDirections};
use crate::error::Result;
use crate::real::Real;

/// C of one layer.
#[derive(Clone, Debug)]
pub(super) struct SketchedMemory {
    covariance: FrequentDirections,
}

/// A⁻¹ of one layer.
#[derive(Clone, Debug)]
pub(super) struct LowRank<T: Real> {
    /// U.
    basis: Mat<T>,
    /// 1/a − 1/ρ, and 1/ρ.
    along: Vec<T>,
    rest: T,
}

impl SketchedMemory {
    /// Nothing seen yet.
    pub fn new(width: usize, directions: usize) -> Self {
        Self { covariance: FrequentDirections::new(width, directions) }
    }

    /// C ← keep · C + share · Σ w g gᵀ.
    pub fn absorb<T: Real>(
        &mut self,
        l: usize,
        chunks: &[FeedbackChunk<T>],
        keep: f64,
        share: f64,
    ) -> Result<()> {
        self.covariance.scale(keep);
        for chunk in chunks {
            let feedback = chunk.feedback(l);
            match chunk.weights() {
                None => self.covariance.absorb(feedback, share)?,
                Some(weights) => {
                    let rooted = |i, j: usize| T::lit(weights[j].sqrt()) * feedback[(i, j)];
                    let rooted = Mat::from_fn(feedback.nrows(), feedback.ncols(), rooted);
                    self.covariance.absorb(rooted.as_ref(), share)?;
                }
            }
        }
        Ok(())
    }

    /// A⁻¹ of the bias-corrected C.
    pub fn damped<T: Real>(&self, correction: f64, damping: f64) -> Result<LowRank<T>> {
        let Directions { basis, values } = self.covariance.directions()?;
        let ridge = correction * damping * self.covariance.trace() / self.covariance.d() as f64 + 1e-12;
        let rest = ridge + correction * 0.5 * self.covariance.shrunk();
        Ok(LowRank {
            basis: cast(basis.as_ref()),
            along: values
                .iter()
                .map(|value| T::lit(1.0 / (correction * value + rest) - 1.0 / rest))
                .collect(),
            rest: T::lit(1.0 / rest),
        })
    }
}

impl<T: Real> LowRank<T> {
    /// errors ← A⁻¹ g.
    pub fn apply(&self, feedback: MatRef<'_, T>, errors: &mut Mat<T>) {
        let mut along = Mat::zeros(self.basis.ncols(), feedback.ncols());
        product_into(along.as_mut(), Accum::Replace, self.basis.transpose(), feedback, T::one());
        for j in 0..along.ncols() {
            along.col_as_slice_mut(j).iter_mut().zip(&self.along).for_each(|(x, factor)| *x *= *factor);
        }
        faer::zip!(&mut *errors, feedback).for_each(|faer::unzip!(error, g)| *error = self.rest * *g);
        product_into(errors.as_mut(), Accum::Add, self.basis.as_ref(), along.as_ref(), T::one());
    }
}
