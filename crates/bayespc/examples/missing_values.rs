//! A linear network trained by relaxation is a generative model: it learns from samples with holes, fills them
//! in with an error bar, and draws new samples.
//!
//! `cargo run --release -p bayespc --example missing_values`

use bayespc::data::Dataset;
use bayespc::inference::{ActivityOptimiser, Parameters, RelaxationSettings, generate, impute};
use bayespc::learners::Bpc;
use bayespc::network::Network;
use bayespc::training::{Silent, fit};
use bayespc::{Mat, NetworkSettings, Rule, TrainingSettings};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

fn main() -> bayespc::Result<()> {
    // y = A x + N(0, 0.2²) with two causes x ~ N(0, 1) and four effects y.
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut normal = |rows, columns| Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng));
    let n = 400;
    let (effect, x, noise): (Mat<f64>, Mat<f64>, Mat<f64>) = (normal(4, 2), normal(2, n), normal(4, n));
    let y = &effect * &x + noise * faer::Scale(0.2);

    // One entry in five is lost, of causes and effects alike.
    let mut lose = |values: &Mat<f64>| {
        let is_lost = Mat::from_fn(values.nrows(), n, |_, _| rng.random_range(0..5) == 0);
        Mat::from_fn(values.nrows(), n, |i, j| if is_lost[(i, j)] { f64::NAN } else { values[(i, j)] })
    };
    let (x_seen, y_seen) = (lose(&x), lose(&y));

    let settings = NetworkSettings { hidden_layer_sizes: Vec::new(), ..NetworkSettings::default() };
    let rule = Rule::Relaxation(RelaxationSettings {
        steps: 100,
        optimiser: ActivityOptimiser::Gradient { rate: None },
        ..RelaxationSettings::paper()
    });
    let mut learner = Bpc::<f64>::new(Network::new(&settings, 2, 4, &mut rng)?, rule)?;
    let data = Dataset::with_missing(x_seen.as_ref(), y_seen.as_ref())?;
    let training = TrainingSettings { epochs: 30, batch_size: None, ..TrainingSettings::default() };
    fit(&mut learner, &data, &training, &mut Silent)?;
    let network = learner.into_network()?;

    let filled = impute(&network, x_seen.as_ref(), y_seen.as_ref(), 1.0)?;
    let lost = (0..n).flat_map(|j| (0..4).map(move |i| (i, j))).filter(|&at| y_seen[at].is_nan());
    let errors: Vec<f64> = lost.clone().map(|at| filled.target[at] - y[at]).collect();
    let root_mean = |sum: f64| (sum / errors.len() as f64).sqrt();
    let found = root_mean(errors.iter().map(|e| e * e).sum());
    let claimed = root_mean(lost.map(|at| filled.target_variance[at]).sum());
    println!("{} effects filled in: RMSE {found:.3}, claimed {claimed:.3}", errors.len());

    let (_, drawn) = generate(&network, 4000, Parameters::Draw, &mut rng)?;
    let variance = |m: &Mat<f64>, i: usize| m.row(i).iter().map(|v| v * v).sum::<f64>() / m.ncols() as f64;
    println!("variances in the data {:.2?}", [0, 1, 2, 3].map(|i| variance(&y, i)));
    println!("variances when drawn  {:.2?}", [0, 1, 2, 3].map(|i| variance(&drawn, i)));
    Ok(())
}
