//! What wide layers cost and what they predict, by how much of their precisions is kept: MNIST, the settings for images,
//! the same rows and epochs for all, scores of the test images.
//!
//! Networks are fitted one after the other, each by a process of its own: the memory of one is not that of another.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bayespc::metrics;
use bayespc::network::WideLayers;
use bayespc::{Model, ModelSettings, Samples, Targets};
use bayespc_cli::input::data_source;
use bayespc_data::{ImageSet, LabelledImages, load_images};
use faer::{Mat, MatRef};
use serde_json::{Value, json};

use crate::machine::{cpu_seconds, peak_rss_mb};
use crate::{BenchArgs, Outcome, table};

const DIGITS: usize = 10;
const ROWS: usize = 10_000;
const EPOCHS: usize = 3;

/// Run the benchmark.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    if let [only] = args.columns[..] {
        let run = alone(args, only)?;
        return Ok(Outcome { text: describe(args, std::slice::from_ref(&run)), json: run });
    }
    let mut runs = Vec::new();
    for columns in &args.columns {
        let mut command = Command::new(std::env::current_exe().context("where this program is")?);
        command.args(["wide", "--json", "--columns", &name(*columns)]);
        command.args(["--rows", &rows(args).to_string(), "--epochs", &epochs(args).to_string()]);
        let widths: Vec<String> = args.widths.iter().map(ToString::to_string).collect();
        command.args(["--widths", &widths.join(",")]);
        if let Some(folder) = &args.folder {
            command.arg("--data").arg(folder);
        }
        let output = command.output().context("cannot start another process of this program")?;
        if !output.status.success() {
            bail!("{}: {}", name(*columns), String::from_utf8_lossy(&output.stderr).trim());
        }
        runs.push(serde_json::from_slice(&output.stdout).context("a run did not print its result")?);
    }
    Ok(Outcome { text: describe(args, &runs), json: json!({ "runs": runs }) })
}

fn rows(args: &BenchArgs) -> usize {
    args.rows.unwrap_or(ROWS)
}

fn epochs(args: &BenchArgs) -> usize {
    args.epochs.unwrap_or(EPOCHS)
}

/// `dense`, `blocks=512`.
pub fn name(columns: WideLayers) -> String {
    match columns {
        WideLayers::Auto => "auto".to_owned(),
        WideLayers::Dense => "dense".to_owned(),
        WideLayers::Blocks(size) => format!("blocks={size}"),
        WideLayers::Sketch(k) => format!("sketch={k}"),
    }
}

/// What [`name`] says, read back.
pub fn parse(text: &str) -> std::result::Result<WideLayers, String> {
    let number = |digits: &str| match digits.parse::<usize>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{digits}: give a number of at least 1")),
    };
    match text.split_once('=') {
        None if text == "auto" => Ok(WideLayers::Auto),
        None if text == "dense" => Ok(WideLayers::Dense),
        Some(("blocks", size)) => number(size).map(WideLayers::Blocks),
        Some(("sketch", k)) => number(k).map(WideLayers::Sketch),
        _ => Err("give auto, dense, blocks=B or sketch=K".to_owned()),
    }
}

/// One network in this process.
fn alone(args: &BenchArgs, columns: WideLayers) -> Result<Value> {
    let source = data_source(args.folder.as_deref());
    let data = load_images(ImageSet::Mnist, &source, &mut |_, _| {})?;
    let LabelledImages { train_images, train_labels, test_images, test_labels, .. } = data;
    let n = rows(args).min(train_images.ncols());
    let inputs = |images: MatRef<'_, f32>| {
        Mat::from_fn(images.nrows(), images.ncols(), |i, j| f64::from(images[(i, j)]))
    };
    let labels = |labels: &[u8]| labels.iter().map(|&label| usize::from(label)).collect::<Vec<_>>();
    let (train, classes) = (inputs(train_images.subcols(0, n)), labels(&train_labels[..n]));
    let mut settings = ModelSettings::images();
    settings.network.hidden_layer_sizes.clone_from(&args.widths);
    settings.network.wide_layers = columns;
    settings.training.epochs = epochs(args);
    let samples = Samples::new(train.as_ref(), Targets::Classes { labels: &classes, classes: DIGITS })?;
    let (start, used) = (Instant::now(), cpu_seconds());
    let model = Model::fit(&samples, &settings)?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = cpu_seconds().zip(used).map(|(after, before)| after - before);
    let memory = peak_rss_mb();
    let start = Instant::now();
    let probabilities = model.predict_probabilities(&inputs(test_images.as_ref()))?;
    let (probabilities, labels) = (probabilities.as_ref(), labels(&test_labels));
    Ok(json!({
        "columns": name(columns),
        "hidden_layer_sizes": args.widths,
        "rows": n,
        "epochs": epochs(args),
        "accuracy": metrics::accuracy(probabilities, &labels)?,
        "nll": metrics::negative_log_likelihood(probabilities, &labels)?,
        "ece": metrics::expected_calibration_error(probabilities, &labels, 15)?,
        "seconds_fit": seconds,
        "cpu_seconds_fit": cpu,
        "seconds_predict": start.elapsed().as_secs_f64(),
        "peak_rss_mb": memory,
        "file_mb": model.to_bytes()?.len() as f64 / 1e6,
    }))
}

fn describe(args: &BenchArgs, runs: &[Value]) -> String {
    let number = |run: &Value, key: &str, digits: usize| {
        run[key].as_f64().map_or_else(|| "–".to_owned(), |x| format!("{x:.digits$}"))
    };
    let lines: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            vec![
                run["columns"].as_str().unwrap_or_default().to_owned(),
                number(run, "accuracy", 4),
                number(run, "nll", 4),
                number(run, "ece", 4),
                number(run, "seconds_fit", 0),
                number(run, "cpu_seconds_fit", 0),
                number(run, "peak_rss_mb", 0),
                number(run, "file_mb", 0),
            ]
        })
        .collect();
    let heading = ["columns", "accuracy", "nll", "ece", "s", "s of all cores", "peak MB", "file MB"];
    let widths: Vec<String> = args.widths.iter().map(ToString::to_string).collect();
    format!(
        "wide: mnist 784-{}-10, {} rows, {} epochs, scores of the 10,000 test images; peak memory of the fit, data \
         included\n\n{}",
        widths.join("-"),
        rows(args),
        epochs(args),
        table(&heading, &lines)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_as_it_is_written() {
        for columns in [WideLayers::Auto, WideLayers::Dense, WideLayers::Blocks(512), WideLayers::Sketch(64)]
        {
            assert_eq!(parse(&name(columns)), Ok(columns));
        }
        for wrong in ["", "block=3", "blocks=0", "sketch=", "dense=1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
