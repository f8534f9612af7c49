//! Ctrl-C and SIGTERM: long work asks whether to stop, and work that does not ask is ended after a moment.
//!
//! Either way files are left as they were, since results take their names only when they are whole; only a stream
//! keeps what it has learned, and is given longer for it. A second signal ends the command at once; of a server that
//! drains it ends the delay, and a third one the command. Exit codes are those of a shell: 130 after Ctrl-C, 143
//! after SIGTERM.

use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use anyhow::Result;

/// Seconds that work may take to end where something is to be written: a chunk of a stream must be learned first.
const LONG_PATIENCE: u64 = 60;

/// The signal that came, or 0.
static CAUGHT: AtomicI32 = AtomicI32::new(0);

/// Seconds that work may take to end after a signal.
static PATIENCE: AtomicU64 = AtomicU64::new(1);

/// Whether the next SIGTERM starts a delay, or has started it.
static DRAINS: AtomicBool = AtomicBool::new(false);

/// The command was told to stop before it was done.
#[derive(Debug)]
pub struct Interrupted {
    signal: i32,
    /// What was kept all the same.
    kept: Option<String>,
}

impl Interrupted {
    /// What a shell would report.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(u8::try_from(code(self.signal)).unwrap_or(u8::MAX))
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kept.as_deref().unwrap_or("interrupted: files are as they were"))
    }
}

impl std::error::Error for Interrupted {}

/// Whether to stop.
pub fn interrupted() -> bool {
    CAUGHT.load(Ordering::Relaxed) != 0
}

/// An error if it is time to stop.
pub fn check() -> Result<()> {
    match CAUGHT.load(Ordering::Relaxed) {
        0 => Ok(()),
        signal => Err(Interrupted { signal, kept: None }.into()),
    }
}

/// From now on a signal ends work only after a while: what was done so far is to be written.
pub fn wait_for_files() {
    PATIENCE.store(LONG_PATIENCE, Ordering::Relaxed);
}

/// The same after a delay that SIGTERM starts and the next signal ends; Ctrl-C starts none.
#[cfg(feature = "serve")]
pub fn drain(delay: std::time::Duration) {
    PATIENCE.store(LONG_PATIENCE + delay.as_secs(), Ordering::Relaxed);
    DRAINS.store(!delay.is_zero(), Ordering::Relaxed);
}

/// Whether the delay still runs, or has not begun.
#[cfg(feature = "serve")]
pub fn drains() -> bool {
    DRAINS.load(Ordering::Relaxed)
}

/// The error of a command that was told to stop and has kept what it had, in words.
pub fn kept(what: String) -> Result<()> {
    Err(Interrupted { signal: CAUGHT.load(Ordering::Relaxed), kept: Some(what) }.into())
}

fn code(signal: i32) -> i32 {
    128 + signal
}

/// Listen from here on. Elsewhere than on Unix the system ends the command as it always does.
#[cfg(not(unix))]
pub fn listen() -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
pub use unix::listen;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Duration;

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    use super::{CAUGHT, DRAINS, Interrupted, PATIENCE, code, interrupted};
    use crate::drafts::exit_without_drafts;
    use crate::output::note;

    /// Listen from here on.
    pub fn listen() -> io::Result<()> {
        let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal)))?;
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                // Before `CAUGHT`: a delay that has ended must not be seen to begin.
                let drains = (signal == SIGINT || interrupted()) && DRAINS.swap(false, Ordering::Relaxed);
                if CAUGHT.swap(signal, Ordering::Relaxed) != 0 {
                    if drains {
                        continue;
                    }
                    exit_without_drafts(code(signal));
                }
                // Should there be no thread to wait, a second signal still ends the command.
                let _ = thread::Builder::new().spawn(move || {
                    thread::sleep(Duration::from_secs(PATIENCE.load(Ordering::Relaxed)));
                    note(&Interrupted { signal, kept: None }.to_string());
                    exit_without_drafts(code(signal));
                });
            }
        })?;
        Ok(())
    }

    /// Whether our parent wants the signal ignored, as a script's shell does for its background jobs. Where the
    /// system does not say, it is not.
    fn is_ignored(signal: i32) -> bool {
        std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignored_in(&status, signal))
    }

    /// `SigIgn:` and a hexadecimal mask whose lowest bit is signal 1.
    fn ignored_in(status: &str, signal: i32) -> bool {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn ignored_signals_are_read_from_their_mask() {
            let status = "Name:\tbayespc\nSigIgn:\t0000000000000002\nSigCgt:\tffff\n";
            assert!(ignored_in(status, SIGINT) && !ignored_in(status, SIGTERM));
            assert!(!ignored_in("Name:\tbayespc\n", SIGINT) && !ignored_in("SigIgn:\tx\n", SIGINT));
        }
    }
}
