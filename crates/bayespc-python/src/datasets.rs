//! Synthetic tasks and the UCI benchmark as arrays.

use std::path::PathBuf;

use bayespc_data::{DataSource, catalogue, load_uci, synthetic};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::arrays::{refused, rows};

type Table = (Py<PyArray2<f64>>, Py<PyArray2<f64>>);

/// Two interleaved half circles: points and classes.
#[pyfunction]
pub fn two_moons(
    py: Python<'_>,
    n: usize,
    noise: f64,
    seed: u64,
) -> PyResult<(Py<PyArray2<f64>>, Py<PyArray1<i64>>)> {
    let moons = synthetic::two_moons(n, noise, &mut ChaCha8Rng::seed_from_u64(seed)).map_err(refused)?;
    let labels: Vec<i64> = moons.labels.iter().map(|&label| label as i64).collect();
    Ok((rows(py, moons.features.as_ref())?, labels.into_pyarray(py).unbind()))
}

/// A curve whose noise grows with x.
#[pyfunction]
pub fn aleatoric(py: Python<'_>, n: usize, seed: u64) -> PyResult<Table> {
    let curve = synthetic::aleatoric(n, &mut ChaCha8Rng::seed_from_u64(seed));
    Ok((rows(py, curve.features.as_ref())?, rows(py, curve.targets.as_ref())?))
}

/// A cubic seen on both sides of a gap.
#[pyfunction]
pub fn epistemic(py: Python<'_>, n: usize, seed: u64) -> PyResult<Table> {
    let curve = synthetic::epistemic(n, &mut ChaCha8Rng::seed_from_u64(seed));
    Ok((rows(py, curve.features.as_ref())?, rows(py, curve.targets.as_ref())?))
}

/// Names of the UCI data sets.
#[pyfunction]
pub fn uci_names() -> Vec<&'static str> {
    catalogue().iter().map(|info| info.name).collect()
}

/// Features, targets, names of the features and name of the target.
#[pyfunction]
#[pyo3(signature = (name, folder=None, download=true))]
pub fn uci(
    py: Python<'_>,
    name: &str,
    folder: Option<PathBuf>,
    download: bool,
) -> PyResult<(Py<PyArray2<f64>>, Py<PyArray2<f64>>, Vec<String>, String)> {
    let mut source = DataSource::from_env();
    source.folder = folder.or(source.folder);
    source.download = download;
    let table = py.detach(|| load_uci(name, &source, &mut |_, _| {})).map_err(refused)?;
    Ok((
        rows(py, table.features.as_ref())?,
        rows(py, table.targets.as_ref())?,
        table.feature_names,
        table.target_name,
    ))
}

/// (train, test) row numbers of the benchmark's standard splits.
#[pyfunction]
pub fn standard_splits(
    py: Python<'_>,
    n: usize,
    n_splits: usize,
) -> Vec<(Py<PyArray1<i64>>, Py<PyArray1<i64>>)> {
    let numbers = |rows: Vec<usize>| {
        let rows: Vec<i64> = rows.into_iter().map(|row| row as i64).collect();
        rows.into_pyarray(py).unbind()
    };
    bayespc_data::standard_splits(n, n_splits)
        .into_iter()
        .map(|split| (numbers(split.train), numbers(split.test)))
        .collect()
}
