//! `bayespc fit`: learn a model from a table, say how good it is on rows it has not seen, and keep it.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use bayespc::model::Calibration;
use bayespc::model::selection::MIN_ROWS;
use bayespc::{Model, ModelSettings};
use bayespc_data::{Encoding, Targets};
use bayespc_experiments::fit_report::{FitReport, Outcome, ScoredRows};
use clap::Args;
use serde_json::json;

use crate::columns;
use crate::failure::usage;
use crate::input::{Part, Parts, Problem, TableArgs};
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

/// Share of the rows that are held out where nothing is cross-validated.
const HELD_OUT: f64 = 0.1;

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

The inferred type of each column is printed first; --column size=number sets another. Missing cells
are encoded, rows without a target left out.
The model learns from all rows. Scores are of cross-validation: each row is predicted by networks that had not learned
from it. Where nothing is cross-validated (--preset fast, --search off, calibration) and the table has 20 rows or more, a tenth of the rows is held out
instead, and the line above the scores says so; --test-fraction holds out a share that you choose. The images of mnist
and fashion-mnist have a test set of their own, and defaults of their own: three layers of 128, single precision.")]
pub struct FitArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Share of the rows to hold out from the model and score it on, instead of cross-validation; 0: none
    #[arg(long, value_name = "SHARE")]
    test_fraction: Option<f64>,
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
    if let Some(share) = args.test_fraction.filter(|share| !(0.0..1.0).contains(share)) {
        return Err(usage(format!("--test-fraction {share} is not in [0, 1)")));
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
    let fraction = args.test_fraction.unwrap_or_else(|| held_out_by_default(&problem, &settings));
    let split = problem.hold_out(fraction, settings.training.seed)?;
    let parts = problem.parts(&split)?;
    let (n_train, n_test) = (parts.train.len(), parts.test.len());
    if !args.json && !problem.columns().is_empty() {
        print(&format!("{}\n", columns::understood(problem.columns())))?;
    }

    let start = Instant::now();
    let model = train(&problem, &parts, &settings)?;
    let seconds = start.elapsed().as_secs_f64();

    let class_shares = class_shares(&parts.train.targets, problem.classes());
    let scored = Scored::of(&model, parts.train, parts.test)?;
    let scale = &model.target_scaling().scale;
    let scores = match scored.rows {
        ScoredRows::Training => None,
        _ => Some(Scores::of(&scored.predictions, &scored.part.targets, scale, &problem.targets)?),
    };
    if let Some(page) = page {
        let html = html(&problem, &parts.encoding, &model, (&scored, n_train, &class_shares))?;
        page.write_whole(html.as_bytes())?;
    }
    if let Some(out) = out {
        out.write_whole(&model.to_bytes()?)?;
    }
    if args.json {
        let mut result = serde_json::Map::new();
        result.insert("dataset".into(), json!(problem.source.name));
        result.insert("targets".into(), json!(problem.targets));
        result.insert(
            "scored_on".into(),
            match scored.rows {
                ScoredRows::OutOfFold => json!("out-of-fold rows"),
                ScoredRows::HeldOut => json!("held-out rows"),
                ScoredRows::Training => json!(null),
            },
        );
        result.insert("scored_rows".into(), json!(scores.as_ref().map_or(0, |_| scored.part.len())));
        result.insert("train_rows".into(), json!(n_train));
        result.insert("test_rows".into(), json!(n_test));
        result.insert("rows_without_target".into(), json!(problem.left_out.without_target));
        result.insert("rows_with_holes_dropped".into(), json!(problem.left_out.with_holes));
        result.insert("columns".into(), json!(problem.columns()));
        result.extend(scores.iter().flat_map(Scores::to_json));
        result.insert("seconds_fit".into(), json!(seconds));
        result.insert("model".into(), json!(args.out));
        result.insert("report".into(), json!(args.report));
        return print_json(&result.into());
    }
    let source = &problem.source.name;
    let learned = format!("{source}: learned from {n_train} rows in {seconds:.1} s");
    let n = scored.part.len();
    let on = match scored.rows {
        ScoredRows::OutOfFold if n == n_train => {
            "scores by cross-validation, each row predicted by networks that had not learned from it"
                .to_owned()
        }
        ScoredRows::OutOfFold => format!(
            "scores by cross-validation on {n} rows, each predicted by networks that had not learned from it"
        ),
        ScoredRows::HeldOut if args.test_fraction.is_none() => {
            format!("scores on {n} other rows, held out since nothing is cross-validated")
        }
        ScoredRows::HeldOut => format!("scores on {n} held-out rows"),
        ScoredRows::Training => {
            "no scores, as no row is new to the model (--test-fraction holds some out)".to_owned()
        }
    };
    let table = scores.map_or_else(String::new, |scores| format!("\n{}", two_columns(&scores.rows())));
    print(&format!("{learned}; {on}\n{table}"))?;
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

/// Share of the rows to hold out where cross-validation does not score the model's predictions; of images their own test
/// set. Fewer rows than [`MIN_ROWS`] are all learned from.
fn held_out_by_default(problem: &Problem, settings: &ModelSettings) -> f64 {
    let cross_validated = settings.searches() && settings.calibration == Calibration::None;
    let few = problem.n_rows() < MIN_ROWS;
    if problem.own_split().is_none() && (cross_validated || few) { 0.0 } else { HELD_OUT }
}

/// Rows with what is predicted for them.
struct Scored {
    rows: ScoredRows,
    part: Part,
    predictions: Predictions,
}

impl Scored {
    /// Held-out rows if there are any, else predictions out of fold, else those of the training rows.
    fn of(model: &Model, train: Part, test: Part) -> Result<Self> {
        if test.len() > 0 {
            let predictions = Predictions::of(model, &test)?;
            return Ok(Self { rows: ScoredRows::HeldOut, part: test, predictions });
        }
        if let Some((predictions, rows)) = Predictions::out_of_fold(model) {
            let part = if rows.len() == train.len() { train } else { train.select(rows) };
            return Ok(Self { rows: ScoredRows::OutOfFold, part, predictions });
        }
        let predictions = Predictions::of(model, &train)?;
        Ok(Self { rows: ScoredRows::Training, part: train, predictions })
    }
}

fn html(
    problem: &Problem,
    encoding: &Encoding,
    model: &Model,
    (scored, n_train, class_shares): (&Scored, usize, &[f64]),
) -> Result<String> {
    let outcome = match (&scored.predictions, &scored.part.targets) {
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
    let page = FitReport {
        dataset: &problem.source.name,
        train_rows: n_train,
        model,
        encoding,
        inputs: scored.part.features.as_ref(),
        class_shares,
        scored: scored.rows,
        outcome,
        settings: &settings,
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.to_report()?.to_html())
}

/// Share of each class; nothing of values.
fn class_shares(targets: &Targets, classes: Option<&[String]>) -> Vec<f64> {
    let Targets::Classification(labels) = targets else { return Vec::new() };
    let share =
        |k: usize| labels.iter().filter(|&&label| label == k).count() as f64 / labels.len().max(1) as f64;
    (0..classes.map_or(0, <[String]>::len)).map(share).collect()
}
