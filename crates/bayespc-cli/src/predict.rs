//! `bayespc predict`: a table of predictions, with their uncertainty, for the rows of another table.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bayespc::model::LatentModel;
use bayespc::network::CovarianceRule;
use bayespc::prediction::Method;
use bayespc::{Model, Task};
use bayespc_data::{Column, Encoding, TargetColumns, Warning};
use clap::{Args, ValueEnum};
use faer::{Mat, MatRef};

use crate::failure::usage;
use crate::fit::ENCODING_NOTE;
use crate::input;
use crate::output::{Files, note};
use crate::rows::Rows;
use crate::sink::Sink;
use crate::threads;

/// Rows predicted at a time: few enough for memory, many enough for speed.
const BATCH: usize = 4096;

/// Bytes of a model file that tell whether it is one.
const BEGINNING: u64 = 16;

/// Longest header of a safetensors file.
const HEADER: u64 = 100_000_000;

/// Predict the rows of a table.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc predict rent.safetensors new-flats.csv --out predictions.csv
  bayespc predict rent.safetensors new-flats.csv --keep id --keep city --out predictions.parquet
  bayespc predict rent.safetensors new-flats.csv --coverage 0.5 --method monte-carlo --draws 100
  gunzip -c new.csv.gz | bayespc predict rent.safetensors - --keep all

Columns are found by name, in any order, and read as they were written when the model was fitted; the target may
be missing. For values the result has the columns mean, std, aleatoric_std (noise), epistemic_std (what more data
would take away), lower and upper (the central interval of --coverage), with the target's name in front if there
are several; for classes it has the class and one probability column per class. Rows come in the order of the
table, one for each; --keep puts columns of the table before them.")]
pub struct PredictArgs {
    /// Model that `bayespc fit` wrote
    model: PathBuf,
    /// A table as `bayespc fit` reads it, `-` for standard input, or a data set's name
    data: String,
    /// File to write, as Parquet if its name ends so, else as CSV; standard output if not given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Column of the table to put before the predictions; may be repeated, and `all` are all
    #[arg(long, value_name = "COL")]
    keep: Vec<String>,
    /// Significant digits of predictions in CSV, 1 to 17; Parquet has them all
    #[arg(long, value_name = "N", default_value_t = 6)]
    digits: usize,
    /// Sheet of a workbook; the first if not given
    #[arg(long, value_name = "NAME")]
    sheet: Option<String>,
    /// Probability that a value lies between lower and upper
    #[arg(long, value_name = "P", default_value_t = 0.9)]
    coverage: f64,
    /// How to predict; by default as the model was set
    #[arg(long, value_enum)]
    method: Option<MethodArg>,
    /// Networks drawn by --method monte-carlo
    #[arg(long, value_name = "N", default_value_t = 20)]
    draws: usize,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    seed: u64,
    /// Folder to look for named data sets in
    #[arg(long = "data", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Threads to use; never changes a result
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// How to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodArg {
    /// Mean weights only: noise, but no epistemic uncertainty
    Mean,
    /// Weights drawn from the posterior
    MonteCarlo,
    /// Means and covariances carried through every layer
    Moments,
    /// First order in the weights of every layer
    Linearised,
}

/// What a model file may hold.
pub enum Stored {
    /// A model that predicts a target.
    Predictive(Box<Model>),
    /// A model of a table without a target.
    Latent(Box<LatentModel>),
}

/// Read a model of either kind, with an error that names the file.
pub fn read_stored(path: &Path) -> Result<Stored> {
    let bytes = model_bytes(path)?;
    let unusable = |again: &str| format!("{} is not a model that can be used; {again}", path.display());
    if LatentModel::is_in(&bytes) {
        let model = LatentModel::from_bytes(&bytes)
            .with_context(|| unusable("make it again with `bayespc impute --model-out`"))?;
        return Ok(Stored::Latent(Box::new(model)));
    }
    let model = Model::from_bytes(&bytes).with_context(|| unusable("fit it again"))?;
    Ok(Stored::Predictive(Box::new(model)))
}

/// Read a model that predicts, with an error that names the file.
pub fn read_model(path: &Path) -> Result<Model> {
    match read_stored(path)? {
        Stored::Predictive(model) => Ok(*model),
        Stored::Latent(_) => bail!(
            "{} is a model of a table without a target: use it with `bayespc impute --model` or `bayespc generate`",
            path.display()
        ),
    }
}

/// The bytes of a model file. What does not begin as one is not read on: a device may have no end.
pub fn model_bytes(path: &Path) -> Result<Vec<u8>> {
    let context = || format!("cannot read model {}", path.display());
    let mut file = File::open(path).with_context(context)?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(BEGINNING).read_to_end(&mut bytes).with_context(context)?;
    // The length of a JSON object, and its brace.
    let begins = match bytes.first_chunk::<8>() {
        Some(length) => (2..=HEADER).contains(&u64::from_le_bytes(*length)) && bytes.get(8) == Some(&b'{'),
        None => false,
    };
    if begins {
        file.read_to_end(&mut bytes).with_context(context)?;
    }
    Ok(bytes)
}

/// The encoding that a model was fitted with.
pub fn encoding_of(model: &Model, path: &Path) -> Result<Encoding> {
    let Some(note) = model.notes().get(ENCODING_NOTE) else {
        bail!("{} does not know the columns of its table: it was not made by `bayespc fit`", path.display());
    };
    let encoding: Encoding = serde_json::from_str(note).with_context(|| {
        format!("{}: the note `{ENCODING_NOTE}` is damaged; fit it again", path.display())
    })?;
    let (found, expected) = (encoding.feature_names().len(), model.n_features());
    if found != expected {
        bail!("{}: its encoding has {found} features, its network {expected}; fit it again", path.display());
    }
    Ok(encoding)
}

/// Run the command.
pub fn run(args: &PredictArgs) -> Result<()> {
    threads::set(args.threads)?;
    if !(args.coverage > 0.0 && args.coverage < 1.0) {
        return Err(usage(format!("--coverage {} is not between 0 and 1", args.coverage)));
    }
    if args.draws == 0 {
        return Err(usage("--draws 0: give at least 1"));
    }
    if !(1..=17).contains(&args.digits) {
        return Err(usage(format!("--digits {}: a number has 1 to 17 of them", args.digits)));
    }
    let mut files = Files::default();
    files.reads("the model", &args.model);
    input::note_files(&mut files, &args.data, args.folder.as_deref());
    let out = files.output("--out", args.out.as_deref())?;
    let model = read_model(&args.model)?;
    let mut encoding = encoding_of(&model, &args.model)?;
    let table = PredictionTable {
        model: &model,
        names: target_names(&encoding, &model),
        method: args.method.map_or(model.settings().method, |method| method.with(args.draws, args.seed)),
        coverage: args.coverage,
    };
    // Targets, if there are any, are not looked at: a table to predict may have them half filled in.
    encoding.target = None;
    let Some(out) = out else {
        let mut sink = Sink::csv(io::stdout().lock(), args.digits);
        write_predictions(args, &encoding, &table, &mut sink)?;
        return sink.finish();
    };
    let written = out.path().to_owned();
    let mut draft = out.draft()?;
    let mut sink = Sink::new(&mut draft, &written, args.digits);
    write_predictions(args, &encoding, &table, &mut sink)?;
    sink.finish()?;
    draft.finish()?;
    note(&format!("predictions written to {}", written.display()));
    Ok(())
}

fn write_predictions(
    args: &PredictArgs,
    encoding: &Encoding,
    table: &PredictionTable<'_>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let rows = Rows {
        model: &args.model,
        data: &args.data,
        folder: args.folder.as_deref(),
        sheet: args.sheet.as_deref(),
        keep: &args.keep,
    };
    rows.each(encoding, BATCH, |kept, features| sink.write(kept, table.columns(features)?))
}

/// What was bridged over, summed over batches.
#[derive(Default)]
pub struct Warnings(Vec<Warning>);

impl Warnings {
    /// Count more.
    pub fn add(&mut self, warnings: Vec<Warning>) {
        for warning in warnings {
            let slot = self.0.iter_mut().find(|known| same_kind(known, &warning));
            match (slot, warning) {
                (
                    Some(Warning::UnseenCategory { count, .. } | Warning::Imputed { count, .. }),
                    Warning::UnseenCategory { count: more, .. } | Warning::Imputed { count: more, .. },
                ) => *count += more,
                (_, warning) => self.0.push(warning),
            }
        }
    }

    /// Say all of them.
    pub fn tell(&self) {
        for warning in &self.0 {
            note(&format!("warning: {warning}"));
        }
    }
}

fn same_kind(a: &Warning, b: &Warning) -> bool {
    match (a, b) {
        (Warning::UnseenCategory { column: a, .. }, Warning::UnseenCategory { column: b, .. })
        | (Warning::Imputed { column: a, .. }, Warning::Imputed { column: b, .. }) => a == b,
        _ => false,
    }
}

impl MethodArg {
    fn with(self, draws: usize, seed: u64) -> Method {
        match self {
            Self::Mean => Method::Mean,
            Self::MonteCarlo => Method::MonteCarlo { draws, seed, layer_noise: true },
            Self::Moments => Method::Moments { covariance: CovarianceRule::default() },
            Self::Linearised => Method::Linearised,
        }
    }
}

/// Names of target columns, or of classes.
pub fn target_names(encoding: &Encoding, model: &Model) -> Vec<String> {
    match &encoding.target {
        Some(TargetColumns::Regression { columns, .. }) => columns.clone(),
        Some(TargetColumns::Classification { classes, .. }) => classes.clone(),
        None => (0..model.n_targets()).map(|k| k.to_string()).collect(),
    }
}

/// Predictions as columns.
struct PredictionTable<'a> {
    model: &'a Model,
    names: Vec<String>,
    method: Method,
    coverage: f64,
}

impl PredictionTable<'_> {
    fn columns(&self, features: MatRef<'_, f64>) -> Result<Vec<Column>> {
        let row = |matrix: &Mat<f64>, k: usize| (0..matrix.ncols()).map(|j| matrix[(k, j)]).collect();
        if matches!(self.model.task(), Task::Classification { .. }) {
            let probabilities = self.model.predict_probabilities_by(features, self.method)?;
            let best = |j: usize| {
                let likelier = |best: usize, k: usize| {
                    if probabilities[(k, j)] > probabilities[(best, j)] { k } else { best }
                };
                Some(self.names[(1..probabilities.nrows()).fold(0, likelier)].as_str())
            };
            let classes = Column::texts("class", (0..features.ncols()).map(best).collect());
            let each = self.names.iter().enumerate();
            let probability = |(k, class): (usize, &String)| {
                Column::numbers(format!("probability_{class}"), row(&probabilities, k))
            };
            return Ok(std::iter::once(classes).chain(each.map(probability)).collect());
        }
        let predictive = self.model.predict_by(features, self.method)?;
        let (lower, upper) = predictive.interval(self.coverage)?;
        let roots = |variance: Mat<f64>| {
            Mat::from_fn(variance.nrows(), variance.ncols(), |k, j| variance[(k, j)].sqrt())
        };
        let quantities = [
            ("mean", predictive.mean()),
            ("std", predictive.std()),
            ("aleatoric_std", roots(predictive.aleatoric_variance())),
            ("epistemic_std", roots(predictive.epistemic_variance())),
            ("lower", lower),
            ("upper", upper),
        ];
        let several = self.names.len() > 1;
        let mut columns = Vec::new();
        for (k, name) in self.names.iter().enumerate() {
            for (quantity, values) in &quantities {
                let title = if several { format!("{name}_{quantity}") } else { (*quantity).to_owned() };
                columns.push(Column::numbers(title, row(values, k)));
            }
        }
        Ok(columns)
    }
}
