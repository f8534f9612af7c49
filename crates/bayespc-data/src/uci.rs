//! The six regression data sets of the UCI benchmark as matrices.
//!
//! A table in the benchmark's own form (`data.csv`) must hold exactly the benchmark's values in the
//! benchmark's order, else the standard splits would mean something else; a published file must be
//! the published bytes, and is converted.

use std::io::Read;
use std::path::Path;

use faer::Mat;
use flate2::read::GzDecoder;

use crate::catalogue::{DatasetInfo, catalogue};
use crate::convert::{benchmark_rows, check_shape, text_rows};
use crate::error::FormatError;
use crate::fetch::{Progress, Remote, sha256};
use crate::source::{DataSource, Location};
use crate::{Error, Result};

/// A regression data set, in its original units.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Dataset {
    /// Short name.
    pub name: String,
    /// One column per sample, `d × n`.
    pub features: Mat<f64>,
    /// One column per sample, `1 × n`.
    pub targets: Mat<f64>,
    /// Names of the rows of `features`.
    pub feature_names: Vec<String>,
    /// Name of the row of `targets`.
    pub target_name: String,
}

/// Benchmark tables that are part of the program: name of the data set, gzipped CSV with a header.
static BUILT_IN: [(&str, &[u8]); 1] = [("wine", include_bytes!("../built_in/winequality-red.csv.gz"))];

/// Loads one of the [`catalogue`]'s data sets from wherever `source` finds it first.
///
/// `progress` is called while a file is downloaded, and not at all otherwise.
pub fn load_uci(name: &str, source: &DataSource, progress: Progress<'_>) -> Result<Dataset> {
    let info = find(name)?;
    let tables = table_names(info);
    if source.find(&tables).is_none() && source.find(&published_names(info)).is_none() {
        match builtin(name) {
            Err(Error::NotBuiltIn { .. }) => {}
            found => return found,
        }
    }
    let candidates = [tables, published_names(info)].concat();
    let published = &info.published;
    let remote =
        Remote { file: published.file, sha256: published.sha256, urls: source.addresses(published.urls) };
    let path = source.obtain(&candidates, &remote, &format!("uci/{name}"), progress)?;
    let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
    if path.ends_with(published.file) {
        from_published(info, &bytes, &path)
    } else {
        from_table(info, &bytes, &path)
    }
}

/// Loads a data set that is part of the program.
///
/// The red-wine table is (1599 rows, CC BY 4.0, see `built_in/README.md`); any other name gives
/// [`Error::NotBuiltIn`] or [`Error::UnknownDataset`].
pub fn builtin(name: &str) -> Result<Dataset> {
    let info = find(name)?;
    let (_, bytes) = BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| Error::NotBuiltIn { name: name.to_owned() })?;
    let path = Path::new("the built-in table");
    let mut table = Vec::new();
    GzDecoder::new(*bytes).read_to_end(&mut table).map_err(Error::io(path))?;
    from_table(info, &table, path)
}

/// Where [`load_uci`] would take a data set from.
pub fn locate_uci(name: &str, source: &DataSource) -> Result<Location> {
    let info = find(name)?;
    Ok(source.locate(&[table_names(info), published_names(info)].concat(), info.published.urls))
}

fn find(name: &str) -> Result<&'static DatasetInfo> {
    catalogue().iter().find(|info| info.name == name).ok_or_else(|| Error::UnknownDataset {
        name: name.to_owned(),
        known: catalogue().iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
    })
}

fn table_names(info: &DatasetInfo) -> Vec<String> {
    let name = info.name;
    [
        format!("uci/{name}/data.csv"),
        format!("{name}/data.csv"),
        format!("uci/{name}.csv"),
        format!("{name}.csv"),
    ]
    .into()
}

fn published_names(info: &DatasetInfo) -> Vec<String> {
    let (name, file) = (info.name, info.published.file);
    [format!("uci/{name}/{file}"), format!("{name}/{file}"), file.to_owned()].into()
}

fn from_published(info: &DatasetInfo, bytes: &[u8], path: &Path) -> Result<Dataset> {
    let found = sha256(bytes);
    if found != info.published.sha256 {
        let expected = info.published.sha256.to_owned();
        return Err(Error::Checksum { path: path.to_owned(), found, expected });
    }
    let rows = benchmark_rows(info, bytes).map_err(format_error(path))?;
    Ok(dataset(info, &rows))
}

fn from_table(info: &DatasetInfo, bytes: &[u8], path: &Path) -> Result<Dataset> {
    let rows = text_rows(bytes, 1, |line| line.split(',')).map_err(format_error(path))?;
    check_shape(&rows, info.rows, info.features.len() + 1).map_err(format_error(path))?;
    // Adding zero turns −0 into 0.
    let values: Vec<u8> = rows.iter().flatten().flat_map(|x| (x + 0.0).to_le_bytes()).collect();
    if sha256(&values) != info.values_sha256 {
        return Err(Error::NotBenchmark { file: path.display().to_string(), name: info.name });
    }
    Ok(dataset(info, &rows))
}

fn dataset(info: &DatasetInfo, rows: &[Vec<f64>]) -> Dataset {
    let d = info.features.len();
    Dataset {
        name: info.name.to_owned(),
        features: Mat::from_fn(d, rows.len(), |i, j| rows[j][i]),
        targets: Mat::from_fn(1, rows.len(), |_, j| rows[j][d]),
        feature_names: info.features.iter().map(|&name| name.to_owned()).collect(),
        target_name: info.target.to_owned(),
    }
}

fn format_error(path: &Path) -> impl FnOnce(FormatError) -> Error + '_ {
    move |problem| Error::Format { file: path.display().to_string(), problem }
}
