//! NumPy arrays to matrices without a copy, matrices to NumPy arrays, and errors to exceptions.

use std::fmt::Display;

use bayespc::data::Inputs;
use bayespc::{Error, Real};
use faer::{Mat, MatRef};
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// An owned two-dimensional array.
pub type Matrix = Py<PyArray2<f64>>;

/// An owned one-dimensional array.
pub type Vector = Py<PyArray1<f64>>;

/// An owned three-dimensional array.
pub type Stack = Py<PyArray3<f64>>;

/// Inputs as rows of a C-order array, in either precision.
#[derive(FromPyObject)]
pub enum InputArray<'py> {
    /// float64.
    F64(PyReadonlyArray2<'py, f64>),
    /// float32.
    F32(PyReadonlyArray2<'py, f32>),
}

/// The same memory as the library sees it.
pub fn inputs<'a>(array: &'a InputArray<'_>) -> PyResult<Inputs<'a>> {
    Ok(match array {
        InputArray::F64(array) => columns(array)?.into(),
        InputArray::F32(array) => columns(array)?.into(),
    })
}

/// What is refused is a `ValueError`; its message names the culprit.
pub fn refused(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The library's error as an exception: what there is no room for is a `MemoryError`, all else was refused.
pub fn raised(error: Error) -> PyErr {
    match error {
        Error::TooLarge { .. } => PyMemoryError::new_err(error.to_string()),
        error => refused(error),
    }
}

/// Rows of a C-order `(n, d)` array as the columns of a `d × n` matrix: the same memory.
pub fn columns<'a, T: Element + Real>(array: &'a PyReadonlyArray2<'_, T>) -> PyResult<MatRef<'a, T>> {
    let (n, d) = (array.shape()[0], array.shape()[1]);
    if !array.is_c_contiguous() {
        return Err(PyTypeError::new_err("array must be C-contiguous"));
    }
    Ok(MatRef::from_column_major_slice(array.as_slice().map_err(refused)?, d, n))
}

/// A matrix as it is, `rows × columns`.
pub fn matrix(array: &PyReadonlyArray2<'_, f64>) -> Mat<f64> {
    let view = array.as_array();
    Mat::from_fn(view.nrows(), view.ncols(), |i, j| view[(i, j)])
}

/// The values of a one-dimensional array, in place.
pub fn values<'a, T: Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|_| PyTypeError::new_err("array must be contiguous"))
}

/// Columns of a `d × n` matrix as the rows of an `(n, d)` array.
pub fn rows<T: Element + Real>(py: Python<'_>, matrix: MatRef<'_, T>) -> PyResult<Py<PyArray2<T>>> {
    let (d, n) = (matrix.nrows(), matrix.ncols());
    let mut values = Vec::with_capacity(d * n);
    push_columns(&mut values, matrix);
    Ok(values.into_pyarray(py).reshape([n, d])?.unbind())
}

/// A matrix as an array of the same shape.
pub fn array(py: Python<'_>, matrix: MatRef<'_, f64>) -> PyResult<Py<PyArray2<f64>>> {
    rows(py, matrix.transpose())
}

/// Matrices of one shape `d × n` as an array of shape `(len, n, d)`.
pub fn stacked(py: Python<'_>, matrices: &[Mat<f64>], d: usize, n: usize) -> PyResult<Stack> {
    let mut values = Vec::with_capacity(matrices.len() * d * n);
    for matrix in matrices {
        push_columns(&mut values, matrix.as_ref());
    }
    Ok(values.into_pyarray(py).reshape([matrices.len(), n, d])?.unbind())
}

/// Numbers as a one-dimensional array.
pub fn vector(py: Python<'_>, values: Vec<f64>) -> Py<PyArray1<f64>> {
    values.into_pyarray(py).unbind()
}

fn push_columns<T: Element + Real>(values: &mut Vec<T>, matrix: MatRef<'_, T>) {
    for j in 0..matrix.ncols() {
        values.extend(matrix.col(j).iter().copied());
    }
}
