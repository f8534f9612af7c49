//! Statistics of a part as the bytes of a safetensors file under a checksum, and back.
//!
//! The header says how long every tensor is; what the pass says of these lengths is checked where statistics join.

use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::part::{Edge, MOST_ROWS, PartStatistics};
use super::rows::Rows;
use crate::base::container::{Reader, Tensors, checked_header, to_json};
use crate::base::tree::{Tree, add};
use crate::error::{Error, ModelFileError, Result, RoundsError};

/// The metadata entry.
const KEY: &str = "bayespc-statistics";

/// Version this program writes and reads.
const VERSION: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    digest: u64,
    pass: String,
    widths: Option<(usize, usize)>,
    /// Height, place and length of every sum.
    nodes: Vec<(u32, u64, usize)>,
    /// First row, end, and rows that were kept, of every edge.
    edges: Vec<(u64, u64, usize)>,
    /// Rows that were drawn.
    drawn: usize,
}

impl PartStatistics {
    /// The bytes of these statistics.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let header = Header {
            version: VERSION,
            digest: self.digest,
            pass: self.pass.clone(),
            widths: self.widths,
            nodes: self.tree.nodes().map(|((height, i), values)| (height, i, values.len())).collect(),
            edges: self.edges.iter().map(|e| (e.covers.start, e.covers.end, e.rows.len())).collect(),
            drawn: self.drawn.len(),
        };
        let mut tensors = Tensors::default();
        for (i, (_, values)) in self.tree.nodes().enumerate() {
            tensors.put_row(&format!("node.{i}"), values);
        }
        let mut edges = Rows::default();
        self.edges.iter().for_each(|edge| edges.append(&edge.rows));
        for (name, rows) in [("edges", &edges), ("drawn", &self.drawn)] {
            tensors.put_integers(&format!("{name}.numbers"), &rows.numbers);
            tensors.put_row(&format!("{name}.inputs"), &rows.inputs);
            tensors.put_row(&format!("{name}.targets"), &rows.targets);
            tensors.put_row(&format!("{name}.weights"), &rows.weights);
        }
        tensors.serialize(KEY, to_json(&header)?)
    }

    /// Read statistics from their bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|error| match error {
            Error::ModelFile(error) => malformed(&error.to_string()).into(),
            error => error,
        })
    }
}

fn read(bytes: &[u8]) -> Result<PartStatistics> {
    let file = SafeTensors::deserialize(bytes).map_err(ModelFileError::from)?;
    let value = checked_header(bytes, &file, KEY, VERSION)?;
    let header: Header = serde_json::from_value(value).map_err(|error| malformed(&error.to_string()))?;
    let reader = Reader { file };
    let mut tree = Tree::default();
    for (i, &(height, place, length)) in header.nodes.iter().enumerate() {
        if height >= MOST_ROWS.ilog2() || place >= MOST_ROWS >> height {
            return Err(malformed("a node is too high").into());
        }
        let values = reader.values(&format!("node.{i}"), &[length])?;
        tree.insert((height, place), values, add).map_err(|_| malformed("a node is there twice"))?;
    }
    if tree.nodes().count() != header.nodes.len() {
        return Err(malformed("two nodes are not joined").into());
    }
    let kept = header.edges.iter().try_fold(0_usize, |sum, &(_, _, n)| sum.checked_add(n));
    let kept = kept.ok_or_else(|| malformed("rows of edges"))?;
    let all = rows(&reader, "edges", kept, header.widths)?;
    let mut edges = Vec::with_capacity(header.edges.len());
    let mut next = 0;
    for (start, end, n) in header.edges {
        let mut rows = Rows::default();
        (next..next + n).for_each(|j| rows.push(&all, j));
        next += n;
        let rises = rows.numbers.windows(2).all(|pair| pair[0] < pair[1]);
        if start >= end
            || end > MOST_ROWS
            || !rises
            || rows.numbers.iter().any(|row| !(start..end).contains(row))
        {
            return Err(malformed(&format!("rows {start} to {end} of an edge")).into());
        }
        edges.push(Edge { covers: start..end, rows });
    }
    let drawn = rows(&reader, "drawn", header.drawn, header.widths)?;
    Ok(PartStatistics { digest: header.digest, pass: header.pass, widths: header.widths, tree, edges, drawn })
}

fn malformed(what: &str) -> RoundsError {
    RoundsError::Malformed { what: what.to_owned() }
}

/// So many rows of these widths; of a part that has none, no rows.
fn rows(reader: &Reader<'_>, name: &str, n: usize, widths: Option<(usize, usize)>) -> Result<Rows> {
    let numbers = |part: &str, width: usize| {
        let length = n.checked_mul(width).ok_or_else(|| malformed(&format!("rows `{name}` are too wide")))?;
        reader.values(&format!("{name}.{part}"), &[length])
    };
    if n > 0 && widths.is_none() {
        return Err(malformed(&format!("rows `{name}` have no columns")).into());
    }
    let (d, k) = widths.unwrap_or((0, 0));
    let rows = Rows {
        numbers: reader.integers(&format!("{name}.numbers"), n)?,
        inputs: numbers("inputs", d)?,
        targets: numbers("targets", k)?,
        weights: numbers("weights", 1)?,
    };
    if rows.weights.iter().all(|&weight| weight > 0.0) {
        Ok(rows)
    } else {
        Err(malformed(&format!("a weight of rows `{name}` is not positive")).into())
    }
}
