//! The cells of a column, small: numbers and times as they are, texts as numbers into a list of those that differ.

use std::borrow::Cow;

use hashbrown::HashTable;

use super::hash::hash;
use super::number::NumberFormat;
use super::time::Civil;
use super::{Kind, cell};

/// A missing point in time.
pub(crate) const NO_TIME: i64 = i64::MIN;
/// A missing text.
const NO_TEXT: u32 = u32::MAX;

/// Cells of a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Values {
    /// Numbers, perhaps infinite; NaN is a missing cell.
    Number(Vec<f64>),
    /// Texts.
    Text(Texts),
    /// Booleans; `None` is a missing cell.
    Bool(Vec<Option<bool>>),
    /// Microseconds since 1970-01-01 UTC; `i64::MIN` is a missing cell.
    Time(Vec<i64>),
    /// Bytes or nested values: the name of their type. They cannot be used.
    Unsupported(String),
}

/// Texts, each different one kept once.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    codes: Vec<u32>,
    values: Vec<String>,
    /// Codes by the hash of their values, while cells are added.
    index: HashTable<u32>,
}

impl Texts {
    /// No texts yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The text of cell `i`; `None` is a missing cell.
    pub fn get(&self, i: usize) -> Option<&str> {
        self.values.get(self.codes[i] as usize).map(String::as_str)
    }

    /// Which of [`values`](Self::values) cell `i` is; `None` is a missing cell.
    pub fn code(&self, i: usize) -> Option<usize> {
        Some(self.codes[i]).filter(|code| *code != NO_TEXT).map(|code| code as usize)
    }

    /// The texts that differ, in the order of the file; after a selection of rows perhaps more than occur.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Adds a cell.
    pub fn push(&mut self, text: Option<&str>) {
        let code = text.map_or(NO_TEXT, |text| {
            let hash = hash(text);
            self.find(text, hash).unwrap_or_else(|| self.add(text.to_owned(), hash))
        });
        self.codes.push(code);
    }

    /// Adds a trimmed cell as files have it, where some texts mean that it is missing.
    pub(super) fn push_cell(&mut self, cell: &str) {
        self.push(Some(cell).filter(|cell| !cell::is_missing(cell)));
    }

    /// Adds the cells of other texts.
    pub(super) fn append(&mut self, other: Self) {
        let code = |value: String| {
            let hash = hash(&value);
            self.find(&value, hash).unwrap_or_else(|| self.add(value, hash))
        };
        let codes: Vec<u32> = other.values.into_iter().map(code).collect();
        let code = |own: u32| codes.get(own as usize).copied().unwrap_or(NO_TEXT);
        self.codes.extend(other.codes.into_iter().map(code));
    }

    fn find(&mut self, text: &str, hash: u64) -> Option<u32> {
        if self.index.len() != self.values.len() {
            for (value, code) in self.values.iter().zip(0..) {
                let rehash = |code: &u32| self::hash(&self.values[*code as usize]);
                self.index.insert_unique(self::hash(value), code, rehash);
            }
        }
        self.index.find(hash, |code| self.values[*code as usize] == text).copied()
    }

    fn add(&mut self, text: String, hash: u64) -> u32 {
        let code = self.values.len() as u32;
        self.values.push(text);
        let values = &self.values;
        self.index.insert_unique(hash, code, |code| self::hash(&values[*code as usize]));
        code
    }

    /// How often each of [`values`](Self::values) occurs, and in which cell first.
    pub(super) fn occurrences(&self) -> Vec<(usize, usize)> {
        let mut occurrences = vec![(0, usize::MAX); self.values.len()];
        for (i, code) in self.codes.iter().enumerate() {
            if let Some((count, first)) = occurrences.get_mut(*code as usize) {
                *count += 1;
                *first = i.min(*first);
            }
        }
        occurrences
    }

    /// Cells read as a kind, each text that differs once; `Err` is the first cell that is not of it.
    pub(super) fn read_as(self, kind: Kind) -> Result<Values, (usize, String)> {
        let (values, wrong) = self.read_as_far(kind);
        wrong.into_iter().next().map_or(Ok(values), Err)
    }

    /// Cells read as a kind, each text that differs once; those that are not of it are missing, and listed.
    pub(super) fn read_as_far(self, kind: Kind) -> (Values, Vec<(usize, String)>) {
        let (mut values, mut wrong) = (Values::new(kind), Vec::new());
        if kind == Kind::Text {
            return (Values::Text(self), Vec::new());
        }
        for (code, text) in self.values.iter().enumerate() {
            if values.push(text, kind).is_err() {
                values.push_missing();
                wrong.push(code);
            }
        }
        let mut unreadable = Vec::new();
        if !wrong.is_empty() {
            let is_wrong = |i: &usize| self.code(*i).is_some_and(|code| wrong.binary_search(&code).is_ok());
            let cell = |i: usize| (i, self.get(i).unwrap_or_default().to_owned());
            unreadable = (0..self.len()).filter(is_wrong).map(cell).collect();
        }
        let values = match values {
            Values::Number(each) => Values::Number(spread(&self.codes, &each, f64::NAN)),
            Values::Bool(each) => Values::Bool(spread(&self.codes, &each, None)),
            Values::Time(each) => Values::Time(spread(&self.codes, &each, NO_TIME)),
            other => other,
        };
        (values, unreadable)
    }

    /// Forgets what only adding needs.
    pub(super) fn settle(&mut self) {
        self.index = HashTable::new();
        self.codes.shrink_to_fit();
    }

    fn select(&self, rows: &[usize]) -> Self {
        let codes = rows.iter().map(|&row| self.codes[row]).collect();
        Self { codes, values: self.values.clone(), index: HashTable::new() }
    }
}

/// Equal texts in equal cells.
impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|i| self.get(i) == other.get(i))
    }
}

impl<'a> FromIterator<Option<&'a str>> for Texts {
    fn from_iter<I: IntoIterator<Item = Option<&'a str>>>(cells: I) -> Self {
        let mut texts = Self::new();
        cells.into_iter().for_each(|cell| texts.push(cell));
        texts.settle();
        texts
    }
}

impl Values {
    /// No cells yet, of this kind.
    pub(super) fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number(_) => Self::Number(Vec::new()),
            Kind::Text => Self::Text(Texts::new()),
            Kind::Bool => Self::Bool(Vec::new()),
            Kind::Time(_) => Self::Time(Vec::new()),
        }
    }

    /// Adds a trimmed cell, written as `kind` says; `Err` if it is not.
    pub(super) fn push(&mut self, cell: &str, kind: Kind) -> Result<(), ()> {
        // What can be read is not missing, and most cells can.
        let read = match (&mut *self, kind) {
            (Self::Number(values), Kind::Number(format)) => format.parse(cell).map(|x| values.push(x)),
            (Self::Time(values), Kind::Time(format)) => format.parse(cell).map(|time| values.push(time)),
            (Self::Bool(values), _) => cell::parse_bit(cell).map(|bit| values.push(Some(bit))),
            (Self::Text(texts), _) if !cell::is_missing(cell) => {
                texts.push(Some(cell));
                Some(())
            }
            _ => None,
        };
        match read {
            Some(()) => Ok(()),
            None if cell::is_missing(cell) => {
                self.push_missing();
                Ok(())
            }
            None => Err(()),
        }
    }

    /// Adds the cells of another part of the same column.
    pub(super) fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Number(values), Self::Number(mut more)) => values.append(&mut more),
            (Self::Bool(values), Self::Bool(mut more)) => values.append(&mut more),
            (Self::Time(values), Self::Time(mut more)) => values.append(&mut more),
            (Self::Text(values), Self::Text(more)) => values.append(more),
            (own, other) => *own = other,
        }
    }

    /// Makes room for so many cells in all.
    pub(super) fn reserve(&mut self, n: usize) {
        match self {
            Self::Number(values) => values.reserve_exact(n.saturating_sub(values.len())),
            Self::Bool(values) => values.reserve_exact(n.saturating_sub(values.len())),
            Self::Time(values) => values.reserve_exact(n.saturating_sub(values.len())),
            Self::Text(texts) => texts.codes.reserve_exact(n.saturating_sub(texts.codes.len())),
            Self::Unsupported(_) => {}
        }
    }

    /// Gives back memory that only adding needs.
    pub(super) fn settle(&mut self) {
        match self {
            Self::Number(values) => values.shrink_to_fit(),
            Self::Bool(values) => values.shrink_to_fit(),
            Self::Time(values) => values.shrink_to_fit(),
            Self::Text(values) => values.settle(),
            Self::Unsupported(_) => {}
        }
    }

    /// Adds a missing cell.
    pub(super) fn push_missing(&mut self) {
        match self {
            Self::Number(values) => values.push(f64::NAN),
            Self::Bool(values) => values.push(None),
            Self::Text(values) => values.push(None),
            Self::Time(values) => values.push(NO_TIME),
            Self::Unsupported(_) => {}
        }
    }

    /// These cells alone, in this order.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Number(values) => Self::Number(rows.iter().map(|&row| values[row]).collect()),
            Self::Text(values) => Self::Text(values.select(rows)),
            Self::Bool(values) => Self::Bool(rows.iter().map(|&row| values[row]).collect()),
            Self::Time(values) => Self::Time(rows.iter().map(|&row| values[row]).collect()),
            Self::Unsupported(kind) => Self::Unsupported(kind.clone()),
        }
    }

    /// Whether cell `i` is missing; a cell that cannot be used is not.
    pub fn is_missing(&self, i: usize) -> bool {
        match self {
            Self::Number(values) => values[i].is_nan(),
            Self::Text(values) => values.code(i).is_none(),
            Self::Bool(values) => values[i].is_none(),
            Self::Time(values) => values[i] == NO_TIME,
            Self::Unsupported(_) => false,
        }
    }

    /// Cell `i` as a number, booleans as 0 and 1; `Err` is a text that is none.
    pub fn number(&self, i: usize) -> Result<Option<f64>, String> {
        match self {
            Self::Number(values) => Ok(Some(values[i]).filter(|x| !x.is_nan())),
            Self::Bool(values) => Ok(values[i].map(|bit| f64::from(u8::from(bit)))),
            Self::Text(values) => {
                let parse = |text: &str| NumberFormat::PLAIN.parse(text).ok_or_else(|| text.to_owned());
                values.get(i).map(parse).transpose()
            }
            Self::Time(_) => self.text(i).map(|text| Err(text.into_owned())).transpose(),
            Self::Unsupported(kind) => Err(kind.clone()),
        }
    }

    /// Cell `i` as a boolean, 0 and 1 too; `Err` is anything else.
    pub fn boolean(&self, i: usize) -> Result<Option<bool>, String> {
        match self {
            Self::Bool(values) => Ok(values[i]),
            Self::Number(values) => match values[i] {
                x if x.is_nan() => Ok(None),
                x if x == 0.0 || x == 1.0 => Ok(Some(x == 1.0)),
                x => Err(cell::label(x)),
            },
            Self::Text(values) => {
                let parse = |text: &str| cell::parse_bool(text).ok_or_else(|| text.to_owned());
                values.get(i).map(parse).transpose()
            }
            Self::Time(_) => self.text(i).map(|text| Err(text.into_owned())).transpose(),
            Self::Unsupported(kind) => Err(kind.clone()),
        }
    }

    /// Cell `i` as a point in time, in microseconds since 1970-01-01 UTC; `Err` is anything else.
    pub fn time(&self, i: usize) -> Result<Option<i64>, String> {
        match self {
            Self::Time(values) => Ok(Some(values[i]).filter(|time| *time != NO_TIME)),
            Self::Unsupported(kind) => Err(kind.clone()),
            _ => self.text(i).map(|text| Err(text.into_owned())).transpose(),
        }
    }

    /// Cell `i` as text: numbers in full, times as ISO 8601 has them.
    pub fn text(&self, i: usize) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(values) => values.get(i).map(Cow::Borrowed),
            Self::Number(values) => Some(values[i]).filter(|x| !x.is_nan()).map(|x| cell::label(x).into()),
            Self::Bool(values) => values[i].map(|bit| if bit { "true" } else { "false" }.into()),
            Self::Time(values) => {
                Some(values[i]).filter(|t| *t != NO_TIME).map(|t| Civil::of(t).to_string().into())
            }
            Self::Unsupported(_) => None,
        }
    }
}

/// What each code stands for.
fn spread<T: Copy>(codes: &[u32], each: &[T], missing: T) -> Vec<T> {
    codes.iter().map(|code| each.get(*code as usize).copied().unwrap_or(missing)).collect()
}
