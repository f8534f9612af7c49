//! Flags of `fit --stream`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{Beginning, Checkpoint, Pass};
use crate::failure::usage;
use crate::output::Files;

/// Flags that say how to pass over a file.
#[derive(Args, Clone, Debug, Default)]
pub struct StreamArgs {
    /// Learn in one pass over a file of any size, some rows in memory at a time; each is predicted before it is
    /// learned, and those are the scores. Ctrl-C keeps in --out what was learned
    #[arg(long, conflicts_with_all = ["report", "test_fraction"])]
    pub stream: bool,
    /// Bad rows that a stream may leave out: a cell is no number, no known class or not finite, or the row has too
    /// few or many cells. By default 100, or one in a hundred if that is more
    #[arg(long, value_name = "ROWS", requires = "stream")]
    pub max_bad: Option<usize>,
    /// File to keep the stream's model in on the way; the same command goes on from it, to the same bits, whatever
    /// ended the first
    #[arg(long, value_name = "FILE", requires = "stream")]
    pub checkpoint: Option<PathBuf>,
    /// Go on from this model instead of beginning anew: columns are read and scaled as it has them, and its settings
    /// stay
    #[arg(long, value_name = "MODEL", requires = "stream",
        conflicts_with_all = ["config", "set", "seed", "preset", "search", "time_limit", "task", "ignore", "columns", "missing", "impute"])]
    pub from: Option<PathBuf>,
    /// Rows from one checkpoint to the next, rounded up to chunks of 8192
    #[arg(long, value_name = "ROWS", requires = "checkpoint", default_value_t = 100_000)]
    pub every: usize,
}

impl StreamArgs {
    /// What was asked for, and files that can be written.
    pub fn pass(&self, files: &mut Files) -> Result<Pass> {
        if self.every == 0 {
            return Err(usage("--every 0: give at least one row"));
        }
        if let Some(from) = &self.from {
            files.reads("the model of --from", from);
        }
        let out = files.output("--checkpoint", self.checkpoint.as_deref())?;
        let checkpoint = out.map(|out| Checkpoint { out, every: self.every });
        let from = self.from.as_deref().map(Beginning::read).transpose()?;
        Ok(Pass { max_bad: self.max_bad, checkpoint, from })
    }
}
