//! Rows of a table for a model that was fitted before, some at a time.

use std::path::Path;

use anyhow::{Result, bail};
use bayespc_data::{Column, Encoding, Keep, ReadOptions, RowBatches, catalogue};
use faer::MatRef;

use crate::failure::{did_you_mean, usage};
use crate::input;
use crate::interrupt;
use crate::output::note;
use crate::predict::Warnings;

/// What `--keep` calls all columns.
const ALL: &str = "all";

/// Where rows come from, and what of them to keep.
pub struct Rows<'a> {
    /// The model, for messages.
    pub model: &'a Path,
    /// A file, `-` for standard input, or a data set's name.
    pub data: &'a str,
    /// Folder to look for named data sets in.
    pub folder: Option<&'a Path>,
    /// Sheet of a workbook.
    pub sheet: Option<&'a str>,
    /// Columns to hand on as they are.
    pub keep: &'a [String],
}

impl Rows<'_> {
    /// Hand on all rows, at most `batch` at a time: columns to keep, and features as the model sees them, `d × n`.
    pub fn each(
        &self,
        encoding: &Encoding,
        batch: usize,
        mut put: impl FnMut(Vec<Column>, MatRef<'_, f64>) -> Result<()>,
    ) -> Result<()> {
        let mut warnings = Warnings::default();
        let keep = match self.keep {
            [] => Keep::Nothing,
            names if names.iter().any(|name| name == ALL) => Keep::All,
            names => Keep::Columns(names.to_vec()),
        };
        let mut put = |kept: Vec<Column>, features: MatRef<'_, f64>| -> Result<()> {
            interrupt::check()?;
            put(kept, features)
        };
        let path = Path::new(self.data);
        let is_name = catalogue().iter().any(|info| info.name == self.data);
        if is_name || self.data != input::STANDARD_INPUT && (path.is_dir() || !path.exists()) {
            let source = input::load(self.data, self.folder, &ReadOptions::default())?;
            let encoded = encoding.transform(&source.table).map_err(|error| self.lacking(error))?;
            warnings.add(encoded.warnings);
            let kept = keep.of(&source.table).map_err(|error| self.lacking(error))?;
            put(kept, encoded.features.as_ref())?;
        } else {
            let mut n_rows = 0;
            let batches = RowBatches::open_sheet(path, self.sheet, encoding, batch)?;
            for batch in batches.keeping(&keep) {
                let batch = batch.map_err(|error| self.lacking(error))?;
                if n_rows == 0 {
                    batch.remarks.iter().for_each(|remark| note(&format!("note: {remark}")));
                }
                n_rows += batch.features.ncols();
                warnings.add(batch.warnings);
                put(batch.kept, batch.features.as_ref())?;
            }
            if n_rows == 0 {
                bail!("{} has a header but no rows", self.data);
            }
        }
        warnings.tell();
        Ok(())
    }

    /// A column that the table lacks: which one may be meant, and who wants it.
    fn lacking(&self, error: bayespc_data::Error) -> anyhow::Error {
        let bayespc_data::Error::MissingColumn { file, column, present } = &error else {
            return error.into();
        };
        let meant = did_you_mean(column, present.iter().map(String::as_str));
        let listed = present.join(", ");
        if self.keep.contains(column) {
            return usage(format!("--keep {column}: {file} has no such column{meant} (columns: {listed})"));
        }
        anyhow::anyhow!(
            "{file} has no column `{column}`, which the model needs{meant} (its columns: {listed}; `bayespc inspect {}` lists what the model needs)",
            self.model.display()
        )
    }
}
