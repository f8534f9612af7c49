//! The page about one fitted model: how good its predictions are, whether its uncertainty is honest, where it
//! comes from, which columns matter, how training went, and how to do it again.

mod advice;
mod classes;
mod guess;
mod learning;
mod shared;
mod values;
mod why;

use bayespc::metrics;
use bayespc::model::Model;
use bayespc::prediction::Predictive;
use bayespc_data::{ColumnSummary, Encoding};
use faer::MatRef;

use self::advice::{Facts, sentences};
use self::classes::classes_sections;
use self::guess::Beside;
use self::learning::{search_section, training_section};
use self::values::values_sections;
use self::why::why;
use crate::error::Result;
use crate::records::quantile;
use crate::report::{Block, Report, Section};

/// Columns of the table that are listed.
const LISTED: usize = 60;

/// Bins by which confidence is compared with accuracy.
const BINS: usize = 15;

/// What is told about a fitted model.
pub struct FitReport<'a> {
    /// Name of the data.
    pub dataset: &'a str,
    /// Rows learned from.
    pub train_rows: usize,
    /// The model.
    pub model: &'a Model,
    /// How the columns of the table become its inputs.
    pub encoding: &'a Encoding,
    /// Inputs of the scored rows, `d × n`.
    pub inputs: MatRef<'a, f64>,
    /// Share of each class among the rows learned from; empty for values.
    pub class_shares: &'a [f64],
    /// Which rows are scored.
    pub scored: ScoredRows,
    /// Predictions with the truth.
    pub outcome: Outcome<'a>,
    /// The settings as TOML.
    pub settings: &'a str,
    /// Version of the program.
    pub version: &'a str,
}

/// Rows that scores and plots are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoredRows {
    /// Rows learned from, each predicted by networks that had not seen it.
    OutOfFold,
    /// Rows that no network has learned from.
    HeldOut,
    /// Rows learned from, predicted by the model itself.
    Training,
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
        let beside = self.beside()?;
        let why = why(self.model, self.encoding, self.inputs, &self.outcome, self.scored)?;
        let advice = Block::Text(sentences(&self.facts(&beside, &why.leading)?));
        let mut sections = vec![
            Section { heading: "In short".to_owned(), blocks: vec![advice] },
            Section { heading: "Scores".to_owned(), blocks: vec![beside.table(&self.scored_rows())] },
        ];
        match &self.outcome {
            Outcome::Values { predictive, targets, names } => {
                sections.extend(values_sections(predictive, *targets, names)?);
            }
            Outcome::Classes { probabilities, labels, names } => {
                sections.extend(classes_sections(*probabilities, labels, names)?);
            }
        }
        sections.extend(why.sections);
        sections.extend(search_section(self.model.candidates())?);
        let units = match self.outcome {
            Outcome::Values { .. } => "standardised",
            Outcome::Classes { .. } => "one-hot codes",
        };
        sections.extend(training_section(self.model, units)?);
        sections.extend(self.columns_section());
        sections.push(self.settings_section());
        Ok(Report {
            title: format!("Model of {}", self.dataset),
            subtitle: format!("Bayesian predictive coding, fitted by bayespc {}", self.version),
            sections,
        })
    }

    fn n_scored(&self) -> usize {
        self.inputs.ncols()
    }

    fn beside(&self) -> Result<Beside> {
        match &self.outcome {
            Outcome::Values { predictive, targets, names } => {
                let scaling = self.model.target_scaling();
                Beside::values(predictive, *targets, names, (&scaling.offset, &scaling.scale))
            }
            Outcome::Classes { probabilities, labels, .. } => {
                Beside::classes(*probabilities, labels, self.class_shares)
            }
        }
    }

    fn facts<'b>(&'b self, beside: &'b Beside, leading: &'b [String]) -> Result<Facts<'b>> {
        let mut facts = Facts {
            beside,
            n_scored: self.n_scored(),
            scored: self.scored,
            epistemic_share: None,
            coverage: None,
            confidence_gap: None,
            leading,
            warnings: self.model.warnings(),
        };
        match &self.outcome {
            Outcome::Values { predictive, targets, .. } => {
                let (variance, epistemic) = (predictive.variance(), predictive.epistemic_variance());
                let share = |e: &f64, v: &f64| if *v > 0.0 { e / v } else { 0.0 };
                let of_row = |(e, v): (faer::ColRef<'_, f64>, faer::ColRef<'_, f64>)| -> Vec<f64> {
                    e.iter().zip(v.iter()).map(|(e, v)| share(e, v)).collect()
                };
                let shares: Vec<f64> =
                    epistemic.col_iter().zip(variance.col_iter()).flat_map(of_row).collect();
                facts.epistemic_share = Some(quantile(&shares, 0.5));
                facts.coverage = Some(metrics::interval_coverage(predictive, *targets, 0.9)?);
            }
            Outcome::Classes { probabilities, labels, .. } => {
                let gap = metrics::expected_calibration_error(*probabilities, labels, BINS)?;
                facts.confidence_gap = Some(gap);
            }
        }
        Ok(facts)
    }

    /// Which rows the scores are of.
    fn scored_rows(&self) -> String {
        match self.scored {
            ScoredRows::OutOfFold => format!(
                "{} rows, each predicted by networks of the model that had not learned from it (cross-validation)",
                self.n_scored()
            ),
            ScoredRows::HeldOut => format!("{} rows that were held out from training", self.n_scored()),
            ScoredRows::Training => "the rows the model was trained on: expect worse on new ones".to_owned(),
        }
    }

    /// What the table was.
    fn columns_section(&self) -> Option<Section> {
        let columns = &self.encoding.columns;
        if columns.is_empty() {
            return None;
        }
        let rows = columns.iter().take(LISTED).map(|column| {
            let ColumnSummary { name, understood, values, missing, inputs, remark, .. } = column;
            let counts = [missing, inputs].map(ToString::to_string);
            let mut cells = vec![name.clone(), understood.to_string(), values.clone()];
            cells.extend(counts);
            cells.push(remark.clone());
            cells
        });
        let more = match columns.len().saturating_sub(LISTED) {
            0 => String::new(),
            n => format!(" {n} more columns are not listed."),
        };
        let table = Block::Table {
            caption: format!("What each column was taken for, and how many inputs it became.{more}"),
            header: ["column", "taken for", "values", "missing", "inputs", ""].map(str::to_owned).to_vec(),
            rows: rows.collect(),
            highlight: Vec::new(),
        };
        Some(Section { heading: "The table".to_owned(), blocks: vec![table] })
    }

    fn settings_section(&self) -> Section {
        let facts = [
            ("data", self.dataset.to_owned()),
            ("rows learned from", self.train_rows.to_string()),
            ("inputs", self.model.n_features().to_string()),
            ("members", self.model.members().len().to_string()),
            ("seed", self.model.settings().training.seed.to_string()),
            ("version", self.version.to_owned()),
        ];
        let facts = facts.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Section {
            heading: "Settings".to_owned(),
            blocks: vec![Block::KeyValues(facts), Block::Code(self.settings.to_owned())],
        }
    }
}

#[cfg(test)]
mod tests {
    use bayespc::{ModelSettings, Samples, Targets};
    use bayespc_data::{EncodingOptions, Kinds, Table};
    use faer::Mat;

    use super::*;

    /// A table of two columns of numbers and one of words, its encoding, and its inputs.
    fn table(n: usize) -> (Encoding, Mat<f64>) {
        let mut text = "size,<b>place</b>,age\n".to_owned();
        for j in 0..n {
            let place = ["north", "south", "west"][j % 3];
            text += &format!("{}.5,{place},{}\n", (7 * j) % 23, (5 * j) % 17);
        }
        let table = Table::from_csv("table", text.as_bytes(), &Kinds::default()).unwrap();
        let encoding = Encoding::fit(&table, &[], &EncodingOptions::default()).unwrap();
        let inputs = encoding.transform(&table).unwrap().features;
        (encoding, inputs)
    }

    fn settings(members: usize) -> ModelSettings {
        let mut settings = ModelSettings { members, ..ModelSettings::fast() };
        settings.network.hidden_layer_sizes = vec![6];
        settings.training.epochs = 5;
        settings
    }

    fn values(n: usize, settings: &ModelSettings) -> String {
        let (encoding, inputs) = table(n);
        let targets = Mat::from_fn(2, n, |i, j| inputs[(0, j)] + (i + j % 4) as f64);
        let model = Model::fit(&Samples::new(&inputs, &targets).unwrap(), settings).unwrap();
        let predictive = model.predict(&inputs).unwrap();
        let names = ["rent".to_owned(), "<noise>".to_owned()];
        let report = FitReport {
            dataset: "a & b",
            train_rows: n,
            model: &model,
            encoding: &encoding,
            inputs: inputs.as_ref(),
            class_shares: &[],
            scored: ScoredRows::HeldOut,
            outcome: Outcome::Values { predictive: &predictive, targets: targets.as_ref(), names: &names },
            settings: "members = 2\n",
            version: "0.0.0",
        };
        report.to_report().unwrap().to_html()
    }

    #[test]
    fn a_regression_page_has_every_plot_and_is_whole() {
        let html = values(60, &settings(2));
        for text in [
            "In short",
            "constant guess",
            "Calibration",
            "Where targets fall",
            "predicted and observed",
            "two kinds",
            "What matters",
            "Along a column",
            "Worst rows",
            "Learning curve",
            "The table",
            "members = 2",
        ] {
            assert!(html.contains(text), "no {text}");
        }
        assert!(html.contains("a &amp; b") && !html.contains("<noise>") && !html.contains("<b>place"));
        assert!(html.contains("60 rows that were held out"));
        // Every score once, and of each target.
        assert_eq!(html.matches("mean squared error of rent").count(), 1);
        assert_eq!(html.matches("mean squared error of &lt;noise&gt;").count(), 1);
        // Self-contained: the only address is the name of the SVG format.
        assert!(
            html.match_indices("http").all(|(at, _)| html[at..].starts_with("http://www.w3.org/2000/svg"))
        );
        assert!(html.trim_end().ends_with("</html>"));
        // Networks of one kind are one line.
        assert_eq!(html.matches("member 1").count(), 0);
    }

    #[test]
    fn a_search_is_shown_as_a_picture() {
        let mut searched = ModelSettings::default();
        searched.network.hidden_layer_sizes = vec![6];
        searched.training.epochs = 2;
        searched.search.widths = Vec::new();
        let html = values(45, &searched);
        assert!(html.contains("What the search tried") && html.contains("in the model"));
    }

    #[test]
    fn a_page_of_classes_counts_rows_by_true_class() {
        let probabilities = Mat::from_fn(2, 4, |k, j| if (j < 3) == (k == 0) { 0.9 } else { 0.1 });
        let names = ["no".to_owned(), "yes".to_owned()];
        let labels = [0, 0, 1, 1];
        let Block::Table { rows, .. } = classes::confusion(probabilities.as_ref(), &labels, &names).unwrap()
        else {
            panic!()
        };
        assert_eq!(rows, [["no", "2", "0"], ["yes", "1", "1"]]);
        assert!(classes::confusion(probabilities.as_ref(), &labels, &names[..1]).is_err());

        let (encoding, inputs) = table(60);
        let labels: Vec<usize> = (0..60).map(|j| usize::from(inputs[(0, j)] > 11.0)).collect();
        let samples = Samples::new(&inputs, Targets::classes(&labels)).unwrap();
        let model = Model::fit(&samples, &settings(1)).unwrap();
        let probabilities = model.predict_probabilities(&inputs).unwrap();
        let report = FitReport {
            dataset: "classes",
            train_rows: 60,
            model: &model,
            encoding: &encoding,
            inputs: inputs.as_ref(),
            class_shares: &[0.5, 0.5],
            scored: ScoredRows::Training,
            outcome: Outcome::Classes {
                probabilities: probabilities.as_ref(),
                labels: &labels,
                names: &names,
            },
            settings: "",
            version: "0.0.0",
        };
        let html = report.to_report().unwrap().to_html();
        for text in ["Reliability", "taken for which", "probability of yes", "--test-fraction", "Worst rows"]
        {
            assert!(html.contains(text), "no {text}");
        }
    }
}
