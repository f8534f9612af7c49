//! What reading a table had to decide that a person might decide otherwise.

use std::fmt;

use super::Kind;

/// A decision worth a word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// The file is not UTF-8.
    Encoding {
        /// Which file.
        file: String,
        /// What it was read as.
        encoding: &'static str,
    },
    /// The cells of a column can be read in two ways.
    Ambiguous {
        /// Which column.
        column: String,
        /// How it is read.
        kind: Kind,
        /// How it could be read too.
        or: Kind,
    },
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding { file, encoding } => {
                write!(f, "{file} is not UTF-8 and was read as {encoding}")
            }
            Self::Ambiguous { column, kind, or } => {
                write!(
                    f,
                    "column `{column}` was read as `{kind}`; if `{or}` is meant, give --column \"{column}={or}\""
                )
            }
        }
    }
}
