//! Sufficient statistics as bytes, to send to another machine and add there.
//!
//! A safetensors file of four row-major `f64` tensors: `pre_pre`, `post_pre`, `post_post`, `count`.

use std::collections::HashMap;

use faer::{Mat, MatRef};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::SufficientStats;
use crate::error::{ModelFileError, Result};

impl SufficientStats {
    /// The bytes of these statistics.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let count = Mat::from_fn(1, 1, |_, _| self.count);
        let parts = [
            ("pre_pre", self.pre_pre.as_ref()),
            ("post_pre", self.post_pre.as_ref()),
            ("post_post", self.post_post.as_ref()),
            ("count", count.as_ref()),
        ];
        let bytes: Vec<Vec<u8>> = parts.iter().map(|(_, matrix)| row_major(*matrix)).collect();
        let views = parts
            .iter()
            .zip(&bytes)
            .map(|((name, matrix), bytes)| {
                let shape = vec![matrix.nrows(), matrix.ncols()];
                Ok((*name, TensorView::new(Dtype::F64, shape, bytes)?))
            })
            .collect::<std::result::Result<Vec<_>, ModelFileError>>()?;
        Ok(serialize(views, None::<HashMap<String, String>>).map_err(ModelFileError::from)?)
    }

    /// Read statistics from their bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes).map_err(ModelFileError::from)?;
        let post_pre = read(&file, "post_pre", None)?;
        let (d_post, d_pre) = (post_pre.nrows(), post_pre.ncols());
        Ok(Self {
            pre_pre: read(&file, "pre_pre", Some((d_pre, d_pre)))?,
            post_post: read(&file, "post_post", Some((d_post, d_post)))?,
            count: read(&file, "count", Some((1, 1)))?[(0, 0)],
            post_pre,
        })
    }
}

fn row_major(matrix: MatRef<'_, f64>) -> Vec<u8> {
    (0..matrix.nrows())
        .flat_map(|i| (0..matrix.ncols()).flat_map(move |j| matrix[(i, j)].to_le_bytes()))
        .collect()
}

fn read(file: &SafeTensors<'_>, name: &str, expected: Option<(usize, usize)>) -> Result<Mat<f64>> {
    let tensor = file.tensor(name).map_err(|_| ModelFileError::Missing { name: name.to_owned() })?;
    let wrong = || ModelFileError::TensorShape {
        name: name.to_owned(),
        found: tensor.shape().to_vec(),
        expected: expected.map_or(vec![0, 0], |(rows, columns)| vec![rows, columns]),
    };
    let &[rows, columns] = tensor.shape() else { return Err(wrong().into()) };
    if tensor.dtype() != Dtype::F64 || expected.is_some_and(|shape| shape != (rows, columns)) {
        return Err(wrong().into());
    }
    let (chunks, _) = tensor.data().as_chunks::<8>();
    let values: Vec<f64> = chunks.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    if let Some(index) = values.iter().position(|x| !x.is_finite()) {
        return Err(
            ModelFileError::TensorNotFinite { name: name.to_owned(), index, value: values[index] }.into()
        );
    }
    Ok(Mat::from_fn(rows, columns, |i, j| values[i * columns + j]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn statistics_survive_the_way_through_bytes_exactly() {
        let pre = Mat::from_fn(3, 7, |i, j| if i == 2 { 1.0 } else { (i * 7 + j) as f64 / 3.0 });
        let post = Mat::from_fn(2, 7, |i, j| (i + j) as f64 / 7.0);
        let stats = SufficientStats::of(pre.as_ref(), post.as_ref()).unwrap();
        let bytes = stats.to_bytes().unwrap();
        assert_eq!(SufficientStats::from_bytes(&bytes).unwrap(), stats);
        assert!(matches!(SufficientStats::from_bytes(&bytes[..bytes.len() - 1]), Err(Error::ModelFile(_))));
    }
}
