//! Rows of a long file that cannot be read or encoded: left out, counted and named, up to a limit.

use crate::encoding::{Encoded, Encoding, Targets};
use crate::table::Table;
use crate::{Error, Result};

/// So many bad rows are always allowed if no limit is given.
const ALWAYS: usize = 100;

/// One in so many rows may be bad if no limit is given.
const ONE_IN: usize = 100;

/// Rows that were left out because a cell is not what its column is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadRows {
    /// How many.
    pub count: usize,
    /// What is wrong with the first, by file, row, column and value.
    pub first: Option<String>,
    /// How many there may be; `None` is 100 or one in a hundred of the rows read, whichever is more.
    limit: Option<usize>,
}

impl BadRows {
    /// None yet, and at most so many.
    pub fn at_most(limit: Option<usize>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Counts a row; an error if there are too many.
    pub(crate) fn add(&mut self, row: usize, error: Error) -> Result<()> {
        self.count += 1;
        self.first.get_or_insert_with(|| error.to_string());
        let most = self.limit.unwrap_or_else(|| ALWAYS.max(row / ONE_IN));
        if self.count <= most {
            return Ok(());
        }
        Err(Error::TooManyBadRows { count: self.count, rows: row, most, last: Box::new(error) })
    }
}

/// The row of an error that is the fault of a single cell.
fn culprit(error: &Error) -> Option<usize> {
    match error {
        Error::WrongType { row, .. } | Error::NotFinite { row, .. } | Error::UnknownClass { row, .. } => {
            Some(*row)
        }
        _ => None,
    }
}

/// Rows that can be encoded, and what is wrong with the others.
pub(crate) struct Sound {
    /// The rows.
    pub table: Table,
    pub encoded: Encoded,
    pub targets: Targets,
    /// Rows of the file that cannot, in order.
    pub bad: Vec<(usize, Error)>,
}

/// Encodes what can be.
pub(crate) fn encode(encoding: &Encoding, table: Table) -> Result<Sound> {
    let whole = |table: &Table| Ok((encoding.transform(table)?, encoding.targets(table)?));
    match whole(&table) {
        Ok((encoded, targets)) => return Ok(Sound { table, encoded, targets, bad: Vec::new() }),
        Err(error) if culprit(&error).is_none() => return Err(error),
        Err(_) => {}
    }
    // An error names one row, and there may be many: halves without one are sound, the others are halved again.
    let mut bad = Vec::new();
    let mut kept = Vec::new();
    let mut parts = vec![(0, table.n_rows())];
    while let Some((start, end)) = parts.pop() {
        let rows: Vec<usize> = (start..end).collect();
        match whole(&table.select_rows(&rows)) {
            Ok(_) => kept.extend(rows),
            Err(error) => match culprit(&error) {
                None => return Err(error),
                Some(row) if end - start == 1 => bad.push((row, error)),
                Some(_) => {
                    let middle = start.midpoint(end);
                    // The first half is looked at first, so that rows stay in their order.
                    parts.extend([(middle, end), (start, middle)]);
                }
            },
        }
    }
    let table = table.select_rows(&kept);
    let (encoded, targets) = whole(&table)?;
    Ok(Sound { table, encoded, targets, bad })
}
