//! Sufficient statistics and matrix-normal-Wishart posteriors, as Python sees them.

use bayespc::distributions::{MatrixNormalWishart as InnerPosterior, SufficientStats as InnerStats};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::arrays::{Matrix, array, columns, matrix, refused, values, vector};

/// Sums over samples of pre- and post-synaptic outer products.
#[pyclass(module = "bayespc._core", frozen, eq)]
#[derive(Clone, PartialEq)]
pub struct SufficientStats {
    inner: InnerStats,
}

#[pymethods]
impl SufficientStats {
    /// Of samples in rows: `pre` with its column of ones, `(n, d_pre)`, and `post`, `(n, d_post)`.
    #[new]
    #[pyo3(signature = (pre, post, weights=None))]
    fn new(
        pre: PyReadonlyArray2<'_, f64>,
        post: PyReadonlyArray2<'_, f64>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
    ) -> PyResult<Self> {
        let (pre, post) = (columns(&pre)?, columns(&post)?);
        let inner = match &weights {
            None => InnerStats::of(pre, post),
            Some(weights) => InnerStats::weighted(pre, post, values(weights)?),
        };
        Ok(Self { inner: inner.map_err(refused)? })
    }

    /// The statistics of no data.
    #[staticmethod]
    fn zero(d_post: usize, d_pre: usize) -> Self {
        Self { inner: InnerStats::zero(d_post, d_pre) }
    }

    #[getter]
    fn pre_pre(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, self.inner.pre_pre.as_ref())
    }

    #[getter]
    fn post_pre(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, self.inner.post_pre.as_ref())
    }

    #[getter]
    fn post_post(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, self.inner.post_post.as_ref())
    }

    #[getter]
    fn count(&self) -> f64 {
        self.inner.count
    }

    fn __add__(&self, other: &Self) -> PyResult<Self> {
        let mut inner = self.inner.clone();
        inner.add(&other.inner).map_err(refused)?;
        Ok(Self { inner })
    }

    fn __mul__(&self, factor: f64) -> Self {
        let mut inner = self.inner.clone();
        inner.scale(factor);
        Self { inner }
    }

    fn __rmul__(&self, factor: f64) -> Self {
        self.__mul__(factor)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.inner.to_bytes().map_err(refused)?))
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Ok(Self { inner: InnerStats::from_bytes(bytes).map_err(refused)? })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let module = py.import("bayespc._core")?;
        Ok((module.getattr("stats_from_bytes")?, (self.to_bytes(py)?,)))
    }

    fn __repr__(&self) -> String {
        let (d_post, d_pre) = (self.inner.d_post(), self.inner.d_pre());
        format!("SufficientStats(d_post={d_post}, d_pre={d_pre}, count={})", self.inner.count)
    }
}

/// Statistics from their bytes, for pickle.
#[pyfunction]
pub fn stats_from_bytes(bytes: &[u8]) -> PyResult<SufficientStats> {
    SufficientStats::from_bytes(bytes)
}

/// Joint distribution of one layer's weights and noise precision.
#[pyclass(module = "bayespc._core", frozen)]
pub struct MatrixNormalWishart {
    pub inner: InnerPosterior,
}

#[pymethods]
impl MatrixNormalWishart {
    /// From M, V⁻¹, Ψ⁻¹ and ν.
    #[new]
    fn new(
        mean: PyReadonlyArray2<'_, f64>,
        col_precision: PyReadonlyArray2<'_, f64>,
        inv_scale: PyReadonlyArray2<'_, f64>,
        dof: f64,
    ) -> PyResult<Self> {
        let inner = InnerPosterior::new(matrix(&mean), matrix(&col_precision), matrix(&inv_scale), dof);
        Ok(Self { inner: inner.map_err(refused)? })
    }

    /// The posterior after data with these statistics: η ← η + T.
    fn update(&self, stats: &SufficientStats) -> PyResult<Self> {
        let mut natural = self.inner.to_natural();
        natural.add(&stats.inner).map_err(refused)?;
        Ok(Self { inner: InnerPosterior::from_natural(&natural).map_err(refused)? })
    }

    #[getter]
    fn mean(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, self.inner.mean())
    }

    #[getter]
    fn col_cov(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, self.inner.col_cov().as_ref())
    }

    #[getter]
    fn scale(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, self.inner.scale().as_ref())
    }

    #[getter]
    fn dof(&self) -> f64 {
        self.inner.dof()
    }

    fn expected_precision(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, self.inner.expected_precision().as_ref())
    }

    fn expected_covariance(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, self.inner.expected_covariance().map_err(refused)?.as_ref())
    }

    fn log_density(
        &self,
        weights: PyReadonlyArray2<'_, f64>,
        precision: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<f64> {
        self.inner.log_density(matrix(&weights).as_ref(), matrix(&precision).as_ref()).map_err(refused)
    }

    fn entropy(&self) -> f64 {
        self.inner.entropy()
    }

    fn kl_divergence(&self, other: &Self) -> PyResult<f64> {
        self.inner.kl_divergence(&other.inner).map_err(refused)
    }

    /// Σ_n ⟨log N(z_n | Wφ_n, Σ)⟩.
    fn expected_log_likelihood(&self, stats: &SufficientStats) -> f64 {
        self.inner.expected_log_likelihood(&stats.inner)
    }

    /// φᵀVφ of presynaptic vectors in rows.
    fn leverage(&self, py: Python<'_>, pre: PyReadonlyArray2<'_, f64>) -> PyResult<Py<PyArray1<f64>>> {
        let pre = columns(&pre)?;
        if pre.nrows() != self.inner.d_pre() {
            return Err(refused(format!("pre has {} columns, expected {}", pre.nrows(), self.inner.d_pre())));
        }
        Ok(vector(py, self.inner.leverage(pre)))
    }

    /// Draw (W, Σ⁻¹).
    fn sample(&self, py: Python<'_>, seed: u64) -> PyResult<(Matrix, Matrix)> {
        let draw = self.inner.sample(&mut ChaCha8Rng::seed_from_u64(seed));
        Ok((array(py, draw.weights.as_ref())?, array(py, draw.precision.precision().as_ref())?))
    }

    fn __repr__(&self) -> String {
        let (d_post, d_pre) = (self.inner.d_post(), self.inner.d_pre());
        format!("MatrixNormalWishart(d_post={d_post}, d_pre={d_pre}, dof={})", self.inner.dof())
    }
}
