//! What a user may say about how columns become inputs.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::hash::MOST;
use crate::table::{Kind, NumberFormat, TimeFormat, Wish};

/// Inputs that the words of a text are hashed into, unless another number is asked for.
const HASHED: usize = 16;

/// What to do about missing cells of features. Rows without a target are always left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Missing {
    /// Numbers get their training mean, categories a value of their own; an input tells which cells were missing,
    /// if any were in training.
    #[default]
    Encode,
    /// Name the first one in an error.
    Error,
    /// Learn only from rows without holes; in prediction as `Encode`.
    Drop,
}

/// What the target asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Task {
    /// Numbers.
    Regression,
    /// One of several classes.
    Classification,
}

/// What a user wants a column to be taken for, as text `number`, `number 1.234,5 €`, `bool`, `category`,
/// `category:50`, `time`, `time DD.MM.YYYY`, `text`, `text:32` or `ignore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum ColumnChoice {
    /// A number; how it is written, if that is said.
    Number(Option<NumberFormat>),
    /// True or false.
    Bool,
    /// One input for each of the most frequent values.
    Category {
        /// How many values at most; [`EncodingOptions::max_categories`] if not said.
        most: Option<usize>,
    },
    /// A point in time; how it is written, if that is said.
    Time(Option<TimeFormat>),
    /// Words, hashed.
    Text {
        /// Number of inputs.
        inputs: usize,
    },
    /// No input.
    Ignore,
}

/// A text that is no [`ColumnChoice`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of {names}", names = ColumnChoice::NAMES.join(", "))]
pub struct UnknownChoice(String);

impl ColumnChoice {
    /// The words that choose; `category` and `text` may be followed by `:` and a number.
    pub const NAMES: [&'static str; 6] = ["number", "category", "bool", "time", "text", "ignore"];

    /// What this asks of whoever reads the cells of a file.
    pub fn wish(self) -> Option<Wish> {
        match self {
            Self::Number(format) => {
                Some(format.map_or(Wish::Number, |format| Wish::As(Kind::Number(format))))
            }
            Self::Time(format) => Some(format.map_or(Wish::Time, |format| Wish::As(Kind::Time(format)))),
            Self::Bool => Some(Wish::As(Kind::Bool)),
            // Values are the same whether a column was read as numbers or as text.
            Self::Category { .. } | Self::Text { .. } | Self::Ignore => None,
        }
    }
}

impl FromStr for ColumnChoice {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        let unknown = || UnknownChoice(text.to_owned());
        let text = text.trim();
        if text.starts_with("number ") || text.starts_with("time ") {
            return match text.parse() {
                Ok(Kind::Number(format)) => Ok(Self::Number(Some(format))),
                Ok(Kind::Time(format)) => Ok(Self::Time(Some(format))),
                _ => Err(unknown()),
            };
        }
        let (word, number) = match text.split_once(':') {
            Some((word, number)) => {
                (word, Some(number.parse().ok().filter(|number| *number > 0).ok_or_else(unknown)?))
            }
            None => (text, None),
        };
        match (word, number) {
            ("number", None) => Ok(Self::Number(None)),
            ("bool", None) => Ok(Self::Bool),
            ("time", None) => Ok(Self::Time(None)),
            ("ignore", None) => Ok(Self::Ignore),
            ("category", most) => Ok(Self::Category { most }),
            ("text" | "hash", inputs) if inputs.is_none_or(|inputs| inputs <= MOST) => {
                Ok(Self::Text { inputs: inputs.unwrap_or(HASHED) })
            }
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for ColumnChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Number(None) => f.write_str("number"),
            Self::Number(Some(format)) => write!(f, "{}", Kind::Number(format)),
            Self::Bool => f.write_str("bool"),
            Self::Category { most: None } => f.write_str("category"),
            Self::Category { most: Some(most) } => write!(f, "category:{most}"),
            Self::Time(None) => f.write_str("time"),
            Self::Time(Some(format)) => write!(f, "{}", Kind::Time(format)),
            Self::Text { inputs } => write!(f, "text:{inputs}"),
            Self::Ignore => f.write_str("ignore"),
        }
    }
}

impl TryFrom<String> for ColumnChoice {
    type Error = UnknownChoice;

    fn try_from(text: String) -> Result<Self, UnknownChoice> {
        text.parse()
    }
}

impl From<ColumnChoice> for String {
    fn from(choice: ColumnChoice) -> Self {
        choice.to_string()
    }
}

/// Settings of an encoding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EncodingOptions {
    /// What to do about missing cells of features.
    pub missing: Missing,
    /// The task; if not given, text and boolean targets are classes and numbers are regressed on.
    pub task: Option<Task>,
    /// Columns that are neither features nor targets.
    pub ignore: Vec<String>,
    /// What columns are to be taken for, by name; others are understood from their cells.
    pub columns: BTreeMap<String, ColumnChoice>,
    /// Most values of a column that get an input of their own.
    pub max_categories: usize,
}

impl Default for EncodingOptions {
    fn default() -> Self {
        Self {
            missing: Missing::default(),
            task: None,
            ignore: Vec::new(),
            columns: BTreeMap::new(),
            max_categories: 100,
        }
    }
}

impl EncodingOptions {
    /// What is said of a column of this name.
    pub(super) fn choice(&self, name: &str) -> Option<ColumnChoice> {
        if self.ignore.iter().any(|ignored| ignored == name) {
            return Some(ColumnChoice::Ignore);
        }
        self.columns.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_back_as_it_is_written() {
        for text in [
            "number",
            "number 1.234,5 €",
            "bool",
            "category",
            "category:50",
            "time",
            "time DD.MM.YYYY",
            "text:16",
            "ignore",
        ] {
            assert_eq!(text.parse::<ColumnChoice>().unwrap().to_string(), text);
        }
        assert_eq!("hash:3".parse(), Ok(ColumnChoice::Text { inputs: 3 }));
        assert!("text:99999999999".parse::<ColumnChoice>().is_err());
        for text in ["", "numbr", "number:3", "category:0", "text:x", "category:", "time now"] {
            let error = text.parse::<ColumnChoice>().unwrap_err().to_string();
            assert!(error.contains("number, category, bool, time, text, ignore"), "{error}");
        }
    }
}
