//! CSV: a header, then rows of as many cells, the whole at once or some rows at a time.

mod parts;
mod scan;
mod stream;
mod whole;

pub(crate) use stream::Reader;
pub(super) use whole::read;

use super::check_different;
use crate::{Error, Result};
use scan::{Scan, Span};

/// A header and how cells are separated.
#[derive(Clone, Debug)]
struct Header {
    file: String,
    delimiter: u8,
    names: Vec<String>,
}

impl Header {
    /// Reads the header of a text, and where the rows begin. `start` is enough of the text to tell the delimiter.
    fn read(file: &str, start: &str) -> Result<(Self, usize)> {
        let delimiter = scan::delimiter(start);
        let mut cells = Vec::new();
        let at = match scan::record(start, 0, delimiter, &mut cells) {
            Scan::Record(at) => at,
            Scan::End => return Err(Error::EmptyFile { file: file.to_owned() }),
            Scan::OpenQuote => return Err(Error::OpenQuote { file: file.to_owned(), row: 0 }),
        };
        let names: Vec<String> = cells.iter().map(|cell| cell.text(start).into_owned()).collect();
        check_different(&names, file)?;
        Ok((Self { file: file.to_owned(), delimiter, names }, at))
    }

    /// Fails unless a row has as many cells as the header.
    fn check_width(&self, cells: &[Span], row: usize) -> Result<()> {
        if cells.len() == self.names.len() {
            return Ok(());
        }
        Err(Error::RaggedRow { file: self.file.clone(), row, found: cells.len(), expected: self.names.len() })
    }
}
