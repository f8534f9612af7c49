//! From the columns of a table to the matrices a network learns from, and the same way at prediction.
//!
//! ```text
//! number    one input, as it is                              number.rs
//! boolean   one input, 0 or 1                                boolean.rs
//! category  one input per frequent value, one for the rare   category.rs
//! time      days, and season, weekday, hour where they vary  time.rs
//! text      left out, or its words hashed on request         hash.rs
//! ```
//!
//! A missing cell has an input of its own where training had holes (`number.rs`). What a column is taken for follows
//! from its cells (`understand.rs`) unless the user says so (`options.rs`); identifiers, constants and
//! empty columns are left out. Everything learned from the training table — columns, values, means, classes — is
//! kept in an [`Encoding`], which serde can store beside the model.

mod boolean;
mod category;
mod cells;
mod coding;
mod hash;
mod number;
mod options;
mod rows;
mod sink;
mod summary;
mod target;
mod time;
mod understand;
mod warning;

use faer::Mat;
use serde::{Deserialize, Serialize};

pub use boolean::BoolCoding;
pub use category::CategoryCoding;
use cells::Cells;
pub use coding::{Coding, FeatureColumn};
pub use hash::HashCoding;
pub use number::NumberCoding;
pub use options::{ColumnChoice, EncodingOptions, Missing, Task, UnknownChoice};
pub use rows::Learnable;
pub use summary::{ColumnSummary, Understood, columns_table};
pub use target::{TargetColumns, Targets};
pub use time::TimeCoding;
pub use warning::Warning;

use crate::table::{Kinds, Table};
use crate::{Error, Result};

/// How the columns of a table become matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoding {
    /// The feature columns, in order.
    pub features: Vec<FeatureColumn>,
    /// The target, if there is one.
    pub target: Option<TargetColumns>,
    /// What to do about missing feature values.
    pub missing: Missing,
    /// What was understood of every column but the targets, those left out included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnSummary>,
}

/// Features of a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Encoded {
    /// One column per row of the table, `d × n`.
    pub features: Mat<f64>,
    /// What was bridged over.
    pub warnings: Vec<Warning>,
}

impl Encoding {
    /// Learns the encoding of all columns, `targets` as targets (there may be none), from the rows that can be
    /// learned from (see [`learnable`](Self::learnable)).
    pub fn fit(table: &Table, targets: &[&str], options: &EncodingOptions) -> Result<Self> {
        if table.n_rows() == 0 {
            return Err(Error::NoRows { file: table.file().to_owned() });
        }
        let named = options.ignore.iter().chain(options.columns.keys()).map(String::as_str);
        for name in named.chain(targets.iter().copied()) {
            table.column(name)?;
        }
        let learnable = rows::with_targets(table, targets)?;
        rows::check_any(&learnable, table, targets)?;
        if !learnable.is_all() {
            return Self::fit_known(&table.select_rows(&learnable.rows), targets, options);
        }
        Self::fit_known(table, targets, options)
    }

    /// Learns from rows that have their targets.
    fn fit_known(table: &Table, targets: &[&str], options: &EncodingOptions) -> Result<Self> {
        let target = TargetColumns::learn(table, targets, options.task)?;
        let (mut features, mut readings) = (Vec::new(), Vec::new());
        for column in table.columns().iter().filter(|column| !targets.contains(&column.name.as_str())) {
            let cells = Cells { table, column };
            let reading = understand::read(&cells, options)?;
            let coding = Coding::learn(&cells, reading.choice, options)?;
            features.extend(coding.map(|coding| FeatureColumn::new(column, coding)));
            readings.push((cells, reading));
        }
        share_marks(&mut features, table, options)?;
        let mut columns = Vec::with_capacity(readings.len());
        for (cells, reading) in readings {
            let feature = features.iter().find(|feature| feature.name == cells.name());
            let coding = feature.map(|feature| &feature.coding);
            columns.push(ColumnSummary::of(&cells, reading.understood, coding, &reading.remark)?);
        }
        if features.is_empty() {
            let why = |column: &ColumnSummary| format!("`{}`: {}", column.name, column.understood);
            return Err(Error::NoFeatures {
                file: table.file().to_owned(),
                columns: columns.iter().map(why).collect::<Vec<_>>().join(", "),
            });
        }
        let encoding = Self { features, target, missing: options.missing, columns };
        if options.missing == Missing::Error {
            encoding.check_whole(table)?;
        }
        if options.missing == Missing::Drop {
            let learnable = encoding.learnable(table)?;
            rows::check_any(&learnable, table, targets)?;
            if !learnable.is_all() {
                return encoding.refit(&table.select_rows(&learnable.rows), options);
            }
        }
        Ok(encoding)
    }

    /// Learns means, values and spans anew from other rows, columns being taken for what they are here.
    pub fn refit(&self, table: &Table, options: &EncodingOptions) -> Result<Self> {
        let mut refitted = self.clone();
        for feature in &mut refitted.features {
            let cells = Cells::of(table, &feature.name)?;
            let choice = options.choice(&feature.name).unwrap_or(feature.coding.choice());
            let coding = Coding::learn(&cells, choice, options)?;
            feature.coding = coding.unwrap_or_else(|| feature.coding.clone());
        }
        share_marks(&mut refitted.features, table, options)?;
        for feature in &refitted.features {
            if let Some(summary) = refitted.columns.iter_mut().find(|column| column.name == feature.name) {
                summary.inputs = feature.width();
            }
        }
        Ok(refitted)
    }

    /// Fails if a cell of a feature is missing.
    fn check_whole(&self, table: &Table) -> Result<()> {
        for feature in &self.features {
            let cells = Cells::of(table, &feature.name)?;
            if let Some(i) = (0..cells.len()).find(|&i| cells.column.is_missing(i)) {
                return Err(cells.missing(i));
            }
        }
        Ok(())
    }

    /// How cells of the columns that are used are written, for reading another table of the same form.
    pub fn kinds(&self) -> Kinds {
        let mut kinds: Kinds =
            self.features.iter().map(|feature| (feature.name.clone(), feature.kind())).collect();
        kinds.extend(self.target.iter().flat_map(TargetColumns::kinds));
        kinds
    }

    /// Names of the rows of the feature matrix: the column, for categories followed by `=` and the value.
    pub fn feature_names(&self) -> Vec<String> {
        self.features.iter().flat_map(|feature| feature.coding.names(&feature.name)).collect()
    }

    /// Which of the feature columns each row of the feature matrix belongs to.
    pub fn owners(&self) -> Vec<usize> {
        let widths = self.features.iter().map(FeatureColumn::width).enumerate();
        widths.flat_map(|(column, width)| std::iter::repeat_n(column, width)).collect()
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
        let width = self.features.iter().map(FeatureColumn::width).sum();
        let mut features = Mat::zeros(width, table.n_rows());
        let mut warnings = Vec::new();
        let mut at = 0;
        for feature in &self.features {
            let cells = Cells::of(table, &feature.name)?;
            cells.check_supported()?;
            let mut sink = sink::Sink::new(&mut features, at, self.missing);
            feature.coding.encode(&cells, &mut sink)?;
            warnings.extend(sink.warnings(&feature.name));
            at += feature.width();
        }
        Ok(Encoded { features, warnings })
    }

    /// The targets of a table.
    pub fn targets(&self, table: &Table) -> Result<Targets> {
        self.target.as_ref().ok_or(Error::NoTarget)?.read(table)
    }

    /// Whether a table has all target columns.
    pub fn has_targets(&self, table: &Table) -> bool {
        self.target.as_ref().is_some_and(|target| target.names().iter().all(|name| table.has_column(name)))
    }
}

/// What marks missing cells in one column of numbers marks them in others.
fn share_marks(features: &mut [FeatureColumn], table: &Table, options: &EncodingOptions) -> Result<()> {
    let marks = features.iter().flat_map(|feature| match &feature.coding {
        Coding::Number(number) => &number.marks[..],
        _ => &[],
    });
    let mut marks: Vec<f64> = marks.copied().collect();
    marks.sort_unstable_by(f64::total_cmp);
    marks.dedup();
    if marks.is_empty() {
        return Ok(());
    }
    for feature in features {
        let asked = options.choice(&feature.name).is_some();
        if let Coding::Number(number) = &mut feature.coding {
            let cells = Cells::of(table, &feature.name)?;
            *number = NumberCoding::learn_with(&cells, asked, options.missing, &marks)?;
        }
    }
    Ok(())
}

/// For serde: what is false goes without saying.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(bit: &bool) -> bool {
    !bit
}
