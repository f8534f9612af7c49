//! A category is one input per frequent value, 1 where it occurs.
//!
//! ```text
//! a frequent value     its own input
//! a rare one           one input that all rare values share
//! a missing cell       an input of its own, where training had holes; else as the most frequent value
//! an unseen value      all inputs 0
//! ```
//!
//! All inputs 0 is a place where no training row was, so the epistemic variance is larger there: the model
//! knows that it has not seen the value. A value is rare if there are more than [`FEW`] different ones and it occurs
//! fewer than [`SELDOM`] times, or if too many others are more frequent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::number::missing_name;
use super::sink::Sink;
use super::{Cells, is_false};
use crate::Result;
use crate::table::Values;

/// So few different values are never pooled.
pub(super) const FEW: usize = 10;

/// A value that occurs fewer times is rare.
pub(super) const SELDOM: usize = 3;

/// How a category becomes inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct CategoryCoding {
    /// The values with an input of their own, sorted.
    pub values: Vec<String>,
    /// Index of the most frequent value in training, the first of equals.
    pub most_frequent: usize,
    /// The values that share an input, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pooled: Vec<String>,
    /// Whether an input tells which cells were missing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub missing: bool,
}

/// A coding as a file has it, of which nothing is known.
#[derive(Deserialize)]
struct Written {
    values: Vec<String>,
    most_frequent: usize,
    #[serde(default)]
    pooled: Vec<String>,
    #[serde(default)]
    missing: bool,
}

impl TryFrom<Written> for CategoryCoding {
    type Error = String;

    fn try_from(written: Written) -> std::result::Result<Self, String> {
        let Written { values, most_frequent, pooled, missing } = written;
        // A column without any known cell has no value, and number 0 is the most frequent of none.
        if most_frequent >= values.len().max(1) {
            return Err(format!("most_frequent is {most_frequent} of {} values", values.len()));
        }
        if !(values.is_sorted() && pooled.is_sorted()) {
            return Err("the values of a category are not sorted".to_owned());
        }
        Ok(Self { values, most_frequent, pooled, missing })
    }
}

/// The values of a column and how often each occurs.
pub(super) struct Counts {
    pub of: BTreeMap<String, usize>,
    pub n_known: usize,
}

impl Counts {
    pub fn of(cells: &Cells<'_>) -> Self {
        let mut of: BTreeMap<String, usize> = BTreeMap::new();
        if let Values::Text(texts) = &cells.column.values {
            // Texts are numbered already: counting numbers is quicker than comparing texts.
            let mut counts = vec![0; texts.values().len()];
            (0..cells.len()).filter_map(|i| texts.code(i)).for_each(|code| counts[code] += 1);
            let counted = texts.values().iter().cloned().zip(counts).filter(|(_, count)| *count > 0);
            of.extend(counted);
        } else {
            let texts = (0..cells.len()).filter_map(|i| cells.column.text(i));
            texts.for_each(|text| *of.entry(text.into_owned()).or_default() += 1);
        }
        Self { n_known: of.values().sum(), of }
    }

    /// The most frequent values, at most so many, that occur at least so often.
    pub fn frequent(&self, most: usize, at_least: usize) -> Vec<&str> {
        let mut values: Vec<(&str, usize)> = self.of.iter().map(|(value, &n)| (value.as_str(), n)).collect();
        values.retain(|(_, n)| *n >= at_least);
        // Stable: of equals the first in the order of the alphabet.
        values.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        values.truncate(most);
        values.into_iter().map(|(value, _)| value).collect()
    }

    /// How many cells have one of these values.
    pub fn covered(&self, values: &[&str]) -> usize {
        values.iter().filter_map(|value| self.of.get(*value)).sum()
    }
}

/// How often a value must occur for an input of its own, if nobody has asked for the category.
pub(super) fn seldom(n_values: usize) -> usize {
    if n_values > FEW { SELDOM } else { 1 }
}

impl CategoryCoding {
    /// Gives inputs to the `most` most frequent values that occur at least so often.
    pub(super) fn learn(cells: &Cells<'_>, most: usize, asked: bool) -> Self {
        let counts = Counts::of(cells);
        let at_least = if asked { 1 } else { seldom(counts.of.len()) };
        let frequent = counts.frequent(most, at_least);
        let mut values: Vec<String> = frequent.iter().map(|&value| value.to_owned()).collect();
        values.sort_unstable();
        let first = frequent.first().map(|&value| value.to_owned());
        let most_frequent = first.and_then(|first| values.binary_search(&first).ok()).unwrap_or(0);
        let missing = counts.n_known < cells.len();
        let pooled = counts.of.into_keys().filter(|value| values.binary_search(value).is_err()).collect();
        Self { values, most_frequent, pooled, missing }
    }

    pub(super) fn names(&self, column: &str) -> Vec<String> {
        let mut names: Vec<_> = self.values.iter().map(|value| format!("{column}={value}")).collect();
        if !self.pooled.is_empty() {
            names.push(format!("{column}=(other)"));
        }
        names.extend(self.missing.then(|| missing_name(column)));
        names
    }

    pub(super) fn encode(&self, cells: &Cells<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let other = self.values.len();
        let missing = other + usize::from(!self.pooled.is_empty());
        let input = |text: &str| {
            let found = self.values.binary_search_by(|value| value.as_str().cmp(text)).ok();
            let is_pooled = || self.pooled.binary_search_by(|value| value.as_str().cmp(text)).is_ok();
            found.or_else(|| is_pooled().then_some(other))
        };
        // Each different text is looked up once.
        let texts = match &cells.column.values {
            Values::Text(texts) => {
                Some((texts, texts.values().iter().map(|text| input(text)).collect::<Vec<_>>()))
            }
            _ => None,
        };
        for i in 0..cells.len() {
            let known = match &texts {
                Some((texts, inputs)) => {
                    texts.code(i).map(|code| (inputs[code], texts.values()[code].as_str().into()))
                }
                None => cells.column.text(i).map(|text| (input(&text), text)),
            };
            match known {
                Some((Some(k), _)) => sink.set(k, i, 1.0),
                Some((None, text)) => sink.unseen(cells, i, &text),
                None => {
                    if !self.missing && !self.values.is_empty() {
                        sink.set(self.most_frequent, i, 1.0);
                    }
                    sink.hole(cells, i, self.missing.then_some(missing))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by fuzzing: a number of a value that is not there wrote beyond the matrix.
    #[test]
    fn a_file_whose_most_frequent_value_is_none_of_its_values_is_refused() {
        let read = |text: &str| serde_json::from_str::<CategoryCoding>(text);
        let good = read(r#"{"values":["Aarau","Bern"],"most_frequent":1}"#).unwrap();
        assert_eq!(good.values.len(), 2);
        assert!(read(r#"{"values":[],"most_frequent":0,"missing":true}"#).is_ok());
        let flaw = read(r#"{"values":["Aarau","Bern"],"most_frequent":33}"#).unwrap_err();
        assert!(flaw.to_string().contains("33 of 2"), "{flaw}");
        assert!(read(r#"{"values":["Bern","Aarau"],"most_frequent":0}"#).is_err());
        // What is written is read.
        assert_eq!(read(&serde_json::to_string(&good).unwrap()).unwrap(), good);
    }
}
