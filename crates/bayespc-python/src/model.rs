//! Fitted models, as Python sees them.

use std::collections::BTreeMap;

use bayespc::inference::RelaxationSettings;
use bayespc::learners::Rule;
use bayespc::model::selection::{self, SearchSettings};
use bayespc::model::{Model as Inner, ModelSettings, Targets, Task};
use bayespc::prediction::Method;
use bayespc::{Error, Result};
use numpy::{PyArray1, PyArray2, PyArray3, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Samples, columns, refused, rows, stacked, values, vector, with_samples};
use crate::network::Network;
use crate::predictive::Predictive;
use crate::progress::watched;

/// Targets: real values in rows, or class numbers.
#[derive(FromPyObject)]
pub enum TargetArray<'py> {
    /// float64, `(n, d)`.
    Values(PyReadonlyArray2<'py, f64>),
    /// int64, `(n,)`.
    Labels(PyReadonlyArray1<'py, i64>),
}

/// Class numbers as the library counts them; empty for real values.
fn labels(target: &TargetArray<'_>) -> PyResult<Vec<usize>> {
    match target {
        TargetArray::Values(_) => Ok(Vec::new()),
        TargetArray::Labels(array) => values(array)?
            .iter()
            .map(|&label| usize::try_from(label).map_err(|_| refused(format!("class label {label} < 0"))))
            .collect(),
    }
}

fn targets<'a>(target: &'a TargetArray<'_>, labels: &'a [usize], classes: usize) -> PyResult<Targets<'a>> {
    Ok(match target {
        TargetArray::Values(array) => Targets::Values(columns(array)?),
        TargetArray::Labels(_) => Targets::Classes { labels, classes },
    })
}

pub fn parse<'a, T: serde::Deserialize<'a>>(what: &str, json: &'a str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| refused(format!("{what}: {error}")))
}

pub fn json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(refused)
}

/// The library's default settings, as JSON.
#[pyfunction]
pub fn default_settings() -> PyResult<String> {
    json(&ModelSettings::default())
}

/// The paper's settings, as JSON.
#[pyfunction]
pub fn paper_settings() -> PyResult<String> {
    json(&ModelSettings::paper())
}

/// Settings of a rule by name, as JSON: `feedback`, `relaxation` (the variant that learns) or `paper`.
#[pyfunction]
pub fn rule_settings(name: &str) -> PyResult<String> {
    json(&match name {
        "feedback" => Rule::default(),
        "relaxation" => Rule::Relaxation(RelaxationSettings::tied()),
        "paper" => Rule::Relaxation(RelaxationSettings::paper()),
        _ => return Err(refused(format!("rule = '{name}' is not one of feedback, relaxation, paper"))),
    })
}

/// A model from the bytes of its file, for pickle.
#[pyfunction]
pub fn model_from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Model> {
    Model::from_bytes(py, bytes)
}

/// A fitted model.
#[pyclass(module = "bayespc._core", frozen)]
pub struct Model {
    inner: Inner,
}

#[pymethods]
impl Model {
    /// Fit, from the start or from a `previous` model; with `search` (JSON), settings are chosen from the data
    /// first. Returns the model and whether the user interrupted.
    #[staticmethod]
    #[pyo3(signature = (x, y, classes, weights, settings, watch=None, previous=None, search=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords on the Python side")]
    fn fit(
        py: Python<'_>,
        x: Samples<'_>,
        y: TargetArray<'_>,
        classes: usize,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        settings: &str,
        watch: Option<Py<PyAny>>,
        previous: Option<&Self>,
        search: Option<&str>,
    ) -> PyResult<(Self, bool)> {
        let settings: ModelSettings = parse("settings", settings)?;
        let search: Option<SearchSettings> = search.map(|text| parse("search", text)).transpose()?;
        let labels = labels(&y)?;
        let targets = targets(&y, &labels, classes)?;
        let weights = weights.as_ref().map(values).transpose()?;
        let (result, interrupted) = with_samples!(x, |input| watched(py, watch.as_ref(), |progress| {
            match (previous, &search) {
                // What was chosen for the first fit holds for those that go on from it.
                (Some(model), Some(_)) => {
                    let chosen = model.inner.settings();
                    let settings = ModelSettings {
                        network: chosen.network.clone(),
                        variants: chosen.variants.clone(),
                        temperature: chosen.temperature,
                        ..settings
                    };
                    model.inner.refit(input, targets, weights, &settings, progress)
                }
                (Some(model), None) => model.inner.refit(input, targets, weights, &settings, progress),
                (None, None) => Inner::fit(input, targets, weights, &settings, progress),
                (None, Some(search)) => {
                    selection::choose_and_fit(input, targets, weights, &settings, search, progress)
                }
            }
        }))?;
        Ok((Self { inner: result.map_err(refused)? }, interrupted))
    }

    /// A model for a stream, scaled by its first data, that has learned nothing yet.
    #[staticmethod]
    fn for_stream(
        py: Python<'_>,
        x: Samples<'_>,
        y: TargetArray<'_>,
        classes: usize,
        settings: &str,
    ) -> PyResult<Self> {
        let settings: ModelSettings = parse("settings", settings)?;
        let labels = labels(&y)?;
        let targets = targets(&y, &labels, classes)?;
        let inner = with_samples!(x, |input| py.detach(|| Inner::for_stream(input, targets, &settings)));
        Ok(Self { inner: inner.map_err(refused)? })
    }

    /// The model after one pass over more data; this one stays as it is.
    #[pyo3(signature = (x, y, classes, weights=None))]
    fn partial_fit(
        &self,
        py: Python<'_>,
        x: Samples<'_>,
        y: TargetArray<'_>,
        classes: usize,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let labels = labels(&y)?;
        let targets = targets(&y, &labels, classes)?;
        let weights = weights.as_ref().map(values).transpose()?;
        let inner = with_samples!(x, |input| py.detach(|| -> Result<Inner> {
            let mut inner = self.inner.clone();
            inner.partial_fit(input, targets, weights)?;
            Ok(inner)
        }));
        Ok(Self { inner: inner.map_err(refused)? })
    }

    /// Predict by a method given as JSON, or by the settings' own.
    #[pyo3(signature = (x, method=None))]
    fn predict(&self, py: Python<'_>, x: Samples<'_>, method: Option<&str>) -> PyResult<Predictive> {
        let method: Method = match method {
            Some(text) => parse("method", text)?,
            None => self.inner.settings().method,
        };
        let inner = with_samples!(x, |input| py.detach(|| self.inner.predict_by(input, method)));
        Ok(Predictive { inner: inner.map_err(refused)? })
    }

    /// Class probabilities, shape `(n, K)`.
    fn probabilities(&self, py: Python<'_>, x: Samples<'_>) -> PyResult<Py<PyArray2<f64>>> {
        let probabilities = with_samples!(x, |input| py.detach(|| self.inner.predict_probabilities(input)));
        rows(py, probabilities.map_err(refused)?.as_ref())
    }

    /// Complexity and expected log-likelihood of every member's layers, shape `(members, layers, 2)`.
    #[pyo3(signature = (x, y, classes, weights=None))]
    fn free_energy(
        &self,
        py: Python<'_>,
        x: Samples<'_>,
        y: TargetArray<'_>,
        classes: usize,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Py<PyArray3<f64>>> {
        let labels = labels(&y)?;
        let targets = targets(&y, &labels, classes)?;
        let weights = weights.as_ref().map(values).transpose()?;
        let members = with_samples!(x, |input| py.detach(|| self.inner.free_energy(input, targets, weights)));
        let members = members.map_err(refused)?;
        let layers = members.first().ok_or_else(|| refused(Error::NotFitted))?.len();
        let tables: Vec<_> = members
            .iter()
            .map(|member| {
                faer::Mat::from_fn(2, layers, |part, layer| match part {
                    0 => member[layer].complexity,
                    _ => member[layer].expected_log_likelihood,
                })
            })
            .collect();
        stacked(py, &tables, 2, layers)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.inner.to_bytes()).map_err(refused)?))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Ok(Self { inner: py.detach(|| Inner::from_bytes(bytes)).map_err(refused)? })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let module = py.import("bayespc._core")?;
        Ok((module.getattr("model_from_bytes")?, (self.to_bytes(py)?,)))
    }

    /// The network of one member, to look at or to train on; a copy.
    fn network(&self, member: usize) -> PyResult<Network> {
        let found = self.inner.members().get(member);
        let member = found.ok_or_else(|| refused(format!("there is no member {member}")))?;
        Network::of_member(member, self.inner.settings())
    }

    /// Settings, as JSON.
    #[getter]
    fn settings(&self) -> PyResult<String> {
        json(self.inner.settings())
    }

    /// What training did per member, as JSON.
    #[getter]
    fn reports(&self) -> PyResult<String> {
        json(&self.inner.reports())
    }

    /// Number of classes, 0 for regression.
    #[getter]
    fn classes(&self) -> usize {
        match self.inner.task() {
            Task::Regression => 0,
            Task::Classification { classes } => classes,
        }
    }

    #[getter]
    fn n_features(&self) -> usize {
        self.inner.n_features()
    }

    #[getter]
    fn n_targets(&self) -> usize {
        self.inner.n_targets()
    }

    #[getter]
    fn n_members(&self) -> usize {
        self.inner.members().len()
    }

    #[getter]
    fn n_seen(&self) -> f64 {
        self.inner.n_seen()
    }

    /// Temperature of the class probabilities.
    #[getter]
    fn temperature(&self) -> f64 {
        self.inner.temperature()
    }

    /// Offset and scale of the inputs.
    #[getter]
    fn input_scaling(&self, py: Python<'_>) -> (Py<PyArray1<f64>>, Py<PyArray1<f64>>) {
        let scaling = self.inner.input_scaling();
        (vector(py, scaling.offset.clone()), vector(py, scaling.scale.clone()))
    }

    /// Offset and scale of the targets.
    #[getter]
    fn target_scaling(&self, py: Python<'_>) -> (Py<PyArray1<f64>>, Py<PyArray1<f64>>) {
        let scaling = self.inner.target_scaling();
        (vector(py, scaling.offset.clone()), vector(py, scaling.scale.clone()))
    }

    #[getter]
    fn notes(&self) -> BTreeMap<String, String> {
        self.inner.notes().clone()
    }

    /// The same model with these notes.
    fn with_notes(&self, notes: BTreeMap<String, String>) -> Self {
        let mut inner = self.inner.clone();
        *inner.notes_mut() = notes;
        Self { inner }
    }

    /// The same model that predicts by this method, given as JSON.
    fn with_method(&self, method: &str) -> PyResult<Self> {
        let mut inner = self.inner.clone();
        inner.set_method(parse("method", method)?).map_err(refused)?;
        Ok(Self { inner })
    }
}
