//! What the suites share: matrices, posteriors and networks made from a seed, statistics with their standard
//! errors, and the reference tables.

#![allow(dead_code, reason = "every suite uses its own part")]

use std::collections::HashMap;

use bayespc::base::linalg::scaled_identity;
use bayespc::distributions::{MatrixNormalWishart, NaturalParams};
use bayespc::inference::Clamp;
use bayespc::network::{Activation, Layer, Network, NetworkSettings};
use faer::{Mat, MatRef};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde_json::Value;

/// The generator of a seed.
pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Independent N(0, 1) entries.
pub fn normal(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(rng))
}

/// [x; 1] with x standard normal.
pub fn pre(d: usize, n: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    bayespc::network::with_bias(normal(d, n, rng).as_ref())
}

/// A positive definite matrix with eigenvalues of order 1.
pub fn positive_definite(d: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let a = normal(d, d + 2, rng);
    &a * a.transpose() * faer::Scale(1.0 / (d + 2) as f64) + scaled_identity(d, 0.3)
}

/// A posterior with weights of order 1/√d_pre, noise of variance near `noise`, V near 1/`samples`, and
/// ν = d_post + `extra_dof`.
pub fn posterior(
    (d_post, d_pre): (usize, usize),
    noise: f64,
    samples: f64,
    extra_dof: f64,
    rng: &mut ChaCha8Rng,
) -> MatrixNormalWishart {
    let dof = d_post as f64 + extra_dof;
    MatrixNormalWishart::new(
        normal(d_post, d_pre, rng) * faer::Scale(1.0 / (d_pre as f64).sqrt()),
        positive_definite(d_pre, rng) * faer::Scale(samples),
        positive_definite(d_post, rng) * faer::Scale(noise * dof),
        dof,
    )
    .expect("positive definite by construction")
}

/// A posterior with all sizes but its shape drawn too.
pub fn any_posterior(shape: (usize, usize), rng: &mut ChaCha8Rng) -> MatrixNormalWishart {
    let (noise, samples) = (rng.random_range(0.1..2.0), rng.random_range(1.0..20.0));
    let extra_dof = rng.random_range(2.0..20.0);
    posterior(shape, noise, samples, extra_dof, rng)
}

/// A network each of whose layers has a random posterior: noise variance near 0.3, V near 1/30, ν = d + 40.
pub fn network(
    widths: &[usize],
    activation: Activation,
    settings: &NetworkSettings,
    rng: &mut ChaCha8Rng,
) -> Network<f64> {
    network_of(widths, activation, settings, 30.0, rng)
}

/// The same with V near 1/`samples`.
pub fn network_of(
    widths: &[usize],
    activation: Activation,
    settings: &NetworkSettings,
    samples: f64,
    rng: &mut ChaCha8Rng,
) -> Network<f64> {
    let top = widths.len() - 1;
    let settings =
        NetworkSettings { hidden_layer_sizes: widths[1..top].to_vec(), activation, ..settings.clone() };
    let mut network = Network::new(&settings, widths[0], widths[top], rng).unwrap();
    for layer in network.hidden_mut() {
        set_posterior(layer, samples, rng);
    }
    network
        .output_mut()
        .update(|_, block| {
            set_posterior(block, samples, rng);
            Ok(())
        })
        .unwrap();
    network
}

fn set_posterior(layer: &mut Layer<f64>, samples: f64, rng: &mut ChaCha8Rng) {
    let q = posterior((layer.d_post(), layer.d_pre()), 0.3, samples, 40.0, rng);
    layer.set_natural(q.to_natural()).unwrap();
}

/// Largest difference between two matrices, relative to the largest entry of the second.
pub fn relative_difference(found: MatRef<'_, f64>, expected: MatRef<'_, f64>) -> f64 {
    assert_eq!((found.nrows(), found.ncols()), (expected.nrows(), expected.ncols()));
    let scale = expected.norm_max().max(f64::MIN_POSITIVE);
    let difference = (found - expected).norm_max();
    // A NaN would pass through the maximum of a norm.
    assert!(found.is_all_finite(), "{found:?}");
    difference / scale
}

/// Two matrices agree, relative to the largest entry of the second.
#[track_caller]
pub fn assert_close(found: MatRef<'_, f64>, expected: MatRef<'_, f64>, tolerance: f64, what: &str) {
    let difference = relative_difference(found, expected);
    assert!(difference <= tolerance, "{what}: off by {difference:e}\nfound {found:?}\nexpected {expected:?}");
}

/// Two numbers agree, relative to the second.
#[track_caller]
pub fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{what}: {found}, expected {expected}");
}

/// Mean and standard error of independent draws.
pub fn mean_and_error(draws: &[f64]) -> (f64, f64) {
    let n = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / n;
    let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// The mean of `draws` is within `errors` of its standard errors (and rounding) of `expected`.
#[track_caller]
pub fn assert_mean(draws: &[f64], expected: f64, errors: f64, what: &str) {
    let (mean, error) = mean_and_error(draws);
    assert!(
        (mean - expected).abs() <= errors * error + 1e-12 * expected.abs(),
        "{what}: mean {mean} ± {error}, expected {expected}"
    );
}

/// A table of `tests/reference`.
pub fn table(text: &str) -> Value {
    serde_json::from_str(text).expect("a reference table")
}

/// A number of a table.
pub fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// A matrix of a table, as it stands there.
pub fn matrix(value: &Value) -> Mat<f64> {
    let size = |key: &str| usize::try_from(value[key].as_u64().expect("a size")).expect("a small size");
    let (rows, columns) = (size("rows"), size("cols"));
    Mat::from_fn(rows, columns, |i, j| number(&value["data"][i * columns + j]))
}

/// A matrix of a table whose rows are samples, with samples as columns.
pub fn samples(value: &Value) -> Mat<f64> {
    matrix(value).transpose().to_owned()
}

/// Natural parameters of a table.
pub fn natural(value: &Value) -> NaturalParams {
    NaturalParams {
        pre_pre: matrix(&value["pre_pre"]),
        post_pre: matrix(&value["post_pre"]),
        post_post: matrix(&value["post_post"]),
        count: number(&value["count"]),
    }
}

/// The entries of an array of a table.
pub fn list(value: &Value) -> &[Value] {
    let entries = value.as_array().expect("an array");
    assert!(!entries.is_empty());
    entries
}

/// Whether entry (i, j) of activity k = 0 … 3 is to be inferred.
pub fn is_free(clamp: &Clamp<f64>, k: usize, i: usize, j: usize) -> bool {
    let mask = match k {
        0 => &clamp.free_input,
        3 => &clamp.free_output,
        _ => return true,
    };
    mask.as_ref().is_some_and(|mask| mask[(i, j)] == 1.0)
}

/// A file of ours with its metadata or some tensors changed, and the checksum that its content then has.
pub fn rewritten(
    bytes: &[u8],
    change_header: impl FnOnce(&str) -> String,
    mut change_tensor: impl FnMut(&str, &mut Vec<usize>, &mut Vec<u8>) -> bool,
) -> Vec<u8> {
    let file = SafeTensors::deserialize(bytes).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
    let (key, header) = metadata.metadata().as_ref().unwrap().iter().next().unwrap();
    let mut parts = Vec::new();
    for (name, view) in file.tensors().into_iter().filter(|(name, _)| name != "crc32") {
        let (mut shape, mut data) = (view.shape().to_vec(), view.data().to_vec());
        if change_tensor(&name, &mut shape, &mut data) {
            parts.push((name, view.dtype(), shape, data));
        }
    }
    let header = change_header(header);
    let mut crc = crc32fast::Hasher::new();
    crc.update(header.as_bytes());
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, _, _, data) in &parts {
        crc.update(data);
    }
    parts.push(("crc32".to_owned(), Dtype::U32, vec![1], crc.finalize().to_le_bytes().to_vec()));
    let views: Vec<_> = parts
        .iter()
        .map(|(name, dtype, shape, data)| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()))
        .collect();
    serialize(views, Some(HashMap::from([(key.clone(), header)]))).unwrap()
}
