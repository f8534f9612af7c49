//! What the cells of a column are and how they are written, in a notation people can read and type:
//!
//! ```text
//! number                  12.5, as every program writes it
//! number 1.234,5 €        decimal comma, groups of three, a currency
//! number 1234.5 %         a per cent sign behind every cell
//! time DD.MM.YYYY         dates, with or without a time of day behind
//! time HH:MM              times of day
//! text, bool
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::number::NumberFormat;
use super::time::TimeFormat;

/// What the cells of a column are, and how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Kind {
    /// Numbers.
    Number(NumberFormat),
    /// Text.
    Text,
    /// `true` or `false`.
    Bool,
    /// Points in time.
    Time(TimeFormat),
}

/// What is asked of a column that is read: a kind in one word, its format as the cells show it, or exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wish {
    /// Numbers, however they are written.
    Number,
    /// Points in time, however they are written.
    Time,
    /// Just this.
    As(Kind),
}

/// A text that is no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no kind of column: say number, text, bool or time, or show how cells are written, as in `number 1.234,5 €` or `time DD.MM.YYYY`"
)]
pub struct UnknownKind(pub String);

impl Kind {
    /// Numbers as every program writes them.
    pub const NUMBER: Self = Self::Number(NumberFormat::PLAIN);

    /// The kind without its format: `number`, `text`, `bool` or `time`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Number(_) => "number",
            Self::Text => "text",
            Self::Bool => "bool",
            Self::Time(_) => "time",
        }
    }

    /// What a single cell is, for messages.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Number(_) => "number",
            Self::Text => "text",
            Self::Bool => "boolean",
            Self::Time(TimeFormat::Clock) => "time of day",
            Self::Time(_) => "date",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(format) if *format != NumberFormat::PLAIN => write!(f, "number {format}"),
            Self::Time(format) => write!(f, "time {format}"),
            plain => f.write_str(plain.word()),
        }
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let unknown = || UnknownKind(text.to_owned());
        let (word, format) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        match (word, format.trim()) {
            ("number", "") => Ok(Self::NUMBER),
            ("text", "") => Ok(Self::Text),
            ("bool", "") => Ok(Self::Bool),
            ("number", format) => {
                NumberFormat::all().find(|f| f.to_string() == format).map(Self::Number).ok_or_else(unknown)
            }
            ("time", format) => TimeFormat::ALL
                .into_iter()
                .find(|f| f.to_string() == format)
                .map(Self::Time)
                .ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }
}

impl FromStr for Wish {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        match text.trim() {
            "number" => Ok(Self::Number),
            "time" => Ok(Self::Time),
            exact => exact.parse().map(Self::As),
        }
    }
}

impl From<Kind> for Wish {
    fn from(kind: Kind) -> Self {
        Self::As(kind)
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for Kind {
    type Error = UnknownKind;

    fn try_from(text: String) -> Result<Self, UnknownKind> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_written_and_read_back() {
        let numbers = NumberFormat::all().map(Kind::Number);
        let times = TimeFormat::ALL.into_iter().map(Kind::Time);
        let kinds: Vec<Kind> = numbers.chain(times).chain([Kind::Text, Kind::Bool]).collect();
        for (i, kind) in kinds.iter().enumerate() {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
            assert!(kinds[..i].iter().all(|other| other.to_string() != kind.to_string()), "{kind}");
        }
        assert_eq!(serde_json::to_string(&Kind::NUMBER).unwrap(), r#""number""#);
        assert!("dates".parse::<Kind>().unwrap_err().to_string().contains("`dates`"));
        assert_eq!("number".parse(), Ok(Wish::Number));
        assert_eq!("text".parse(), Ok(Wish::As(Kind::Text)));
    }
}
