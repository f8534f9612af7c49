//! Learn from a stream: chunks come once and are forgotten. Natural parameters add, so the posterior keeps what
//! it has seen, and epistemic variance falls as samples arrive.
//!
//! `cargo run --release -p bayespc --example streaming`

use bayespc::metrics::{interval_coverage, rmse};
use bayespc::{Mat, Model, ModelSettings, Samples};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// y = x₁ sin 2x₂ + N(0, 0.1²).
fn chunk(n: usize, rng: &mut ChaCha8Rng) -> (Mat<f64>, Mat<f64>) {
    let x: Mat<f64> = Mat::from_fn(2, n, |_, _| rng.random_range(-2.0..2.0));
    let y = Mat::from_fn(1, n, |_, j| {
        let noise: f64 = StandardNormal.sample(rng);
        x[(0, j)] * (2.0 * x[(1, j)]).sin() + 0.1 * noise
    });
    (x, y)
}

fn main() -> bayespc::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let (x_test, y_test) = chunk(500, &mut rng);

    // The first chunk only sets the scaling; learning it is the first call of `partial_fit`.
    let (mut x, mut y) = chunk(500, &mut rng);
    let settings = ModelSettings::default();
    let mut model = Model::for_stream(&Samples::new(&x, &y)?, &settings)?;
    println!("samples    RMSE   epistemic std covered by 90 % intervals");
    for number in 1..=64 {
        model.partial_fit(&Samples::new(&x, &y)?)?;
        if [1, 2, 4, 8, 16, 32, 64].contains(&number) {
            let predictive = model.predict(x_test.as_ref())?;
            let epistemic = predictive.epistemic_variance();
            let epistemic = (0..500).map(|j| epistemic[(0, j)].sqrt()).sum::<f64>() / 500.0;
            println!(
                "{:7} {:7.3} {:12.3} {:10.0} %",
                model.n_seen(),
                rmse(predictive.mean().as_ref(), y_test.as_ref())?,
                epistemic,
                100.0 * interval_coverage(&predictive, y_test.as_ref(), 0.9)?,
            );
        }
        (x, y) = chunk(500, &mut rng);
    }
    Ok(())
}
