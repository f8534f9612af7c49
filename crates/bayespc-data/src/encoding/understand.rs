//! What a column is taken for, if nobody has said so, and which columns are left out.
//!
//! A column is left out if it cannot help: no cell has a value, all have the same, or each row has one of its own.
//! Only then would leaving it in be worse than leaving it out: a row number is learned as if it meant something, and
//! new rows lie beyond all that was seen of it.

use super::category::{Counts, FEW, seldom};
use super::{Cells, ColumnChoice, EncodingOptions, Understood};
use crate::Result;
use crate::table::Values;

/// In fewer rows, different values are no sign of an identifier.
const ENOUGH_ROWS: usize = 20;

/// A number that counts rows and is called so is a time rather than a row number.
const TIMES: [&str; 18] = [
    "t",
    "time",
    "timestamp",
    "date",
    "day",
    "days",
    "week",
    "month",
    "quarter",
    "year",
    "hour",
    "minute",
    "second",
    "step",
    "period",
    "epoch",
    "tick",
    "age",
];

/// Names of numbers that tell rows apart.
const IDENTIFIERS: [&str; 13] =
    ["id", "index", "idx", "key", "row", "rowid", "rownumber", "nr", "no", "uuid", "guid", "unnamed0", "pk"];

/// What a column is taken for, and why, in words for the user.
pub(super) struct Reading {
    pub understood: Understood,
    /// What it becomes; nothing if it is left out.
    pub choice: ColumnChoice,
    pub remark: String,
}

impl Reading {
    fn left_out(understood: Understood, remark: impl Into<String>) -> Self {
        Self { understood, choice: ColumnChoice::Ignore, remark: remark.into() }
    }

    fn used(understood: Understood, choice: ColumnChoice) -> Self {
        Self { understood, choice, remark: String::new() }
    }
}

/// What a column is taken for.
pub(super) fn read(cells: &Cells<'_>, options: &EncodingOptions) -> Result<Reading> {
    let Some(choice) = options.choice(cells.name()) else {
        return guess(cells, options);
    };
    let understood = match choice {
        ColumnChoice::Number(_) => Understood::Number,
        ColumnChoice::Bool => Understood::Bool,
        ColumnChoice::Category { .. } => Understood::Category,
        ColumnChoice::Time(_) => Understood::Time,
        ColumnChoice::Text { .. } => Understood::Text,
        ColumnChoice::Ignore => Understood::Ignored,
    };
    if choice != ColumnChoice::Ignore {
        cells.check_supported()?;
    }
    // What would have been understood anyway needs no remark.
    let asked = guess(cells, options).map_or(true, |own| own.understood != understood);
    let remark = if asked { "as asked" } else { "" };
    Ok(Reading { understood, choice, remark: remark.to_owned() })
}

fn guess(cells: &Cells<'_>, options: &EncodingOptions) -> Result<Reading> {
    let column = cells.column;
    if let Values::Unsupported(kind) = &column.values {
        return Ok(Reading::left_out(Understood::Unsupported, format!("left out: cells of type {kind}")));
    }
    let n_known = (0..cells.len()).filter(|&i| !column.is_missing(i)).count();
    if n_known == 0 {
        return Ok(Reading::left_out(Understood::Empty, "left out: no cell has a value"));
    }
    cells.check_suspect()?;
    if n_known == cells.len() && n_known > 1 && is_constant(cells) {
        return Ok(Reading::left_out(Understood::Constant, "left out: every cell has this value"));
    }
    Ok(match &column.values {
        Values::Number(_) if counts_rows(cells)? => Reading::left_out(
            Understood::Identifier,
            format!("left out: it numbers the rows ({}=number takes it)", cells.name()),
        ),
        Values::Number(_) => Reading::used(Understood::Number, ColumnChoice::Number(None)),
        Values::Bool(_) => Reading::used(Understood::Bool, ColumnChoice::Bool),
        Values::Time(_) => Reading::used(Understood::Time, ColumnChoice::Time(None)),
        _ => guess_text(cells, options),
    })
}

fn guess_text(cells: &Cells<'_>, options: &EncodingOptions) -> Reading {
    let counts = Counts::of(cells);
    let n_values = counts.of.len();
    let category = Reading::used(Understood::Category, ColumnChoice::Category { most: None });
    if n_values <= FEW {
        return category;
    }
    let name = cells.name();
    if n_values == counts.n_known {
        let remark = format!("left out: no value occurs twice ({name}=text takes its words)");
        return Reading::left_out(Understood::Identifier, remark);
    }
    let frequent = counts.frequent(options.max_categories, seldom(n_values));
    // One input for all the others tells little once they are the most.
    if 2 * counts.covered(&frequent) < counts.n_known {
        let remark = format!(
            "left out: mostly rare values ({name}=text takes the words, {name}=category the frequent values)"
        );
        return Reading::left_out(Understood::Text, remark);
    }
    category
}

fn is_constant(cells: &Cells<'_>) -> bool {
    let first = cells.column.text(0);
    (1..cells.len()).all(|i| cells.column.text(i) == first)
}

/// Whether a column of numbers only tells rows apart: it counts them from 0 or 1, or is called an identifier and
/// all its values are different integers.
fn counts_rows(cells: &Cells<'_>) -> Result<bool> {
    if cells.len() < ENOUGH_ROWS {
        return Ok(false);
    }
    let mut values = Vec::with_capacity(cells.len());
    for i in 0..cells.len() {
        match cells.number(i)? {
            Some(x) if x.fract() == 0.0 => values.push(x),
            _ => return Ok(false),
        }
    }
    let name: String = cells.name().to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
    let start = values[0];
    let counts = values.iter().enumerate().all(|(i, x)| *x == start + i as f64);
    if counts && (start == 0.0 || start == 1.0) && !TIMES.contains(&name.as_str()) {
        return Ok(true);
    }
    if !IDENTIFIERS.contains(&name.as_str()) && !ends_in_id(cells.name()) {
        return Ok(false);
    }
    values.sort_by(f64::total_cmp);
    Ok(values.windows(2).all(|pair| pair[0] < pair[1]))
}

/// `customer_id`, `customer id`, `customerId`, but not `paid`.
fn ends_in_id(name: &str) -> bool {
    let Some(before) =
        name.strip_suffix("id").or_else(|| name.strip_suffix("Id")).or(name.strip_suffix("ID"))
    else {
        return false;
    };
    let lower = name.ends_with("id");
    before.chars().next_back().is_some_and(|c| !c.is_alphanumeric() || (!lower && c.is_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_identifiers_are_told_from_words() {
        for name in ["customer_id", "customer id", "customerId", "PassengerId", "orderID"] {
            assert!(ends_in_id(name), "{name}");
        }
        for name in ["paid", "id", "humid", "GRID", "idle"] {
            assert!(!ends_in_id(name), "{name}");
        }
    }
}
