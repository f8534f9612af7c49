//! One cell: what counts as missing, as a number and as a boolean, and columns read as another kind.

use super::{Column, Kind, Values};

/// What marks a missing cell, besides nothing at all.
const MISSING: [&str; 5] = ["NA", "N/A", "NaN", "null", "?"];

/// Whether a trimmed cell is missing.
pub(crate) fn is_missing(cell: &str) -> bool {
    cell.is_empty() || MISSING.iter().any(|marker| cell.eq_ignore_ascii_case(marker))
}

/// The number of a trimmed cell that is not missing.
pub(crate) fn parse_number(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|x: &f64| !x.is_nan())
}

/// The boolean of a trimmed cell.
pub(crate) fn parse_bool(cell: &str) -> Option<bool> {
    if cell.eq_ignore_ascii_case("true") {
        Some(true)
    } else if cell.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// A number as a label: 3 and 3.0 are both `3`.
fn label(x: f64) -> String {
    // Adding zero turns −0 into 0.
    format!("{}", x + 0.0)
}

impl Values {
    /// No cells yet, of this kind.
    pub(super) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number => Self::Number(Vec::new()),
            Kind::Text => Self::Text(Vec::new()),
            Kind::Bool => Self::Bool(Vec::new()),
        }
    }

    /// Adds a trimmed cell; `Err` names what it should have been.
    pub(super) fn push(&mut self, cell: &str) -> Result<(), &'static str> {
        let missing = is_missing(cell);
        match self {
            _ if missing => self.push_missing(),
            Self::Number(values) => values.push(Some(parse_number(cell).ok_or("number")?)),
            Self::Bool(values) => {
                let bit = parse_bool(cell).or(match cell {
                    "1" => Some(true),
                    "0" => Some(false),
                    _ => None,
                });
                values.push(Some(bit.ok_or("boolean")?));
            }
            Self::Text(values) => values.push(Some(cell.to_owned())),
            Self::Unsupported(_) => {}
        }
        Ok(())
    }

    /// Adds a missing cell.
    pub(super) fn push_missing(&mut self) {
        match self {
            Self::Number(values) => values.push(None),
            Self::Bool(values) => values.push(None),
            Self::Text(values) => values.push(None),
            Self::Unsupported(_) => {}
        }
    }
}

impl Column {
    /// Cell `i` as a number, booleans as 0 and 1; `Err` is a text that is none.
    pub(crate) fn number(&self, i: usize) -> Result<Option<f64>, String> {
        match &self.values {
            Values::Number(values) => Ok(values[i]),
            Values::Bool(values) => Ok(values[i].map(|bit| f64::from(u8::from(bit)))),
            Values::Text(values) => {
                values[i].as_ref().map(|text| parse_number(text).ok_or_else(|| text.clone())).transpose()
            }
            Values::Unsupported(kind) => Err(kind.clone()),
        }
    }

    /// Cell `i` as a boolean, 0 and 1 too; `Err` is anything else.
    pub(crate) fn boolean(&self, i: usize) -> Result<Option<bool>, String> {
        match &self.values {
            Values::Bool(values) => Ok(values[i]),
            Values::Number(values) => {
                values[i].map(|x| if x == 0.0 || x == 1.0 { Ok(x == 1.0) } else { Err(label(x)) }).transpose()
            }
            Values::Text(values) => {
                values[i].as_ref().map(|text| parse_bool(text).ok_or_else(|| text.clone())).transpose()
            }
            Values::Unsupported(kind) => Err(kind.clone()),
        }
    }

    /// Cell `i` as text.
    pub(crate) fn text(&self, i: usize) -> Option<String> {
        match &self.values {
            Values::Text(values) => values[i].clone(),
            Values::Number(values) => values[i].map(label),
            Values::Bool(values) => values[i].map(|bit| bit.to_string()),
            Values::Unsupported(_) => None,
        }
    }
}
