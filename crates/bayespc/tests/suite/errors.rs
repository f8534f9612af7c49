//! Errors as variables of the energy (ePC): their gradient, where they come to rest, and how fast, beside activities.

use crate::common::{assert_close, is_free, network, normal, rng};
use bayespc::Activation;
use bayespc::data::Dataset;
use bayespc::error::Error;
use bayespc::inference::{
    ActivityOptimiser, Clamp, HiddenPrecision, RelaxationSettings, Relaxer, Stop, Sweep, Variables,
};
use bayespc::learners::{PredictiveCoding, PredictiveCodingSettings};
use bayespc::network::{Activities, Network, NetworkSettings};
use faer::Mat;
use proptest::prelude::*;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

const WIDTHS: [usize; 4] = [3, 4, 3, 2];
const INPUT_VAR: f64 = 0.7;

/// A network, and data with some entries missing if `missing`.
fn setting(
    activation: Activation,
    missing: bool,
    rng: &mut ChaCha8Rng,
) -> (Network<f64>, Mat<f64>, Mat<f64>, Clamp<f64>) {
    let settings = NetworkSettings { input_var: INPUT_VAR, ..NetworkSettings::default() };
    let network = network(&WIDTHS, activation, &settings, rng);
    let (mut input, mut target) = (normal(WIDTHS[0], 3, rng), normal(WIDTHS[3], 3, rng));
    if !missing {
        return (network, input, target, Clamp::supervised());
    }
    for (i, j) in [(0, 0), (2, 0), (1, 1)] {
        input[(i, j)] = f64::NAN;
    }
    for (i, j) in [(1, 0), (0, 1), (0, 2), (1, 2)] {
        target[(i, j)] = f64::NAN;
    }
    let clamp = Clamp::missing(input.as_ref(), target.as_ref(), INPUT_VAR).unwrap();
    (network, input, target, clamp)
}

/// Activities of a network that runs from `input` up, each layer adding its error; clamped targets stay.
fn run(
    network: &Network<f64>,
    input: &Mat<f64>,
    errors: &[Mat<f64>],
    (target, clamp): (&Mat<f64>, &Clamp<f64>),
) -> Activities<f64> {
    let mut z = Activities::new(&network.widths(), input.ncols());
    z.pre[0].as_mut().subrows_mut(0, input.nrows()).copy_from(input);
    let (means, last) = (network.means(), errors.len() - 1);
    for (l, error) in errors.iter().enumerate() {
        z.post[l] = means[l] * &z.pre[l] + error;
        if l < last {
            z.activate(network.settings().activation, l);
        }
    }
    for j in 0..target.ncols() {
        for i in 0..target.nrows() {
            if clamp.free_output.as_ref().is_none_or(|free| free[(i, j)] == 0.0) {
                z.post[last][(i, j)] = target[(i, j)];
            }
        }
    }
    z
}

#[test]
fn the_gradient_in_the_errors_matches_central_differences() {
    let step = 1e-5;
    for (seed, activation) in Activation::ALL.into_iter().enumerate() {
        for missing in [false, true] {
            for weight_uncertainty in [0.0, 0.7] {
                let mut rng = rng(seed as u64 + 40);
                let (network, _, target, clamp) = setting(activation, missing, &mut rng);
                let settings = RelaxationSettings { weight_uncertainty, ..RelaxationSettings::paper() };
                let relaxer = Relaxer::new(&network, &settings, missing).unwrap();
                // Free inputs are anywhere, not at their prior mean.
                let input = normal(WIDTHS[0], 3, &mut rng);
                let errors: Vec<Mat<f64>> = WIDTHS[1..].iter().map(|&d| normal(d, 3, &mut rng)).collect();
                let z = run(&network, &input, &errors, (&target, &clamp));
                let (input_slope, slopes) = relaxer.error_gradients(&z, &clamp);
                let scale = slopes.iter().map(Mat::norm_max).fold(input_slope.norm_max(), f64::max);
                for (k, &d) in WIDTHS.iter().enumerate() {
                    for j in 0..3 {
                        for i in 0..d {
                            let found = if k == 0 { input_slope[(i, j)] } else { slopes[k - 1][(i, j)] };
                            let what = format!(
                                "{activation:?}, {missing}, τ = {weight_uncertainty}, ε_{k}[{i}, {j}]"
                            );
                            if !is_free(&clamp, k, i, j) {
                                assert_eq!(found, 0.0, "{what} is clamped");
                                continue;
                            }
                            let energy = |sign: f64| {
                                let (mut input, mut errors) = (input.clone(), errors.clone());
                                let moved = if k == 0 { &mut input } else { &mut errors[k - 1] };
                                moved[(i, j)] += sign * step;
                                let z = run(&network, &input, &errors, (&target, &clamp));
                                relaxer.energies(&z, &clamp)[j]
                            };
                            let difference = (energy(1.0) - energy(-1.0)) / (2.0 * step);
                            // Truncation step²·E‴/6 and rounding ε·E/step are both near 1e-9.
                            assert!(
                                (found - difference).abs() <= 1e-7 * scale,
                                "{what}: {found}, by differences {difference}"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// To rest by these variables: activities there, and their gradient relative to the first.
fn at_rest(
    network: &Network<f64>,
    (input, target, clamp): (&Mat<f64>, &Mat<f64>, &Clamp<f64>),
    settings: &RelaxationSettings,
) -> (Activities<f64>, f64) {
    let relaxer = Relaxer::new(network, settings, clamp.free_input.is_some()).unwrap();
    let mut z = relaxer.start(input.as_ref(), target.as_ref(), clamp);
    let norm = |z: &Activities<f64>| {
        let (input, post) = relaxer.gradients(z, clamp);
        post.iter().map(Mat::norm_max).fold(input.norm_max(), f64::max)
    };
    let before = norm(&z);
    let report = relaxer.relax(&mut z, clamp);
    assert_ne!(report.stop, Stop::Diverged);
    let share = norm(&z) / before;
    (z, share)
}

#[test]
fn errors_come_to_rest_where_activities_do() {
    let precisions = [HiddenPrecision::Learned, HiddenPrecision::Tied(1.0), HiddenPrecision::Fixed(2.0)];
    for hidden_precision in precisions {
        for missing in [false, true] {
            for weight_uncertainty in [0.0, 0.5] {
                let mut rng = rng(7);
                let (network, input, target, clamp) = setting(Activation::Tanh, missing, &mut rng);
                let activities = RelaxationSettings {
                    steps: 20_000,
                    tolerance: 1e-16,
                    optimiser: ActivityOptimiser::Gradient { rate: None },
                    sweep: Sweep::Sequential,
                    halve_steps: true,
                    hidden_precision,
                    weight_uncertainty,
                    ..RelaxationSettings::paper()
                };
                let data = (&input, &target, &clamp);
                let (expected, share) = at_rest(&network, data, &activities);
                assert!(share < 1e-5, "activities are at rest: {share}");
                for (optimiser, steps) in [
                    (ActivityOptimiser::Gradient { rate: None }, 200),
                    (ActivityOptimiser::Gradient { rate: Some(0.02) }, 5_000),
                ] {
                    let errors = RelaxationSettings {
                        variables: Variables::Errors,
                        sweep: Sweep::Simultaneous,
                        optimiser,
                        steps,
                        ..activities.clone()
                    };
                    let (found, share) = at_rest(&network, data, &errors);
                    assert!(share < 1e-5, "{optimiser:?}: errors are at rest: {share}");
                    let what =
                        format!("{hidden_precision:?}, {missing}, {weight_uncertainty}, {optimiser:?}");
                    for (found, expected) in found.post.iter().zip(&expected.post) {
                        assert_close(found.as_ref(), expected.as_ref(), 1e-4, &what);
                    }
                    assert_close(found.pre[0].as_ref(), expected.pre[0].as_ref(), 1e-4, &what);
                }
            }
        }
    }
}

/// A network of `depth` hidden layers of width 6 and two outputs, with data.
fn deep(depth: usize, activation: Activation, rng: &mut ChaCha8Rng) -> (Network<f64>, Mat<f64>, Mat<f64>) {
    let widths: Vec<usize> = [4].into_iter().chain(vec![6; depth]).chain([2]).collect();
    let network = network(&widths, activation, &NetworkSettings::default(), rng);
    (network, normal(4, 5, rng), normal(2, 5, rng))
}

#[test]
fn the_first_step_of_errors_reaches_the_lowest_layer_and_that_of_activities_the_highest() {
    let mut rng = rng(11);
    let (network, input, target) = deep(30, Activation::Tanh, &mut rng);
    let clamp = Clamp::supervised();
    let moved = |variables, steps| {
        let settings = RelaxationSettings { variables, steps, ..RelaxationSettings::tied() };
        let relaxer = Relaxer::new(&network, &settings, false).unwrap();
        let start = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
        let mut z = start.clone();
        relaxer.relax(&mut z, &clamp);
        let moves = |(a, b): (&Mat<f64>, &Mat<f64>)| (a - b).norm_max() > 0.0;
        z.post.iter().zip(&start.post).take(30).map(moves).collect::<Vec<bool>>()
    };
    assert_eq!(moved(Variables::Errors, 1), vec![true; 30]);
    for steps in [1, 3] {
        let expected: Vec<bool> = (0..30).map(|l| l >= 30 - steps).collect();
        assert_eq!(moved(Variables::Activities, steps), expected);
    }
}

#[test]
fn a_linear_network_of_two_outputs_is_at_rest_after_three_steps_however_deep() {
    for depth in [1, 4, 12] {
        let mut rng = rng(depth as u64);
        let (network, input, target) = deep(depth, Activation::Identity, &mut rng);
        let clamp = Clamp::supervised();
        let share = |variables, steps| {
            let settings = RelaxationSettings { variables, steps, ..RelaxationSettings::tied() };
            at_rest(&network, (&input, &target, &clamp), &settings).1
        };
        assert!(share(Variables::Errors, 3) < 1e-9, "{depth}: {}", share(Variables::Errors, 3));
        assert!(depth == 1 || share(Variables::Activities, 3) > 1e-3, "activities are on their way");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn halving_steps_of_errors_never_raises_the_energy(seed in any::<u64>()) {
        for activation in Activation::ALL {
            for optimiser in [
                ActivityOptimiser::Gradient { rate: None },
                ActivityOptimiser::Gradient { rate: Some(10.0) },
                ActivityOptimiser::Momentum { rate: Some(0.1), momentum: 0.9 },
                ActivityOptimiser::Adam { rate: 0.5 },
            ] {
                let mut rng = rng(seed);
                let missing = rng.random::<bool>();
                let (network, input, target, clamp) = setting(activation, missing, &mut rng);
                let settings = RelaxationSettings {
                    variables: Variables::Errors,
                    steps: 12,
                    optimiser,
                    halve_steps: true,
                    weight_uncertainty: rng.random(),
                    ..RelaxationSettings::paper()
                };
                let relaxer = Relaxer::new(&network, &settings, missing).unwrap();
                let mut z = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
                let before = relaxer.energies(&z, &clamp);
                let report = relaxer.relax(&mut z, &clamp);
                prop_assert!(report.energy.windows(2).all(|e| e[1] <= e[0] * (1.0 + 1e-13)), "{report:?}");
                prop_assert!(report.energy.last() < report.energy.first());
                for (after, before) in relaxer.energies(&z, &clamp).iter().zip(before) {
                    prop_assert!(*after <= before * (1.0 + 1e-13), "{activation:?}, {optimiser:?}");
                }
            }
        }
    }
}

#[test]
fn errors_report_why_they_stopped() {
    let mut rng = rng(5);
    let (network, input, target, clamp) = setting(Activation::Tanh, false, &mut rng);
    let relax = |optimiser, tolerance, steps| {
        let settings = RelaxationSettings {
            variables: Variables::Errors,
            optimiser,
            tolerance,
            steps,
            ..RelaxationSettings::tied()
        };
        let relaxer = Relaxer::new(&network, &settings, false).unwrap();
        let start = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
        let mut z = start.clone();
        let report = relaxer.relax(&mut z, &clamp);
        assert_eq!(report.energy.len(), report.steps + 1);
        (report, start.post.iter().zip(&z.post).any(|(a, b)| a != b))
    };
    let own = ActivityOptimiser::Gradient { rate: None };
    let (report, moved) = relax(own, 0.0, 4);
    assert_eq!((report.stop, report.steps, moved), (Stop::MaxSteps, 4, true));
    let (report, moved) = relax(own, 1e-6, 1000);
    assert_eq!((report.stop, moved), (Stop::Converged, true));
    assert!(report.steps < 50, "{}", report.steps);
    let (report, moved) = relax(ActivityOptimiser::Gradient { rate: Some(1e200) }, 0.0, 10);
    assert_eq!(
        (report.stop, moved),
        (Stop::Diverged, false),
        "errors that diverge leave activities in place"
    );
}

#[test]
fn settings_that_errors_have_no_use_for_are_refused() {
    let errors = RelaxationSettings { variables: Variables::Errors, ..RelaxationSettings::tied() };
    assert!(errors.validate().is_ok());
    let sequential = RelaxationSettings { sweep: Sweep::Sequential, ..errors.clone() };
    let momentum = ActivityOptimiser::Momentum { rate: None, momentum: 0.5 };
    let momentum = RelaxationSettings { optimiser: momentum, ..errors };
    for refused in [sequential, momentum] {
        let error = refused.validate().unwrap_err();
        assert!(matches!(error, Error::Conflict { first: "relaxation.variables = errors", .. }), "{error}");
    }
}

#[test]
fn predictive_coding_at_rest_has_the_same_gradients_by_either_variables() {
    let mut rng = rng(9);
    let shape = NetworkSettings {
        hidden_layer_sizes: vec![6, 5, 4],
        activation: Activation::Tanh,
        ..NetworkSettings::default()
    };
    let (input, target) = (normal(3, 70, &mut rng), normal(2, 70, &mut rng));
    let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
    let gradients = |variables, inference_steps| {
        let settings = PredictiveCodingSettings {
            inference_steps,
            activity_optimiser: ActivityOptimiser::Gradient { rate: None },
            variables,
            ..PredictiveCodingSettings::default()
        };
        let start = &mut crate::common::rng(2);
        let mut learner = PredictiveCoding::<f64>::new(&shape, &settings, 3, 2, start).unwrap();
        learner.gradients(&data).unwrap().to_vec()
    };
    let activities = gradients(Variables::Activities, 500);
    let errors = gradients(Variables::Errors, 30);
    for (found, expected) in errors.iter().zip(&activities) {
        assert_close(found.as_ref(), expected.as_ref(), 1e-7, "gradient at rest");
    }
}
