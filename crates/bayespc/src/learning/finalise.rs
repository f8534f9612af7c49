//! After training by feedback, one exact pass over the data settles every posterior.
//!
//! ```text
//! every layer     η₁ = V⁰⁻¹ + Σ w φ̂φ̂ᵀ
//! output layer    its exact conjugate update (Gaussian head); M kept where the weights carry the noise
//! hidden layers   M kept,  ⟨Σ_l⁻¹⟩ = F_l + tr(F_l)/d_l · I ,   F_l = mean of G_lᵀ Λ G_l ,  G_l = ∂a/∂z_l
//!                 stored as Ψ_l = ⟨Σ_l⁻¹⟩/ν_l ,  ν_l = N + ν⁰
//! ```
//!
//! Λ is the curvature of the head's log-likelihood (⟨Σ_L⁻¹⟩ for the Gaussian head). The posterior of a hidden layer then
//! has the curvature factors of the Kronecker-factored Laplace approximation, F_l and Σ w φ̂φ̂ᵀ, and differs from it:
//!
//! ```text
//! precision of W_l    Laplace   F_l ⊗ Σ w φ̂φ̂ᵀ + prior        here   (F_l + tr(F_l)/d_l · I) ⊗ (Σ w φ̂φ̂ᵀ + V⁰⁻¹)
//! ```
//!
//! The ridge bounds directions without feedback. It doubles the trace of F_l: with an isotropic F_l weights have half the
//! variance. Linearised prediction takes ⟨Σ_l⁻¹⟩⁻¹ of a hidden layer. Draws of networks and moments have the Wishart's
//! ⟨Σ_l⟩ = ν_l/(ν_l − d_l − 1) ⟨Σ_l⁻¹⟩⁻¹, as the output layer has in every method: about twice as much where N ≈ d_l,
//! the same where N ≫ d_l.
//!
//! Around weights that were trained elsewhere the output layer keeps its mean too:
//!
//! ```text
//! output layer    M kept,  Ψ⁻¹ = Ψ⁰⁻¹ + Σ w (t − Mφ̂)(t − Mφ̂)ᵀ ,   ν = ν⁰ + N
//! ```
//!
//! A conjugate update would add M V⁰⁻¹ Mᵀ to Ψ⁻¹: large weights speak for large noise under a prior relative to it. Weights
//! from elsewhere were not made under that prior, and their size says nothing of the noise. Under a prior without bounds
//! both agree.

use std::ops::Range;

use faer::{Accum, Mat, MatRef};

use super::curvature::hidden_curvature;
use super::hebbian::Hebbian;
use super::packed::{Packer, Unpacker};
use super::relevance::relevance;
use crate::base::check;
use crate::base::linalg::{
    Cholesky, cast, mirror_lower, scaled_identity, symmetric_product_into, symmetrised, trace,
};
use crate::base::parallel::{PASS, over_spans, pieces};
use crate::data::Dataset;
use crate::distributions::{NaturalParams, SufficientStats};
use crate::error::Result;
use crate::heads::Response;
use crate::network::{Activities, Layer, Network, prior_inv_scale};
use crate::real::Real;

/// Settle every posterior on the data it was trained on. `first_is_known` says that η₁ of the first layer is that
/// of all the data already.
pub fn finalise<T: Real>(
    network: &mut Network<T>,
    data: &Dataset<'_, T>,
    first_is_known: bool,
) -> Result<()> {
    settle_on(network, data, first_is_known, TopMean::Conjugate)
}

/// The same around weights that were trained elsewhere: every layer keeps its mean.
pub fn settle_around<T: Real>(network: &mut Network<T>, data: &Dataset<'_, T>) -> Result<()> {
    settle_on(network, data, false, TopMean::Kept)
}

/// What becomes of the mean of an output layer that learns its noise.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TopMean {
    /// That of its conjugate update.
    Conjugate,
    /// It stays as it is.
    Kept,
}

fn settle_on<T: Real>(
    network: &mut Network<T>,
    data: &Dataset<'_, T>,
    first_is_known: bool,
    top: TopMean,
) -> Result<()> {
    if network.is_wide() {
        return super::settle_wide::settle(network, data, first_is_known, top);
    }
    let parts = over_spans(data.len(), |span| WeightSums::over(network, data, span, first_is_known));
    let sums = parts.into_iter().reduce(|mut sum, part| {
        sum.add(&part);
        sum
    });
    if let Some(sums) = sums {
        settle_weights(network, &sums, first_is_known, top)?;
    }
    let curvature = hidden_curvature(network, data)?;
    settle_metric(network, curvature)
}

/// The same for a stream, whose earlier samples are gone: the column precisions are those the stream has
/// built up, and the curvature of `data`, a `share` of all samples so far, joins the `earlier` one.
pub fn settle_stream<T: Real>(
    network: &mut Network<T>,
    data: &Dataset<'_, T>,
    earlier: &[Mat<f64>],
    share: f64,
) -> Result<()> {
    pin_output_noise(network)?;
    let mut curvature = hidden_curvature(network, data)?;
    for (new, old) in curvature.iter_mut().zip(earlier) {
        faer::zip!(new, old).for_each(|faer::unzip!(new, old)| *new = (1.0 - share) * *old + share * *new);
    }
    settle_metric(network, curvature)
}

/// F_l of a settled network, from ⟨Σ_l⁻¹⟩ = F_l + tr(F_l)/d_l · I.
pub fn hidden_curvature_of<T: Real>(network: &Network<T>) -> Result<Vec<Mat<f64>>> {
    network
        .hidden()
        .iter()
        .map(|layer| {
            let precision = layer.posterior()?.expected_precision();
            let ridge = 0.5 * trace(precision.as_ref()) / layer.d_post() as f64;
            Ok(precision - scaled_identity(layer.d_post(), ridge))
        })
        .collect()
}

/// ⟨Σ_l⁻¹⟩ = F_l + tr(F_l)/d_l · I, stored as Ψ_l = ⟨Σ_l⁻¹⟩/ν_l with M kept.
pub(super) fn settle_metric<T: Real>(network: &mut Network<T>, curvature: Vec<Mat<f64>>) -> Result<()> {
    for (layer, curvature) in network.hidden_mut().iter_mut().zip(curvature) {
        let d = layer.d_post();
        // A layer without any feedback has no curvature; its weights cannot reach the output anyway.
        let mean = trace(curvature.as_ref()) / d as f64;
        let ridge = if mean > 0.0 { mean } else { 1.0 };
        let precision = curvature + scaled_identity(d, ridge);
        let mut natural = layer.natural();
        let dof = natural.dof();
        let covariance = Cholesky::new(precision.as_ref(), "the hidden precision")?.inverse();
        set_inv_scale(&mut natural, layer.mean(), &(covariance * faer::Scale(dof)));
        layer.set_natural(natural)?;
    }
    network.set_hidden_noise(false);
    Ok(())
}

/// ⟨Σ⟩ = I in every block of the output layer whose sample weights carry the noise.
pub(crate) fn pin_output_noise<T: Real>(network: &mut Network<T>) -> Result<()> {
    let specs = network.output().specs().to_vec();
    network.output_mut().update(|b, block| if specs[b].unit_noise { pin_noise(block) } else { Ok(()) })
}

/// ⟨Σ⟩ = Ψ⁻¹/(ν−d−1) = I, for blocks whose sample weights carry the noise.
fn pin_noise<T: Real>(block: &mut Layer<T>) -> Result<()> {
    let mut natural = block.natural();
    let pinned = natural.dof() - block.d_post() as f64 - 1.0;
    set_inv_scale(&mut natural, block.mean(), &scaled_identity(block.d_post(), pinned));
    block.set_natural(natural)
}

/// What the final pass gathers: Σ w φ̂φ̂ᵀ of the hidden layers (lower triangles), and of the output layer everything.
pub(crate) struct WeightSums {
    hidden: Vec<Mat<f64>>,
    count: f64,
    output: Vec<SufficientStats>,
}

impl WeightSums {
    /// Of no samples; without those of the first layer if they are known.
    pub(crate) fn zero<T: Real>(network: &Network<T>, without_first: bool) -> Self {
        let width = |(l, layer): (usize, &Layer<T>)| if l == 0 && without_first { 0 } else { layer.d_pre() };
        let widths = network.hidden().iter().enumerate().map(width);
        let output = |layer: &Layer<T>| SufficientStats::zero(layer.d_post(), layer.d_pre());
        Self {
            hidden: widths.map(|d| Mat::zeros(d, d)).collect(),
            count: 0.0,
            output: network.output().blocks().iter().map(output).collect(),
        }
    }

    /// Of the samples `span` of `data`.
    pub(crate) fn over<T: Real>(
        network: &Network<T>,
        data: &Dataset<'_, T>,
        span: Range<usize>,
        without_first: bool,
    ) -> Self {
        let means = network.means();
        let head = network.settings().head.head();
        let mut stats = Self::zero(network, without_first);
        let mut hebbian = Hebbian::of_output(network);
        let mut outer: Vec<Mat<T>> =
            stats.hidden.iter().map(|sum| Mat::zeros(sum.nrows(), sum.nrows())).collect();
        for samples in pieces(span, PASS) {
            let (start, n) = (samples.start, samples.len());
            let weights = data.weights().map(|w| &w[samples]);
            let mut activities = Activities::new(&network.widths(), n);
            activities.forward(&means, network.settings().activation, data.input().subcols(start, n));
            let top = activities.post.len() - 1;
            let mut response =
                Response::zeros(network.output().d_activity(), network.output().blocks().len(), n);
            let target: Mat<f64> = cast(data.target().subcols(start, n));
            let output: Mat<f64> = cast(activities.post[top].as_ref());
            head.respond(output.as_ref(), target.as_ref(), &mut response);
            hebbian.accumulate_output(&activities, &response, 0, weights);
            for (l, sum) in stats.hidden.iter_mut().enumerate().filter(|(_, sum)| sum.nrows() > 0) {
                let pre = &mut activities.pre[l];
                if let Some(weights) = weights {
                    for (j, weight) in weights.iter().enumerate() {
                        let root = T::lit(weight.sqrt());
                        pre.as_mut().col_mut(j).iter_mut().for_each(|x| *x *= root);
                    }
                }
                let (pre, outer) = (pre.as_ref(), &mut outer[l]);
                symmetric_product_into(outer.as_mut(), Accum::Replace, pre, pre, T::one());
                add_lower(sum, outer);
            }
            stats.count += weights.map_or(n as f64, |w| w.iter().sum());
        }
        stats.output = hebbian.into_output();
        stats
    }

    /// As plain numbers, of which those of two parts of the data add up one by one.
    pub(crate) fn values(&self) -> Vec<f64> {
        let mut packer = Packer::default();
        packer.number(self.count);
        self.hidden.iter().for_each(|sum| packer.lower(sum));
        self.output.iter().for_each(|stats| packer.statistics(stats));
        packer.into_values()
    }

    /// Settle η of every layer by the plain numbers of all the data.
    pub(crate) fn settle<T: Real>(network: &mut Network<T>, values: &[f64]) -> Result<()> {
        let mut sums = Self::zero(network, false);
        check::same_length("final statistics", values.len(), sums.values().len())?;
        let mut unpacker = Unpacker::new(values);
        sums.count = unpacker.number();
        sums.hidden.iter_mut().for_each(|sum| unpacker.lower(sum));
        sums.output.iter_mut().for_each(|stats| unpacker.statistics(stats));
        settle_weights(network, &sums, false, TopMean::Conjugate)
    }

    fn add(&mut self, other: &Self) {
        for (sum, part) in self.hidden.iter_mut().zip(&other.hidden) {
            *sum += part;
        }
        self.count += other.count;
        for (sum, part) in self.output.iter_mut().zip(&other.output) {
            sum.add(part).expect("spans of one network have one shape");
        }
    }
}

/// The lower triangle of a sum in working precision joins one in f64.
pub(crate) fn add_lower<T: Real>(sum: &mut Mat<f64>, part: &Mat<T>) {
    for j in 0..sum.ncols() {
        let (to, from) = (&mut sum.col_as_slice_mut(j)[j..], &part.col_as_slice(j)[j..]);
        to.iter_mut().zip(from).for_each(|(to, from)| *to += from.as_f64());
    }
}

fn settle_weights<T: Real>(
    network: &mut Network<T>,
    stats: &WeightSums,
    first_is_known: bool,
    top: TopMean,
) -> Result<()> {
    let layers = network.hidden_mut().iter_mut().zip(&stats.hidden);
    for (layer, pre_pre) in layers.skip(usize::from(first_is_known)) {
        let natural = kept_mean(layer.prior(), layer.mean(), pre_pre, stats.count);
        layer.set_natural(natural)?;
    }
    let specs = network.output().specs().to_vec();
    let by_relevance = network.settings().prior.relevance;
    network.output_mut().update(|b, block| {
        let stats = &stats.output[b];
        if by_relevance {
            block.set_prior(relevance(block.prior(), stats)?);
        }
        if specs[b].unit_noise {
            let natural = kept_mean(block.prior(), block.mean(), &stats.pre_pre, stats.count);
            block.set_natural(natural)?;
            return pin_noise(block);
        }
        match top {
            TopMean::Conjugate => block.blend(stats, 1.0, 1.0),
            TopMean::Kept => block.set_natural(kept_mean_and_noise(block.prior(), block.mean(), stats)),
        }
    })
}

/// η with η₁ = η⁰₁ + Σ φφᵀ and the mean as it is.
fn kept_mean(prior: &NaturalParams, mean: MatRef<'_, f64>, pre_pre: &Mat<f64>, count: f64) -> NaturalParams {
    let mut natural = prior.clone();
    natural.pre_pre += pre_pre;
    mirror_lower(natural.pre_pre.as_mut());
    natural.count += count;
    let inv_scale = prior_inv_scale(prior);
    set_inv_scale(&mut natural, mean, &inv_scale);
    natural
}

/// η with the mean as it is and the noise that the errors around it have.
fn kept_mean_and_noise(
    prior: &NaturalParams,
    mean: MatRef<'_, f64>,
    stats: &SufficientStats,
) -> NaturalParams {
    let mut natural = kept_mean(prior, mean, &stats.pre_pre, stats.count);
    let mut squares = stats.post_post.clone();
    mirror_lower(squares.as_mut());
    // Σ (t − Mφ)(t − Mφ)ᵀ, multiplied out.
    let cross = &stats.post_pre * mean.transpose();
    let predicted = mean * (&natural.pre_pre - &prior.pre_pre) * mean.transpose();
    let inv_scale = prior_inv_scale(prior) + squares - &cross - cross.transpose() + predicted;
    set_inv_scale(&mut natural, mean, &symmetrised(inv_scale.as_ref()));
    natural
}

/// Set Ψ⁻¹ and the mean, given η₁ and η₄.
fn set_inv_scale(natural: &mut NaturalParams, mean: MatRef<'_, f64>, inv_scale: &Mat<f64>) {
    natural.post_pre = mean * &natural.pre_pre;
    natural.post_post = inv_scale + &natural.post_pre * mean.transpose();
}
