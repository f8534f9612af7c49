//! Everything that can be wrong with a file, a table or a download, one variant per cause.
//!
//! Rows are counted from 1 and without the header, as a reader of the file would count them.

use std::path::PathBuf;

/// The crate's error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No data set of this name is known.
    #[error("no data set is called `{name}` (known: {known})")]
    UnknownDataset {
        /// What was asked for.
        name: String,
        /// The names there are, comma-separated.
        known: String,
    },
    /// The data set is not part of the program.
    #[error("data set `{name}` is not built in: load it from a folder, the cache or the network")]
    NotBuiltIn {
        /// What was asked for.
        name: String,
    },
    /// A data set is in no folder, and downloading is off.
    #[error(
        "data set file `{file}` not found (looked in: {looked}): put it into {put}, or name a folder that holds it in BAYESPC_DATA, or allow downloading",
        put = .put.display()
    )]
    NotFound {
        /// Name of the file as published.
        file: String,
        /// Folders that were searched.
        looked: String,
        /// Where the file may be put by hand.
        put: PathBuf,
    },
    /// No source delivered the file.
    #[error(
        "could not download `{file}`: {tried}; get it by hand and put it into {put}, or name a folder that holds it in BAYESPC_DATA",
        tried = .causes.iter().map(|(url, cause)| format!("{url}: {cause}")).collect::<Vec<_>>().join("; "),
        put = .put.display()
    )]
    Download {
        /// Name of the file as published.
        file: String,
        /// Each address tried, with what went wrong there.
        causes: Vec<(String, DownloadError)>,
        /// Where the file may be put by hand.
        put: PathBuf,
    },
    /// A file does not hold the bytes that were published.
    #[error(
        "{path} is not the published file (SHA-256 {found}, expected {expected}): remove it and try again",
        path = .path.display()
    )]
    Checksum {
        /// Which file.
        path: PathBuf,
        /// SHA-256 of its content.
        found: String,
        /// SHA-256 of the published content.
        expected: String,
    },
    /// A benchmark table does not hold the benchmark's values in the benchmark's order.
    #[error(
        "{file} is not the `{name}` benchmark table: its values or their order differ, so results would not compare; remove it to use the published file"
    )]
    NotBenchmark {
        /// Which file.
        file: String,
        /// Which data set.
        name: &'static str,
    },
    /// A published file cannot be turned into the benchmark table.
    #[error("{file}: {problem}")]
    Format {
        /// Which file.
        file: String,
        /// What is wrong with it.
        problem: FormatError,
    },
    /// A table without a single byte or row of header.
    #[error("{file} is empty: the first line of a table names its columns")]
    EmptyFile {
        /// Which file.
        file: String,
    },
    /// A table that ends after its header.
    #[error("{file} has a header but no rows: is the header the only line?")]
    NoRows {
        /// Which file.
        file: String,
    },
    /// A row has more or fewer cells than the header.
    #[error(
        "{file}, row {row} (header not counted) has {found} cells, the header has {expected}: {hint}",
        hint = if found > expected { "put quotes (\") around a cell that contains the delimiter" } else { "is the end of the row missing, or a title above the header?" }
    )]
    RaggedRow {
        /// Which file.
        file: String,
        /// Data row, from 1.
        row: usize,
        /// Cells in this row.
        found: usize,
        /// Cells in the header.
        expected: usize,
    },
    /// Two columns have the same name.
    #[error("{file} has two columns called `{column}`: give one of them another name")]
    DuplicateColumn {
        /// Which file.
        file: String,
        /// The name.
        column: String,
    },
    /// Columns of a table have different lengths.
    #[error("{file}, column `{column}` has {found} cells, others have {expected}")]
    ColumnLength {
        /// Which table.
        file: String,
        /// Which column.
        column: String,
        /// Cells in this column.
        found: usize,
        /// Cells in the first.
        expected: usize,
    },
    /// A column has no name.
    #[error(
        "{file}, column {position} has no name: give it one (a row number written by pandas? write the file with `index=False`; a title above the header? take it out)"
    )]
    UnnamedColumn {
        /// Which file.
        file: String,
        /// Column, from 1.
        position: usize,
    },
    /// A text file has letters in UTF-8, and bytes that are not.
    #[error("{file}, line {line} is damaged: the file is UTF-8 text up to there; save it again as UTF-8")]
    NotUtf8 {
        /// Which file.
        file: String,
        /// Line, from 1.
        line: usize,
    },
    /// A quoted cell does not end.
    #[error(
        "{file}, {place}: a cell begins with a quote (\") that is never closed: add the second one, or take out the first",
        place = if *.row == 0 { "header".to_owned() } else { format!("row {row} (header not counted)") }
    )]
    OpenQuote {
        /// Which file.
        file: String,
        /// Data row, from 1; 0 is the header.
        row: usize,
    },
    /// A line is not a JSON object.
    #[error(
        "{file}, row {row} is not an object in JSON ({source}): JSON lines have one for each row, on a line of its own"
    )]
    Json {
        /// Which file.
        file: String,
        /// Which row, from 1.
        row: usize,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// A workbook lacks a sheet.
    #[error("{file} has no sheet `{sheet}` (its sheets: {present})")]
    NoSheet {
        /// Which file.
        file: String,
        /// The sheet asked for.
        sheet: String,
        /// The sheets there are, comma-separated.
        present: String,
    },
    /// The Parquet file is broken.
    #[error("{file}: {source}")]
    Parquet {
        /// Which file.
        file: String,
        /// What the parser said.
        source: parquet::errors::ParquetError,
    },
    /// The file name tells no known format.
    #[error(
        "{file}: the name must end in .csv, .tsv, .txt, .jsonl, .ndjson, .parquet, .xlsx, .xls or .ods, perhaps with .gz or .zst behind; `-` reads standard input"
    )]
    UnknownFormat {
        /// Which file.
        file: String,
    },
    /// A column holds dates, bytes or nested values.
    #[error("{file}, column `{column}` has type {kind}, which cannot be used: convert it, or leave it out")]
    UnsupportedColumn {
        /// Which file.
        file: String,
        /// Which column.
        column: String,
        /// Its type in the file.
        kind: String,
    },
    /// A column that is needed is not there.
    #[error("{file} has no column `{column}` (its columns: {})", .present.join(", "))]
    MissingColumn {
        /// Which file.
        file: String,
        /// The name.
        column: String,
        /// The names there are.
        present: Vec<String>,
    },
    /// A cell is empty or marked as missing.
    #[error(
        "{file}, row {row} (header not counted), column `{column}`: the value is missing (fill it in, or let missing cells be encoded: `--missing encode`, in Python `missing=\"encode\"`)"
    )]
    MissingValue {
        /// Which file.
        file: String,
        /// Data row, from 1.
        row: usize,
        /// Which column.
        column: String,
    },
    /// A row has no target.
    #[error(
        "{file}, row {row} (header not counted), target column `{column}`: the value is missing: fill it in or leave the row out"
    )]
    MissingTarget {
        /// Which file.
        file: String,
        /// Data row, from 1.
        row: usize,
        /// Which column.
        column: String,
    },
    /// No row can be learned from.
    #[error("{file} has no row to learn from: {left_out}")]
    NoLearnableRows {
        /// Which file.
        file: String,
        /// How many rows were left out and why.
        left_out: String,
    },
    /// A column has no value at all.
    #[error("{file}, target column `{column}` has no values: fill it in or choose another target")]
    AllMissing {
        /// Which file.
        file: String,
        /// Which column.
        column: String,
    },
    /// A cell is ±∞ or too large for a double.
    #[error(
        "{file}, row {row} (header not counted), column `{column}`: {value} is not finite: correct it or leave the cell empty"
    )]
    NotFinite {
        /// Which file.
        file: String,
        /// Data row, from 1.
        row: usize,
        /// Which column.
        column: String,
        /// The culprit.
        value: f64,
    },
    /// A cell should be of another type.
    #[error(
        "{file}, row {row} (header not counted), column `{column}`: `{value}` is not a {expected}: correct it or leave the cell empty"
    )]
    WrongType {
        /// Which file.
        file: String,
        /// Data row, from 1.
        row: usize,
        /// Which column.
        column: String,
        /// The culprit.
        value: String,
        /// `number`, `boolean`, `date` or `time of day`.
        expected: &'static str,
    },
    /// Nearly all cells of a column are numbers or dates, but not this one.
    #[error(
        "{file}, row {row} (header not counted), column `{column}`: {odd} (correct it or leave the cell empty; if it is meant, give --column \"{column}=category\", in Python columns={{\"{column}\": \"category\"}})",
        odd = odd_cell(*.row, .value, .expected)
    )]
    NearlyNumeric {
        /// Which file.
        file: String,
        /// First such data row, from 1.
        row: usize,
        /// Which column.
        column: String,
        /// The culprit.
        value: String,
        /// What the others are.
        expected: &'static str,
    },
    /// No column is left as a feature.
    #[error(
        "{file} has no column to learn from{}: say what one of them is, such as `--column NAME=category`, in Python `columns={{\"NAME\": \"category\"}}`",
        if columns.is_empty() { String::new() } else { format!(" ({columns})") }
    )]
    NoFeatures {
        /// Which file.
        file: String,
        /// The columns that were left out and what they were taken for.
        columns: String,
    },
    /// A classification target with a single class.
    #[error("{file}, target column `{column}` has only one class, `{class}`: there is nothing to tell apart")]
    OneClass {
        /// Which file.
        file: String,
        /// Which column.
        column: String,
        /// The class.
        class: String,
    },
    /// A text target that is hardly a class.
    #[error(
        "{file}, target column `{column}` has {found} different texts in {rows} rows, such as `{examples}`: too many for classes. Numbers must be written alike in every row; if classes are meant, give `--task classification`"
    )]
    TooManyClasses {
        /// Which file.
        file: String,
        /// Which column.
        column: String,
        /// Number of different texts.
        found: usize,
        /// Number of rows.
        rows: usize,
        /// Some of them.
        examples: String,
    },
    /// A class that was not there when the encoding was fitted.
    #[error("{file}, row {row} (header not counted), target column `{column}`: unknown class `{class}`")]
    UnknownClass {
        /// Which file.
        file: String,
        /// Data row, from 1.
        row: usize,
        /// Which column.
        column: String,
        /// The class.
        class: String,
    },
    /// Too many rows of a long file cannot be used.
    #[error(
        "{count} of {rows} rows cannot be used, more than the {most} that may be left out; the last: {last} (to leave out more, give --max-bad; if a column is no number, say so, as in --column NAME=category)"
    )]
    TooManyBadRows {
        /// Bad rows so far.
        count: usize,
        /// Rows read so far.
        rows: usize,
        /// How many may be left out.
        most: usize,
        /// What is wrong with the last of them.
        last: Box<Error>,
    },
    /// Text as the target of a regression, or several classification targets.
    #[error("{file}, target column `{column}`: {problem}")]
    Target {
        /// Which file.
        file: String,
        /// Which column.
        column: String,
        /// What does not go.
        problem: &'static str,
    },
    /// The encoding was fitted without a target.
    #[error("the encoding has no target")]
    NoTarget,
    /// A line of a splits file is wrong.
    #[error("{file}, line {line}: `{value}` is not {must_be}")]
    Split {
        /// Which file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The culprit.
        value: String,
        /// What a valid entry is.
        must_be: String,
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
}

/// Why one address did not deliver a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// No connection, no answer in time, or an error status such as 404.
    #[error("{0}")]
    Request(#[from] ureq::Error),
    /// The connection broke or stalled while the file was coming.
    #[error("interrupted after {done} bytes ({source})")]
    Interrupted {
        /// Bytes that arrived.
        done: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// Fewer or more bytes than announced.
    #[error("delivered {done} of {total} bytes")]
    Length {
        /// Bytes that arrived.
        done: u64,
        /// Bytes that were announced, or the most that is sensible for this file.
        total: u64,
    },
    /// The archive is broken or does not hold the file.
    #[error("archive: {0}")]
    Archive(#[from] zip::result::ZipError),
    /// The bytes are not those that were published.
    #[error("wrong content (SHA-256 {found}, expected {expected})")]
    Checksum {
        /// SHA-256 of what arrived.
        found: String,
        /// SHA-256 of what was published.
        expected: &'static str,
    },
}

/// What can be wrong inside a published file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The workbook cannot be read.
    #[error("not a readable workbook ({0})")]
    Workbook(#[from] calamine::Error),
    /// A few cells of a sheet are so far apart that the table between them is too large.
    #[error(
        "a sheet whose {cells} cells reach to row {row} and column {column}: delete those far from the table"
    )]
    Sparse {
        /// Cells that are not empty.
        cells: usize,
        /// Last row, from 1.
        row: u64,
        /// Last column, from 1.
        column: u64,
    },
    /// A workbook says to have more texts than there is room for in it.
    #[error("not a readable workbook (it says to have {said} texts)")]
    Texts {
        /// How many, as it stands there.
        said: String,
    },
    /// A sheet is not there.
    #[error("has no sheet {0}")]
    Sheet(String),
    /// A cell is not a number.
    #[error("row {row}, column {column}: `{value}` is not a number")]
    Cell {
        /// Data row, from 1.
        row: usize,
        /// Column, from 1.
        column: usize,
        /// The culprit.
        value: String,
    },
    /// The table has another size than the published one.
    #[error("has {found} {axis}, expected {expected}")]
    Shape {
        /// `rows` or `columns`.
        axis: &'static str,
        /// What is there.
        found: usize,
        /// What was published.
        expected: usize,
    },
    /// Not an idx file of the expected kind.
    #[error("idx magic number is {found:#010x}, expected {expected:#010x}")]
    Magic {
        /// The first four bytes.
        found: u32,
        /// What an idx file of this kind starts with.
        expected: u32,
    },
    /// The gzip stream is broken.
    #[error("broken gzip stream ({0})")]
    Gzip(std::io::Error),
}

/// What a number in another unit is not.
pub(crate) const OTHER_UNIT: &str = "number of the same unit";

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Names the file an I/O error belongs to.
    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// The same where the rows of a part of a file come after `n` others.
    pub(crate) fn rows_later(mut self, n: usize) -> Self {
        if let Self::RaggedRow { row, .. } | Self::OpenQuote { row, .. } = &mut self {
            *row += n;
        }
        self
    }
}

/// What is odd about a cell.
fn odd_cell(row: usize, value: &str, expected: &str) -> String {
    if expected == OTHER_UNIT {
        return format!("`{value}` is not in the unit of other cells: write all of them in one");
    }
    let guess = if row == 1 { "a typing error, or a second line of header?" } else { "a typing error?" };
    format!("`{value}` is not a {expected}, but nearly all other cells are: {guess}")
}
