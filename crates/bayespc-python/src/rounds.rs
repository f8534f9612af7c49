//! Learning a table in parts, as Python sees it: pure functions of bytes.
//!
//! ```python
//! model = rounds_begin(settings, rounds, classes)
//! while rounds_next_pass(model) is not None:
//!     parts = [rounds_statistics(model, x, y, weights, first_row) for …]
//!     model = rounds_absorb(model, parts)
//! ```

use bayespc::model::ModelSettings;
use bayespc::model::rounds::{PartStatistics, RoundSettings, Rounds};
use bayespc::{Result, Samples, Task};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::arrays::{Array1, InputArray, inputs, raised, refused, values};
use crate::model::{TargetArray, json, labels, parse, targets};
use crate::pool::run;

/// Settings of rounds where nothing is said, as JSON.
#[pyfunction]
pub fn rounds_settings() -> PyResult<String> {
    json(&RoundSettings::default())
}

/// A model that is to be learned in rounds: settings of the model and of the rounds as JSON, the number of classes (0
/// for real values), and the number of rows if it is known (else 0).
#[pyfunction]
#[pyo3(signature = (settings, rounds, classes, rows=0))]
pub fn rounds_begin<'py>(
    py: Python<'py>,
    settings: &str,
    rounds: &str,
    classes: usize,
    rows: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let settings: ModelSettings = parse("settings", settings)?;
    let rounds: RoundSettings = parse("rounds", rounds)?;
    let task = if classes == 0 { Task::Regression } else { Task::Classification { classes } };
    bytes(py, || Rounds::begin(&settings, &rounds, task)?.expecting(rows)?.to_bytes())
}

/// The pass over all parts that is due, as JSON; none if the model is finished.
#[pyfunction]
pub fn rounds_next_pass(py: Python<'_>, model: &[u8]) -> PyResult<Option<String>> {
    let rounds = run(py, || Rounds::from_bytes(model))?.map_err(raised)?;
    rounds.next_pass().map(|pass| json(&pass)).transpose()
}

/// What the rows of a part say in the pass that is due. `first_row` is the number of its first row in the whole table;
/// a part may have no rows.
#[pyfunction]
#[pyo3(signature = (model, x, y, weights, first_row))]
pub fn rounds_statistics<'py>(
    py: Python<'py>,
    model: &[u8],
    x: InputArray<'_>,
    y: TargetArray<'_>,
    weights: Option<Array1<'_, f64>>,
    first_row: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let (x, labels) = (inputs(&x), labels(&y)?);
    let weights = weights.as_ref().map(values);
    let rounds = run(py, || Rounds::from_bytes(model))?.map_err(raised)?;
    let classes = match rounds.task() {
        Some(Task::Classification { classes }) => classes,
        _ => 0,
    };
    let y = targets(&y, &labels, classes);
    if x.n_samples() == 0 {
        return bytes(py, || rounds.statistics(None, first_row)?.to_bytes());
    }
    let samples = Samples::new(x, y).map_err(refused)?;
    match weights {
        Some(weights) if weights.len() == samples.n_samples() && weights.iter().all(|&w| w == 0.0) => {
            let n_rows = samples.n_samples() as u64;
            bytes(py, || rounds.statistics_of_weightless(n_rows, first_row)?.to_bytes())
        }
        Some(weights) => {
            let samples = samples.weighted(weights).map_err(refused)?;
            bytes(py, || rounds.statistics(Some(&samples), first_row)?.to_bytes())
        }
        None => bytes(py, || rounds.statistics(Some(&samples), first_row)?.to_bytes()),
    }
}

/// What several parts say together, as the statistics of one.
#[pyfunction]
pub fn rounds_combine<'py>(
    py: Python<'py>,
    model: &[u8],
    parts: Vec<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    bytes(py, || Rounds::from_bytes(model)?.combine(read(&parts)?)?.to_bytes())
}

/// What becomes of the model by a pass over all parts.
#[pyfunction]
pub fn rounds_absorb<'py>(
    py: Python<'py>,
    model: &[u8],
    parts: Vec<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    bytes(py, || Rounds::from_bytes(model)?.absorb(read(&parts)?)?.to_bytes())
}

fn read(parts: &[PyBackedBytes]) -> Result<Vec<PartStatistics>> {
    parts.iter().map(|part| PartStatistics::from_bytes(part)).collect()
}

/// Bytes that are made without the GIL.
fn bytes(py: Python<'_>, work: impl FnOnce() -> Result<Vec<u8>> + Send) -> PyResult<Bound<'_, PyBytes>> {
    Ok(PyBytes::new(py, &run(py, work)?.map_err(raised)?))
}
