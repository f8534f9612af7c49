//! `bayespc explain`: which columns drive the predictions of a table's rows.

use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result};
use bayespc::model::{Explanation, Model, Quantity};
use bayespc::{Mat, MatRef, Task};
use bayespc_data::{Column, Encoding};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::failure::{did_you_mean, usage};
use crate::input;
use crate::output::{Files, note, print, print_json};
use crate::predict::{encoding_of, read_model, target_names};
use crate::rows::Rows;
use crate::sink::{Sink, significant};
use crate::threads;

/// Rows explained at a time: an interrupt is heard between them.
const BATCH: usize = 64;

/// Say which columns drive a prediction, its noise or its doubt.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc explain rent.safetensors new-flats.csv
  bayespc explain rent.safetensors new-flats.csv --of epistemic --keep id --out why.csv
  bayespc explain wine.safetensors wine --target quality --json

The result has, for each row of the table, the column `base`, one column for each column of the table, and `total`:
base plus the others is total, which is the prediction. Base is the prediction for a row that is average in every column.
A column's number says how much of the difference from there belongs to it, in the units of the target; for `--of
aleatoric` (noise) and `--of epistemic` (what more data would take away) these are variances, so the square of those
units. For classes the mean is the probability of a class: --target names it, else it is the most probable one of each row,
given in the column `class`. Their noise and doubt are parts of the entropy of all classes, in nats.

With --out the columns are listed by importance, the mean of their numbers' sizes, and the rows go to the file.")]
pub struct ExplainArgs {
    /// Model that `bayespc fit` wrote
    model: PathBuf,
    /// A table as `bayespc fit` reads it, `-` for standard input, or a data set's name
    data: String,
    /// What to explain
    #[arg(long, value_enum, default_value_t = Of::Mean)]
    of: Of,
    /// Target (of several), or class; by default the first, or each row's most probable one
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// File to write, as Parquet if its name ends so, else as CSV; standard output if not given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print as JSON instead
    #[arg(long, conflicts_with = "out")]
    json: bool,
    /// Column of the table to put before the others; may be repeated, and `all` are all
    #[arg(long, value_name = "COL")]
    keep: Vec<String>,
    /// Significant digits in CSV, 1 to 17; Parquet has them all
    #[arg(long, value_name = "N", default_value_t = 6)]
    digits: usize,
    /// Sheet of a workbook; the first if not given
    #[arg(long, value_name = "NAME")]
    sheet: Option<String>,
    /// Folder to look for named data sets in
    #[arg(long = "data", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Threads to use; never changes a result
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// What to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Of {
    /// The mean, or the probability of a class
    Mean,
    /// Variance of the noise, or the entropy it leaves of the class
    Aleatoric,
    /// Variance, or entropy, that more data would take away
    Epistemic,
}

impl Of {
    fn quantity(self) -> Quantity {
        match self {
            Self::Mean => Quantity::Mean,
            Self::Aleatoric => Quantity::Aleatoric,
            Self::Epistemic => Quantity::Epistemic,
        }
    }
}

/// Run the command.
pub fn run(args: &ExplainArgs) -> Result<()> {
    threads::set(args.threads)?;
    if !(1..=17).contains(&args.digits) {
        return Err(usage(format!("--digits {}: a number has 1 to 17 of them", args.digits)));
    }
    let mut files = Files::default();
    files.reads("the model", &args.model);
    input::note_files(&mut files, &args.data, args.folder.as_deref());
    let out = files.output("--out", args.out.as_deref())?;
    let model = read_model(&args.model)?;
    let mut encoding = encoding_of(&model, &args.model)?;
    let explainer = Explainer::new(args, &model, &encoding)?;
    // Targets, if there are any, are not looked at.
    encoding.target = None;
    let rows = Rows {
        model: &args.model,
        data: &args.data,
        folder: args.folder.as_deref(),
        sheet: args.sheet.as_deref(),
        keep: &args.keep,
    };
    let mut importance = Importance::new(explainer.columns.len());
    if args.json {
        let mut listed = Vec::new();
        rows.each(&encoding, BATCH, |_, features| {
            let (explanation, classes) = explainer.explain(features)?;
            importance.add(&explanation);
            listed.extend(explainer.to_json(&explanation, &classes));
            Ok(())
        })?;
        return print_json(&json!({
            "of": args.of.quantity().name(),
            "target": explainer.target_name(),
            "columns": explainer.columns,
            "importance": importance.means(),
            "rows": listed,
        }));
    }
    let mut put = |kept: Vec<Column>, features: MatRef<'_, f64>, sink: &mut Sink<'_>| -> Result<()> {
        let (explanation, classes) = explainer.explain(features)?;
        importance.add(&explanation);
        sink.write(kept, explainer.to_columns(&explanation, &classes))
    };
    let Some(out) = out else {
        let mut sink = Sink::csv(io::stdout().lock(), args.digits);
        rows.each(&encoding, BATCH, |kept, features| put(kept, features, &mut sink))?;
        return sink.finish();
    };
    let written = out.path().to_owned();
    let mut draft = out.draft()?;
    let mut sink = Sink::new(&mut draft, &written, args.digits);
    rows.each(&encoding, BATCH, |kept, features| put(kept, features, &mut sink))?;
    sink.finish()?;
    draft.finish()?;
    print(&importance.to_text(&explainer.columns))?;
    note(&format!("explanations written to {}", written.display()));
    Ok(())
}

/// What is explained of which model.
struct Explainer<'a> {
    model: &'a Model,
    of: Quantity,
    /// Number of the target or class; none: each row's most probable class.
    target: Option<usize>,
    /// Names of targets or classes.
    names: Vec<String>,
    /// Names of the table's columns.
    columns: Vec<String>,
    owners: Vec<usize>,
}

impl<'a> Explainer<'a> {
    fn new(args: &ExplainArgs, model: &'a Model, encoding: &Encoding) -> Result<Self> {
        let names = target_names(encoding, model);
        let is_classes = model.task() != Task::Regression;
        let of = args.of.quantity();
        if is_classes && of != Quantity::Mean && args.target.is_some() {
            return Err(usage(format!(
                "--target with --of {}: the entropy is that of all classes together; only the probability (--of mean) is of one",
                of.name()
            )));
        }
        let target = match &args.target {
            Some(name) => {
                let what = if is_classes { "class" } else { "target" };
                let place = names.iter().position(|known| known == name).ok_or_else(|| {
                    let meant = did_you_mean(name, names.iter().map(String::as_str));
                    usage(format!("--target {name}: no such {what}{meant} (it has: {})", names.join(", ")))
                })?;
                Some(place)
            }
            None => (!is_classes || of != Quantity::Mean).then_some(0),
        };
        let columns = encoding.features.iter().map(|feature| feature.name.clone()).collect();
        Ok(Self { model, of, target, names, columns, owners: encoding.owners() })
    }

    /// The one target or class that is explained; an entropy is of all classes.
    fn target_name(&self) -> Option<&str> {
        let is_entropy = self.model.task() != Task::Regression && self.of != Quantity::Mean;
        self.target.filter(|_| !is_entropy).map(|k| self.names[k].as_str())
    }

    /// Values by column of the table, and the class of each row if it is its own.
    fn explain(&self, features: MatRef<'_, f64>) -> Result<(Explanation, Vec<usize>)> {
        let explain = |rows: MatRef<'_, f64>, target: usize| -> Result<Explanation> {
            let explanation = self.model.explain(rows, self.of, target).context("cannot explain")?;
            Ok(explanation.by_column(&self.owners)?)
        };
        if let Some(target) = self.target {
            return Ok((explain(features, target)?, Vec::new()));
        }
        let probabilities = self.model.predict_probabilities(features)?;
        let best = |j: usize| {
            let likelier = |best: usize, k: usize| {
                if probabilities[(k, j)] > probabilities[(best, j)] { k } else { best }
            };
            (1..probabilities.nrows()).fold(0, likelier)
        };
        let classes: Vec<usize> = (0..features.ncols()).map(best).collect();
        let n = classes.len();
        let mut whole = Explanation { base: vec![0.0; n], values: Mat::zeros(self.columns.len(), n) };
        for class in 0..self.names.len() {
            let places: Vec<usize> = (0..n).filter(|&j| classes[j] == class).collect();
            if places.is_empty() {
                continue;
            }
            let rows = Mat::from_fn(features.nrows(), places.len(), |i, k| features[(i, places[k])]);
            let part = explain(rows.as_ref(), class)?;
            for (k, &j) in places.iter().enumerate() {
                whole.base[j] = part.base[k];
                whole.values.col_mut(j).copy_from(part.values.col(k));
            }
        }
        Ok((whole, classes))
    }

    fn to_columns(&self, explanation: &Explanation, classes: &[usize]) -> Vec<Column> {
        let mut columns = Vec::with_capacity(self.columns.len() + 3);
        if !classes.is_empty() {
            let names = classes.iter().map(|&class| Some(self.names[class].as_str()));
            columns.push(Column::texts("class", names.collect()));
        }
        columns.push(Column::numbers("base", explanation.base.clone()));
        for (name, values) in self.columns.iter().zip(explanation.values.row_iter()) {
            columns.push(Column::numbers(name.clone(), values.iter().copied().collect()));
        }
        columns.push(Column::numbers("total", explanation.totals()));
        columns
    }

    fn to_json(&self, explanation: &Explanation, classes: &[usize]) -> Vec<Value> {
        let totals = explanation.totals();
        let row = |(j, total): (usize, &f64)| {
            let values: Vec<f64> = explanation.values.col(j).iter().copied().collect();
            let mut row = json!({ "base": explanation.base[j], "values": values, "total": total });
            if let Some(&class) = classes.get(j) {
                row["class"] = json!(self.names[class]);
            }
            row
        };
        totals.iter().enumerate().map(row).collect()
    }
}

/// Mean size of each column's values, over all rows so far.
struct Importance {
    sums: Vec<f64>,
    n_rows: usize,
}

impl Importance {
    fn new(n_columns: usize) -> Self {
        Self { sums: vec![0.0; n_columns], n_rows: 0 }
    }

    fn add(&mut self, explanation: &Explanation) {
        let n = explanation.values.ncols();
        self.n_rows += n;
        let means = explanation.importance();
        self.sums.iter_mut().zip(means).for_each(|(sum, mean)| *sum += n as f64 * mean);
    }

    fn means(&self) -> Vec<f64> {
        self.sums.iter().map(|sum| sum / self.n_rows.max(1) as f64).collect()
    }

    fn to_text(&self, columns: &[String]) -> String {
        let mut ranked: Vec<(f64, &String)> = self.means().into_iter().zip(columns).collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let largest = ranked.first().map_or(0.0, |(mean, _)| *mean).max(f64::MIN_POSITIVE);
        let width = columns.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("column".len());
        let mut lines = vec![format!("{:<width$}  importance (mean size of its part)", "column")];
        for (mean, name) in ranked {
            let bar = "#".repeat((30.0 * mean / largest).round() as usize);
            lines.push(format!("{name:<width$}  {:<10} {bar}", significant(mean, 4)).trim_end().to_owned());
        }
        lines.join("\n")
    }
}
