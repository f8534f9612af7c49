//! A fit whose networks others train, as Python sees it.
//!
//! ```python
//! model, wanted, _ = fit_step(x, y, classes, weights, settings, known, [])
//! _, _, made = fit_step(x, y, classes, weights, settings, known, [key for key, cost in wanted])   # anywhere
//! ```

use std::collections::{BTreeMap, BTreeSet};

use bayespc::model::{Model as Inner, ModelSettings, Networks, Step};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{InputArray, inputs, raised, values};
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
    weights: Option<PyReadonlyArray1<'_, f64>>,
    settings: &str,
    known: Networks,
    here: BTreeSet<String>,
) -> PyResult<Answer> {
    let settings: ModelSettings = parse("settings", settings)?;
    let labels = labels(&y)?;
    let weights = weights.as_ref().map(values).transpose()?;
    let samples = samples(inputs(&x)?, targets(&y, &labels, classes)?, weights)?;
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
