//! Every kind of chart and block on one page, to be looked at after a change.
//!
//! ```text
//! cargo run -p bayespc-experiments --example gallery -- <folder>
//! ```

use std::f64::consts::PI;
use std::path::PathBuf;

use bayespc_experiments::Result;
use bayespc_experiments::plot::{Color, DotPlot, DotSeries, Line, Panel, Scatter, dot_figure, figure};
use bayespc_experiments::records::mean_se;
use bayespc_experiments::report::{Block, Report, Section};

/// A repeatable stand-in for noise, in [−1, 1].
fn noise(i: usize) -> f64 {
    let x = ((i as f64 + 1.0) * 12.9898).sin() * 43_758.545_3;
    2.0 * (x - x.floor()) - 1.0
}

fn range(n: usize, low: f64, high: f64) -> Vec<f64> {
    (0..n).map(|i| low + (high - low) * i as f64 / (n as f64 - 1.0)).collect()
}

fn learning_curve(label: &str, final_error: f64, speed: f64, seed: usize) -> Line {
    let x: Vec<f64> = (1..=100).map(f64::from).collect();
    let y: Vec<f64> = x
        .iter()
        .enumerate()
        .map(|(i, &t)| final_error + 9.0 * (-t * speed).exp() + 0.04 * noise(i + 1000 * seed))
        .collect();
    let spread: Vec<f64> = x.iter().map(|&t| 0.15 + 1.2 * (-t * speed).exp()).collect();
    let lower = y.iter().zip(&spread).map(|(y, s)| y - s).collect();
    let upper = y.iter().zip(&spread).map(|(y, s)| y + s).collect();
    Line { label: label.into(), x, y, band: Some((lower, upper)), ..Line::default() }
}

fn curves() -> Result<String> {
    let lines = vec![
        learning_curve("BPC", 0.5, 0.2, 1),
        learning_curve("predictive coding", 0.9, 0.06, 2),
        learning_curve("backpropagation", 0.8, 0.08, 3),
        learning_curve("Bayes by Backprop", 1.6, 0.04, 4),
    ];
    let panel = |title: &str, y_log| Panel {
        title: title.into(),
        x_label: "epoch".into(),
        y_label: "test RMSE (kWh/m²)".into(),
        y_log,
        lines: lines.clone(),
        ..Panel::default()
    };
    let mut third = panel("energy, logarithmic epochs", true);
    third.x_log = true;
    figure(&[panel("energy", false), panel("energy, logarithmic", true), third], 3, 1200, 400)
}

fn regression() -> Result<String> {
    let x = range(200, -4.0, 4.0);
    let y: Vec<f64> = x.iter().map(|x| (1.5 * x).sin()).collect();
    let spread = |x: f64| 0.25 + 0.35 * (x.abs() - 2.0).max(0.0).powi(2);
    let band = |scale: f64| {
        let edge = |sign: f64| x.iter().zip(&y).map(|(&x, y)| y + sign * scale * spread(x)).collect();
        Some((edge(-1.0), edge(1.0)))
    };
    let data_x: Vec<f64> = (0..120).map(|i| 2.0 * noise(i)).collect();
    let data_y: Vec<f64> =
        data_x.iter().enumerate().map(|(i, x)| (1.5 * x).sin() + 0.3 * noise(i + 500)).collect();
    let fit = |label: &str, scale| Line {
        label: label.into(),
        x: x.clone(),
        y: y.clone(),
        band: band(scale),
        ..Line::default()
    };
    let epistemic = Panel {
        title: "Epistemic uncertainty".into(),
        x_label: "x".into(),
        y_label: "y".into(),
        y_range: Some((-3.0, 3.0)),
        lines: vec![
            fit("mean ± 2 standard deviations", 2.0),
            Line {
                label: "truth".into(),
                x: x.clone(),
                y: y.iter().map(|y| 0.95 * y).collect(),
                dashed: true,
                color: Some(Color::Black),
                ..Line::default()
            },
        ],
        scatters: vec![Scatter {
            label: "training data".into(),
            x: data_x,
            y: data_y,
            color: Some(Color::Grey),
            ..Scatter::default()
        }],
        ..Panel::default()
    };
    let levels = range(10, 0.05, 0.95);
    let coverage = |label: &str, power: f64| Scatter {
        label: label.into(),
        x: levels.clone(),
        y: levels.iter().map(|p| p.powf(power)).collect(),
        y_error: Some(vec![0.03; 10]),
        ..Scatter::default()
    };
    let calibration = Panel {
        title: "Calibration".into(),
        x_label: "nominal coverage".into(),
        y_label: "share of test points inside".into(),
        x_range: Some((0.0, 1.0)),
        y_range: Some((0.0, 1.0)),
        scatters: vec![coverage("BPC", 1.05), coverage("Bayes by Backprop", 1.6), coverage("ensemble", 0.8)],
        identity_line: true,
        ..Panel::default()
    };
    let many: Vec<f64> = (0..1500).map(|i| 20.0 + 15.0 * noise(i)).collect();
    let predicted = Panel {
        title: "Predicted and observed".into(),
        x_label: "observed (MPa)".into(),
        y_label: "predicted (MPa)".into(),
        scatters: vec![Scatter {
            label: "test points".into(),
            y: many.iter().enumerate().map(|(i, v)| v + 2.0 * (noise(i + 7) + noise(i + 77))).collect(),
            x: many,
            ..Scatter::default()
        }],
        identity_line: true,
        ..Panel::default()
    };
    figure(&[epistemic, calibration, predicted], 3, 1200, 430)
}

fn benchmark() -> Result<String> {
    let groups: Vec<String> =
        ["housing", "concrete", "energy", "power", "wine", "yacht"].map(String::from).into();
    let series = |label: &str, factor: f64, base: [f64; 6]| DotSeries {
        label: label.into(),
        values: base.iter().map(|v| v * factor).collect(),
        errors: Some(base.iter().map(|v| 0.05 * v.abs() + 0.02).collect()),
        ..DotSeries::default()
    };
    let rmse = [2.62, 5.6, 1.51, 4.13, 0.6, 2.08];
    let density = [-2.4, -3.0, -1.2, -2.8, -0.95, -1.0];
    let plot = |title: &str, value_label: &str, value_log, base| DotPlot {
        title: title.into(),
        value_label: value_label.into(),
        value_log,
        groups: groups.clone(),
        series: vec![
            series("BPC", 0.8, base),
            series("Bayes by Backprop", 1.1, base),
            series("deep ensemble", 0.95, base),
            series("NGBoost", 0.9, base),
        ],
        ..DotPlot::default()
    };
    let mut right =
        plot("Log predictive density, larger is better", "mean log density (nats)", false, density);
    right.reference = Some(0.0);
    right.series[2].values[3] = f64::NAN;
    dot_figure(&[plot("RMSE, smaller is better", "RMSE (original units)", true, rmse), right], 2, 1100, 460)
}

fn hard_cases() -> Result<String> {
    let base = Panel { x_label: "x (units)".into(), y_label: "y".into(), ..Panel::default() };
    let line = |label: &str, x: Vec<f64>, y: Vec<f64>| Line { label: label.into(), x, y, ..Line::default() };
    let x = range(60, 0.0, 1.0);
    let gaps: Vec<f64> =
        (0..60).map(|i| if i % 17 == 5 { f64::NAN } else { (f64::from(i) / 6.0 * PI).sin() }).collect();
    let panels = [
        Panel { title: "Empty".into(), lines: vec![line("nothing", vec![], vec![])], ..base.clone() },
        Panel {
            title: "Constant".into(),
            lines: vec![line("constant", x.clone(), vec![3.0; 60])],
            ..base.clone()
        },
        Panel {
            title: "Gaps where values are not finite".into(),
            lines: vec![line("gaps", x.clone(), gaps)],
            ..base.clone()
        },
        Panel {
            title: "A logarithmic axis over twelve decades, and a title long enough to need a second line"
                .into(),
            y_log: true,
            y_label: "a long vertical label with a unit that has to be broken (kg m² s⁻²)".into(),
            lines: vec![line(
                "10^(12 x) & <escaped>",
                x.clone(),
                x.iter().map(|x| 10f64.powf(12.0 * x - 6.0)).collect(),
            )],
            ..base.clone()
        },
        Panel {
            title: "Large numbers".into(),
            lines: vec![line(
                "1e7",
                x.iter().map(|x| 1e9 * x).collect(),
                x.iter().map(|x| 1e7 * x * x).collect(),
            )],
            ..base.clone()
        },
        Panel {
            title: "Many series".into(),
            lines: (0..9)
                .map(|k| {
                    let y =
                        x.iter().map(|x| (f64::from(k) * 0.4 + 6.0 * x).sin() + 0.3 * f64::from(k)).collect();
                    line(&format!("method {k}"), x.clone(), y)
                })
                .collect(),
            ..base.clone()
        },
    ];
    figure(&panels, 3, 1200, 800)
}

fn page(figures: &[(&str, String)]) -> String {
    let chart =
        |i: usize, caption: &str| Block::Figure { svg: figures[i].1.clone(), caption: caption.into() };
    let names = ["housing", "concrete", "energy", "power", "wine", "yacht"];
    let rows = (names.iter().enumerate())
        .map(|(i, name)| {
            let cell = |k: usize, base: f64| {
                mean_se(&(0..20).map(|j| base + 0.3 * noise(100 * i + 20 * k + j)).collect::<Vec<_>>())
                    .to_string()
            };
            let base = i as f64;
            vec![
                (*name).to_owned(),
                cell(0, 2.0 + base),
                cell(1, 2.3 + base),
                cell(2, -1.0 - base),
                "–".to_owned(),
            ]
        })
        .collect();
    let table = Block::Table {
        caption: "Test RMSE and log density in original units, mean ± standard error over 20 splits; best in bold. \
                  All values on this page are made up."
            .into(),
        header: ["data set", "BPC RMSE", "BBB RMSE", "BPC log density", "goal"].map(String::from).to_vec(),
        rows,
        highlight: (0..6).map(|row| (row, 1)).collect(),
    };
    let settings = [
        ("epochs", "100"),
        ("batch size", "32"),
        ("κ", "cosine 0.3 → 0.005"),
        ("seeds", "5"),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    let section = |heading: &str, blocks| Section { heading: heading.into(), blocks };
    let sections = vec![
        section(
            "Convergence",
            vec![
                Block::Text(
                    "Learning curves, with one standard deviation over five seeds.\n\nA second paragraph."
                        .into(),
                ),
                chart(0, "Test error by epoch; shaded: one standard deviation over 5 seeds."),
            ],
        ),
        section("Uncertainty", vec![chart(1, "Epistemic uncertainty, calibration, predictions.")]),
        section("Benchmark", vec![table, chart(2, "Mean ± standard error over 20 splits.")]),
        section("Hard cases", vec![chart(3, "What charts do with awkward data.")]),
        section(
            "Settings",
            vec![
                Block::KeyValues(settings.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec()),
                Block::Code("[learner]\nname = \"bpc\"\nhidden_layer_sizes = [50, 50]\n".into()),
            ],
        ),
    ];
    Report { title: "Gallery of charts".into(), subtitle: "Every kind of chart and block".into(), sections }
        .to_html()
}

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "out/gallery".into()));
    let save = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|source| bayespc_experiments::Error::File { path: path.clone(), source })
    };
    let figures = [
        ("curves", curves()?),
        ("regression", regression()?),
        ("benchmark", benchmark()?),
        ("hard_cases", hard_cases()?),
    ];
    for (name, svg) in &figures {
        save(&format!("{name}.svg"), svg)?;
    }
    save("index.html", &page(&figures))
}
