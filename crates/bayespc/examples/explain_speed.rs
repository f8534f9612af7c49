//! Time of an explanation beside that of a prediction, by the default model of a table of eight columns:
//! `cargo run --release -p bayespc --example explain_speed`.

use std::hint::black_box;
use std::time::Instant;

use bayespc::model::Quantity;
use bayespc::{Mat, Model, ModelSettings, Result, Samples};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const ROWS: usize = 1000;
const EXPLAINED: usize = 20;

/// Milliseconds of a row.
fn time(rows: usize, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(1e3 * start.elapsed().as_secs_f64() / rows as f64)
}

fn main() -> Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let x: Mat<f64> = Mat::from_fn(8, ROWS, |_, _| rng.random_range(-2.0..2.0));
    let y = Mat::from_fn(1, ROWS, |_, j| {
        let noise: f64 = rng.random_range(-0.3..0.3);
        x[(0, j)] + (2.0 * x[(1, j)]).sin() * x[(2, j)] + noise
    });
    let model = Model::fit(&Samples::new(&x, &y)?, &ModelSettings::default())?;
    let rows = x.subcols(0, EXPLAINED);
    let one = x.subcols(0, 1);
    model.predict(one)?;
    let predict = time(1, || {
        black_box(model.predict(one)?);
        Ok(())
    })?;
    println!("{} networks; a prediction of one row {predict:.3} ms", model.members().len());
    for of in Quantity::ALL {
        let explain = time(EXPLAINED, || {
            black_box(model.explain(rows, of, 0)?);
            Ok(())
        })?;
        println!(
            "explanation of the {}: {explain:.2} ms a row, {:.0} predictions",
            of.name(),
            explain / predict
        );
    }
    Ok(())
}
