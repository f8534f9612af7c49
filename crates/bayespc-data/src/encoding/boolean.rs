//! A boolean is one input, 0 or 1, and one more that tells missing cells, where training had any.

use serde::{Deserialize, Serialize};

use super::number::value_and_hole;
use super::sink::Sink;
use super::{Cells, is_false};
use crate::Result;

/// How a boolean becomes inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoolCoding {
    /// The more frequent value in training, `false` of equals.
    pub most_frequent: bool,
    /// Whether an input tells which cells were missing; the other is then 0.
    #[serde(default, skip_serializing_if = "is_false")]
    pub missing: bool,
}

impl BoolCoding {
    pub(super) fn learn(cells: &Cells<'_>) -> Result<Self> {
        let (mut n_true, mut n_false, mut missing) = (0, 0, false);
        for i in 0..cells.len() {
            match cells.boolean(i)? {
                Some(true) => n_true += 1,
                Some(false) => n_false += 1,
                None => missing = true,
            }
        }
        Ok(Self { most_frequent: n_true > n_false, missing })
    }

    pub(super) fn names(&self, column: &str) -> Vec<String> {
        value_and_hole(column, self.missing)
    }

    pub(super) fn encode(&self, cells: &Cells<'_>, sink: &mut Sink<'_>) -> Result<()> {
        for i in 0..cells.len() {
            let bit = cells.boolean(i)?;
            let fill = self.most_frequent && !self.missing;
            sink.set(0, i, f64::from(u8::from(bit.unwrap_or(fill))));
            if bit.is_none() {
                sink.hole(cells, i, self.missing.then_some(1))?;
            }
        }
        Ok(())
    }
}
