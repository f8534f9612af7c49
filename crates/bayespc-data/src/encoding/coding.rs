//! How one column becomes inputs: one of five codings.

use serde::{Deserialize, Serialize};

use super::sink::Sink;
use super::{
    BoolCoding, CategoryCoding, Cells, ColumnChoice, EncodingOptions, HashCoding, NumberCoding, TimeCoding,
};
use crate::Result;
use crate::table::{Column, Kind, TimeFormat};

/// One feature column of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeatureColumn {
    /// Its name.
    pub name: String,
    /// How it becomes rows of the matrix.
    pub coding: Coding,
    /// How its cells were written when fitting, where the coding does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<Kind>,
}

/// How a column becomes rows of the feature matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Coding {
    /// A number as it is.
    Number(NumberCoding),
    /// 0 or 1.
    Bool(BoolCoding),
    /// One row per frequent value.
    #[serde(rename = "text")]
    Category(CategoryCoding),
    /// Days, season, weekday and hour.
    Time(TimeCoding),
    /// Words, hashed.
    Hash(HashCoding),
}

impl Coding {
    /// Learns a coding; `None` for a column that is left out.
    pub(super) fn learn(
        cells: &Cells<'_>,
        choice: ColumnChoice,
        options: &EncodingOptions,
    ) -> Result<Option<Self>> {
        let asked = options.choice(cells.name()).is_some();
        Ok(Some(match choice {
            ColumnChoice::Number(_) => Self::Number(NumberCoding::learn(cells, asked, options.missing)?),
            ColumnChoice::Bool => Self::Bool(BoolCoding::learn(cells)?),
            ColumnChoice::Category { most } => {
                Self::Category(CategoryCoding::learn(cells, most.unwrap_or(options.max_categories), asked))
            }
            ColumnChoice::Time(_) => Self::Time(TimeCoding::learn(cells)?),
            ColumnChoice::Text { inputs } => Self::Hash(HashCoding { inputs }),
            ColumnChoice::Ignore => return Ok(None),
        }))
    }

    /// The choice that gives a coding of this kind.
    pub(super) fn choice(&self) -> ColumnChoice {
        match self {
            Self::Number(_) => ColumnChoice::Number(None),
            Self::Bool(_) => ColumnChoice::Bool,
            Self::Category(_) => ColumnChoice::Category { most: None },
            Self::Time(_) => ColumnChoice::Time(None),
            Self::Hash(coding) => ColumnChoice::Text { inputs: coding.inputs },
        }
    }

    /// What cells of this coding plainly are.
    fn kind(&self) -> Kind {
        match self {
            Self::Number(_) => Kind::NUMBER,
            Self::Bool(_) => Kind::Bool,
            Self::Category(_) | Self::Hash(_) => Kind::Text,
            Self::Time(_) => Kind::Time(TimeFormat::ISO),
        }
    }

    /// Names of the rows of the matrix.
    pub(super) fn names(&self, column: &str) -> Vec<String> {
        match self {
            Self::Number(coding) => coding.names(column),
            Self::Bool(coding) => coding.names(column),
            Self::Category(coding) => coding.names(column),
            Self::Time(coding) => coding.names(column),
            Self::Hash(coding) => coding.names(column),
        }
    }

    /// Writes the rows of this column.
    pub(super) fn encode(&self, cells: &Cells<'_>, sink: &mut Sink<'_>) -> Result<()> {
        match self {
            Self::Number(coding) => coding.encode(cells, sink),
            Self::Bool(coding) => coding.encode(cells, sink),
            Self::Category(coding) => coding.encode(cells, sink),
            Self::Time(coding) => coding.encode(cells, sink),
            Self::Hash(coding) => coding.encode(cells, sink),
        }
    }
}

impl FeatureColumn {
    pub(super) fn new(column: &Column, coding: Coding) -> Self {
        let cells = Some(column.kind).filter(|kind| *kind != coding.kind());
        Self { name: column.name.clone(), coding, cells }
    }

    /// How its cells are written.
    pub fn kind(&self) -> Kind {
        self.cells.unwrap_or(self.coding.kind())
    }

    /// Rows of the feature matrix.
    pub fn width(&self) -> usize {
        self.coding.names(&self.name).len()
    }
}
