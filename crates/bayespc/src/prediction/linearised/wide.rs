//! Linearised prediction of a wide network: the formulas of `linearised` with V_l and ⟨Σ_l⁻¹⟩⁻¹ in the structure their
//! layers keep.
//!
//! ```text
//! G ⟨Σ⁻¹⟩⁻¹ Gᵀ = (G − G U Uᵀ)(G − G U Uᵀ)ᵀ / r + (G U) diag(1/(λ+r)) (G U)ᵀ        ⟨Σ⁻¹⟩ = r I + U diag(λ) Uᵀ
//! ```
//!
//! Leverages are by the lower bound of a sketch: none is understated.

use faer::{Accum, Mat, MatRef};

use super::ChunkResult;
use crate::base::linalg::{cast, product_into};
use crate::distributions::{ColumnCovariance, Purpose};
use crate::error::{Error, Result};
use crate::network::{Activities, Layer, Network, WideNoise, back_one, slopes};
use crate::real::Real;

/// What prediction needs of the posterior, in working precision.
#[derive(Clone, Debug)]
pub(crate) struct WideFactors<T: Real> {
    /// V of every layer and output block.
    col_covs: Vec<ColumnCovariance<T>>,
    /// ⟨Σ⁻¹⟩⁻¹ of every hidden layer.
    metrics: Vec<InverseMetric<T>>,
    /// ⟨Σ⟩ of every output block.
    block_noise: Vec<Mat<f64>>,
}

/// U, 1/√(λ+r) and 1/√r.
#[derive(Clone, Debug)]
struct InverseMetric<T: Real> {
    basis: Mat<T>,
    along: Vec<T>,
    rest: T,
}

impl<T: Real> WideFactors<T> {
    /// Derived from the layers of a wide network.
    pub(in crate::prediction) fn new(network: &Network<T>) -> Result<Self> {
        let whole = Error::Conflict {
            first: "network.wide_layers other than dense",
            second: "a layer whose precisions are whole",
        };
        let wide = |layer: &Layer<T>| layer.wide().map(|wide| wide.columns().covariance(Purpose::Leverage));
        let col_covs = network.layers().filter_map(wide).collect::<Result<Vec<_>>>()?;
        let metric = |layer: &Layer<T>| match layer.wide()?.wide_noise() {
            WideNoise::Metric(metric) => Some(InverseMetric {
                basis: cast(metric.directions.basis.as_ref()),
                along: metric
                    .directions
                    .values
                    .iter()
                    .map(|value| T::lit(1.0 / (value + metric.ridge).sqrt()))
                    .collect(),
                rest: T::lit(1.0 / metric.ridge.sqrt()),
            }),
            WideNoise::InvScale(_) => None,
        };
        let metrics: Vec<_> = network.hidden().iter().filter_map(metric).collect();
        if col_covs.len() != network.layers().count() || metrics.len() != network.hidden().len() {
            return Err(whole);
        }
        let block_noise = network.output().blocks().iter().map(|block| block.noise()?.expected_covariance());
        Ok(Self { col_covs, metrics, block_noise: block_noise.collect::<Result<_>>()? })
    }
}

impl<T: Real> InverseMetric<T> {
    /// Columns whose products are those of ⟨Σ⁻¹⟩⁻¹: what is across U over that along it.
    fn white(&self, feedback: &Mat<T>) -> Mat<T> {
        let (d, r, n) = (self.basis.nrows(), self.basis.ncols(), feedback.ncols());
        let mut along = Mat::zeros(r, n);
        product_into(along.as_mut(), Accum::Replace, self.basis.transpose(), feedback.as_ref(), T::one());
        let mut white = Mat::zeros(d + r, n);
        white.as_mut().subrows_mut(0, d).copy_from(feedback);
        let across = white.as_mut().subrows_mut(0, d);
        product_into(across, Accum::Add, self.basis.as_ref(), along.as_ref(), -T::one());
        for j in 0..n {
            let (across, own) = white.col_as_slice_mut(j).split_at_mut(d);
            for x in across.iter_mut() {
                *x *= self.rest;
            }
            let along = along.col_as_slice(j).iter().zip(&self.along);
            own.iter_mut().zip(along).for_each(|(to, (x, factor))| *to = *x * *factor);
        }
        white
    }
}

/// Mean and epistemic covariance of a chunk of samples.
pub(super) fn predict_chunk<T: Real>(
    network: &Network<T>,
    factors: &WideFactors<T>,
    input: MatRef<'_, T>,
) -> ChunkResult {
    let (n, d) = (input.ncols(), network.output().d_activity());
    let n_hidden = network.hidden().len();
    let (means, activation) = (network.means(), network.settings().activation);
    let mut activities = Activities::new(&network.widths(), n);
    activities.forward(&means, activation, input);
    let mut epistemic = vec![0.0; d * d * n];
    for (b, (start, rows)) in network.output().row_ranges().enumerate() {
        let leverage = factors.col_covs[n_hidden + b].leverage(activities.pre[n_hidden].as_ref());
        for (j, h) in leverage.iter().enumerate() {
            for q in 0..rows {
                for p in 0..rows {
                    epistemic[(j * d + start + q) * d + start + p] += h * factors.block_noise[b][(p, q)];
                }
            }
        }
    }
    let slopes = slopes(&activities, activation);
    let unit = |o: usize| Mat::from_fn(d, n, |i, _| if i == o { T::one() } else { T::zero() });
    let mut feedback: Vec<Mat<T>> = (0..d).map(unit).collect();
    for l in (0..n_hidden).rev() {
        let leverage = factors.col_covs[l].leverage(activities.pre[l].as_ref());
        feedback = feedback.iter().map(|g| back_one(means[l + 1], &slopes[l], g)).collect();
        let white: Vec<Mat<T>> = feedback.iter().map(|g| factors.metrics[l].white(g)).collect();
        for (j, h) in leverage.iter().enumerate() {
            for q in 0..d {
                for p in 0..=q {
                    let pairs = white[p].col_as_slice(j).iter().zip(white[q].col_as_slice(j));
                    let dot: f64 = pairs.map(|(a, b)| (*a * *b).as_f64()).sum();
                    epistemic[(j * d + q) * d + p] += h * dot;
                    if p < q {
                        epistemic[(j * d + p) * d + q] += h * dot;
                    }
                }
            }
        }
    }
    let output = activities.post[n_hidden].col_iter();
    let mean = output.flat_map(|a| a.iter().map(|a| a.as_f64())).collect();
    ChunkResult { mean, epistemic, hidden_noise: Vec::new() }
}
