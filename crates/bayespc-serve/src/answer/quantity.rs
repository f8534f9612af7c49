//! Values of an output, and how they are written: as a tensor, as records, as CSV.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::output::Output;

/// Values of an output, row after row.
pub struct Quantity {
    pub output: Output,
    /// Extents behind that of the rows.
    pub(super) extents: Vec<usize>,
    /// What each value of a row is called where it stands alone.
    pub(super) titles: Vec<String>,
    pub(super) values: Values,
    /// Number of rows.
    pub(super) n: usize,
}

/// Numbers or texts, all values of a row beside each other.
pub(super) enum Values {
    Numbers(Vec<f64>),
    Texts(Vec<String>),
}

impl Quantity {
    /// What each value of a row is called.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.titles.iter().map(String::as_str)
    }

    /// The values of row `i` with what they are called.
    pub fn entries(&self, i: usize) -> impl Iterator<Item = (String, serde_json::Value)> {
        let width = self.titles.len();
        self.titles.iter().enumerate().map(move |(k, title)| {
            let value = match &self.values {
                Values::Numbers(values) => serde_json::json!(values[i * width + k]),
                Values::Texts(values) => serde_json::json!(values[i * width + k]),
            };
            (title.clone(), value)
        })
    }

    /// The largest value of row `i`, each divided by a scale of its own; 0 for texts.
    pub fn largest(&self, i: usize, scales: &[f64]) -> f64 {
        let width = self.titles.len();
        match &self.values {
            Values::Numbers(values) => {
                let row = values[i * width..(i + 1) * width].iter().zip(scales);
                row.map(|(x, scale)| x / scale).fold(0.0, f64::max)
            }
            Values::Texts(_) => 0.0,
        }
    }
}

/// As a tensor of the Open Inference Protocol.
impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shape: Vec<usize> = std::iter::once(self.n).chain(self.extents.iter().copied()).collect();
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", self.output.name())?;
        map.serialize_entry("datatype", self.output.datatype())?;
        map.serialize_entry("shape", &shape)?;
        match &self.values {
            Values::Numbers(values) => map.serialize_entry("data", values)?,
            Values::Texts(values) => map.serialize_entry("data", values)?,
        }
        map.end()
    }
}

/// Quantities as a list with an object for each row.
pub struct Records<'a>(pub &'a [Quantity]);

impl Serialize for Records<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let n = self.0.first().map_or(0, |quantity| quantity.n);
        let mut rows = serializer.serialize_seq(Some(n))?;
        (0..n).try_for_each(|i| rows.serialize_element(&Record(self.0, i)))?;
        rows.end()
    }
}

struct Record<'a>(&'a [Quantity], usize);

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for quantity in self.0 {
            let width = quantity.titles.len();
            for (k, title) in quantity.titles.iter().enumerate() {
                match &quantity.values {
                    Values::Numbers(values) => map.serialize_entry(title, &values[self.1 * width + k])?,
                    Values::Texts(values) => map.serialize_entry(title, &values[self.1 * width + k])?,
                }
            }
        }
        map.end()
    }
}

/// Quantities of `n` rows as CSV text.
pub fn csv(quantities: &[Quantity], n: usize) -> String {
    let mut lines =
        vec![quantities.iter().flat_map(|q| &q.titles).map(|t| quoted(t)).collect::<Vec<_>>().join(",")];
    for i in 0..n {
        let cells = quantities.iter().flat_map(|quantity| {
            let width = quantity.titles.len();
            (0..width).map(move |k| match &quantity.values {
                Values::Numbers(values) => values[i * width + k].to_string(),
                Values::Texts(values) => quoted(&values[i * width + k]),
            })
        });
        lines.push(cells.collect::<Vec<_>>().join(","));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// A cell of CSV, in quotes where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
