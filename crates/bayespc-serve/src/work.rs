//! Room for requests: so many are computed at once, so many may wait, and the others are told to come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::problem::Problem;

/// Counts requests and computations.
#[derive(Clone)]
pub struct Work {
    /// One permit for each computation at a time.
    computing: Arc<Semaphore>,
    /// Requests that have been let in and are not answered yet.
    inside: Arc<AtomicUsize>,
    /// How many may be.
    room: usize,
    patience: Duration,
}

/// A request that has been let in.
pub struct Admitted(Arc<AtomicUsize>);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Work {
    pub fn new(computations: usize, queue: usize, patience: Duration) -> Self {
        let computations = computations.max(1);
        Self {
            computing: Arc::new(Semaphore::new(computations)),
            inside: Arc::default(),
            room: computations + queue,
            patience,
        }
    }

    /// Requests inside.
    pub fn inside(&self) -> usize {
        self.inside.load(Ordering::Acquire)
    }

    /// Let a request in, before its body is read: bodies take memory.
    pub fn admit(&self) -> Result<Admitted, Problem> {
        let enter = |inside: usize| (inside < self.room).then_some(inside + 1);
        match self.inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter) {
            Ok(_) => Ok(Admitted(self.inside.clone())),
            Err(inside) => {
                Err(Problem::busy(format!("{inside} requests are waiting or computed: come back later")))
            }
        }
    }

    /// Compute, when it is the request's turn. What takes too long goes on, and counts, until it is done; whoever asked
    /// hears of it before that.
    pub async fn run<T: Send + 'static>(
        &self,
        admitted: Admitted,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let late = || {
            Problem::busy(format!(
                "this took longer than {} s: ask for fewer rows",
                self.patience.as_secs_f64()
            ))
        };
        let end = Instant::now() + self.patience;
        let permit = timeout_at(end, self.computing.clone().acquire_owned())
            .await
            .map_err(|_| late())?
            .map_err(|_| Problem::defect("the work is closed"))?;
        let task = tokio::task::spawn_blocking(move || {
            let result = compute();
            drop((permit, admitted));
            result
        });
        match timeout_at(end, task).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => {
                Err(Problem::defect("the computation broke down; please report it with the request"))
            }
            Err(_) => Err(late()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn who_finds_no_room_is_told_so_and_room_comes_back() {
        let work = Work::new(1, 1, Duration::from_secs(5));
        let (release, wait) = mpsc::channel::<()>();
        let first = work.admit().unwrap();
        let second = work.admit().unwrap();
        assert_eq!(work.admit().err().unwrap().status, StatusCode::SERVICE_UNAVAILABLE);
        let running = tokio::spawn({
            let work = work.clone();
            async move { work.run(first, move || wait.recv().is_ok()).await }
        });
        release.send(()).unwrap();
        assert!(running.await.unwrap().unwrap());
        drop(second);
        assert_eq!(work.inside(), 0);
        assert!(work.admit().is_ok());
    }

    #[tokio::test]
    async fn what_takes_too_long_is_answered_and_holds_its_place_until_it_is_done() {
        let work = Work::new(1, 0, Duration::from_millis(50));
        let (release, wait) = mpsc::channel::<()>();
        let problem = work.run(work.admit().unwrap(), move || wait.recv().is_ok()).await.unwrap_err();
        assert_eq!(problem.status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(work.admit().is_err());
        release.send(()).unwrap();
        while work.inside() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(work.run(work.admit().unwrap(), || 3).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_computation_that_breaks_down_is_a_defect_and_leaves_its_place() {
        let work = Work::new(1, 0, Duration::from_secs(5));
        let problem =
            work.run(work.admit().unwrap(), || panic!("on purpose")).await.map(|(): ()| ()).unwrap_err();
        assert_eq!(problem.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(work.inside(), 0);
    }
}
