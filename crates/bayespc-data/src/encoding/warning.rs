//! What was bridged over in a table that is not quite like the one in training.

use std::fmt;

/// Something in a table that was bridged over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Values that did not occur when fitting, encoded as all zeros.
    UnseenCategory {
        /// Which column.
        column: String,
        /// In how many rows.
        count: usize,
        /// The first such value.
        example: String,
        /// Its data row in the file, from 1.
        row: usize,
    },
    /// Missing cells where training had none, filled with the mean or the most frequent value.
    Imputed {
        /// Which column.
        column: String,
        /// In how many rows.
        count: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnseenCategory { column, count, example, row } => write!(
                f,
                "column `{column}`: {count} values were not seen in training, first `{example}` in row {row}"
            ),
            Self::Imputed { column, count } => {
                write!(f, "column `{column}`: {count} missing values imputed; in training there were none")
            }
        }
    }
}
