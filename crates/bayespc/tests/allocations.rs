//! A step of feedback or of predictive coding allocates nothing for samples, activities or statistics once its buffers exist. It is a
//! program of its own because counting takes over the allocator.

#![allow(clippy::unwrap_used, reason = "a test, helpers included")]

use bayespc::data::Dataset;
use bayespc::learners::{Bpc, Learner, PredictiveCoding, PredictiveCodingSettings, Step};
use bayespc::network::Network;
use bayespc::{Mat, NetworkSettings, Rule};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// A single activity of the batch.
const ACTIVITY: u64 = 50 * 32 * size_of::<f64>() as u64;

/// What the sixth step allocates: how often, and how many bytes at once.
fn allocations(learner: &mut dyn Learner<f64>) -> (u64, u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let input = Mat::from_fn(6, 32, |i, j| ((i + 7 * j) as f64).sin());
    let target = Mat::from_fn(1, 32, |_, j| (j as f64).cos());
    let batch = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
    let mut learn = |index| {
        let step = Step { index, total: Some(100), n_total: 320.0, full_batch: false };
        learner.learn(&batch, &step, &mut rng).unwrap();
    };
    (1..=5).for_each(&mut learn);
    let info = allocation_counter::measure(|| learn(6));
    (info.count_total, info.bytes_max)
}

#[test]
fn a_feedback_step_allocates_only_a_list_of_layers_and_the_scratch_of_factorisations() {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let network = Network::<f64>::new(&NetworkSettings::default(), 6, 1, &mut rng).unwrap();
    let (count, bytes) = allocations(&mut Bpc::new(network, Rule::default()).unwrap());
    // The list of the three layers' means, and what faer asks for: five Cholesky factors need scratch of a
    // block of columns each.
    assert!(count <= 12, "{count} allocations");
    assert!(bytes < ACTIVITY, "{bytes} bytes at once");
}

#[test]
fn a_step_of_predictive_coding_allocates_only_a_list_of_layers() {
    let (network, settings) = (NetworkSettings::default(), PredictiveCodingSettings::default());
    let rng = &mut ChaCha8Rng::seed_from_u64(0);
    let (count, bytes) = allocations(&mut PredictiveCoding::new(&network, &settings, 6, 1, rng).unwrap());
    assert!(count <= 2, "{count} allocations");
    assert!(bytes < ACTIVITY / 10, "{bytes} bytes at once");
}
