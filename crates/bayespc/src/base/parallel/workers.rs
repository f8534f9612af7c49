//! A batch in chunks whose sums are collected in the samples' order, by workers that keep their buffers.

use rayon::prelude::*;

use super::{CHUNK, splits_batch};

/// Tasks whose buffers exist at the same time: bounds the memory a full batch takes.
const GROUP: usize = 16;

/// Call `work(worker, first sample, samples)` for every chunk of `n` samples, and `collect` with each worker
/// afterwards, in order. Workers are buffers: they are kept for the next batch. `n_weights` is the number of
/// weights of the network, which decides whether threads are worth waking.
pub(crate) fn for_each_worker<W: Send>(
    workers: &mut Vec<W>,
    n: usize,
    n_weights: usize,
    new: impl FnMut() -> W,
    work: impl Fn(&mut W, usize, usize) + Sync + Send,
    mut collect: impl FnMut(&W),
) {
    let n_chunks = n.div_ceil(CHUNK);
    if workers.len() < n_chunks.min(GROUP) {
        workers.resize_with(n_chunks.min(GROUP), new);
    }
    let parallel = splits_batch(n_weights, n);
    for first in (0..n_chunks).step_by(GROUP) {
        let count = GROUP.min(n_chunks - first);
        let task = |(c, worker): (usize, &mut W)| {
            let start = (first + c) * CHUNK;
            work(worker, start, CHUNK.min(n - start));
        };
        if parallel {
            workers[..count].par_iter_mut().enumerate().for_each(task);
        } else {
            workers[..count].iter_mut().enumerate().for_each(task);
        }
        workers[..count].iter().for_each(&mut collect);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_visited_once_and_in_order() {
        for n in [1, 63, 64, 65, GROUP * CHUNK, GROUP * CHUNK + 1, 5000] {
            for n_weights in [1, 1_000_000] {
                let (mut workers, mut seen) = (Vec::new(), Vec::new());
                for_each_worker(
                    &mut workers,
                    n,
                    n_weights,
                    || 0..0,
                    |worker, start, count| *worker = start..start + count,
                    |worker| seen.extend(worker.clone()),
                );
                assert_eq!(seen, (0..n).collect::<Vec<_>>());
                assert!(workers.len() <= GROUP);
            }
        }
    }
}
