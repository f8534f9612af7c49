//! Moment propagation: mean and covariance of the activity carried from layer to layer (paper Sec. 2,
//! "analytical uncertainty propagation").
//!
//! ```text
//! linear layer, input mean m and covariance S (bias included):
//!   mean   M m
//!   Cov    M S Mᵀ + ⟨Σ⟩ (c + tr(V (S + m mᵀ)))        c = 1 at the output and where Σ is activity noise, else 0
//! activation: exact mean and variance, covariances by the chosen rule
//! ```
//!
//! The noise that entered on the way is carried along by mean slopes, J S_noise J with J = diag E[f′(z)], so
//! that the total splits into aleatoric and epistemic parts; for linear networks the split is exact.

use faer::{Mat, MatRef};

use super::Covariance;
use super::predictor::OutputNoise;
use crate::base::linalg::inner;
use crate::base::parallel::over_chunks;
use crate::distributions::MatrixNormalWishart;
use crate::error::Result;
use crate::heads::ActivityPredictive;
use crate::network::{
    Activation, CovarianceRule, Network, Posteriors, activation::moments as activation_moments,
};
use crate::real::Real;

/// What prediction needs of the posterior.
#[derive(Clone, Debug)]
pub(super) struct Factors {
    hidden: Vec<LayerMoments>,
    output: Vec<LayerMoments>,
}

impl Factors {
    pub(super) fn new(posteriors: &Posteriors) -> Result<Self> {
        let derive = |layers: &[MatrixNormalWishart]| layers.iter().map(LayerMoments::new).collect();
        let (hidden, output): (Result<_>, Result<_>) =
            (derive(&posteriors.hidden), derive(&posteriors.output));
        Ok(Self { hidden: hidden?, output: output? })
    }
}

/// A layer's posterior with the matrices each sample needs.
#[derive(Clone, Debug)]
struct LayerMoments {
    mean: Mat<f64>,
    col_cov: Mat<f64>,
    noise: Mat<f64>,
}

impl LayerMoments {
    fn new(posterior: &MatrixNormalWishart) -> Result<Self> {
        Ok(Self {
            mean: posterior.mean().to_owned(),
            col_cov: posterior.col_cov(),
            noise: posterior.expected_covariance()?,
        })
    }

    /// 1·c + tr(V (S + m mᵀ)) without the c.
    fn leverage(&self, mean: &Mat<f64>, covariance: &Mat<f64>) -> f64 {
        let d = covariance.nrows();
        inner(self.col_cov.submatrix(0, 0, d, d), covariance.as_ref())
            + inner((&self.col_cov * mean).as_ref(), mean.as_ref())
    }
}

/// Mean and covariance of one sample's presynaptic activity; the bias is in the mean only.
struct State {
    mean: Mat<f64>,
    covariance: Mat<f64>,
    noise: Mat<f64>,
}

/// Mean, epistemic covariance and hidden-noise covariance of one sample's output activity.
type Moments = (Mat<f64>, Mat<f64>, Mat<f64>);

pub(super) fn predict<T: Real>(
    network: &Network<T>,
    factors: &Factors,
    output: &OutputNoise,
    input: MatRef<'_, T>,
    rule: CovarianceRule,
) -> Result<ActivityPredictive> {
    let d = network.output().d_activity();
    let parts = over_chunks(input.ncols(), |samples| {
        samples
            .map(|j| {
                let x = Mat::from_fn(input.nrows(), 1, |i, _| input[(i, j)].as_f64());
                propagate(network, factors, &x, rule)
            })
            .collect::<Result<Vec<Moments>>>()
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
    let mut mean = Mat::zeros(d, input.ncols());
    let mut epistemic = Mat::zeros(d * d, input.ncols());
    let mut hidden_noise = Mat::zeros(d * d, input.ncols());
    for (j, (m, e, a)) in parts.into_iter().flatten().enumerate() {
        mean.col_as_slice_mut(j).copy_from_slice(m.col_as_slice(0));
        for q in 0..d {
            epistemic.col_as_slice_mut(j)[q * d..(q + 1) * d].copy_from_slice(e.col_as_slice(q));
            hidden_noise.col_as_slice_mut(j)[q * d..(q + 1) * d].copy_from_slice(a.col_as_slice(q));
        }
    }
    let covariance = |values: Mat<f64>| {
        if d == 1 { Covariance::Diagonal(values) } else { Covariance::Full(values) }
    };
    Ok(ActivityPredictive {
        mean,
        epistemic: covariance(epistemic),
        hidden_noise: if network.hidden_noise() && !factors.hidden.is_empty() {
            covariance(hidden_noise)
        } else {
            Covariance::Zero
        },
        noise: output.covariance.clone(),
        dof: output.dof,
    })
}

/// Mean, epistemic covariance and hidden-noise covariance of the output activity of one input.
fn propagate<T: Real>(
    network: &Network<T>,
    factors: &Factors,
    x: &Mat<f64>,
    rule: CovarianceRule,
) -> Result<Moments> {
    let d_in = x.nrows();
    let mut state = State {
        mean: Mat::from_fn(d_in + 1, 1, |i, _| if i < d_in { x[(i, 0)] } else { 1.0 }),
        covariance: Mat::zeros(d_in, d_in),
        noise: Mat::zeros(d_in, d_in),
    };
    let own_noise = if network.hidden_noise() { 1.0 } else { 0.0 };
    for layer in &factors.hidden {
        let leverage = layer.leverage(&state.mean, &state.covariance);
        let mean = &layer.mean * &state.mean;
        let covariance =
            carry(&layer.mean, &state.covariance) + &layer.noise * faer::Scale(own_noise + leverage);
        let noise = carry(&layer.mean, &state.noise) + &layer.noise * faer::Scale(own_noise);
        state = activate(network.settings().activation, &mean, &covariance, &noise, rule)?;
    }
    let d = network.output().d_activity();
    let weights = network.output().blocks();
    let stacked = Mat::from_fn(d, state.mean.nrows(), |i, k| {
        let mut row = i;
        for block in weights {
            if row < block.d_post() {
                return block.mean()[(row, k)];
            }
            row -= block.d_post();
        }
        0.0
    });
    let mean = &stacked * &state.mean;
    let hidden_noise = carry(&stacked, &state.noise);
    let mut epistemic = carry(&stacked, &state.covariance) - &hidden_noise;
    for (block, (start, rows)) in factors.output.iter().zip(network.output().row_ranges()) {
        let leverage = block.leverage(&state.mean, &state.covariance);
        let mut part = epistemic.as_mut().submatrix_mut(start, start, rows, rows);
        part += &block.noise * faer::Scale(leverage);
    }
    Ok((mean, epistemic, hidden_noise))
}

/// M S Mᵀ without the bias, which is certain.
fn carry(weights: &Mat<f64>, covariance: &Mat<f64>) -> Mat<f64> {
    let without_bias = weights.subcols(0, covariance.nrows());
    without_bias * covariance * without_bias.transpose()
}

fn activate(
    activation: Activation,
    mean: &Mat<f64>,
    covariance: &Mat<f64>,
    noise: &Mat<f64>,
    rule: CovarianceRule,
) -> Result<State> {
    let d = mean.nrows();
    let mut out_mean = Mat::from_fn(d + 1, 1, |_, _| 1.0);
    let mut out_covariance = Mat::zeros(d, d);
    activation_moments::propagate(
        activation,
        mean.col_as_slice(0),
        covariance.as_ref(),
        &mut out_mean.col_as_slice_mut(0)[..d],
        out_covariance.as_mut(),
        rule,
    )?;
    let slopes: Vec<f64> = (0..d)
        .map(|i| activation_moments::moments(activation, mean[(i, 0)], covariance[(i, i)]).gain)
        .collect();
    // The noise is a part of the covariance, so it drops the entries that the rule drops.
    let out_noise = Mat::from_fn(d, d, |i, j| match rule {
        CovarianceRule::Diagonal if i != j => 0.0,
        _ => slopes[i] * noise[(i, j)] * slopes[j],
    });
    Ok(State { mean: out_mean, covariance: out_covariance, noise: out_noise })
}
