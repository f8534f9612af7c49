//! Both rules learn: on the yacht table (where the data are at hand) and on tasks made here.

use bayespc::data::Dataset;
use bayespc::learners::{Bpc, Learner, Rule};
use bayespc::metrics;
use bayespc::network::{Network, NetworkSettings};
use bayespc::prediction::Method;
use bayespc::scaling::Standardiser;
use bayespc::training::{Silent, TrainingSettings, fit, init_rng};
use faer::Mat;

/// Standardised yacht data of split 0, or nothing where the benchmark data are not at hand.
fn yacht(split: usize) -> Option<(Mat<f64>, Mat<f64>, Mat<f64>, Mat<f64>, f64)> {
    let root = std::env::var("BAYESPC_DATA")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data").to_owned());
    let folder = std::path::Path::new(&root).join("uci/yacht");
    let table = std::fs::read_to_string(folder.join("data.csv")).ok()?;
    let rows: Vec<Vec<f64>> = table
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    let splits = std::fs::read_to_string(folder.join("splits.csv")).ok()?;
    let test: Vec<usize> = splits.lines().nth(split)?.split(',').map(|cell| cell.parse().unwrap()).collect();
    let train: Vec<usize> = (0..rows.len()).filter(|row| !test.contains(row)).collect();
    let d = rows[0].len() - 1;
    let part = |samples: &[usize], first: usize, count: usize| {
        Mat::from_fn(count, samples.len(), |i, j| rows[samples[j]][first + i])
    };
    let input_scaling = Standardiser::fit(part(&train, 0, d).as_ref()).unwrap();
    let target_scaling = Standardiser::fit(part(&train, d, 1).as_ref()).unwrap();
    let x = |samples: &[usize]| input_scaling.apply(part(samples, 0, d).as_ref()).unwrap();
    let y = |samples: &[usize]| target_scaling.apply(part(samples, d, 1).as_ref()).unwrap();
    Some((x(&train), y(&train), x(&test), y(&test), target_scaling.scale[0]))
}

#[test]
fn smoke_yacht() {
    let Some((x, y, xt, yt, scale)) = yacht(0) else {
        return;
    };
    let settings = NetworkSettings::default();
    let network = Network::<f64>::new(&settings, x.nrows(), 1, &mut init_rng(0)).unwrap();
    let mut learner = Bpc::new(network, Rule::default()).unwrap();
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    let start = std::time::Instant::now();
    let report = fit(&mut learner, &data, &TrainingSettings::default(), &mut Silent).unwrap();
    let elapsed = start.elapsed();
    for method in [
        Method::Mean,
        Method::Linearised,
        Method::monte_carlo(),
        Method::Moments { covariance: bayespc::network::CovarianceRule::Exact },
    ] {
        let predictive = learner.predict(xt.as_ref(), method).unwrap();
        let rmse = scale * metrics::rmse(predictive.mean().as_ref(), yt.as_ref()).unwrap();
        let density = metrics::log_predictive_density(&predictive, yt.as_ref()).unwrap() - scale.ln();
        println!("{method:?} rmse {rmse:.3} ll {density:.3} steps {} {elapsed:?}", report.steps);
    }
}
