//! The command from outside: what it prints, writes and returns.

#![allow(
    clippy::unwrap_used,
    clippy::case_sensitive_file_extension_comparisons,
    clippy::format_push_string,
    reason = "a test may panic, knows its file names and need not be fast"
)]

mod bad_input;
#[cfg(target_os = "linux")]
mod checkpoints;
mod columns;
mod completions;
mod evaluate;
mod explain;
mod fit_and_predict;
mod hostile;
#[cfg(target_os = "linux")]
mod interrupt;
mod latent;
mod output;
mod own_files;
mod prune;
#[cfg(all(feature = "serve", target_os = "linux"))]
mod rolling;
mod rounds;
#[cfg(feature = "serve")]
mod serve;
mod streams;
mod support;
