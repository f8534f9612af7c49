//! The user's own tables: named columns of numbers, texts, booleans or times, from files of many formats.
//!
//! A cell is missing when it is empty or one of NA, N/A, NaN, null, ? (in any case). The kind of a column follows
//! from its cells if the file does not tell: booleans if all are `true` or `false`, numbers or times if all are
//! written in one format of those, else text. A cell that is neither number nor date where more than nine in
//! ten are is remembered as suspect, and an error once the column is used.

mod cell;
mod csv;
mod decode;
mod guess;
mod hash;
mod json;
mod kind;
mod number;
mod open;
mod parquet;
mod remark;
mod sheet;
mod time;
mod values;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

pub use kind::{Kind, UnknownKind, Wish};
pub use number::{Currency, Decimal, Group, NumberFormat, Unit};
pub use remark::Remark;
pub use time::{Civil, DateOrder, DateSeparator, TimeFormat};
pub use values::{Texts, Values};
pub use write::ParquetWriter;

use crate::{Error, Result};
use decode::TextReader;
use guess::{Guess, Verdict};
use open::Content;

/// Kinds of columns by name, for columns whose kind is to be given rather than guessed.
pub type Kinds = BTreeMap<String, Kind>;

/// What is asked of columns by name; all others are guessed.
pub type Wishes = BTreeMap<String, Wish>;

/// Columns that are read some rows at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Columns that must be of a kind.
    pub kinds: Kinds,
    /// The kind of all others; left out if none is given.
    pub others: Option<Kind>,
}

impl Asked {
    /// What a column is to be, if it is asked for.
    fn kind(&self, name: &str) -> Option<Kind> {
        self.kinds.get(name).copied().or(self.others)
    }
}

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
    /// Names of all columns of the file, those too that were not asked for.
    header: Vec<String>,
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
    pub fn from_texts<'a>(name: impl Into<String>, cells: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut texts = Texts::new();
        cells.into_iter().for_each(|cell| texts.push_cell(cell.unwrap_or_default().trim()));
        let verdict = Guess::of_texts(&texts).verdict(false);
        // The guess has read every cell; what it could not read it took for text, which anything is.
        let mut values = texts.read_as(verdict.kind).unwrap_or_else(|_| Values::Text(Texts::new()));
        values.settle();
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

/// A file that is read some rows at a time.
pub(crate) enum ChunkReader {
    Csv(csv::Reader),
    Json(json::Reader),
    Parquet(parquet::Reader),
    /// A sheet is read at once, and given out in parts.
    Workbook {
        file: String,
        bytes: Vec<u8>,
        sheet: Option<String>,
        rest: Option<Table>,
    },
}

impl ChunkReader {
    pub fn open(path: &Path, sheet: Option<&str>) -> Result<Self> {
        Self::of(&open::name(path), open::open(path)?, sheet)
    }

    fn of(name: &str, content: Content, sheet: Option<&str>) -> Result<Self> {
        Ok(match content {
            Content::Csv(source) => Self::Csv(csv::Reader::new(name, source)?),
            Content::Json(source) => Self::Json(json::Reader::new(name, source)),
            Content::Parquet(reader) => Self::Parquet(reader),
            Content::Workbook(bytes) => {
                Self::Workbook { file: name.to_owned(), bytes, sheet: sheet.map(str::to_owned), rest: None }
            }
        })
    }

    /// The first rows, at most `limit`, as asked or as they look; they will be given out nonetheless.
    pub fn head(&mut self, options: &ReadOptions, limit: usize) -> Result<Table> {
        match self {
            Self::Csv(reader) => {
                let file = reader.file().to_owned();
                let mut table = csv::read(&file, reader.head(limit)?, &options.wishes)?;
                table.remarks.extend(reader.remark());
                Ok(table)
            }
            Self::Json(reader) => reader.head(&options.wishes, limit),
            Self::Parquet(reader) => {
                let head = reader.head(&exactly(&options.wishes), limit)?;
                head.ok_or_else(|| Error::NoRows { file: reader.file().to_owned() })
            }
            Self::Workbook { file, bytes, sheet, .. } => {
                let wish = |name: &str| options.wishes.get(name).copied();
                Ok(sheet::read(file, bytes.clone(), sheet.as_deref(), &wish)?.split(limit).0)
            }
        }
    }

    /// The next rows, at most `limit`; columns that are not asked for may be left out. `None` at the end.
    pub fn chunk(&mut self, asked: &Asked, limit: usize) -> Result<Option<Table>> {
        match self {
            Self::Csv(reader) => reader.chunk(asked, limit),
            Self::Json(reader) => reader.chunk(asked, limit),
            Self::Parquet(reader) => reader.chunk(&asked.kinds, limit),
            Self::Workbook { file, bytes, sheet, rest } => {
                if !bytes.is_empty() {
                    let bytes = std::mem::take(bytes);
                    let wish = |name: &str| asked.kind(name).map(Wish::As);
                    *rest = Some(sheet::read(file, bytes, sheet.as_deref(), &wish)?);
                }
                let Some(table) = rest.take() else { return Ok(None) };
                let (now, later) = table.split(limit);
                *rest = later;
                Ok(Some(now))
            }
        }
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
