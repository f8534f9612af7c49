//! The command from outside: what it prints, writes and returns.

mod bad_input;
mod evaluate;
mod fit_and_predict;
mod support;
