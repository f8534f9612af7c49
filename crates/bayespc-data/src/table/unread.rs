//! Cells that cannot be read: the end of the reading, or rows to leave out.

use crate::{Error, Result};

/// What has become of cells that cannot be read.
#[derive(Debug, Default)]
pub(crate) enum Unread {
    /// The first is an error.
    #[default]
    Fail,
    /// Their rows are remembered, counted from 1 in the file, each with its error; cells are left missing.
    Skip(Vec<(usize, Error)>),
}

impl Unread {
    /// A cell of this row cannot be read; an error unless such rows are to be left out.
    pub fn meet(&mut self, row: usize, error: Error) -> Result<()> {
        match self {
            Self::Fail => Err(error),
            Self::Skip(rows) => {
                rows.push((row, error));
                Ok(())
            }
        }
    }

    /// Whether rows are to be left out.
    pub fn skips(&self) -> bool {
        matches!(self, Self::Skip(_))
    }

    /// What is known of the rows up to this one, in their order, one error for each; it is known no longer.
    pub fn up_to(&mut self, last: usize) -> Vec<(usize, Error)> {
        let Self::Skip(rows) = self else { return Vec::new() };
        let (mut now, later) =
            std::mem::take(rows).into_iter().partition::<Vec<_>, _>(|(row, _)| *row <= last);
        *rows = later;
        // Stable: of a row with several such cells the first column speaks.
        now.sort_by_key(|(row, _)| *row);
        now.dedup_by_key(|(row, _)| *row);
        now
    }
}
