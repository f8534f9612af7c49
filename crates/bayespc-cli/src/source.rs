//! Where a table comes from: a file, standard input, or a data set by its name.

use std::path::Path;

use anyhow::{Context, Result, bail};
use bayespc_data::{
    DataSource, Dataset, DatasetInfo, ImageSet, Kinds, Location, ReadOptions, Table, catalogue, load_uci,
    locate_images, locate_uci,
};

use crate::failure::did_you_mean;
use crate::output::{Files, note};
use crate::progress;

/// What stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// A table with what is known about it.
pub struct Source {
    /// Short name for messages and reports.
    pub name: String,
    /// Its rows.
    pub table: Table,
    /// The named data set it is, if it is one.
    pub benchmark: Option<&'static DatasetInfo>,
}

/// Remember the files that data are read from: those of a named data set where they lie on this machine.
pub fn note_files(files: &mut Files, data: &str, folder: Option<&Path>) {
    let source = data_source(folder);
    let places = match locate_uci(data, &source) {
        Ok(place) => vec![place],
        Err(_) => match ImageSet::named(data) {
            Some(set) => locate_images(set, &source),
            None => return files.reads("the data to read", Path::new(data)),
        },
    };
    for place in places {
        if let Location::Folder(path) | Location::Cache(path) = place {
            files.reads("the data to read", &path);
        }
    }
}

/// A file, or a data set by name.
pub fn load(data: &str, folder: Option<&Path>, options: &ReadOptions) -> Result<Source> {
    if let Some(info) = catalogue().iter().find(|info| info.name == data) {
        let dataset =
            progress::downloading(info.name, |report| load_uci(info.name, &data_source(folder), report))?;
        return Ok(Source { name: data.to_owned(), table: table_of(&dataset)?, benchmark: Some(info) });
    }
    if ImageSet::named(data).is_some() {
        bail!("{data} can be fitted and evaluated; to predict images, give a table with a column per pixel");
    }
    let path = Path::new(data);
    if path.is_dir() {
        bail!("{data} is a folder: give the name of a file with a table");
    }
    if data != STANDARD_INPUT && !path.exists() {
        let names = catalogue()
            .iter()
            .map(|info| info.name)
            .chain(ImageSet::ALL.map(ImageSet::name))
            .collect::<Vec<_>>();
        bail!(
            "{data} is neither a file nor a data set{} (data sets: {})",
            did_you_mean(data, names.iter().copied().chain(neighbours(path).iter().map(String::as_str))),
            names.join(", ")
        );
    }
    let table = Table::read_with(path, options)?;
    tell_remarks(&table);
    Ok(Source { name: short_name(data), table, benchmark: None })
}

/// Say what was decided about a file that its owner might decide otherwise.
pub fn tell_remarks(table: &Table) {
    for remark in table.remarks() {
        note(&format!("note: {remark}"));
    }
}

/// A file's name without folders and all that tells its format.
pub fn short_name(data: &str) -> String {
    if data == STANDARD_INPUT {
        return "standard input".to_owned();
    }
    let stem = |name: &str| Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let once = stem(data).unwrap_or_else(|| data.to_owned());
    let is_packed = Path::new(data).extension().is_some_and(|extension| {
        ["gz", "zst", "zstd"].iter().any(|packed| extension.eq_ignore_ascii_case(packed))
    });
    if is_packed { stem(&once).unwrap_or(once) } else { once }
}

/// Files beside one that is not there.
fn neighbours(path: &Path) -> Vec<String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(listed).into_iter().flatten().flatten();
    entries.map(|entry| folder.join(entry.file_name()).display().to_string()).collect()
}

/// Where named data sets are looked for.
pub fn data_source(folder: Option<&Path>) -> DataSource {
    let source = DataSource::from_env();
    DataSource { folder: folder.map(Path::to_owned).or(source.folder.clone()), ..source }
}

/// A named data set as a table; numbers written in full are read back unchanged.
fn table_of(dataset: &Dataset) -> Result<Table> {
    let header = format!("{},{}", dataset.feature_names.join(","), dataset.target_name);
    let line = |j: usize| {
        let values = dataset.features.col(j).iter().chain(dataset.targets.col(j).iter());
        values.map(|value| format!("{value:?}")).collect::<Vec<_>>().join(",")
    };
    let lines: Vec<String> = std::iter::once(header).chain((0..dataset.features.ncols()).map(line)).collect();
    Table::from_csv(&dataset.name, lines.join("\n").as_bytes(), &Kinds::new())
        .with_context(|| format!("data set {} cannot be made a table", dataset.name))
}
