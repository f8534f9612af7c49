//! The statistics of a part of a table: what can be added up with those of other parts, to the bit.
//!
//! Rows have numbers in the whole table, and are summed in chunks of consecutive numbers along a fixed tree
//! ([`crate::base`]'s `tree`). A part may begin or end inside a chunk. The rows it has of such a chunk travel as they
//! are, and whoever has the rest adds the chunk up: how a table is cut changes no bit. Of those rows too only the ones
//! that the pass uses are sent.

use std::ops::Range;

use super::rows::Rows;
use crate::base::tree::{Cover, Join, Tree};
use crate::error::{Result, RoundsError};

/// No row has a number as large as this.
pub(super) const MOST_ROWS: u64 = 1 << 48;

/// Statistics of some rows of a table, for one pass and one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartStatistics {
    /// Of the model they were made with.
    pub(super) digest: u64,
    /// Name of the pass.
    pub(super) pass: String,
    /// Inputs and targets of a row; none of a part without rows.
    pub(super) widths: Option<(usize, usize)>,
    /// Sums of whole chunks.
    pub(super) tree: Tree,
    /// Rows of chunks that are not whole.
    pub(super) edges: Vec<Edge>,
    /// Rows that were drawn, least draw first.
    pub(super) drawn: Rows,
}

/// Rows of a chunk that is not whole.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edge {
    /// Numbers of the rows that were there.
    pub covers: Range<u64>,
    /// Those of them that are used.
    pub rows: Rows,
}

/// Chunks of a table: their length, how one is added up, and how sums join.
pub(super) struct Chunks<'a> {
    pub length: u64,
    pub leaf: &'a (dyn Fn(&Rows) -> Result<Vec<f64>> + Sync),
    pub join: Join,
}

/// Rows from `first` on, cut at the ends of chunks: whether each piece is a whole chunk.
pub(super) fn cut(first: u64, n: u64, length: u64) -> impl Iterator<Item = (Range<u64>, bool)> {
    let end = first + n;
    let mut place = first;
    std::iter::from_fn(move || {
        (place < end).then(|| {
            let stop = ((place / length + 1) * length).min(end);
            let piece = place..stop;
            place = stop;
            let whole = piece.end - piece.start == length;
            (piece, whole)
        })
    })
}

impl PartStatistics {
    /// Rows of this part and those before; names it by its place among those given. It is of the same pass.
    pub(super) fn join(&mut self, part: usize, other: Self, chunks: &Chunks<'_>) -> Result<()> {
        if let (Some(own), Some(others)) = (self.widths, other.widths) {
            for (what, expected, found) in [("inputs", own.0, others.0), ("targets", own.1, others.1)] {
                if found != expected {
                    return Err(RoundsError::Columns { part, what, found, expected }.into());
                }
            }
        }
        self.widths = self.widths.or(other.widths);
        for (place, values) in other.tree.nodes() {
            self.tree
                .insert(place, values.to_vec(), chunks.join)
                .map_err(|cover| in_rows(&cover, chunks.length))?;
        }
        self.edges.extend(other.edges);
        Ok(())
    }

    /// Add up the chunks of which all rows are there by now. The last chunk of a table of `n_rows` is whole when they
    /// end.
    pub(super) fn complete(&mut self, n_rows: Option<u64>, chunks: &Chunks<'_>) -> Result<()> {
        let mut edges = std::mem::take(&mut self.edges);
        edges.sort_by_key(|edge| edge.covers.start);
        let mut joined: Vec<Edge> = Vec::new();
        for edge in edges {
            match joined.last_mut() {
                Some(last) if edge.covers.start < last.covers.end => {
                    return Err(RoundsError::Twice { row: edge.covers.start }.into());
                }
                Some(last)
                    if edge.covers.start == last.covers.end
                        && !edge.covers.start.is_multiple_of(chunks.length) =>
                {
                    last.covers.end = edge.covers.end;
                    last.rows.append(&edge.rows);
                }
                _ => joined.push(edge),
            }
        }
        for edge in joined {
            let chunk = edge.covers.start / chunks.length;
            let end = n_rows.unwrap_or(u64::MAX).min((chunk + 1) * chunks.length);
            if edge.covers == (chunk * chunks.length..end) {
                let leaf = (chunks.leaf)(&edge.rows)?;
                let place = (0, chunk);
                self.tree.insert(place, leaf, chunks.join).map_err(|cover| in_rows(&cover, chunks.length))?;
            } else {
                self.edges.push(edge);
            }
        }
        Ok(())
    }

    /// One more than the largest number of a row.
    pub(super) fn end(&self, length: u64) -> u64 {
        let nodes = self.tree.nodes().map(|((height, i), _)| ((i + 1) << height) * length);
        nodes.chain(self.edges.iter().map(|edge| edge.covers.end)).max().unwrap_or(0)
    }

    /// The sum over all rows of the table; none if it has none.
    pub(super) fn total(self, n_rows: u64, chunks: &Chunks<'_>) -> Result<Option<Vec<f64>>> {
        if let Some(edge) = self.edges.first() {
            // The chunk is not whole: what is missing is before the edge or behind it.
            let chunk = edge.covers.start / chunks.length * chunks.length;
            let next = self.edges.get(1).map_or(u64::MAX, |next| next.covers.start);
            let (start, end) = if edge.covers.start > chunk {
                (chunk, edge.covers.start)
            } else {
                (edge.covers.end, n_rows.min(chunk + chunks.length).min(next))
            };
            return Err(RoundsError::Missing { start, end: end - 1 }.into());
        }
        let leaves = n_rows.div_ceil(chunks.length);
        self.tree.total(leaves, chunks.join).map_err(|cover| in_rows(&cover, chunks.length).into())
    }
}

fn in_rows(cover: &Cover, length: u64) -> RoundsError {
    match cover {
        Cover::Missing(leaves) => {
            RoundsError::Missing { start: leaves.start * length, end: leaves.end * length - 1 }
        }
        Cover::Twice(leaf) => RoundsError::Twice { row: leaf * length },
    }
}
