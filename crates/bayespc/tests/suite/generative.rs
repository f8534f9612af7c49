//! The network as a generative model: what it learns without inputs, what it fills in, what it draws.

use crate::common::{normal, rng};
use bayespc::Activation;
use bayespc::base::linalg::{Cholesky, cast, scaled_identity};
use bayespc::data::Dataset;
use bayespc::inference::{
    ActivityOptimiser, LangevinSettings, Parameters, RelaxationSettings, draw_missing, generate, impute,
};
use bayespc::learners::{Bpc, Learner, Rule, Step};
use bayespc::network::{Network, NetworkSettings, PriorSettings};
use faer::{Mat, Side};
use proptest::prelude::*;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Sine of the largest angle between the column spans of `a` and of `b`, which is orthonormal.
fn largest_angle(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    let basis = a.thin_svd().unwrap().U().to_owned();
    let outside = &basis - b * (b.transpose() * &basis);
    outside.singular_values().unwrap()[0].asin()
}

/// With inputs unknown and isotropic noise, inference and learning descend
/// p‖Y − WΦ‖² + p‖W‖²/V⁰ + ‖Z‖²/σ₀² in turns; its minimum spans the leading principal components.
#[test]
fn an_unsupervised_layer_learns_the_principal_subspace() {
    let (d, n, latent) = (5, 150, 2);
    for seed in 0..3 {
        let mut rng = rng(seed);
        let rotation = normal(d, d, &mut rng).thin_svd().unwrap().U().to_owned();
        let spread = [2.5, 1.5, 0.4, 0.3, 0.2];
        let raw = normal(d, n, &mut rng);
        let mut target = &rotation * Mat::from_fn(d, n, |i, j| spread[i] * raw[(i, j)]);
        for i in 0..d {
            let mean = (0..n).map(|j| target[(i, j)]).sum::<f64>() / n as f64;
            (0..n).for_each(|j| target[(i, j)] -= mean);
        }
        let input = Mat::from_fn(latent, n, |_, _| f64::NAN);
        let settings = NetworkSettings {
            hidden_layer_sizes: Vec::new(),
            prior: PriorSettings { var: 100.0, ..PriorSettings::default() },
            ..NetworkSettings::default()
        };
        let network = Network::<f64>::new(&settings, latent, d, &mut rng).unwrap();
        let rule = Rule::Relaxation(RelaxationSettings {
            steps: 200,
            optimiser: ActivityOptimiser::Gradient { rate: None },
            output_precision: Some(4.0),
            weight_uncertainty: 0.0,
            ..RelaxationSettings::paper()
        });
        let mut learner = Bpc::new(network, rule).unwrap();
        let data = Dataset::with_missing(input.as_ref(), target.as_ref()).unwrap();
        let step = Step { index: 1, total: None, n_total: n as f64, full_batch: true };
        for _ in 0..80 {
            learner.learn(&data, &step, &mut rng).unwrap();
        }
        let covariance = &target * target.transpose();
        let eigen = covariance.self_adjoint_eigen(Side::Lower).unwrap();
        let principal = eigen.U().subcols(d - latent, latent).to_owned();
        let weights = learner.network().output().blocks()[0].mean().subcols(0, latent).to_owned();
        let angle = largest_angle(&weights, &principal);
        assert!(angle < 1e-2, "seed {seed}: {angle}");
    }
}

fn linear_network(widths: &[usize], input_var: f64, rng: &mut ChaCha8Rng) -> Network<f64> {
    let settings = NetworkSettings { input_var, ..NetworkSettings::default() };
    crate::common::network(widths, Activation::Identity, &settings, rng)
}

/// Mean and covariance of (z_0, …, z_L) of a linear network whose layers have this noise.
fn joint(network: &Network<f64>, noise: impl Fn(usize) -> Mat<f64>) -> (Mat<f64>, Mat<f64>) {
    let widths = network.widths();
    let total: usize = widths.iter().sum();
    // z = a + B e with independent e ~ N(0, S), S block diagonal.
    let (mut mean, mut response) = (Mat::zeros(total, 1), Mat::<f64>::zeros(total, total));
    let mut spread = Mat::<f64>::zeros(total, total);
    let d_0 = widths[0];
    for i in 0..d_0 {
        response[(i, i)] = 1.0;
        spread[(i, i)] = network.settings().input_var;
    }
    let mut below = 0;
    for (l, layer) in network.layers().enumerate() {
        let above = below + widths[l];
        let (d_pre, d_post) = (widths[l], widths[l + 1]);
        let weights = layer.mean().subcols(0, d_pre);
        let carried = weights * mean.subrows(below, d_pre) + layer.mean().subcols(d_pre, 1);
        mean.as_mut().subrows_mut(above, d_post).copy_from(carried);
        let carried = weights * response.subrows(below, d_pre);
        response.as_mut().subrows_mut(above, d_post).copy_from(carried);
        let own = noise(l);
        for i in 0..d_post {
            response[(above + i, above + i)] = 1.0;
            for k in 0..d_post {
                spread[(above + i, above + k)] = own[(i, k)];
            }
        }
        below = above;
    }
    (mean, &response * spread * response.transpose())
}

fn pick(a: &Mat<f64>, rows: &[usize], columns: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), columns.len(), |i, j| a[(rows[i], columns[j])])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn imputed_values_of_a_linear_network_are_the_gaussian_conditional(seed in any::<u64>()) {
        let mut rng = rng(seed);
        for widths in [vec![3, 2], vec![3, 4, 2], vec![3, 4, 3, 2]] {
            let network = linear_network(&widths, 0.8, &mut rng);
            let layers: Vec<_> = network.layers().collect();
            // Inference takes the noise precision to be ⟨Σ⁻¹⟩.
            let (mean, covariance) = joint(&network, |l| {
                let precision = layers[l].posterior().unwrap().expected_precision();
                Cholesky::new(precision.as_ref(), "⟨Σ⁻¹⟩").unwrap().inverse()
            });
            let n = 8;
            let (mut input, mut target) = (normal(3, n, &mut rng), normal(2, n, &mut rng));
            // Sample 0 is complete, sample 1 wholly missing.
            for j in 1..n {
                for i in 0..5 {
                    if j == 1 || rng.random::<bool>() {
                        if i < 3 { input[(i, j)] = f64::NAN } else { target[(i - 3, j)] = f64::NAN }
                    }
                }
            }
            let imputed = impute(&network, input.as_ref(), target.as_ref(), 0.0).unwrap();
            let total = mean.nrows();
            let visible: Vec<usize> = (0..3).chain(total - 2..total).collect();
            for j in 0..n {
                let given = |i: usize| if i < 3 { input[(i, j)] } else { target[(i - 3, j)] };
                let found = |i: usize| if i < 3 {
                    (imputed.input[(i, j)], imputed.input_variance[(i, j)])
                } else {
                    (imputed.target[(i - 3, j)], imputed.target_variance[(i - 3, j)])
                };
                let (missing, observed): (Vec<usize>, Vec<usize>) =
                    (0..5).partition(|&i| given(i).is_nan());
                for &i in &observed {
                    prop_assert_eq!(found(i), (given(i), 0.0));
                }
                let place = |entries: &[usize]| -> Vec<usize> { entries.iter().map(|&i| visible[i]).collect() };
                let (a, b) = (place(&missing), place(&observed));
                let cross = pick(&covariance, &a, &b);
                let own = Cholesky::new(pick(&covariance, &b, &b).as_ref(), "observed").unwrap();
                let surprise = Mat::from_fn(b.len(), 1, |k, _| given(observed[k]) - mean[(b[k], 0)]);
                let conditional_mean = pick(&mean, &a, &[0]) + &cross * own.solve(surprise.as_ref());
                let conditional = pick(&covariance, &a, &a) - &cross * own.solve(cross.transpose());
                for (k, &i) in missing.iter().enumerate() {
                    let (value, variance) = found(i);
                    let (expected, spread) = (conditional_mean[(k, 0)], conditional[(k, k)]);
                    prop_assert!(
                        (value - expected).abs() <= 1e-6 * spread.sqrt().max(expected.abs()),
                        "{widths:?}, sample {j}, entry {i}: {value}, expected {expected}"
                    );
                    prop_assert!(
                        (variance - spread).abs() <= 1e-6 * spread,
                        "{widths:?}, sample {j}, entry {i}: variance {variance}, expected {spread}"
                    );
                }
            }
        }
    }
}

#[test]
fn imputation_in_single_precision_agrees_with_double() {
    for (seed, activation) in Activation::ALL.into_iter().enumerate() {
        let mut rng = rng(seed as u64);
        let network = crate::common::network(&[3, 6, 2], activation, &NetworkSettings::default(), &mut rng);
        let (mut input, mut target) = (normal(3, 6, &mut rng), normal(2, 6, &mut rng));
        for j in 0..6 {
            input[(j % 3, j)] = f64::NAN;
            target[(j % 2, j)] = f64::NAN;
        }
        let single = network.to_precision::<f32>().unwrap();
        let narrow = impute(
            &single,
            cast::<f64, f32>(input.as_ref()).as_ref(),
            cast::<f64, f32>(target.as_ref()).as_ref(),
            1.0,
        )
        .unwrap();
        let wide = impute(&network, input.as_ref(), target.as_ref(), 1.0).unwrap();
        // The energy is flat at its minimum: an error ε of the energy moves the minimum by √ε = 3e-4.
        for (a, b) in [(&narrow.input, &wide.input), (&narrow.target, &wide.target)] {
            let a: Mat<f64> = cast(a.as_ref());
            crate::common::assert_close(a.as_ref(), b.as_ref(), 3e-3, &format!("{activation:?}"));
        }
    }
}

#[test]
fn imputation_refuses_data_of_another_shape() {
    let mut rng = rng(0);
    let network = linear_network(&[3, 4, 2], 1.0, &mut rng);
    let (input, target) = (normal(3, 5, &mut rng), normal(2, 5, &mut rng));
    for (input, target) in [
        (normal(2, 5, &mut rng), target.clone()),
        (input.clone(), normal(1, 5, &mut rng)),
        (input.clone(), normal(3, 5, &mut rng)),
        (input.clone(), normal(2, 4, &mut rng)),
    ] {
        let error = impute(&network, input.as_ref(), target.as_ref(), 0.0).unwrap_err();
        assert!(matches!(error, bayespc::Error::Shape { .. }), "{error}");
    }
    assert!(impute(&network, input.as_ref(), target.as_ref(), 0.0).is_ok());
}

/// For a Gaussian, Var(mean) = C_ii/n and Var(sample covariance) = (C_ii C_jj + C_ij²)/n; 5 standard errors,
/// which one of the 65 comparisons misses with probability 4·10⁻⁵.
#[test]
fn generated_data_have_the_moments_of_a_linear_network() {
    let mut rng = rng(1);
    let mut network = linear_network(&[2, 4, 3], 1.7, &mut rng);
    let n = 20_000;
    for hidden_noise in [true, false] {
        network.set_hidden_noise(hidden_noise);
        let posteriors = network.posteriors().unwrap();
        let (mean, covariance) = joint(&network, |l| match l {
            0 if hidden_noise => posteriors.hidden[0].expected_covariance().unwrap(),
            0 => scaled_identity(4, 0.0),
            _ => posteriors.output_noise().unwrap(),
        });
        let (input, target) = generate(&network, n, Parameters::Mean, &mut rng).unwrap();
        let visible = [0, 1, 6, 7, 8];
        let value = |i: usize, j: usize| if i < 2 { input[(i, j)] } else { target[(i - 2, j)] };
        let size = n as f64;
        for (i, &a) in visible.iter().enumerate() {
            let found = (0..n).map(|j| value(i, j)).sum::<f64>() / size;
            let error = (covariance[(a, a)] / size).sqrt();
            assert!((found - mean[(a, 0)]).abs() <= 5.0 * error, "mean {i}: {found}");
            for (k, &b) in visible.iter().enumerate() {
                let found =
                    (0..n).map(|j| (value(i, j) - mean[(a, 0)]) * (value(k, j) - mean[(b, 0)])).sum::<f64>()
                        / size;
                let expected = covariance[(a, b)];
                let error = ((covariance[(a, a)] * covariance[(b, b)] + expected * expected) / size).sqrt();
                assert!(
                    (found - expected).abs() <= 5.0 * error,
                    "covariance {i}, {k}: {found}, expected {expected}"
                );
            }
        }
    }
}

/// The chain's draws are correlated: batch means of 40 draws give the standard error, five of them.
#[test]
fn langevin_draws_of_a_linear_network_have_the_exact_conditional_moments() {
    let mut rng = rng(4);
    let network = linear_network(&[3, 4, 2], 0.8, &mut rng);
    let (mut input, mut target) = (normal(3, 4, &mut rng), normal(2, 4, &mut rng));
    for (i, j) in [(0, 1), (1, 1), (0, 2), (2, 2), (0, 3), (1, 3), (2, 3)] {
        input[(i, j)] = f64::NAN;
    }
    target[(1, 1)] = f64::NAN;
    target[(0, 3)] = f64::NAN;
    let (draws, batch) = (2000, 40);
    let settings = LangevinSettings { steps: 4, weight_uncertainty: 0.0, ..LangevinSettings::default() };
    let drawn = draw_missing(&network, input.as_ref(), target.as_ref(), draws, &settings).unwrap();
    assert!(drawn.accepted > 0.4, "{}", drawn.accepted);
    // What imputing gives is tested above to be the exact conditional.
    let exact = impute(&network, input.as_ref(), target.as_ref(), 0.0).unwrap();
    let mut compared = 0;
    for j in 0..4 {
        for i in 0..5 {
            let at =
                |draw: usize| if i < 3 { drawn.input[draw][(i, j)] } else { drawn.target[draw][(i - 3, j)] };
            let (given, mean, variance) = if i < 3 {
                (input[(i, j)], exact.input[(i, j)], exact.input_variance[(i, j)])
            } else {
                (target[(i - 3, j)], exact.target[(i - 3, j)], exact.target_variance[(i - 3, j)])
            };
            if !given.is_nan() {
                assert!((0..draws).all(|draw| at(draw) == given));
                continue;
            }
            compared += 1;
            for (power, expected) in [(1, 0.0), (2, variance)] {
                let means: Vec<f64> = (0..draws / batch)
                    .map(|b| {
                        (0..batch).map(|k| (at(b * batch + k) - mean).powi(power)).sum::<f64>() / batch as f64
                    })
                    .collect();
                let count = means.len() as f64;
                let found = means.iter().sum::<f64>() / count;
                let spread = means.iter().map(|m| (m - found).powi(2)).sum::<f64>() / (count - 1.0);
                let error = (spread / count).sqrt();
                assert!(
                    (found - expected).abs() < 5.0 * error,
                    "{i} {j}, power {power}: {found}, {expected} ± {error}"
                );
            }
        }
    }
    assert_eq!(compared, 9);
}

#[test]
fn langevin_draws_follow_their_seed_in_a_bent_network() {
    let mut rng = rng(2);
    let network = crate::common::network(&[2, 3, 2], Activation::Tanh, &NetworkSettings::default(), &mut rng);
    let input = Mat::from_fn(2, 2, |i, j| if i == j { f64::NAN } else { 0.2 });
    let target = normal(2, 2, &mut rng);
    let draw = |seed| {
        let settings = LangevinSettings { seed, ..LangevinSettings::default() };
        draw_missing(&network, input.as_ref(), target.as_ref(), 10, &settings).unwrap()
    };
    let (first, again, other) = (draw(3), draw(3), draw(4));
    assert!(first.input == again.input && first.input != other.input);
    assert!(first.input.iter().all(|x| x[(0, 0)].is_finite() && x[(1, 0)] == 0.2));
    assert!(first.accepted > 0.2, "{}", first.accepted);
}
