//! One command, one page: every figure and table of the paper, from specification to HTML.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bayespc_data::DataSource;

use crate::error::{Error, Result};
use crate::plot::{DotPlot, DotSeries, Line, Panel, dot_figure, figure};
use crate::records::{Estimate, Records, mean_sd, mean_se, quantile};
use crate::report::{Block, Report, Section};
use crate::run::run;
use crate::spec::{Effort, RunSpec, Spec};
use crate::synthetic_panels;
use crate::{benchmark, classes, depth, gaps, images};

/// What can be reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// Accuracy against epochs.
    Figure1,
    /// Density against epochs, and the two kinds of uncertainty.
    Figure2,
    /// Six data sets, error and density.
    Table1,
    /// What each open choice of the print does.
    Ablation,
    /// Settings of the baselines, chosen on training data.
    Tuning,
    /// What the defaults rest on, measured on training data.
    Choices,
    /// Default settings beside other methods.
    Benchmark,
    /// The same between and beyond the data.
    Gaps,
    /// Class probabilities, and images of something else.
    Classes,
    /// MNIST and Fashion-MNIST: accuracy by epoch, and each told from the other.
    Images,
    /// Rules of learning beside each other in networks of 3 to 30 hidden layers.
    Depth,
}

impl Experiment {
    /// What the paper shows, and what its open choices do.
    pub const PAPER: [Self; 4] = [Self::Figure1, Self::Figure2, Self::Table1, Self::Ablation];

    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Figure1,
        Self::Figure2,
        Self::Table1,
        Self::Ablation,
        Self::Tuning,
        Self::Choices,
        Self::Benchmark,
        Self::Gaps,
        Self::Classes,
        Self::Images,
        Self::Depth,
    ];

    /// Name on the command line and of the output files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Figure1 => "figure1",
            Self::Figure2 => "figure2",
            Self::Table1 => "table1",
            Self::Ablation => "ablation",
            Self::Tuning => "tuning",
            Self::Choices => "choices",
            Self::Benchmark => "benchmark",
            Self::Gaps => "gaps",
            Self::Classes => "classes",
            Self::Images => "images",
            Self::Depth => "depth",
        }
    }

    /// Its specification, as shipped.
    pub fn specification(self) -> &'static str {
        match self {
            Self::Figure1 => include_str!("../specs/figure1.toml"),
            Self::Figure2 => include_str!("../specs/figure2.toml"),
            Self::Table1 => include_str!("../specs/table1.toml"),
            Self::Ablation => include_str!("../specs/ablation.toml"),
            Self::Tuning => include_str!("../specs/tuning.toml"),
            Self::Choices => include_str!("../specs/choices.toml"),
            Self::Benchmark => include_str!("../specs/benchmark.toml"),
            Self::Gaps => include_str!("../specs/gaps.toml"),
            Self::Classes => include_str!("../specs/classes.toml"),
            Self::Images => include_str!("../specs/images.toml"),
            Self::Depth => include_str!("../specs/depth.toml"),
        }
    }
}

/// Run an experiment into `out` and return the page it wrote. Beside it lie the records and figures. Units
/// whose records are already there are not run again.
pub fn reproduce(
    experiment: Experiment,
    effort: Effort,
    data: &DataSource,
    out: &Path,
    progress: &(dyn Fn(usize, usize, &str) + Sync),
) -> Result<PathBuf> {
    std::fs::create_dir_all(out).map_err(file(out))?;
    let name = experiment.name();
    let spec = Spec::parse(name, experiment.specification())?;
    let spec = spec.with(effort);
    let (suffix, description) = match effort {
        Effort::Full => ("", "full run"),
        Effort::Quick => ("-quick", "quick run: fewer seeds, splits and epochs"),
        Effort::Smoke => ("-smoke", "smoke run: a few rows, to see that it runs"),
    };
    let records_path = out.join(format!("{name}{suffix}.csv"));
    let records = match experiment {
        Experiment::Classes => classes::run(effort, data, &records_path, progress)?,
        _ => run(&spec, data, &records_path, progress)?,
    };
    let mut sections = match experiment {
        Experiment::Figure1 => curves(&spec, &records, &FIGURE1)?,
        Experiment::Figure2 => {
            let mut sections = curves(&spec, &records, &FIGURE2)?;
            let svg = synthetic_panels::figure(effort)?;
            sections.push(Section {
                heading: "Aleatoric and epistemic uncertainty".to_owned(),
                blocks: vec![Block::Figure { svg, caption: SYNTHETIC_CAPTION.to_owned() }],
            });
            sections
        }
        Experiment::Table1 => vec![table1(&spec, &records)?],
        Experiment::Ablation => vec![comparison("Ablation", RELU_NOTE, &spec, &records)],
        Experiment::Tuning => vec![comparison("Tuning", TUNING_NOTE, &spec, &records)],
        Experiment::Choices => {
            let mut sections = vec![comparison("Choices", TUNING_NOTE, &spec, &records)];
            sections.extend(curves(&spec, &records, &HELD_OUT)?);
            sections
        }
        Experiment::Classes => vec![classes::section(&records)],
        Experiment::Images => {
            let mut sections = vec![images::section(&spec, &records)];
            sections.extend(curves(&spec, &records, &IMAGES)?);
            sections
        }
        Experiment::Depth => depth::sections(&spec, &records)?,
        Experiment::Benchmark => vec![benchmark::section(&spec, &records, out)?],
        Experiment::Gaps => vec![gaps::section(&spec, &records, out)?],
    };
    write_figures(name, &sections, out)?;
    sections.push(Section {
        heading: "Settings".to_owned(),
        blocks: vec![
            Block::KeyValues(vec![
                ("program".to_owned(), format!("bayespc {}", env!("CARGO_PKG_VERSION"))),
                (
                    "records".to_owned(),
                    records_path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                ),
                ("seeds".to_owned(), "100 × split + seed, for weights, shuffles and draws".to_owned()),
                ("effort".to_owned(), description.to_owned()),
            ]),
            Block::Code(experiment.specification().to_owned()),
        ],
    });
    let report = Report { title: format!("bayespc: {name}"), subtitle: description.to_owned(), sections };
    let page = out.join(format!("{name}.html"));
    std::fs::write(&page, report.to_html()).map_err(file(&page))?;
    Ok(page)
}

const SYNTHETIC_CAPTION: &str = "Left: noise that grows with the input, learned by a variance node; the band is \
    the 95 % interval of the noise alone. Right: y = x³ with a gap in the data; the band is the 95 % interval of what is \
    not known, thin lines are posterior draws. Above by the feedback rule (left one network, right the default model), \
    below by relaxation with the paper's settings.";

/// What to draw of the records of a curve experiment: metric, axis label, logarithmic?
type Metrics = [(&'static str, &'static str, bool)];

const FIGURE1: [(&str, &str, bool); 2] =
    [("mse", "test MSE (standardised)", true), ("accuracy", "test accuracy", false)];
const HELD_OUT: [(&str, &str, bool); 1] = [("accuracy", "accuracy on held-out training images", false)];
const IMAGES: [(&str, &str, bool); 1] = [("accuracy", "test accuracy", false)];
const FIGURE2: [(&str, &str, bool); 2] =
    [("rmse", "test RMSE", false), ("lpd", "test log predictive density (standardised)", false)];

/// Share of the seeds below the band of a curve, and above it: as many as beyond one standard deviation of a normal.
const LOW: f64 = 0.16;

fn curves(spec: &Spec, records: &Records, metrics: &Metrics) -> Result<Vec<Section>> {
    let mut panels = Vec::new();
    let mut rows = Vec::new();
    let mut datasets: Vec<&str> = spec.runs.iter().map(|run| run.dataset.as_str()).collect();
    datasets.dedup();
    for dataset in datasets {
        let runs = spec.runs.iter().filter(|run| run.dataset == dataset);
        let learners: Vec<&String> = runs.flat_map(|run| &run.learners).collect();
        for &(metric, label, log) in metrics {
            let mut lines = Vec::new();
            for &name in &learners {
                let grouped = records.group_by(|r| {
                    (r.metric == metric && r.dataset == dataset && &r.learner == name).then_some(r.epoch?)
                });
                let curve: Vec<(u32, Estimate)> =
                    grouped.iter().map(|(epoch, values)| (*epoch, mean_sd(values))).collect();
                let Some((last_epoch, last)) = curve.last() else { continue };
                rows.push(vec![
                    dataset.to_owned(),
                    spec.learners[name].label.clone(),
                    metric.to_owned(),
                    curve.iter().find(|(e, _)| *e == 1).map_or_else(String::new, |(_, v)| format!("{v:.4}")),
                    format!("{last:.4}"),
                    last_epoch.to_string(),
                ]);
                // A mean minus a deviation may be below 0, which a logarithmic axis does not have.
                let at = |p: f64| grouped.values().map(|values| quantile(values, p)).collect::<Vec<_>>();
                lines.push(Line {
                    label: spec.learners[name].label.clone(),
                    x: curve.iter().map(|(e, _)| f64::from(*e)).collect(),
                    y: at(0.5),
                    band: Some((at(LOW), at(1.0 - LOW))),
                    ..Line::default()
                });
            }
            if !lines.is_empty() {
                let floor = (metric == "accuracy").then_some((0.5, 1.0));
                panels.push(Panel {
                    title: dataset.replace('_', " "),
                    x_label: "epoch".to_owned(),
                    y_label: label.to_owned(),
                    y_log: log,
                    y_range: floor.filter(|_| dataset.ends_with("mnist") || dataset == "two_moons"),
                    lines,
                    ..Panel::default()
                });
            }
        }
    }
    let count = panels.len().max(1);
    let svg = figure(&panels, count, 420 * count as u32, 460)?;
    Ok(vec![Section {
        heading: "Learning curves".to_owned(),
        blocks: vec![
            Block::Figure {
                svg,
                caption: "Median over seeds or splits, within the range of the middle 68 % of them."
                    .to_owned(),
            },
            table(
                "Mean ± standard deviation",
                &["data", "learner", "metric", "after epoch 1", "at the end", "epochs"],
                rows,
            ),
        ],
    }])
}

pub(crate) fn table(caption: &str, header: &[&str], rows: Vec<Vec<String>>) -> Block {
    Block::Table {
        caption: caption.to_owned(),
        header: header.iter().map(|&h| h.to_owned()).collect(),
        rows,
        highlight: Vec::new(),
    }
}

/// The paper's Table 1: data set, then LPD and RMSE of BBB and of BPC.
const PAPER: [(&str, [f64; 4]); 6] = [
    ("yacht", [1.02, 2.16, 0.75, 2.08]),
    ("concrete", [-0.77, 6.03, -0.59, 5.60]),
    ("wine", [-8.93, 0.64, -2.49, 0.60]),
    ("housing", [-0.56, 2.81, -0.49, 2.62]),
    ("power", [-0.39, 4.11, -0.14, 4.13]),
    ("energy", [0.33, 1.86, 0.28, 1.51]),
];

pub(crate) fn estimate(records: &Records, dataset: &str, learner: &str, metric: &str) -> Option<Estimate> {
    let groups = records
        .group_by(|r| (r.dataset == dataset && r.learner == learner && r.metric == metric).then_some(()));
    groups.get(&()).map(|values| mean_se(values))
}

fn show(value: Option<Estimate>) -> String {
    value.map_or_else(String::new, |v| format!("{v:.3}"))
}

/// RMSE and log density of every learner on every data set, as dots with standard errors.
pub(crate) fn error_and_density(
    records: &Records,
    learners: &[(&str, &str)],
    groups: &[String],
    (density, density_label): (&str, &str),
    density_range: (f64, f64),
) -> Result<String> {
    let series = |metric: &str| -> Vec<DotSeries> {
        let of = |(name, label): &(&str, &str)| {
            let values: Vec<Option<Estimate>> =
                groups.iter().map(|dataset| estimate(records, dataset, name, metric)).collect();
            DotSeries {
                label: (*label).to_owned(),
                values: values.iter().map(|v| v.map_or(f64::NAN, |v| v.mean)).collect(),
                errors: Some(values.iter().map(|v| v.map_or(f64::NAN, |v| v.spread)).collect()),
                ..DotSeries::default()
            }
        };
        learners.iter().map(of).collect()
    };
    let plots = [
        DotPlot {
            title: "RMSE (original units)".to_owned(),
            value_label: "RMSE".to_owned(),
            value_log: true,
            groups: groups.to_vec(),
            series: series("rmse"),
            ..DotPlot::default()
        },
        DotPlot {
            title: "Log predictive density".to_owned(),
            value_label: density_label.to_owned(),
            value_range: Some(density_range),
            groups: groups.to_vec(),
            series: series(density),
            ..DotPlot::default()
        },
    ];
    dot_figure(&plots, 2, 1100, 560)
}

fn table1(spec: &Spec, records: &Records) -> Result<Section> {
    let mut rows = Vec::new();
    for run in &spec.runs {
        // ll = lpd − log(scale): the difference of the two is the scale the paper's numbers need.
        let shift = run.learners.first().and_then(|l| {
            Some(
                estimate(records, &run.dataset, l, "ll")?.mean
                    - estimate(records, &run.dataset, l, "lpd")?.mean,
            )
        });
        if let Some((_, paper)) = PAPER.iter().find(|(name, _)| *name == run.dataset) {
            for (label, lpd, rmse) in
                [("BBB, as printed", paper[0], paper[1]), ("BPC, as printed", paper[2], paper[3])]
            {
                let ll = shift.map_or_else(String::new, |shift| format!("{:.2}", lpd + shift));
                rows.push(vec![
                    run.dataset.clone(),
                    label.to_owned(),
                    format!("{rmse:.2}"),
                    format!("{lpd:.2}"),
                    ll,
                    String::new(),
                ]);
            }
        }
        for name in &run.learners {
            let value = |metric: &str| show(estimate(records, &run.dataset, name, metric));
            rows.push(vec![
                run.dataset.clone(),
                spec.learners[name].label.clone(),
                value("rmse"),
                value("lpd"),
                value("ll"),
                value("coverage_90"),
            ]);
        }
    }
    let groups: Vec<String> = spec.runs.iter().map(|run| run.dataset.clone()).collect();
    let labels: Vec<(&str, &str)> =
        spec.learners.iter().map(|(name, learner)| (name.as_str(), learner.label.as_str())).collect();
    let svg = error_and_density(records, &labels, &groups, ("lpd", "LPD (standardised)"), (-4.0, 3.0))?;
    Ok(Section {
        heading: "Table 1".to_owned(),
        blocks: vec![
            table(
                "Mean ± standard error over splits. RMSE and LL in original units, LPD on standardised targets as the paper prints it.",
                &["data", "learner", "RMSE", "LPD", "LL", "90 % coverage"],
                rows,
            ),
            Block::Figure { svg, caption: "The same as a picture; bars are standard errors.".to_owned() },
        ],
    })
}

const RELU_NOTE: &str = "A name with +relu passes the standardised inputs through the activation first, as the model of the \
    print has it (f applied to z_0).";

const TUNING_NOTE: &str =
    "Scores on a fifth of the training part of each split; the test parts are not touched.";

/// Learners beside each other, one data set after the other.
fn comparison(heading: &str, note: &str, spec: &Spec, records: &Records) -> Section {
    let mut rows = Vec::new();
    let mut datasets: Vec<String> = spec.runs.iter().map(RunSpec::record_name).collect();
    datasets.dedup();
    for dataset in &datasets {
        let Some(run) = spec.runs.iter().find(|run| dataset.starts_with(&run.dataset)) else { continue };
        for name in &run.learners {
            let value = |metric: &str| estimate(records, dataset, name, metric);
            if let Some(rmse) = value("rmse") {
                rows.push(vec![
                    dataset.clone(),
                    spec.learners[name].label.clone(),
                    show(Some(rmse)),
                    show(value("ll")),
                    show(value("coverage_90")),
                ]);
            }
        }
    }
    Section {
        heading: heading.to_owned(),
        blocks: vec![
            Block::Text(note.to_owned()),
            table(
                "Mean ± standard error over splits, original units.",
                &["data", "setting", "RMSE", "LL", "90 % coverage"],
                rows,
            ),
        ],
    }
}

/// Every figure also as a file of its own, and every table as Markdown.
fn write_figures(name: &str, sections: &[Section], out: &Path) -> Result<()> {
    let (mut figures, mut markdown) = (0, String::new());
    for block in sections.iter().flat_map(|section| &section.blocks) {
        match block {
            Block::Figure { svg, .. } => {
                figures += 1;
                let path = out.join(format!("{name}-{figures}.svg"));
                std::fs::write(&path, svg).map_err(file(&path))?;
            }
            Block::Table { caption, header, rows, .. } => {
                let _ = writeln!(
                    markdown,
                    "{caption}\n\n| {} |\n|{}|",
                    header.join(" | "),
                    "---|".repeat(header.len() - 1) + "---"
                );
                for row in rows {
                    let _ = writeln!(markdown, "| {} |", row.join(" | "));
                }
                markdown.push('\n');
            }
            _ => {}
        }
    }
    let path = out.join(format!("{name}.md"));
    std::fs::write(&path, markdown).map_err(file(&path))
}

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |source| Error::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use bayespc::learners::LearnerSettings;
    use bayespc::model::ModelSettings;

    use super::*;

    #[test]
    fn every_shipped_specification_is_read() {
        for experiment in Experiment::ALL {
            let spec = Spec::parse(experiment.name(), experiment.specification()).unwrap();
            assert_eq!(spec.name, experiment.name());
            assert!(spec.runs.iter().all(|run| !run.learners.is_empty()));
        }
    }

    #[test]
    fn figure_1_learns_images_with_the_preset_for_images() {
        let images = ModelSettings::images();
        let spec = Spec::parse("figure1", Experiment::Figure1.specification()).unwrap();
        let LearnerSettings::Bpc(learner) = &spec.learners["bpc_feedback_mnist"].learner else { panic!() };
        assert_eq!((&learner.rule, &learner.prior), (&images.rule, &images.network.prior));
        for run in spec.runs.iter().filter(|run| run.dataset == "mnist") {
            assert_eq!(run.hidden_layer_sizes, images.network.hidden_layer_sizes);
            assert_eq!((run.epochs, run.batch_size), (images.training.epochs, images.training.batch_size));
        }
    }

    #[test]
    fn a_small_experiment_runs_resumes_and_writes_its_page() {
        let text = r#"
            name = "figure1"
            [[runs]]
            dataset = "two_moons"
            hidden_layer_sizes = [10]
            epochs = 2
            seeds = 2
            measure = "curve"
            learners = ["bpc", "bp"]
            [learners.bpc]
            label = "BPC"
            learner = { kind = "bpc" }
            [learners.bp]
            label = "BP"
            learner = { kind = "backprop" }
        "#;
        let spec = Spec::parse("figure1", text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.csv");
        let source = DataSource { folder: None, download: false, ..DataSource::from_env() };
        let first = run(&spec, &source, &path, &|_, _, _| {}).unwrap();
        assert_eq!(first.units().count(), 4);
        let again = run(&spec, &source, &path, &|_, _, _| {}).unwrap();
        assert_eq!(first.rows(), again.rows());
        let sections = curves(&spec, &again, &FIGURE1).unwrap();
        assert!(matches!(&sections[0].blocks[0], Block::Figure { svg, .. } if svg.contains("two moons")));
    }

    /// With the fewest rows and epochs; those whose data are not here are named and left out.
    #[test]
    fn every_experiment_runs_and_writes_a_page_of_all_its_learners() {
        let source = DataSource { download: false, ..DataSource::from_env() };
        for experiment in Experiment::ALL {
            let name = experiment.name();
            let folder = tempfile::tempdir().unwrap();
            let page = match reproduce(experiment, Effort::Smoke, &source, folder.path(), &|_, _, _| {}) {
                Err(Error::Data(bayespc_data::Error::NotFound { .. })) => {
                    println!("SKIPPED reproduce {name}: no benchmark data (set BAYESPC_DATA)");
                    continue;
                }
                page => page.unwrap(),
            };
            let html = std::fs::read_to_string(page).unwrap();
            assert!(html.contains("smoke run") && html.contains("<svg") | html.contains("<table"), "{name}");
            let records = Records::read(&folder.path().join(format!("{name}-smoke.csv"))).unwrap();
            let spec = Spec::parse(name, experiment.specification()).unwrap().with(Effort::Smoke);
            for run in &spec.runs {
                for learner in &run.learners {
                    let there = |r: &&crate::records::Record| {
                        r.dataset == run.record_name() && &r.learner == learner && r.value.is_finite()
                    };
                    assert!(records.rows().iter().any(|r| there(&r)), "{name}: {learner} on {}", run.dataset);
                }
            }
        }
    }
}
