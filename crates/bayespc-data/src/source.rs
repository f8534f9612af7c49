//! Where data sets are looked for: a folder, the user's cache, then the network.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fetch::{self, Progress, Remote};
use crate::{Error, Result};

/// Environment variable that names a folder of data sets.
pub const DATA_FOLDER_VARIABLE: &str = "BAYESPC_DATA";

/// Where to look for data sets, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSource {
    /// A folder that holds `uci/<name>/data.csv`, `<name>.csv` or the files as published, and
    /// `mnist/*.gz`, `fashion-mnist/*.gz`.
    pub folder: Option<PathBuf>,
    /// The folder that downloads are kept in.
    pub cache: PathBuf,
    /// Whether to download what neither folder holds.
    pub download: bool,
    /// An address to ask instead of the official hosts, under the same paths.
    pub mirror: Option<String>,
    /// How long a server may be silent.
    pub stall: Duration,
}

/// Where a data set would be taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// From the given folder.
    Folder(PathBuf),
    /// From the user's cache.
    Cache(PathBuf),
    /// From the first of these addresses that delivers it.
    Download(Vec<String>),
    /// From nowhere: it is in no folder, and downloading is off.
    Nowhere,
}

impl DataSource {
    /// The folder of `BAYESPC_DATA`, the user's cache, and the network.
    pub fn from_env() -> Self {
        let cache = directories::ProjectDirs::from("", "", "bayespc")
            .map_or_else(|| std::env::temp_dir().join("bayespc"), |dirs| dirs.cache_dir().to_owned());
        Self {
            folder: std::env::var_os(DATA_FOLDER_VARIABLE)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from),
            cache,
            download: true,
            mirror: None,
            stall: Duration::from_secs(30),
        }
    }

    /// The first of `candidates` that exists, in the folder and then in the cache.
    pub(crate) fn find(&self, candidates: &[String]) -> Option<Location> {
        let first_in =
            |root: &Path| candidates.iter().map(|name| root.join(name)).find(|path| path.is_file());
        let in_folder = self.folder.as_deref().and_then(first_in).map(Location::Folder);
        in_folder.or_else(|| first_in(&self.cache).map(Location::Cache))
    }

    /// Like [`find`](Self::find), then the addresses if downloading is on.
    pub(crate) fn locate(&self, candidates: &[String], urls: &[&str]) -> Location {
        self.find(candidates).unwrap_or_else(|| {
            if self.download { Location::Download(self.addresses(urls)) } else { Location::Nowhere }
        })
    }

    /// A file that is in one of the folders, or is fetched into the cache's folder `under`.
    pub(crate) fn obtain(
        &self,
        candidates: &[String],
        remote: &Remote<'_>,
        under: &str,
        progress: Progress<'_>,
    ) -> Result<PathBuf> {
        let put = self.cache.join(under);
        match self.find(candidates) {
            Some(Location::Folder(path) | Location::Cache(path)) => Ok(path),
            _ if self.download => fetch::fetch(remote, &put, self.stall, progress),
            _ => {
                let folders = self.folder.iter().chain(std::iter::once(&self.cache));
                let looked = folders.map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
                Err(Error::NotFound { file: remote.file.to_owned(), looked, put })
            }
        }
    }

    /// The addresses, on the mirror if there is one.
    pub(crate) fn addresses(&self, urls: &[&str]) -> Vec<String> {
        let Some(mirror) = &self.mirror else {
            return urls.iter().map(|&url| url.to_owned()).collect();
        };
        let path = |url: &str| url.splitn(4, '/').nth(3).unwrap_or_default().to_owned();
        urls.iter().map(|url| format!("{}/{}", mirror.trim_end_matches('/'), path(url))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_asked_under_the_same_path() {
        let source = DataSource { mirror: Some("http://localhost:1/".to_owned()), ..DataSource::from_env() };
        let urls = ["https://archive.ics.uci.edu/static/public/243/yacht+hydrodynamics.zip"];
        assert_eq!(source.addresses(&urls), ["http://localhost:1/static/public/243/yacht+hydrodynamics.zip"]);
    }
}
