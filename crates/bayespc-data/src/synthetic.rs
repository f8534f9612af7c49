//! Synthetic tasks: two moons, and one task each for aleatoric and epistemic uncertainty.
//!
//! ```text
//! moons      outer (cos t, sin t), inner (1 − cos t, ½ − sin t), t evenly in [0, π],
//!            plus N(0, noise²) on both coordinates; rows shuffled
//! aleatoric  y = −(x + ½) sin(3πx) + N(0, (0.45 (x + ½))²),   x ~ N(0, 0.25²)
//! epistemic  y = x³ + N(0, 9),   x uniform, half on [−5, −3] and half on [3, 5]
//! ```
//!
//! The moons are those of scikit-learn's `make_moons`. The standard deviation ¼ of the aleatoric
//! inputs puts 95 % of them into [−½, ½], where the noise grows from nothing to 0.45.

use faer::Mat;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use crate::{Error, Result};

/// Standard deviation of the inputs of [`aleatoric`].
pub const ALEATORIC_INPUT_STD: f64 = 0.25;

/// Points of a plane that belong to classes.
#[derive(Clone, Debug)]
pub struct Moons {
    /// Coordinates, `2 × n`.
    pub features: Mat<f64>,
    /// Class of each point: 0 for the outer moon, 1 for the inner.
    pub labels: Vec<usize>,
}

/// One input and one output.
#[derive(Clone, Debug)]
pub struct Curve {
    /// x, `1 × n`.
    pub features: Mat<f64>,
    /// y, `1 × n`.
    pub targets: Mat<f64>,
}

/// Two interleaved half circles of `n` points in all, shuffled; `noise` is the standard deviation.
pub fn two_moons(n: usize, noise: f64, rng: &mut dyn Rng) -> Result<Moons> {
    if !(noise.is_finite() && noise >= 0.0) {
        return Err(Error::Setting { name: "noise", value: noise, must_be: "finite and not negative" });
    }
    let n_outer = n / 2;
    let mut points: Vec<([f64; 2], usize)> = (0..n)
        .map(|i| if i < n_outer { (outer(i, n_outer), 0) } else { (inner(i - n_outer, n - n_outer), 1) })
        .collect();
    points.shuffle(rng);
    for (point, _) in &mut points {
        *point = point.map(|x| x + noise * rng.sample::<f64, _>(StandardNormal));
    }
    Ok(Moons {
        features: Mat::from_fn(2, n, |i, j| points[j].0[i]),
        labels: points.iter().map(|&(_, label)| label).collect(),
    })
}

/// A curve whose noise grows with x: what cannot be known however much data there is.
pub fn aleatoric(n: usize, rng: &mut dyn Rng) -> Curve {
    curve(
        n,
        rng,
        |_, rng| ALEATORIC_INPUT_STD * rng.sample::<f64, _>(StandardNormal),
        aleatoric_mean,
        |x| 0.45 * (x + 0.5),
    )
}

/// A cubic seen on both sides of a gap: what could be known but was not shown.
///
/// The first half of the points lies on the left of the gap.
pub fn epistemic(n: usize, rng: &mut dyn Rng) -> Curve {
    let input = |i: usize, rng: &mut dyn Rng| {
        let x = rng.random_range(3.0..=5.0);
        if i < n / 2 { -x } else { x }
    };
    curve(n, rng, input, epistemic_mean, |_| 3.0)
}

/// −(x + ½) sin(3πx): the curve under the noise of [`aleatoric`].
pub fn aleatoric_mean(x: f64) -> f64 {
    -(x + 0.5) * (3.0 * std::f64::consts::PI * x).sin()
}

/// x³: the curve under the noise of [`epistemic`].
pub fn epistemic_mean(x: f64) -> f64 {
    x.powi(3)
}

fn curve(
    n: usize,
    rng: &mut dyn Rng,
    input: impl Fn(usize, &mut dyn Rng) -> f64,
    mean: impl Fn(f64) -> f64,
    std: impl Fn(f64) -> f64,
) -> Curve {
    let (mut features, mut targets) = (Mat::zeros(1, n), Mat::zeros(1, n));
    for i in 0..n {
        let x = input(i, rng);
        features[(0, i)] = x;
        targets[(0, i)] = mean(x) + std(x) * rng.sample::<f64, _>(StandardNormal);
    }
    Curve { features, targets }
}

/// Angle `i` of `n` evenly spaced ones from 0 to π, both included.
fn angle(i: usize, n: usize) -> f64 {
    if n < 2 { 0.0 } else { std::f64::consts::PI * i as f64 / (n - 1) as f64 }
}

fn outer(i: usize, n: usize) -> [f64; 2] {
    let t = angle(i, n);
    [t.cos(), t.sin()]
}

fn inner(i: usize, n: usize) -> [f64; 2] {
    let t = angle(i, n);
    [1.0 - t.cos(), 0.5 - t.sin()]
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;
    use rand::{SeedableRng, rngs::ChaCha8Rng};

    use super::*;

    fn rng(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    /// scikit-learn 1.9: `make_moons(5, shuffle=False, noise=None)`.
    const SKLEARN: [([f64; 2], usize); 5] =
        [([1.0, 0.0], 0), ([-1.0, 0.0], 0), ([0.0, 0.5], 1), ([1.0, -0.5], 1), ([2.0, 0.5], 1)];

    #[test]
    fn moons_without_noise_are_those_of_scikit_learn_in_another_order() {
        let moons = two_moons(5, 0.0, &mut rng(3)).unwrap();
        for (point, label) in SKLEARN {
            let found = (0..5).filter(|&j| {
                moons.labels[j] == label && (0..2).all(|i| (moons.features[(i, j)] - point[i]).abs() < 1e-15)
            });
            assert_eq!(found.count(), 1, "{point:?}");
        }
    }

    #[test]
    fn moons_are_shuffled_and_replay_from_their_seed() {
        let moons = two_moons(100, 0.1, &mut rng(0)).unwrap();
        assert!(moons.labels[..50].contains(&1));
        assert_eq!(moons.labels.iter().sum::<usize>(), 50);
        assert_eq!(moons.features, two_moons(100, 0.1, &mut rng(0)).unwrap().features);
        assert_ne!(moons.features, two_moons(100, 0.1, &mut rng(1)).unwrap().features);
    }

    #[test]
    fn impossible_noise_is_an_error() {
        for noise in [-0.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(two_moons(4, noise, &mut rng(0)), Err(Error::Setting { name: "noise", .. })));
        }
    }

    /// With n draws of a standard normal, mean and mean square lie within 5/√n and 5√(2/n) of 0 and 1
    /// except once in a million seeds.
    fn assert_standard_normal(draws: &[f64]) {
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / n;
        assert_abs_diff_eq!(mean, 0.0, epsilon = 5.0 / n.sqrt());
        assert_abs_diff_eq!(square, 1.0, epsilon = 5.0 * (2.0 / n).sqrt());
    }

    #[test]
    fn moon_noise_has_the_given_standard_deviation() {
        let n = 20_000;
        let noisy = two_moons(n, 0.3, &mut rng(7)).unwrap().features;
        let clean = two_moons(n, 0.0, &mut rng(7)).unwrap().features;
        let residuals: Vec<f64> =
            (0..2 * n).map(|k| (noisy[(k % 2, k / 2)] - clean[(k % 2, k / 2)]) / 0.3).collect();
        assert_standard_normal(&residuals);
    }

    #[test]
    fn aleatoric_inputs_and_noise_have_the_stated_spread() {
        let task = aleatoric(20_000, &mut rng(1));
        let xs: Vec<f64> = (0..20_000).map(|i| task.features[(0, i)]).collect();
        assert_standard_normal(&xs.iter().map(|x| x / ALEATORIC_INPUT_STD).collect::<Vec<_>>());
        let residuals: Vec<f64> = xs
            .iter()
            .enumerate()
            .map(|(i, &x)| (task.targets[(0, i)] - aleatoric_mean(x)) / (0.45 * (x + 0.5)))
            .collect();
        assert_standard_normal(&residuals);
        assert_abs_diff_eq!(aleatoric_mean(0.5), 1.0, epsilon = 1e-15);
    }

    #[test]
    fn epistemic_inputs_leave_the_gap_and_noise_has_variance_nine() {
        let task = epistemic(20_000, &mut rng(2));
        let mut residuals = Vec::new();
        for i in 0..20_000 {
            let x = task.features[(0, i)];
            assert!(if i < 10_000 { (-5.0..=-3.0).contains(&x) } else { (3.0..=5.0).contains(&x) });
            residuals.push((task.targets[(0, i)] - x * x * x) / 3.0);
        }
        assert_standard_normal(&residuals);
    }
}
