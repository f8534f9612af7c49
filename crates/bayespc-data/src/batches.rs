//! A table too large for memory, as batches of encoded rows.

use std::path::Path;

use faer::Mat;

use crate::bad_rows::{self, BadRows};
use crate::encoding::{Encoding, Learnable, Targets, Warning};
use crate::table::{Asked, ChunkReader, Column, Kind, ReadOptions, Remark, Table, Unread};
use crate::{Error, Result};

/// Encoded rows of a file, in order, at most so many at a time; holds one batch in memory.
pub struct RowBatches<'a> {
    reader: ChunkReader,
    encoding: &'a Encoding,
    asked: Asked,
    keep: Keep,
    batch_size: usize,
    left_out: Learnable,
    unread: Unread,
    bad: BadRows,
    done: bool,
}

/// A file that is looked at first and then read from its beginning, once: standard input too.
pub struct RowSource {
    reader: ChunkReader,
}

impl RowSource {
    /// Opens a file of any format; of a workbook the sheet of `options`.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self> {
        Ok(Self { reader: ChunkReader::open(path, options.sheet.as_deref())? })
    }

    /// The first rows, at most `limit`, as asked or as they look.
    pub fn head(&mut self, options: &ReadOptions, limit: usize) -> Result<Table> {
        self.reader.head(options, limit)
    }

    /// The same, but for rows that cannot be read: what columns are is told by the others.
    pub fn head_that_reads(&mut self, options: &ReadOptions, limit: usize) -> Result<Table> {
        self.reader.head_that_reads(options, limit)
    }

    /// All rows in batches, the first ones too.
    pub fn batches(self, encoding: &Encoding, batch_size: usize) -> Result<RowBatches<'_>> {
        if batch_size == 0 {
            return Err(Error::Setting { name: "batch_size", value: 0.0, must_be: "positive" });
        }
        let asked = Asked { kinds: encoding.kinds(), others: None };
        let (reader, keep) = (self.reader, Keep::Nothing);
        let (left_out, unread, bad) = (Learnable::default(), Unread::Fail, BadRows::default());
        Ok(RowBatches { reader, encoding, asked, keep, batch_size, left_out, unread, bad, done: false })
    }
}

/// Columns that are handed on beside what is encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// None.
    #[default]
    Nothing,
    /// These, in this order.
    Columns(Vec<String>),
    /// All of the file, in its order.
    All,
}

impl Keep {
    /// The columns of a table that are kept.
    pub fn of(&self, table: &Table) -> Result<Vec<Column>> {
        let all = table.header();
        let names = match self {
            Self::Nothing => &[][..],
            Self::Columns(names) => names,
            Self::All => all,
        };
        names.iter().map(|name| table.column(name).cloned()).collect()
    }
}

/// Some consecutive rows of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Batch {
    /// One column per row of the file, `d × n`.
    pub features: Mat<f64>,
    /// Targets, if the file has their columns.
    pub targets: Option<Targets>,
    /// Columns that are kept.
    pub kept: Vec<Column>,
    /// What reading had to decide.
    pub remarks: Vec<Remark>,
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
        let options = ReadOptions { sheet: sheet.map(str::to_owned), ..ReadOptions::default() };
        RowSource::open(path, &options)?.batches(encoding, batch_size)
    }

    /// Hands columns on; those that are no features as the texts they are in the file.
    pub fn keeping(mut self, keep: &Keep) -> Self {
        match keep {
            Keep::Nothing => {}
            Keep::Columns(names) => {
                for name in names {
                    self.asked.kinds.entry(name.clone()).or_insert(Kind::Text);
                }
            }
            Keep::All => self.asked.others = Some(Kind::Text),
        }
        self.keep = keep.clone();
        self
    }

    /// How many of the rows read so far cannot be learned from; none if the targets are not asked for.
    pub fn left_out(&self) -> &Learnable {
        &self.left_out
    }

    /// Leaves out rows with targets that cannot be read or encoded, at most so many (see [`BadRows`]).
    pub fn skipping(mut self, bad: BadRows) -> Self {
        (self.unread, self.bad) = (Unread::Skip(Vec::new()), bad);
        self
    }

    /// Rows read so far that could not be read or encoded; none if they are not to be left out.
    pub fn bad(&self) -> &BadRows {
        &self.bad
    }

    fn read(&mut self) -> Result<Option<Batch>> {
        loop {
            let Some(table) = self.reader.chunk(&self.asked, self.batch_size, &mut self.unread)? else {
                return Ok(None);
            };
            // Further rows of JSON may have further keys, which cannot be further columns.
            if self.keep == Keep::All {
                self.keep = Keep::Columns(table.header().to_vec());
            }
            if !self.encoding.has_targets(&table) {
                let encoded = self.encoding.transform(&table)?;
                let (features, warnings) = (encoded.features, encoded.warnings);
                let (kept, remarks) = (self.keep.of(&table)?, table.remarks().to_vec());
                return Ok(Some(Batch { features, targets: None, kept, remarks, warnings }));
            }
            let mut bad = self.unread.up_to(table.last_row());
            let table = table.without_file_rows(&bad);
            let learnable = self.encoding.learnable(&table)?;
            self.left_out.without_target += learnable.without_target;
            self.left_out.with_holes += learnable.with_holes;
            let table = learnable.of(table);
            let (table, encoded, targets) = if self.unread.skips() {
                let sound = bad_rows::encode(self.encoding, table)?;
                bad.extend(sound.bad);
                (sound.table, sound.encoded, sound.targets)
            } else {
                let (encoded, targets) = (self.encoding.transform(&table)?, self.encoding.targets(&table)?);
                (table, encoded, targets)
            };
            bad.sort_by_key(|(row, _)| *row);
            bad.into_iter().try_for_each(|(row, error)| self.bad.add(row, error))?;
            if table.n_rows() == 0 {
                continue;
            }
            return Ok(Some(Batch {
                features: encoded.features,
                targets: Some(targets),
                kept: self.keep.of(&table)?,
                remarks: table.remarks().to_vec(),
                warnings: encoded.warnings,
            }));
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
