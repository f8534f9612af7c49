//! Relevance of columns and models without some of them, as Python sees them.

use numpy::PyArray1;
use pyo3::prelude::*;

use crate::arrays::{Array1, InputArray, inputs, raised, values, vector};
use crate::model::{Model, TargetArray, labels, samples, targets};
use crate::pool::run;

/// Number of a column, its cost in nats, and the held-out log density without it and those before it.
type Step = (usize, f64, Option<f64>);

/// What it would cost to silence each column, given by the numbers of its features.
#[pyfunction]
pub fn relevance(py: Python<'_>, model: &Model, columns: Vec<Vec<usize>>) -> PyResult<Py<PyArray1<f64>>> {
    Ok(vector(py, run(py, || model.inner.relevance(&columns))?.map_err(raised)?))
}

/// The model without the columns that it can do without, the held-out log density with all, the path, and how many of it
/// are silent.
#[pyfunction]
#[pyo3(signature = (model, x, y, classes, columns, tolerance, weights=None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn prune(
    py: Python<'_>,
    model: &Model,
    x: InputArray<'_>,
    y: TargetArray<'_>,
    classes: usize,
    columns: Vec<Vec<usize>>,
    tolerance: f64,
    weights: Option<Array1<'_, f64>>,
) -> PyResult<(Model, f64, Vec<Step>, usize)> {
    let labels = labels(&y)?;
    let weights = weights.as_ref().map(values);
    let samples = samples(inputs(&x), targets(&y, &labels, classes), weights)?;
    let pruning = run(py, || model.inner.prune(&samples, &columns, tolerance))?.map_err(raised)?;
    let path = pruning.path.iter().map(|step| (step.column, step.cost, step.log_density)).collect();
    Ok((Model { inner: pruning.model }, pruning.log_density, path, pruning.silenced))
}
