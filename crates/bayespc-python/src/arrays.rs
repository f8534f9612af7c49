//! NumPy arrays to matrices, matrices to NumPy arrays, and errors to exceptions.
//!
//! An array that is aligned, in C order and of native byte order is read in place. `readable` copies any other one: it is
//! the only place that converts, and every function of the module takes its arrays as [`Array1`], [`Array2`] or an enum
//! of these.

use std::fmt::Display;

use bayespc::data::Inputs;
use bayespc::{Error, Real};
use faer::{Mat, MatRef};
use numpy::ndarray::Dimension;
use numpy::{
    Element, IntoPyArray, Ix1, Ix2, PyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray,
    PyUntypedArray, PyUntypedArrayMethods, dtype,
};
use pyo3::Borrowed;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// An owned two-dimensional array.
pub type Matrix = Py<PyArray2<f64>>;

/// An owned one-dimensional array.
pub type Vector = Py<PyArray1<f64>>;

/// An owned three-dimensional array.
pub type Stack = Py<PyArray3<f64>>;

/// An array that the library can read: aligned, in C order and of native byte order. Other arrays are copied.
pub struct Array<'py, T: Element, D: Dimension>(PyReadonlyArray<'py, T, D>);

/// A one-dimensional array to read.
pub type Array1<'py, T> = Array<'py, T, Ix1>;

/// A two-dimensional array to read.
pub type Array2<'py, T> = Array<'py, T, Ix2>;

impl<'py, T: Element, D: Dimension> FromPyObject<'_, 'py> for Array<'py, T, D> {
    type Error = PyErr;

    /// Numbers of another type are converted if NumPy counts them as of the same kind: integers to floats, not floats to
    /// integers.
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        readable(&object, "same_kind")
    }
}

/// An array of exactly this type, where the type of an array says what it means.
pub fn exactly<'py, T: Element, D: Dimension>(object: &Bound<'py, PyAny>) -> PyResult<Array<'py, T, D>> {
    readable(object, "equiv")
}

/// The array itself if the library can read it, else a copy in which types are cast by this rule of NumPy.
fn readable<'py, T: Element, D: Dimension>(
    object: &Bound<'py, PyAny>,
    casting: &str,
) -> PyResult<Array<'py, T, D>> {
    let dimensions = object.cast::<PyUntypedArray>()?.ndim();
    if let Some(expected) = D::NDIM
        && dimensions != expected
    {
        return Err(PyTypeError::new_err(format!("array must have {expected} dimensions; got {dimensions}")));
    }
    let array = match object.cast::<PyArray<T, D>>() {
        Ok(array) if array.is_c_contiguous() && array.is_aligned() => array.clone(),
        _ => {
            let options = [("order", "C"), ("casting", casting)].into_py_dict(object.py())?;
            object.call_method("astype", (dtype::<T>(object.py()),), Some(&options))?.cast_into()?
        }
    };
    Ok(Array(array.try_readonly()?))
}

/// Inputs as rows of an array: float32 stays float32, other numbers are float64.
#[derive(FromPyObject)]
pub enum InputArray<'py> {
    /// float32.
    F32(#[pyo3(from_py_with = exactly)] Array2<'py, f32>),
    /// float64.
    F64(Array2<'py, f64>),
}

/// The same memory as the library sees it.
pub fn inputs<'a>(array: &'a InputArray<'_>) -> Inputs<'a> {
    match array {
        InputArray::F32(array) => columns(array).into(),
        InputArray::F64(array) => columns(array).into(),
    }
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

/// Rows of an `(n, d)` array as the columns of a `d × n` matrix: the same memory.
pub fn columns<'a, T: Element + Real>(array: &'a Array2<'_, T>) -> MatRef<'a, T> {
    let (n, d) = (array.0.shape()[0], array.0.shape()[1]);
    MatRef::from_column_major_slice(slice(array), d, n)
}

/// A matrix as it is, `rows × columns`.
pub fn matrix(array: &Array2<'_, f64>) -> Mat<f64> {
    columns(array).transpose().to_owned()
}

/// The values of a one-dimensional array, in place.
pub fn values<'a, T: Element>(array: &'a Array1<'_, T>) -> &'a [T] {
    slice(array)
}

fn slice<'a, T: Element, D: Dimension>(array: &'a Array<'_, T, D>) -> &'a [T] {
    array.0.as_slice().expect("`readable` has made it contiguous and aligned")
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
