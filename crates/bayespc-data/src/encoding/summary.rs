//! What was understood of each column, in a line.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::category::Counts;
use super::{Cells, Coding};
use crate::Result;
use crate::table::{Civil, Values};

/// Values of a category that are named.
const NAMED: usize = 3;

/// What a column is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Understood {
    /// A number.
    Number,
    /// True or false.
    Bool,
    /// One of several values.
    Category,
    /// A point in time.
    Time,
    /// Words.
    Text,
    /// A name or number of the row.
    Identifier,
    /// The same in every row.
    Constant,
    /// Nothing but missing cells.
    Empty,
    /// Of a type that cannot be used.
    Unsupported,
    /// Left out because the user asked for it.
    Ignored,
}

impl fmt::Display for Understood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Number => "number",
            Self::Bool => "bool",
            Self::Category => "category",
            Self::Time => "time",
            Self::Text => "text",
            Self::Identifier => "identifier",
            Self::Constant => "constant",
            Self::Empty => "empty",
            Self::Unsupported => "unsupported",
            Self::Ignored => "ignored",
        })
    }
}

/// What was understood of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ColumnSummary {
    /// Its name.
    pub name: String,
    /// What it is taken for.
    pub understood: Understood,
    /// Its values or their range, in words.
    pub values: String,
    /// Number of missing cells.
    pub missing: usize,
    /// Number of inputs it becomes; 0 if it is left out.
    pub inputs: usize,
    /// What else there is to say, such as why it is left out.
    pub remark: String,
}

impl ColumnSummary {
    pub(super) fn of(
        cells: &Cells<'_>,
        understood: Understood,
        coding: Option<&Coding>,
        remark: &str,
    ) -> Result<Self> {
        let mut remarks: Vec<String> = Vec::new();
        match coding {
            Some(Coding::Category(category)) if !category.pooled.is_empty() => {
                remarks.push(match category.pooled.len() {
                    1 => "a rare value is named `other`".to_owned(),
                    n => format!("{n} rare values share an input"),
                });
            }
            Some(Coding::Number(number)) => remarks.extend(number.remark()),
            Some(Coding::Time(time)) if !time.parts().is_empty() => remarks.push(time.parts()),
            Some(Coding::Hash(_)) => remarks.push("words hashed".to_owned()),
            _ => {}
        }
        if !remark.is_empty() {
            remarks.push(remark.to_owned());
        }
        Ok(Self {
            name: cells.name().to_owned(),
            understood,
            values: values(cells, understood)?,
            missing: (0..cells.len()).filter(|&i| cells.column.is_missing(i)).count(),
            inputs: coding.map_or(0, |coding| coding.names(cells.name()).len()),
            remark: remarks.join("; "),
        })
    }
}

/// What the values of a column are, in words.
fn values(cells: &Cells<'_>, understood: Understood) -> Result<String> {
    let all = 0..cells.len();
    Ok(match (&cells.column.values, understood) {
        (Values::Unsupported(_), _) | (_, Understood::Empty) => String::new(),
        (_, Understood::Constant) => shortened(&cells.column.text(0).unwrap_or_default()),
        (Values::Number(_), Understood::Number | Understood::Identifier | Understood::Ignored)
        | (_, Understood::Number) => {
            // What is ignored may hold anything.
            let numbers = all.filter_map(|i| cells.number(i).ok().flatten());
            range(numbers, f64::min, f64::max)
                .map_or_else(String::new, |(low, high)| format!("{} … {}", short(low), short(high)))
        }
        (_, Understood::Time) | (Values::Time(_), Understood::Identifier | Understood::Ignored) => {
            let times = all.filter_map(|i| cells.time(i).ok().flatten());
            range(times, i64::min, i64::max)
                .map_or_else(String::new, |(low, high)| format!("{} … {}", Civil::of(low), Civil::of(high)))
        }
        (_, Understood::Bool) => {
            let (mut n_true, mut n) = (0_usize, 0_usize);
            for i in all {
                if let Some(bit) = cells.boolean(i)? {
                    n += 1;
                    n_true += usize::from(bit);
                }
            }
            format!("{:.0} % true", 100.0 * n_true as f64 / n.max(1) as f64)
        }
        _ => {
            let counts = Counts::of(cells);
            let first: Vec<String> = counts.frequent(NAMED, 1).into_iter().map(shortened).collect();
            let more = if counts.of.len() > NAMED { ", …" } else { "" };
            format!("{}: {}{more}", counts.of.len(), first.join(", "))
        }
    })
}

fn range<T: Copy>(values: impl Iterator<Item = T>, min: fn(T, T) -> T, max: fn(T, T) -> T) -> Option<(T, T)> {
    values.fold(None, |range, x| Some(range.map_or((x, x), |(low, high)| (min(low, x), max(high, x)))))
}

/// A text in at most twenty letters.
fn shortened(text: &str) -> String {
    if text.chars().count() <= 20 {
        return text.to_owned();
    }
    text.chars().take(19).chain(['…']).collect()
}

/// A number in about four digits.
pub(super) fn short(x: f64) -> String {
    let size = x.abs();
    if x == x.trunc() && size < 1e9 {
        format!("{}", x + 0.0)
    } else if !(1e-4..1e9).contains(&size) {
        format!("{x:.3e}")
    } else {
        let digits = (3 - size.log10().floor() as i32).max(0) as usize;
        let text = format!("{x:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// What was understood of columns, as a table for people.
///
/// Beyond `limit` lines, numbers of which there is nothing else to say are summed up in the last one.
pub fn columns_table(columns: &[ColumnSummary], limit: usize) -> String {
    let plain =
        |c: &&ColumnSummary| c.understood == Understood::Number && c.missing == 0 && c.remark.is_empty();
    let n_plain = columns.iter().filter(plain).count();
    let shorten = columns.len() > limit && n_plain > 1;
    let shown = columns.iter().filter(|column| !(shorten && plain(column)));
    let cells = |c: &ColumnSummary| {
        let inputs = if c.inputs == 0 { "–".to_owned() } else { c.inputs.to_string() };
        [
            c.name.clone(),
            c.understood.to_string(),
            c.values.clone(),
            c.missing.to_string(),
            inputs,
            c.remark.clone(),
        ]
    };
    let head = ["column", "understood as", "values", "missing", "inputs", ""].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(shown.map(cells)).collect();
    let width = |k: usize| rows.iter().map(|row| row[k].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let line = |row: &[String; 6]| {
        let [name, understood, values, missing, inputs, remark] = row;
        let text = format!(
            "{name:a$}  {understood:b$}  {values:c$}  {missing:>d$}  {inputs:>e$}  {remark}",
            a = widths[0],
            b = widths[1],
            c = widths[2],
            d = widths[3],
            e = widths[4],
        );
        text.trim_end().to_owned()
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if shorten {
        lines.push(format!("and {n_plain} columns of numbers without holes"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (x, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (12.0, "12"),
            (1.5, "1.5"),
            (0.012_345, "0.01235"),
            (1234.56, "1235"),
            (1e20, "1.000e20"),
        ] {
            assert_eq!(short(x), expected);
        }
    }
}
