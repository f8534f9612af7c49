//! How many threads to use.

use anyhow::{Context, Result};

use crate::failure::usage;

/// Use `threads` threads from here on; all of them if it is not given.
pub fn set(threads: Option<usize>) -> Result<()> {
    match threads {
        None => Ok(()),
        Some(0) => Err(usage("--threads 0: give at least 1")),
        Some(threads) => rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .context("cannot start the threads"),
    }
}
