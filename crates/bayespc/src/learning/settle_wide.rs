//! Finalisation of a wide network: the same pass (`finalise`), into what is linear in the layers' widths.
//!
//! ```text
//! every layer     M kept,  η₁ = V⁰⁻¹ + Σ w φ̂φ̂ᵀ in its structure
//! output layer    Ψ⁻¹ = Ψ⁰⁻¹ + Σ w (t − Mφ̂)(t − Mφ̂)ᵀ + M V⁰⁻¹ Mᵀ ,   ν = ν⁰ + N
//! hidden layers   ⟨Σ_l⁻¹⟩ = F_l + tr(F_l)/d_l · I , F_l from below in few directions, its trace exact
//! ```
//!
//! The output's Ψ⁻¹ is that of its conjugate update where M is at rest, and larger anywhere else: M has not been solved for,
//! and the noise is not understated for that. Sums of parts of the data are merged in order.
//!
//! A network without hidden layers whose sketch holds all directions of its data has the whole V, and M is solved for:
//!
//! ```text
//! M = (Σ w t φᵀ) V          V = V⁰ − V⁰ Φ (I + Φᵀ V⁰ Φ)⁻¹ Φᵀ V⁰ , of n samples at the cost of n² d and not of d³
//! ```

use std::ops::Range;

use faer::{Accum, Mat};

use super::curvature::curvature_root;
use super::finalise::TopMean;
use crate::base::linalg::{
    Cholesky, cast, mirror_lower, product_into, scaled_identity, symmetric_product_into,
};
use crate::base::parallel::{PASS, over_spans, pieces};
use crate::data::Dataset;
use crate::distributions::{ColumnPrecision, FrequentDirections, Purpose};
use crate::error::{Error, Result};
use crate::heads::{HeadSettings, Response};
use crate::network::{Activities, Layer, Metric, Network, WideNoise, back_one, slopes};
use crate::real::Real;

/// Settle every posterior of a wide network.
pub(super) fn settle<T: Real>(
    network: &mut Network<T>,
    data: &Dataset<'_, T>,
    first_is_known: bool,
    top: TopMean,
) -> Result<()> {
    let parts = over_spans(data.len(), |span| Sums::over(network, data, span, first_is_known));
    let mut sums = merged(parts, Sums::add)?;
    if top == TopMean::Conjugate && solve(network, &sums)? {
        let parts = over_spans(data.len(), |span| Sums::over(network, data, span, first_is_known));
        sums = merged(parts, Sums::add)?;
    }
    settle_layers(network, sums, first_is_known, top)?;
    let root = curvature_root(network)?;
    let parts = over_spans(data.len(), |span| Curvature::over(network, &root, data, span));
    let curvature = merged(parts, Curvature::add)?;
    for (layer, mut sum) in network.hidden_mut().iter_mut().zip(curvature.hidden) {
        sum.scale(1.0 / curvature.weight);
        // A layer without any feedback has no curvature; its weights cannot reach the output anyway.
        let mean = sum.trace() / sum.d() as f64;
        let ridge = if mean > 0.0 { mean } else { 1.0 };
        let metric = Metric { ridge, directions: sum.directions()? };
        wide_mut(layer)?.set_noise(WideNoise::Metric(metric));
    }
    network.set_hidden_noise(false);
    Ok(())
}

/// Parts added up in order.
fn merged<S>(parts: Vec<Result<S>>, mut add: impl FnMut(&mut S, &S) -> Result<()>) -> Result<S> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().ok_or(Error::Empty { what: "the data" })??;
    for part in parts {
        add(&mut sum, &part?)?;
    }
    Ok(sum)
}

fn wide_mut<T: Real>(layer: &mut Layer<T>) -> Result<&mut crate::network::WideLayer<T>> {
    layer.wide_mut().ok_or(Error::Conflict {
        first: "network.wide_layers other than dense",
        second: "a layer whose precisions are whole",
    })
}

/// The mean of an exact linear model, if the network is one and nothing was left out of its sketch.
fn solve<T: Real>(network: &mut Network<T>, sums: &Sums) -> Result<bool> {
    let is_exact = |sums: &Sums| sums.columns.iter().all(|columns| columns.slack() == 0.0);
    if sums.products.is_empty() || !is_exact(sums) {
        return Ok(false);
    }
    network.output_mut().update(|b, block| {
        let covariance = sums.columns[b].covariance::<f64>(Purpose::Leverage)?;
        let mean = covariance.times(sums.products[b].as_ref());
        wide_mut(block)?.set_mean(mean.transpose().to_owned());
        Ok(())
    })?;
    Ok(true)
}

/// Σ w φ̂φ̂ᵀ of every layer and output block, and Σ w εεᵀ of the blocks.
struct Sums {
    columns: Vec<ColumnPrecision>,
    errors: Vec<Mat<f64>>,
    /// Σ w φ tᵀ of a linear model, whose targets do not depend on what it predicts; else nothing.
    products: Vec<Mat<f64>>,
    weight: f64,
}

impl Sums {
    fn over<T: Real>(
        network: &Network<T>,
        data: &Dataset<'_, T>,
        span: Range<usize>,
        first_is_known: bool,
    ) -> Result<Self> {
        let n_hidden = network.hidden().len();
        let empty = |layer: &Layer<T>| layer.wide().map(|wide| wide.columns().emptied());
        let blocks = network.output().blocks();
        let linear = n_hidden == 0 && network.settings().head == HeadSettings::default();
        let product = |block: &Layer<T>| linear.then(|| Mat::zeros(block.d_pre(), block.d_post()));
        let mut sums = Self {
            columns: network.layers().filter_map(empty).collect(),
            errors: blocks.iter().map(|block| Mat::zeros(block.d_post(), block.d_post())).collect(),
            products: blocks.iter().filter_map(product).collect(),
            weight: 0.0,
        };
        let (means, head) = (network.means(), network.settings().head.head());
        for samples in pieces(span, PASS) {
            let (start, n) = (samples.start, samples.len());
            let weights = data.weights().map(|w| &w[samples]);
            let own = |j: usize| weights.map_or(1.0, |w| w[j]);
            sums.weight += (0..n).map(own).sum::<f64>();
            let mut activities = Activities::new(&network.widths(), n);
            activities.forward(&means, network.settings().activation, data.input().subcols(start, n));
            let output: Mat<f64> = cast(activities.post[n_hidden].as_ref());
            let target: Mat<f64> = cast(data.target().subcols(start, n));
            let mut response = Response::zeros(network.output().d_activity(), blocks.len(), n);
            head.respond(output.as_ref(), target.as_ref(), &mut response);
            for (b, (first, rows)) in network.output().row_ranges().enumerate() {
                let root = |j: usize| (response.weights[(b, j)] * own(j)).sqrt();
                let error = Mat::from_fn(rows, n, |i, j| {
                    root(j) * (response.targets[(first + i, j)] - output[(first + i, j)])
                });
                let to = sums.errors[b].as_mut();
                symmetric_product_into(to, Accum::Add, error.as_ref(), error.as_ref(), 1.0);
                let pre = rooted(&activities.pre[n_hidden], root);
                sums.columns[n_hidden + b].absorb(pre.as_ref(), 1.0)?;
                if let Some(product) = sums.products.get_mut(b) {
                    let pre: Mat<f64> = cast(pre.as_ref());
                    let target = Mat::from_fn(n, rows, |j, i| root(j) * response.targets[(first + i, j)]);
                    product_into(product.as_mut(), Accum::Add, pre.as_ref(), target.as_ref(), 1.0);
                }
            }
            for l in usize::from(first_is_known)..n_hidden {
                let pre = rooted(&activities.pre[l], |j| own(j).sqrt());
                sums.columns[l].absorb(pre.as_ref(), 1.0)?;
            }
        }
        Ok(sums)
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        for (own, other) in self.columns.iter_mut().zip(&other.columns) {
            own.add(other)?;
        }
        let pairs = self.errors.iter_mut().zip(&other.errors);
        for (own, other) in pairs.chain(self.products.iter_mut().zip(&other.products)) {
            *own += other;
        }
        self.weight += other.weight;
        Ok(())
    }
}

/// Every column times its factor.
fn rooted<T: Real>(pre: &Mat<T>, root: impl Fn(usize) -> f64) -> Mat<T> {
    let roots: Vec<T> = (0..pre.ncols()).map(|j| T::lit(root(j))).collect();
    Mat::from_fn(pre.nrows(), pre.ncols(), |i, j| roots[j] * pre[(i, j)])
}

fn settle_layers<T: Real>(
    network: &mut Network<T>,
    sums: Sums,
    first_is_known: bool,
    top: TopMean,
) -> Result<()> {
    let n_hidden = network.hidden().len();
    let mut columns = sums.columns.into_iter();
    for (l, (layer, columns)) in network.hidden_mut().iter_mut().zip(columns.by_ref()).enumerate() {
        if l > 0 || !first_is_known {
            let wide = wide_mut(layer)?;
            *wide.columns_mut() = columns;
            wide.blend_count(0.0, sums.weight);
        }
    }
    let mut columns: Vec<ColumnPrecision> = columns.collect();
    debug_assert_eq!(columns.len() + n_hidden, network.layers().count());
    let specs = network.output().specs().to_vec();
    columns.reverse();
    network.output_mut().update(|b, block| {
        let wide = wide_mut(block)?;
        if let Some(columns) = columns.pop() {
            *wide.columns_mut() = columns;
        }
        wide.blend_count(0.0, sums.weight);
        let rows = wide.mean().nrows();
        if specs[b].unit_noise {
            // ⟨Σ⟩ = Ψ⁻¹/(ν−d−1) = I: the weights of the samples carry the noise.
            let pinned = wide.dof() - rows as f64 - 1.0;
            wide.set_noise(WideNoise::InvScale(scaled_identity(rows, pinned)));
            return Ok(());
        }
        let mut inv_scale = sums.errors[b].clone();
        mirror_lower(inv_scale.as_mut());
        inv_scale += scaled_identity(rows, wide.prior_inv_scale());
        if top == TopMean::Conjugate {
            let prior = wide.columns().prior();
            let weighted = Mat::from_fn(rows, prior.len(), |i, j| wide.mean()[(i, j)] * prior[j]);
            inv_scale += &weighted * wide.mean().transpose();
        }
        wide.set_noise(WideNoise::InvScale(crate::base::linalg::symmetrised(inv_scale.as_ref())));
        Ok(())
    })
}

/// Σ w G_lᵀ Λ G_l of the hidden layers in few directions, and Σ w.
struct Curvature {
    hidden: Vec<FrequentDirections>,
    weight: f64,
}

impl Curvature {
    fn over<T: Real>(
        network: &Network<T>,
        root: &Cholesky,
        data: &Dataset<'_, T>,
        span: Range<usize>,
    ) -> Result<Self> {
        let columns = network.settings().wide_layers;
        let empty = |layer: &Layer<T>| {
            FrequentDirections::new(layer.d_post(), columns.feedback_directions(layer.d_post()))
        };
        let mut sums = Self { hidden: network.hidden().iter().map(empty).collect(), weight: 0.0 };
        let (means, activation) = (network.means(), network.settings().activation);
        let (head, d_activity) = (network.settings().head.head(), network.output().d_activity());
        for samples in pieces(span, PASS) {
            let (start, n) = (samples.start, samples.len());
            let weights = data.weights().map(|w| &w[samples]);
            sums.weight += weights.map_or(n as f64, |w| w.iter().sum());
            let mut activities = Activities::new(&network.widths(), n);
            activities.forward(&means, activation, data.input().subcols(start, n));
            let output: Mat<f64> = cast(activities.post[means.len() - 1].as_ref());
            let slopes = slopes(&activities, activation);
            let mut seed = Mat::zeros(d_activity, n);
            for k in 0..d_activity {
                head.curvature_root(output.as_ref(), root.lower(), k, seed.as_mut());
                if let Some(weights) = weights {
                    for (j, weight) in weights.iter().enumerate() {
                        seed.as_mut().col_mut(j).iter_mut().for_each(|s| *s *= weight.sqrt());
                    }
                }
                let mut feedback: Mat<T> = cast(seed.as_ref());
                for l in (0..sums.hidden.len()).rev() {
                    feedback = back_one(means[l + 1], &slopes[l], &feedback);
                    sums.hidden[l].absorb(feedback.as_ref(), 1.0)?;
                }
            }
        }
        Ok(sums)
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        for (own, other) in self.hidden.iter_mut().zip(&other.hidden) {
            own.add(other)?;
        }
        self.weight += other.weight;
        Ok(())
    }
}
