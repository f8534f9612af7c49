//! Everything that can go wrong between a measured value and a printed page, one variant per cause.

use std::path::PathBuf;

use crate::records::Unit;

/// The crate's error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Learning or predicting failed.
    #[error("{run}: {source}")]
    Learning {
        /// Data set and learner.
        run: String,
        /// What went wrong.
        source: bayespc::Error,
    },
    /// Data could not be had.
    #[error(transparent)]
    Data(#[from] bayespc_data::Error),
    /// An experiment's specification cannot be read.
    #[error("specification of {experiment}: {source}")]
    Spec {
        /// Which experiment.
        experiment: String,
        /// What the parser says.
        source: Box<toml::de::Error>,
    },
    /// A specification names a learner it does not define.
    #[error("specification of {experiment}: learner `{learner}` is not defined")]
    UnknownLearner {
        /// Which experiment.
        experiment: String,
        /// Which learner.
        learner: String,
    },
    /// A gap in a feature the table does not have.
    #[error("a gap in feature {number}, of {features} counted from 0")]
    NoFeature {
        /// Which feature, from 0.
        number: usize,
        /// How many there are.
        features: usize,
    },
    /// Two lists that belong together differ in length.
    #[error("{what} of `{label}` has {found} values, expected {expected}")]
    Length {
        /// Which list: `y`, `band`, …
        what: &'static str,
        /// Label of the series.
        label: String,
        /// What was given.
        found: usize,
        /// What would fit.
        expected: usize,
    },
    /// Predictions could not be scored.
    #[error(transparent)]
    Scoring(#[from] bayespc::Error),
    /// A requested axis range is empty, not finite, or not positive on a logarithmic axis.
    #[error("{axis} range {low} to {high} of chart `{chart}` cannot be drawn")]
    Range {
        /// Title of the chart.
        chart: String,
        /// `x`, `y` or `value`.
        axis: &'static str,
        /// Requested lower end.
        low: f64,
        /// Requested upper end.
        high: f64,
    },
    /// A figure without columns or without charts.
    #[error("a figure needs at least one {what}")]
    EmptyFigure {
        /// `column` or `chart`.
        what: &'static str,
    },
    /// Labels and legend leave no room for the data.
    #[error("chart `{chart}` has only {width:.0} × {height:.0} pixels left for its data: enlarge the figure")]
    NoRoom {
        /// Title of the chart.
        chart: String,
        /// Pixels left across.
        width: f64,
        /// Pixels left down.
        height: f64,
    },
    /// The drawing backend failed.
    #[error("drawing failed")]
    Drawing(#[source] std::io::Error),
    /// A file cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process is writing the same records.
    #[error("{} is being written by another process", path.display())]
    Locked {
        /// Which file.
        path: PathBuf,
    },
    /// The first line is not the header of a records file.
    #[error("{} is not a records file: its header is `{found}`", path.display())]
    Header {
        /// Which file.
        path: PathBuf,
        /// Its first line.
        found: String,
    },
    /// A line inside the file, not merely at its torn end, is not a record of its unit.
    #[error("{}, line {line}: not a whole record of its unit", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    /// A record cannot be written as CSV.
    #[error("record of {unit} cannot be written as CSV")]
    Encoding {
        /// The record's unit.
        unit: Box<Unit>,
        /// What the CSV writer said.
        source: csv::Error,
    },
    /// A unit without records would be indistinguishable from one that did not run.
    #[error("a unit needs at least one record")]
    EmptyUnit,
    /// Records of two units were handed in as one.
    #[error("records of {first} and of {second} were handed in as one unit")]
    MixedUnits {
        /// Unit of the first record.
        first: Box<Unit>,
        /// The unit that differs.
        second: Box<Unit>,
    },
    /// The unit was recorded before.
    #[error("{unit} is already recorded")]
    DuplicateUnit {
        /// Which unit.
        unit: Box<Unit>,
    },
    /// The metric's name is the one that closes a unit.
    #[error("metric name `{metric}` is reserved")]
    ReservedMetric {
        /// The name.
        metric: String,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;
