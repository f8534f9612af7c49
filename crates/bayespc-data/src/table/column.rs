//! A column with its name, and how one is made of what a program has.

use std::borrow::Cow;

use super::guess::Guess;
use super::{Kind, Texts, TimeFormat, Values, Wish};
use crate::{Error, Result};

/// A column with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name in the header.
    pub name: String,
    /// What its cells are and how they were written.
    pub kind: Kind,
    /// Its cells.
    pub values: Values,
    /// The first cell that is not what nearly all others are.
    pub suspect: Option<Suspect>,
}

/// A cell that is probably a typing error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suspect {
    /// Data row in the file, from 1.
    pub row: usize,
    /// What it holds.
    pub value: String,
    /// What nearly all other cells are: `number`, `number of the same unit` or `date`.
    pub expected: &'static str,
}

impl Column {
    /// Numbers; NaN is a missing cell.
    pub fn numbers(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self::of(name, Kind::NUMBER, Values::Number(values))
    }

    /// Booleans; `None` is a missing cell.
    pub fn booleans(name: impl Into<String>, values: Vec<Option<bool>>) -> Self {
        Self::of(name, Kind::Bool, Values::Bool(values))
    }

    /// Microseconds since 1970-01-01 UTC; `i64::MIN` is a missing cell.
    pub fn times(name: impl Into<String>, values: Vec<i64>) -> Self {
        Self::of(name, Kind::Time(TimeFormat::ISO), Values::Time(values))
    }

    /// Texts, whatever they look like.
    pub fn texts(name: impl Into<String>, values: Texts) -> Self {
        Self::of(name, Kind::Text, Values::Text(values))
    }

    /// A column whose kind follows from its cells, as in a CSV file; `None` is a missing cell.
    pub fn from_texts<'a>(name: impl Into<String>, cells: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut texts = Texts::new();
        cells.into_iter().for_each(|cell| texts.push_cell(cell.unwrap_or_default().trim()));
        let verdict = Guess::of_texts(&texts).verdict(false);
        // The guess has read every cell; what it could not read it took for text, which anything is.
        let mut values = texts.read_as(verdict.kind).unwrap_or_else(|_| Values::Text(Texts::new()));
        values.settle();
        Self { name: name.into(), kind: verdict.kind, values, suspect: verdict.suspect }
    }

    /// A column of cells that are read as asked; `file` is for messages.
    pub fn from_texts_as<'a>(
        file: &str,
        name: &str,
        cells: impl Iterator<Item = Option<&'a str>> + Clone,
        wish: Wish,
    ) -> Result<Self> {
        let mut guess = Guess::default();
        for (i, cell) in cells.clone().enumerate() {
            guess.see(cell.unwrap_or_default().trim(), i + 1, 1);
        }
        let kind = guess.wished(wish, false);
        let mut values = Values::new(kind);
        for (i, cell) in cells.enumerate() {
            let cell = cell.unwrap_or_default().trim();
            values.push(cell, kind).map_err(|()| Error::WrongType {
                file: file.to_owned(),
                row: i + 1,
                column: name.to_owned(),
                value: cell.to_owned(),
                expected: kind.noun(),
            })?;
        }
        Ok(Self { name: name.to_owned(), kind, values, suspect: None })
    }

    pub(super) fn of(name: impl Into<String>, kind: Kind, values: Values) -> Self {
        Self { name: name.into(), kind, values, suspect: None }
    }

    /// Number of cells; unknown where they cannot be used.
    pub fn n_cells(&self) -> Option<usize> {
        match &self.values {
            Values::Number(values) => Some(values.len()),
            Values::Text(values) => Some(values.len()),
            Values::Bool(values) => Some(values.len()),
            Values::Time(values) => Some(values.len()),
            Values::Unsupported(_) => None,
        }
    }

    /// Whether cell `i` is missing.
    pub fn is_missing(&self, i: usize) -> bool {
        self.values.is_missing(i)
    }

    /// Cell `i` as a number, booleans as 0 and 1; `Err` is a text that is none.
    pub fn number(&self, i: usize) -> Result<Option<f64>, String> {
        self.values.number(i)
    }

    /// Cell `i` as a boolean, 0 and 1 too; `Err` is anything else.
    pub fn boolean(&self, i: usize) -> Result<Option<bool>, String> {
        self.values.boolean(i)
    }

    /// Cell `i` as a point in time, in microseconds since 1970-01-01 UTC; `Err` is anything else.
    pub fn time(&self, i: usize) -> Result<Option<i64>, String> {
        self.values.time(i)
    }

    /// Cell `i` as text: numbers in full, times as ISO 8601 has them.
    pub fn text(&self, i: usize) -> Option<Cow<'_, str>> {
        self.values.text(i)
    }
}
