//! Where results go: standard output, or files that are there whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::NamedTempFile;

/// A file still to be written: a temporary one in the same folder, which takes its name at the end.
pub struct Output {
    path: PathBuf,
    file: NamedTempFile,
}

impl Output {
    /// Check that the file can be written, long before there is something to write.
    pub fn create(path: &Path) -> Result<Self> {
        let name = path.display();
        if path.is_dir() {
            bail!("{name} is a folder: give the name of a file");
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            bail!("cannot write {name}: there is no folder {}; make it first", folder.display());
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".bayespc-").suffix(".part");
        #[cfg(unix)]
        {
            // An ordinary new file, less the user's umask; temporary files are private otherwise.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder).with_context(|| format!("cannot write {name}"))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Give the file its name, once its content is on the disk.
    pub fn finish(self) -> Result<()> {
        let name = self.path.display().to_string();
        let failed = || format!("cannot write {name}");
        self.file.as_file().sync_all().with_context(failed)?;
        self.file.persist(&self.path).map_err(|error| error.error).with_context(failed)?;
        Ok(())
    }

    /// Write everything at once.
    pub fn write_whole(mut self, content: &[u8]) -> Result<()> {
        self.file.write_all(content).with_context(|| format!("cannot write {}", self.path.display()))?;
        self.finish()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Print text and a line break on standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Print a value as JSON.
pub fn print_json(value: &serde_json::Value) -> Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Tell the user something that is not the result.
pub fn note(text: &str) {
    // Whoever closed standard error does not want to know.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Names and values in two columns.
pub fn two_columns(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect::<Vec<_>>().join("\n")
}
