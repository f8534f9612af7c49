//! CSV: a header, then rows of as many cells, some rows at a time.

use std::io::BufRead;

use csv::{ByteRecord, ReaderBuilder};

use super::guess::Guess;
use super::{Column, Kinds, Table, Values, check_names};
use crate::{Error, Result};

/// Reads a CSV file forward.
pub(crate) struct Reader<R> {
    records: csv::Reader<R>,
    file: String,
    names: Vec<String>,
    /// Data rows read so far.
    n_read: usize,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    pub fn new(mut input: R, file: &str) -> Result<Self> {
        let start = input.fill_buf().map_err(Error::io(file.as_ref()))?;
        let delimiter = delimiter(start);
        let mut reader = ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(input);
        let header = reader.byte_headers().map_err(|source| Error::Csv { file: file.to_owned(), source })?;
        if header.is_empty() {
            return Err(Error::EmptyFile { file: file.to_owned() });
        }
        let names = (0..header.len())
            .map(|i| text(header, i, 0, file).map(str::to_owned))
            .collect::<Result<Vec<_>>>()?;
        check_names(&names, file)?;
        Ok(Self { records: reader, file: file.to_owned(), names, n_read: 0 })
    }

    /// Reads all rows and tells what each column looks like.
    pub fn guess(mut self) -> Result<Vec<(String, Guess)>> {
        let mut guesses: Vec<Guess> = self.names.iter().map(|_| Guess::default()).collect();
        let mut record = ByteRecord::new();
        while self.read(&mut record)? {
            for (i, guess) in guesses.iter_mut().enumerate() {
                guess.see(text(&record, i, self.n_read, &self.file)?, self.n_read, 1);
            }
        }
        Ok(self.names.into_iter().zip(guesses).collect())
    }

    /// The next rows, at most `limit`, of the columns named in `kinds`; `None` at the end.
    pub fn chunk(&mut self, kinds: &Kinds, limit: usize) -> Result<Option<Table>> {
        let mut columns: Vec<(usize, Column)> = self
            .names
            .iter()
            .enumerate()
            .filter_map(|(i, name)| {
                let kind = *kinds.get(name)?;
                Some((i, Column::of(name, kind, Values::new(kind))))
            })
            .collect();
        let mut rows = Vec::new();
        let mut record = ByteRecord::new();
        while rows.len() < limit && self.read(&mut record)? {
            rows.push(self.n_read);
            for (i, column) in &mut columns {
                let cell = text(&record, *i, self.n_read, &self.file)?;
                column.values.push(cell, column.kind).map_err(|()| Error::WrongType {
                    file: self.file.clone(),
                    row: self.n_read,
                    column: column.name.clone(),
                    value: cell.to_owned(),
                    expected: column.kind.noun(),
                })?;
            }
        }
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        Ok((!rows.is_empty()).then(|| Table { file: self.file.clone(), rows, columns, remarks: Vec::new() }))
    }

    /// The header and the first rows, at most `limit`, as CSV text with commas.
    pub fn head(mut self, limit: usize) -> Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let wrong = |source| Error::Csv { file: self.file.clone(), source };
        writer.write_record(&self.names).map_err(wrong)?;
        let mut record = ByteRecord::new();
        while self.n_read < limit && self.read(&mut record)? {
            let wrong = |source| Error::Csv { file: self.file.clone(), source };
            writer.write_byte_record(&record).map_err(wrong)?;
        }
        Ok(writer.into_inner().expect("writing to memory does not fail"))
    }

    /// Reads one row of as many cells as the header has; `false` at the end.
    fn read(&mut self, record: &mut ByteRecord) -> Result<bool> {
        let more = self
            .records
            .read_byte_record(record)
            .map_err(|source| Error::Csv { file: self.file.clone(), source })?;
        if more {
            self.n_read += 1;
            if record.len() != self.names.len() {
                return Err(Error::RaggedRow {
                    file: self.file.clone(),
                    row: self.n_read,
                    found: record.len(),
                    expected: self.names.len(),
                });
            }
        }
        Ok(more)
    }
}

/// The trimmed text of a cell.
fn text<'a>(record: &'a ByteRecord, i: usize, row: usize, file: &str) -> Result<&'a str> {
    let cell = str::from_utf8(&record[i]).map_err(|_| Error::NotUtf8 {
        file: file.to_owned(),
        row,
        column: i + 1,
    })?;
    Ok(cell.trim())
}

/// Whichever of comma, semicolon and tab occurs most in the header outside quotes; a comma if none does.
fn delimiter(start: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    let mut quoted = false;
    for &byte in start {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if !quoted => counts.iter_mut().filter(|(known, _)| *known == byte).for_each(|(_, n)| *n += 1),
            _ => {}
        }
    }
    // Of equals `max_by_key` takes the last, so the comma must come last.
    counts.iter().rev().max_by_key(|(_, n)| *n).map_or(b',', |&(byte, _)| byte)
}
