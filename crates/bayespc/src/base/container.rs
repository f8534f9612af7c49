//! Tensors on their way into a safetensors file and out of it, under one checksum.
//!
//! Tensors are row-major `f64`, and `u64` where they number rows. One metadata entry is JSON that begins with a version.
//! One more tensor, `crc32`, is the checksum of that text and of all others, so that no flipped bit changes a prediction
//! unnoticed.

use std::collections::{BTreeMap, HashMap};

use faer::Mat;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::Serialize;

use crate::error::{ModelFileError, Result};

/// The tensor that is the checksum. No entry of the metadata: these are written in any order.
const CHECKSUM: &str = "crc32";

/// A header as text.
pub(crate) fn to_json<T: Serialize>(header: &T) -> Result<String> {
    let unwritable = |_| ModelFileError::Metadata { key: "settings (not representable as JSON)".to_owned() };
    Ok(serde_json::to_string(header).map_err(unwritable)?)
}

/// The metadata entry `key`, once its version and the file's checksum are right. The version comes first: a file of
/// another version may hold anything else.
pub(crate) fn checked_header(
    bytes: &[u8],
    file: &SafeTensors<'_>,
    key: &str,
    supported: u32,
) -> Result<serde_json::Value> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(ModelFileError::from)?;
    let missing = || ModelFileError::Metadata { key: key.to_owned() };
    let text = metadata.metadata().as_ref().and_then(|entries| entries.get(key)).ok_or_else(missing)?;
    let value: serde_json::Value = serde_json::from_str(text).map_err(|_| missing())?;
    let version = value.get("version").ok_or_else(missing)?;
    if version.as_u64() != Some(u64::from(supported)) {
        return Err(ModelFileError::Version { found: version.to_string(), supported }.into());
    }
    let mut tensors = file.tensors();
    tensors.retain(|(name, _)| name != CHECKSUM);
    tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
    let found = checksum(text, tensors.iter().map(|(_, view)| view.data()));
    if !file.tensor(CHECKSUM).is_ok_and(|written| written.data() == found) {
        return Err(ModelFileError::Damaged.into());
    }
    Ok(value)
}

/// CRC-32 of the metadata and of the tensors in the order of their names.
fn checksum<'a>(header: &str, tensors: impl Iterator<Item = &'a [u8]>) -> [u8; 4] {
    let mut crc = crc32fast::Hasher::new();
    crc.update(header.as_bytes());
    tensors.for_each(|bytes| crc.update(bytes));
    crc.finalize().to_le_bytes()
}

/// Tensors on their way into a file.
#[derive(Default)]
pub(crate) struct Tensors {
    parts: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>,
}

impl Tensors {
    pub fn put(&mut self, name: &str, matrix: &Mat<f64>) {
        let (rows, columns) = (matrix.nrows(), matrix.ncols());
        let bytes =
            (0..rows).flat_map(|i| (0..columns).flat_map(move |j| matrix[(i, j)].to_le_bytes())).collect();
        self.parts.insert(name.to_owned(), (Dtype::F64, vec![rows, columns], bytes));
    }

    pub fn put_row(&mut self, name: &str, values: &[f64]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.parts.insert(name.to_owned(), (Dtype::F64, vec![values.len()], bytes));
    }

    pub fn put_integers(&mut self, name: &str, values: &[u64]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.parts.insert(name.to_owned(), (Dtype::U64, vec![values.len()], bytes));
    }

    pub fn serialize(&self, key: &str, header: String) -> Result<Vec<u8>> {
        let mut views = self
            .parts
            .iter()
            .map(|(name, (kind, shape, bytes))| Ok((name, TensorView::new(*kind, shape.clone(), bytes)?)))
            .collect::<std::result::Result<Vec<_>, ModelFileError>>()?;
        let checksum = checksum(&header, self.parts.values().map(|(_, _, bytes)| bytes.as_slice()));
        let name = CHECKSUM.to_owned();
        views.push((&name, TensorView::new(Dtype::U32, vec![1], &checksum).map_err(ModelFileError::from)?));
        let metadata = HashMap::from([(key.to_owned(), header)]);
        Ok(serialize(views, Some(metadata)).map_err(ModelFileError::from)?)
    }
}

/// Tensors on their way out of a file.
pub(crate) struct Reader<'a> {
    pub file: SafeTensors<'a>,
}

impl Reader<'_> {
    /// Numbers of a tensor of this shape. Nothing is read of one that has another.
    pub fn values(&self, name: &str, expected: &[usize]) -> Result<Vec<f64>> {
        let words = self.words(name, Dtype::F64, expected)?;
        let values: Vec<f64> = words.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        if let Some(index) = values.iter().position(|x| !x.is_finite()) {
            return Err(ModelFileError::TensorNotFinite {
                name: name.to_owned(),
                index,
                value: values[index],
            }
            .into());
        }
        Ok(values)
    }

    /// Integers of a tensor with so many.
    pub fn integers(&self, name: &str, expected: usize) -> Result<Vec<u64>> {
        let words = self.words(name, Dtype::U64, &[expected])?;
        Ok(words.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    fn words(&self, name: &str, kind: Dtype, expected: &[usize]) -> Result<&[[u8; 8]]> {
        let tensor = self.file.tensor(name).map_err(|_| ModelFileError::Missing { name: name.to_owned() })?;
        if tensor.dtype() != kind || tensor.shape() != expected {
            return Err(ModelFileError::TensorShape {
                name: name.to_owned(),
                found: tensor.shape().to_vec(),
                expected: expected.to_vec(),
            }
            .into());
        }
        Ok(tensor.data().as_chunks::<8>().0)
    }

    pub fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Mat<f64>> {
        let values = self.values(name, &[rows, columns])?;
        Ok(Mat::from_fn(rows, columns, |i, j| values[i * columns + j]))
    }
}
