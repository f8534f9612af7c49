//! The epistemic toy: y = x³ + noise, seen only on [−5, −3] and [3, 5]. The 95 % band must hold the truth in the gap
//! and out to ±7, as often as it says, and grow where the data end.

use bayespc::{Model, ModelSettings, Samples};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

#[test]
fn the_band_holds_the_truth_where_there_are_no_data_and_widens_beyond_them() {
    let (seeds, mut inside, mut all) = (8, 0_u32, 0_u32);
    for seed in 0..seeds {
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
        let (low, high) = predictive.interval(0.95).unwrap();
        for (j, x) in places.iter().enumerate().filter(|(_, x)| x.abs() <= 7.0) {
            all += 1;
            inside += u32::from((low[(0, j)]..=high[(0, j)]).contains(&x.powi(3)));
        }
        let variance = predictive.epistemic_variance();
        let widens = |mut side: Vec<usize>| {
            side.sort_by(|&a, &b| places[a].abs().total_cmp(&places[b].abs()));
            side.windows(2).all(|pair| variance[(0, pair[0])] < variance[(0, pair[1])])
        };
        let beyond = |sign: f64| (0..places.len()).filter(|&j| sign * places[j] >= 5.0).collect();
        assert!(widens(beyond(1.0)) && widens(beyond(-1.0)), "seed {seed}");
    }
    let share = f64::from(inside) / f64::from(all);
    assert!(share >= 0.95, "{share} of the places");
}
