//! Sufficient statistics and matrix-normal-Wishart posteriors, as Python sees them.

use bayespc::distributions::{MatrixNormalWishart as InnerPosterior, SufficientStats as InnerStats};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::arrays::{Array1, Array2, Matrix, array, columns, matrix, raised, refused, values, vector};
use crate::pool::run;

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
        py: Python<'_>,
        pre: Array2<'_, f64>,
        post: Array2<'_, f64>,
        weights: Option<Array1<'_, f64>>,
    ) -> PyResult<Self> {
        let (pre, post) = (columns(&pre), columns(&post));
        let weights = weights.as_ref().map(values);
        let inner = run(py, || match weights {
            None => InnerStats::of(pre, post),
            Some(weights) => InnerStats::weighted(pre, post, weights),
        })?;
        Ok(Self { inner: inner.map_err(raised)? })
    }

    /// The statistics of no data.
    #[staticmethod]
    fn zero(py: Python<'_>, d_post: usize, d_pre: usize) -> PyResult<Self> {
        Ok(Self { inner: run(py, || InnerStats::zero(d_post, d_pre))? })
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

    fn __add__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let mut inner = self.inner.clone();
        run(py, || inner.add(&other.inner))?.map_err(raised)?;
        Ok(Self { inner })
    }

    fn __mul__(&self, py: Python<'_>, factor: f64) -> PyResult<Self> {
        let mut inner = self.inner.clone();
        run(py, || inner.scale(factor))?;
        Ok(Self { inner })
    }

    fn __rmul__(&self, py: Python<'_>, factor: f64) -> PyResult<Self> {
        self.__mul__(py, factor)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &run(py, || self.inner.to_bytes())?.map_err(raised)?))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        Ok(Self { inner: run(py, || InnerStats::from_bytes(bytes))?.map_err(raised)? })
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
pub fn stats_from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<SufficientStats> {
    SufficientStats::from_bytes(py, bytes)
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
        py: Python<'_>,
        mean: Array2<'_, f64>,
        col_precision: Array2<'_, f64>,
        inv_scale: Array2<'_, f64>,
        dof: f64,
    ) -> PyResult<Self> {
        let (mean, col_precision, inv_scale) = (matrix(&mean), matrix(&col_precision), matrix(&inv_scale));
        let inner = run(py, || InnerPosterior::new(mean, col_precision, inv_scale, dof))?;
        Ok(Self { inner: inner.map_err(raised)? })
    }

    /// The posterior after data with these statistics: η ← η + T.
    fn update(&self, py: Python<'_>, stats: &SufficientStats) -> PyResult<Self> {
        let inner = run(py, || {
            let mut natural = self.inner.to_natural();
            natural.add(&stats.inner)?;
            InnerPosterior::from_natural(&natural)
        })?;
        Ok(Self { inner: inner.map_err(raised)? })
    }

    #[getter]
    fn mean(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, self.inner.mean())
    }

    #[getter]
    fn col_cov(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, run(py, || self.inner.col_cov())?.as_ref())
    }

    #[getter]
    fn scale(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, run(py, || self.inner.scale())?.as_ref())
    }

    #[getter]
    fn dof(&self) -> f64 {
        self.inner.dof()
    }

    fn expected_precision(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, run(py, || self.inner.expected_precision())?.as_ref())
    }

    fn expected_covariance(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        array(py, run(py, || self.inner.expected_covariance())?.map_err(raised)?.as_ref())
    }

    fn log_density(
        &self,
        py: Python<'_>,
        weights: Array2<'_, f64>,
        precision: Array2<'_, f64>,
    ) -> PyResult<f64> {
        let (weights, precision) = (matrix(&weights), matrix(&precision));
        run(py, || self.inner.log_density(weights.as_ref(), precision.as_ref()))?.map_err(raised)
    }

    fn entropy(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, || self.inner.entropy())
    }

    fn kl_divergence(&self, py: Python<'_>, other: &Self) -> PyResult<f64> {
        run(py, || self.inner.kl_divergence(&other.inner))?.map_err(raised)
    }

    /// Σ_n ⟨log N(z_n | Wφ_n, Σ)⟩.
    fn expected_log_likelihood(&self, py: Python<'_>, stats: &SufficientStats) -> PyResult<f64> {
        run(py, || self.inner.expected_log_likelihood(&stats.inner))
    }

    /// φᵀVφ of presynaptic vectors in rows.
    fn leverage(&self, py: Python<'_>, pre: Array2<'_, f64>) -> PyResult<Py<PyArray1<f64>>> {
        let pre = columns(&pre);
        if pre.nrows() != self.inner.d_pre() {
            return Err(refused(format!("pre has {} columns, expected {}", pre.nrows(), self.inner.d_pre())));
        }
        Ok(vector(py, run(py, || self.inner.leverage(pre))?))
    }

    /// Draw (W, Σ⁻¹).
    fn sample(&self, py: Python<'_>, seed: u64) -> PyResult<(Matrix, Matrix)> {
        let draw = run(py, || self.inner.sample(&mut ChaCha8Rng::seed_from_u64(seed)))?;
        Ok((array(py, draw.weights.as_ref())?, array(py, draw.precision.precision().as_ref())?))
    }

    fn __repr__(&self) -> String {
        let (d_post, d_pre) = (self.inner.d_post(), self.inner.d_pre());
        format!("MatrixNormalWishart(d_post={d_post}, d_pre={d_pre}, dof={})", self.inner.dof())
    }
}
