//! The page about one fitted model: how good its predictions are, whether its uncertainty is honest, where it
//! comes from, how training went, and how to do it again.

use bayespc::metrics::{calibration_curve, reliability_bins};
use bayespc::prediction::Predictive;
use bayespc::training::TrainingReport;
use faer::MatRef;

use crate::error::{Error, Result};
use crate::plot::{Line, Panel, Scatter, figure};
use crate::report::{Block, Report, Section};

/// Bins of the reliability diagram.
const BINS: usize = 10;
/// Points drawn at most; more make the page heavy and the plot no clearer.
const MOST_POINTS: usize = 2000;
/// Error bars show mean ± this many standard deviations, the central 90 % of a normal.
const BAR: f64 = 1.644_853_626_951_472_2;
/// Rows and columns a confusion table may have and still be read.
const MOST_CLASSES: usize = 20;

/// What is told about a fitted model.
pub struct FitReport<'a> {
    /// Name of the data.
    pub dataset: &'a str,
    /// Rows learned from.
    pub train_rows: usize,
    /// Inputs of the network.
    pub features: usize,
    /// Whether the scored rows were held out, or are those learned from.
    pub held_out: bool,
    /// Names and values of the scores.
    pub scores: Vec<(String, String)>,
    /// Predictions with the truth.
    pub outcome: Outcome<'a>,
    /// What training did, per member.
    pub training: &'a [&'a TrainingReport],
    /// The settings as TOML.
    pub settings: &'a str,
    /// The seed.
    pub seed: u64,
    /// Version of the program.
    pub version: &'a str,
}

/// Predictions and what they should have been, in the units of the data.
pub enum Outcome<'a> {
    /// Of values.
    Values {
        /// The predictions.
        predictive: &'a Predictive,
        /// The truth, `d × n`.
        targets: MatRef<'a, f64>,
        /// Names of the targets.
        names: &'a [String],
    },
    /// Of classes.
    Classes {
        /// Class probabilities, `K × n`.
        probabilities: MatRef<'a, f64>,
        /// The true classes.
        labels: &'a [usize],
        /// Names of the classes.
        names: &'a [String],
    },
}

impl FitReport<'_> {
    /// The page.
    pub fn to_report(&self) -> Result<Report> {
        let mut sections = vec![self.scores_section()];
        match &self.outcome {
            Outcome::Values { predictive, targets, names } => {
                sections.extend(values_sections(predictive, *targets, names)?);
            }
            Outcome::Classes { probabilities, labels, names } => {
                sections.extend(classes_sections(*probabilities, labels, names)?);
            }
        }
        if let Some(section) = self.training_section()? {
            sections.push(section);
        }
        sections.push(self.settings_section());
        Ok(Report {
            title: format!("Model of {}", self.dataset),
            subtitle: format!("Bayesian predictive coding, fitted by bayespc {}", self.version),
            sections,
        })
    }

    fn n_scored(&self) -> usize {
        match &self.outcome {
            Outcome::Values { targets, .. } => targets.ncols(),
            Outcome::Classes { labels, .. } => labels.len(),
        }
    }

    fn scores_section(&self) -> Section {
        let rows = if self.held_out {
            format!("{} rows that were held out from training", self.n_scored())
        } else {
            "the rows the model was trained on: expect worse on new ones".to_owned()
        };
        let table = Block::Table {
            caption: format!("Scores on {rows}."),
            header: vec!["score".to_owned(), "value".to_owned()],
            rows: self
                .scores
                .iter()
                .map(|(name, value)| vec![name.clone(), value.replace('-', "−")])
                .collect(),
            highlight: Vec::new(),
        };
        Section { heading: "Scores".to_owned(), blocks: vec![table] }
    }

    fn training_section(&self) -> Result<Option<Section>> {
        if self.training.iter().all(|report| report.loss.is_empty()) {
            return Ok(None);
        }
        let label = |m: usize| match self.training.len() {
            1 => "training".to_owned(),
            _ => format!("member {}", m + 1),
        };
        let units = match self.outcome {
            Outcome::Values { .. } => "standardised",
            Outcome::Classes { .. } => "one-hot codes",
        };
        let mut panels = vec![Panel {
            title: "Learning curve".to_owned(),
            x_label: "epoch".to_owned(),
            y_label: format!("mean squared error ({units})"),
            y_log: true,
            lines: self
                .training
                .iter()
                .enumerate()
                .map(|(m, report)| Line {
                    label: label(m),
                    x: (1..=report.loss.len()).map(|epoch| epoch as f64).collect(),
                    y: report.loss.clone(),
                    ..Line::default()
                })
                .collect(),
            ..Panel::default()
        }];
        if self.training.iter().any(|report| !report.validation.is_empty()) {
            panels.push(Panel {
                title: "Validation".to_owned(),
                x_label: "epoch".to_owned(),
                y_label: format!("log density ({units})"),
                lines: self
                    .training
                    .iter()
                    .enumerate()
                    .map(|(m, report)| Line {
                        label: label(m),
                        x: report.validation.iter().map(|(epoch, _)| *epoch as f64).collect(),
                        y: report.validation.iter().map(|(_, density)| *density).collect(),
                        ..Line::default()
                    })
                    .collect(),
                ..Panel::default()
            });
        }
        let caption = "Error of every batch before it was learned, averaged over each epoch.";
        let block = chart(&panels, caption)?;
        Ok(Some(Section { heading: "Training".to_owned(), blocks: vec![block] }))
    }

    fn settings_section(&self) -> Section {
        let facts = [
            ("data", self.dataset.to_owned()),
            ("rows learned from", self.train_rows.to_string()),
            ("inputs", self.features.to_string()),
            ("members", self.training.len().to_string()),
            ("seed", self.seed.to_string()),
            ("version", self.version.to_owned()),
        ];
        let facts = facts.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Section {
            heading: "Settings".to_owned(),
            blocks: vec![Block::KeyValues(facts), Block::Code(self.settings.to_owned())],
        }
    }
}

/// One row of charts with a caption.
fn chart(panels: &[Panel], caption: &str) -> Result<Block> {
    let columns = panels.len().min(2);
    let rows = panels.len().div_ceil(columns) as u32;
    let svg = figure(panels, columns, if columns == 1 { 640 } else { 1000 }, 420 * rows)?;
    Ok(Block::Figure { svg, caption: caption.to_owned() })
}

/// At most [`MOST_POINTS`] samples, evenly spread.
fn shown(n: usize) -> Vec<usize> {
    let count = n.min(MOST_POINTS);
    (0..count).map(|i| i * n / count).collect()
}

fn values_sections(
    predictive: &Predictive,
    targets: MatRef<'_, f64>,
    names: &[String],
) -> Result<Vec<Section>> {
    let samples = shown(targets.ncols());
    let (mean, std) = (predictive.mean(), predictive.std());
    let (aleatoric, epistemic) = (predictive.aleatoric_variance(), predictive.epistemic_variance());
    let mut accuracy = Vec::new();
    let mut sources = Vec::new();
    for (k, name) in names.iter().enumerate() {
        let pick = |values: &dyn Fn(usize) -> f64| samples.iter().map(|&j| values(j)).collect::<Vec<_>>();
        accuracy.push(Panel {
            title: format!("{name}: predicted and observed"),
            x_label: format!("observed {name}"),
            y_label: format!("predicted {name}"),
            scatters: vec![Scatter {
                x: pick(&|j| targets[(k, j)]),
                y: pick(&|j| mean[(k, j)]),
                y_error: Some(pick(&|j| BAR * std[(k, j)])),
                label: "mean, with 90 % bars".to_owned(),
                ..Scatter::default()
            }],
            identity_line: true,
            ..Panel::default()
        });
        let (noise, epistemic_std) =
            (pick(&|j| aleatoric[(k, j)].sqrt()), pick(&|j| epistemic[(k, j)].sqrt()));
        sources.push(Panel {
            title: format!("{name}: two kinds of uncertainty"),
            x_label: "aleatoric standard deviation".to_owned(),
            y_label: "epistemic standard deviation".to_owned(),
            scatters: vec![Scatter {
                x: noise.clone(),
                y: epistemic_std.clone(),
                label: "scored rows".to_owned(),
                ..Scatter::default()
            }],
            ..Panel::default()
        });
        let by_prediction = |label: &str, y| Scatter {
            x: pick(&|j| mean[(k, j)]),
            y,
            label: label.to_owned(),
            ..Scatter::default()
        };
        sources.push(Panel {
            title: format!("{name}: uncertainty by prediction"),
            x_label: format!("predicted {name}"),
            y_label: "standard deviation".to_owned(),
            scatters: vec![by_prediction("aleatoric", noise), by_prediction("epistemic", epistemic_std)],
            ..Panel::default()
        });
    }
    let curve = calibration_curve(predictive, targets)?;
    // Coverage is a share of n rows: this is its standard error if the model is calibrated.
    let n = targets.ncols() as f64;
    let chance = |p: f64| (p * (1.0 - p) / n).sqrt();
    let band = |sign: f64| curve.levels.iter().map(|&p| (p + sign * chance(p)).clamp(0.0, 1.0)).collect();
    let calibration = Panel {
        title: "Calibration".to_owned(),
        x_label: "coverage promised".to_owned(),
        y_label: "share of rows inside".to_owned(),
        x_range: Some((0.0, 1.0)),
        y_range: Some((0.0, 1.0)),
        lines: vec![Line {
            label: "calibrated ± one standard error".to_owned(),
            x: curve.levels.clone(),
            y: curve.levels.clone(),
            band: Some((band(-1.0), band(1.0))),
            dashed: true,
            color: Some(crate::plot::Color::Grey),
        }],
        scatters: vec![Scatter {
            label: "this model".to_owned(),
            x: curve.levels.clone(),
            y: curve.empirical,
            ..Scatter::default()
        }],
        ..Panel::default()
    };
    accuracy.push(calibration);
    Ok(vec![
        Section {
            heading: "Predictions".to_owned(),
            blocks: vec![chart(
                &accuracy,
                "A perfect model has every prediction on the diagonal; a calibrated one has nine in ten bars \
                 touching it. Calibration below its diagonal means intervals that promise too much.",
            )?],
        },
        Section {
            heading: "Uncertainty".to_owned(),
            blocks: vec![chart(
                &sources,
                "Aleatoric uncertainty is noise in the data; epistemic uncertainty is what more data like these \
                 rows would take away.",
            )?],
        },
    ])
}

fn classes_sections(
    probabilities: MatRef<'_, f64>,
    labels: &[usize],
    names: &[String],
) -> Result<Vec<Section>> {
    let bins = reliability_bins(probabilities, labels, BINS)?;
    let filled: Vec<_> = bins.iter().filter(|bin| bin.count > 0).collect();
    let error = |accuracy: f64, count: usize| (accuracy * (1.0 - accuracy) / count as f64).sqrt();
    let reliability = Panel {
        title: "Reliability".to_owned(),
        x_label: "confidence (largest probability)".to_owned(),
        y_label: "share classified rightly".to_owned(),
        x_range: Some((0.0, 1.0)),
        y_range: Some((0.0, 1.0)),
        scatters: vec![Scatter {
            label: "this model ± one standard error".to_owned(),
            x: filled.iter().map(|bin| bin.confidence).collect(),
            y: filled.iter().map(|bin| bin.accuracy).collect(),
            y_error: Some(filled.iter().map(|bin| error(bin.accuracy, bin.count)).collect()),
            ..Scatter::default()
        }],
        identity_line: true,
        ..Panel::default()
    };
    let mut blocks = vec![chart(
        &[reliability],
        "Points below the diagonal are more confident than right; each stands for the rows of a tenth of the axis.",
    )?];
    if names.len() <= MOST_CLASSES {
        blocks.push(confusion(probabilities, labels, names)?);
    }
    Ok(vec![Section { heading: "Predictions".to_owned(), blocks }])
}

/// How often each class was taken for each other.
fn confusion(probabilities: MatRef<'_, f64>, labels: &[usize], names: &[String]) -> Result<Block> {
    let classes = names.len();
    if probabilities.nrows() != classes {
        return Err(Error::Length {
            what: "class names",
            label: "confusion table".to_owned(),
            found: classes,
            expected: probabilities.nrows(),
        });
    }
    let mut counts = vec![vec![0_usize; classes]; classes];
    for (j, &label) in labels.iter().enumerate() {
        let column = probabilities.col(j);
        let best = (1..classes).fold(0, |best, k| if column[k] > column[best] { k } else { best });
        counts[label][best] += 1;
    }
    let header =
        std::iter::once("true class".to_owned()).chain(names.iter().map(|name| format!("as {name}")));
    let rows = counts.iter().zip(names).map(|(row, name)| {
        std::iter::once(name.clone()).chain(row.iter().map(ToString::to_string)).collect()
    });
    Ok(Block::Table {
        caption: "How many rows of each class were taken for which; right answers in bold.".to_owned(),
        header: header.collect(),
        rows: rows.collect(),
        highlight: (0..classes).map(|k| (k, k + 1)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use bayespc::prediction::{Component, Covariance, Dof};
    use bayespc::training::End;
    use faer::Mat;

    use super::*;

    fn training() -> Vec<TrainingReport> {
        let report = TrainingReport {
            epochs: 3,
            steps: 9,
            end: End::Epochs,
            loss: vec![1.0, 0.5, 0.25],
            validation: vec![(3, -0.5)],
            best_epoch: 3,
        };
        vec![report.clone(), report]
    }

    fn page(outcome: Outcome<'_>, training: &[&TrainingReport]) -> String {
        let report = FitReport {
            dataset: "a & b",
            train_rows: 90,
            features: 2,
            held_out: true,
            scores: vec![("RMSE".to_owned(), "-1.5".to_owned())],
            outcome,
            training,
            settings: "members = 2\n",
            seed: 7,
            version: "0.0.0",
        };
        report.to_report().unwrap().to_html()
    }

    fn values(d: usize, n: usize) -> (Predictive, Mat<f64>) {
        let component = Component {
            mean: Mat::from_fn(d, n, |i, j| (i + j) as f64),
            aleatoric: Covariance::Diagonal(Mat::from_fn(d, n, |_, _| 1.0)),
            epistemic: Covariance::Diagonal(Mat::from_fn(d, n, |_, j| 0.1 * j as f64)),
            dof: Dof::Normal,
        };
        let targets = Mat::from_fn(d, n, |i, j| (i + j) as f64 + if j % 2 == 0 { 0.7 } else { -0.3 });
        (Predictive::from_component(component).unwrap(), targets)
    }

    #[test]
    fn a_regression_page_has_every_plot_and_is_whole() {
        let (predictive, targets) = values(2, 12);
        let names = ["rent".to_owned(), "<noise>".to_owned()];
        let html = page(
            Outcome::Values { predictive: &predictive, targets: targets.as_ref(), names: &names },
            &training().iter().collect::<Vec<_>>(),
        );
        for text in [
            "Calibration",
            "predicted and observed",
            "two kinds",
            "Learning curve",
            "Validation",
            "members = 2",
        ] {
            assert!(html.contains(text), "no {text}");
        }
        assert!(html.contains("a &amp; b") && !html.contains("<noise>"));
        assert!(html.contains("12 rows that were held out") && html.contains("−1.5"));
        // Self-contained: the only address is the name of the SVG format.
        assert!(
            html.match_indices("http").all(|(at, _)| html[at..].starts_with("http://www.w3.org/2000/svg"))
        );
        assert!(html.trim_end().ends_with("</html>"));
    }

    #[test]
    fn a_single_row_and_untrained_members_still_make_a_page() {
        let (predictive, targets) = values(1, 1);
        let names = ["y".to_owned()];
        let html =
            page(Outcome::Values { predictive: &predictive, targets: targets.as_ref(), names: &names }, &[]);
        assert!(!html.contains("Learning curve"));
    }

    #[test]
    fn a_confusion_table_counts_rows_by_true_class() {
        let probabilities = Mat::from_fn(2, 4, |k, j| if (j < 3) == (k == 0) { 0.9 } else { 0.1 });
        let names = ["no".to_owned(), "yes".to_owned()];
        let labels = [0, 0, 1, 1];
        let Block::Table { rows, .. } = confusion(probabilities.as_ref(), &labels, &names).unwrap() else {
            panic!()
        };
        assert_eq!(rows, [["no", "2", "0"], ["yes", "1", "1"]]);
        let html = page(
            Outcome::Classes { probabilities: probabilities.as_ref(), labels: &labels, names: &names },
            &training().iter().collect::<Vec<_>>(),
        );
        assert!(html.contains("Reliability") && html.contains("taken for which"));
        assert!(confusion(probabilities.as_ref(), &labels, &names[..1]).is_err());
    }

    #[test]
    fn shown_samples_are_spread_over_all() {
        assert_eq!(shown(3), [0, 1, 2]);
        let many = shown(10 * MOST_POINTS);
        assert_eq!((many.len(), many[1], many[MOST_POINTS - 1]), (MOST_POINTS, 10, 10 * (MOST_POINTS - 1)));
    }
}
