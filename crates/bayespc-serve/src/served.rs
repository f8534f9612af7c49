//! A model ready to answer: its networks, how columns become their inputs, and what is known of the rows they have
//! learned from.

use std::path::Path;

use bayespc::{Model, Task};
use bayespc_data::{Coding, Encoding, FeatureColumn, Missing, NumberCoding, Table, TargetColumns, Warning};
use faer::Mat;

use crate::columns::ColumnInfo;
use crate::digest::{digest, hex};
use crate::error::Error;
use crate::file::{ModelFile, Stamp};
use crate::nearest::nearest;
use crate::problem::Problem;

/// Notes of a model file, as `bayespc fit` and the Python package write them.
const ENCODING: &str = "encoding";
const DATA: &str = "data";
const PYTHON: &str = "python";

/// Categories that an error names.
const NAMED: usize = 10;

/// A model with all that is needed to ask it.
pub struct Served {
    pub name: String,
    /// The first digits of the file's SHA-256.
    pub version: String,
    pub model: Model,
    /// How columns become inputs; without a target, which a request need not have.
    pub encoding: Encoding,
    /// Target columns.
    pub targets: Vec<String>,
    pub classes: Option<Vec<String>>,
    /// What a person can be shown of each column.
    pub columns: Vec<ColumnInfo>,
    /// Name of the data it was fitted to.
    pub data: Option<String>,
    /// Whether its columns have no names of their own: it was fitted to an array.
    pub is_array: bool,
}

/// A table as inputs.
pub struct Rows {
    /// `d × n`.
    pub features: Mat<f64>,
    /// What was bridged over, in words.
    pub warnings: Vec<String>,
}

impl Served {
    /// Read a file, and try whether the model predicts.
    pub fn load(file: &ModelFile) -> Result<(Self, Stamp), Error> {
        let failed = |source| Error::Read { path: file.path.clone(), source };
        // Before the content: what changes in between is then noticed.
        let stamp = Stamp::of(&file.path).map_err(failed)?;
        let bytes = std::fs::read(&file.path).map_err(failed)?;
        Ok((Self::from_bytes(&file.name, &file.path, &bytes)?, stamp))
    }

    /// A model of these bytes; the path is for messages.
    pub fn from_bytes(name: &str, path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |source| Error::Model { path: path.to_owned(), source };
        let wrong = |problem: String| Error::Notes { path: path.to_owned(), problem };
        let model = Model::from_bytes(bytes).map_err(damaged)?;
        let mut encoding = match model.notes().get(ENCODING) {
            Some(note) => serde_json::from_str(note)
                .map_err(|error| wrong(format!("the note `{ENCODING}` is damaged ({error})")))?,
            None => plain_encoding(&model),
        };
        let (found, expected) = (encoding.feature_names().len(), model.n_features());
        if found != expected {
            return Err(wrong(format!("its encoding has {found} features, its network {expected}")));
        }
        let (targets, classes) = target_names(encoding.target.take(), &model);
        let expected = model.n_targets();
        let found = classes.as_ref().map_or(targets.len(), Vec::len);
        if found != expected {
            return Err(wrong(format!("its encoding has {found} targets, its network {expected}")));
        }
        let columns = ColumnInfo::all(&model, &encoding);
        let version = hex(&digest(bytes)[..6]);
        let served = Self {
            name: name.to_owned(),
            version,
            encoding,
            targets,
            classes,
            columns,
            data: model.notes().get(DATA).cloned(),
            is_array: is_array(&model),
            model,
        };
        // The first prediction derives what all others use.
        let mean = &served.model.input_scaling().offset;
        let typical = Mat::from_fn(mean.len(), 1, |i, _| mean[i]);
        served.model.predict(&typical).map_err(damaged)?;
        Ok(served)
    }

    /// What it predicts.
    pub fn is_classifier(&self) -> bool {
        matches!(self.model.task(), Task::Classification { .. })
    }

    /// Whether every column is a number.
    pub fn is_numeric(&self) -> bool {
        self.encoding.features.iter().all(|feature| matches!(feature.coding, Coding::Number(_)))
    }

    /// Names of the columns it needs.
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.encoding.features.iter().map(|feature| feature.name.as_str())
    }

    /// Fails for a column that is needed and not among these.
    pub fn check_columns(&self, present: &[&str]) -> Result<(), Problem> {
        match self.column_names().find(|name| !present.contains(name)) {
            None => Ok(()),
            Some(name) => {
                let meant = nearest(name, present.iter().copied())
                    .map_or_else(String::new, |meant| format!(": is `{meant}` meant?"));
                let needs = self.column_names().collect::<Vec<_>>().join(", ");
                Err(Problem::bad(format!("column `{name}` is missing{meant} (the model needs: {needs})"))
                    .column(name))
            }
        }
    }

    /// The inputs of a table. Values of a category that were not seen in training are refused unless `unseen`.
    pub fn rows(&self, table: &Table, unseen: bool) -> Result<Rows, Problem> {
        let present: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
        self.check_columns(&present)?;
        if table.n_rows() == 0 {
            return Err(Problem::bad("there are no rows"));
        }
        let encoded = self.encoding.transform(table)?;
        if !unseen {
            for warning in &encoded.warnings {
                if let Warning::UnseenCategory { column, example, row, .. } = warning {
                    return Err(self.unseen(column, example, *row));
                }
            }
        }
        let warnings = encoded.warnings.iter().map(ToString::to_string).collect();
        Ok(Rows { features: encoded.features, warnings })
    }

    fn unseen(&self, column: &str, value: &str, row: usize) -> Problem {
        let coding = self.encoding.features.iter().find(|feature| feature.name == column);
        let known = match coding.map(|feature| &feature.coding) {
            Some(Coding::Category(category)) => &category.values[..],
            _ => &[],
        };
        let listed =
            known.iter().take(NAMED).map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
        let more = if known.len() > NAMED { ", …" } else { "" };
        let meant = nearest(value, known.iter().map(String::as_str))
            .map_or_else(String::new, |meant| format!("is `{meant}` meant? "));
        Problem::bad(format!(
            "row {row}, column `{column}`: `{value}` was not seen in training; {meant}known are {listed}{more} (the parameter \"unseen\": \"allow\" lets it count as none of them)"
        ))
        .column(column)
        .row(row)
        .value(value)
    }
}

/// Numbers `x0`, `x1` …, as the Python package calls columns of arrays.
fn plain_encoding(model: &Model) -> Encoding {
    let mean = &model.input_scaling().offset;
    let column = |(i, &mean): (usize, &f64)| FeatureColumn {
        name: format!("x{i}"),
        coding: Coding::Number(NumberCoding { mean, missing: false, marks: Vec::new(), limits: None }),
        cells: None,
    };
    Encoding {
        features: mean.iter().enumerate().map(column).collect(),
        target: None,
        missing: Missing::Error,
        columns: Vec::new(),
    }
}

/// Names of target columns, and of classes.
fn target_names(target: Option<TargetColumns>, model: &Model) -> (Vec<String>, Option<Vec<String>>) {
    let numbered = || (0..model.n_targets()).map(|k| k.to_string()).collect::<Vec<_>>();
    match (model.task(), target) {
        (Task::Regression, Some(TargetColumns::Regression { columns, .. })) => (columns, None),
        (Task::Classification { .. }, Some(TargetColumns::Classification { column, classes, .. })) => {
            (vec![column], Some(classes))
        }
        (Task::Regression, _) if model.n_targets() == 1 => (vec!["y".to_owned()], None),
        (Task::Regression, _) => (numbered().iter().map(|k| format!("y{k}")).collect(), None),
        (Task::Classification { .. }, _) => (vec!["class".to_owned()], Some(numbered())),
    }
}

/// Whether the model was fitted to an array without names.
fn is_array(model: &Model) -> bool {
    match (model.notes().get(ENCODING), model.notes().get(PYTHON)) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(_), Some(note)) => serde_json::from_str::<serde_json::Value>(note).is_ok_and(|note| {
            note["feature_names"].is_null() && note["encoded"] != serde_json::Value::Bool(true)
        }),
    }
}
