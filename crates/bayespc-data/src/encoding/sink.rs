//! Where the inputs of a column go, and what is noticed on the way.

use faer::Mat;

use super::{Cells, Missing, Warning};
use crate::Result;

/// The rows of the feature matrix that belong to one column, and an account of its cells.
pub(super) struct Sink<'a> {
    pub features: &'a mut Mat<f64>,
    /// First row.
    pub at: usize,
    pub policy: Missing,
    /// Holes that were filled in without an input that tells so.
    n_filled: usize,
    n_unseen: usize,
    first_unseen: Option<(String, usize)>,
}

impl<'a> Sink<'a> {
    pub fn new(features: &'a mut Mat<f64>, at: usize, policy: Missing) -> Self {
        Self { features, at, policy, n_filled: 0, n_unseen: 0, first_unseen: None }
    }

    /// Sets input `k` of sample `i`.
    pub fn set(&mut self, k: usize, i: usize, value: f64) {
        self.features[(self.at + k, i)] = value;
    }

    /// Cell `i` is missing; `indicator` is the input that tells so, if there is one.
    pub fn hole(&mut self, cells: &Cells<'_>, i: usize, indicator: Option<usize>) -> Result<()> {
        if self.policy == Missing::Error {
            return Err(cells.missing(i));
        }
        match indicator {
            Some(k) => self.set(k, i, 1.0),
            None => self.n_filled += 1,
        }
        Ok(())
    }

    /// Cell `i` has a value that did not occur in training.
    pub fn unseen(&mut self, cells: &Cells<'_>, i: usize, value: &str) {
        self.n_unseen += 1;
        self.first_unseen.get_or_insert_with(|| (value.to_owned(), cells.table.file_row(i)));
    }

    /// What was bridged over.
    pub fn warnings(self, column: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if let Some((example, row)) = self.first_unseen {
            let column = column.to_owned();
            warnings.push(Warning::UnseenCategory { column, count: self.n_unseen, example, row });
        }
        if self.n_filled > 0 {
            warnings.push(Warning::Imputed { column: column.to_owned(), count: self.n_filled });
        }
        warnings
    }
}
