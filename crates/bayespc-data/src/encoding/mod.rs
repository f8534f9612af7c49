//! From the columns of a table to the matrices a network learns from, and the same way at prediction.
//!
//! ```text
//! number   one row, as it is
//! boolean  one row, 0 or 1
//! text     one row per value seen when fitting (sorted): 1 where it occurs; an unseen value is all zeros
//! ```
//!
//! Everything learned from the training table — columns, values, means, classes — is kept in an
//! [`Encoding`], which serde can store beside the model.

mod fit;

use faer::Mat;
use serde::{Deserialize, Serialize};

use crate::table::{Column, Kind, Kinds, Table, Values};
use crate::{Error, Result};

/// What to do about missing feature values; a missing target is always an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Name the first one in an error.
    #[default]
    Error,
    /// Put in the training mean, or the most frequent value for text and booleans.
    Impute,
}

/// What the target asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Numbers.
    Regression,
    /// One of several classes.
    Classification,
}

/// Settings of an encoding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EncodingOptions {
    /// What to do about missing feature values.
    pub missing: Missing,
    /// The task; if not given, text and boolean targets are classes and numbers are regressed on.
    pub task: Option<Task>,
    /// Columns that are neither features nor targets.
    pub ignore: Vec<String>,
    /// Most different values that a text column may have.
    pub max_categories: usize,
}

impl Default for EncodingOptions {
    fn default() -> Self {
        Self { missing: Missing::Error, task: None, ignore: Vec::new(), max_categories: 100 }
    }
}

/// How the columns of a table become matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoding {
    /// The feature columns, in order.
    pub features: Vec<FeatureColumn>,
    /// The target, if there is one.
    pub target: Option<TargetColumns>,
    /// What to do about missing feature values.
    pub missing: Missing,
}

/// One feature column of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeatureColumn {
    /// Its name.
    pub name: String,
    /// How it becomes rows of the matrix.
    pub coding: Coding,
}

/// How a column becomes rows of the feature matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Coding {
    /// A number as it is.
    Number {
        /// Training mean.
        mean: f64,
    },
    /// 0 or 1.
    Bool {
        /// The more frequent value in training, `false` of equals.
        most_frequent: bool,
    },
    /// One row per value.
    Text {
        /// The values, sorted.
        values: Vec<String>,
        /// Index of the most frequent value in training, the first of equals.
        most_frequent: usize,
    },
}

/// The target columns of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "lowercase")]
pub enum TargetColumns {
    /// Numbers.
    Regression {
        /// Names of the columns.
        columns: Vec<String>,
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

/// Features of a table.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// One column per row of the table, `d × n`.
    pub features: Mat<f64>,
    /// What was bridged over.
    pub warnings: Vec<Warning>,
}

/// Targets of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// One column per row of the table.
    Regression(Mat<f64>),
    /// Index into the classes, one per row of the table.
    Classification(Vec<usize>),
}

/// Something in a table that was bridged over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// Texts that did not occur when fitting, encoded as all zeros.
    UnseenCategory {
        /// Which column.
        column: String,
        /// In how many rows.
        count: usize,
        /// The first such text.
        example: String,
        /// Its data row in the file, from 1.
        row: usize,
    },
    /// Missing values that were filled in.
    Imputed {
        /// Which column.
        column: String,
        /// In how many rows.
        count: usize,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnseenCategory { column, count, example, row } => write!(
                f,
                "column `{column}`: {count} values were not seen in training, first `{example}` in row {row}"
            ),
            Self::Imputed { column, count } => write!(f, "column `{column}`: {count} missing values imputed"),
        }
    }
}

impl Encoding {
    /// Learns the encoding of all columns but the ignored ones, `targets` as targets (there may be none).
    pub fn fit(table: &Table, targets: &[&str], options: &EncodingOptions) -> Result<Self> {
        if table.n_rows() == 0 {
            return Err(Error::NoRows { file: table.file().to_owned() });
        }
        for name in options.ignore.iter().map(String::as_str).chain(targets.iter().copied()) {
            table.column(name)?;
        }
        let is_feature = |column: &&Column| {
            !targets.contains(&column.name.as_str()) && !options.ignore.contains(&column.name)
        };
        let features = table
            .columns()
            .iter()
            .filter(is_feature)
            .map(|column| fit::fit_feature(table, column, options))
            .collect::<Result<Vec<_>>>()?;
        if features.is_empty() {
            return Err(Error::NoFeatures { file: table.file().to_owned() });
        }
        let target = fit::fit_target(table, targets, options.task)?;
        Ok(Self { features, target, missing: options.missing })
    }

    /// Kinds of the columns that are used, for reading another table of the same form.
    pub fn kinds(&self) -> Kinds {
        let feature = |feature: &FeatureColumn| {
            let kind = match feature.coding {
                Coding::Number { .. } => Kind::NUMBER,
                Coding::Bool { .. } => Kind::Bool,
                Coding::Text { .. } => Kind::Text,
            };
            (feature.name.clone(), kind)
        };
        let mut kinds: Kinds = self.features.iter().map(feature).collect();
        match &self.target {
            Some(TargetColumns::Regression { columns }) => {
                kinds.extend(columns.iter().map(|name| (name.clone(), Kind::NUMBER)));
            }
            Some(TargetColumns::Classification { column, kind, .. }) => {
                kinds.insert(column.clone(), *kind);
            }
            None => {}
        }
        kinds
    }

    /// Names of the rows of the feature matrix: the column, for texts followed by `=` and the value.
    pub fn feature_names(&self) -> Vec<String> {
        let names = |feature: &FeatureColumn| match &feature.coding {
            Coding::Text { values, .. } => {
                values.iter().map(|value| format!("{}={value}", feature.name)).collect()
            }
            _ => vec![feature.name.clone()],
        };
        self.features.iter().flat_map(names).collect()
    }

    /// Class labels, if the target is a class.
    pub fn classes(&self) -> Option<&[String]> {
        match &self.target {
            Some(TargetColumns::Classification { classes, .. }) => Some(classes),
            _ => None,
        }
    }

    /// The feature matrix of a table; columns may be in any order, and there may be more.
    pub fn transform(&self, table: &Table) -> Result<Encoded> {
        let widths = self.features.iter().map(FeatureColumn::width);
        let mut features = Mat::zeros(widths.sum(), table.n_rows());
        let mut warnings = Vec::new();
        let mut at = 0;
        for feature in &self.features {
            let column = table.column(&feature.name)?;
            check_supported(table, column)?;
            feature.encode(table, column, self.missing, &mut features, at, &mut warnings)?;
            at += feature.width();
        }
        Ok(Encoded { features, warnings })
    }

    /// The targets of a table.
    pub fn targets(&self, table: &Table) -> Result<Targets> {
        match self.target.as_ref().ok_or(Error::NoTarget)? {
            TargetColumns::Regression { columns } => {
                let mut targets = Mat::zeros(columns.len(), table.n_rows());
                for (k, name) in columns.iter().enumerate() {
                    let column = table.column(name)?;
                    check_supported(table, column)?;
                    for i in 0..table.n_rows() {
                        targets[(k, i)] =
                            number(table, column, i)?.ok_or_else(|| missing(table, column, i))?;
                    }
                }
                Ok(Targets::Regression(targets))
            }
            TargetColumns::Classification { column, classes, .. } => {
                let column = table.column(column)?;
                check_supported(table, column)?;
                let class = |i: usize| {
                    let label = column.text(i).ok_or_else(|| missing(table, column, i))?;
                    classes.iter().position(|known| **known == *label).ok_or_else(|| Error::UnknownClass {
                        file: table.file().to_owned(),
                        row: table.file_row(i),
                        column: column.name.clone(),
                        class: label.into_owned(),
                    })
                };
                (0..table.n_rows()).map(class).collect::<Result<_>>().map(Targets::Classification)
            }
        }
    }

    /// Whether a table has all target columns.
    pub fn has_targets(&self, table: &Table) -> bool {
        match &self.target {
            Some(TargetColumns::Regression { columns }) => columns.iter().all(|name| table.has_column(name)),
            Some(TargetColumns::Classification { column, .. }) => table.has_column(column),
            None => false,
        }
    }
}

impl FeatureColumn {
    /// Rows of the feature matrix.
    fn width(&self) -> usize {
        match &self.coding {
            Coding::Text { values, .. } => values.len(),
            _ => 1,
        }
    }

    /// Writes the rows of this feature from row `at` on.
    fn encode(
        &self,
        table: &Table,
        column: &Column,
        policy: Missing,
        features: &mut Mat<f64>,
        at: usize,
        warnings: &mut Vec<Warning>,
    ) -> Result<()> {
        let mut n_imputed = 0;
        let mut n_unseen = 0;
        let mut first_unseen = None;
        for i in 0..table.n_rows() {
            let known = match &self.coding {
                Coding::Number { mean } => {
                    let x = number(table, column, i)?;
                    features[(at, i)] = x.unwrap_or(*mean);
                    x.is_some()
                }
                Coding::Bool { most_frequent } => {
                    let bit = boolean(table, column, i)?;
                    features[(at, i)] = f64::from(u8::from(bit.unwrap_or(*most_frequent)));
                    bit.is_some()
                }
                Coding::Text { values, most_frequent } => {
                    let text = column.text(i);
                    let index = match &text {
                        None => Some(*most_frequent),
                        Some(text) => values.binary_search_by(|known| known.as_str().cmp(text)).ok(),
                    };
                    if let Some(index) = index {
                        features[(at + index, i)] = 1.0;
                    } else {
                        n_unseen += 1;
                        first_unseen.get_or_insert((
                            text.as_deref().unwrap_or_default().to_owned(),
                            table.file_row(i),
                        ));
                    }
                    text.is_some()
                }
            };
            if !known {
                if policy == Missing::Error {
                    return Err(missing(table, column, i));
                }
                n_imputed += 1;
            }
        }
        if let Some((example, row)) = first_unseen {
            warnings.push(Warning::UnseenCategory {
                column: self.name.clone(),
                count: n_unseen,
                example,
                row,
            });
        }
        if n_imputed > 0 {
            warnings.push(Warning::Imputed { column: self.name.clone(), count: n_imputed });
        }
        Ok(())
    }
}

/// Cell `i` as a finite number.
fn number(table: &Table, column: &Column, i: usize) -> Result<Option<f64>> {
    let x = column.number(i).map_err(|value| wrong_type(table, column, i, value, "number"))?;
    match x {
        Some(value) if !value.is_finite() => Err(Error::NotFinite {
            file: table.file().to_owned(),
            row: table.file_row(i),
            column: column.name.clone(),
            value,
        }),
        _ => Ok(x),
    }
}

fn boolean(table: &Table, column: &Column, i: usize) -> Result<Option<bool>> {
    column.boolean(i).map_err(|value| wrong_type(table, column, i, value, "boolean"))
}

fn wrong_type(table: &Table, column: &Column, i: usize, value: String, expected: &'static str) -> Error {
    Error::WrongType {
        file: table.file().to_owned(),
        row: table.file_row(i),
        column: column.name.clone(),
        value,
        expected,
    }
}

fn missing(table: &Table, column: &Column, i: usize) -> Error {
    Error::MissingValue { file: table.file().to_owned(), row: table.file_row(i), column: column.name.clone() }
}

fn unsupported(table: &Table, column: &Column, kind: &str) -> Error {
    Error::UnsupportedColumn {
        file: table.file().to_owned(),
        column: column.name.clone(),
        kind: kind.to_owned(),
    }
}

fn check_supported(table: &Table, column: &Column) -> Result<()> {
    match &column.values {
        Values::Unsupported(kind) => Err(unsupported(table, column, kind)),
        _ => Ok(()),
    }
}
