//! The layers of a plain feed-forward network from tensors with PyTorch's names.
//!
//! ```text
//! 0.weight (d_1 × d_0) ,  0.bias (d_1) ,   layers.2.weight , …          the numbers in a name are the layer's place
//! ```
//!
//! A layer without a bias has one of zeros. Everything that is no weight or bias of such a layer is an error: what is not
//! understood would be left out of the function.

use std::collections::BTreeMap;

use faer::Mat;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::error::{Result, WeightsError};

/// A tensor as it was saved: row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    /// Its name, such as `0.weight`.
    pub name: String,
    /// Lengths of its axes.
    pub shape: Vec<usize>,
    /// Its numbers, the last axis fastest.
    pub values: Vec<f64>,
}

/// The tensors of a safetensors file, in double precision.
pub fn read_safetensors(bytes: &[u8]) -> Result<Vec<NamedTensor>> {
    let file = SafeTensors::deserialize(bytes).map_err(WeightsError::from)?;
    let mut tensors = file.tensors();
    tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
    tensors.into_iter().map(|(name, view)| numbers(name, &view)).collect()
}

/// W_1 … W_L, each with its bias in the last column, in the order of the numbers in their names.
pub fn layers(tensors: Vec<NamedTensor>) -> Result<Vec<Mat<f64>>> {
    let mut weights: Vec<(Vec<u64>, String, NamedTensor)> = Vec::new();
    let mut biases: BTreeMap<String, NamedTensor> = BTreeMap::new();
    for tensor in tensors {
        if let Some(&value) = tensor.values.iter().find(|value| !value.is_finite()) {
            return Err(WeightsError::NotFinite { name: tensor.name, value }.into());
        }
        let (layer, kind) = tensor.name.rsplit_once('.').unwrap_or(("", &tensor.name));
        let layer = layer.to_owned();
        match (kind, tensor.shape.len()) {
            ("weight", 2) => weights.push((places(&layer), layer, tensor)),
            ("bias", 1) => {
                biases.insert(layer, tensor);
            }
            _ => {
                let NamedTensor { name, shape, .. } = tensor;
                return Err(WeightsError::Unknown { name, shape }.into());
            }
        }
    }
    weights.sort_by(|a, b| a.0.cmp(&b.0));
    for pair in weights.windows(2) {
        if pair[0].0 == pair[1].0 {
            let (first, second) = (pair[0].1.clone(), pair[1].1.clone());
            return Err(WeightsError::Order { first, second }.into());
        }
    }
    let mut layers: Vec<Mat<f64>> = Vec::with_capacity(weights.len());
    for (_, layer, tensor) in weights {
        let (rows, columns) = (tensor.shape[0], tensor.shape[1]);
        if let Some(expected) = layers.last().map(Mat::nrows).filter(|&expected| expected != columns) {
            return Err(WeightsError::Chain { name: layer, found: columns, expected }.into());
        }
        let bias = biases.remove(&layer);
        if let Some(bias) = bias.as_ref().filter(|bias| bias.values.len() != rows) {
            let (name, found) = (bias.name.clone(), bias.values.len());
            return Err(WeightsError::Bias { name, found, expected: rows }.into());
        }
        let constant = |i: usize| bias.as_ref().map_or(0.0, |bias| bias.values[i]);
        layers.push(Mat::from_fn(rows, columns + 1, |i, j| {
            if j < columns { tensor.values[i * columns + j] } else { constant(i) }
        }));
    }
    match biases.into_values().next() {
        Some(NamedTensor { name, values, .. }) => {
            Err(WeightsError::Bias { name, found: values.len(), expected: 0 }.into())
        }
        None if layers.is_empty() => Err(crate::Error::Empty { what: "the list of weights" }),
        None => Ok(layers),
    }
}

/// The numbers in a name, in order.
fn places(name: &str) -> Vec<u64> {
    let digits = name.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|number| number.parse().ok()).collect()
}

fn numbers(name: String, view: &TensorView<'_>) -> Result<NamedTensor> {
    let data = view.data();
    let values = match view.dtype() {
        Dtype::F64 => data.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect(),
        Dtype::F32 => data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes).into()).collect(),
        other => return Err(WeightsError::Type { name, found: format!("{other:?}") }.into()),
    };
    Ok(NamedTensor { name, shape: view.shape().to_vec(), values })
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::serialize;

    use super::*;
    use crate::Error;

    fn tensor(name: &str, shape: &[usize], first: f64) -> NamedTensor {
        let n: usize = shape.iter().product();
        let values = (0..n).map(|i| first + i as f64).collect();
        NamedTensor { name: name.to_owned(), shape: shape.to_vec(), values }
    }

    fn refused(tensors: Vec<NamedTensor>) -> WeightsError {
        match layers(tensors) {
            Err(Error::Weights(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn layers_are_ordered_by_their_numbers_and_not_by_their_letters() {
        let tensors = vec![
            tensor("net.10.weight", &[1, 2], 7.0),
            tensor("net.2.weight", &[2, 3], 0.0),
            tensor("net.2.bias", &[2], 50.0),
        ];
        let layers = layers(tensors).unwrap();
        let first = [[0.0, 1.0, 2.0, 50.0], [3.0, 4.0, 5.0, 51.0]];
        assert_eq!(layers[0], Mat::from_fn(2, 4, |i, j| first[i][j]));
        // Without a bias it is zero.
        assert_eq!(layers[1], Mat::from_fn(1, 3, |_, j| [7.0, 8.0, 0.0][j]));
    }

    #[test]
    fn what_is_not_plain_feed_forward_is_named() {
        let weight = || tensor("0.weight", &[2, 3], 0.0);
        let unknown = |name: &str, shape: &[usize]| {
            matches!(refused(vec![weight(), tensor(name, shape, 0.0)]),
                WeightsError::Unknown { name: found, .. } if found == name)
        };
        assert!(unknown("1.weight", &[2]), "the scale of a batch norm");
        assert!(unknown("1.running_mean", &[2]));
        assert!(unknown("1.weight", &[2, 2, 3, 3]), "a convolution");
        let chain = refused(vec![weight(), tensor("1.weight", &[1, 3], 0.0)]);
        assert!(matches!(chain, WeightsError::Chain { found: 3, expected: 2, .. }));
        let order = refused(vec![tensor("a.weight", &[3, 3], 0.0), tensor("b.weight", &[3, 3], 0.0)]);
        assert!(matches!(order, WeightsError::Order { .. }));
        let bias = refused(vec![weight(), tensor("0.bias", &[3], 0.0)]);
        assert!(matches!(bias, WeightsError::Bias { found: 3, expected: 2, .. }));
        let alone = refused(vec![weight(), tensor("4.bias", &[3], 0.0)]);
        assert!(matches!(alone, WeightsError::Bias { expected: 0, .. }));
        let infinite = refused(vec![tensor("0.weight", &[1, 1], f64::INFINITY)]);
        assert!(matches!(infinite, WeightsError::NotFinite { .. }));
        assert!(matches!(layers(Vec::new()), Err(Error::Empty { .. })));
    }

    #[test]
    fn a_file_is_read_in_single_and_double_precision_and_nothing_else() {
        let bytes = |dtype, data: &[u8]| {
            let view = TensorView::new(dtype, vec![1, 2], data).unwrap();
            serialize([("0.weight", view)], None).unwrap()
        };
        let doubles: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let singles: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        for file in [bytes(Dtype::F64, &doubles), bytes(Dtype::F32, &singles)] {
            let read = layers(read_safetensors(&file).unwrap()).unwrap();
            assert_eq!(read[0], Mat::from_fn(1, 3, |_, j| [1.5, -2.0, 0.0][j]));
        }
        let halves = bytes(Dtype::F16, &[0; 4]);
        assert!(matches!(read_safetensors(&halves), Err(Error::Weights(WeightsError::Type { .. }))));
        assert!(matches!(read_safetensors(&doubles), Err(Error::Weights(WeightsError::Format(_)))));
    }
}
