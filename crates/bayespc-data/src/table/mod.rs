//! The user's own tables: named columns of numbers, texts, booleans or times, from files of many formats.
//!
//! A cell is missing when it is empty or one of NA, N/A, NaN, null, ? (in any case). The kind of a column follows
//! from its cells if the file does not tell: booleans if all are `true` or `false`, numbers or times if all are
//! written in one format of those, else text. A cell that is neither number nor date where more than nine in
//! ten are is remembered as suspect, and an error once the column is used.

mod cell;
mod chunks;
mod column;
mod csv;
mod decode;
mod guess;
mod hash;
mod head;
mod json;
mod kind;
mod number;
mod open;
mod parquet;
mod remark;
mod sheet;
mod time;
mod unread;
mod values;
mod write;

use std::collections::BTreeMap;
use std::path::Path;

pub use column::{Column, Suspect};
pub use kind::{Kind, UnknownKind, Wish};
pub use number::{Currency, Decimal, Group, NumberFormat, Unit};
pub use remark::Remark;
pub use time::{Civil, DateOrder, DateSeparator, TimeFormat};
pub use values::{Texts, Values};
pub use write::ParquetWriter;

use crate::{Error, Result};
pub(crate) use chunks::{Asked, ChunkReader};
use decode::TextReader;
use guess::{Guess, Verdict};
use open::Content;
pub(crate) use unread::Unread;

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

/// Columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// File name for messages.
    file: String,
    /// Data row in the file of each row, from 1.
    rows: Vec<usize>,
    /// Names of all columns of the file, those too that were not asked for.
    header: Vec<String>,
    columns: Vec<Column>,
    remarks: Vec<Remark>,
}

impl Table {
    /// Reads a whole file and guesses the kinds of its columns: CSV with any usual delimiter, JSON lines, Parquet
    /// or a workbook, perhaps packed (`.gz`, `.zst`); `-` is standard input.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_with(path, &ReadOptions::default())
    }

    /// Reads a whole file; columns named in `kinds` must be of that kind, others are guessed.
    pub fn read_as(path: &Path, kinds: &Kinds) -> Result<Self> {
        Self::read_with(path, &ReadOptions { wishes: wishes(kinds), sheet: None })
    }

    /// Reads a whole file as asked.
    pub fn read_with(path: &Path, options: &ReadOptions) -> Result<Self> {
        let name = open::name(path);
        match open::open(path)? {
            Content::Csv(source) => {
                let (text, remark) = source.whole()?;
                let mut table = csv::read(&name, &text, &options.wishes)?;
                table.remarks.extend(remark);
                Ok(table)
            }
            other => ChunkReader::of(&name, other, options.sheet.as_deref())?.head(options, usize::MAX),
        }
    }

    /// Reads the first rows of a file, at most `limit`, and guesses the kinds of columns from them.
    pub fn read_head(path: &Path, options: &ReadOptions, limit: usize) -> Result<Self> {
        ChunkReader::open(path, options.sheet.as_deref())?.head(options, limit)
    }

    /// Reads CSV text under a name for messages; other delimiters than commas are recognised.
    pub fn from_csv(file: &str, bytes: &[u8], kinds: &Kinds) -> Result<Self> {
        let (text, remark) = TextReader::decode_all(file, bytes.to_vec())?;
        let mut table = csv::read(file, &text, &wishes(kinds))?;
        table.remarks.extend(remark);
        Ok(table)
    }

    /// A table of texts, whose kinds are as asked or follow from the cells.
    fn from_texts(
        file: &str,
        columns: Vec<(String, Texts)>,
        wish: &dyn Fn(&str) -> Option<Wish>,
    ) -> Result<Self> {
        let guesses: Vec<Guess> = columns.iter().map(|(_, texts)| Guess::of_texts(texts)).collect();
        let commas = guesses.iter().any(Guess::has_decimal_commas);
        let mut remarks = Vec::new();
        let mut finished = Vec::with_capacity(columns.len());
        for ((name, texts), guess) in columns.into_iter().zip(guesses) {
            let Verdict { kind, suspect, or } = match wish(&name) {
                Some(wish) => Verdict { kind: guess.wished(wish, commas), suspect: None, or: None },
                None => guess.verdict(commas),
            };
            remarks.extend(or.map(|or| Remark::Ambiguous { column: name.clone(), kind, or }));
            let mut values = texts.read_as(kind).map_err(|(i, value)| Error::WrongType {
                file: file.to_owned(),
                row: i + 1,
                column: name.clone(),
                value,
                expected: kind.noun(),
            })?;
            values.settle();
            finished.push(Column { name, kind, values, suspect });
        }
        let table = Self::from_columns(file, finished)?;
        if table.n_rows() == 0 {
            return Err(Error::NoRows { file: file.to_owned() });
        }
        Ok(Self { remarks, ..table })
    }

    /// The same with texts judged like the cells of a CSV file: whoever wrote dates or amounts as texts means them.
    fn judge_texts(mut self, wish: &dyn Fn(&str) -> Option<Wish>) -> Result<Self> {
        let mut texts = Vec::new();
        for column in &mut self.columns {
            if let Values::Text(cells) = &mut column.values {
                texts.push((column.name.clone(), std::mem::take(cells)));
            }
        }
        if texts.is_empty() {
            return Ok(self);
        }
        let judged = Self::from_texts(&self.file, texts, wish)?;
        for column in judged.columns {
            if let Some(slot) = self.columns.iter_mut().find(|slot| slot.name == column.name) {
                *slot = column;
            }
        }
        self.remarks.extend(judged.remarks);
        Ok(self)
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
        let rows = (1..=n).collect();
        Ok(Self { file: name.to_owned(), rows, header: names, columns, remarks: Vec::new() })
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

    /// Names of all columns of the file, those too that were not asked for.
    pub fn header(&self) -> &[String] {
        &self.header
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
            present: self.header.clone(),
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
            header: self.header.clone(),
            columns: self.columns.iter().map(select).collect(),
            remarks: self.remarks.clone(),
        }
    }

    /// The first `n` rows, and the others if there are any.
    fn split(self, n: usize) -> (Self, Option<Self>) {
        if n >= self.n_rows() {
            return (self, None);
        }
        let rows: Vec<usize> = (0..self.n_rows()).collect();
        (self.select_rows(&rows[..n]), Some(self.select_rows(&rows[n..])))
    }

    /// Adds rows of the same columns.
    fn append(&mut self, other: Self) {
        self.rows.extend(other.rows);
        for (column, more) in self.columns.iter_mut().zip(other.columns) {
            column.values.append(more.values);
        }
    }

    /// Data row in the file, from 1, of row `i` of the table.
    pub(crate) fn file_row(&self, i: usize) -> usize {
        self.rows[i]
    }
}

fn wishes(kinds: &Kinds) -> Wishes {
    kinds.iter().map(|(name, kind)| (name.clone(), Wish::As(*kind))).collect()
}

/// Fails if a name is empty or occurs twice.
fn check_names(names: &[String], file: &str) -> Result<()> {
    match names.iter().position(String::is_empty) {
        Some(i) => Err(Error::UnnamedColumn { file: file.to_owned(), position: i + 1 }),
        None => check_different(names, file),
    }
}

/// Fails if a name occurs twice.
fn check_different(names: &[String], file: &str) -> Result<()> {
    let mut sorted: Vec<&String> = names.iter().filter(|name| !name.is_empty()).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::DuplicateColumn { file: file.to_owned(), column: pair[0].clone() }),
        None => Ok(()),
    }
}
