//! Statistics of a part as the bytes of a safetensors file, and back.

use std::borrow::Cow;
use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};

use super::part::{Edge, MOST_ROWS, PartStatistics};
use super::rows::Rows;
use crate::base::tree::{Tree, add};
use crate::error::{ModelFileError, Result, RoundsError};

/// The metadata entry.
const KEY: &str = "bayespc-statistics";

/// Version this program writes and reads.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    digest: u64,
    pass: String,
    widths: Option<(usize, usize)>,
    /// Height and place of every sum.
    nodes: Vec<(u32, u64)>,
    /// First row, end, and rows that were kept, of every edge.
    edges: Vec<(u64, u64, usize)>,
}

impl PartStatistics {
    /// The bytes of these statistics.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let header = Header {
            version: VERSION,
            digest: self.digest,
            pass: self.pass.clone(),
            widths: self.widths,
            nodes: self.tree.nodes().map(|(place, _)| place).collect(),
            edges: self.edges.iter().map(|e| (e.covers.start, e.covers.end, e.rows.len())).collect(),
        };
        let header = serde_json::to_string(&header).map_err(|error| malformed(&error.to_string()))?;
        let mut tensors: Vec<(String, Dtype, Cow<'_, [u8]>)> = Vec::new();
        for (i, (_, values)) in self.tree.nodes().enumerate() {
            tensors.push((format!("node.{i}"), Dtype::F64, bytes_of(values).into()));
        }
        let mut edges = Rows::default();
        self.edges.iter().for_each(|edge| edges.append(&edge.rows));
        for (name, rows) in [("edges", &edges), ("drawn", &self.drawn)] {
            let numbers = rows.numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
            tensors.push((format!("{name}.numbers"), Dtype::U64, numbers.into()));
            let parts = [("inputs", &rows.inputs), ("targets", &rows.targets), ("weights", &rows.weights)];
            for (part, values) in parts {
                tensors.push((format!("{name}.{part}"), Dtype::F64, bytes_of(values).into()));
            }
        }
        let views = tensors
            .iter()
            .map(|(name, kind, bytes)| {
                Ok((name.as_str(), TensorView::new(*kind, vec![bytes.len() / 8], bytes)?))
            })
            .collect::<std::result::Result<Vec<_>, ModelFileError>>()?;
        let metadata = HashMap::from([(KEY.to_owned(), header)]);
        Ok(serialize(views, Some(metadata)).map_err(ModelFileError::from)?)
    }

    /// Read statistics from their bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let wrong = |error: safetensors::SafeTensorError| malformed(&error.to_string());
        let file = SafeTensors::deserialize(bytes).map_err(wrong)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(wrong)?;
        let text = metadata.metadata().as_ref().and_then(|entries| entries.get(KEY));
        let text = text.ok_or_else(|| malformed(&format!("metadata entry `{KEY}` is missing")))?;
        let header: Header = serde_json::from_str(text).map_err(|error| malformed(&error.to_string()))?;
        if header.version != VERSION {
            return Err(malformed(&format!("version {} is not known", header.version)).into());
        }
        let mut tree = Tree::default();
        for (i, place) in header.nodes.into_iter().enumerate() {
            if place.0 >= MOST_ROWS.ilog2() || place.1 >= MOST_ROWS >> place.0 {
                return Err(malformed("a node is too high").into());
            }
            // Siblings were joined before they were written: no sum is made here.
            let values = numbers(&file, &format!("node.{i}"))?;
            tree.insert(place, values, add).map_err(|_| malformed("a node is there twice"))?;
        }
        let all = rows(&file, "edges", header.widths)?;
        let mut edges = Vec::with_capacity(header.edges.len());
        let mut next = 0;
        for (start, end, n) in header.edges {
            if n > all.len() - next || start >= end || end > MOST_ROWS {
                return Err(malformed("rows of an edge").into());
            }
            let mut rows = Rows::default();
            (next..next + n).for_each(|j| rows.push(&all, j));
            next += n;
            edges.push(Edge { covers: start..end, rows });
        }
        Ok(Self {
            digest: header.digest,
            pass: header.pass,
            widths: header.widths,
            tree,
            edges,
            drawn: rows(&file, "drawn", header.widths)?,
        })
    }
}

fn malformed(what: &str) -> RoundsError {
    RoundsError::Malformed { what: what.to_owned() }
}

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn words(file: &SafeTensors<'_>, name: &str, kind: Dtype) -> Result<Vec<[u8; 8]>> {
    let tensor = file.tensor(name).map_err(|_| malformed(&format!("tensor `{name}` is missing")))?;
    if tensor.dtype() != kind || tensor.shape().len() != 1 {
        return Err(malformed(&format!("tensor `{name}` is of another kind")).into());
    }
    Ok(tensor.data().as_chunks::<8>().0.to_vec())
}

fn numbers(file: &SafeTensors<'_>, name: &str) -> Result<Vec<f64>> {
    let values: Vec<f64> = words(file, name, Dtype::F64)?.into_iter().map(f64::from_le_bytes).collect();
    match values.iter().find(|x| !x.is_finite()) {
        Some(value) => Err(malformed(&format!("tensor `{name}` holds {value}")).into()),
        None => Ok(values),
    }
}

fn rows(file: &SafeTensors<'_>, name: &str, widths: Option<(usize, usize)>) -> Result<Rows> {
    let (d, k) = widths.unwrap_or((0, 0));
    let rows = Rows {
        numbers: words(file, &format!("{name}.numbers"), Dtype::U64)?
            .into_iter()
            .map(u64::from_le_bytes)
            .collect(),
        inputs: numbers(file, &format!("{name}.inputs"))?,
        targets: numbers(file, &format!("{name}.targets"))?,
        weights: numbers(file, &format!("{name}.weights"))?,
    };
    let n = rows.len();
    let fits = |values: &[f64], width: usize| n.checked_mul(width) == Some(values.len());
    if fits(&rows.inputs, d) && fits(&rows.targets, k) && fits(&rows.weights, 1) {
        Ok(rows)
    } else {
        Err(malformed(&format!("rows `{name}` are cut short")).into())
    }
}
