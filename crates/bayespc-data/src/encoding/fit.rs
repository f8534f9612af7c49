//! Learning an encoding from the columns of the training table.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::{
    Coding, EncodingOptions, FeatureColumn, Missing, TargetColumns, Task, check_supported, missing, number,
    unsupported,
};
use crate::table::{Column, Kind, Table, Values};
use crate::{Error, Result};

/// Learns the coding of a feature column.
pub(super) fn fit_feature(
    table: &Table,
    column: &Column,
    options: &EncodingOptions,
) -> Result<FeatureColumn> {
    check_supported(table, column)?;
    check_suspect(table, column)?;
    let n = table.n_rows();
    let mut first_missing = None;
    let mut n_known = 0;
    let mut know = |known: bool, i: usize| {
        if known {
            n_known += 1;
        } else {
            first_missing.get_or_insert(i);
        }
    };
    let coding = match &column.values {
        Values::Number(_) => {
            let mut mean = 0.0;
            let mut count = 0.0;
            for i in 0..n {
                let x = number(table, column, i)?;
                know(x.is_some(), i);
                if let Some(x) = x {
                    // The running mean cannot overflow where a sum could.
                    count += 1.0;
                    mean += x / count - mean / count;
                }
            }
            Coding::Number { mean }
        }
        Values::Bool(values) => {
            values.iter().enumerate().for_each(|(i, value)| know(value.is_some(), i));
            let n_true = values.iter().filter(|value| **value == Some(true)).count();
            let n_false = values.iter().filter(|value| **value == Some(false)).count();
            Coding::Bool { most_frequent: n_true > n_false }
        }
        Values::Text(values) => {
            (0..n).for_each(|i| know(values.code(i).is_some(), i));
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            (0..n).filter_map(|i| values.get(i)).for_each(|value| *counts.entry(value).or_default() += 1);
            if counts.len() > options.max_categories {
                return Err(Error::TooManyCategories {
                    file: table.file().to_owned(),
                    column: column.name.clone(),
                    found: counts.len(),
                    limit: options.max_categories,
                });
            }
            let most = counts.values().max().copied().unwrap_or(0);
            Coding::Text {
                most_frequent: counts.values().position(|count| *count == most).unwrap_or(0),
                values: counts.into_keys().map(str::to_owned).collect(),
            }
        }
        Values::Time(_) => return Err(unsupported(table, column, "time")),
        Values::Unsupported(kind) => return Err(unsupported(table, column, kind)),
    };
    if n_known == 0 {
        return Err(Error::AllMissing { file: table.file().to_owned(), column: column.name.clone() });
    }
    match first_missing {
        Some(i) if options.missing == Missing::Error => Err(missing(table, column, i)),
        _ => Ok(FeatureColumn { name: column.name.clone(), coding }),
    }
}

/// Learns what the target columns are, if there are any.
pub(super) fn fit_target(
    table: &Table,
    targets: &[&str],
    task: Option<Task>,
) -> Result<Option<TargetColumns>> {
    let columns = targets.iter().map(|name| table.column(name)).collect::<Result<Vec<_>>>()?;
    let Some(&first) = columns.first() else {
        return Ok(None);
    };
    let wrong = |column: &Column, problem| Error::Target {
        file: table.file().to_owned(),
        column: column.name.clone(),
        problem,
    };
    for (k, column) in columns.iter().enumerate() {
        check_supported(table, column)?;
        if columns[..k].iter().any(|other| other.name == column.name) {
            return Err(wrong(column, "named twice"));
        }
        if (0..table.n_rows()).all(|i| column.is_missing(i)) {
            return Err(Error::AllMissing { file: table.file().to_owned(), column: column.name.clone() });
        }
        if task != Some(Task::Classification) {
            check_suspect(table, column)?;
        }
        if let Some(i) = (0..table.n_rows()).find(|&i| column.is_missing(i)) {
            return Err(missing(table, column, i));
        }
    }
    let not_number = columns.iter().find(|column| !matches!(column.values, Values::Number(_)));
    let task = task.unwrap_or(if not_number.is_some() { Task::Classification } else { Task::Regression });
    match task {
        Task::Regression => {
            if let Some(column) = columns.iter().find(|column| matches!(column.values, Values::Text(_))) {
                return Err(wrong(column, "text cannot be regressed on"));
            }
            for column in &columns {
                for i in 0..table.n_rows() {
                    number(table, column, i)?;
                }
            }
            Ok(Some(TargetColumns::Regression {
                columns: targets.iter().map(|&name| name.to_owned()).collect(),
            }))
        }
        Task::Classification if columns.len() > 1 => {
            Err(wrong(not_number.copied().unwrap_or(first), "classification takes a single target column"))
        }
        Task::Classification => {
            let classes = classes(table, first)?;
            if let [class] = &classes[..] {
                return Err(Error::OneClass {
                    file: table.file().to_owned(),
                    column: first.name.clone(),
                    class: class.clone(),
                });
            }
            let kind = match first.values {
                Values::Number(_) => Kind::NUMBER,
                Values::Bool(_) => Kind::Bool,
                _ => Kind::Text,
            };
            Ok(Some(TargetColumns::Classification { column: first.name.clone(), kind, classes }))
        }
    }
}

/// The labels of a target column: texts sorted, numbers by size.
fn classes(table: &Table, column: &Column) -> Result<Vec<String>> {
    if let Values::Number(_) = column.values {
        let mut numbered = Vec::new();
        for i in 0..table.n_rows() {
            numbered.extend(number(table, column, i)?.zip(column.text(i).map(Cow::into_owned)));
        }
        numbered.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut labels: Vec<_> = numbered.into_iter().map(|(_, label)| label).collect();
        labels.dedup();
        return Ok(labels);
    }
    let labels: BTreeSet<_> =
        (0..table.n_rows()).filter_map(|i| column.text(i).map(Cow::into_owned)).collect();
    Ok(labels.into_iter().collect())
}

fn check_suspect(table: &Table, column: &Column) -> Result<()> {
    column.suspect.as_ref().map_or(Ok(()), |suspect| {
        Err(Error::NearlyNumeric {
            file: table.file().to_owned(),
            row: suspect.row,
            column: column.name.clone(),
            value: suspect.value.clone(),
            expected: suspect.expected,
        })
    })
}
