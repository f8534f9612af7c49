//! How the time of an epoch grows with rows, width and depth.
//!
//! ```text
//! t ≈ c · xˢ ,   s = Σ (ln x − mean)(ln t − mean) / Σ (ln x − mean)²
//! ```

use std::time::Instant;

use anyhow::{Context, Result};
use bayespc::data::Dataset;
use bayespc::inference::FeedbackSettings;
use bayespc::learners::{Bpc, Learner, Rule};
use bayespc::network::{Network, NetworkSettings};
use bayespc::training::{self, Control, EpochReport, Observer, TrainingSettings};
use bayespc_cli::output::{Files, Output, note};
use bayespc_cli::progress::bar;
use bayespc_experiments::plot::{Line, Panel, Scatter, figure};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::machine::pool;
use crate::{BenchArgs, Outcome, median, table};

const COLUMNS: usize = 20;
const BATCH: usize = 128;
/// Rows of the largest table; widths and depths are measured on an eighth.
const ROWS: usize = 32_768;
const WIDTH: usize = 64;
const DEPTH: usize = 2;
const FACTORS: [usize; 4] = [8, 4, 2, 1];
const WIDTHS: [usize; 5] = [32, 64, 128, 256, 512];
const DEPTHS: [usize; 5] = [1, 2, 4, 8, 16];

/// A table and a network.
#[derive(Clone, Copy, Debug)]
struct Size {
    rows: usize,
    width: usize,
    depth: usize,
}

/// What grows, at one number of threads.
struct Series {
    what: &'static str,
    threads: usize,
    x: Vec<f64>,
    sizes: Vec<Size>,
    seconds: Vec<Vec<f64>>,
}

impl Series {
    fn medians(&self) -> Vec<f64> {
        self.seconds.iter().map(|seconds| median(seconds)).collect()
    }

    fn slope(&self) -> f64 {
        log_log_slope(&self.x, &self.medians())
    }
}

/// Run the benchmark.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    let picture = picture(args)?;
    let most = args.rows.unwrap_or(ROWS);
    let few = (most / 8).max(1);
    let mut all = Vec::new();
    for &threads in &args.threads {
        let rows = FACTORS.map(|factor| Size { rows: (most / factor).max(1), width: WIDTH, depth: DEPTH });
        let widths = WIDTHS.map(|width| Size { rows: few, width, depth: DEPTH });
        let depths = DEPTHS.map(|depth| Size { rows: few, width: WIDTH, depth });
        all.push(series("rows", threads, &rows, |size| size.rows));
        all.push(series("width", threads, &widths, |size| size.width));
        all.push(series("depth", threads, &depths, |size| size.depth));
    }
    let repeats = args.repeats.unwrap_or(3);
    let points: usize = all.iter().map(|series| series.sizes.len()).sum();
    let bar = bar("scaling", (points * repeats) as u64);
    for _ in 0..repeats {
        for series in &mut all {
            let pool = pool(series.threads)?;
            for (size, seconds) in series.sizes.iter().zip(&mut series.seconds) {
                seconds.push(pool.install(|| seconds_per_epoch(*size, args.refresh_every))?);
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    if let Some(picture) = picture {
        let name = picture.path().display().to_string();
        picture.write_whole(plot(&all)?.as_bytes())?;
        note(&format!("plot written to {name}"));
    }
    Ok(report(&all))
}

fn series(what: &'static str, threads: usize, sizes: &[Size], x: impl Fn(&Size) -> usize) -> Series {
    Series {
        what,
        threads,
        x: sizes.iter().map(|size| x(size) as f64).collect(),
        sizes: sizes.to_vec(),
        seconds: vec![Vec::new(); sizes.len()],
    }
}

fn picture(args: &BenchArgs) -> Result<Option<Output>> {
    let Some(folder) = &args.out else { return Ok(None) };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make folder {}", folder.display()))?;
    let mut files = Files::default();
    if let Some(peers) = &args.peers {
        files.reads("the file of --peers", peers);
    }
    files.output("--out", Some(&folder.join("scaling.svg")))
}

/// The second epoch of two: the first makes room.
fn seconds_per_epoch(size: Size, refresh_every: u64) -> bayespc::Result<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let input = Mat::from_fn(COLUMNS, size.rows, |_, _| rng.random_range(-1.7..1.7_f64));
    let target = Mat::from_fn(1, size.rows, |_, j| (input[(0, j)] * input[(1, j)]).sin());
    let data = Dataset::new(input.as_ref(), target.as_ref())?;
    let network =
        NetworkSettings { hidden_layer_sizes: vec![size.width; size.depth], ..NetworkSettings::default() };
    let network = Network::new(&network, COLUMNS, 1, &mut training::init_rng(0))?;
    let rule = FeedbackSettings { refresh_every, ..FeedbackSettings::default() };
    let mut learner = Bpc::new(network, Rule::Feedback(rule))?;
    let settings = TrainingSettings { epochs: 2, batch_size: Some(BATCH), ..TrainingSettings::default() };
    let mut clock = Clock { start: Instant::now(), seconds: 0.0 };
    training::fit(&mut learner, &data, &settings, &mut clock)?;
    Ok(clock.seconds)
}

/// Times the last epoch.
struct Clock {
    start: Instant,
    seconds: f64,
}

impl Observer<f64> for Clock {
    fn epoch(&mut self, _report: &EpochReport, _learner: &dyn Learner<f64>) -> bayespc::Result<Control> {
        self.seconds = self.start.elapsed().as_secs_f64();
        self.start = Instant::now();
        Ok(Control::Continue)
    }
}

/// The exponent s of t ≈ c · xˢ by least squares.
fn log_log_slope(x: &[f64], t: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64;
    let (x_mean, t_mean) = (mean(x), mean(t));
    let (mut above, mut below) = (0.0, 0.0);
    for (x, t) in x.iter().zip(t) {
        let distance = x.ln() - x_mean;
        above += distance * (t.ln() - t_mean);
        below += distance * distance;
    }
    above / below
}

fn report(all: &[Series]) -> Outcome {
    let runs: Vec<Value> = all
        .iter()
        .map(|series| {
            json!({
                "what": series.what, "threads": series.threads, "x": series.x,
                "seconds_per_epoch": series.medians(), "slope": series.slope(),
            })
        })
        .collect();
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|series| {
            let points = series.x.iter().zip(series.medians());
            let points = points.map(|(x, t)| format!("{x}: {:.1}", 1e3 * t)).collect::<Vec<_>>();
            vec![
                series.what.to_owned(),
                series.threads.to_string(),
                format!("{:.2}", series.slope()),
                points.join("  "),
            ]
        })
        .collect();
    let text = format!(
        "scaling: {COLUMNS} columns, {DEPTH} layers of {WIDTH} where not said otherwise, batches of {BATCH}, \
         f64\n\n{}",
        table(&["grows", "threads", "slope", "milliseconds per epoch"], &rows)
    );
    Outcome { json: json!({ "batch_size": BATCH, "runs": runs }), text }
}

fn plot(all: &[Series]) -> Result<String> {
    let panels: Vec<Panel> = ["rows", "width", "depth"]
        .iter()
        .map(|what| {
            let mut panel = Panel {
                title: format!("Growth with {what}, slope"),
                x_label: (*what).to_owned(),
                y_label: "seconds per epoch".to_owned(),
                x_log: true,
                y_log: true,
                ..Panel::default()
            };
            for series in all.iter().filter(|series| series.what == *what) {
                let threads = if series.threads == 1 { "thread" } else { "threads" };
                let label = format!("{} {threads}", series.threads);
                let (x, y) = (series.x.clone(), series.medians());
                panel.title.push_str(&format!(" {:.2}", series.slope()));
                panel.scatters.push(Scatter {
                    label: label.clone(),
                    x: x.clone(),
                    y: y.clone(),
                    ..Scatter::default()
                });
                panel.lines.push(Line { label, x, y, ..Line::default() });
            }
            panel
        })
        .collect();
    Ok(figure(&panels, 3, 1200, 420)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_of_a_power_law_is_its_exponent() {
        let x = [1.0, 2.0, 4.0, 16.0];
        let t = x.map(|x: f64| 0.3 * x.powf(1.7));
        assert!((log_log_slope(&x, &t) - 1.7).abs() < 1e-12);
    }
}
