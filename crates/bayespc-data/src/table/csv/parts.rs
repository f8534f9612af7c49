//! Part of a CSV text: some columns of consecutive records.

use super::Header;
use super::scan::{self, Scan};
use crate::table::{Kind, Unread, Values};
use crate::{Error, Result};

/// A column to be read: which of the file, and as what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub index: usize,
    pub kind: Kind,
}

/// The wanted columns of some records.
pub(super) struct Part {
    wanted: Vec<Wanted>,
    pub n_rows: usize,
    /// As many as were wanted; of one with a cell that cannot be read, that cell.
    pub columns: Vec<Result<Values, Unreadable>>,
    /// What becomes of records and cells that cannot be read; if they are an error, that is told by `columns`.
    pub unread: Unread,
}

/// A cell that is not what it should be.
#[derive(Clone, Debug)]
pub(super) struct Unreadable {
    /// In the part, from 1.
    pub row: usize,
    pub value: String,
}

impl Part {
    /// No records yet.
    pub fn new(wanted: &[Wanted]) -> Self {
        let columns = wanted.iter().map(|wanted| Ok(Values::new(wanted.kind))).collect();
        Self { wanted: wanted.to_vec(), n_rows: 0, columns, unread: Unread::Fail }
    }

    /// Reads the records of `text` until there are `limit`, and says where the next one begins. A record that may
    /// go on behind the text is left, unless the text is the last. Rows in errors are counted after `n_before`.
    pub fn extend(
        &mut self,
        header: &Header,
        text: &str,
        limit: usize,
        n_before: usize,
        is_last: bool,
    ) -> Result<usize> {
        let (mut at, mut cells) = (0, Vec::with_capacity(header.names.len()));
        while self.n_rows < limit {
            let row = self.n_rows + 1;
            match scan::record(text, at, header.delimiter, &mut cells) {
                Scan::Record(next) if !is_last && next == text.len() && !text.ends_with(['\n', '\r']) => {
                    break;
                }
                Scan::OpenQuote if !is_last => break,
                Scan::Record(next) => at = next,
                Scan::End => break,
                Scan::OpenQuote => {
                    return Err(Error::OpenQuote { file: header.file.clone(), row: n_before + row });
                }
            }
            if let Err(error) = header.check_width(&cells, n_before + row) {
                self.unread.meet(n_before + row, error)?;
                self.n_rows = row;
                self.columns.iter_mut().flatten().for_each(Values::push_missing);
                continue;
            }
            self.n_rows = row;
            for (wanted, column) in self.wanted.iter().zip(&mut self.columns) {
                let Ok(values) = column else { continue };
                let cell = cells[wanted.index].text(text);
                if values.push(&cell, wanted.kind).is_ok() {
                    continue;
                }
                if self.unread.skips() {
                    values.push_missing();
                    let wrong = Error::WrongType {
                        file: header.file.clone(),
                        row: n_before + row,
                        column: header.names[wanted.index].clone(),
                        value: cell.into_owned(),
                        expected: wanted.kind.noun(),
                    };
                    self.unread.meet(n_before + row, wrong)?;
                } else {
                    *column = Err(Unreadable { row, value: cell.into_owned() });
                }
            }
        }
        Ok(at)
    }
}
