//! The epistemic toy: y = x³ + noise, seen only on [−5, −3] and [3, 5]. The epistemic band must hold the truth in the
//! gap and grow where the data end.

use bayespc::{Model, ModelSettings, Samples};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

#[test]
fn the_truth_lies_inside_the_band_in_the_gap_and_the_band_widens_beyond_the_data() {
    for seed in 0..3 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let x: Mat<f64> = Mat::from_fn(1, 100, |_, j| {
            let side = if j % 2 == 0 { 1.0 } else { -1.0 };
            side * rng.random_range(3.0..5.0)
        });
        let y = Mat::from_fn(1, 100, |_, j| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            x[(0, j)].powi(3) + 3.0 * noise
        });
        let model = Model::fit(&Samples::new(&x, &y).unwrap(), &ModelSettings::default()).unwrap();
        let places: Vec<f64> = (0..=64).map(|k| f64::from(k - 32) / 4.0).collect();
        let predictive = model.predict(Mat::from_fn(1, places.len(), |_, j| places[j]).as_ref()).unwrap();
        let (mean, variance) = (predictive.mean(), predictive.epistemic_variance());
        let std = |j: usize| variance[(0, j)].sqrt();
        for (j, x) in places.iter().enumerate() {
            let far = (mean[(0, j)] - x.powi(3)).abs() / std(j);
            assert!(x.abs() > 3.0 || far < 1.96, "seed {seed}: {far} standard deviations off at {x}");
        }
        let widens = |mut side: Vec<usize>| {
            side.sort_by(|&a, &b| places[a].abs().total_cmp(&places[b].abs()));
            side.windows(2).all(|pair| std(pair[0]) < std(pair[1]))
        };
        let beyond = |sign: f64| (0..places.len()).filter(|&j| sign * places[j] >= 5.0).collect();
        assert!(widens(beyond(1.0)) && widens(beyond(-1.0)), "seed {seed}");
    }
}
