//! Everything that can be wrong with what a caller hands us, one variant per cause.

/// The library's error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A Cholesky factorisation met a pivot that is not positive.
    #[error("{what} is not positive definite (pivot {pivot})")]
    NotPositiveDefinite {
        /// Which matrix.
        what: &'static str,
        /// Index of the first bad pivot.
        pivot: usize,
    },
    /// Two shapes that should agree do not.
    #[error("{what} has {found} {axis}, expected {expected}")]
    Shape {
        /// Which argument.
        what: &'static str,
        /// `rows`, `columns`, `layers`, …
        axis: &'static str,
        /// What was given.
        found: usize,
        /// What would fit.
        expected: usize,
    },
    /// There is nothing to work on.
    #[error("{what} is empty")]
    Empty {
        /// Which argument.
        what: &'static str,
    },
    /// There is not enough to work on.
    #[error("{found} {what}: at least {needed} are needed")]
    TooFew {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many it takes.
        needed: usize,
    },
    /// A value is NaN or infinite.
    #[error("{what} is {value} at row {row}, column {column} (sample {row}, feature {column})")]
    NotFinite {
        /// Which argument.
        what: &'static str,
        /// Sample number, from 0.
        row: usize,
        /// Feature number, from 0.
        column: usize,
        /// The culprit: NaN, inf or -inf.
        value: f64,
    },
    /// A column of a table with holes has nothing but holes.
    #[error("column {column} of the table has no value at all: leave it out")]
    EmptyColumn {
        /// Number of the column, from 0.
        column: usize,
    },
    /// A target is so large or so small that its variance is beyond what numbers hold.
    #[error(
        "target column {column} has a size of {scale:e}, whose square is beyond what numbers hold: give it in another unit"
    )]
    TargetScale {
        /// Column of the target, from 0.
        column: usize,
        /// Its deviation, or its mean where that is too large.
        scale: f64,
    },
    /// A setting is outside its range.
    #[error("setting {name} = {value} is not valid: must be {must_be}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// What it was set to.
        value: f64,
        /// The valid range, in words.
        must_be: &'static str,
    },
    /// Two settings do not go together.
    #[error("settings conflict: {first} does not go with {second}")]
    Conflict {
        /// One setting.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A learner does not know this way to predict.
    #[error("{learner} cannot predict by {method}: it knows mean and monte_carlo")]
    Method {
        /// Name of the learner.
        learner: &'static str,
        /// Name of the method.
        method: &'static str,
    },
    /// Degrees of freedom too small for the density or the mean to exist.
    #[error("degrees of freedom {dof} of {what} must exceed {bound}")]
    DegreesOfFreedom {
        /// Which distribution.
        what: &'static str,
        /// What was given.
        dof: f64,
        /// Must be larger than this.
        bound: f64,
    },
    /// Something would not fit into memory.
    #[error("{what} needs about {gigabytes:.1} GB, more than there is")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How much it would need.
        gigabytes: f64,
    },
    /// An observer stopped the work before it had a result.
    #[error("interrupted before any network was trained")]
    Interrupted,
    /// No network was trained in the time there was.
    #[error("nothing could be trained in time_limit = {seconds} s: give more, or none")]
    TimeLimit {
        /// The limit.
        seconds: f64,
    },
    /// Prediction was asked of a model that has not learned.
    #[error("the model has not been fitted")]
    NotFitted,
    /// A class label is outside 0..classes.
    #[error("class label {label} of sample {row} is outside 0..{classes}")]
    Label {
        /// The label.
        label: usize,
        /// Sample number.
        row: usize,
        /// Number of classes.
        classes: usize,
    },
    /// A model file cannot be read.
    #[error("model file: {0}")]
    ModelFile(#[from] ModelFileError),
    /// Tensors are not the weights of a plain feed-forward network.
    #[error("weights: {0}")]
    Weights(#[from] WeightsError),
    /// Parts of a table do not make up a pass over it.
    #[error("{0}")]
    Rounds(#[from] RoundsError),
}

/// What can be wrong with the statistics of parts of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoundsError {
    /// No pass is due.
    #[error("the model is finished: no pass over the rows is due")]
    Finished,
    /// Made with another model, or for another pass.
    #[error("statistics number {part} are of another model or another pass ({pass})")]
    OtherModel {
        /// Which of those given, from 0.
        part: usize,
        /// What they are of.
        pass: String,
    },
    /// Rows that nobody has sent.
    #[error("rows {start} to {end} are in no statistics")]
    Missing {
        /// The first of them, from 0.
        start: u64,
        /// The last.
        end: u64,
    },
    /// A row that was sent twice.
    #[error("row {row} is in the statistics of two parts")]
    Twice {
        /// Its number, from 0.
        row: u64,
    },
    /// A row behind the end of the table.
    #[error("the table has {rows} rows, and there are statistics of more")]
    Beyond {
        /// How many rows it has.
        rows: u64,
    },
    /// Statistics with other columns than the model or the parts before, or with longer or shorter sums.
    #[error("statistics number {part} have {found} {what}, expected {expected}")]
    Columns {
        /// Which of those given, from 0.
        part: usize,
        /// `inputs`, `targets` or `numbers in a sum`.
        what: &'static str,
        /// What it has.
        found: usize,
        /// What the model or the others have.
        expected: usize,
    },
    /// Rows that reach over the end of a chunk.
    #[error(
        "statistics number {part} have rows {start} to {end} in one piece, which chunks of {length} rows cut"
    )]
    Chunk {
        /// Which of those given, from 0.
        part: usize,
        /// The first row, from 0.
        start: u64,
        /// The last.
        end: u64,
        /// Rows of a chunk.
        length: u64,
    },
    /// Bytes that are no statistics.
    #[error("no statistics of a part: {what}")]
    Malformed {
        /// What is wrong.
        what: String,
    },
}

/// What can be wrong with the weights of a network that was trained elsewhere.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// Not a safetensors file, or cut short.
    #[error("not a whole safetensors file ({0})")]
    Format(#[from] safetensors::SafeTensorError),
    /// A type of numbers that is not read.
    #[error("tensor `{name}` holds {found}: save it as F32 or F64")]
    Type {
        /// Which tensor.
        name: String,
        /// Its type.
        found: String,
    },
    /// A tensor that a plain feed-forward network does not have.
    #[error(
        "tensor `{name}` of shape {shape:?} is no weight (two axes) or bias (one axis) of a plain \
         feed-forward network: names end in .weight or .bias"
    )]
    Unknown {
        /// Which tensor.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// A bias without weights, or of another length.
    #[error("bias `{name}` has {found} numbers, its weights have {expected} rows")]
    Bias {
        /// Which tensor.
        name: String,
        /// How long it is.
        found: usize,
        /// How long it should be; 0 if there are no weights of that name.
        expected: usize,
    },
    /// Layers whose order the names do not tell.
    #[error("the order of `{first}` and `{second}` cannot be told: names must hold the number of the layer")]
    Order {
        /// A layer.
        first: String,
        /// Another.
        second: String,
    },
    /// A layer that does not fit on the one before it.
    #[error("layer `{name}` has {found} inputs, the layer before it has {expected} outputs")]
    Chain {
        /// Which layer.
        name: String,
        /// Columns of its weights.
        found: usize,
        /// Rows of the weights before it.
        expected: usize,
    },
    /// A number that is NaN or infinite.
    #[error("tensor `{name}` holds {value}")]
    NotFinite {
        /// Which tensor.
        name: String,
        /// The culprit.
        value: f64,
    },
}

/// What can be wrong with a model file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    /// Not a safetensors file, or cut short.
    #[error("not a whole safetensors file ({0})")]
    Format(#[from] safetensors::SafeTensorError),
    /// The header or settings are not what this program writes.
    #[error("metadata entry `{key}` is missing or malformed")]
    Metadata {
        /// Which entry.
        key: String,
    },
    /// Written by a version this program does not know.
    #[error("format version {found} is not supported (this program reads {supported})")]
    Version {
        /// Version in the file.
        found: String,
        /// Version this program reads.
        supported: u32,
    },
    /// Bits have changed since it was written.
    #[error("the file is damaged: its content does not have the checksum it was written with")]
    Damaged,
    /// A tensor is not there.
    #[error("tensor `{name}` is missing")]
    Missing {
        /// Which tensor.
        name: String,
    },
    /// A tensor has another shape or type than the settings imply.
    #[error("tensor `{name}` has shape {found:?}, expected {expected:?} of f64")]
    TensorShape {
        /// Which tensor.
        name: String,
        /// Shape in the file.
        found: Vec<usize>,
        /// Shape the settings imply.
        expected: Vec<usize>,
    },
    /// A tensor holds NaN or infinity.
    #[error("tensor `{name}` holds {value} at index {index}")]
    TensorNotFinite {
        /// Which tensor.
        name: String,
        /// Flat index.
        index: usize,
        /// The culprit.
        value: f64,
    },
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;
