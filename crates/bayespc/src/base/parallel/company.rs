//! A second thread that stays awake while a batch is learned.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::Yield;

/// Whether a thread is kept awake somewhere in the process.
static AWAKE: AtomicBool = AtomicBool::new(false);

/// Do `work`; if `wanted`, a second thread stays awake for its parallel parts all the while. A batch has several
/// such parts of a few hundred microseconds, and waking a thread that went to sleep in between may take as long.
/// One thread at a time is kept awake so: where networks train side by side, all threads are busy anyway.
pub(crate) fn with_company<R>(wanted: bool, work: impl FnOnce() -> R) -> R {
    if !wanted || rayon::current_num_threads() < 2 || AWAKE.swap(true, Ordering::AcqRel) {
        return work();
    }
    let done = AtomicBool::new(false);
    rayon::in_place_scope(|scope| {
        scope.spawn(|_| {
            while !done.load(Ordering::Acquire) {
                if rayon::yield_now() != Some(Yield::Executed) {
                    std::hint::spin_loop();
                }
            }
        });
        let _company = Company { done: &done, awake: &AWAKE };
        work()
    })
}

/// Company of the thread at work. It ends on drop, hence also when the work panics: the other thread must not wait
/// for ever.
struct Company<'a> {
    /// Tells the other thread to leave.
    done: &'a AtomicBool,
    /// Says that nobody is kept awake any more.
    awake: &'a AtomicBool,
}

impl Drop for Company<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        self.awake.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::join_if;
    use super::*;

    #[test]
    fn company_changes_no_result_ends_with_the_work_and_comes_again() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.install(|| {
            for _ in 0..3 {
                let sum: u64 = with_company(true, || {
                    (0..50).map(|i| join_if(true, || i, || 2 * i)).map(|(a, b)| a + b).sum()
                });
                assert_eq!(sum, 3 * 49 * 50 / 2);
            }
        });
    }

    #[test]
    fn company_leaves_when_the_work_panics() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let panics = || pool.install(|| with_company(true, || panic!("as it should")));
        let outcome: std::thread::Result<()> = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics));
        assert!(outcome.is_err());
        assert_eq!(pool.install(|| with_company(true, || 1)), 1);
    }
}
