//! Frames as tables, and how their columns become inputs: the command's own encoder.
//!
//! Columns cross by kind: numbers as float64 (NaN is missing), booleans as int8 (−1 is missing), times as
//! int64 microseconds (the smallest is missing), texts as a list of `str` and `None`, or as int32 codes (negative is
//! missing) and the texts they stand for.

use bayespc_data::{
    Column, ColumnSummary, Encoding as Inner, EncodingOptions, Error, Kind, Kinds, Table as InnerTable,
    TargetColumns, Values, Wish, Wishes, columns_table as to_text,
};
use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::arrays::{Array1, exactly, refused, rows, values};
use crate::model::{json, parse};
use crate::pool::run;

/// What the table is called in messages.
const NAME: &str = "X";

/// Cells of a column. The type of an array is the kind of the column.
#[derive(FromPyObject)]
pub enum CellArray<'py> {
    /// Numbers.
    Number(#[pyo3(from_py_with = exactly)] Array1<'py, f64>),
    /// Booleans.
    Bool(#[pyo3(from_py_with = exactly)] Array1<'py, i8>),
    /// Microseconds since 1970.
    Time(#[pyo3(from_py_with = exactly)] Array1<'py, i64>),
    /// A type that cannot be used.
    Unsupported(Bound<'py, PyString>),
    /// Texts by a dictionary.
    Coded(#[pyo3(from_py_with = exactly)] Array1<'py, i32>, Vec<Option<String>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

/// A frame has no header to count.
fn told(error: &Error) -> PyErr {
    refused(error.to_string().replace(" (header not counted)", " (counted from 1)"))
}

fn column(name: String, cells: &CellArray<'_>, wish: Option<Wish>) -> PyResult<Column> {
    Ok(match cells {
        CellArray::Number(array) => Column::numbers(name, values(array).to_vec()),
        CellArray::Bool(array) => {
            let bit = |&bit: &i8| (bit >= 0).then_some(bit == 1);
            Column::booleans(name, values(array).iter().map(bit).collect())
        }
        CellArray::Time(array) => Column::times(name, values(array).to_vec()),
        CellArray::Unsupported(kind) => {
            Column { name, kind: Kind::Text, values: Values::Unsupported(kind.to_string()), suspect: None }
        }
        CellArray::Coded(codes, texts) => {
            let text = |&code: &i32| usize::try_from(code).ok().and_then(|code| texts.get(code)?.as_deref());
            of_texts(name, values(codes).iter().map(text), wish)?
        }
        CellArray::Text(texts) => of_texts(name, texts.iter().map(Option::as_deref), wish)?,
    })
}

fn of_texts<'a>(
    name: String,
    cells: impl Iterator<Item = Option<&'a str>> + Clone,
    wish: Option<Wish>,
) -> PyResult<Column> {
    match wish {
        Some(wish) => Column::from_texts_as(NAME, &name, cells, wish).map_err(|error| told(&error)),
        None => Ok(Column::from_texts(name, cells)),
    }
}

fn table(columns: Vec<(String, CellArray<'_>)>, wishes: &Wishes) -> PyResult<InnerTable> {
    let columns = columns.into_iter().map(|(name, cells)| {
        let wish = wishes.get(&name).copied();
        column(name, &cells, wish)
    });
    let columns = columns.collect::<PyResult<Vec<_>>>()?;
    InnerTable::from_columns(NAME, columns).map_err(|error| told(&error))
}

/// Named columns.
#[pyclass(module = "bayespc._core", frozen)]
pub struct Table {
    inner: InnerTable,
}

#[pymethods]
impl Table {
    #[getter]
    fn n_rows(&self) -> usize {
        self.inner.n_rows()
    }

    /// The table of these rows.
    fn select(&self, rows: Array1<'_, i64>) -> PyResult<Self> {
        let n = self.inner.n_rows();
        let row = |&row: &i64| {
            let row = usize::try_from(row).ok().filter(|row| *row < n);
            row.ok_or_else(|| refused("there is no such row"))
        };
        let rows = values(&rows).iter().map(row).collect::<PyResult<Vec<_>>>()?;
        Ok(Self { inner: self.inner.select_rows(&rows) })
    }
}

/// How the columns of a table become inputs.
#[pyclass(module = "bayespc._core", frozen)]
pub struct Encoding {
    inner: Inner,
}

#[pymethods]
impl Encoding {
    /// A table whose columns are read as the options (JSON) ask, to be learned from.
    #[staticmethod]
    fn table(columns: Vec<(String, CellArray<'_>)>, options: &str) -> PyResult<Table> {
        let options: EncodingOptions = parse("columns", options)?;
        let wishes = options.columns.iter().filter_map(|(name, choice)| Some((name.clone(), choice.wish()?)));
        Ok(Table { inner: table(columns, &wishes.collect())? })
    }

    /// Learn how the columns of a table become inputs, by these options, as JSON.
    #[staticmethod]
    fn fit(py: Python<'_>, table: &Table, options: &str) -> PyResult<Self> {
        let options: EncodingOptions = parse("columns", options)?;
        let inner = run(py, || Inner::fit(&table.inner, &[], &options))?;
        Ok(Self { inner: inner.map_err(|error| told(&error))? })
    }

    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        Ok(Self { inner: parse("encoding", text)? })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let class = py.import("bayespc._core")?.getattr("Encoding")?;
        Ok((class.getattr("from_json")?, (self.json()?,)))
    }

    /// A table like the one in training: columns that are not needed are left out.
    fn read(&self, columns: Vec<(String, CellArray<'_>)>) -> PyResult<Table> {
        let kinds: Kinds = self.inner.kinds();
        let used = columns.into_iter().filter(|(name, _)| kinds.contains_key(name)).collect();
        let wishes = kinds.iter().map(|(name, kind)| (name.clone(), Wish::As(*kind))).collect();
        Ok(Table { inner: table(used, &wishes)? })
    }

    /// Rows that can be learned from.
    fn learnable(&self, py: Python<'_>, table: &Table) -> PyResult<Py<PyArray1<i64>>> {
        let learnable = self.inner.learnable(&table.inner).map_err(|error| told(&error))?;
        let rows = learnable.rows.into_iter().map(i64::try_from).collect::<Result<Vec<_>, _>>();
        Ok(rows.map_err(refused)?.into_pyarray(py).unbind())
    }

    /// Inputs, one row per row of the table, and what was bridged over.
    fn transform(&self, py: Python<'_>, table: &Table) -> PyResult<(Py<PyArray2<f64>>, Vec<String>)> {
        let encoded = run(py, || self.inner.transform(&table.inner))?.map_err(|error| told(&error))?;
        let warnings = encoded.warnings.iter().map(ToString::to_string).collect();
        Ok((rows(py, encoded.features.as_ref())?, warnings))
    }

    /// The same with these target columns, as JSON.
    fn with_target(&self, target: &str) -> PyResult<Self> {
        let target: TargetColumns = parse("target", target)?;
        Ok(Self { inner: Inner { target: Some(target), ..self.inner.clone() } })
    }

    fn json(&self) -> PyResult<String> {
        json(&self.inner)
    }

    /// Names of the columns that are used.
    #[getter]
    fn used(&self) -> Vec<String> {
        self.inner.features.iter().map(|feature| feature.name.clone()).collect()
    }

    /// Names of the inputs.
    #[getter]
    fn feature_names(&self) -> Vec<String> {
        self.inner.feature_names()
    }

    /// Which of the columns that are used each input belongs to.
    #[getter]
    fn owners(&self) -> Vec<usize> {
        self.inner.owners()
    }

    /// What was understood of each column, as JSON.
    #[getter]
    fn columns(&self) -> PyResult<String> {
        json(&self.inner.columns)
    }
}

/// What was understood of columns (JSON), as a table for people.
#[pyfunction]
pub fn columns_table(columns: &str, limit: usize) -> PyResult<String> {
    let columns: Vec<ColumnSummary> = parse("columns", columns)?;
    Ok(to_text(&columns, limit))
}
