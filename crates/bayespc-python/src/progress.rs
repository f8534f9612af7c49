//! Long work on its own thread, while the caller's thread listens to Python.
//!
//! Python runs signal handlers on its main thread only, and members train on the threads of a pool: so the
//! caller's thread wakes every 100 ms, lets Python raise what it has to raise, and tells the work to stop.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use bayespc::model::Progress;
use bayespc::training::Control;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// How often Python is asked whether anything happened.
const TICK: Duration = Duration::from_millis(100);

/// What both threads read and write.
#[derive(Default)]
struct Board {
    done: AtomicU64,
    planned: AtomicU64,
    stop: AtomicBool,
}

impl Progress for &Board {
    fn update(&mut self, done: u64, planned: u64) -> Control {
        self.done.store(done, Ordering::Relaxed);
        self.planned.store(planned, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    }
}

/// Run `work` without the GIL; `watch(done, planned)` hears of its progress. Returns its result and whether
/// the user interrupted it; any other exception of a signal handler or of `watch` ends it and is raised.
pub fn watched<R: Send>(
    py: Python<'_>,
    watch: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn Progress) -> R + Send,
) -> PyResult<(R, bool)> {
    let board = Board::default();
    let (result, interrupted, raised) = py.detach(|| {
        thread::scope(|scope| {
            let (finished, news) = sync_channel::<()>(1);
            let shared = &board;
            let worker = scope.spawn(move || {
                let mut progress = shared;
                let result = work(&mut progress);
                // Dropping the sender wakes the listener.
                drop(finished);
                result
            });
            let (mut interrupted, mut raised) = (false, None);
            while news.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = Python::attach(|py| listen(py, watch, &board)) {
                    board.stop.store(true, Ordering::Relaxed);
                    if Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                        interrupted = true;
                    } else {
                        raised = Some(error);
                    }
                }
            }
            (worker.join().unwrap_or_else(|panic| resume_unwind(panic)), interrupted, raised)
        })
    });
    if let Some(watch) = watch {
        let (done, planned) = (board.done.into_inner(), board.planned.into_inner());
        watch.call1(py, (done, planned))?;
    }
    raised.map_or(Ok((result, interrupted)), Err)
}

fn listen(py: Python<'_>, watch: Option<&Py<PyAny>>, board: &Board) -> PyResult<()> {
    py.check_signals()?;
    if let Some(watch) = watch {
        watch.call1(py, (board.done.load(Ordering::Relaxed), board.planned.load(Ordering::Relaxed)))?;
    }
    Ok(())
}
