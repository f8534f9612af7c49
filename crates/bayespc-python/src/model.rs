//! Fitted models, as Python sees them.

use std::collections::BTreeMap;

use bayespc::data::Inputs;
use bayespc::inference::RelaxationSettings;
use bayespc::learners::Rule;
use bayespc::model::{Model as Inner, ModelSettings};
use bayespc::prediction::Method;
use bayespc::{Result, Samples, Targets, Task};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{
    Array1, Array2, InputArray, columns, inputs, matrix, raised, refused, rows, values, vector,
};
use crate::network::Network;
use crate::pool::run;
use crate::predictive::Predictive;
use crate::progress::watched;

/// Targets: real values in rows, or class numbers.
#[derive(FromPyObject)]
pub enum TargetArray<'py> {
    /// Real numbers, `(n, d)`.
    Values(Array2<'py, f64>),
    /// Integers, `(n,)`.
    Labels(Array1<'py, i64>),
}

/// Class numbers as the library counts them; empty for real values.
pub fn labels(target: &TargetArray<'_>) -> PyResult<Vec<usize>> {
    match target {
        TargetArray::Values(_) => Ok(Vec::new()),
        TargetArray::Labels(array) => values(array)
            .iter()
            .map(|&label| usize::try_from(label).map_err(|_| refused(format!("class label {label} < 0"))))
            .collect(),
    }
}

/// The targets these are.
pub fn targets<'a>(target: &'a TargetArray<'_>, labels: &'a [usize], classes: usize) -> Targets<'a> {
    match target {
        TargetArray::Values(array) => Targets::Values(columns(array)),
        TargetArray::Labels(_) => Targets::Classes { labels, classes },
    }
}

pub fn samples<'a>(
    inputs: Inputs<'a>,
    targets: Targets<'a>,
    weights: Option<&'a [f64]>,
) -> PyResult<Samples<'a>> {
    let samples = Samples::new(inputs, targets).map_err(refused)?;
    weights.map_or(Ok(samples), |weights| samples.weighted(weights)).map_err(refused)
}

pub fn parse<'a, T: serde::Deserialize<'a>>(what: &str, json: &'a str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| refused(format!("{what}: {error}")))
}

pub fn json<T: serde::Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(refused)
}

/// Settings by the name of their preset, as JSON: `default`, `fast` or `paper`.
#[pyfunction]
pub fn preset_settings(name: &str) -> PyResult<String> {
    json(&match name {
        "default" => ModelSettings::default(),
        "fast" => ModelSettings::fast(),
        "paper" => ModelSettings::paper(),
        _ => return Err(refused(format!("preset = '{name}' is not one of default, fast, paper"))),
    })
}

/// Settings of a rule by name, as JSON: `feedback`, `relaxation` (the variant that learns) or `paper`.
#[pyfunction]
pub fn rule_settings(name: &str) -> PyResult<String> {
    json(&match name {
        "feedback" => ModelSettings::default().rule,
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
    pub inner: Inner,
}

impl Model {
    /// The method of this name, or that of the settings. What a name cannot say, such as the rule of the covariances
    /// or the seed of the draws, is as the model was fitted.
    fn method(&self, name: Option<&str>, draws: usize, seed: Option<u64>) -> PyResult<Method> {
        let own = self.inner.settings().method;
        Ok(match (name, own) {
            (None, own) | (Some("moments"), own @ Method::Moments { .. }) => own,
            (Some("moments"), _) => {
                Method::Moments { covariance: bayespc::network::CovarianceRule::default() }
            }
            (Some("monte_carlo"), Method::MonteCarlo { layer_noise, seed: fitted, .. }) => {
                Method::MonteCarlo { draws, seed: seed.unwrap_or(fitted), layer_noise }
            }
            (Some("monte_carlo"), _) => {
                let seed = seed.unwrap_or(self.inner.settings().training.seed);
                Method::MonteCarlo { draws, seed, layer_noise: true }
            }
            (Some("mean"), _) => Method::Mean,
            (Some("linearised"), _) => Method::Linearised,
            (Some(name), _) => return Err(refused(format!("method = '{name}' is not known"))),
        })
    }
}

#[pymethods]
impl Model {
    /// Fit, from the start or from a `previous` model.
    #[staticmethod]
    #[pyo3(signature = (x, y, classes, weights, settings, watch=None, previous=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords on the Python side")]
    fn fit(
        py: Python<'_>,
        x: InputArray<'_>,
        y: TargetArray<'_>,
        classes: usize,
        weights: Option<Array1<'_, f64>>,
        settings: &str,
        watch: Option<Py<PyAny>>,
        previous: Option<&Self>,
    ) -> PyResult<Self> {
        let settings: ModelSettings = parse("settings", settings)?;
        let labels = labels(&y)?;
        let weights = weights.as_ref().map(values);
        let samples = samples(inputs(&x), targets(&y, &labels, classes), weights)?;
        let result = watched(py, watch.as_ref(), |observer| match previous {
            Some(model) => model.inner.refit_watched(&samples, &settings, observer),
            None => Inner::fit_watched(&samples, &settings, observer),
        })?;
        Ok(Self { inner: result.map_err(raised)? })
    }

    /// A model around weights that were trained elsewhere, bias in the last column of each.
    #[staticmethod]
    fn from_weights(
        py: Python<'_>,
        layers: Vec<Array2<'_, f64>>,
        x: InputArray<'_>,
        y: TargetArray<'_>,
        classes: usize,
        weights: Option<Array1<'_, f64>>,
        settings: &str,
    ) -> PyResult<Self> {
        let settings: ModelSettings = parse("settings", settings)?;
        let layers: Vec<_> = layers.iter().map(matrix).collect();
        let labels = labels(&y)?;
        let weights = weights.as_ref().map(values);
        let samples = samples(inputs(&x), targets(&y, &labels, classes), weights)?;
        let inner = run(py, || Inner::from_weights(&layers, &samples, &settings))?;
        Ok(Self { inner: inner.map_err(raised)? })
    }

    /// A model for a stream, scaled by its first data, that has learned nothing yet.
    #[staticmethod]
    fn for_stream(
        py: Python<'_>,
        x: InputArray<'_>,
        y: TargetArray<'_>,
        classes: usize,
        settings: &str,
    ) -> PyResult<Self> {
        let settings: ModelSettings = parse("settings", settings)?;
        let labels = labels(&y)?;
        let samples = samples(inputs(&x), targets(&y, &labels, classes), None)?;
        let inner = run(py, || Inner::for_stream(&samples, &settings))?;
        Ok(Self { inner: inner.map_err(raised)? })
    }

    /// The model after one pass over more data; this one stays as it is.
    #[pyo3(signature = (x, y, classes, weights=None))]
    fn partial_fit(
        &self,
        py: Python<'_>,
        x: InputArray<'_>,
        y: TargetArray<'_>,
        classes: usize,
        weights: Option<Array1<'_, f64>>,
    ) -> PyResult<Self> {
        let labels = labels(&y)?;
        let weights = weights.as_ref().map(values);
        let samples = samples(inputs(&x), targets(&y, &labels, classes), weights)?;
        let inner = run(py, || -> Result<Inner> {
            let mut inner = self.inner.clone();
            inner.partial_fit(&samples)?;
            Ok(inner)
        })?;
        Ok(Self { inner: inner.map_err(raised)? })
    }

    /// Predict by a method of this name, or by the settings' own. `draws` and `seed` are for Monte Carlo.
    #[pyo3(signature = (x, method=None, draws=20, seed=None))]
    fn predict(
        &self,
        py: Python<'_>,
        x: InputArray<'_>,
        method: Option<&str>,
        draws: usize,
        seed: Option<u64>,
    ) -> PyResult<Predictive> {
        let method = self.method(method, draws, seed)?;
        let inputs = inputs(&x);
        let inner = run(py, || self.inner.predict_by(inputs, method))?;
        Ok(Predictive { inner: inner.map_err(raised)? })
    }

    /// How unlike the samples it was fitted to each sample is, by a method as in `predict`.
    #[pyo3(signature = (x, method=None, draws=20, seed=None))]
    fn unlike(
        &self,
        py: Python<'_>,
        x: InputArray<'_>,
        method: Option<&str>,
        draws: usize,
        seed: Option<u64>,
    ) -> PyResult<Vec<f64>> {
        let method = self.method(method, draws, seed)?;
        let inputs = inputs(&x);
        let unlike = run(py, || {
            let predictive = self.inner.predict_by(inputs, method)?;
            Ok(self.inner.unlike(inputs, &predictive))
        })?;
        unlike.map_err(raised)
    }

    /// Class probabilities, shape `(n, K)`, by a method as in `predict`.
    #[pyo3(signature = (x, method=None, draws=20, seed=None))]
    fn probabilities(
        &self,
        py: Python<'_>,
        x: InputArray<'_>,
        method: Option<&str>,
        draws: usize,
        seed: Option<u64>,
    ) -> PyResult<Py<PyArray2<f64>>> {
        let method = self.method(method, draws, seed)?;
        let inputs = inputs(&x);
        let probabilities = run(py, || self.inner.predict_probabilities_by(inputs, method))?;
        rows(py, probabilities.map_err(raised)?.as_ref())
    }

    /// Complexity and expected log-likelihood of the layers of every member.
    #[pyo3(signature = (x, y, classes, weights=None))]
    fn free_energy(
        &self,
        py: Python<'_>,
        x: InputArray<'_>,
        y: TargetArray<'_>,
        classes: usize,
        weights: Option<Array1<'_, f64>>,
    ) -> PyResult<Vec<Vec<(f64, f64)>>> {
        let labels = labels(&y)?;
        let weights = weights.as_ref().map(values);
        let samples = samples(inputs(&x), targets(&y, &labels, classes), weights)?;
        let members = run(py, || self.inner.free_energy(&samples))?.map_err(raised)?;
        let layers = |member: &Vec<bayespc::learning::FreeEnergy>| {
            member.iter().map(|f| (f.complexity, f.expected_log_likelihood)).collect()
        };
        Ok(members.iter().map(layers).collect())
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &run(py, || self.inner.to_bytes())?.map_err(raised)?))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Ok(Self { inner: run(py, || Inner::from_bytes(bytes))?.map_err(raised)? })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let module = py.import("bayespc._core")?;
        Ok((module.getattr("model_from_bytes")?, (self.to_bytes(py)?,)))
    }

    /// The network of one member, to look at or to train on; a copy.
    fn network(&self, py: Python<'_>, member: usize) -> PyResult<Network> {
        let found = self.inner.members().get(member);
        let member = found.ok_or_else(|| refused(format!("there is no member {member}")))?;
        Network::of_member(py, member, self.inner.settings())
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

    /// What was chosen for every member, as JSON.
    #[getter]
    fn plans(&self) -> PyResult<String> {
        let plan = |member: &bayespc::model::Member| member.plan(member.report.epochs);
        json(&self.inner.members().iter().map(plan).collect::<Vec<_>>())
    }

    /// What the search tried, as JSON.
    #[getter]
    fn candidates(&self) -> PyResult<String> {
        json(&self.inner.candidates())
    }

    /// Scores of samples that networks had not learned from, as JSON; null where nothing was searched.
    #[getter]
    fn held_out(&self) -> PyResult<String> {
        json(&self.inner.held_out())
    }

    /// What a user should know before trusting the model.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings().to_vec()
    }

    /// Whether training was stopped before its end.
    #[getter]
    fn interrupted(&self) -> bool {
        self.inner.was_interrupted()
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

    /// Batches that each member has learned from.
    #[getter]
    fn steps(&self) -> Vec<u64> {
        self.inner.members().iter().map(|member| member.steps).collect()
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

    /// The same model that predicts by this method.
    #[pyo3(signature = (method, draws=20, seed=None))]
    fn with_method(&self, method: &str, draws: usize, seed: Option<u64>) -> PyResult<Self> {
        let mut inner = self.inner.clone();
        inner.set_method(self.method(Some(method), draws, seed)?).map_err(raised)?;
        Ok(Self { inner })
    }
}
