//! How the command fails: what was wrong with the command line (exit code 2) apart from everything else
//! that can go wrong (1), and one way to print either.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::interrupt::Interrupted;

/// The command line or the settings are wrong; exit code 2, like clap's own complaints.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error in what the user typed.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(message.into()))
}

/// Print an error with its causes, and say which exit code it deserves. A reader that closed our output, as
/// `head` does, has what it wanted: that is no error.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(closed) {
        return ExitCode::SUCCESS;
    }
    if let Some(interrupted) = error.chain().find_map(|cause| cause.downcast_ref::<Interrupted>()) {
        let _ = writeln!(io::stderr(), "{interrupted}");
        return interrupted.exit_code();
    }
    let mut text = format!("error: {error}");
    let mut told = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Many errors already quote the error they come from.
        if !told.contains(&cause) {
            text.push_str("\n  because: ");
            text.push_str(&cause);
        }
        told = cause;
    }
    // Nothing is left to do if even standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The closest of `known` to what was typed, if it is close at all.
pub fn closest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&typed.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// `; did you mean …?`, or nothing.
pub fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    closest(typed, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_nonsense_is_not() {
        assert_eq!(closest("vars", ["scale", "var"]), Some("var"));
        assert_eq!(closest("zzz", ["scale", "var"]), None);
    }
}
