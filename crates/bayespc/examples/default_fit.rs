//! The smallest default fit and prediction: `scripts/default_path.py` lists the files that it executes.
//!
//! `cargo run --release -p bayespc --example default_fit`

use bayespc::{Mat, Model, ModelSettings, Samples};

fn main() -> bayespc::Result<()> {
    let x: Mat<f64> = Mat::from_fn(2, 60, |i, j| ((1 + 6 * i) * (j + 1) % 61) as f64 / 30.0 - 1.0);
    let noise = |j: usize| 0.3 * ((7 * j * j % 61) as f64 / 30.0 - 1.0);
    let y = Mat::from_fn(1, 60, |_, j| (2.0 * x[(0, j)]).sin() + 0.3 * x[(1, j)] + noise(j));
    let model = Model::fit(&Samples::new(&x, &y)?, &ModelSettings::default())?;
    let predictive = model.predict(x.as_ref())?;
    println!("mean {:.3}, variance {:.3}", predictive.mean()[(0, 0)], predictive.variance()[(0, 0)]);
    Ok(())
}
