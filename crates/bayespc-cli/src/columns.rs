//! What a user says about columns, and what was understood of them.

use anyhow::Result;
use bayespc_data::{ColumnChoice, ColumnSummary, EncodingOptions, Missing, Table, Wishes, columns_table};
use clap::{Args, ValueEnum};

use crate::failure::{did_you_mean, usage};
use crate::input::column_names;

/// Lines that a list of columns may have before plain numbers are summed up.
const LINES: usize = 40;

/// Flags that say how columns become inputs.
#[derive(Args, Clone, Debug, Default)]
pub struct ColumnArgs {
    /// Column that is neither feature nor target; may be repeated
    #[arg(long, value_name = "COL")]
    pub ignore: Vec<String>,
    /// What to take a column for: number, category (category:50 keeps the 50 most frequent values), bool, time, text
    /// (its words are hashed; text:32 into 32 inputs) or ignore; may be repeated
    #[arg(long = "column", value_name = "COL=KIND")]
    pub columns: Vec<String>,
    /// What to do about missing cells: encode them (the default), stop with an error, or drop their rows. Rows without a
    /// target are always left out
    #[arg(long, value_enum, value_name = "HOW")]
    pub missing: Option<MissingArg>,
    /// As `--missing encode`
    #[arg(long, hide = true, conflicts_with = "missing")]
    pub impute: bool,
}

/// What to do about missing cells of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MissingArg {
    /// The mean or a category of their own, and an input that tells so
    Encode,
    /// An error that names the first
    Error,
    /// Learn only from rows without any
    Drop,
}

impl ColumnArgs {
    /// What is said of each column, as it was typed.
    fn choices(&self) -> Result<Vec<(&str, ColumnChoice)>> {
        self.columns.iter().map(|text| choice(text)).collect()
    }

    /// What the choices ask of whoever reads the table.
    pub fn wishes(&self) -> Result<Wishes> {
        let wishes = self.choices()?.into_iter();
        Ok(wishes.filter_map(|(name, choice)| Some((name.to_owned(), choice.wish()?))).collect())
    }

    /// Settings of the encoding, whose columns must be in the table and not be targets.
    pub fn options(&self, table: &Table, targets: &[String]) -> Result<EncodingOptions> {
        let choices = self.choices()?;
        let ignored = self.ignore.iter().map(|name| ("--ignore", name.as_str()));
        let chosen = choices.iter().map(|(name, _)| ("--column", *name));
        for (flag, name) in
            targets.iter().map(|name| ("--target", name.as_str())).chain(ignored).chain(chosen)
        {
            if !table.has_column(name) {
                let known = table.columns().iter().map(|column| column.name.as_str());
                return Err(usage(format!(
                    "{flag} {name}: {} has no such column{} (columns: {})",
                    table.file(),
                    did_you_mean(name, known),
                    column_names(table),
                )));
            }
            let ignores = flag == "--ignore" || choices.contains(&(name, ColumnChoice::Ignore));
            if flag != "--target" && ignores && targets.iter().any(|target| target == name) {
                return Err(usage(format!("{flag} {name}: it is the target")));
            }
        }
        let missing = match self.missing {
            None | Some(MissingArg::Encode) => Missing::Encode,
            Some(MissingArg::Error) => Missing::Error,
            Some(MissingArg::Drop) => Missing::Drop,
        };
        // What is said of a target only says how to read it.
        let is_feature = |name: &&str| !targets.iter().any(|target| target == name);
        let columns = choices.into_iter().filter(|(name, _)| is_feature(name));
        Ok(EncodingOptions {
            missing,
            ignore: self.ignore.clone(),
            columns: columns.map(|(name, choice)| (name.to_owned(), choice)).collect(),
            ..EncodingOptions::default()
        })
    }
}

/// `NAME=KIND`; the name may have a `=` in it.
fn choice(text: &str) -> Result<(&str, ColumnChoice)> {
    let kinds = ColumnChoice::NAMES;
    let Some((name, kind)) = text.rsplit_once('=') else {
        return Err(usage(format!(
            "--column {text}: say COL=KIND, where KIND is one of {}",
            kinds.join(", ")
        )));
    };
    let unknown = |error| usage(format!("--column {text}: {error}{}", did_you_mean(kind, kinds)));
    kind.parse().map(|choice| (name, choice)).map_err(unknown)
}

/// What was understood of columns, for people.
pub fn understood(columns: &[ColumnSummary]) -> String {
    let left_out = columns.iter().any(|column| column.inputs == 0);
    let hint = if left_out { "\n(--column COL=KIND takes a column for something else)" } else { "" };
    format!("{}{hint}", columns_table(columns, LINES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_an_equals_sign() {
        assert_eq!(choice("a=b=number").unwrap(), ("a=b", ColumnChoice::Number(None)));
        let message = choice("a=numbr").unwrap_err().to_string();
        assert!(message.contains("did you mean `number`?"), "{message}");
        assert!(choice("a").unwrap_err().to_string().contains("COL=KIND"));
    }
}
