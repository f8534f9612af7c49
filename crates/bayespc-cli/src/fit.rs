//! `bayespc fit`: learn a model from a table, say how good it is on rows it has not seen, and keep it.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use bayespc::{Model, ModelSettings};
use bayespc_data::Targets;
use bayespc_experiments::fit_report::{FitReport, Outcome};
use clap::Args;
use serde_json::json;

use crate::columns;
use crate::failure::usage;
use crate::input::{Parts, Problem, TableArgs};
use crate::output::{Files, note, print, print_json, two_columns};
use crate::progress::{Watched, bar};
use crate::scores::{Predictions, Scores};
use crate::settings::SettingsArgs;
use crate::stream::StreamArgs;
use crate::{interrupt, stream, threads};

/// Note of the model that holds its encoding, as JSON.
pub const ENCODING_NOTE: &str = "encoding";
/// Note of the model that names the data it was fitted to.
pub const DATA_NOTE: &str = "data";
/// Learn a model from a table.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc fit wine --out wine.safetensors --report wine.html
  bayespc fit flats.csv --target rent --set training.epochs=200 --set network.prior.var=1.0
  bayespc fit iris.csv --target species --config settings.toml --json
  bayespc fit meters.parquet --target load --stream --out model.safetensors
  bayespc fit meters.csv.gz --target load --stream --out model.safetensors --checkpoint load.checkpoint
  bayespc fit today.csv --stream --from model.safetensors --out newer.safetensors

A settings file has the same keys as --set:
  members = 3
  [network]
  hidden_layer_sizes = [50, 50]
  activation = \"relu\"
  [network.head]
  kind = \"variance_node\"
  [training]
  epochs = 200
  batch_size = 32    # or \"full\"

What each column is taken for is printed first; --column size=number takes it for something else. Missing cells
are encoded, rows without a target left out.
A tenth of the rows is held out for the printed scores; --test-fraction 0 learns from all rows. The images of
mnist and fashion-mnist have a test set of their own, and defaults of their own: three layers of 128, single precision.")]
pub struct FitArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Share of the rows held out for the printed scores; 0 learns from all of them
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    test_fraction: f64,
    /// File to keep the model in
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// HTML page with scores, plots and settings
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    stream: StreamArgs,
    /// Threads to use; never changes a result
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print scores as JSON
    #[arg(long)]
    json: bool,
}

/// Run the command.
pub fn run(args: &FitArgs) -> Result<()> {
    threads::set(args.threads)?;
    let settings = args.settings.settings_onto(|preset| {
        if args.stream.stream { stream::defaults(preset) } else { args.table.defaults(preset) }
    })?;
    if !(0.0..1.0).contains(&args.test_fraction) {
        return Err(usage(format!("--test-fraction {} is not in [0, 1)", args.test_fraction)));
    }
    let mut files = Files::default();
    args.table.note_files(&mut files);
    if let Some(config) = &args.settings.config {
        files.reads("the settings file of --config", config);
    }
    let pass = args.stream.pass(&mut files)?;
    let out = files.output("--out", args.out.as_deref())?;
    let page = files.output("--report", args.report.as_deref())?;
    if args.stream.stream {
        return stream::run(&args.table, &settings, &pass, out, args.json);
    }
    let problem = args.table.load()?;
    let split = problem.hold_out(args.test_fraction, settings.training.seed)?;
    let parts = problem.parts(&split)?;
    if !args.json && !problem.columns().is_empty() {
        print(&format!("{}\n", columns::understood(problem.columns())))?;
    }

    let start = Instant::now();
    let model = train(&problem, &parts, &settings)?;
    let seconds = start.elapsed().as_secs_f64();

    let held_out = !split.test.is_empty();
    let scored = if held_out { &parts.test } else { &parts.train };
    let predictions = Predictions::of(&model, scored)?;
    let scores = Scores::of(&predictions, &scored.targets, &model.target_scaling().scale, &problem.targets)?;
    if let Some(page) = page {
        let html = html(&problem, &parts, &model, &predictions, held_out)?;
        page.write_whole(html.as_bytes())?;
    }
    if let Some(out) = out {
        out.write_whole(&model.to_bytes()?)?;
    }
    if args.json {
        let mut result = serde_json::Map::new();
        result.insert("dataset".into(), json!(problem.source.name));
        result.insert("targets".into(), json!(problem.targets));
        result.insert("scored_on".into(), json!(if held_out { "held-out rows" } else { "training rows" }));
        result.insert("train_rows".into(), json!(parts.train.len()));
        result.insert("test_rows".into(), json!(parts.test.len()));
        result.insert("rows_without_target".into(), json!(problem.left_out.without_target));
        result.insert("rows_with_holes_dropped".into(), json!(problem.left_out.with_holes));
        result.insert("columns".into(), json!(problem.columns()));
        result.extend(scores.to_json());
        result.insert("seconds_fit".into(), json!(seconds));
        result.insert("model".into(), json!(args.out));
        result.insert("report".into(), json!(args.report));
        return print_json(&result.into());
    }
    let (n_train, n_test) = (parts.train.len(), parts.test.len());
    let source = &problem.source.name;
    let heading = if held_out {
        format!("{source}: learned from {n_train} rows in {seconds:.1} s; scores on {n_test} held-out rows")
    } else {
        format!("{source}: learned from {n_train} rows in {seconds:.1} s; scores on the same rows")
    };
    print(&format!("{heading}\n\n{}", two_columns(&scores.rows())))?;
    for (what, path) in [("model", &args.out), ("report", &args.report)] {
        if let Some(path) = path {
            note(&format!("{what} written to {}", path.display()));
        }
    }
    Ok(())
}

/// Train under a progress bar, and note what later commands need.
fn train(problem: &Problem, parts: &Parts, settings: &ModelSettings) -> Result<Model> {
    let samples = parts.train.samples(problem.classes())?;
    let bar = bar("learning", 0);
    let result = Model::fit_watched(&samples, settings, &mut Watched(bar.clone()));
    bar.finish_and_clear();
    interrupt::check()?;
    let mut model = result.context("training failed")?;
    for warning in model.warnings() {
        note(&format!("warning: {warning}"));
    }
    let notes = model.notes_mut();
    notes.insert(ENCODING_NOTE.to_owned(), serde_json::to_string(&parts.encoding)?);
    notes.insert(DATA_NOTE.to_owned(), problem.source.name.clone());
    Ok(model)
}

fn html(
    problem: &Problem,
    parts: &Parts,
    model: &Model,
    predictions: &Predictions,
    held_out: bool,
) -> Result<String> {
    let scored = if held_out { &parts.test } else { &parts.train };
    let outcome = match (predictions, &scored.targets) {
        (Predictions::Values(predictive), Targets::Regression(values)) => {
            Outcome::Values { predictive, targets: values.as_ref(), names: &problem.targets }
        }
        (Predictions::Probabilities(probabilities), Targets::Classification(labels)) => Outcome::Classes {
            probabilities: probabilities.as_ref(),
            labels,
            names: problem.classes().unwrap_or_default(),
        },
        _ => anyhow::bail!("the predictions are not of the kind of the targets"),
    };
    let settings = toml::to_string(model.settings()).context("the settings cannot be written as TOML")?;
    let class_shares = match &parts.train.targets {
        Targets::Regression(_) => Vec::new(),
        Targets::Classification(labels) => {
            let share = |k: usize| {
                labels.iter().filter(|&&label| label == k).count() as f64 / labels.len().max(1) as f64
            };
            (0..problem.classes().map_or(0, <[String]>::len)).map(share).collect()
        }
    };
    let page = FitReport {
        dataset: &problem.source.name,
        train_rows: parts.train.len(),
        model,
        encoding: &parts.encoding,
        inputs: scored.features.as_ref(),
        class_shares: &class_shares,
        held_out,
        outcome,
        settings: &settings,
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.to_report()?.to_html())
}
