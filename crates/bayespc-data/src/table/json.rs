//! JSON lines: an object for each row, its keys the columns; a key that is not there is a missing cell.
//!
//! Cells are judged as those of a CSV file are, whatever quotes they have in JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::decode::TextReader;
use super::{Asked, Column, Kind, Table, Texts, Unread, Values, Wishes, check_names};
use crate::{Error, Result};

/// Reads JSON lines forward.
pub(crate) struct Reader {
    file: String,
    source: TextReader,
    text: String,
    at: usize,
    /// Rows given out so far.
    n_read: usize,
    names: Vec<String>,
}

/// Columns of some rows.
#[derive(Default)]
struct Rows {
    n: usize,
    /// Cells, and the rows, from 0, in which they are nested.
    columns: Vec<(Texts, Vec<usize>)>,
}

impl Reader {
    pub fn new(file: &str, source: TextReader) -> Self {
        Self { file: file.to_owned(), source, text: String::new(), at: 0, n_read: 0, names: Vec::new() }
    }

    /// The first rows, at most `limit`, as asked or as they look; before any row is given out.
    pub fn head(&mut self, wishes: &Wishes, limit: usize, unread: &mut Unread) -> Result<Table> {
        let n_lines = |text: &str| memchr::memchr_iter(b'\n', text.as_bytes()).count();
        while !self.source.is_done() && n_lines(&self.text) <= limit {
            self.source.more(&mut self.text)?;
        }
        let rows = self.rows(limit, unread)?;
        (self.at, self.n_read) = (0, 0);
        let names = std::mem::take(&mut self.names);
        if rows.n == 0 {
            return Err(Error::EmptyFile { file: self.file.clone() });
        }
        let mut remarks: Vec<_> = self.source.remark().into_iter().collect();
        let mut columns = Vec::new();
        let mut texts = Vec::new();
        for (name, (cells, nested)) in names.iter().zip(rows.columns) {
            if !nested.is_empty() && (!unread.skips() || 2 * nested.len() > rows.n) {
                columns.push(Column::of(name, Kind::Text, Values::Unsupported("nested".to_owned())));
            } else {
                texts.push((name.clone(), cells));
            }
        }
        let mut table = Table::from_texts(&self.file, texts, &|name| wishes.get(name).copied())?;
        columns.append(&mut table.columns);
        columns.sort_by_key(|column| names.iter().position(|name| *name == column.name));
        remarks.append(&mut table.remarks);
        check_names(&names, &self.file)?;
        let rows = (1..=rows.n).collect();
        Ok(Table { file: self.file.clone(), rows, header: names, columns, remarks })
    }

    /// The next rows, at most `limit`, of the columns that are asked for; `None` at the end.
    pub fn chunk(&mut self, asked: &Asked, limit: usize, unread: &mut Unread) -> Result<Option<Table>> {
        let (before, skips) = (self.n_read, unread.skips());
        let rows = self.rows(limit, unread)?;
        let mut columns = Vec::new();
        for (name, (texts, nested)) in self.names.iter().zip(rows.columns) {
            let Some(kind) = asked.kind(name) else { continue };
            let mut meet = |(i, value): (usize, String)| {
                let (file, column, expected) = (self.file.clone(), name.clone(), kind.noun());
                let row = before + i + 1;
                unread.meet(row, Error::WrongType { file, row, column, value, expected })
            };
            let values = if nested.is_empty() || skips {
                nested.into_iter().try_for_each(|i| meet((i, "a nested value".to_owned())))?;
                let (values, unreadable) = texts.read_as_far(kind);
                unreadable.into_iter().try_for_each(meet)?;
                values
            } else {
                Values::Unsupported("nested".to_owned())
            };
            columns.push(Column::of(name, kind, values));
        }
        Ok((rows.n > 0).then(|| Table {
            file: self.file.clone(),
            rows: (before + 1..=before + rows.n).collect(),
            header: self.names.clone(),
            columns,
            remarks: self.source.remark().into_iter().collect(),
        }))
    }

    fn rows(&mut self, limit: usize, unread: &mut Unread) -> Result<Rows> {
        let mut rows = Rows { n: 0, columns: self.names.iter().map(|_| Default::default()).collect() };
        while rows.n < limit {
            let rest = &self.text[self.at..];
            let Some(end) = rest.find('\n').or(self.source.is_done().then_some(rest.len())) else {
                self.text.drain(..self.at);
                self.at = 0;
                self.source.more(&mut self.text)?;
                continue;
            };
            let line = rest[..end].trim();
            if line.is_empty() && self.at + end >= self.text.len() {
                break;
            }
            if !line.is_empty() {
                let row = self.n_read + 1;
                let object = serde_json::from_str(line).or_else(|source| {
                    unread.meet(row, Error::Json { file: self.file.clone(), row, source })?;
                    Ok::<_, Error>(Object(Vec::new()))
                })?;
                self.n_read = row;
                add(&mut self.names, &mut rows, object);
            }
            self.at = (self.at + end + 1).min(self.text.len());
        }
        Ok(rows)
    }
}

/// Adds a row; new keys are new columns, whose cells so far are missing.
fn add(names: &mut Vec<String>, rows: &mut Rows, object: Object) {
    for (key, cell) in object.0 {
        let i = names.iter().position(|name| *name == key).unwrap_or_else(|| {
            names.push(key);
            rows.columns.push(((0..rows.n).map(|_| None).collect(), Vec::new()));
            names.len() - 1
        });
        let (texts, nested) = &mut rows.columns[i];
        // Of a key that is there twice the first counts.
        if texts.len() == rows.n {
            texts.push_cell(cell.text.trim());
        }
        if cell.is_nested {
            nested.push(rows.n);
        }
    }
    rows.n += 1;
    for (texts, _) in &mut rows.columns {
        if texts.len() < rows.n {
            texts.push(None);
        }
    }
}

/// A row: keys and cells in the order of the file.
struct Object(Vec<(String, Cell)>);

/// A value as text; nothing if it is null, or nested.
#[derive(Default)]
struct Cell {
    text: String,
    is_nested: bool,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object for each row, on a line of its own")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar;
        fn shown(value: impl fmt::Display) -> Cell {
            Cell { text: value.to_string(), is_nested: false }
        }
        impl<'de> Visitor<'de> for Scalar {
            type Value = Cell;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, true, false or null")
            }

            fn visit_unit<E>(self) -> Result<Cell, E> {
                Ok(Cell::default())
            }

            fn visit_bool<E>(self, value: bool) -> Result<Cell, E> {
                Ok(shown(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Cell, E> {
                Ok(shown(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Cell, E> {
                Ok(shown(value))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Cell, E> {
                Ok(shown(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<Cell, E> {
                Ok(shown(value))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Cell { text: String::new(), is_nested: true })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cell, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Cell { text: String::new(), is_nested: true })
            }
        }
        deserializer.deserialize_any(Scalar)
    }
}
