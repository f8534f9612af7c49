//! `bayespc prune`: a model without the columns and hidden units it can do without.

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

/// Take out columns and hidden units that a model can do without.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  bayespc fit flats.csv --target rent --out rent.safetensors
  bayespc prune rent.safetensors other-flats.csv --out small.safetensors

Nothing is trained again: what the other weights are without a column or a unit follows from the posterior. The table must
have targets, and rows that the model has not learned from. Columns go first, those that cost least by the posterior
before others, as long as the mean log density of the rows falls by no more than --tolerance; then units, as long as it
falls by no more than that again. The new model takes the same tables, and does not look at the columns that are silent.")]
pub struct PruneArgs {
    /// Model that `bayespc fit` wrote
    model: PathBuf,
    /// A table with targets as `bayespc fit` reads it, `-` for standard input, or a data set's name
    data: String,
    /// File for the new model
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// What the mean log density may lose, in nats: once by columns and once by units
    #[arg(long, value_name = "NATS", default_value_t = 0.01)]
    tolerance: f64,
    /// Keep all columns
    #[arg(long, conflicts_with = "keep_units")]
    keep_columns: bool,
    /// Keep all hidden units
    #[arg(long)]
    keep_units: bool,
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
    let mut model = read_model(&args.model)?;
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
    let mut silenced: Vec<&str> = Vec::new();
    // Mean log densities from first to last.
    let mut densities = Vec::new();
    if !args.keep_columns {
        let found = model.prune(&samples, &columns, args.tolerance)?;
        let path = &found.path[..found.silenced];
        densities.push(found.log_density);
        densities.extend(path.last().and_then(|pruned| pruned.log_density));
        silenced = path.iter().map(|pruned| names[pruned.column]).collect();
        model = found.model;
    }
    let mut units = (0, 0);
    if !args.keep_units {
        let found = model.prune_units(&samples, args.tolerance)?;
        densities.extend([found.log_density.0, found.log_density.1]);
        units = (found.removed, found.units);
        model = found.model;
    }
    let (before, after) = (densities[0], densities[densities.len() - 1]);
    out.write_whole(&model.to_bytes()?)?;
    if args.json {
        return print_json(&json!({
            "silenced": silenced,
            "columns": names.len(),
            "removed": units.0,
            "units": units.1,
            "log_density": { "before": before, "after": after },
            "model": args.out,
        }));
    }
    let mut text = String::new();
    if !args.keep_columns {
        let list = if silenced.is_empty() { String::new() } else { format!(": {}", silenced.join(", ")) };
        text += &format!("columns silenced   {} of {}{list}\n", silenced.len(), names.len());
    }
    if !args.keep_units {
        text += &format!("hidden units gone  {} of {}\n", units.0, units.1);
    }
    print(&format!("{text}mean log density   {before:.4} before, {after:.4} after"))?;
    note(&format!("model written to {}", args.out.display()));
    Ok(())
}
