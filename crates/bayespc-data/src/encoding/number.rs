//! A number is one input, as it is; the model scales it.
//!
//! ```text
//! known    x, 0
//! missing  mean of training, 1      the second input only where training had holes
//! ```

use serde::{Deserialize, Serialize};

use super::sink::Sink;
use super::{Cells, is_false};
use crate::Result;

/// How a number becomes inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberCoding {
    /// Training mean.
    pub mean: f64,
    /// Whether an input tells which cells were missing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub missing: bool,
}

impl NumberCoding {
    pub(super) fn learn(cells: &Cells<'_>) -> Result<Self> {
        let (mut mean, mut count) = (0.0, 0.0);
        let mut missing = false;
        for i in 0..cells.len() {
            match cells.number(i)? {
                // The running mean cannot overflow where a sum could.
                Some(x) => {
                    count += 1.0;
                    mean += x / count - mean / count;
                }
                None => missing = true,
            }
        }
        Ok(Self { mean, missing })
    }

    pub(super) fn names(&self, column: &str) -> Vec<String> {
        let mut names = vec![column.to_owned()];
        names.extend(self.missing.then(|| missing_name(column)));
        names
    }

    pub(super) fn encode(&self, cells: &Cells<'_>, sink: &mut Sink<'_>) -> Result<()> {
        for i in 0..cells.len() {
            let x = cells.number(i)?;
            sink.set(0, i, x.unwrap_or(self.mean));
            if x.is_none() {
                sink.hole(cells, i, self.missing.then_some(1))?;
            }
        }
        Ok(())
    }
}

/// Name of the input that tells which cells were missing.
pub(super) fn missing_name(column: &str) -> String {
    format!("{column}=(missing)")
}
