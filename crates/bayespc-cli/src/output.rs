//! Where results go: standard output, or files that are there whole or not at all, and never in place of what
//! was read.

use std::borrow::Cow;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::NamedTempFile;

use crate::drafts::{draft_in, drafts};
use crate::failure::usage;

/// The files of one command. Each file to be written is compared with all that came before it: results never
/// replace what was read, nor each other.
#[derive(Debug, Default)]
pub struct Files(Vec<(String, Identity)>);

impl Files {
    /// Remember a file that is read, in words that end "… is" in a message.
    pub fn reads(&mut self, what: impl Into<String>, path: &Path) {
        self.0.extend(Identity::of(path).map(|identity| (what.into(), identity)));
    }

    /// The file of an output option, if it was given: checked against all files so far, and that it can be
    /// written, long before there is something to write.
    pub fn output(&mut self, option: &str, path: Option<&Path>) -> Result<Option<Output>> {
        let Some(path) = path else { return Ok(None) };
        let identity = Identity::of(path);
        if let Some((what, _)) = self.0.iter().find(|(_, known)| Some(known) == identity.as_ref()) {
            return Err(usage(format!(
                "{option} {} is {what}, which would be lost: give another name",
                path.display()
            )));
        }
        let output = Output::check(path)?;
        self.0.extend(identity.map(|identity| (format!("the file of {option} too"), identity)));
        Ok(Some(output))
    }
}

/// Refuse a folder for results that is a folder of something else.
pub fn refuse_same_folder(option: &str, folder: &Path, what: &str, other: &Path) -> Result<()> {
    match (folder.canonicalize(), other.canonicalize()) {
        (Ok(a), Ok(b)) if a == b => {
            Err(usage(format!("{option} {} is {what}: give another folder", folder.display())))
        }
        _ => Ok(()),
    }
}

/// What a path leads to: a file, whatever it is called, or the name that a new one would get.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    #[cfg(unix)]
    File {
        device: u64,
        inode: u64,
    },
    Name(PathBuf),
}

impl Identity {
    /// Devices and pipes have none: they keep nothing that could be lost.
    fn of(path: &Path) -> Option<Self> {
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => Self::of_file(path, &found),
            Ok(_) => None,
            Err(_) => Some(Self::Name(folder_of(path).canonicalize().ok()?.join(path.file_name()?))),
        }
    }

    /// Device and inode see through links of both kinds.
    #[cfg(unix)]
    #[allow(clippy::unnecessary_wraps, reason = "elsewhere a file may have no canonical name")]
    fn of_file(_path: &Path, found: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(Self::File { device: found.dev(), inode: found.ino() })
    }

    #[cfg(not(unix))]
    fn of_file(path: &Path, _found: &Metadata) -> Option<Self> {
        path.canonicalize().ok().map(Self::Name)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file that can be written, once there is something to write.
#[derive(Clone, Debug)]
pub struct Output {
    path: PathBuf,
    /// The same, with links followed: a link stays a link.
    target: PathBuf,
    /// A device or pipe, which is written to as it is.
    special: bool,
}

impl Output {
    fn check(path: &Path) -> Result<Self> {
        let name = path.display();
        let found = std::fs::metadata(path).ok();
        if found.as_ref().is_some_and(Metadata::is_dir) {
            bail!("{name} is a folder: give the name of a file");
        }
        if found.as_ref().is_some_and(|found| found.permissions().readonly()) {
            bail!("cannot write {name}: it is write-protected");
        }
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = folder_of(&target);
        if !folder.is_dir() {
            bail!("cannot write {name}: there is no folder {}; make it first", folder.display());
        }
        let special = found.as_ref().is_some_and(|found| !found.is_file());
        if !special {
            // Gone at once: a draft that waits for its content would be left behind by whatever ends the process.
            draft_in(folder).with_context(|| format!("cannot write {name}"))?;
        }
        Ok(Self { path: path.to_owned(), target, special })
    }

    /// The file's name, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Start to write; the file takes its name at the end.
    pub fn draft(self) -> Result<Draft> {
        let file = if self.special {
            OpenOptions::new().write(true).open(&self.path).map(DraftFile::Special)
        } else {
            draft_in(folder_of(&self.target)).map(DraftFile::New)
        };
        let file = file.with_context(|| format!("cannot write {}", self.path.display()))?;
        if let DraftFile::New(file) = &file {
            drafts().push(file.path().to_owned());
        }
        Ok(Draft { path: self.target, file })
    }

    /// Write everything at once.
    pub fn write_whole(self, content: &[u8]) -> Result<()> {
        let mut draft = self.draft()?;
        draft.write_all(content).with_context(|| format!("cannot write {}", draft.path.display()))?;
        draft.finish()
    }
}

/// A file half written, which goes away unless it is finished.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    file: DraftFile,
}

#[derive(Debug)]
enum DraftFile {
    New(NamedTempFile),
    Special(File),
}

impl Draft {
    /// Give the file its name, once its content is on the disk.
    pub fn finish(self) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        match self.file {
            DraftFile::Special(mut file) => file.flush().with_context(failed),
            DraftFile::New(file) => {
                file.as_file().sync_all().with_context(failed)?;
                // Kept to the end of the function: nobody ends the process between the two.
                let mut drafts = drafts();
                drafts.retain(|draft| draft != file.path());
                file.persist(&self.path).map_err(|error| error.error).with_context(failed)?;
                Ok(())
            }
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            DraftFile::New(file) => file.write(bytes),
            DraftFile::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            DraftFile::New(file) => file.flush(),
            DraftFile::Special(file) => file.flush(),
        }
    }
}

/// Print text and a line break on standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(printable(text).as_bytes())?;
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
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

/// Text for people, in which control characters are shown and not obeyed: names of columns come from files, and a terminal
/// does what escape sequences in them say.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_command = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(is_command) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_command(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Names and values in two columns.
pub fn two_columns(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect::<Vec<_>>().join("\n")
}
