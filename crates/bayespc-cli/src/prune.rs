//! `bayespc prune`: a model without the columns it can do without.

use std::path::PathBuf;

use anyhow::{Context, Result};
use bayespc_data::ReadOptions;
use clap::Args;
use serde_json::json;

use crate::failure::usage;
use crate::input::{self, Part};
use crate::output::{Files, note, print, print_json};
use crate::predict::{Warnings, encoding_of, read_model};
use crate::threads;

/// Silence columns that a model can do without.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  bayespc fit flats.csv --target rent --out rent.safetensors
  bayespc prune rent.safetensors other-flats.csv --out small.safetensors

Nothing is trained again: what the other weights are without a column follows from the posterior. The table must
have targets, and rows that the model has not learned from. Columns are silenced in the order of their cost by the
posterior, the cheapest first, as long as the mean log density of the rows falls by no more than --tolerance. The new
model takes the same tables, and ignores the silent columns.")]
pub struct PruneArgs {
    /// Model that `bayespc fit` wrote
    model: PathBuf,
    /// A table with targets as `bayespc fit` reads it, `-` for standard input, or a data set's name
    data: String,
    /// File for the new model
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// What the mean log density may lose, in nats
    #[arg(long, value_name = "NATS", default_value_t = 0.01)]
    tolerance: f64,
    /// Print as JSON
    #[arg(long)]
    json: bool,
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

/// Run the command.
pub fn run(args: &PruneArgs) -> Result<()> {
    threads::set(args.threads)?;
    if !(args.tolerance >= 0.0 && args.tolerance.is_finite()) {
        return Err(usage(format!("--tolerance {}: it is zero or more", args.tolerance)));
    }
    let mut files = Files::default();
    files.reads("the model", &args.model);
    input::note_files(&mut files, &args.data, args.folder.as_deref());
    let out = files.output("--out", Some(&args.out))?.context("--out is always given")?;
    let model = read_model(&args.model)?;
    let encoding = encoding_of(&model, &args.model)?;
    let reading = ReadOptions { sheet: args.sheet.clone(), ..ReadOptions::default() };
    let source = input::load(&args.data, args.folder.as_deref(), &reading)?;
    let encoded = encoding.transform(&source.table)?;
    let part = Part { features: encoded.features, targets: encoding.targets(&source.table)? };
    let mut warnings = Warnings::default();
    warnings.add(encoded.warnings);
    warnings.tell();
    let samples = part.samples(encoding.classes())?;

    let names: Vec<&str> = encoding.features.iter().map(|feature| feature.name.as_str()).collect();
    let mut columns: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    for (feature, owner) in encoding.owners().into_iter().enumerate() {
        columns[owner].push(feature);
    }
    let found = model.prune(&samples, &columns, args.tolerance)?;
    let path = &found.path[..found.silenced];
    let silenced: Vec<&str> = path.iter().map(|pruned| names[pruned.column]).collect();
    let before = found.log_density;
    let after = path.last().and_then(|pruned| pruned.log_density).unwrap_or(before);
    out.write_whole(&found.model.to_bytes()?)?;
    if args.json {
        return print_json(&json!({
            "silenced": silenced,
            "columns": names.len(),
            "log_density": { "before": before, "after": after },
            "model": args.out,
        }));
    }
    let list = if silenced.is_empty() { String::new() } else { format!(": {}", silenced.join(", ")) };
    let text = format!("columns silenced   {} of {}{list}\n", silenced.len(), names.len());
    print(&format!("{text}mean log density   {before:.4} before, {after:.4} after"))?;
    note(&format!("model written to {}", args.out.display()));
    Ok(())
}
