//! Weights of networks that were trained elsewhere.

use bayespc::model::trained::{NamedTensor, layers, read_safetensors};
use faer::Mat;
use pyo3::prelude::*;

use crate::arrays::{Array1, Matrix, array, raised, values};

fn arrays(py: Python<'_>, layers: &[Mat<f64>]) -> PyResult<Vec<Matrix>> {
    layers.iter().map(|layer| array(py, layer.as_ref())).collect()
}

/// The layers in a safetensors file: W_1 … W_L, bias in the last column.
#[pyfunction]
pub fn layers_of_file(py: Python<'_>, bytes: &[u8]) -> PyResult<Vec<Matrix>> {
    arrays(py, &read_safetensors(bytes).and_then(layers).map_err(raised)?)
}

/// The layers that tensors make up: names, shapes and numbers in C order.
#[pyfunction]
pub fn layers_of_tensors(
    py: Python<'_>,
    tensors: Vec<(String, Vec<usize>, Array1<'_, f64>)>,
) -> PyResult<Vec<Matrix>> {
    let named = |(name, shape, numbers): (String, Vec<usize>, Array1<'_, f64>)| NamedTensor {
        name,
        shape,
        values: values(&numbers).to_vec(),
    };
    let tensors = tensors.into_iter().map(named).collect();
    arrays(py, &layers(tensors).map_err(raised)?)
}
