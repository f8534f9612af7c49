//! Linearised prediction: first order in the weights of every layer.
//!
//! ```text
//! epistemic = Σ_l (φ̂_{l−1}ᵀ V_l φ̂_{l−1}) · G_l ⟨Σ_l⁻¹⟩⁻¹ G_lᵀ ,   G_l = ∂a/∂z_l
//! output layer:  G_L = I ,  ⟨Σ_L⁻¹⟩⁻¹ → ⟨Σ_L⟩          aleatoric = ⟨Σ_L⟩
//! ```
//!
//! Where Σ_l is noise of a hidden activity (trained by relaxation) G_l ⟨Σ_l⟩ G_lᵀ joins the aleatoric part.
//! With Ψ⁻¹ = L Lᵀ, ⟨Σ⁻¹⟩⁻¹ = Ψ⁻¹/ν, so a quadratic form is ‖Lᵀ G_lᵀ e‖²/ν: no inverse is taken.

use faer::{Mat, MatRef};
use rayon::prelude::*;

mod disagreement;
mod mixed;
mod one_output;
mod one_row;
mod path;
mod sweep;
mod wide;

pub(crate) use self::disagreement::disagreement;
pub(crate) use self::mixed::{Readings, entropy_of_mean};
use self::one_output::OneOutput;
pub(crate) use self::path::{Follow, Precision};
pub(crate) use self::sweep::{Point, Reading};
pub(super) use self::wide::WideFactors;
use super::predictive::Covariance;
use super::predictor::OutputNoise;
use crate::base::linalg::cast;
use crate::base::parallel::PASS;
use crate::distributions::MatrixNormalWishart;
use crate::error::Result;
use crate::heads::ActivityPredictive;
use crate::network::{Activities, Network, Posteriors, back_one, slopes};
use crate::real::Real;

/// Samples of one task: fixed, so that the number of threads cannot change a result, and few enough that what is
/// known of them stays in a fast cache.
const SAMPLES: usize = PASS / 2;

/// What prediction needs of the posterior, in working precision.
#[derive(Clone, Debug)]
pub(crate) struct Factors<T: Real> {
    /// C⁻¹ of every layer and output block, V = C⁻ᵀC⁻¹.
    pub(super) inv_col_roots: Vec<Mat<T>>,
    /// Lᵀ/√ν of every hidden layer.
    pub(super) metric_roots: Vec<Mat<T>>,
    /// ν/(ν−d−1), by which ⟨Σ⟩ exceeds ⟨Σ⁻¹⟩⁻¹.
    pub(super) noise_ratio: Vec<f64>,
    /// ⟨Σ⟩ of every output block.
    pub(super) block_noise: Vec<Mat<f64>>,
    /// What a single output needs besides.
    pub(super) top: Option<Top<T>>,
}

/// The row m_L of a single output's weights, alone and multiplied into what stands below it.
#[derive(Clone, Debug)]
pub(super) struct Top<T: Real> {
    /// m_L without bias.
    pub(super) row: Vec<T>,
    /// diag(m_L) M_{L−1} without bias, by which f′(ẑ_{L−1}) passes to the layer below.
    pub(super) mean: Mat<T>,
    /// Lᵀ/√ν diag(m_L) of the last hidden layer.
    pub(super) root: Mat<T>,
}

impl<T: Real> Top<T> {
    fn new(network: &Network<T>, metric_roots: &[Mat<T>]) -> Self {
        let means = network.means();
        let (top, below) = (means[means.len() - 1], means.iter().rev().nth(1));
        Self {
            row: (0..top.ncols() - 1).map(|i| top[(0, i)]).collect(),
            mean: below.map_or_else(Mat::new, |mean| {
                Mat::from_fn(mean.nrows(), mean.ncols() - 1, |i, j| top[(0, i)] * mean[(i, j)])
            }),
            root: metric_roots.last().map_or_else(Mat::new, |root| {
                Mat::from_fn(root.nrows(), root.ncols(), |i, j| root[(i, j)] * top[(0, j)])
            }),
        }
    }
}

impl<T: Real> Factors<T> {
    pub(super) fn new(network: &Network<T>, posteriors: &Posteriors) -> Result<Self> {
        let all = posteriors.hidden.iter().chain(&posteriors.output);
        let metric_root = |q: &MatrixNormalWishart| {
            let root = q.noise().inv_scale_chol().lower().transpose() * faer::Scale(1.0 / q.dof().sqrt());
            cast(root.as_ref())
        };
        let metric_roots: Vec<Mat<T>> = posteriors.hidden.iter().map(metric_root).collect();
        Ok(Self {
            top: (network.output().d_activity() == 1).then(|| Top::new(network, &metric_roots)),
            inv_col_roots: all.map(|q| cast(q.col_precision_chol().inverse_lower().as_ref())).collect(),
            metric_roots,
            noise_ratio: posteriors
                .hidden
                .iter()
                .map(|q| q.dof() / (q.dof() - q.d_post() as f64 - 1.0))
                .collect(),
            block_noise: posteriors
                .output
                .iter()
                .map(MatrixNormalWishart::expected_covariance)
                .collect::<Result<Vec<_>>>()?,
        })
    }
}

/// Means and covariances of one chunk of samples, sample after sample; d values of a mean, d·d of a covariance.
pub(super) struct ChunkResult {
    pub(super) mean: Vec<f64>,
    pub(super) epistemic: Vec<f64>,
    /// Empty where hidden activities have no noise.
    pub(super) hidden_noise: Vec<f64>,
}

/// The prediction of a wide network.
pub(super) fn predict_wide<T: Real>(
    network: &Network<T>,
    factors: &WideFactors<T>,
    output: &OutputNoise,
    input: MatRef<'_, T>,
) -> ActivityPredictive {
    let n = input.ncols();
    let starts: Vec<usize> = (0..n).step_by(SAMPLES).collect();
    let one_chunk =
        |start: usize| wide::predict_chunk(network, factors, input.subcols(start, SAMPLES.min(n - start)));
    gathered(network, output, n, &starts.into_par_iter().map(one_chunk).collect::<Vec<_>>())
}

pub(super) fn predict<T: Real>(
    network: &Network<T>,
    factors: &Factors<T>,
    output: &OutputNoise,
    input: MatRef<'_, T>,
) -> ActivityPredictive {
    let n = input.ncols();
    let one_chunk = |workspace: &mut Option<OneOutput<T>>, start: usize| {
        let chunk = input.subcols(start, SAMPLES.min(n - start));
        let Some(top) = &factors.top else {
            return predict_chunk(network, factors, chunk);
        };
        let workspace = match workspace {
            Some(workspace) if workspace.capacity() == chunk.ncols() => workspace,
            other => other.insert(OneOutput::new(network, chunk.ncols())),
        };
        workspace.predict(network, factors, top, chunk)
    };
    let parts: Vec<ChunkResult> = match &factors.top {
        Some(top) if n <= one_row::MAX_ROWS => vec![one_row::predict(network, factors, top, input)],
        // One chunk is not worth waking a thread.
        _ if n <= SAMPLES => vec![one_chunk(&mut None, 0)],
        _ => {
            let starts: Vec<usize> = (0..n).step_by(SAMPLES).collect();
            starts.into_par_iter().map_init(|| None, one_chunk).collect()
        }
    };
    gathered(network, output, n, &parts)
}

/// The chunks of `n` samples as one result.
fn gathered<T: Real>(
    network: &Network<T>,
    output: &OutputNoise,
    n: usize,
    parts: &[ChunkResult],
) -> ActivityPredictive {
    let d = network.output().d_activity();
    let gather = |rows: usize, part: fn(&ChunkResult) -> &Vec<f64>| {
        let mut whole = Mat::zeros(rows, n);
        let samples = parts.iter().flat_map(|result| part(result).chunks_exact(rows));
        for (j, values) in samples.enumerate() {
            whole.col_as_slice_mut(j).copy_from_slice(values);
        }
        whole
    };
    let covariance = |values: Mat<f64>| {
        if d == 1 { Covariance::Diagonal(values) } else { Covariance::Full(values) }
    };
    ActivityPredictive {
        mean: gather(d, |r| &r.mean),
        epistemic: covariance(gather(d * d, |r| &r.epistemic)),
        hidden_noise: if network.hidden_noise() && !network.hidden().is_empty() {
            covariance(gather(d * d, |r| &r.hidden_noise))
        } else {
            Covariance::Zero
        },
        noise: output.covariance.clone(),
        dof: output.dof,
    }
}

fn predict_chunk<T: Real>(network: &Network<T>, factors: &Factors<T>, input: MatRef<'_, T>) -> ChunkResult {
    let (n, d) = (input.ncols(), network.output().d_activity());
    let n_hidden = network.hidden().len();
    let means = network.means();
    let activation = network.settings().activation;
    let mut activities = Activities::new(&network.widths(), n);
    activities.forward(&means, activation, input);
    let mut epistemic = vec![0.0; d * d * n];
    let with_noise = network.hidden_noise();
    let mut hidden_noise = vec![0.0; if with_noise { d * d * n } else { 0 }];

    for (b, (start, rows)) in network.output().row_ranges().enumerate() {
        let leverage = column_squares(&(&factors.inv_col_roots[n_hidden + b] * &activities.pre[n_hidden]));
        for (j, h) in leverage.iter().enumerate() {
            for q in 0..rows {
                for p in 0..rows {
                    epistemic[(j * d + start + q) * d + start + p] += h * factors.block_noise[b][(p, q)];
                }
            }
        }
    }

    let slopes = slopes(&activities, activation);
    // Rows of G_l for every output, one layer at a time from the top.
    let mut feedback: Vec<Mat<T>> =
        (0..d).map(|o| Mat::from_fn(d, n, |i, _| if i == o { T::one() } else { T::zero() })).collect();
    for l in (0..n_hidden).rev() {
        let leverage = column_squares(&(&factors.inv_col_roots[l] * &activities.pre[l]));
        feedback = feedback.iter().map(|g| back_one(means[l + 1], &slopes[l], g)).collect();
        let white: Vec<Mat<T>> = feedback.iter().map(|g| &factors.metric_roots[l] * g).collect();
        for (j, h) in leverage.iter().enumerate() {
            for q in 0..d {
                for p in 0..=q {
                    let dot: f64 = white[p]
                        .col_as_slice(j)
                        .iter()
                        .zip(white[q].col_as_slice(j))
                        .map(|(a, b)| (*a * *b).as_f64())
                        .sum();
                    for (row, column) in [(p, q), (q, p)].into_iter().take(if p == q { 1 } else { 2 }) {
                        let entry = (j * d + column) * d + row;
                        epistemic[entry] += h * dot;
                        if with_noise {
                            hidden_noise[entry] += factors.noise_ratio[l] * dot;
                        }
                    }
                }
            }
        }
    }
    let output = activities.post[n_hidden].col_iter();
    let mean = output.flat_map(|a| a.iter().map(|a| a.as_f64())).collect();
    ChunkResult { mean, epistemic, hidden_noise }
}

/// ‖x_j‖² of every column.
fn column_squares<T: Real>(x: &Mat<T>) -> Vec<f64> {
    (0..x.ncols()).map(|j| x.col_as_slice(j).iter().map(|v| (*v * *v).as_f64()).sum()).collect()
}
