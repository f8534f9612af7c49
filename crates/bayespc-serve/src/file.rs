//! Model files and their names.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::Error;

/// A model file, and what the model is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFile {
    /// Name in addresses.
    pub name: String,
    /// The file.
    pub path: PathBuf,
}

impl ModelFile {
    /// From `FILE` or `NAME=FILE`; a file's own name goes without its ending.
    pub fn parse(text: &OsStr) -> Result<Self, Error> {
        let whole = Path::new(text);
        // A file whose name has an equals sign in it is meant by that name.
        let named = if whole.exists() { None } else { text.to_str().and_then(|text| text.split_once('=')) };
        let (name, path) = if let Some((name, path)) = named {
            (name.to_owned(), PathBuf::from(path))
        } else {
            let stem = whole.file_stem().unwrap_or_default().to_string_lossy();
            // What addresses cannot have, names of files may: blanks, for one.
            let plain = |c: char| if is_plain(c) { c } else { '-' };
            (stem.chars().map(plain).collect(), whole.to_owned())
        };
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(Error::Name { name });
        }
        Ok(Self { name, path })
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// What tells whether a file is still the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
    inode: u64,
}

impl Stamp {
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let found = std::fs::metadata(path)?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&found);
        #[cfg(not(unix))]
        let inode = 0;
        Ok(Self { modified: found.modified().ok(), size: found.len(), inode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_files_or_are_given() {
        let parse = |text: &str| ModelFile::parse(OsStr::new(text));
        assert_eq!(parse("models/rent.safetensors").unwrap().name, "rent");
        assert_eq!(parse("my model.safetensors").unwrap().name, "my-model");
        let given = parse("flats=models/rent.safetensors").unwrap();
        assert_eq!((given.name.as_str(), given.path), ("flats", PathBuf::from("models/rent.safetensors")));
        for wrong in ["a/b=rent.safetensors", "=rent.safetensors", "ä=x"] {
            assert!(matches!(parse(wrong), Err(Error::Name { .. })), "{wrong}");
        }
    }
}
