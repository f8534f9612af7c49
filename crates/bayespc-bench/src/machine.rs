//! What the machine can do: its matrix-product peak with so many threads, and the memory taken so far.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result};
use bayespc::base::linalg::product_into;
use faer::{Accum, Mat};
use rayon::ThreadPool;

/// Side of the products: large enough for the peak, small enough for the cache.
const SIDE: usize = 512;
/// Products of one thread in one round.
const PRODUCTS: usize = 8;
/// Rounds, of which the fastest counts: it was disturbed least.
const ROUNDS: usize = 6;

/// Threads of its own for one measurement.
pub fn pool(threads: usize) -> Result<ThreadPool> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start the threads")
}

/// 10⁹ operations per second of `f32` products, each thread of the pool doing products of its own.
pub fn peak_gflops(pool: &ThreadPool) -> f64 {
    let a = Mat::<f32>::from_fn(SIDE, SIDE, |i, j| ((3 * i + 5 * j) % 17) as f32 / 17.0);
    let operations = 2.0 * (SIDE * SIDE * SIDE * PRODUCTS * pool.current_num_threads()) as f64;
    let round = || {
        let start = Instant::now();
        pool.broadcast(|_| {
            let mut product = Mat::<f32>::zeros(SIDE, SIDE);
            for _ in 0..PRODUCTS {
                product_into(product.as_mut(), Accum::Replace, a.as_ref(), a.as_ref(), 1.0);
            }
            black_box(product[(1, 1)])
        });
        1e-9 * operations / start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}

/// Most memory this process has had at once, in megabytes; unknown where the system does not say.
pub fn peak_rss_mb() -> Option<f64> {
    high_water_mark(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// `VmHWM:    1234 kB`, where kB means 1024 bytes.
fn high_water_mark(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// Seconds of all cores this process has used so far; unknown where the system does not say. Unlike the clock it does
/// not run while others have the machine.
pub fn cpu_seconds() -> Option<f64> {
    used_ticks(&std::fs::read_to_string("/proc/self/stat").ok()?).map(|ticks| ticks / TICKS)
}

/// Ticks of a second that Linux counts time in for programs.
const TICKS: f64 = 100.0;

/// User and system time are the 14th and 15th word; the second one is a name in brackets, which may have blanks.
fn used_ticks(stat: &str) -> Option<f64> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = words.next()?.parse().ok()?;
    let system: f64 = words.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_found_behind_any_name() {
        let stat = "77 (a b) c) S 1 2 3 4 5 6 7 8 9 10 120 30 0 0 20";
        assert_eq!(used_ticks(stat), Some(150.0));
        assert!(cpu_seconds().is_none_or(|seconds| seconds >= 0.0));
    }

    #[test]
    fn the_high_water_mark_is_read_in_megabytes() {
        let status = "Name:\tbayespc\nVmPeak:\t  99 kB\nVmHWM:\t  500000 kB\nThreads:\t1\n";
        assert_eq!(high_water_mark(status), Some(512.0));
        assert_eq!(high_water_mark("Name:\tbayespc\n"), None);
        assert_eq!(high_water_mark("VmHWM:\tmuch\n"), None);
    }
}
