//! `bayespc predict`: a table of predictions, with their uncertainty, for the rows of another table.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bayespc::network::CovarianceRule;
use bayespc::prediction::Method;
use bayespc::{Model, Task};
use bayespc_data::{Encoding, ReadOptions, RowBatches, TargetColumns, Warning, catalogue};
use clap::{Args, ValueEnum};
use faer::MatRef;

use crate::failure::usage;
use crate::fit::ENCODING_NOTE;
use crate::input;
use crate::output::{Files, note};
use crate::{interrupt, threads};

/// Rows predicted at a time: few enough for memory, many enough for speed.
const BATCH: usize = 4096;

/// Predict the rows of a table.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc predict rent.safetensors new-flats.csv --out predictions.csv
  bayespc predict rent.safetensors new-flats.csv --coverage 0.5 --method monte-carlo --draws 100

Columns are found by name, in any order; the target may be missing. For values the result has the columns
mean, std, aleatoric_std (noise), epistemic_std (what more data would take away), lower and upper (the central
interval of --coverage), with the target's name in front if there are several; for classes it has the class
and one probability column per class.")]
pub struct PredictArgs {
    /// Model that `bayespc fit` wrote
    model: PathBuf,
    /// A CSV or Parquet file with a header, or a data set's name
    data: String,
    /// CSV file to write; standard output if not given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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
    #[arg(long, value_name = "N", default_value_t = 0)]
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

/// Read a model, with an error that names the file.
pub fn read_model(path: &Path) -> Result<Model> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read model {}", path.display()))?;
    Model::from_bytes(&bytes)
        .with_context(|| format!("{} is not a model that can be used; fit it again", path.display()))
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
    if let Some(out) = out {
        let written = out.path().display().to_string();
        let mut draft = out.draft()?;
        write_predictions(args, &encoding, &table, &mut draft)?;
        draft.finish()?;
        note(&format!("predictions written to {written}"));
        return Ok(());
    }
    let mut out = io::stdout().lock();
    write_predictions(args, &encoding, &table, &mut out)?;
    Ok(out.flush()?)
}

fn write_predictions(
    args: &PredictArgs,
    encoding: &Encoding,
    table: &PredictionTable<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    let mut warnings = Warnings::default();
    let mut header = Some(table.header());
    let mut put = |features: MatRef<'_, f64>| -> Result<()> {
        interrupt::check()?;
        let rows = table.rows(features)?;
        let mut writer = csv::Writer::from_writer(Vec::new());
        if let Some(header) = header.take() {
            writer.write_record(&header)?;
        }
        for row in &rows {
            writer.write_record(row)?;
        }
        let text = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        Ok(out.write_all(&text)?)
    };
    let is_name = catalogue().iter().any(|info| info.name == args.data);
    if is_name || !Path::new(&args.data).is_file() {
        let source = input::load(&args.data, args.folder.as_deref(), &ReadOptions::default())?;
        let encoded = encoding.transform(&source.table)?;
        warnings.add(encoded.warnings);
        put(encoded.features.as_ref())?;
    } else {
        let mut n_rows = 0;
        for batch in RowBatches::open(Path::new(&args.data), encoding, BATCH)? {
            let batch = batch?;
            n_rows += batch.features.ncols();
            warnings.add(batch.warnings);
            put(batch.features.as_ref())?;
        }
        if n_rows == 0 {
            bail!("{} has a header but no rows", args.data);
        }
    }
    warnings.tell();
    Ok(())
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

/// Predictions as rows of text.
struct PredictionTable<'a> {
    model: &'a Model,
    names: Vec<String>,
    method: Method,
    coverage: f64,
}

impl PredictionTable<'_> {
    fn header(&self) -> Vec<String> {
        if matches!(self.model.task(), Task::Classification { .. }) {
            let probabilities = self.names.iter().map(|class| format!("probability_{class}"));
            return std::iter::once("class".to_owned()).chain(probabilities).collect();
        }
        let quantities = ["mean", "std", "aleatoric_std", "epistemic_std", "lower", "upper"];
        let several = self.names.len() > 1;
        let column = |name: &str, quantity: &str| {
            if several { format!("{name}_{quantity}") } else { quantity.to_owned() }
        };
        self.names.iter().flat_map(|name| quantities.map(|quantity| column(name, quantity))).collect()
    }

    fn rows(&self, features: MatRef<'_, f64>) -> Result<Vec<Vec<String>>> {
        let n = features.ncols();
        // Shortest text that reads back as the same number.
        let text = |value: f64| format!("{value:?}");
        if matches!(self.model.task(), Task::Classification { .. }) {
            let probabilities = self.model.predict_probabilities_by(features, self.method)?;
            let row = |j: usize| {
                let column: Vec<f64> = probabilities.col(j).iter().copied().collect();
                let best =
                    (1..column.len()).fold(0, |best, k| if column[k] > column[best] { k } else { best });
                std::iter::once(self.names[best].clone()).chain(column.into_iter().map(text)).collect()
            };
            return Ok((0..n).map(row).collect());
        }
        let predictive = self.model.predict_by(features, self.method)?;
        let (lower, upper) = predictive.interval(self.coverage)?;
        let (mean, std) = (predictive.mean(), predictive.std());
        let (aleatoric, epistemic) = (predictive.aleatoric_variance(), predictive.epistemic_variance());
        let row = |j: usize| {
            (0..mean.nrows())
                .flat_map(|k| {
                    [
                        mean[(k, j)],
                        std[(k, j)],
                        aleatoric[(k, j)].sqrt(),
                        epistemic[(k, j)].sqrt(),
                        lower[(k, j)],
                        upper[(k, j)],
                    ]
                    .map(text)
                })
                .collect()
        };
        Ok((0..n).map(row).collect())
    }
}
