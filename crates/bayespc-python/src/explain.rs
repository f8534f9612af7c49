//! Attributions of predictions, as Python sees them.

use bayespc::model::Quantity;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::arrays::{Array2, InputArray, columns, inputs, raised, rows, vector};
use crate::model::{Model, parse};
use crate::pool::run;

/// Base, shape `(n,)`, and values, shape `(n, d)`, of a quantity (`mean`, `aleatoric` or `epistemic`) of a target or class, from
/// the average row or the mean over `baseline` rows.
#[pyfunction]
#[pyo3(signature = (model, x, of, target, baseline=None))]
#[expect(clippy::type_complexity, reason = "two arrays")]
pub fn explain(
    py: Python<'_>,
    model: &Model,
    x: InputArray<'_>,
    of: &str,
    target: usize,
    baseline: Option<Array2<'_, f64>>,
) -> PyResult<(Py<PyArray1<f64>>, Py<PyArray2<f64>>)> {
    let of: Quantity = parse("of", &format!("\"{of}\""))?;
    let inputs = inputs(&x);
    let baseline = baseline.as_ref().map(columns);
    let explanation = run(py, || match baseline {
        Some(baseline) => model.inner.explain_from(inputs, of, target, baseline),
        None => model.inner.explain(inputs, of, target),
    })?;
    let explanation = explanation.map_err(raised)?;
    Ok((vector(py, explanation.base), rows(py, explanation.values.as_ref())?))
}
