//! Fit noisy data with a gap, and predict with the uncertainty taken apart: noise (aleatoric), which more data
//! would not remove, and what is not known (epistemic), which grows where there were none.
//!
//! `cargo run --release -p bayespc --example regression`

use bayespc::metrics::regression_metrics;
use bayespc::{Mat, Model, ModelSettings, Samples};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// y = sin 2x + N(0, 0.1²), with x anywhere in [−3, 3] but between −0.5 and 1.
fn samples(n: usize, rng: &mut ChaCha8Rng) -> (Mat<f64>, Mat<f64>) {
    let x: Mat<f64> = Mat::from_fn(1, n, |_, j| {
        if j % 2 == 0 { rng.random_range(-3.0..-0.5) } else { rng.random_range(1.0..3.0) }
    });
    let y = Mat::from_fn(1, n, |_, j| {
        let noise: f64 = StandardNormal.sample(rng);
        (2.0 * x[(0, j)]).sin() + 0.1 * noise
    });
    (x, y)
}

fn main() -> bayespc::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (x, y) = samples(300, &mut rng);
    let model = Model::fit(&Samples::new(&x, &y)?, &ModelSettings::default())?;

    let (x_test, y_test) = samples(300, &mut rng);
    let metrics = regression_metrics(&model.predict(x_test.as_ref())?, y_test.as_ref())?;
    println!(
        "new samples: RMSE {:.3} (noise 0.1), {:.0} % within their 90 % interval",
        metrics.rmse,
        100.0 * metrics.coverage_90
    );

    let grid = Mat::from_fn(1, 9, |_, j| j as f64 - 4.0);
    let predictive = model.predict(grid.as_ref())?;
    let (mean, aleatoric) = (predictive.mean(), predictive.aleatoric_variance());
    let (epistemic, (low, high)) = (predictive.epistemic_variance(), predictive.interval(0.9)?);
    println!("    x    mean  aleatoric  epistemic   90 % interval");
    for j in 0..grid.ncols() {
        println!(
            "{:5.1} {:7.2} {:10.2} {:10.2}   [{:.2}, {:.2}]",
            grid[(0, j)],
            mean[(0, j)],
            aleatoric[(0, j)].sqrt(),
            epistemic[(0, j)].sqrt(),
            low[(0, j)],
            high[(0, j)],
        );
    }
    Ok(())
}
