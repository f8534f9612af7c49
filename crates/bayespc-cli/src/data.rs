//! `bayespc data`: which data sets there are, and getting them before they are needed.

use std::path::PathBuf;

use anyhow::Result;
use bayespc_data::{ImageSet, Location, builtin, catalogue, load_images, load_uci, locate_uci};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::failure::{did_you_mean, usage};
use crate::input::data_source;
use crate::output::{note, print, print_json};
use crate::progress::downloading;

/// List or fetch public data sets.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc data list
  bayespc data fetch yacht energy
  bayespc data fetch mnist --data data")]
pub struct DataArgs {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Debug, Subcommand)]
enum DataCommand {
    /// Show every data set: size, target, licence and where it would come from
    #[command(after_help = "Example:\n  bayespc data list --json")]
    List {
        /// Folder to look in instead of BAYESPC_DATA; then come the cache and the network
        #[arg(long = "data", value_name = "DIR")]
        folder: Option<PathBuf>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Download data sets into the cache, checked against their published sums
    #[command(after_help = "Example:\n  bayespc data fetch yacht energy mnist")]
    Fetch {
        /// Names, or `all`
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Folder to look in instead of BAYESPC_DATA; then come the cache and the network
        #[arg(long = "data", value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

/// Run the command.
pub fn run(args: &DataArgs) -> Result<()> {
    match &args.command {
        DataCommand::List { folder, json } => list(folder.as_deref(), *json),
        DataCommand::Fetch { names, folder } => fetch(names, folder.as_deref()),
    }
}

fn list(folder: Option<&std::path::Path>, as_json: bool) -> Result<()> {
    let source = data_source(folder);
    let mut rows: Vec<Value> = Vec::new();
    let heading = ("name", "rows", "features", "target", "licence", "from");
    let mut lines = vec![table_line(heading)];
    for info in catalogue() {
        let from = match locate_uci(info.name, &source)? {
            Location::Folder(path) | Location::Cache(path) => path.display().to_string(),
            _ if builtin(info.name).is_ok() => "built in".to_owned(),
            Location::Download(_) => "download".to_owned(),
            _ => "nowhere".to_owned(),
        };
        let (rows_text, features_text) = (info.rows.to_string(), info.features.len().to_string());
        lines.push(table_line((info.name, &rows_text, &features_text, info.target, info.licence, &from)));
        rows.push(json!({
            "name": info.name, "title": info.title, "rows": info.rows, "features": info.features,
            "target": info.target, "licence": info.licence, "citation": info.citation, "note": info.note,
            "from": from,
        }));
    }
    if as_json {
        return print_json(&rows.into());
    }
    lines.push("\nImages, for fit and evaluate too:".to_owned());
    lines.extend(ImageSet::ALL.map(|set| format!("{} ({})", set.name(), set.citation())));
    print(&lines.join("\n"))
}

fn table_line((name, rows, features, target, licence, from): (&str, &str, &str, &str, &str, &str)) -> String {
    format!("{name:<10}{rows:>6}{features:>10}  {target:<22}{licence:<35}{from}")
}

fn fetch(names: &[String], folder: Option<&std::path::Path>) -> Result<()> {
    let tables = catalogue().iter().map(|info| info.name);
    let known: Vec<&'static str> = tables.chain(ImageSet::ALL.map(ImageSet::name)).collect();
    let mut wanted = Vec::new();
    for name in names {
        match known.iter().find(|known| *known == name) {
            Some(name) => wanted.push(*name),
            None if name == "all" => wanted.extend(&known),
            None => {
                return Err(usage(format!(
                    "no data set is called `{name}`{} (known: {})",
                    did_you_mean(name, known.iter().copied()),
                    known.join(", ")
                )));
            }
        }
    }
    let source = data_source(folder);
    for name in wanted {
        if let Some(set) = ImageSet::named(name) {
            downloading(name, |report| load_images(set, &source, report))?;
        } else {
            downloading(name, |report| load_uci(name, &source, report))?;
        }
        note(&format!("{name}: ready"));
    }
    Ok(())
}
