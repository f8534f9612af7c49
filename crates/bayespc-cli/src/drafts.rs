//! Temporary files beside those they are to become, and what is left of them when a process is killed.
//!
//! Whoever writes a draft holds a lock on it, which ends with the process. A draft that nobody holds was left behind:
//! the next command that writes to the folder takes it away.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

const PREFIX: &str = ".bayespc-";
const SUFFIX: &str = ".part";

/// Drafts that would be left behind if the process ended now.
static DRAFTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The drafts of this process. While they are held, no draft is begun or finished.
pub fn drafts() -> MutexGuard<'static, Vec<PathBuf>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// End the process from whatever thread, and take half-written files along.
pub fn exit_without_drafts(code: i32) -> ! {
    // Kept to the end of the process.
    let drafts = drafts();
    for draft in &*drafts {
        // What cannot be removed stays; there is nobody left to tell.
        let _ = std::fs::remove_file(draft);
    }
    std::process::exit(code)
}

/// A new temporary file in a folder, from which what others left behind is gone.
pub fn draft_in(folder: &Path) -> io::Result<NamedTempFile> {
    remove_abandoned(folder);
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        // An ordinary new file, less the user's umask; temporary files are private otherwise.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    loop {
        let draft = builder.tempfile_in(folder)?;
        // Where files cannot be locked, nothing is taken away either.
        let _ = draft.as_file().try_lock();
        // Between its making and its lock it looked abandoned to others.
        if draft.path().exists() {
            return Ok(draft);
        }
    }
}

/// Take away drafts whose process is no more. What cannot be looked at stays.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_draft = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_draft && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_what_another_writes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(".bayespc-left.part");
        let other = folder.path().join("table.part");
        std::fs::write(&left, "half a mod").unwrap();
        std::fs::write(&other, "not ours").unwrap();
        let first = draft_in(folder.path()).unwrap();
        assert!(!left.exists() && other.exists());
        let second = draft_in(folder.path()).unwrap();
        assert!(first.path().exists() && second.path().exists());
    }
}
