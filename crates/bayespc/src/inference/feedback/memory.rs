//! What the feedback rule remembers from batch to batch, per hidden layer.
//!
//! ```text
//! C_l = E[g_l g_lᵀ]   a running mean (rate ρ, bias-corrected)
//! A_l = C_l + λ tr(C_l)/d_l · I ,   of which A_l⁻¹ or a factor is kept
//! ```
//!
//! Of a wide layer C_l is kept in few directions (`sketched`).

use faer::{Accum, Mat, MatMut, MatRef};
use rayon::prelude::*;

use super::settings::FeedbackSettings;
use super::sketched::{LowRank, SketchedMemory};
use super::sweep::FeedbackChunk;
use crate::base::linalg::{
    Cholesky, cast_into, mirror_lower, product_into, symmetric_product_into, trace, without_dust,
};
use crate::error::Result;
use crate::learning::refresh_is_due;
use crate::real::Real;

/// C_l and A_l of every hidden layer.
#[derive(Clone, Debug)]
pub(crate) struct FeedbackMemory<T: Real> {
    layers: Vec<LayerMemory<T>>,
    /// Batches seen, and the one at which A_l was last taken from C_l (0: never).
    steps: u64,
    refreshed: u64,
}

#[derive(Clone, Debug)]
struct LayerMemory<T: Real> {
    /// C_l, lower triangle.
    covariance: Mat<f64>,
    /// Σ g gᵀ of a batch, lower triangle.
    outer: Mat<T>,
    damped: Damped<T>,
    /// C_l in few directions; the matrices above are then `0 × 0`.
    sketched: Option<SketchedMemory>,
}

/// A with its factor, and A⁻¹ where it is kept for several steps.
#[derive(Clone, Debug)]
pub(super) struct Damped<T: Real> {
    matrix: Mat<f64>,
    factor: Cholesky,
    root: Mat<f64>,
    inverse: Mat<f64>,
    /// A⁻¹ in working precision; `0 × 0` where the factor serves.
    working: Mat<T>,
    /// A⁻¹ of a wide layer.
    low_rank: Option<LowRank<T>>,
}

impl<T: Real> FeedbackMemory<T> {
    /// Nothing seen yet, for hidden layers of these widths, and with so many directions of C_l to keep.
    pub(super) fn new(layers: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let memory = |(width, directions): (usize, usize)| {
            if directions >= width {
                return LayerMemory::new(width);
            }
            let sketched = Some(SketchedMemory::new(width, directions));
            LayerMemory { sketched, ..LayerMemory::new(0) }
        };
        Self { layers: layers.into_iter().map(memory).collect(), steps: 0, refreshed: 0 }
    }

    /// C_1 … C_{L−1}, without bias correction; `0 × 0` where few directions are kept.
    pub(super) fn covariance(&self) -> Vec<Mat<f64>> {
        let whole = |layer: &LayerMemory<T>| {
            let mut whole = layer.covariance.clone();
            mirror_lower(whole.as_mut());
            whole
        };
        self.layers.iter().map(whole).collect()
    }

    /// Number of batches seen.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Restore what had been learned.
    pub(super) fn restore(&mut self, covariance: Vec<Mat<f64>>, steps: u64) {
        // What is kept in few directions is learned anew.
        let mut whole = true;
        for (layer, covariance) in self.layers.iter_mut().zip(covariance) {
            whole &= layer.sketched.is_none();
            if layer.sketched.is_none() {
                layer.covariance = covariance;
            }
        }
        self.steps = if whole { steps } else { 0 };
    }

    /// Count a batch; true if A is due to be taken anew.
    pub(super) fn count_batch(&mut self, refresh_every: u64) -> bool {
        self.steps += 1;
        refresh_is_due(self.steps, self.refreshed, refresh_every)
    }

    /// A_{l+1}.
    pub(super) fn damped(&self, l: usize) -> &Damped<T> {
        &self.layers[l].damped
    }

    /// C_l ← (1−ρ) C_l + ρ mean(g gᵀ), then, if `refresh`, A_l of the bias-corrected C_l.
    pub(crate) fn learn(
        &mut self,
        chunks: &[FeedbackChunk<T>],
        settings: &FeedbackSettings,
        refresh: bool,
        parallel: bool,
    ) -> Result<()> {
        if refresh {
            self.refreshed = self.steps;
        }
        let share = settings.rate / chunks.iter().map(FeedbackChunk::total_weight).sum::<f64>();
        let correction = 1.0 / (1.0 - (1.0 - settings.rate).powf(self.steps as f64));
        let inverse = settings.refresh_every > 1 || chunks.len() > 1;
        let learn = |(l, layer): (usize, &mut LayerMemory<T>)| {
            if let Some(sketched) = &mut layer.sketched {
                sketched.absorb(l, chunks, 1.0 - settings.rate, share)?;
                if refresh {
                    layer.damped.low_rank = Some(sketched.damped(correction, settings.damping)?);
                }
                return Ok(());
            }
            layer.absorb(l, chunks, 1.0 - settings.rate, share);
            if !refresh {
                return Ok(());
            }
            let cov = &layer.covariance;
            let ridge = correction * settings.damping * trace(cov.as_ref()) / cov.nrows() as f64 + 1e-12;
            layer.damped.refresh(cov, correction, ridge, inverse)
        };
        if parallel {
            self.layers.par_iter_mut().enumerate().try_for_each(learn)
        } else {
            self.layers.iter_mut().enumerate().try_for_each(learn)
        }
    }
}

/// Learning from sums alone, for samples that are elsewhere.
impl<T: Real> FeedbackMemory<T> {
    /// Count a batch of total weight `weight` whose Σ w g gᵀ these are, let it join C_l, and renew A_l.
    pub(crate) fn absorb(
        &mut self,
        outers: &[Mat<f64>],
        weight: f64,
        settings: &FeedbackSettings,
    ) -> Result<()> {
        self.steps += 1;
        self.refreshed = self.steps;
        let (keep, share) = (1.0 - settings.rate, settings.rate / weight);
        let correction = 1.0 / (1.0 - keep.powf(self.steps as f64));
        for (layer, outer) in self.layers.iter_mut().zip(outers) {
            layer.blend(outer, keep, share);
            let cov = &layer.covariance;
            let ridge = correction * settings.damping * trace(cov.as_ref()) / cov.nrows() as f64 + 1e-12;
            layer.damped.refresh(cov, correction, ridge, settings.refresh_every > 1)?;
        }
        Ok(())
    }

    /// A_{l+1}⁻¹ B in place.
    pub(crate) fn solve_in_place(&self, l: usize, b: MatMut<'_, f64>) {
        self.layers[l].damped.factor.solve_in_place(b);
    }
}

impl<T: Real> LayerMemory<T> {
    fn new(d: usize) -> Self {
        Self {
            covariance: Mat::zeros(d, d),
            outer: Mat::zeros(d, d),
            damped: Damped {
                matrix: Mat::zeros(d, d),
                factor: Cholesky::of_identity(d),
                root: Mat::zeros(d, d),
                inverse: Mat::zeros(d, d),
                working: Mat::new(),
                low_rank: None,
            },
            sketched: None,
        }
    }

    /// C ← keep · C + share · Σ w g gᵀ.
    fn absorb(&mut self, l: usize, chunks: &[FeedbackChunk<T>], keep: f64, share: f64) {
        let mut accum = Accum::Replace;
        for chunk in chunks {
            let feedback = chunk.feedback(l);
            let mut add = |weighted: MatRef<'_, T>| {
                symmetric_product_into(self.outer.as_mut(), accum, weighted, feedback, T::one());
            };
            match chunk.weights() {
                None => add(feedback),
                Some(weights) => {
                    let weighted = |i, j: usize| T::lit(weights[j]) * feedback[(i, j)];
                    add(Mat::from_fn(feedback.nrows(), feedback.ncols(), weighted).as_ref());
                }
            }
            accum = Accum::Add;
        }
        blend_lower(&mut self.covariance, &self.outer, keep, share);
    }

    /// C ← keep · C + share · outer.
    fn blend(&mut self, outer: &Mat<f64>, keep: f64, share: f64) {
        blend_lower(&mut self.covariance, outer, keep, share);
    }
}

/// C ← keep · C + share · outer in lower triangles.
fn blend_lower<S: Real>(covariance: &mut Mat<f64>, outer: &Mat<S>, keep: f64, share: f64) {
    for j in 0..covariance.ncols() {
        let outer = &outer.col_as_slice(j)[j..];
        for (c, o) in covariance.col_as_slice_mut(j)[j..].iter_mut().zip(outer) {
            *c = without_dust(keep * *c + share * o.as_f64());
        }
    }
}

impl<T: Real> Damped<T> {
    /// A = correction · C + ridge · I with its factor, and with A⁻¹ if that is asked for.
    fn refresh(&mut self, cov: &Mat<f64>, correction: f64, ridge: f64, inverse: bool) -> Result<()> {
        let d = cov.nrows();
        for j in 0..d {
            let (to, from) = (&mut self.matrix.col_as_slice_mut(j)[j..], &cov.col_as_slice(j)[j..]);
            to.iter_mut().zip(from).for_each(|(a, c)| *a = correction * *c);
            to[0] += ridge;
        }
        self.factor.refactor(self.matrix.as_ref(), "the feedback covariance")?;
        if inverse {
            self.factor.inverse_into(&mut self.root, &mut self.inverse);
            self.working = Mat::from_fn(d, d, |i, j| without_dust(T::lit(self.inverse[(i, j)])));
        } else {
            self.working = Mat::new();
        }
        Ok(())
    }

    /// errors ← A⁻¹ g: by the inverse where it is kept, by the factor otherwise, with `room` for the solve.
    pub(super) fn apply(&self, feedback: MatRef<'_, T>, errors: &mut Mat<T>, room: &mut Mat<f64>) {
        if let Some(low_rank) = &self.low_rank {
            low_rank.apply(feedback, errors);
            return;
        }
        if self.working.nrows() > 0 {
            product_into(errors.as_mut(), Accum::Replace, self.working.as_ref(), feedback, T::one());
            return;
        }
        if room.ncols() != feedback.ncols() {
            *room = Mat::zeros(feedback.nrows(), feedback.ncols());
        }
        cast_into(room, feedback);
        self.factor.solve_in_place(room.as_mut());
        cast_into(errors, room.as_ref());
    }
}
