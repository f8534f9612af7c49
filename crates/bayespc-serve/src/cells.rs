//! Values of a request as columns of a table. The column decides how a value is read, the request only which it is.

use bayespc_data::{Column, Kind, Table, TimeFormat, Wish};
use serde_json::Value;

use crate::problem::Problem;
use crate::served::Served;

/// What messages would call the file.
const FILE: &str = "the request";

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Missing,
    Number(f64),
    Bool(bool),
    Text(String),
}

impl Cell {
    /// A JSON value; `Err` says what it is instead of one.
    pub fn of(value: Value) -> Result<Self, &'static str> {
        match value {
            Value::Null => Ok(Self::Missing),
            Value::Bool(bit) => Ok(Self::Bool(bit)),
            // Every JSON number is one that a double can be near to.
            Value::Number(x) => Ok(Self::Number(x.as_f64().unwrap_or(f64::NAN))),
            Value::String(text) => Ok(Self::Text(text)),
            Value::Array(_) => Err("a list"),
            Value::Object(_) => Err("an object"),
        }
    }

    /// As it was written, more or less.
    pub fn text(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Number(x) => x.to_string(),
            Self::Bool(bit) => bit.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// Columns by name, of equal length.
pub type Columns = Vec<(String, Vec<Cell>)>;

/// The columns that a model needs, as a table; others are left aside.
pub fn table(served: &Served, columns: &Columns) -> Result<Table, Problem> {
    let present: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    served.check_columns(&present)?;
    let mut read = Vec::with_capacity(served.encoding.features.len());
    for feature in &served.encoding.features {
        let mut same = columns.iter().filter(|(name, _)| *name == feature.name);
        // It is there: that was checked.
        let Some((name, cells)) = same.next() else { continue };
        if same.next().is_some() {
            return Err(Problem::bad(format!("column `{name}` is there twice")).column(name));
        }
        read.push(column(name, cells, feature.kind())?);
    }
    Ok(Table::from_columns(FILE, read)?)
}

/// The rows of CSV text.
pub fn csv(served: &Served, bytes: &[u8]) -> Result<Table, Problem> {
    Ok(Table::from_csv("the CSV text", bytes, &served.encoding.kinds())?)
}

fn column(name: &str, cells: &[Cell], kind: Kind) -> Result<Column, Problem> {
    let text = |cell: &Cell| if let Cell::Text(text) = cell { Some(text.clone()) } else { None };
    let has_text = cells.iter().any(|cell| matches!(cell, Cell::Text(_)));
    let texts: Vec<Option<String>> = if has_text { cells.iter().map(text).collect() } else { Vec::new() };
    let read = |kind: Kind| {
        let cells = texts.iter().map(Option::as_deref);
        Column::from_texts_as(FILE, name, cells, Wish::As(kind))
    };
    let wrong = |i: usize, expected: &str| {
        let (row, value) = (i + 1, cells[i].text());
        Problem::bad(format!("row {row}, column `{name}`: {value} is not a {expected}"))
            .column(name)
            .row(row)
            .value(value)
    };
    match kind {
        Kind::Number(_) => {
            let written = if has_text { Some(read(kind)?) } else { None };
            let number = |(i, cell): (usize, &Cell)| match cell {
                Cell::Missing => Ok(f64::NAN),
                Cell::Number(x) => Ok(*x),
                Cell::Bool(bit) => Ok(f64::from(u8::from(*bit))),
                Cell::Text(_) => {
                    let x = written.as_ref().map_or(Ok(None), |column| column.number(i));
                    x.map(|x| x.unwrap_or(f64::NAN)).map_err(|_| wrong(i, "number"))
                }
            };
            Ok(Column::numbers(name, cells.iter().enumerate().map(number).collect::<Result<_, _>>()?))
        }
        Kind::Bool => {
            let written = if has_text { Some(read(kind)?) } else { None };
            let boolean = |(i, cell): (usize, &Cell)| match cell {
                Cell::Missing => Ok(None),
                Cell::Bool(bit) => Ok(Some(*bit)),
                Cell::Number(x) if *x == 0.0 || *x == 1.0 => Ok(Some(*x == 1.0)),
                Cell::Number(_) => Err(wrong(i, "boolean")),
                Cell::Text(_) => written
                    .as_ref()
                    .map_or(Ok(None), |column| column.boolean(i))
                    .map_err(|_| wrong(i, "boolean")),
            };
            Ok(Column::booleans(name, cells.iter().enumerate().map(boolean).collect::<Result<_, _>>()?))
        }
        Kind::Time(format) => {
            // Programs write ISO 8601, however the table wrote its dates.
            let is_clock = format == TimeFormat::Clock;
            let others = if is_clock { None } else { Some(TimeFormat::ISO) };
            let noun = if is_clock { "time of day" } else { "date" };
            let time = |(i, cell): (usize, &Cell)| match cell {
                Cell::Missing => Ok(i64::MIN),
                Cell::Number(_) | Cell::Bool(_) => {
                    Err(wrong(i, "date: write it as text, such as \"2024-12-31\" or \"2024-12-31T23:59\""))
                }
                Cell::Text(text) => {
                    let text = text.trim();
                    let read = format.parse(text).or_else(|| others?.parse(text));
                    // What is no time may still mean that there is none.
                    let is_missing = || {
                        Column::from_texts_as(FILE, name, std::iter::once(Some(text)), Wish::As(kind)).is_ok()
                    };
                    read.or_else(|| is_missing().then_some(i64::MIN)).ok_or_else(|| wrong(i, noun))
                }
            };
            Ok(Column::times(name, cells.iter().enumerate().map(time).collect::<Result<_, _>>()?))
        }
        Kind::Text => {
            let texts: Vec<String> = cells.iter().map(Cell::text).collect();
            let cells = texts.iter().map(|text| Some(text.as_str()));
            Ok(Column::from_texts_as(FILE, name, cells, Wish::As(kind))?)
        }
    }
}
