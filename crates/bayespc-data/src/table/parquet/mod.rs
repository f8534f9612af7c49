//! Parquet: the flat columns of numbers, texts, booleans and times, some rows at a time.
//!
//! Columns of other types stay in the table as unsupported, so that they are an error only when used.
//! Index columns that pandas adds (`__index_level_0__`) are left out.

mod meaning;
mod pages;
mod shapes;
mod sizes;
mod source;
#[cfg(test)]
mod tests;
mod thrift;

use std::fs::File;

use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};

use meaning::{Cell, Meaning, decimal, half, meaning};
use pages::Pages;

use super::{Column, Kind, Kinds, Table, Unread, Values, check_names};
use crate::quiet::caught;
use crate::{Error, Result};

/// Rows read from a row group at a time at least, since each time its columns are opened anew; and rows of a column that are
/// decoded at a time, so that room is made for what is there and not for what the file says.
const ROWS: usize = 1 << 16;

/// Reads a Parquet file forward.
pub(crate) struct Reader {
    input: Box<dyn FileReader>,
    file: String,
    columns: Vec<Source>,
    names: Vec<String>,
    /// The row group to read, and how many of its rows have been.
    group: usize,
    n_in_group: usize,
    /// Rows read and not yet given out.
    ahead: Option<(Kinds, Table)>,
    n_read: usize,
}

/// A column of the file.
struct Source {
    name: String,
    /// Which leaf of the schema.
    leaf: usize,
    is_optional: bool,
    /// What its values mean, or the name of a type that cannot be read.
    meaning: Result<Meaning, String>,
}

impl Reader {
    /// Reads the schema of a file.
    pub fn open_file(name: &str, input: File) -> Result<Self> {
        if input.metadata().map_err(Error::io(name.as_ref()))?.len() == 0 {
            return Err(Error::EmptyFile { file: name.to_owned() });
        }
        Self::new(name, || open(input))
    }

    /// Reads the schema of a file that is in memory.
    pub fn open_bytes(name: &str, bytes: Bytes) -> Result<Self> {
        Self::new(name, || open(bytes))
    }

    fn new(name: &str, open: impl FnOnce() -> Result<Box<dyn FileReader>, ParquetError>) -> Result<Self> {
        let file = name.to_owned();
        let wrong = |source: ParquetError| Error::Parquet { file: file.clone(), source };
        let reader = guarded(open).map_err(wrong)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let mut columns: Vec<Source> = Vec::new();
        for (leaf, column) in schema.columns().iter().enumerate() {
            let root = schema.get_column_root(leaf);
            if is_pandas_index(root.name())
                || columns.last().is_some_and(|last| last.name == root.name()) && !root.is_primitive()
            {
                continue;
            }
            columns.push(Source {
                name: root.name().to_owned(),
                leaf,
                is_optional: column.max_def_level() > 0,
                meaning: meaning(root),
            });
        }
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        check_names(&names, &file)?;
        // Rows without a cell that can be read are worth nothing, and their number is not to be believed.
        if let Some(column) = columns.first().filter(|_| columns.iter().all(|column| column.meaning.is_err()))
        {
            let kind = column.meaning.clone().err().unwrap_or_default();
            return Err(Error::UnsupportedColumn { file, column: column.name.clone(), kind });
        }
        Ok(Self { input: reader, file, columns, names, group: 0, n_in_group: 0, ahead: None, n_read: 0 })
    }

    /// The next rows, at most `limit`; columns named in `kinds` are of that kind, others as in the file.
    /// `None` at the end.
    pub fn chunk(&mut self, kinds: &Kinds, limit: usize, unread: &mut Unread) -> Result<Option<Table>> {
        let mut table: Option<Table> = None;
        loop {
            let n = table.as_ref().map_or(0, Table::n_rows);
            if n == limit {
                return Ok(table);
            }
            let ahead = match self.ahead.take() {
                Some((of, ahead)) if of == *kinds => Some(ahead),
                _ => self.read(kinds, (limit - n).max(1), unread)?,
            };
            let Some(ahead) = ahead else { return Ok(table) };
            let (now, later) = ahead.split(limit - n);
            self.ahead = later.map(|later| (kinds.clone(), later));
            match &mut table {
                Some(table) => table.append(now),
                None => table = Some(now),
            }
        }
    }

    /// The file's name, for messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The first rows, at most `limit`; before any row is given out.
    pub fn head(&mut self, kinds: &Kinds, limit: usize) -> Result<Option<Table>> {
        let head = self.chunk(kinds, limit, &mut Unread::Fail);
        (self.group, self.n_in_group, self.n_read, self.ahead) = (0, 0, 0, None);
        head
    }

    /// Rows of the next row group that has some left, at least one and many if asked for many.
    fn read(&mut self, kinds: &Kinds, wanted: usize, unread: &mut Unread) -> Result<Option<Table>> {
        let metadata = self.input.metadata();
        while self.group < metadata.num_row_groups() {
            let n_rows = usize::try_from(metadata.row_group(self.group).num_rows()).unwrap_or(0);
            let n = (n_rows - self.n_in_group.min(n_rows)).min(wanted.max(ROWS));
            if n == 0 {
                (self.group, self.n_in_group) = (self.group + 1, 0);
                continue;
            }
            let columns = self
                .columns
                .iter()
                .map(|column| self.column(column, kinds, n, unread))
                .collect::<Result<Vec<_>>>()?;
            self.n_in_group += n;
            let rows = (self.n_read + 1..=self.n_read + n).collect();
            self.n_read += n;
            return Ok(Some(Table {
                file: self.file.clone(),
                rows,
                header: self.names.clone(),
                columns,
                remarks: Vec::new(),
            }));
        }
        Ok(None)
    }

    /// The next `n` rows of a column in the row group.
    fn column(&self, source: &Source, kinds: &Kinds, n: usize, unread: &mut Unread) -> Result<Column> {
        let meaning = match &source.meaning {
            Ok(meaning) => *meaning,
            Err(kind) => return Ok(Column::of(&source.name, Kind::Text, Values::Unsupported(kind.clone()))),
        };
        let kind = kinds.get(&source.name).copied().unwrap_or(meaning.kind());
        let mut values = Values::new(kind);
        values.reserve(n.min(ROWS));
        let wrong_value = |(i, value): (usize, String)| Error::WrongType {
            file: self.file.clone(),
            row: self.n_read + i + 1,
            column: source.name.clone(),
            value,
            expected: kind.noun(),
        };
        let mut wrong_cells = Vec::new();
        let read = || {
            let group = self.input.get_row_group(self.group)?;
            let pages = Pages {
                inner: group.get_column_page_reader(source.leaf)?,
                n_rows: usize::try_from(group.metadata().num_rows())?,
                is_optional: source.is_optional,
            };
            let described = group.metadata().schema_descr().column(source.leaf);
            let sink = &mut Sink { values: &mut values, kind, wrong: &mut wrong_cells };
            let skip = self.n_in_group;
            match get_column_reader(described, Box::new(pages)) {
                ColumnReader::BoolColumnReader(r) => pull(r, source, skip, n, |cell, i| {
                    sink.put(cell.map_or(Cell::Missing, |x| Cell::Bool(*x)), i);
                }),
                ColumnReader::Int32ColumnReader(r) => pull(r, source, skip, n, |cell, i| {
                    let widen = |x: &i32| match meaning {
                        Meaning::Number { unsigned: true, .. } => i64::from(x.cast_unsigned()),
                        _ => i64::from(*x),
                    };
                    sink.put(cell.map_or(Cell::Missing, |x| meaning.integer(widen(x))), i);
                }),
                ColumnReader::Int64ColumnReader(r) => pull(r, source, skip, n, |cell, i| {
                    sink.put(cell.map_or(Cell::Missing, |x| meaning.integer(*x)), i);
                }),
                ColumnReader::Int96ColumnReader(r) => pull(r, source, skip, n, |cell, i| {
                    sink.put(cell.map_or(Cell::Missing, |x| Cell::Time(x.to_micros())), i);
                }),
                ColumnReader::FloatColumnReader(r) => pull(r, source, skip, n, |cell, i| {
                    sink.put(cell.map_or(Cell::Missing, |x| Cell::Number(f64::from(*x))), i);
                }),
                ColumnReader::DoubleColumnReader(r) => pull(r, source, skip, n, |cell, i| {
                    sink.put(cell.map_or(Cell::Missing, |x| Cell::Number(*x)), i);
                }),
                ColumnReader::ByteArrayColumnReader(r) => {
                    pull(r, source, skip, n, |cell, i| sink.put_bytes(cell.map(ByteArray::data), meaning, i))
                }
                ColumnReader::FixedLenByteArrayColumnReader(r) => {
                    pull(r, source, skip, n, |cell, i| sink.put_bytes(cell.map(|x| x.data()), meaning, i))
                }
            }
        };
        guarded(read).map_err(|source| Error::Parquet { file: self.file.clone(), source })?;
        for (i, value) in wrong_cells {
            unread.meet(self.n_read + i + 1, wrong_value((i, value)))?;
        }
        values.settle();
        Ok(Column::of(&source.name, kind, values))
    }
}

/// Gives every value of `n` rows after the first `skip` to `put`, nulls too.
fn pull<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    source: &Source,
    skip: usize,
    n: usize,
    mut put: impl FnMut(Option<&T::T>, usize),
) -> Result<(), ParquetError> {
    reader.skip_records(skip)?;
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < n {
        levels.clear();
        values.clear();
        let (records, ..) =
            reader.read_records((n - read).min(ROWS), Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("column {} has {read} of {n} rows", source.name)));
        }
        let mut values = values.iter();
        for i in 0..records {
            let is_null = source.is_optional && levels.get(i).is_none_or(|level| *level == 0);
            put(if is_null { None } else { values.next() }, read + i);
        }
        read += records;
    }
    Ok(())
}

/// A column that is being filled.
struct Sink<'a> {
    values: &'a mut Values,
    kind: Kind,
    /// Cells that are not of the kind.
    wrong: &'a mut Vec<(usize, String)>,
}

impl Sink<'_> {
    /// Adds a value as it is if the kinds agree, else by way of its text.
    fn put(&mut self, cell: Cell, i: usize) {
        let text = match (&mut *self.values, cell) {
            (Values::Number(values), Cell::Number(x)) => return values.push(x),
            (Values::Bool(values), Cell::Bool(bit)) => return values.push(Some(bit)),
            (Values::Time(values), Cell::Time(time)) => return values.push(time),
            (values, Cell::Missing) => return values.push_missing(),
            (_, Cell::Number(x)) => Values::Number(vec![x]).text(0).map(std::borrow::Cow::into_owned),
            (_, Cell::Bool(bit)) => Some(bit.to_string()),
            (_, Cell::Time(time)) => Values::Time(vec![time]).text(0).map(std::borrow::Cow::into_owned),
        };
        self.put_text(text.as_deref().unwrap_or_default(), i);
    }

    fn put_bytes(&mut self, bytes: Option<&[u8]>, meaning: Meaning, i: usize) {
        let Some(bytes) = bytes else { return self.values.push_missing() };
        match meaning {
            Meaning::Number { scale, .. } => self.put(Cell::Number(decimal(bytes, scale)), i),
            Meaning::Half => self.put(half(bytes).map_or(Cell::Missing, Cell::Number), i),
            _ => match (&mut *self.values, &*String::from_utf8_lossy(bytes)) {
                // Types say that it is text, so that `NA` may be Namibia.
                (Values::Text(values), text) => values.push(Some(text)),
                (_, text) => self.put_text(text.trim(), i),
            },
        }
    }

    fn put_text(&mut self, text: &str, i: usize) {
        if self.values.push(text, self.kind).is_err() {
            self.values.push_missing();
            self.wrong.push((i, text.to_owned()));
        }
    }
}

fn open<R: ChunkReader + 'static>(input: R) -> Result<Box<dyn FileReader>, ParquetError> {
    let len = input.len();
    let reader = SerializedFileReader::new(source::Source::new(input))?;
    sizes::check(reader.metadata(), len)?;
    Ok(Box::new(reader))
}

/// Turns a panic into an error: the parquet crate asserts what a damaged file may break.
///
/// What `work` leaves half done is not used again, since every error ends the reading.
fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    caught(work).unwrap_or_else(|| Err(ParquetError::General("damaged file".to_owned())))
}

fn is_pandas_index(name: &str) -> bool {
    name.starts_with("__index_level_") && name.ends_with("__")
}
