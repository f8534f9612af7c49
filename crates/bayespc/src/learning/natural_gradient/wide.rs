//! The M-step of a wide network, whose layers keep of η₁ what is linear in their widths.
//!
//! ```text
//! η₁ ← (1−κ) η₁ + κ (V⁰⁻¹ + s Σ w φφᵀ)                    every batch
//! M  ← M + κ s Σ w ε (Vφ)ᵀ / d + pull · (M⁰ − M) V⁰⁻¹ V       V every k batches,  h = κ s w φᵀVφ
//! d  = max(1, h)          where V has seen the batch: h ≤ 1 for the whole η₁, but not for parts of it
//! d  = 1 + h/(1−κ)        where it has not (Sherman–Morrison)
//! ```
//!
//! A step by the whole V takes away at most all of a batch's error, in every direction: ΔM Φ = ε S with 0 ≤ S ≤ I, so that
//! ‖ΔM Φ‖² ≤ ⟨ε, ΔM Φ⟩. By parts of V it may take away more, where units of several blocks vary together. Then it is
//! shortened until this holds.
//!
//! The output layer moves in the same way, by ε = t − Mφ. Its mean is not solved for: with a V that is not quite η₁⁻¹ a
//! solution would be off for good, while steps come to rest where the gradient is zero, whatever V is.
//!
//! Where inputs are whitened, η₁ of the first layer is that of all the data from the start (`whitening`). Here that takes
//! no other coordinates: its V is known, once and for all.

use faer::{Accum, Mat, MatRef};

use super::step::Blend;
use crate::base::linalg::{inner, product_into, without_dust};
use crate::base::parallel::{PASS, for_each_block_if, over_spans, pieces, splits_product};
use crate::data::Dataset;
use crate::distributions::{ColumnCovariance, ColumnPrecision, Purpose};
use crate::error::{Error, Result};
use crate::network::{Layer, WideLayer};
use crate::real::Real;

/// Σ κ at which the pull to the prior is applied where V is known.
const PULL_AT: f64 = 0.5;

/// Samples of a batch as one layer sees them.
pub(crate) struct Seen<'a, T: Real> {
    /// φ, bias included.
    pub pre: MatRef<'a, T>,
    /// ε times the weights of the samples.
    pub error: MatRef<'a, T>,
    /// Weights of the samples, unless all are 1.
    pub weights: Option<&'a [f64]>,
}

/// What one layer keeps between batches.
#[derive(Clone, Debug)]
pub(crate) struct WideState<T: Real> {
    /// V of the last refresh.
    col_cov: Option<ColumnCovariance<T>>,
    /// Σ κ since the last pull to the prior.
    pull: f64,
    /// η₁ is that of all the data, and stays.
    known: bool,
}

impl<T: Real> WideState<T> {
    /// Nothing learned yet.
    pub fn new() -> Self {
        Self { col_cov: None, pull: 0.0, known: false }
    }

    /// Let η₁ be that of all the data.
    pub fn know(&mut self, layer: &mut WideLayer<T>, data: &Dataset<'_, T>) -> Result<()> {
        let empty = layer.columns().emptied();
        let parts: Vec<Result<ColumnPrecision>> = over_spans(data.len(), |span| {
            let mut part = empty.clone();
            for samples in pieces(span, PASS) {
                let (start, n) = (samples.start, samples.len());
                let d = data.input().nrows();
                let phi = Mat::from_fn(d + 1, n, |i, j| {
                    let root = data.weights().map_or(T::one(), |w| T::lit(w[start + j].sqrt()));
                    root * if i == d { T::one() } else { data.input()[(i, start + j)] }
                });
                part.absorb(phi.as_ref(), 1.0)?;
            }
            Ok(part)
        });
        let mut columns = empty.clone();
        for part in parts {
            columns.add(&part?)?;
        }
        *layer.columns_mut() = columns;
        layer.blend_count(0.0, data.total_weight());
        self.col_cov = Some(layer.columns().covariance(Purpose::Step)?);
        self.known = true;
        Ok(())
    }

    /// Whether η₁ is that of all the data.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Learn from a batch; `due`: with a new V.
    pub fn step(
        &mut self,
        layer: &mut Layer<T>,
        batch: &[Seen<'_, T>],
        blend: Blend,
        due: bool,
    ) -> Result<()> {
        let layer = layer.wide_mut().ok_or(NOT_WIDE)?;
        let alpha = blend.rate * blend.scale;
        let due = due && !self.known;
        if !self.known {
            layer.columns_mut().scale(1.0 - blend.rate);
            let mut count = 0.0;
            for seen in batch {
                match seen.weights {
                    None => layer.columns_mut().absorb(seen.pre, alpha)?,
                    Some(weights) => {
                        let rooted = |i, j: usize| T::lit(weights[j].sqrt()) * seen.pre[(i, j)];
                        let rooted = Mat::from_fn(seen.pre.nrows(), seen.pre.ncols(), rooted);
                        layer.columns_mut().absorb(rooted.as_ref(), alpha)?;
                    }
                }
                count += seen.weights.map_or(seen.pre.ncols() as f64, |w| w.iter().sum());
            }
            layer.blend_count(1.0 - blend.rate, alpha * count);
        }
        self.pull += blend.rate;
        if due || self.col_cov.is_none() {
            self.col_cov = Some(layer.columns().covariance(Purpose::Step)?);
        }
        let col_cov = self.col_cov.as_ref().ok_or(NOT_WIDE)?;
        let leverage = if due { alpha } else { alpha / (1.0 - blend.rate).max(1e-3) };
        let mut moves: Vec<(Mat<T>, Mat<T>)> = batch
            .iter()
            .map(|seen| {
                let lifted = col_cov.times(seen.pre);
                let mut weighted = seen.error.to_owned();
                for j in 0..seen.pre.ncols() {
                    let own = seen.weights.map_or(1.0, |w| w[j]);
                    let height =
                        leverage * own * inner(seen.pre.subcols(j, 1), lifted.subcols(j, 1)).as_f64();
                    let factor = T::lit(alpha / if due { height.max(1.0) } else { 1.0 + height });
                    weighted.col_as_slice_mut(j).iter_mut().for_each(|error| *error *= factor);
                }
                (lifted, weighted)
            })
            .collect();
        if col_cov.leaves_out() {
            restrain(batch, &mut moves);
        }
        let pull = (due || self.pull >= PULL_AT).then(|| std::mem::take(&mut self.pull));
        let pulled = pull.map(|pull| pulled(layer, col_cov, pull));
        let (d_post, d_pre) = (layer.mean().nrows(), layer.mean().ncols());
        let samples: usize = batch.iter().map(|seen| seen.pre.ncols()).sum();
        layer.change_working_mean(|mean| {
            for_each_block_if(splits_product(d_post * d_pre * samples), mean, |start, block| {
                let width = block.ncols();
                if let Some(pulled) = &pulled {
                    let part = pulled.subrows(start, width).transpose();
                    faer::zip!(block.as_mut(), part).for_each(|faer::unzip!(m, p)| *m -= *p);
                }
                for (lifted, weighted) in &moves {
                    let lifted = lifted.subrows(start, width).transpose();
                    product_into(block.as_mut(), Accum::Add, weighted.as_ref(), lifted, T::one());
                }
                faer::zip!(block.as_mut()).for_each(|faer::unzip!(m)| *m = without_dust(*m));
            });
        });
        Ok(())
    }

    /// Apply the pull to the prior that is still waiting.
    pub fn settle(&mut self, layer: &mut Layer<T>) -> Result<()> {
        let layer = layer.wide_mut().ok_or(NOT_WIDE)?;
        if self.pull > 0.0 {
            let col_cov = layer.columns().covariance(Purpose::Step)?;
            let pulled = pulled(layer, &col_cov, std::mem::take(&mut self.pull));
            layer.change_working_mean(|mean| {
                faer::zip!(mean, pulled.transpose()).for_each(|faer::unzip!(m, p)| *m -= *p);
            });
        }
        *self = Self::new();
        Ok(())
    }
}

/// Shorten a step Σ (wε) (Vφ)ᵀ, given by its factors, to ‖ΔM Φ‖² ≤ ⟨ε, ΔM Φ⟩.
fn restrain<T: Real>(batch: &[Seen<'_, T>], moves: &mut [(Mat<T>, Mat<T>)]) {
    let (mut square, mut along) = (0.0, 0.0);
    for seen in batch {
        let mut change = Mat::<T>::zeros(seen.error.nrows(), seen.pre.ncols());
        for (lifted, weighted) in &*moves {
            let kernel = lifted.transpose() * seen.pre;
            product_into(change.as_mut(), Accum::Add, weighted.as_ref(), kernel.as_ref(), T::one());
        }
        for j in 0..change.ncols() {
            let (own, change) = (seen.weights.map_or(1.0, |w| w[j]), change.subcols(j, 1));
            square += own * inner(change, change).as_f64();
            along += inner(seen.error.subcols(j, 1), change).as_f64();
        }
    }
    if square > along && along > 0.0 {
        let shorter = T::lit(along / square);
        for (_, weighted) in moves {
            faer::zip!(weighted).for_each(|faer::unzip!(x)| *x *= shorter);
        }
    }
}

/// A layer that became whole cannot learn among wide ones.
const NOT_WIDE: Error = Error::Conflict {
    first: "network.wide_layers other than dense",
    second: "a layer whose precisions are whole",
};

/// (pull · M V⁰⁻¹ V)ᵀ.
fn pulled<T: Real>(layer: &WideLayer<T>, col_cov: &ColumnCovariance<T>, pull: f64) -> Mat<T> {
    let (mean, prior) = (layer.working_mean(), layer.columns().prior());
    let weighted = Mat::from_fn(mean.ncols(), mean.nrows(), |i, j| T::lit(pull * prior[i]) * mean[(j, i)]);
    col_cov.times(weighted.as_ref())
}
