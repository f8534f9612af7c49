//! The user's own tables: named columns of numbers, texts, booleans or times, from files of many formats.
//!
//! A cell is missing when it is empty or one of NA, N/A, NaN, null, ? (in any case). The kind of a column follows
//! from its cells if the file does not tell: booleans if all are `true` or `false`, numbers or times if all are
//! written in one format of those, else text. A cell that is neither number nor date where more than nine in
//! ten are is remembered as suspect, and an error once the column is used.

mod cell;
mod csv;
mod guess;
mod hash;
mod kind;
mod number;
mod parquet;
mod remark;
mod time;
mod values;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

pub use kind::{Kind, UnknownKind, Wish};
pub use number::{Currency, Decimal, Group, NumberFormat, Unit};
pub use remark::Remark;
pub use time::{Civil, DateOrder, DateSeparator, TimeFormat};
pub use values::{Texts, Values};

use crate::fetch::has_extension;
use crate::{Error, Result};
use guess::Guess;

/// Kinds of columns by name, for columns whose kind is to be given rather than guessed.
pub type Kinds = BTreeMap<String, Kind>;

/// What is asked of columns by name; all others are guessed.
pub type Wishes = BTreeMap<String, Wish>;

/// How a file is to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// What is asked of columns.
    pub wishes: Wishes,
    /// The sheet of a workbook; the first if not given.
    pub sheet: Option<String>,
}

/// A column with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name in the header.
    pub name: String,
    /// What its cells are and how they were written.
    pub kind: Kind,
    /// Its cells.
    pub values: Values,
    /// The first cell that is not what nearly all others are.
    pub suspect: Option<Suspect>,
}

/// A cell that is probably a typing error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Data row in the file, from 1.
    pub row: usize,
    /// What it holds.
    pub value: String,
    /// What nearly all other cells are: `number`, `number of the same unit` or `date`.
    pub expected: &'static str,
}

/// Columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// File name for messages.
    file: String,
    /// Data row in the file of each row, from 1.
    rows: Vec<usize>,
    columns: Vec<Column>,
    remarks: Vec<Remark>,
}

impl Column {
    /// Numbers; NaN is a missing cell.
    pub fn numbers(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self::of(name, Kind::NUMBER, Values::Number(values))
    }

    /// Booleans; `None` is a missing cell.
    pub fn booleans(name: impl Into<String>, values: Vec<Option<bool>>) -> Self {
        Self::of(name, Kind::Bool, Values::Bool(values))
    }

    /// Microseconds since 1970-01-01 UTC; `i64::MIN` is a missing cell.
    pub fn times(name: impl Into<String>, values: Vec<i64>) -> Self {
        Self::of(name, Kind::Time(TimeFormat::ISO), Values::Time(values))
    }

    /// Texts, whatever they look like.
    pub fn texts(name: impl Into<String>, values: Texts) -> Self {
        Self::of(name, Kind::Text, Values::Text(values))
    }

    /// A column whose kind follows from its cells, as in a CSV file; `None` is a missing cell.
    pub fn from_texts<'a>(
        name: impl Into<String>,
        cells: impl Iterator<Item = Option<&'a str>> + Clone,
    ) -> Self {
        let mut guess = Guess::default();
        for (i, cell) in cells.clone().enumerate() {
            guess.see(cell.unwrap_or_default().trim(), i + 1, 1);
        }
        let verdict = guess.verdict(false);
        let mut values = Values::new(verdict.kind);
        for cell in cells {
            // The guess has read every cell; what it could not read it took for text, which anything is.
            if values.push(cell.unwrap_or_default().trim(), verdict.kind).is_err() {
                values.push_missing();
            }
        }
        Self { name: name.into(), kind: verdict.kind, values, suspect: verdict.suspect }
    }

    /// A column of cells that are read as asked; `file` is for messages.
    pub fn from_texts_as<'a>(
        file: &str,
        name: &str,
        cells: impl Iterator<Item = Option<&'a str>> + Clone,
        wish: Wish,
    ) -> Result<Self> {
        let mut guess = Guess::default();
        for (i, cell) in cells.clone().enumerate() {
            guess.see(cell.unwrap_or_default().trim(), i + 1, 1);
        }
        let kind = guess.wished(wish, false);
        let mut values = Values::new(kind);
        for (i, cell) in cells.enumerate() {
            let cell = cell.unwrap_or_default().trim();
            values.push(cell, kind).map_err(|()| Error::WrongType {
                file: file.to_owned(),
                row: i + 1,
                column: name.to_owned(),
                value: cell.to_owned(),
                expected: kind.noun(),
            })?;
        }
        Ok(Self { name: name.to_owned(), kind, values, suspect: None })
    }

    fn of(name: impl Into<String>, kind: Kind, values: Values) -> Self {
        Self { name: name.into(), kind, values, suspect: None }
    }

    /// Number of cells; unknown where they cannot be used.
    pub fn n_cells(&self) -> Option<usize> {
        match &self.values {
            Values::Number(values) => Some(values.len()),
            Values::Text(values) => Some(values.len()),
            Values::Bool(values) => Some(values.len()),
            Values::Time(values) => Some(values.len()),
            Values::Unsupported(_) => None,
        }
    }

    /// Whether cell `i` is missing.
    pub fn is_missing(&self, i: usize) -> bool {
        self.values.is_missing(i)
    }

    /// Cell `i` as a number, booleans as 0 and 1; `Err` is a text that is none.
    pub fn number(&self, i: usize) -> Result<Option<f64>, String> {
        self.values.number(i)
    }

    /// Cell `i` as a boolean, 0 and 1 too; `Err` is anything else.
    pub fn boolean(&self, i: usize) -> Result<Option<bool>, String> {
        self.values.boolean(i)
    }

    /// Cell `i` as a point in time, in microseconds since 1970-01-01 UTC; `Err` is anything else.
    pub fn time(&self, i: usize) -> Result<Option<i64>, String> {
        self.values.time(i)
    }

    /// Cell `i` as text: numbers in full, times as ISO 8601 has them.
    pub fn text(&self, i: usize) -> Option<Cow<'_, str>> {
        self.values.text(i)
    }
}

impl Table {
    /// Reads a whole `.csv`, `.tsv`, `.txt` or `.parquet` file and guesses the kinds of its columns.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_as(path, &Kinds::new())
    }

    /// Reads a whole file; columns named in `kinds` must be of that kind, others are guessed.
    pub fn read_as(path: &Path, kinds: &Kinds) -> Result<Self> {
        Self::read_with(path, &ReadOptions { wishes: wishes(kinds), sheet: None })
    }

    /// Reads a whole file as asked.
    pub fn read_with(path: &Path, options: &ReadOptions) -> Result<Self> {
        let name = path.display().to_string();
        if is_parquet(&name)? {
            let table = parquet::Reader::open(path)?.chunk(&exactly(&options.wishes), usize::MAX)?;
            table.ok_or(Error::NoRows { file: name })
        } else {
            Self::from_csv_as(&name, &std::fs::read(path).map_err(Error::io(path))?, &options.wishes)
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
        Self::from_csv_as(file, bytes, &wishes(kinds))
    }

    fn from_csv_as(file: &str, bytes: &[u8], wishes: &Wishes) -> Result<Self> {
        let guesses = csv::Reader::new(bytes, file)?.guess()?;
        let commas = guesses.iter().any(|(_, guess)| guess.has_decimal_commas());
        let mut kinds = Kinds::new();
        let mut suspects = BTreeMap::new();
        let mut remarks = Vec::new();
        for (name, guess) in guesses {
            if let Some(wish) = wishes.get(&name) {
                kinds.insert(name, guess.wished(*wish, commas));
                continue;
            }
            let verdict = guess.verdict(commas);
            kinds.insert(name.clone(), verdict.kind);
            let ambiguous = |or| Remark::Ambiguous { column: name.clone(), kind: verdict.kind, or };
            remarks.extend(verdict.or.map(ambiguous));
            suspects.insert(name, verdict.suspect);
        }
        let mut reader = csv::Reader::new(bytes, file)?;
        let mut table = reader.chunk(&kinds, usize::MAX)?.ok_or(Error::NoRows { file: file.to_owned() })?;
        for column in &mut table.columns {
            column.suspect = suspects.remove(&column.name).flatten();
        }
        table.remarks = remarks;
        Ok(table)
    }

    /// A table of columns under a name for messages.
    pub fn from_columns(name: &str, columns: Vec<Column>) -> Result<Self> {
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        check_names(&names, name)?;
        let n = columns.iter().find_map(Column::n_cells).unwrap_or(0);
        if let Some(other) = columns.iter().find(|column| column.n_cells().is_some_and(|len| len != n)) {
            return Err(Error::ColumnLength {
                file: name.to_owned(),
                column: other.name.clone(),
                found: other.n_cells().unwrap_or(0),
                expected: n,
            });
        }
        Ok(Self { file: name.to_owned(), rows: (1..=n).collect(), columns, remarks: Vec::new() })
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

    /// What reading had to decide that a person might decide otherwise.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
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
        let select = |column: &Column| Column {
            name: column.name.clone(),
            kind: column.kind,
            values: column.values.select(rows),
            suspect: column.suspect.clone(),
        };
        Self {
            file: self.file.clone(),
            rows: rows.iter().map(|&row| self.rows[row]).collect(),
            columns: self.columns.iter().map(select).collect(),
            remarks: self.remarks.clone(),
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

fn wishes(kinds: &Kinds) -> Wishes {
    kinds.iter().map(|(name, kind)| (name.clone(), Wish::As(*kind))).collect()
}

/// What is asked of columns in so many words.
fn exactly(wishes: &Wishes) -> Kinds {
    let exact = |(name, wish): (&String, &Wish)| match wish {
        Wish::As(kind) => Some((name.clone(), *kind)),
        Wish::Number | Wish::Time => None,
    };
    wishes.iter().filter_map(exact).collect()
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
