//! The user's own tables: named columns of numbers, texts or booleans, from CSV or Parquet.
//!
//! A cell is missing when it is empty or one of NA, N/A, NaN, null, ? (in any case). The kind of a
//! CSV column follows from its cells: numbers if all parse as numbers, booleans if all are `true` or
//! `false`, else text. Text in a column of which more than nine in ten cells are numbers is
//! remembered as suspect, and an error once the column is used.

mod cell;
mod csv;
mod parquet;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::fetch::has_extension;
use crate::{Error, Result};

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Numbers.
    Number,
    /// Text.
    Text,
    /// `true` or `false`.
    Bool,
}

/// Kinds of columns by name, for columns whose kind is to be given rather than guessed.
pub type Kinds = BTreeMap<String, Kind>;

/// Cells of a column; `None` is a missing cell.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// Numbers, perhaps infinite, never NaN.
    Number(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
    /// Booleans.
    Bool(Vec<Option<bool>>),
    /// Dates, bytes or nested values: the name of their type. They cannot be used.
    Unsupported(String),
}

/// A column with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name in the header.
    pub name: String,
    /// Its cells.
    pub values: Values,
    /// The first text among cells that are nearly all numbers.
    pub suspect: Option<Suspect>,
}

/// A cell that is probably a typing error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Data row in the file, from 1.
    pub row: usize,
    /// What it holds.
    pub value: String,
}

/// Columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// File name for messages.
    file: String,
    /// Data row in the file of each row, from 1.
    rows: Vec<usize>,
    columns: Vec<Column>,
}

impl Table {
    /// Reads a whole `.csv`, `.tsv`, `.txt` or `.parquet` file and guesses the kinds of its columns.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_as(path, &Kinds::new())
    }

    /// Reads a whole file; columns named in `kinds` must be of that kind, others are guessed.
    pub fn read_as(path: &Path, kinds: &Kinds) -> Result<Self> {
        let name = path.display().to_string();
        if is_parquet(&name)? {
            let table = parquet::Reader::open(path)?.chunk(kinds, usize::MAX)?;
            table.ok_or(Error::NoRows { file: name })
        } else {
            Self::from_csv(&name, &std::fs::read(path).map_err(Error::io(path))?, kinds)
        }
    }

    /// Reads the first rows of a file, at most `limit`, and guesses the kinds of columns from them.
    pub fn read_head(path: &Path, limit: usize) -> Result<Self> {
        let name = path.display().to_string();
        if is_parquet(&name)? {
            let table = parquet::Reader::open(path)?.chunk(&Kinds::new(), limit)?;
            return table.ok_or(Error::NoRows { file: name });
        }
        let file = File::open(path).map_err(Error::io(path))?;
        Self::from_csv(&name, &csv::Reader::new(BufReader::new(file), &name)?.head(limit)?, &Kinds::new())
    }

    /// Reads CSV text under a name for messages; `;` and tabs separate cells too if the header shows so.
    pub fn from_csv(file: &str, bytes: &[u8], kinds: &Kinds) -> Result<Self> {
        let guesses = csv::Reader::new(bytes, file)?.guess()?;
        let mut kinds = kinds.clone();
        let mut suspects = BTreeMap::new();
        for (name, guess) in guesses {
            if !kinds.contains_key(&name) {
                kinds.insert(name.clone(), guess.kind());
                suspects.insert(name, guess.suspect());
            }
        }
        let mut reader = csv::Reader::new(bytes, file)?;
        let mut table = reader.chunk(&kinds, usize::MAX)?.ok_or(Error::NoRows { file: file.to_owned() })?;
        for column in &mut table.columns {
            column.suspect = suspects.remove(&column.name).flatten();
        }
        Ok(table)
    }

    /// File name for messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// The columns, in the order of the file.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Whether there is a column of this name.
    pub fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Result<&Column> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| Error::MissingColumn {
            file: self.file.clone(),
            column: name.to_owned(),
            present: self.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// The table of these rows, counted from 0; messages still name the rows of the file.
    ///
    /// # Panics
    ///
    /// Panics if a row is out of range.
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        fn pick<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
            rows.iter().map(|&row| values[row].clone()).collect()
        }
        let select = |column: &Column| Column {
            name: column.name.clone(),
            values: match &column.values {
                Values::Number(values) => Values::Number(pick(values, rows)),
                Values::Text(values) => Values::Text(pick(values, rows)),
                Values::Bool(values) => Values::Bool(pick(values, rows)),
                Values::Unsupported(kind) => Values::Unsupported(kind.clone()),
            },
            suspect: column.suspect.clone(),
        };
        Self {
            file: self.file.clone(),
            rows: pick(&self.rows, rows),
            columns: self.columns.iter().map(select).collect(),
        }
    }

    /// Data row in the file, from 1, of row `i` of the table.
    pub(crate) fn file_row(&self, i: usize) -> usize {
        self.rows[i]
    }
}

/// A file that is read some rows at a time.
pub(crate) enum ChunkReader {
    Csv(csv::Reader<BufReader<File>>),
    Parquet(parquet::Reader),
}

impl ChunkReader {
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        if is_parquet(&name)? {
            Ok(Self::Parquet(parquet::Reader::open(path)?))
        } else {
            let file = File::open(path).map_err(Error::io(path))?;
            Ok(Self::Csv(csv::Reader::new(BufReader::new(file), &name)?))
        }
    }

    /// The next rows, at most `limit`; columns not named in `kinds` are left out. `None` at the end.
    pub fn chunk(&mut self, kinds: &Kinds, limit: usize) -> Result<Option<Table>> {
        match self {
            Self::Csv(reader) => reader.chunk(kinds, limit),
            Self::Parquet(reader) => reader.chunk(kinds, limit),
        }
    }
}

fn is_parquet(file: &str) -> Result<bool> {
    if has_extension(file, "parquet") {
        Ok(true)
    } else if ["csv", "tsv", "txt"].iter().any(|extension| has_extension(file, extension)) {
        Ok(false)
    } else {
        Err(Error::UnknownFormat { file: file.to_owned() })
    }
}

/// Fails if a name is empty or occurs twice.
fn check_names(names: &[String], file: &str) -> Result<()> {
    for (i, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(Error::UnnamedColumn { file: file.to_owned(), position: i + 1 });
        }
        if names[..i].contains(name) {
            return Err(Error::DuplicateColumn { file: file.to_owned(), column: name.clone() });
        }
    }
    Ok(())
}
