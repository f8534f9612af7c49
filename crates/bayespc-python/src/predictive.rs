//! Predictive distributions, as Python sees them.

use bayespc::prediction::{CLASS_DRAWS, Predictive as Inner};
use faer::Mat;
use numpy::{PyArray1, PyArray2, PyArray3};
use pyo3::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::arrays::{Array2, columns, raised, refused, rows, stacked, vector};
use crate::pool::{alone, run};

/// A mixture of elliptical distributions for each of n samples over d targets.
#[pyclass(module = "bayespc._core", frozen)]
pub struct Predictive {
    pub inner: Inner,
}

impl Predictive {
    fn per_sample(
        &self,
        py: Python<'_>,
        of: impl Fn(usize) -> Mat<f64> + Send,
    ) -> PyResult<Py<PyArray3<f64>>> {
        let matrices: Vec<_> = run(py, || (0..self.inner.n_samples()).map(of).collect())?;
        stacked(py, &matrices, self.inner.n_targets(), self.inner.n_targets())
    }
}

#[pymethods]
impl Predictive {
    #[getter]
    fn n_samples(&self) -> usize {
        self.inner.n_samples()
    }

    #[getter]
    fn n_targets(&self) -> usize {
        self.inner.n_targets()
    }

    #[getter]
    fn n_components(&self) -> usize {
        self.inner.components().len()
    }

    /// log w of each component.
    #[getter]
    fn log_weights(&self, py: Python<'_>) -> Py<PyArray1<f64>> {
        vector(py, self.inner.log_weights().to_vec())
    }

    fn mean(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        rows(py, alone(py, || self.inner.mean())?.as_ref())
    }

    fn aleatoric(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        rows(py, alone(py, || self.inner.aleatoric_variance())?.as_ref())
    }

    fn epistemic(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        rows(py, alone(py, || self.inner.epistemic_variance())?.as_ref())
    }

    fn variance(&self, py: Python<'_>) -> PyResult<Py<PyArray2<f64>>> {
        rows(py, alone(py, || self.inner.variance())?.as_ref())
    }

    fn covariance(&self, py: Python<'_>) -> PyResult<Py<PyArray3<f64>>> {
        self.per_sample(py, |sample| self.inner.covariance(sample))
    }

    fn epistemic_covariance(&self, py: Python<'_>) -> PyResult<Py<PyArray3<f64>>> {
        self.per_sample(py, |sample| self.inner.epistemic_covariance(sample))
    }

    /// Quantiles, shape `(len(p), n, d)`.
    fn quantile(&self, py: Python<'_>, p: Vec<f64>) -> PyResult<Py<PyArray3<f64>>> {
        let quantiles = run(py, || self.inner.quantile(&p))?.map_err(raised)?;
        stacked(py, &quantiles, self.inner.n_targets(), self.inner.n_samples())
    }

    /// Bounds, shape `(2, n, d)`.
    fn interval(&self, py: Python<'_>, coverage: f64) -> PyResult<Py<PyArray3<f64>>> {
        let (low, high) = run(py, || self.inner.interval(coverage))?.map_err(raised)?;
        stacked(py, &[low, high], self.inner.n_targets(), self.inner.n_samples())
    }

    /// Log density of each sample, jointly over its targets.
    fn log_density(&self, py: Python<'_>, targets: Array2<'_, f64>) -> PyResult<Py<PyArray1<f64>>> {
        let targets = columns(&targets);
        Ok(vector(py, run(py, || self.inner.log_density(targets))?.map_err(raised)?))
    }

    /// P(target ≤ y) of each target and sample.
    fn cdf(&self, py: Python<'_>, targets: Array2<'_, f64>) -> PyResult<Py<PyArray2<f64>>> {
        let targets = columns(&targets);
        let (d, n) = (self.inner.n_targets(), self.inner.n_samples());
        if (targets.nrows(), targets.ncols()) != (d, n) {
            return Err(refused(format!(
                "y has shape ({}, {}), expected ({n}, {d})",
                targets.ncols(),
                targets.nrows()
            )));
        }
        let cdf = run(py, || Mat::from_fn(d, n, |i, j| self.inner.marginal_cdf(i, j, targets[(i, j)])))?;
        rows(py, cdf.as_ref())
    }

    /// Continuous ranked probability score of each target and sample.
    fn crps(&self, py: Python<'_>, targets: Array2<'_, f64>) -> PyResult<Py<PyArray2<f64>>> {
        let targets = columns(&targets);
        rows(py, run(py, || self.inner.crps(targets))?.map_err(raised)?.as_ref())
    }

    /// Draws with noise, shape `(n_draws, n, d)`.
    fn sample(&self, py: Python<'_>, n_draws: usize, seed: u64) -> PyResult<Py<PyArray3<f64>>> {
        let draws = run(py, || self.inner.sample(n_draws, &mut ChaCha8Rng::seed_from_u64(seed)))?;
        stacked(py, &draws, self.inner.n_targets(), self.inner.n_samples())
    }

    /// Class probabilities, shape `(n, K)`.
    fn class_probabilities(&self, py: Python<'_>, temperature: f64) -> PyResult<Py<PyArray2<f64>>> {
        let probabilities = run(py, || self.inner.class_probabilities(temperature))?.map_err(raised)?;
        rows(py, probabilities.as_ref())
    }

    /// Entropy of the class, its aleatoric and its epistemic part, in nats, each of shape `(n,)`.
    #[pyo3(signature = (temperature, n_draws=CLASS_DRAWS.0, seed=CLASS_DRAWS.1))]
    #[expect(clippy::type_complexity, reason = "three arrays")]
    fn class_decomposition(
        &self,
        py: Python<'_>,
        temperature: f64,
        n_draws: usize,
        seed: u64,
    ) -> PyResult<(Py<PyArray1<f64>>, Py<PyArray1<f64>>, Py<PyArray1<f64>>)> {
        let parts =
            run(py, || self.inner.class_decomposition(temperature, n_draws, seed))?.map_err(raised)?;
        Ok((vector(py, parts.total), vector(py, parts.aleatoric), vector(py, parts.epistemic)))
    }

    /// Variance of each class's probability under the posterior, shape `(n, K)`.
    fn class_probability_variance(
        &self,
        py: Python<'_>,
        temperature: f64,
        n_draws: usize,
        seed: u64,
    ) -> PyResult<Py<PyArray2<f64>>> {
        let variance = run(py, || self.inner.class_probability_variance(temperature, n_draws, seed))?;
        rows(py, variance.map_err(raised)?.as_ref())
    }
}
