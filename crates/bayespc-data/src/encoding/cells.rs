//! The cells of one column, read as what they are wanted to be; what is wrong is named by file, row and column.

use crate::table::{Column, Table, Values};
use crate::{Error, Result};

/// A column of a table.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    pub table: &'a Table,
    pub column: &'a Column,
}

impl<'a> Cells<'a> {
    /// The column of this name.
    pub fn of(table: &'a Table, name: &str) -> Result<Self> {
        Ok(Self { table, column: table.column(name)? })
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.table.n_rows()
    }

    /// Name of the column.
    pub fn name(&self) -> &'a str {
        &self.column.name
    }

    /// Cell `i` as a finite number, booleans as 0 and 1.
    pub fn number(&self, i: usize) -> Result<Option<f64>> {
        let x = self.column.number(i).map_err(|value| self.wrong_type(i, value, "number"))?;
        match x {
            Some(value) if !value.is_finite() => Err(Error::NotFinite {
                file: self.file(),
                row: self.table.file_row(i),
                column: self.name().to_owned(),
                value,
            }),
            _ => Ok(x),
        }
    }

    /// Cell `i` as true or false, 0 and 1 too.
    pub fn boolean(&self, i: usize) -> Result<Option<bool>> {
        self.column.boolean(i).map_err(|value| self.wrong_type(i, value, "boolean"))
    }

    /// Cell `i` in microseconds since 1970.
    pub fn time(&self, i: usize) -> Result<Option<i64>> {
        self.column.time(i).map_err(|value| self.wrong_type(i, value, "time"))
    }

    /// Fails if no cell of the column can be used.
    pub fn check_supported(&self) -> Result<()> {
        match &self.column.values {
            Values::Unsupported(kind) => Err(Error::UnsupportedColumn {
                file: self.file(),
                column: self.name().to_owned(),
                kind: kind.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Fails if a cell is probably a typing error.
    pub fn check_suspect(&self) -> Result<()> {
        match &self.column.suspect {
            Some(suspect) => Err(Error::NearlyNumeric {
                file: self.file(),
                row: suspect.row,
                column: self.name().to_owned(),
                value: suspect.value.clone(),
                expected: suspect.expected,
            }),
            None => Ok(()),
        }
    }

    /// Cell `i` is missing, and must not be.
    pub fn missing(&self, i: usize) -> Error {
        Error::MissingValue { file: self.file(), row: self.table.file_row(i), column: self.name().to_owned() }
    }

    fn wrong_type(&self, i: usize, value: String, expected: &'static str) -> Error {
        Error::WrongType {
            file: self.file(),
            row: self.table.file_row(i),
            column: self.name().to_owned(),
            value,
            expected,
        }
    }

    fn file(&self) -> String {
        self.table.file().to_owned()
    }
}
