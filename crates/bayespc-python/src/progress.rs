//! Long work on its own thread, while the caller's thread listens to Python.
//!
//! Python runs signal handlers on its main thread only, and networks train on the threads of a pool: so the
//! caller's thread wakes every 100 ms, lets Python raise what it has to raise, and tells the work to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bayespc::model::{Control, Observer, Progress};
use bayespc::{Error, Result};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;

use crate::pool::Worker;

/// How often Python is asked whether anything happened.
const TICK: Duration = Duration::from_millis(100);

/// What both threads read and write.
#[derive(Default)]
struct Board {
    news: Mutex<Option<Progress>>,
    stop: AtomicBool,
}

impl Observer for &Board {
    fn update(&mut self, progress: &Progress) -> Control {
        *self.news.lock().unwrap_or_else(PoisonError::into_inner) = Some(*progress);
        if self.stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    }
}

/// Run `work` without the interpreter; `watch(stage, share, loss, held_out)` hears of its progress. An interrupt stops
/// the work, and is raised if nothing came of it; any other exception of a signal handler or of `watch` ends it and
/// is raised.
pub fn watched<R: Send>(
    py: Python<'_>,
    watch: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn Observer) -> Result<R> + Send,
) -> PyResult<Result<R>> {
    let board = Board::default();
    let worker = Worker::new(py)?;
    let (result, interrupt, raised) = py.detach(|| {
        thread::scope(|scope| {
            let (finished, news) = sync_channel::<()>(1);
            let (shared, worker) = (&board, &worker);
            let thread = scope.spawn(move || {
                let result = worker.run(|| work(&mut &*shared));
                // Dropping the sender wakes the listener.
                drop(finished);
                result
            });
            let (mut interrupt, mut raised) = (None, None);
            while news.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = Python::attach(|py| listen(py, watch, &board)) {
                    board.stop.store(true, Ordering::Relaxed);
                    if Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                        interrupt = Some(error);
                    } else {
                        raised = Some(error);
                    }
                }
            }
            let result = thread.join().map_err(|_| PyRuntimeError::new_err("a thread of bayespc has died"));
            (result.and_then(|result| result), interrupt, raised)
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    match (result?, interrupt) {
        (Err(Error::Interrupted), Some(interrupt)) => Err(interrupt),
        (result, _) => {
            listen(py, watch, &board)?;
            Ok(result)
        }
    }
}

fn listen(py: Python<'_>, watch: Option<&Py<PyAny>>, board: &Board) -> PyResult<()> {
    py.check_signals()?;
    let news = *board.news.lock().unwrap_or_else(PoisonError::into_inner);
    if let (Some(watch), Some(news)) = (watch, news) {
        watch.call1(py, (news.stage.to_string(), news.share, news.loss, news.held_out))?;
    }
    Ok(())
}
