//! The command from outside: what it prints, writes and returns.

// Helpers of tests may unwrap like the tests themselves.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod evaluate;
mod fit_and_predict;
mod support;
