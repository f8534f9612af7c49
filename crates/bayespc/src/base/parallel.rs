//! Work cut into fixed parts, so that the number of threads cannot change a result, and done by one thread where
//! waking another costs more than it saves.

use std::sync::atomic::{AtomicBool, Ordering};

use faer::MatMut;
use rayon::Yield;
use rayon::prelude::*;

use crate::real::Real;

/// Samples of a batch one task takes.
pub(crate) const CHUNK: usize = 64;

/// Columns of a matrix one task fills.
const BLOCK: usize = 112;

/// Multiply-adds of one chunk of samples below which waking a second thread costs more than it saves.
const PARALLEL_FROM: usize = 2_000_000;

/// Whether a batch of `n` samples is worth more than one thread in a network with so many weights.
pub(crate) fn splits_batch(n_weights: usize, n: usize) -> bool {
    n > CHUNK && n_weights * CHUNK > PARALLEL_FROM
}

/// Do `work`; if `wanted`, a second thread stays awake for its parallel parts all the while. A batch has several
/// such parts of a few hundred microseconds, and waking a thread that went to sleep in between may take as long.
/// One thread at a time is kept awake so: where networks train side by side, all threads are busy anyway.
pub(crate) fn with_company<R>(wanted: bool, work: impl FnOnce() -> R) -> R {
    static COMPANY: AtomicBool = AtomicBool::new(false);
    if !wanted || rayon::current_num_threads() < 2 || COMPANY.swap(true, Ordering::AcqRel) {
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
        // Dropped even when `work` panics: the other thread must not wait for ever.
        let _end = SetOnDrop([&done, &COMPANY]);
        work()
    })
}

/// Sets the first and clears the second.
struct SetOnDrop<'a>([&'a AtomicBool; 2]);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0[0].store(true, Ordering::Release);
        self.0[1].store(false, Ordering::Release);
    }
}

/// Both pieces of work, at the same time if `parallel`.
pub(crate) fn join_if<A: Send, B: Send>(
    parallel: bool,
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    if parallel { rayon::join(a, b) } else { (a(), b()) }
}

/// Every item of a slice, at the same time if `parallel`.
pub(crate) fn for_each_if<I: Send>(parallel: bool, items: &mut [I], work: impl Fn(&mut I) + Sync + Send) {
    if parallel {
        items.par_iter_mut().for_each(work);
    } else {
        items.iter_mut().for_each(work);
    }
}

/// Blocks of columns with their first column, at the same time if `parallel`, or all columns as one block.
pub(crate) fn for_each_block_if<T: Real>(
    parallel: bool,
    whole: MatMut<'_, T>,
    work: impl Fn(usize, &mut MatMut<'_, T>) + Sync,
) {
    for_each_columns_if(parallel, BLOCK, whole, work);
}

/// Chunks of samples with their first one, at the same time if `parallel`, or all samples as one chunk.
pub(crate) fn for_each_chunk_if<T: Real>(
    parallel: bool,
    samples: MatMut<'_, T>,
    work: impl Fn(usize, &mut MatMut<'_, T>) + Sync,
) {
    for_each_columns_if(parallel, CHUNK, samples, work);
}

fn for_each_columns_if<T: Real>(
    parallel: bool,
    width: usize,
    mut whole: MatMut<'_, T>,
    work: impl Fn(usize, &mut MatMut<'_, T>) + Sync,
) {
    if !parallel {
        return work(0, &mut whole);
    }
    let mut blocks = Vec::with_capacity(whole.ncols().div_ceil(width));
    let (mut rest, mut start) = (whole, 0);
    while rest.ncols() > width {
        let (block, after) = rest.split_at_col_mut(width);
        blocks.push((start, block));
        (rest, start) = (after, start + width);
    }
    blocks.push((start, rest));
    blocks.into_par_iter().for_each(|(start, mut block)| work(start, &mut block));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_all_columns_once() {
        for parallel in [false, true] {
            let mut whole = faer::Mat::<f64>::zeros(2, 3 * BLOCK + 1);
            for_each_block_if(parallel, whole.as_mut(), |start, block| {
                for j in 0..block.ncols() {
                    block[(1, j)] += (start + j) as f64;
                }
            });
            assert!((0..whole.ncols()).all(|j| whole[(1, j)] == j as f64 && whole[(0, j)] == 0.0));
        }
    }

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
