//! Threads that work for Python, and a border that no panic crosses.
//!
//! A child that was forked has none of its parent's threads: a pool that survived into it would wait for ever. So every
//! process has a pool of its own, made when it is first needed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool, and the process it belongs to.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// This process's pool. The interpreter is attached, so no fork can happen while the lock is held.
fn pool(_py: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    let mut slot = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let own = std::process::id();
    match slot.take() {
        Some((process, pool)) if process == own => {
            *slot = Some((process, Arc::clone(&pool)));
            return Ok(pool);
        }
        // Dropping the parent's pool would wait for threads that are not here.
        Some(parent) => std::mem::forget(parent),
        None => {}
    }
    let pool = ThreadPoolBuilder::new()
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
    let pool = Arc::new(pool);
    *slot = Some((own, Arc::clone(&pool)));
    Ok(pool)
}

/// Work on this process's pool. It may be called from any thread, and a panic becomes an exception.
pub struct Worker(Arc<ThreadPool>);

impl Worker {
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        pool(py).map(Self)
    }

    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> PyResult<R> {
        guarded(|| self.0.install(work))
    }
}

/// Run `work` on the pool, without the interpreter.
pub fn run<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    let worker = Worker::new(py)?;
    py.detach(|| worker.run(work))
}

/// Run `work` on the caller's own thread, without the interpreter: for what asks for no other.
pub fn alone<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    py.detach(|| guarded(work))
}

/// Run `work`; a panic becomes an exception that says it is a defect.
fn guarded<R>(work: impl FnOnce() -> R) -> PyResult<R> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| defect(panic.as_ref()))
}

fn defect(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    PyRuntimeError::new_err(format!("a defect in bayespc, please report it: {text}"))
}

/// A defect on purpose, to try the border.
#[pyfunction(name = "_panic_for_tests")]
pub fn panic_for_tests(py: Python<'_>) -> PyResult<()> {
    run(py, || panic!("on purpose"))
}
