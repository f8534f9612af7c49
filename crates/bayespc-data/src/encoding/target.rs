//! What is to be predicted: numbers, or one of several classes.

use std::collections::{BTreeSet, HashMap};

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::{Cells, Task};
use crate::table::{Kind, Kinds, Table, Values};
use crate::{Error, Result};

/// So many classes may always be.
const FEW_CLASSES: usize = 20;

/// The target columns of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "lowercase")]
pub enum TargetColumns {
    /// Numbers.
    Regression {
        /// Names of the columns.
        columns: Vec<String>,
        /// How their cells were written when fitting, where not plainly.
        #[serde(default, skip_serializing_if = "Kinds::is_empty")]
        cells: Kinds,
    },
    /// Classes.
    Classification {
        /// Name of the column.
        column: String,
        /// What its cells were when fitting.
        kind: Kind,
        /// Labels in order: texts sorted, numbers by size.
        classes: Vec<String>,
    },
}

/// Targets of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// One column per row of the table.
    Regression(Mat<f64>),
    /// Index into the classes, one per row of the table.
    Classification(Vec<usize>),
}

impl TargetColumns {
    /// Learns what the target columns are, if there are any, from rows that have all of them.
    pub(super) fn learn(table: &Table, targets: &[&str], task: Option<Task>) -> Result<Option<Self>> {
        let columns = targets.iter().map(|name| Cells::of(table, name)).collect::<Result<Vec<_>>>()?;
        let Some(&first) = columns.first() else {
            return Ok(None);
        };
        for (k, cells) in columns.iter().enumerate() {
            cells.check_supported()?;
            if columns[..k].iter().any(|other| other.name() == cells.name()) {
                return Err(wrong(cells, "named twice"));
            }
            if matches!(cells.column.values, Values::Time(_)) {
                return Err(wrong(
                    cells,
                    "a time cannot be predicted: give a number, such as days since a date",
                ));
            }
            if task != Some(Task::Classification) {
                cells.check_suspect()?;
            }
        }
        let is_number = |cells: &&Cells<'_>| matches!(cells.column.values, Values::Number(_));
        let not_number = columns.iter().find(|cells| !is_number(cells));
        match task.unwrap_or(if not_number.is_some() { Task::Classification } else { Task::Regression }) {
            Task::Regression => {
                let is_text = |cells: &&Cells<'_>| matches!(cells.column.values, Values::Text(_));
                if let Some(cells) = columns.iter().find(is_text) {
                    return Err(wrong(cells, "text cannot be regressed on"));
                }
                for cells in &columns {
                    for i in 0..cells.len() {
                        cells.number(i)?;
                    }
                }
                let written = columns.iter().filter_map(|cells| {
                    let kind = Some(cells.column.kind).filter(|kind| *kind != Kind::NUMBER)?;
                    Some((cells.name().to_owned(), kind))
                });
                let columns = targets.iter().map(|&name| name.to_owned()).collect();
                Ok(Some(Self::Regression { columns, cells: written.collect() }))
            }
            Task::Classification if columns.len() > 1 => {
                Err(wrong(not_number.unwrap_or(&first), "classification takes a single target column"))
            }
            Task::Classification => Self::learn_classes(&first, task.is_some()).map(Some),
        }
    }

    fn learn_classes(cells: &Cells<'_>, asked: bool) -> Result<Self> {
        let classes = classes(cells)?;
        if let [class] = &classes[..] {
            return Err(Error::OneClass {
                file: cells.table.file().to_owned(),
                column: cells.name().to_owned(),
                class: class.clone(),
            });
        }
        if !asked && classes.len() > FEW_CLASSES && 2 * classes.len() > cells.len() {
            return Err(Error::TooManyClasses {
                file: cells.table.file().to_owned(),
                column: cells.name().to_owned(),
                found: classes.len(),
                rows: cells.len(),
                examples: classes.into_iter().take(3).collect::<Vec<_>>().join("`, `"),
            });
        }
        Ok(Self::Classification { column: cells.name().to_owned(), kind: cells.column.kind, classes })
    }

    /// Names of the columns.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Regression { columns, .. } => columns.iter().map(String::as_str).collect(),
            Self::Classification { column, .. } => vec![column],
        }
    }

    /// How the cells of each column are to be read.
    pub(super) fn kinds(&self) -> Kinds {
        match self {
            Self::Regression { columns, cells } => {
                let kind = |name: &String| cells.get(name).copied().unwrap_or(Kind::NUMBER);
                columns.iter().map(|name| (name.clone(), kind(name))).collect()
            }
            Self::Classification { column, kind, .. } => Kinds::from([(column.clone(), *kind)]),
        }
    }

    /// The targets of a table.
    pub(super) fn read(&self, table: &Table) -> Result<Targets> {
        match self {
            Self::Regression { columns, .. } => {
                let mut targets = Mat::zeros(columns.len(), table.n_rows());
                for (k, name) in columns.iter().enumerate() {
                    let cells = Cells::of(table, name)?;
                    cells.check_supported()?;
                    for i in 0..cells.len() {
                        targets[(k, i)] = cells.number(i)?.ok_or_else(|| missing(&cells, i))?;
                    }
                }
                Ok(Targets::Regression(targets))
            }
            Self::Classification { column, classes, .. } => {
                let cells = Cells::of(table, column)?;
                cells.check_supported()?;
                let known: HashMap<&str, usize> =
                    classes.iter().enumerate().map(|(k, class)| (class.as_str(), k)).collect();
                let class = |i: usize| {
                    let label = cells.column.text(i).ok_or_else(|| missing(&cells, i))?;
                    known.get(&*label).copied().ok_or_else(|| Error::UnknownClass {
                        file: table.file().to_owned(),
                        row: table.file_row(i),
                        column: column.clone(),
                        class: label.into_owned(),
                    })
                };
                (0..table.n_rows()).map(class).collect::<Result<_>>().map(Targets::Classification)
            }
        }
    }
}

/// The labels of a target column: texts sorted, numbers by size.
fn classes(cells: &Cells<'_>) -> Result<Vec<String>> {
    let text = |i: usize| cells.column.text(i).map(std::borrow::Cow::into_owned);
    if let Values::Number(_) = cells.column.values {
        let mut numbered = Vec::new();
        for i in 0..cells.len() {
            numbered.extend(cells.number(i)?.zip(text(i)));
        }
        numbered.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut labels: Vec<_> = numbered.into_iter().map(|(_, label)| label).collect();
        labels.dedup();
        return Ok(labels);
    }
    let labels: BTreeSet<_> = (0..cells.len()).filter_map(text).collect();
    Ok(labels.into_iter().collect())
}

fn wrong(cells: &Cells<'_>, problem: &'static str) -> Error {
    Error::Target { file: cells.table.file().to_owned(), column: cells.name().to_owned(), problem }
}

fn missing(cells: &Cells<'_>, i: usize) -> Error {
    Error::MissingTarget {
        file: cells.table.file().to_owned(),
        row: cells.table.file_row(i),
        column: cells.name().to_owned(),
    }
}
