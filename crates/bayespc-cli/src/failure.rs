//! How the command fails: what was wrong with the command line (exit code 2) apart from everything else
//! that can go wrong (1), and one way to print either.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::interrupt::Interrupted;
use crate::output::printable;

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
    let _ = writeln!(io::stderr(), "{}", printable(&text));
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// A wrong command or option with the one that may be meant: two letters swapped are a slip that clap does not see.
pub fn with_suggestion(mut error: clap::Error, command: clap::Command) -> clap::Error {
    let (typed, suggested) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        _ => return error,
    };
    let Some(ContextValue::String(typed)) = error.get(typed).cloned() else { return error };
    if error.get(suggested).is_some() {
        return error;
    }
    let mut names = Vec::new();
    let mut commands = vec![command];
    while let Some(mut command) = commands.pop() {
        command.build();
        if suggested == ContextKind::SuggestedArg {
            names.extend(command.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))));
        } else {
            names.extend(command.get_subcommands().map(|command| command.get_name().to_owned()));
        }
        // Options are those of the command that was typed, if there is one.
        let words: Vec<OsString> = std::env::args_os().skip(1).collect();
        let inner =
            command.get_subcommands().filter(|inner| words.iter().any(|word| word == inner.get_name()));
        commands.extend(inner.cloned());
    }
    if let Some(name) = closest(&typed, names.iter().map(String::as_str)) {
        let value = match suggested {
            ContextKind::SuggestedArg => ContextValue::String(name.to_owned()),
            _ => ContextValue::Strings(vec![name.to_owned()]),
        };
        error.insert(suggested, value);
    }
    error
}

/// The closest of `known` to what was typed, if it is close at all.
pub fn closest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let length = typed.chars().count().max(name.chars().count());
        let alike = strsim::jaro_winkler(&typed, &name);
        // A letter left out, added, changed or swapped with the next; more than one in a long word.
        let slips = strsim::osa_distance(&typed, &name);
        if slips < length && slips <= 1.max(length / 4) {
            alike.max(1.0 - slips as f64 / (4 * length) as f64)
        } else {
            alike
        }
    };
    known
        .into_iter()
        .map(|name| (likeness(name), name))
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
        assert_eq!(closest("fti", ["predict", "fit", "data"]), Some("fit"));
        assert_eq!(closest("x", ["y"]), None);
    }
}
