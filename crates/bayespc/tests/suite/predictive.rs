//! Laws of the predictive distribution: mixtures, moments, densities, quantiles, scores, draws, classes.

use approx::assert_relative_eq;
use bayespc::Error;
use bayespc::distributions::student_t::MultivariateT;
use bayespc::prediction::{Component, Covariance, Dof, Predictive};
use faer::{Mat, MatRef};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// Step of [`integral_over_reals`].
const STEP: f64 = 1.0 / 64.0;

/// Representations of a covariance, by number.
const KINDS: usize = 4;

fn normal(d: usize, n: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    Mat::from_fn(d, n, |_, _| StandardNormal.sample(rng))
}

/// A Aᵀ + 0.3 I for a random A.
fn positive_definite(d: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let root = normal(d, d, rng);
    &root * root.transpose() + Mat::<f64>::identity(d, d) * faer::Scale(0.3)
}

fn covariance(kind: usize, d: usize, n: usize, rng: &mut ChaCha8Rng) -> Covariance {
    match kind {
        0 => Covariance::Zero,
        1 => Covariance::Shared(positive_definite(d, rng)),
        2 => Covariance::Diagonal(Mat::from_fn(d, n, |_, _| 0.1 + rng.random::<f64>())),
        _ => {
            let matrices: Vec<Mat<f64>> = (0..n).map(|_| positive_definite(d, rng)).collect();
            Covariance::Full(Mat::from_fn(d * d, n, |ij, sample| matrices[sample][(ij % d, ij / d)]))
        }
    }
}

/// A component with noise; `dof` 0 is normal, any other Student-t.
fn component(d: usize, n: usize, dof: usize, rng: &mut ChaCha8Rng) -> Component {
    let (aleatoric, epistemic) = (rng.random_range(1..KINDS), rng.random_range(0..KINDS));
    Component {
        mean: normal(d, n, rng),
        aleatoric: covariance(aleatoric, d, n, rng),
        epistemic: covariance(epistemic, d, n, rng),
        dof: match dof {
            0 => Dof::Normal,
            _ => Dof::Shared(2.5 + 10.0 * rng.random::<f64>()),
        },
        skew: None,
    }
}

fn single(d: usize, n: usize, rng: &mut ChaCha8Rng) -> Predictive {
    let dof = rng.random_range(0..2);
    Predictive::from_component(component(d, n, dof, rng)).unwrap()
}

fn mixture(d: usize, n: usize, n_components: usize, rng: &mut ChaCha8Rng) -> Predictive {
    Predictive::mixture((0..n_components).map(|_| single(d, n, rng)).collect()).unwrap()
}

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn assert_close(found: MatRef<'_, f64>, expected: MatRef<'_, f64>, tolerance: f64) {
    assert_eq!((found.nrows(), found.ncols()), (expected.nrows(), expected.ncols()));
    for j in 0..found.ncols() {
        for i in 0..found.nrows() {
            let (a, b) = (found[(i, j)], expected[(i, j)]);
            assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "({i}, {j}): {a} and {b}");
        }
    }
}

/// Trapezoidal rule after x = sinh(u): spectrally accurate for smooth integrands with algebraic tails.
fn integral_over_reals(f: impl Fn(f64) -> f64) -> f64 {
    (-32 * 64..=32 * 64)
        .map(|i| {
            let u = f64::from(i) * STEP;
            STEP * u.cosh() * f(u.sinh())
        })
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_mixture_of_the_same_component_is_the_component(seed: u64, d in 1usize..4) {
        let mut rng = rng(seed);
        let one = single(d, 5, &mut rng);
        let three = Predictive::mixture(vec![one.clone(), one.clone(), one.clone()]).unwrap();
        let targets = normal(d, 5, &mut rng);
        assert_close(three.mean().as_ref(), one.mean().as_ref(), 1e-14);
        assert_close(three.variance().as_ref(), one.variance().as_ref(), 1e-14);
        assert_close(three.epistemic_variance().as_ref(), one.epistemic_variance().as_ref(), 1e-14);
        for (a, b) in three.log_density(targets.as_ref()).unwrap().iter().zip(one.log_density(targets.as_ref()).unwrap()) {
            assert_relative_eq!(*a, b, max_relative = 1e-13, epsilon = 1e-13);
        }
        let (p, q) = (three.quantile(&[0.07]).unwrap(), one.quantile(&[0.07]).unwrap());
        assert_close(p[0].as_ref(), q[0].as_ref(), 1e-12);
        // Three Student-t are integrated numerically, one is closed.
        assert_close(three.crps(targets.as_ref()).unwrap().as_ref(), one.crps(targets.as_ref()).unwrap().as_ref(), 1e-7);
        assert_close(
            three.class_probabilities(2.0).unwrap().as_ref(),
            one.class_probabilities(2.0).unwrap().as_ref(),
            1e-13,
        );
    }

    #[test]
    fn members_count_equally_however_many_components_they_have(seed: u64) {
        let mut rng = rng(seed);
        let (few, many) = (single(2, 4, &mut rng), mixture(2, 4, 3, &mut rng));
        let both = Predictive::mixture(vec![few.clone(), many.clone()]).unwrap();
        let half = (few.mean() + many.mean()) * faer::Scale(0.5);
        assert_close(both.mean().as_ref(), half.as_ref(), 1e-13);
        let targets = normal(2, 4, &mut rng);
        let (a, b) = (few.log_density(targets.as_ref()).unwrap(), many.log_density(targets.as_ref()).unwrap());
        for (i, found) in both.log_density(targets.as_ref()).unwrap().into_iter().enumerate() {
            assert_relative_eq!(found.exp(), 0.5 * (a[i].exp() + b[i].exp()), max_relative = 1e-12);
        }
    }

    #[test]
    fn variances_are_the_diagonals_of_covariances_and_parts_are_those_of_the_components(seed: u64, d in 1usize..4) {
        let predictive = mixture(d, 3, 3, &mut rng(seed));
        let (total, noise) = (predictive.variance(), predictive.aleatoric_variance());
        let parts = predictive.components();
        for sample in 0..3 {
            let covariance = predictive.covariance(sample);
            // By pairs, without the mixture's mean: Cov = ⅓ Σ_c (A_c + E_c) + ½ · 1/9 Σ_c,c′ (μ_c − μ_c′)(μ_c − μ_c′)ᵀ.
            let expected = Mat::from_fn(d, d, |i, j| {
                let within: f64 = parts.iter().map(|c| c.covariance_entry(i, j, sample)).sum();
                let pairs = parts.iter().flat_map(|a| parts.iter().map(move |b| (a, b)));
                let between: f64 = pairs
                    .map(|(a, b)| (a.mean[(i, sample)] - b.mean[(i, sample)]) * (a.mean[(j, sample)] - b.mean[(j, sample)]))
                    .sum();
                within / 3.0 + between / 18.0
            });
            assert_close(covariance.as_ref(), expected.as_ref(), 1e-13);
            for i in 0..d {
                assert_relative_eq!(covariance[(i, i)], total[(i, sample)], max_relative = 1e-13);
                assert_relative_eq!(predictive.aleatoric_covariance(sample)[(i, i)], noise[(i, sample)], max_relative = 1e-13);
                for j in 0..d {
                    assert_relative_eq!(covariance[(i, j)], covariance[(j, i)], epsilon = 1e-13);
                }
            }
        }
    }

    #[test]
    fn one_covariance_written_three_ways_gives_one_distribution(seed: u64, dof in 0usize..2) {
        let (d, n, mut rng) = (3, 4, rng(seed));
        let mut base = component(d, n, dof, &mut rng);
        base.epistemic = Covariance::Zero;
        let variances: Vec<f64> = (0..d).map(|_| 0.1 + rng.random::<f64>()).collect();
        let matrix = Mat::from_fn(d, d, |i, j| if i == j { variances[i] } else { 0.0 });
        let targets = normal(d, n, &mut rng);
        let written = [
            Covariance::Shared(matrix.clone()),
            Covariance::Diagonal(Mat::from_fn(d, n, |i, _| variances[i])),
            Covariance::Full(Mat::from_fn(d * d, n, |ij, _| matrix[(ij % d, ij / d)])),
        ]
        .map(|aleatoric| Predictive::from_component(Component { aleatoric, ..base.clone() }).unwrap());
        for other in &written[1..] {
            let (a, b) = (written[0].log_density(targets.as_ref()).unwrap(), other.log_density(targets.as_ref()).unwrap());
            for (a, b) in a.iter().zip(&b) {
                assert_relative_eq!(a, b, max_relative = 1e-12, epsilon = 1e-12);
            }
            assert_close(
                written[0].class_probabilities(1.0).unwrap().as_ref(),
                other.class_probabilities(1.0).unwrap().as_ref(),
                1e-12,
            );
        }
    }

    #[test]
    fn log_density_is_that_of_the_multivariate_t_with_this_covariance(seed: u64, d in 1usize..4) {
        let (n, mut rng) = (3, rng(seed));
        let predictive = single(d, n, &mut rng);
        let targets = normal(d, n, &mut rng);
        for (sample, found) in predictive.log_density(targets.as_ref()).unwrap().into_iter().enumerate() {
            let dof = predictive.components()[0].dof.value();
            let shrinkage = if dof.is_finite() { (dof - 2.0) / dof } else { 1.0 };
            let scale = predictive.covariance(sample) * faer::Scale(shrinkage);
            let mean = predictive.mean().subcols(sample, 1).to_owned();
            let t = MultivariateT::new(dof, mean, scale.as_ref()).unwrap();
            let expected = t.log_density(targets.as_ref().subcols(sample, 1)).unwrap()[0];
            assert_relative_eq!(found, expected, max_relative = 1e-11, epsilon = 1e-11);
        }
    }

    #[test]
    fn the_density_of_one_target_integrates_to_one(seed: u64, n_components in 1usize..4) {
        let predictive = mixture(1, 1, n_components, &mut rng(seed));
        let total = integral_over_reals(|y| {
            predictive.log_density(Mat::from_fn(1, 1, |_, _| y).as_ref()).unwrap()[0].exp()
        });
        assert_relative_eq!(total, 1.0, epsilon = 1e-10);
    }

    #[test]
    fn the_density_is_the_derivative_of_the_distribution_function(seed: u64, y in -3.0..3.0) {
        let predictive = mixture(1, 1, 3, &mut rng(seed));
        let h = 1e-5;
        let slope = (predictive.marginal_cdf(0, 0, y + h) - predictive.marginal_cdf(0, 0, y - h)) / (2.0 * h);
        let density = predictive.log_density(Mat::from_fn(1, 1, |_, _| y).as_ref()).unwrap()[0].exp();
        assert_relative_eq!(slope, density, epsilon = 1e-7);
    }

    #[test]
    fn the_distribution_function_takes_back_the_quantile(seed: u64, d in 1usize..3, n_components in 1usize..5) {
        let predictive = mixture(d, 4, n_components, &mut rng(seed));
        let levels = [1e-6, 0.05, 0.5, 0.8, 0.999];
        for (p, quantiles) in levels.iter().zip(predictive.quantile(&levels).unwrap()) {
            for sample in 0..4 {
                for target in 0..d {
                    let back = predictive.marginal_cdf(target, sample, quantiles[(target, sample)]);
                    assert_relative_eq!(back, *p, max_relative = 1e-10);
                }
            }
        }
    }

    /// Many samples take tables of the distribution functions, few take the functions themselves.
    #[test]
    fn many_samples_have_the_quantiles_and_scores_of_few(seed: u64, n_components in 2usize..6) {
        let (n, mut rng) = (40, rng(seed));
        let spread = 10_f64.powf(rng.random_range(-2.0..2.0));
        let members = (0..n_components)
            .map(|_| {
                let mut member = component(1, n, rng.random_range(0..3), &mut rng);
                member.mean *= faer::Scale(spread);
                Predictive::from_component(member).unwrap()
            })
            .collect();
        let many = Predictive::mixture(members).unwrap();
        let targets = normal(1, n, &mut rng) * faer::Scale(spread);
        let levels = [1e-9, 0.05, 0.5, 0.95, 0.9999];
        let (quantiles, scores) = (many.quantile(&levels).unwrap(), many.crps(targets.as_ref()).unwrap());
        for sample in [0, 17, n - 1] {
            let one = many.select(&[sample]).unwrap();
            let smallest = one.components().iter().map(|c| c.variance(0, 0).sqrt()).fold(f64::INFINITY, f64::min);
            let own = one.quantile(&levels).unwrap();
            for (k, p) in levels.iter().enumerate() {
                let (found, expected) = (quantiles[k][(0, sample)], own[k][(0, 0)]);
                // The quantile of F moves by ε F/f when F is off by a relative ε; far out F/f grows with the distance.
                let tolerance = 1e-10 * smallest.max(1e-2 * expected.abs());
                prop_assert!((found - expected).abs() <= tolerance, "{p}: {found} and {expected}");
                let tail = p.min(1.0 - p);
                let below = one.marginal_cdf(0, 0, found);
                prop_assert!((below - p).abs() <= 1e-10 * tail + 4.0 * f64::EPSILON, "{p}: {below}");
            }
            let own = one.crps(targets.subcols(sample, 1)).unwrap()[(0, 0)];
            let error = (scores[(0, sample)] - own).abs();
            prop_assert!(error <= 1e-7 * one.std()[(0, 0)], "{} and {own}", scores[(0, sample)]);
        }
    }

    #[test]
    fn crps_is_the_integrated_squared_distance_of_distribution_functions(seed: u64, y in -3.0..3.0, n_components in 1usize..4) {
        let predictive = mixture(1, 1, n_components, &mut rng(seed));
        let found = predictive.crps(Mat::from_fn(1, 1, |_, _| y).as_ref()).unwrap()[(0, 0)];
        // The integrand jumps at y; with the middle value there, the trapezoidal rule is off by
        // step²/12 times the jump of the slope, 2p(y) (Euler-Maclaurin), and by O(step⁴) beyond.
        let trapezoidal = integral_over_reals(|x| {
            let below = predictive.marginal_cdf(0, 0, y + x);
            match x.total_cmp(&0.0) {
                std::cmp::Ordering::Less => below * below,
                std::cmp::Ordering::Greater => (1.0 - below).powi(2),
                std::cmp::Ordering::Equal => 0.5 * (below * below + (1.0 - below).powi(2)),
            }
        });
        let density = predictive.log_density(Mat::from_fn(1, 1, |_, _| y).as_ref()).unwrap()[0].exp();
        let expected = trapezoidal - STEP * STEP / 6.0 * density;
        assert_relative_eq!(found, expected, epsilon = 1e-6);
    }

    #[test]
    fn density_in_original_units_is_the_standardised_one_less_log_scale(seed: u64, d in 1usize..4) {
        let (n, mut rng) = (4, rng(seed));
        let standard = mixture(d, n, 2, &mut rng);
        let offset: Vec<f64> = (0..d).map(|_| 10.0 * rng.random::<f64>()).collect();
        let scale: Vec<f64> = (0..d).map(|_| 0.1 + 10.0 * rng.random::<f64>()).collect();
        let original = standard.unscale(&offset, &scale).unwrap();
        let targets = normal(d, n, &mut rng);
        let unscaled = Mat::from_fn(d, n, |i, j| offset[i] + scale[i] * targets[(i, j)]);
        let shift: f64 = scale.iter().map(|s| s.ln()).sum();
        let before = standard.log_density(targets.as_ref()).unwrap();
        for (a, b) in original.log_density(unscaled.as_ref()).unwrap().iter().zip(&before) {
            assert_relative_eq!(*a, b - shift, max_relative = 1e-11, epsilon = 1e-11);
        }
        let variance = standard.variance();
        let expected = Mat::from_fn(d, n, |i, j| variance[(i, j)] * scale[i] * scale[i]);
        assert_close(original.variance().as_ref(), expected.as_ref(), 1e-12);
    }

    #[test]
    fn class_probabilities_are_the_normalised_densities_of_the_codes(seed: u64, classes in 2usize..5) {
        let (n, mut rng) = (3, rng(seed));
        let predictive = Predictive::from_component(component(classes, n, 0, &mut rng)).unwrap();
        let found = predictive.class_probabilities(1.0).unwrap();
        let densities: Vec<Vec<f64>> = (0..classes)
            .map(|k| {
                let codes = Mat::from_fn(classes, n, |i, _| f64::from(i == k));
                predictive.log_density(codes.as_ref()).unwrap().into_iter().map(f64::exp).collect()
            })
            .collect();
        for sample in 0..n {
            let total: f64 = densities.iter().map(|of_class| of_class[sample]).sum();
            for k in 0..classes {
                assert_relative_eq!(found[(k, sample)], densities[k][sample] / total, epsilon = 1e-11);
            }
        }
    }

    #[test]
    fn selected_samples_keep_their_distributions(seed: u64) {
        let mut rng = rng(seed);
        let predictive = mixture(2, 6, 2, &mut rng);
        let targets = normal(2, 6, &mut rng);
        let chosen = [4, 0, 4];
        let some = predictive.select(&chosen).unwrap();
        let their_targets = Mat::from_fn(2, 3, |i, j| targets[(i, chosen[j])]);
        let all = predictive.log_density(targets.as_ref()).unwrap();
        for (found, sample) in some.log_density(their_targets.as_ref()).unwrap().into_iter().zip(chosen) {
            assert_relative_eq!(found, all[sample], max_relative = 1e-13, epsilon = 1e-13);
        }
    }
}

/// Five standard errors of a mean and of a second moment, the latter from the fourth moment of the draws.
#[test]
fn draws_have_the_mean_and_the_total_covariance() {
    let (d, n, n_draws) = (2, 3, 40_000);
    let mut rng = rng(11);
    let members = (0..3)
        .map(|dof| {
            let mut member = component(d, n, dof, &mut rng);
            if dof > 0 {
                member.dof = Dof::Shared(9.0);
            }
            Predictive::from_component(member).unwrap()
        })
        .collect();
    let predictive = Predictive::mixture(members).unwrap();
    let (mean, draws) = (predictive.mean(), predictive.sample(n_draws, &mut rng));
    let count = n_draws as f64;
    for sample in 0..n {
        let covariance = predictive.covariance(sample);
        for i in 0..d {
            let found = draws.iter().map(|y| y[(i, sample)]).sum::<f64>() / count;
            let tolerance = 5.0 * (covariance[(i, i)] / count).sqrt();
            assert!((found - mean[(i, sample)]).abs() < tolerance, "mean {found} ± {tolerance}");
            for j in 0..=i {
                let product = |y: &Mat<f64>| {
                    (y[(i, sample)] - mean[(i, sample)]) * (y[(j, sample)] - mean[(j, sample)])
                };
                let found = draws.iter().map(product).sum::<f64>() / count;
                let square = draws.iter().map(|y| (product(y) - found).powi(2)).sum::<f64>() / count;
                let tolerance = 5.0 * (square / count).sqrt();
                assert!(
                    (found - covariance[(i, j)]).abs() < tolerance,
                    "{found} ± {tolerance}: {}",
                    covariance[(i, j)]
                );
            }
        }
    }
}

/// Quadrature of the squared difference of distribution functions, `scipy.integrate.quad` with
/// `scipy.stats.norm` and `scipy.stats.t`, SciPy 1.17.
#[test]
fn crps_matches_scipy() {
    let repeated = |n: usize, location: f64, scale: f64, dof: f64| {
        let variance = if dof.is_finite() { scale * scale * dof / (dof - 2.0) } else { scale * scale };
        Predictive::from_component(Component {
            mean: Mat::from_fn(1, n, |_, _| location),
            aleatoric: Covariance::Shared(Mat::from_fn(1, 1, |_, _| variance)),
            epistemic: Covariance::Zero,
            dof: if dof.is_finite() { Dof::Shared(dof) } else { Dof::Normal },
            skew: None,
        })
        .unwrap()
    };
    let of = |location: f64, scale: f64, dof: f64| repeated(1, location, scale, dof);
    let crps = |predictive: &Predictive, y: f64| {
        let n = predictive.n_samples();
        predictive.crps(Mat::from_fn(1, n, |_, _| y).as_ref()).unwrap()[(0, n - 1)]
    };
    let infinity = f64::INFINITY;
    assert_relative_eq!(crps(&of(0.3, 1.7, infinity), 1.1), 0.544_760_009_797_622_1, max_relative = 1e-10);
    assert_relative_eq!(crps(&of(0.3, 1.7, 5.5), -2.0), 1.451_842_263_060_971, max_relative = 1e-10);
    let pair = Predictive::mixture(vec![of(-1.0, 0.5, infinity), of(2.0, 1.5, infinity)]).unwrap();
    let normals = Predictive::mixture(vec![pair, of(0.4, 0.2, infinity)]).unwrap();
    assert_relative_eq!(crps(&normals, 0.7), 0.294_062_235_486_971_9, max_relative = 1e-10);
    let students = Predictive::mixture(vec![of(-1.0, 0.5, 3.5), of(2.0, 1.5, 12.0)]).unwrap();
    assert_relative_eq!(crps(&students, 0.7), 0.612_324_661_754_234_2, max_relative = 1e-8);
    // Of many samples the distribution functions are tabulated.
    let many = Predictive::mixture(vec![repeated(9, -1.0, 0.5, 3.5), repeated(9, 2.0, 1.5, 12.0)]).unwrap();
    assert_relative_eq!(crps(&many, 0.7), 0.612_324_661_754_234_2, max_relative = 1e-8);
    // Barely a variance: the heaviest tails there are, closed form against integral.
    let heavy = of(0.3, 1.0, 2.01);
    let twice = Predictive::mixture(vec![heavy.clone(), heavy.clone()]).unwrap();
    assert_relative_eq!(crps(&twice, 4.0), crps(&heavy, 4.0), max_relative = 1e-8);
}

/// `scipy.optimize.brentq` on the mean of `scipy.stats.t` and `norm` distribution functions, SciPy 1.17.
#[test]
fn quantiles_of_a_mixture_match_scipy() {
    let of = |n: usize, location: f64, scale: f64, dof: f64| {
        let variance = if dof.is_finite() { scale * scale * dof / (dof - 2.0) } else { scale * scale };
        Predictive::from_component(Component {
            mean: Mat::from_fn(1, n, |_, _| location),
            aleatoric: Covariance::Shared(Mat::from_fn(1, 1, |_, _| variance)),
            epistemic: Covariance::Zero,
            dof: if dof.is_finite() { Dof::Shared(dof) } else { Dof::Normal },
            skew: None,
        })
        .unwrap()
    };
    // One sample takes the distribution functions, many take tables of them.
    for n in [1, 100] {
        let members = vec![of(n, -1.0, 0.5, 3.5), of(n, 2.0, 1.5, 12.0), of(n, 0.4, 0.2, f64::INFINITY)];
        let mixture = Predictive::mixture(members).unwrap();
        for (p, expected) in [
            (1e-6, -23.293_374_141_180_73),
            (0.05, -1.656_393_949_029_355_8),
            (0.5, 0.342_210_828_102_347_93),
            (0.95, 3.629_723_217_332_061_5),
        ] {
            let found = mixture.quantile(&[p]).unwrap()[0][(0, n - 1)];
            assert_relative_eq!(found, expected, max_relative = 1e-11);
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let mut rng = rng(3);
    let predictive = mixture(3, 300, 3, &mut rng);
    let targets = normal(3, 300, &mut rng);
    let with_threads = |n| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| {
            (
                predictive.log_density(targets.as_ref()).unwrap(),
                predictive.quantile(&[0.3]).unwrap(),
                predictive.crps(targets.as_ref()).unwrap(),
                predictive.class_probabilities(1.5).unwrap(),
                predictive.class_decomposition(1.5, 8, 0).unwrap(),
            )
        })
    };
    assert!(with_threads(1) == with_threads(4));
}

#[test]
fn a_point_prediction_has_quantiles_and_scores_but_no_density() {
    let point = Predictive::from_component(Component {
        mean: Mat::from_fn(2, 1, |i, _| i as f64),
        aleatoric: Covariance::Zero,
        epistemic: Covariance::Zero,
        dof: Dof::Normal,
        skew: None,
    })
    .unwrap();
    let targets = Mat::from_fn(2, 1, |_, _| 3.0);
    assert!(matches!(point.log_density(targets.as_ref()), Err(Error::NotPositiveDefinite { pivot: 0, .. })));
    assert!(matches!(point.class_probabilities(1.0), Err(Error::NotPositiveDefinite { .. })));
    assert_close(point.quantile(&[0.2]).unwrap()[0].as_ref(), point.mean().as_ref(), 0.0);
    assert_close(
        point.crps(targets.as_ref()).unwrap().as_ref(),
        Mat::from_fn(2, 1, |i, _| 3.0 - i as f64).as_ref(),
        0.0,
    );
    assert_close(point.sample(1, &mut rng(0))[0].as_ref(), point.mean().as_ref(), 0.0);
}

/// Draws without noise: the mixture is a set of points, whose median is a point and not between two.
#[test]
fn a_mixture_of_points_has_its_points_as_quantiles() {
    let point = |at: f64| {
        Predictive::from_component(Component {
            mean: Mat::from_fn(1, 1, |_, _| at),
            aleatoric: Covariance::Zero,
            epistemic: Covariance::Zero,
            dof: Dof::Normal,
            skew: None,
        })
        .unwrap()
    };
    let points = Predictive::mixture(vec![point(0.0), point(1.0), point(5.0)]).unwrap();
    for (p, expected) in [(0.1, 0.0), (0.5, 1.0), (0.9, 5.0)] {
        let found = points.quantile(&[p]).unwrap()[0][(0, 0)];
        assert_relative_eq!(found, expected, epsilon = 1e-12);
    }
}

#[test]
fn wrong_shapes_and_values_are_typed_errors() {
    let good = || Component {
        mean: Mat::zeros(2, 3),
        aleatoric: Covariance::Shared(Mat::identity(2, 2)),
        epistemic: Covariance::Zero,
        dof: Dof::Normal,
        skew: None,
    };
    let error = |component| Predictive::from_component(component).unwrap_err();
    let wrong = Component { epistemic: Covariance::Full(Mat::zeros(3, 3)), ..good() };
    assert!(matches!(
        error(wrong),
        Error::Shape { what: "epistemic covariance", axis: "rows", found: 3, expected: 4 }
    ));
    let wrong = Component { dof: Dof::Shared(2.0), ..good() };
    assert!(matches!(error(wrong), Error::DegreesOfFreedom { bound: 2.0, .. }));
    let wrong = Component { mean: Mat::from_fn(2, 3, |_, _| f64::NAN), ..good() };
    assert!(matches!(error(wrong), Error::NotFinite { what: "predicted mean", .. }));
    let wrong = Component { epistemic: Covariance::Diagonal(Mat::from_fn(2, 3, |_, _| -1.0)), ..good() };
    assert!(matches!(error(wrong), Error::NotPositiveDefinite { what: "epistemic covariance", pivot: 0 }));
    assert!(matches!(Predictive::new(Vec::new()), Err(Error::Empty { .. })));
    let other = Component { mean: Mat::zeros(2, 4), ..good() };
    assert!(matches!(Predictive::new(vec![good(), other]), Err(Error::Shape { axis: "columns", .. })));

    let predictive = Predictive::from_component(good()).unwrap();
    assert!(matches!(
        predictive.log_density(Mat::zeros(2, 2).as_ref()),
        Err(Error::Shape { what: "targets", .. })
    ));
    assert!(matches!(predictive.quantile(&[0.5, 1.0]), Err(Error::Setting { name: "quantile", .. })));
    assert!(matches!(predictive.interval(0.0), Err(Error::Setting { name: "coverage", .. })));
    assert!(matches!(predictive.class_probabilities(0.0), Err(Error::Setting { name: "temperature", .. })));
    assert!(matches!(predictive.unscale(&[0.0], &[1.0]), Err(Error::Shape { what: "offset", .. })));
    assert!(matches!(predictive.unscale(&[0.0; 2], &[1.0, 0.0]), Err(Error::Setting { name: "scale", .. })));
    assert!(matches!(predictive.select(&[3]), Err(Error::Shape { found: 3, expected: 4, .. })));
}
