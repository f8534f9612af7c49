//! What Dask needs besides rounds: a fit whose networks others train, and parts with only the rows that rounds use.
//!
//! ```python
//! model, wanted, _ = fit_step(x, y, classes, weights, settings, known, [])
//! _, _, made = fit_step(x, y, classes, weights, settings, known, [key for key, cost in wanted])   # anywhere
//! ```

use std::collections::{BTreeMap, BTreeSet};

use bayespc::model::rounds::{Rounds, ThinPart};
use bayespc::model::{Model as Inner, ModelSettings, Networks, Step};
use bayespc::{Result, Task};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Array1, InputArray, inputs, raised, values};
use crate::model::{Model, TargetArray, labels, parse, samples, targets};
use crate::pool::run;

/// The model if all its networks are known; those that are wanted, each with its cost; those that were made here.
type Answer = (Option<Model>, Vec<(String, u64)>, BTreeMap<String, Py<PyBytes>>);

/// Fit as far as that is possible with the networks that are `known`, or train those of them that are asked for by
/// `here`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords on the Python side")]
pub fn fit_step(
    py: Python<'_>,
    x: InputArray<'_>,
    y: TargetArray<'_>,
    classes: usize,
    weights: Option<Array1<'_, f64>>,
    settings: &str,
    known: Networks,
    here: BTreeSet<String>,
) -> PyResult<Answer> {
    let settings: ModelSettings = parse("settings", settings)?;
    let labels = labels(&y)?;
    let weights = weights.as_ref().map(values);
    let samples = samples(inputs(&x), targets(&y, &labels, classes), weights)?;
    let step = run(py, || Inner::fit_step(&samples, &settings, &known, &here))?.map_err(raised)?;
    Ok(match step {
        Step::Model(inner) => (Some(Model { inner: *inner }), Vec::new(), BTreeMap::new()),
        Step::Wanted(wanted) => (None, wanted, BTreeMap::new()),
        Step::Made(networks) => {
            let made = networks.iter().map(|(key, bytes)| (key.clone(), PyBytes::new(py, bytes).unbind()));
            (None, Vec::new(), made.collect())
        }
    })
}

/// The rows of a part that the next rounds use, each round's by itself; nothing where every round uses all rows.
#[pyfunction]
#[pyo3(signature = (model, x, y, weights, first_row, ahead))]
pub fn rounds_thin(
    py: Python<'_>,
    model: &[u8],
    x: InputArray<'_>,
    y: TargetArray<'_>,
    weights: Option<Array1<'_, f64>>,
    first_row: u64,
    ahead: u64,
) -> PyResult<Vec<Py<PyBytes>>> {
    let labels = labels(&y)?;
    let weights = weights.as_ref().map(values);
    let rounds = run(py, || Rounds::from_bytes(model))?.map_err(raised)?;
    let classes = match rounds.task() {
        Some(Task::Classification { classes }) => classes,
        _ => 0,
    };
    let inputs = inputs(&x);
    let n_rows = inputs.n_samples() as u64;
    let weightless = weights.is_some_and(|weights| weights.iter().all(|&weight| weight == 0.0));
    let samples =
        if weightless { None } else { Some(samples(inputs, targets(&y, &labels, classes), weights)?) };
    let parts = run(py, || -> Result<Vec<Vec<u8>>> {
        rounds.thin(samples.as_ref(), (first_row, n_rows), ahead)?.iter().map(ThinPart::to_bytes).collect()
    })?;
    Ok(parts.map_err(raised)?.iter().map(|bytes| PyBytes::new(py, bytes).unbind()).collect())
}

/// What the rows of a part say in the round that is due, for which they were taken by `rounds_thin`.
#[pyfunction]
pub fn rounds_statistics_of_thin<'py>(
    py: Python<'py>,
    model: &[u8],
    part: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes =
        run(py, || Rounds::from_bytes(model)?.statistics_of_thin(&ThinPart::from_bytes(part)?)?.to_bytes())?;
    Ok(PyBytes::new(py, &bytes.map_err(raised)?))
}
