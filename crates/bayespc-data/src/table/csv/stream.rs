//! A CSV file read forward, some rows at a time.

use super::Header;
use super::parts::{Part, Wanted};
use super::scan::{self, Scan};
use crate::table::decode::TextReader;
use crate::table::{Asked, Column, Remark, Table, Unread};
use crate::{Error, Result};

/// Reads a CSV file forward.
pub(crate) struct Reader {
    source: TextReader,
    header: Header,
    /// What has been read and not yet given out begins at `at`.
    text: String,
    at: usize,
    /// Data rows given out so far.
    n_read: usize,
}

impl Reader {
    /// Reads the header.
    pub fn new(file: &str, mut source: TextReader) -> Result<Self> {
        let mut text = String::new();
        loop {
            let more = source.more(&mut text)?;
            match Header::read(file, &text) {
                // A name in quotes may be longer than what was read.
                Err(Error::OpenQuote { .. }) if more => {}
                read => {
                    let (header, at) = read?;
                    return Ok(Self { source, header, text, at, n_read: 0 });
                }
            }
        }
    }

    /// The next rows, at most `limit`, of the columns that are asked for; `None` at the end.
    pub fn chunk(&mut self, asked: &Asked, limit: usize, unread: &mut Unread) -> Result<Option<Table>> {
        let names = self.header.names.iter().enumerate();
        let wanted: Vec<Wanted> = names
            .filter_map(|(index, name)| {
                Some(Wanted { index, kind: asked.kind(name).filter(|_| !name.is_empty())? })
            })
            .collect();
        let mut part = Part::new(&wanted);
        part.unread = std::mem::take(unread);
        loop {
            let text = &self.text[self.at..];
            self.at += part.extend(&self.header, text, limit, self.n_read, self.source.is_done())?;
            if part.n_rows == limit || !self.refill()? {
                break;
            }
        }
        *unread = part.unread;
        let mut columns = Vec::with_capacity(wanted.len());
        for (wanted, values) in wanted.iter().zip(part.columns) {
            let name = &self.header.names[wanted.index];
            let values = values.map_err(|wrong| Error::WrongType {
                file: self.header.file.clone(),
                row: self.n_read + wrong.row,
                column: name.clone(),
                value: wrong.value,
                expected: wanted.kind.noun(),
            })?;
            columns.push(Column::of(name, wanted.kind, values));
        }
        let rows: Vec<usize> = (self.n_read + 1..=self.n_read + part.n_rows).collect();
        self.n_read += part.n_rows;
        Ok((!rows.is_empty()).then(|| Table {
            file: self.header.file.clone(),
            rows,
            header: self.header.names.iter().filter(|name| !name.is_empty()).cloned().collect(),
            columns,
            remarks: self.source.remark().into_iter().collect(),
        }))
    }

    /// The header and the first rows, at most `limit`, as they stand in the file; before any row is given out.
    pub fn head(&mut self, limit: usize) -> Result<&str> {
        let (mut at, mut rows, mut cells) = (self.at, 0, Vec::new());
        while rows < limit {
            match scan::record(&self.text, at, self.header.delimiter, &mut cells) {
                Scan::Record(next) if self.source.is_done() || next < self.text.len() => {
                    (at, rows) = (next, rows + 1);
                }
                _ if self.source.is_done() => {
                    at = self.text.len();
                    break;
                }
                _ => {
                    self.source.more(&mut self.text)?;
                }
            }
        }
        Ok(&self.text[..at])
    }

    /// The same without records that have not as many cells as the header, and the rows that are left.
    pub fn head_of_whole_rows(&mut self, limit: usize) -> Result<(String, Vec<usize>)> {
        let start = self.at;
        let (delimiter, width) = (self.header.delimiter, self.header.names.len());
        let text = self.head(limit)?;
        let (mut whole, mut rows) = (text[..start].to_owned(), Vec::new());
        let (mut at, mut row, mut cells) = (start, 0, Vec::new());
        while let Scan::Record(next) = scan::record(text, at, delimiter, &mut cells) {
            row += 1;
            if cells.len() == width {
                whole.push_str(&text[at..next]);
                rows.push(row);
            }
            at = next;
        }
        // A quote that is never closed is the end of the file, and of no row.
        whole.push_str(&text[at..]);
        Ok((whole, rows))
    }

    /// The file's name, for messages.
    pub fn file(&self) -> &str {
        &self.header.file
    }

    /// What the file was taken for, if not for UTF-8.
    pub fn remark(&self) -> Option<Remark> {
        self.source.remark()
    }

    /// Forgets what was given out and reads more; `false` at the end.
    fn refill(&mut self) -> Result<bool> {
        if self.source.is_done() {
            return Ok(false);
        }
        self.text.drain(..self.at);
        self.at = 0;
        self.source.more(&mut self.text)?;
        Ok(true)
    }
}
