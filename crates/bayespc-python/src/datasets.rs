//! Synthetic tasks, the UCI benchmark and images as arrays.

use std::path::PathBuf;

use bayespc_data::{DataSource, ImageSet, catalogue, load_images, load_uci, synthetic};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::arrays::{Matrix, refused, rows};
use crate::pool::run;

type Table = (Matrix, Matrix);
type Integers = Py<PyArray1<i64>>;

/// Row numbers and labels as Python counts them.
fn integers(py: Python<'_>, numbers: &[usize]) -> PyResult<Integers> {
    let numbers = numbers.iter().map(|&number| i64::try_from(number)).collect::<Result<Vec<_>, _>>();
    Ok(numbers.map_err(refused)?.into_pyarray(py).unbind())
}

/// Two interleaved half circles: points and classes.
#[pyfunction]
pub fn two_moons(py: Python<'_>, n: usize, noise: f64, seed: u64) -> PyResult<(Matrix, Integers)> {
    let moons = run(py, || synthetic::two_moons(n, noise, &mut ChaCha8Rng::seed_from_u64(seed)))?;
    let moons = moons.map_err(refused)?;
    Ok((rows(py, moons.features.as_ref())?, integers(py, &moons.labels)?))
}

/// A curve whose noise grows with x.
#[pyfunction]
pub fn aleatoric(py: Python<'_>, n: usize, seed: u64) -> PyResult<Table> {
    let curve = run(py, || synthetic::aleatoric(n, &mut ChaCha8Rng::seed_from_u64(seed)))?;
    Ok((rows(py, curve.features.as_ref())?, rows(py, curve.targets.as_ref())?))
}

/// A cubic seen on both sides of a gap.
#[pyfunction]
pub fn epistemic(py: Python<'_>, n: usize, seed: u64) -> PyResult<Table> {
    let curve = run(py, || synthetic::epistemic(n, &mut ChaCha8Rng::seed_from_u64(seed)))?;
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
) -> PyResult<(Matrix, Matrix, Vec<String>, String)> {
    let source = source(folder, download);
    let table = run(py, || load_uci(name, &source, &mut |_, _| {}))?.map_err(refused)?;
    Ok((
        rows(py, table.features.as_ref())?,
        rows(py, table.targets.as_ref())?,
        table.feature_names,
        table.target_name,
    ))
}

/// Where to look for data sets.
fn source(folder: Option<PathBuf>, download: bool) -> DataSource {
    let own = DataSource::from_env();
    DataSource { folder: folder.or(own.folder), download, ..own }
}

type Pixels = Py<PyArray2<f32>>;

/// Names of the sets of images.
#[pyfunction]
pub fn image_names() -> Vec<&'static str> {
    ImageSet::ALL.map(ImageSet::name).to_vec()
}

/// Images and classes to learn from and to test on, and the names of the classes.
#[pyfunction]
#[pyo3(signature = (name, folder=None, download=true))]
pub fn images(
    py: Python<'_>,
    name: &str,
    folder: Option<PathBuf>,
    download: bool,
) -> PyResult<(Pixels, Integers, Pixels, Integers, Vec<&'static str>)> {
    let known = || format!("name = '{name}' is not one of {}", image_names().join(", "));
    let set = ImageSet::named(name).ok_or_else(|| refused(known()))?;
    let source = source(folder, download);
    let images = run(py, || load_images(set, &source, &mut |_, _| {}))?.map_err(refused)?;
    let labels = |labels: &[u8]| -> Integers {
        labels.iter().map(|&label| i64::from(label)).collect::<Vec<_>>().into_pyarray(py).unbind()
    };
    Ok((
        rows(py, images.train_images.as_ref())?,
        labels(&images.train_labels),
        rows(py, images.test_images.as_ref())?,
        labels(&images.test_labels),
        set.classes().to_vec(),
    ))
}

/// (train, test) row numbers of the benchmark's standard splits.
#[pyfunction]
pub fn standard_splits(py: Python<'_>, n: usize, n_splits: usize) -> PyResult<Vec<(Integers, Integers)>> {
    run(py, || bayespc_data::standard_splits(n, n_splits))?
        .iter()
        .map(|split| Ok((integers(py, &split.train)?, integers(py, &split.test)?)))
        .collect()
}
