//! A table too large for memory, as batches of encoded rows.

use std::path::Path;

use faer::Mat;

use crate::encoding::{Encoding, Learnable, Targets, Warning};
use crate::table::{ChunkReader, Kinds};
use crate::{Error, Result};

/// Encoded rows of a file, in order, at most so many at a time; holds one batch in memory.
pub struct RowBatches<'a> {
    reader: ChunkReader,
    encoding: &'a Encoding,
    kinds: Kinds,
    batch_size: usize,
    left_out: Learnable,
    done: bool,
}

/// Some consecutive rows of a file.
#[derive(Clone, Debug)]
pub struct Batch {
    /// One column per row of the file, `d × n`.
    pub features: Mat<f64>,
    /// Targets, if the file has their columns.
    pub targets: Option<Targets>,
    /// What was bridged over.
    pub warnings: Vec<Warning>,
}

impl<'a> RowBatches<'a> {
    /// Opens a file of any format; of a workbook its first sheet.
    pub fn open(path: &Path, encoding: &'a Encoding, batch_size: usize) -> Result<Self> {
        Self::open_sheet(path, None, encoding, batch_size)
    }

    /// Opens a file of any format; of a workbook this sheet.
    pub fn open_sheet(
        path: &Path,
        sheet: Option<&str>,
        encoding: &'a Encoding,
        batch_size: usize,
    ) -> Result<Self> {
        if batch_size == 0 {
            return Err(Error::Setting { name: "batch_size", value: 0.0, must_be: "positive" });
        }
        let reader = ChunkReader::open(path, sheet)?;
        Ok(Self {
            reader,
            encoding,
            kinds: encoding.kinds(),
            batch_size,
            left_out: Learnable::default(),
            done: false,
        })
    }

    /// How many of the rows read so far cannot be learned from; none if the targets are not asked for.
    pub fn left_out(&self) -> &Learnable {
        &self.left_out
    }

    fn read(&mut self) -> Result<Option<Batch>> {
        loop {
            let Some(table) = self.reader.chunk(&self.kinds, self.batch_size)? else {
                return Ok(None);
            };
            if !self.encoding.has_targets(&table) {
                let encoded = self.encoding.transform(&table)?;
                let (features, warnings) = (encoded.features, encoded.warnings);
                return Ok(Some(Batch { features, targets: None, warnings }));
            }
            let learnable = self.encoding.learnable(&table)?;
            self.left_out.without_target += learnable.without_target;
            self.left_out.with_holes += learnable.with_holes;
            if learnable.rows.is_empty() {
                continue;
            }
            let table = learnable.of(table);
            let encoded = self.encoding.transform(&table)?;
            let targets = Some(self.encoding.targets(&table)?);
            return Ok(Some(Batch { features: encoded.features, targets, warnings: encoded.warnings }));
        }
    }
}

impl Iterator for RowBatches<'_> {
    type Item = Result<Batch>;

    /// The next batch; after an error there are no more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.read().transpose();
        self.done = !matches!(batch, Some(Ok(_)));
        batch
    }
}
