//! Which rows of a table can be learned from.

use std::fmt;

use super::{Cells, Encoding, Missing};
use crate::table::Table;
use crate::{Error, Result};

/// Rows that can be learned from, and how many cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Learnable {
    /// The rows, counted from 0.
    pub rows: Vec<usize>,
    /// Rows left out because a target is missing.
    pub without_target: usize,
    /// Rows left out because a feature is missing and such rows are to be dropped.
    pub with_holes: usize,
}

impl Learnable {
    /// Whether every row can be learned from.
    pub fn is_all(&self) -> bool {
        self.without_target == 0 && self.with_holes == 0
    }

    /// The table of these rows.
    pub fn of(&self, table: Table) -> Table {
        if self.is_all() { table } else { table.select_rows(&self.rows) }
    }
}

/// What was left out, in words.
impl fmt::Display for Learnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> =
            [(self.without_target, "without a target"), (self.with_holes, "with missing cells")]
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, why)| format!("{count} {} {why}", if count == 1 { "row" } else { "rows" }))
                .collect();
        write!(f, "{} left out", parts.join(" and "))
    }
}

/// Rows that have all these targets.
pub(super) fn with_targets(table: &Table, targets: &[&str]) -> Result<Learnable> {
    let columns = targets.iter().map(|name| Cells::of(table, name)).collect::<Result<Vec<_>>>()?;
    for cells in &columns {
        cells.check_supported()?;
    }
    let known = |&i: &usize| columns.iter().all(|cells| !cells.column.is_missing(i));
    let rows: Vec<usize> = (0..table.n_rows()).filter(known).collect();
    Ok(Learnable { without_target: table.n_rows() - rows.len(), with_holes: 0, rows })
}

/// There must be a row to learn from.
pub(super) fn check_any(learnable: &Learnable, table: &Table, targets: &[&str]) -> Result<()> {
    if !learnable.rows.is_empty() {
        return Ok(());
    }
    let file = table.file().to_owned();
    for name in targets {
        let cells = Cells::of(table, name)?;
        if (0..cells.len()).all(|i| cells.column.is_missing(i)) {
            return Err(Error::AllMissing { file, column: cells.name().to_owned() });
        }
    }
    Err(Error::NoLearnableRows { file, left_out: learnable.to_string() })
}

impl Encoding {
    /// Which rows of a table can be learned from: those with all targets and, if rows with holes are to be dropped,
    /// all features.
    pub fn learnable(&self, table: &Table) -> Result<Learnable> {
        let names = self.target.as_ref().map_or_else(Vec::new, super::TargetColumns::names);
        let mut learnable = with_targets(table, &names)?;
        if self.missing == Missing::Drop {
            let features = self
                .features
                .iter()
                .map(|feature| Cells::of(table, &feature.name))
                .collect::<Result<Vec<_>>>()?;
            let before = learnable.rows.len();
            learnable.rows.retain(|&i| features.iter().all(|cells| !cells.column.is_missing(i)));
            learnable.with_holes = before - learnable.rows.len();
        }
        Ok(learnable)
    }
}
