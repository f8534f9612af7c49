//! Time of one training step of the feedback rule on a 6-50-50-1 network, batch 32, as one line of JSON.
//! `scripts/bench_oracle.py` sets it beside the NumPy reference in the same run.
//!
//! `cargo run --release -p bayespc --example step_time -- [steps]`

use std::time::Instant;

use bayespc::data::Dataset;
use bayespc::inference::FeedbackSettings;
use bayespc::learners::{Bpc, Learner, Step};
use bayespc::network::Network;
use bayespc::{Mat, NetworkSettings, Real, Rule};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const BATCH: usize = 32;
const ROUNDS: usize = 9;

/// Median over rounds of the microseconds per step; every round learns other samples of one function.
fn microseconds<T: Real>(steps: u64, refresh_every: u64) -> bayespc::Result<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let network = Network::<T>::new(&NetworkSettings::default(), 6, 1, &mut rng)?;
    let rule = Rule::Feedback(FeedbackSettings { refresh_every, ..FeedbackSettings::default() });
    let mut learner = Bpc::new(network, rule)?;
    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..=ROUNDS {
        let input = Mat::from_fn(6, BATCH, |_, _| T::lit(rng.random_range(-1.7..1.7)));
        let target = Mat::from_fn(1, BATCH, |_, j| T::lit((input[(0, j)] * input[(1, j)]).as_f64().sin()));
        let batch = Dataset::new(input.as_ref(), target.as_ref())?;
        let start = Instant::now();
        for index in 1..=steps {
            let step = Step { index, total: Some(steps), n_total: 320.0, full_batch: false };
            learner.learn(&batch, &step, &mut rng)?;
        }
        // The first round warms caches and buffers.
        if round > 0 {
            times.push(1e6 * start.elapsed().as_secs_f64() / steps as f64);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[ROUNDS / 2])
}

fn main() -> bayespc::Result<()> {
    let steps = std::env::args().nth(1).and_then(|text| text.parse().ok()).filter(|&n| n > 0).unwrap_or(200);
    let (double, single) = (microseconds::<f64>(steps, 1)?, microseconds::<f32>(steps, 1)?);
    let (every_ten, every_ten_f32) = (microseconds::<f64>(steps, 10)?, microseconds::<f32>(steps, 10)?);
    println!(
        "{{\"microseconds_f64\": {double:.2}, \"microseconds_f32\": {single:.2}, \
         \"microseconds_f64_refresh_10\": {every_ten:.2}, \"microseconds_f32_refresh_10\": {every_ten_f32:.2}}}"
    );
    Ok(())
}
