//! Time of one training step of each rule, and of each predictor: `cargo bench -p bayespc`.
//!
//! The network is 6-50-50-1, the paper's for tables; batches have 32 samples, predictions 1000 rows.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::hint::black_box;

use bayespc::data::Dataset;
use bayespc::inference::RelaxationSettings;
use bayespc::learners::{Bpc, Learner, PredictiveCoding, PredictiveCodingSettings, Step};
use bayespc::network::{CovarianceRule, Network};
use bayespc::training::{Silent, fit};
use bayespc::{Mat, Method, NetworkSettings, Real, Rule, TrainingSettings};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const BATCH: usize = 32;

fn samples<T: Real>(n: usize) -> (Mat<T>, Mat<T>) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let input = Mat::from_fn(6, n, |_, _| T::lit(rng.random_range(-1.7..1.7)));
    let target = Mat::from_fn(1, n, |_, j| {
        let clean = (input[(0, j)] * input[(1, j)]).as_f64().sin();
        T::lit(clean + rng.random_range(-0.1..0.1))
    });
    (input, target)
}

fn learner<T: Real>(rule: Rule) -> Bpc<T> {
    let network = Network::new(&NetworkSettings::default(), 6, 1, &mut ChaCha8Rng::seed_from_u64(0));
    Bpc::new(network.expect("the default network is valid"), rule).expect("the rules here are valid")
}

fn predictive_coding<T: Real>() -> PredictiveCoding<T> {
    let (network, settings) = (NetworkSettings::default(), PredictiveCodingSettings::default());
    PredictiveCoding::new(&network, &settings, 6, 1, &mut ChaCha8Rng::seed_from_u64(0))
        .expect("the default network and settings are valid")
}

/// Every measured step starts from the same learner, a few steps into training.
fn bench_step<T: Real>(criterion: &mut Criterion, name: &str, mut started: impl Learner<T> + Clone) {
    let (input, target) = samples::<T>(BATCH);
    let batch = Dataset::new(input.as_ref(), target.as_ref()).expect("finite samples");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let place = |index| Step { index, total: Some(1000), n_total: 320.0, full_batch: false };
    for index in 1..=5 {
        started.learn(&batch, &place(index), &mut rng).expect("a step of a sound learner");
    }
    criterion.bench_function(name, |bencher| {
        bencher.iter_batched_ref(
            || started.clone(),
            |learner| learner.learn(black_box(&batch), &place(6), &mut rng),
            BatchSize::SmallInput,
        );
    });
}

fn steps(criterion: &mut Criterion) {
    let relaxation = |settings| learner::<f64>(Rule::Relaxation(settings));
    let stale = RelaxationSettings { refresh_every: 10, ..RelaxationSettings::tied() };
    bench_step::<f64>(criterion, "step/feedback/f64", learner(Rule::default()));
    bench_step::<f32>(criterion, "step/feedback/f32", learner(Rule::default()));
    bench_step::<f64>(criterion, "step/relaxation paper/f64", relaxation(RelaxationSettings::paper()));
    bench_step::<f64>(criterion, "step/relaxation tied/f64", relaxation(RelaxationSettings::tied()));
    bench_step::<f64>(criterion, "step/relaxation tied, refresh 10/f64", relaxation(stale));
    bench_step::<f64>(criterion, "step/predictive coding/f64", predictive_coding());
    bench_step::<f32>(criterion, "step/predictive coding/f32", predictive_coding());
}

fn predictors(criterion: &mut Criterion) {
    let (input, target) = samples::<f64>(1000);
    let data = Dataset::new(input.as_ref(), target.as_ref()).expect("finite samples");
    let mut trained = learner::<f64>(Rule::default());
    let settings = TrainingSettings { epochs: 5, ..TrainingSettings::default() };
    fit(&mut trained, &data, &settings, &mut Silent).expect("a sound learner");
    let methods = [
        ("mean", Method::Mean),
        ("linearised", Method::Linearised),
        ("monte carlo 20", Method::monte_carlo()),
        ("moments exact", Method::Moments { covariance: CovarianceRule::Exact }),
        ("moments diagonal", Method::Moments { covariance: CovarianceRule::Diagonal }),
    ];
    for (name, method) in methods {
        criterion.bench_function(&format!("predict 1000/{name}"), |bencher| {
            bencher.iter(|| trained.predict(black_box(input.as_ref()), method));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = steps, predictors
}
criterion_main!(benches);
