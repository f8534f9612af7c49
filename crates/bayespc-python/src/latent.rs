//! Latent models of tables, as Python sees them.

use bayespc::model::{LatentModel as Inner, LatentSettings};
use numpy::{PyArray1, PyArray2, PyArray3};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Array2, Matrix, columns, raised, rows, stacked, vector};
use crate::model::{json, parse};
use crate::pool::run;
use crate::progress::watched;

/// A latent model from the bytes of its file, for pickle.
#[pyfunction]
pub fn latent_from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<LatentModel> {
    let inner = run(py, || Inner::from_bytes(bytes))?;
    Ok(LatentModel { inner: inner.map_err(raised)? })
}

/// Whether these are the bytes of a latent model's file, damaged or not.
#[pyfunction]
pub fn is_latent(bytes: &[u8]) -> bool {
    Inner::is_in(bytes)
}

/// A fitted latent model.
#[pyclass(module = "bayespc._core", frozen)]
pub struct LatentModel {
    inner: Inner,
}

#[pymethods]
impl LatentModel {
    /// Fit to rows with NaN where a cell is missing.
    #[staticmethod]
    #[pyo3(signature = (x, settings, watch=None))]
    fn fit(py: Python<'_>, x: Array2<'_, f64>, settings: &str, watch: Option<Py<PyAny>>) -> PyResult<Self> {
        let settings: LatentSettings = parse("settings", settings)?;
        let table = columns(&x);
        let inner = watched(py, watch.as_ref(), |observer| Inner::fit(table, &settings, observer))?;
        Ok(Self { inner: inner.map_err(raised)? })
    }

    /// log p of the cells of each row that are there, shape `(n,)`.
    fn log_density(&self, py: Python<'_>, x: Array2<'_, f64>) -> PyResult<Py<PyArray1<f64>>> {
        let table = columns(&x);
        Ok(vector(py, run(py, || self.inner.log_density(table))?.map_err(raised)?))
    }

    /// The rows with missing cells filled in, and the deviation of each cell, both of shape `(n, d)`.
    fn impute(&self, py: Python<'_>, x: Array2<'_, f64>) -> PyResult<(Matrix, Matrix)> {
        let table = columns(&x);
        let completed = run(py, || self.inner.impute(table))?.map_err(raised)?;
        Ok((rows(py, completed.values.as_ref())?, rows(py, completed.std.as_ref())?))
    }

    /// The rows with missing cells drawn, `(draws, n, d)`.
    fn draw_missing(
        &self,
        py: Python<'_>,
        x: Array2<'_, f64>,
        draws: usize,
        seed: u64,
    ) -> PyResult<Py<PyArray3<f64>>> {
        let table = columns(&x);
        let drawn = run(py, || self.inner.draw_missing(table, draws, seed))?.map_err(raised)?;
        stacked(py, &drawn, table.nrows(), table.ncols())
    }

    /// Rows drawn from the model, `(n, d)`.
    fn sample(&self, py: Python<'_>, n: usize, seed: u64) -> PyResult<Py<PyArray2<f64>>> {
        let drawn = run(py, || self.inner.sample(n, seed))?.map_err(raised)?;
        rows(py, drawn.as_ref())
    }

    /// Mean latents of each row, `(n, k)`.
    fn latents(&self, py: Python<'_>, x: Array2<'_, f64>) -> PyResult<Py<PyArray2<f64>>> {
        let table = columns(&x);
        let latents = run(py, || self.inner.latents(table))?.map_err(raised)?;
        rows(py, latents.as_ref())
    }

    /// Probability that each row comes from each part, `(n, parts)`.
    fn memberships(&self, py: Python<'_>, x: Array2<'_, f64>) -> PyResult<Py<PyArray2<f64>>> {
        let table = columns(&x);
        let shares = run(py, || self.inner.memberships(table))?.map_err(raised)?;
        rows(py, shares.as_ref())
    }

    /// Number of latents.
    #[getter]
    fn n_latents(&self) -> usize {
        self.inner.n_latents()
    }

    /// Number of parts.
    #[getter]
    fn n_parts(&self) -> usize {
        self.inner.n_parts()
    }

    /// Number of columns.
    #[getter]
    fn n_columns(&self) -> usize {
        self.inner.n_columns()
    }

    /// Steps of learning it took.
    #[getter]
    fn n_iterations(&self) -> usize {
        self.inner.n_iterations()
    }

    /// What was tried, as JSON.
    #[getter]
    fn candidates(&self) -> PyResult<String> {
        json(&self.inner.candidates())
    }

    /// Texts kept with the model, as JSON.
    #[getter]
    fn notes(&self) -> PyResult<String> {
        json(self.inner.notes())
    }

    /// The same model with one more text.
    fn with_note(&self, name: String, text: String) -> Self {
        let mut inner = self.inner.clone();
        inner.notes_mut().insert(name, text);
        Self { inner }
    }

    /// The bytes of its file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = run(py, || self.inner.to_bytes())?.map_err(raised)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let make = py.import("bayespc._core")?.getattr("latent_from_bytes")?;
        Ok((make, (self.to_bytes(py)?,)))
    }
}
