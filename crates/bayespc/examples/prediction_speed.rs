//! Times of prediction with five networks 10-50-50-1: `cargo run --release -p bayespc --example prediction_speed`.
//!
//! One row with a 90 % interval, with networks made ready once and anew each time; then intervals and CRPS of many rows
//! of five Student-t members.

use std::hint::black_box;
use std::time::Instant;

use bayespc::network::Network;
use bayespc::prediction::{Component, Covariance, Dof, Predictor, predict};
use bayespc::{Mat, Method, NetworkSettings, Predictive, Result};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const MEMBERS: u64 = 5;
const ROWS: usize = 100_000;

/// Median of the times of `work`, in microseconds.
fn median_time(repeats: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        let start = Instant::now();
        work()?;
        times.push(1e6 * start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[repeats / 2])
}

fn main() -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let settings = NetworkSettings::default();
    let networks = (0..MEMBERS)
        .map(|seed| Network::<f64>::new(&settings, 10, 1, &mut ChaCha8Rng::seed_from_u64(seed)))
        .collect::<Result<Vec<_>>>()?;
    let predictors: Vec<Predictor<f64>> = networks.iter().cloned().map(Predictor::new).collect();
    let row = Mat::from_fn(10, 1, |_, _| rng.random_range(-1.0..1.0));
    for (name, method) in [("mean", Method::Mean), ("linearised", Method::Linearised)] {
        let ready = median_time(2000, || {
            let members =
                predictors.iter().map(|p| p.predict(row.as_ref(), method)).collect::<Result<Vec<_>>>()?;
            black_box(Predictive::mixture(members)?.interval(0.9)?);
            Ok(())
        })?;
        let anew = median_time(200, || {
            let members =
                networks.iter().map(|n| predict(n, row.as_ref(), method)).collect::<Result<Vec<_>>>()?;
            black_box(Predictive::mixture(members)?.interval(0.9)?);
            Ok(())
        })?;
        println!(
            "one row, {MEMBERS} networks, {name}, 90 % interval: {ready:.1} µs ready, {anew:.1} µs anew"
        );
    }
    for dof in [Some(30.0), Some(4.0), None] {
        let mut member = || {
            let mean = Mat::from_fn(1, ROWS, |_, j| (j as f64).sin() + rng.random_range(-0.5..0.5));
            let variances = Mat::from_fn(1, ROWS, |_, _| rng.random_range(0.3..1.0));
            Predictive::from_component(Component {
                mean,
                aleatoric: Covariance::Diagonal(variances),
                epistemic: Covariance::Zero,
                dof: dof.map_or(Dof::Normal, Dof::Shared),
                skew: None,
            })
        };
        let mixture = Predictive::mixture((0..MEMBERS).map(|_| member()).collect::<Result<_>>()?)?;
        let targets = Mat::from_fn(1, ROWS, |_, j| (j as f64).sin());
        let interval = median_time(3, || {
            black_box(mixture.interval(0.9)?);
            Ok(())
        })?;
        let crps = median_time(3, || {
            black_box(mixture.crps(targets.as_ref())?);
            Ok(())
        })?;
        println!(
            "{ROWS} rows, {MEMBERS} members, {dof:?} degrees of freedom: intervals {:.3} s, CRPS {:.3} s",
            1e-6 * interval,
            1e-6 * crps
        );
    }
    Ok(())
}
