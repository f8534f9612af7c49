//! From the command line to matrices: a file or a named data set, its target columns, and rows held out.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use bayespc::{ModelSettings, Samples};
use bayespc_data::{
    ColumnChoice, ColumnSummary, Encoding, EncodingOptions, ImageSet, Kind, Learnable, ReadOptions,
    RowSource, Split, Table, Targets, Task, Wish,
};
use clap::{Args, ValueEnum};
use faer::Mat;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

use crate::columns::ColumnArgs;
use crate::doubts;
use crate::failure::usage;
use crate::images::{self, Images};
use crate::output::{Files, note};
pub use crate::source::{STANDARD_INPUT, Source, data_source, load, note_files};
use crate::source::{short_name, tell_remarks};

/// Stream of the seed that draws the hold-out; training uses the streams below.
const HOLD_OUT_STREAM: u64 = 8;

/// Flags that say what to learn from.
#[derive(Args, Clone, Debug, Default)]
pub struct TableArgs {
    /// A table: CSV, JSON lines, Parquet, .xlsx or .ods, perhaps .gz or .zst; `-` is standard input. Or the
    /// name of a data set (see `bayespc data list`)
    #[arg(value_name = "DATA")]
    pub data: String,
    /// Target column; repeat it for several. Named data sets know theirs
    #[arg(long, value_name = "COL")]
    pub target: Vec<String>,
    /// What to predict; by default classes for text and booleans, values for numbers
    #[arg(long, value_enum)]
    pub task: Option<TaskArg>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would take them for its own")]
    pub columns: ColumnArgs,
    /// Sheet of a workbook; the first if not given
    #[arg(long, value_name = "NAME")]
    pub sheet: Option<String>,
    /// Folder to look for named data sets in instead of BAYESPC_DATA; then come the cache and the network
    #[arg(long = "data", value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

/// What to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TaskArg {
    /// Real values
    Regression,
    /// One of several classes
    Classification,
}

/// A table and what to learn from it.
pub struct Problem {
    /// The table.
    pub source: Source,
    /// Target columns.
    pub targets: Vec<String>,
    /// Rows of the table that cannot be learned from.
    pub left_out: Learnable,
    /// How columns become features.
    options: EncodingOptions,
    /// The encoding of the whole table, which knows every class and what every column is.
    whole: Encoding,
    /// The rows, where the table is but a sample of them.
    images: Option<Images>,
}

/// Features and targets of some rows.
pub struct Part {
    /// One column per row, `d × n`.
    pub features: Mat<f64>,
    /// Its targets.
    pub targets: Targets,
}

/// Rows to learn from and rows to report on, encoded by what the former teach.
pub struct Parts {
    /// How columns become matrices.
    pub encoding: Encoding,
    /// Rows to learn from.
    pub train: Part,
    /// Rows to report on.
    pub test: Part,
}

impl TableArgs {
    /// Read the table and settle the target.
    pub fn load(&self) -> Result<Problem> {
        if let Some(set) = ImageSet::named(&self.data) {
            return self.load_images(set);
        }
        let problem = self.problem(load(&self.data, self.folder.as_deref(), &self.reading()?)?)?;
        if !problem.left_out.is_all() {
            note(&format!("{}: {}", problem.source.name, problem.left_out));
        }
        Ok(problem)
    }

    /// Remember the files that the table is read from.
    pub fn note_files(&self, files: &mut Files) {
        note_files(files, &self.data, self.folder.as_deref());
    }

    /// Read the first rows of a file and settle the target, for a stream; gives the file, still at its beginning.
    /// Rows that cannot be read are not asked.
    pub fn load_head(&self, limit: usize) -> Result<(Problem, RowSource)> {
        let mut options = self.reading()?;
        for name in &self.columns.ignore {
            // Anything may stand in a column that nobody reads.
            options.wishes.entry(name.clone()).or_insert(Wish::As(Kind::Text));
        }
        let mut rows = self.open_rows(&options)?;
        let mut table = rows.head_that_reads(&options, limit)?;
        tell_remarks(&table);
        loop {
            let source = Source { name: short_name(&self.data), table: table.clone(), benchmark: None };
            let error = match self.problem(source) {
                Ok(problem) => return Ok((problem, rows)),
                Err(error) => error,
            };
            // Rows that are not finite will be left out: they must not keep the others from being understood.
            let Some(bayespc_data::Error::NotFinite { column, .. }) = error.downcast_ref() else {
                return Err(error);
            };
            let n = table.n_rows();
            table = table.finite_in(column);
            if table.n_rows() == n || table.n_rows() == 0 {
                return Err(error);
            }
        }
    }

    /// Open a file whose columns are known, for a stream that goes on.
    pub fn open_as(&self, encoding: Encoding) -> Result<(Problem, RowSource)> {
        let targets: Vec<String> =
            encoding.target.iter().flat_map(|target| target.names()).map(str::to_owned).collect();
        if targets.is_empty() {
            bail!("the model does not know the name of its target: it was not made by `bayespc fit`");
        }
        if !self.target.is_empty() && self.target != targets {
            return Err(usage(format!("the model predicts {}: leave out --target", targets.join(", "))));
        }
        let rows = self.open_rows(&self.reading()?)?;
        let name = short_name(&self.data);
        let table = Table::from_columns(&name, Vec::new())?;
        let source = Source { name, table, benchmark: None };
        let (left_out, options) = (Learnable::default(), EncodingOptions::default());
        Ok((Problem { source, targets, left_out, options, whole: encoding, images: None }, rows))
    }

    fn open_rows(&self, options: &ReadOptions) -> Result<RowSource> {
        let path = Path::new(&self.data);
        if self.data != STANDARD_INPUT && (path.is_dir() || !path.exists()) {
            return Err(usage(format!("--stream reads a file, and {} is none", self.data)));
        }
        Ok(RowSource::open(path, options)?)
    }

    /// What is asked of whoever reads the file.
    fn reading(&self) -> Result<ReadOptions> {
        Ok(ReadOptions { wishes: self.columns.wishes()?, sheet: self.sheet.clone() })
    }

    fn problem(&self, source: Source) -> Result<Problem> {
        let targets = match (&self.target[..], source.benchmark) {
            ([], Some(info)) => vec![info.target.to_owned()],
            ([], None) => {
                let names = column_names(&source.table);
                return Err(usage(format!(
                    "which column is the target? give --target COL (columns: {names})"
                )));
            }
            (given, _) => given.to_vec(),
        };
        let mut options = self.columns.options(&source.table, &targets)?;
        options.task = self.task.map(|task| match task {
            TaskArg::Regression => Task::Regression,
            TaskArg::Classification => Task::Classification,
        });
        if source.benchmark.is_some() {
            as_numbers(&source.table, &targets, &mut options);
        }
        let names: Vec<&str> = targets.iter().map(String::as_str).collect();
        let whole = Encoding::fit(&source.table, &names, &options)?;
        let left_out = whole.learnable(&source.table)?;
        let source = Source { table: left_out.of(source.table), ..source };
        if source.benchmark.is_none() {
            doubts::tell(&source.table, &whole, self.task.is_some());
        }
        Ok(Problem { source, targets, left_out, options, whole, images: None })
    }

    /// What the data ask of the preset.
    pub fn defaults(&self, settings: ModelSettings) -> ModelSettings {
        if ImageSet::named(&self.data).is_some() { images::defaults(settings) } else { settings }
    }

    fn load_images(&self, set: ImageSet) -> Result<Problem> {
        let (target, name) = (images::TARGET, set.name());
        if self.target.iter().any(|name| name != target) || self.task == Some(TaskArg::Regression) {
            return Err(usage(format!("the classes of {name} are its one target: `{target}`")));
        }
        if !self.columns.ignore.is_empty() || !self.columns.columns.is_empty() {
            return Err(usage(format!("--ignore and --column do not work with {name}: all pixels are used")));
        }
        let images = Images::load(set, &data_source(self.folder.as_deref()))?;
        let source = Source { name: name.to_owned(), table: images.sample()?, benchmark: None };
        let targets = vec![target.to_owned()];
        let mut options = EncodingOptions { task: Some(Task::Classification), ..EncodingOptions::default() };
        as_numbers(&source.table, &targets, &mut options);
        let whole = Encoding::fit(&source.table, &[target], &options)?;
        let left_out = whole.learnable(&source.table)?;
        Ok(Problem { source, targets, left_out, options, whole, images: Some(images) })
    }
}

impl Problem {
    /// How all columns become matrices.
    pub fn encoding(&self) -> &Encoding {
        &self.whole
    }

    /// The classes, if there are any.
    pub fn classes(&self) -> Option<&[String]> {
        self.whole.classes()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.images.as_ref().map_or_else(|| self.source.table.n_rows(), Images::len)
    }

    /// The one split the data come with, if they do.
    pub fn own_split(&self) -> Option<Split> {
        self.images.as_ref().map(|images| images.split(true))
    }

    /// What was understood of the columns; nothing of pixels.
    pub fn columns(&self) -> &[ColumnSummary] {
        if self.images.is_some() { &[] } else { &self.whole.columns }
    }

    /// Encode the rows of a split. Means and categories are learned from its training rows alone. What the columns
    /// and the target are is known from all rows: a class that happens to be held out is still a class.
    pub fn parts(&self, split: &Split) -> Result<Parts> {
        if let Some(images) = &self.images {
            let (train, test) = (images.part(&split.train), images.part(&split.test));
            return Ok(Parts { encoding: self.whole.clone(), train, test });
        }
        let train = self.source.table.select_rows(&split.train);
        let encoding = self.whole.refit(&train, &self.options)?;
        let part = |table: &Table| {
            let encoded = encoding.transform(table)?;
            for warning in &encoded.warnings {
                note(&format!("warning: {warning}"));
            }
            Ok::<_, bayespc_data::Error>(Part {
                features: encoded.features,
                targets: encoding.targets(table)?,
            })
        };
        let train = part(&train)?;
        let test = part(&self.source.table.select_rows(&split.test))?;
        Ok(Parts { encoding, train, test })
    }

    /// Hold out a share of the rows at random; of images their own test set.
    pub fn hold_out(&self, fraction: f64, seed: u64) -> Result<Split> {
        if let Some(images) = &self.images {
            return Ok(images.split(fraction > 0.0));
        }
        let n = self.source.table.n_rows();
        let n_test = (n as f64 * fraction).round() as usize;
        if n < 2 {
            bail!(
                "{} has {n} row with a target: two are the least that can be learned from",
                self.source.name
            );
        }
        if fraction > 0.0 && n_test == 0 || n_test + 2 > n {
            bail!(
                "{} has {n} rows, too few to hold out {:.0} %: use --test-fraction 0 to learn from all of them",
                self.source.name,
                100.0 * fraction
            );
        }
        let mut rows: Vec<usize> = (0..n).collect();
        if n_test > 0 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(HOLD_OUT_STREAM);
            rows.shuffle(&mut rng);
        }
        let test = rows.split_off(n - n_test);
        // In the order of the file, so that a hold-out of nothing changes nothing.
        rows.sort_unstable();
        Ok(Split { train: rows, test })
    }
}

impl Part {
    /// The rows as the model takes them.
    pub fn samples(&self, classes: Option<&[String]>) -> bayespc::Result<Samples<'_>> {
        let targets = match &self.targets {
            Targets::Regression(values) => bayespc::Targets::Values(values.as_ref()),
            Targets::Classification(labels) => {
                bayespc::Targets::Classes { labels, classes: classes.map_or(0, <[String]>::len) }
            }
        };
        Samples::new(&self.features, targets)
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.features.ncols()
    }

    /// These rows.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        let pick = |values: &Mat<f64>| Mat::from_fn(values.nrows(), rows.len(), |i, j| values[(i, rows[j])]);
        Self {
            features: pick(&self.features),
            targets: match &self.targets {
                Targets::Regression(values) => Targets::Regression(pick(values)),
                Targets::Classification(labels) => {
                    Targets::Classification(rows.iter().map(|&row| labels[row]).collect())
                }
            },
        }
    }
}

/// Benchmarks and pixels are taken as they are published: every column a number, none left out.
fn as_numbers(table: &Table, targets: &[String], options: &mut EncodingOptions) {
    for column in table.columns().iter().filter(|column| !targets.contains(&column.name)) {
        if !options.ignore.contains(&column.name) {
            options.columns.entry(column.name.clone()).or_insert(ColumnChoice::Number(None));
        }
    }
}

/// The names of all columns.
pub fn column_names(table: &Table) -> String {
    table.columns().iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
}
