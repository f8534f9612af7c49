//! The energy of the activities: its gradients against central differences, and that descending it does.

use crate::common::{assert_close, assert_near, is_free, normal, rng};
use bayespc::Activation;
use bayespc::base::linalg::{scaled_identity, trace};
use bayespc::distributions::MatrixNormalWishart;
use bayespc::error::Error;
use bayespc::heads::{Categorical, HeadSettings, VarianceNode};
use bayespc::inference::{
    ActivityOptimiser, Clamp, HiddenPrecision, Parameters, RelaxationSettings, Relaxer, Stop, Sweep,
    generate, impute,
};
use bayespc::learners::{Bpc, Rule};
use bayespc::network::{Activities, Network, NetworkSettings};
use faer::Mat;
use proptest::prelude::*;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

const WIDTHS: [usize; 4] = [3, 4, 3, 2];
const INPUT_VAR: f64 = 0.7;

fn network(activation: Activation, rng: &mut ChaCha8Rng) -> Network<f64> {
    let settings = NetworkSettings { input_var: INPUT_VAR, ..NetworkSettings::default() };
    crate::common::network(&WIDTHS, activation, &settings, rng)
}

/// Which entries are NaN.
#[derive(Clone, Copy, Debug)]
enum Missing {
    Nothing,
    Some,
    WholeInput,
}

const EVERY_MISSING: [Missing; 3] = [Missing::Nothing, Missing::Some, Missing::WholeInput];

fn data(n: usize, missing: Missing, rng: &mut ChaCha8Rng) -> (Mat<f64>, Mat<f64>, Clamp<f64>) {
    let (mut input, mut target) = (normal(WIDTHS[0], n, rng), normal(WIDTHS[3], n, rng));
    match missing {
        Missing::Nothing => return (input, target, Clamp::supervised()),
        Missing::Some => {
            for values in [&mut input, &mut target] {
                for j in 0..n {
                    for i in 0..values.nrows() {
                        if rng.random::<f64>() < 0.4 {
                            values[(i, j)] = f64::NAN;
                        }
                    }
                }
            }
        }
        Missing::WholeInput => input.fill(f64::NAN),
    }
    let clamp = Clamp::missing(input.as_ref(), target.as_ref(), INPUT_VAR).unwrap();
    (input, target, clamp)
}

fn relaxer(network: &Network<f64>, settings: &RelaxationSettings, missing: Missing) -> Relaxer<f64> {
    Relaxer::new(network, settings, !matches!(missing, Missing::Nothing)).unwrap()
}

/// The activity z_k of layer k = 0 … L, to change it.
fn activity(activities: &mut Activities<f64>, k: usize) -> &mut Mat<f64> {
    if k == 0 { &mut activities.pre[0] } else { &mut activities.post[k - 1] }
}

#[test]
fn every_gradient_matches_central_differences() {
    let step = 1e-5;
    for (seed, activation) in Activation::ALL.into_iter().enumerate() {
        for missing in EVERY_MISSING {
            for weight_uncertainty in [0.0, 0.5, 1.0] {
                let mut rng = rng(seed as u64);
                let network = network(activation, &mut rng);
                let settings = RelaxationSettings { weight_uncertainty, ..RelaxationSettings::paper() };
                let relaxer = relaxer(&network, &settings, missing);
                let (input, target, clamp) = data(3, missing, &mut rng);
                let mut activities = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
                for (k, &d) in WIDTHS.iter().enumerate() {
                    for j in 0..3 {
                        for i in (0..d).filter(|&i| is_free(&clamp, k, i, j)) {
                            let shift: f64 = rng.random_range(0.1..1.0);
                            let z = &mut activity(&mut activities, k)[(i, j)];
                            *z += shift;
                            // Away from the rectifiers' kink, where there is no derivative.
                            if z.abs() < 0.01 {
                                *z = 0.01;
                            }
                        }
                    }
                }
                for l in 0..2 {
                    activities.activate(activation, l);
                }
                let (input_gradient, post_gradients) = relaxer.gradients(&activities, &clamp);
                let scale =
                    post_gradients.iter().map(Mat::norm_max).fold(input_gradient.norm_max(), f64::max);
                for (k, &d) in WIDTHS.iter().enumerate() {
                    let gradient = if k == 0 { &input_gradient } else { &post_gradients[k - 1] };
                    for j in 0..3 {
                        for i in 0..d {
                            let what = format!(
                                "{activation:?}, {missing:?}, τ = {weight_uncertainty}, z_{k}[{i}, {j}]"
                            );
                            let found = gradient[(i, j)];
                            if !is_free(&clamp, k, i, j) {
                                assert_eq!(found, 0.0, "{what} is clamped");
                                continue;
                            }
                            let energy = |sign: f64| {
                                let mut moved = activities.clone();
                                activity(&mut moved, k)[(i, j)] += sign * step;
                                for l in 0..2 {
                                    moved.activate(activation, l);
                                }
                                relaxer.energies(&moved, &clamp)[j]
                            };
                            // Truncation step²·E‴/6 and rounding ε·E/step are both near 1e-9.
                            let difference = (energy(1.0) - energy(-1.0)) / (2.0 * step);
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

fn assert_never_rises(energy: &[f64], what: &str) {
    assert!(energy.len() > 2, "{what}: {energy:?}");
    for pair in energy.windows(2) {
        // The sums are rounded; the descent itself is exact.
        assert!(pair[1] <= pair[0] * (1.0 + 1e-13), "{what}: {energy:?}");
    }
    assert!(energy[energy.len() - 1] < energy[0], "{what}: {energy:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_sequential_sweep_at_the_bound_never_raises_the_energy_of_a_linear_network(seed in any::<u64>()) {
        for missing in EVERY_MISSING {
            let mut rng = rng(seed);
            let network = network(Activation::Identity, &mut rng);
            let settings = RelaxationSettings {
                steps: 40,
                optimiser: ActivityOptimiser::Gradient { rate: None },
                sweep: Sweep::Sequential,
                weight_uncertainty: rng.random(),
                ..RelaxationSettings::paper()
            };
            let relaxer = relaxer(&network, &settings, missing);
            let (input, target, clamp) = data(5, missing, &mut rng);
            let mut activities = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
            let report = relaxer.relax(&mut activities, &clamp);
            assert_never_rises(&report.energy, &format!("{missing:?}"));
        }
    }

    #[test]
    fn halving_steps_never_raises_the_energy_of_any_network(seed in any::<u64>()) {
        for activation in Activation::ALL {
            for sweep in [Sweep::Simultaneous, Sweep::Sequential] {
                for optimiser in [
                    ActivityOptimiser::Gradient { rate: None },
                    ActivityOptimiser::Gradient { rate: Some(10.0) },
                    ActivityOptimiser::Momentum { rate: None, momentum: 0.9 },
                    ActivityOptimiser::Adam { rate: 0.5 },
                ] {
                    let mut rng = rng(seed);
                    let missing = EVERY_MISSING[rng.random_range(0..3)];
                    let network = network(activation, &mut rng);
                    let settings = RelaxationSettings {
                        steps: 12,
                        optimiser,
                        sweep,
                        halve_steps: true,
                        weight_uncertainty: rng.random(),
                        ..RelaxationSettings::paper()
                    };
                    let relaxer = relaxer(&network, &settings, missing);
                    let (input, target, clamp) = data(3, missing, &mut rng);
                    let mut activities = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
                    let before = relaxer.energies(&activities, &clamp);
                    let report = relaxer.relax(&mut activities, &clamp);
                    let what = format!("{activation:?}, {sweep:?}, {optimiser:?}, {missing:?}");
                    assert_never_rises(&report.energy, &what);
                    // The promise is made to every sample.
                    for (after, before) in relaxer.energies(&activities, &clamp).iter().zip(before) {
                        prop_assert!(*after <= before * (1.0 + 1e-13), "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn relaxation_to_a_tolerance_ends_where_the_gradient_is_small(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let network = network(Activation::Tanh, &mut rng);
        let settings = RelaxationSettings {
            steps: 20_000,
            tolerance: 1e-14,
            optimiser: ActivityOptimiser::Gradient { rate: None },
            sweep: Sweep::Sequential,
            halve_steps: true,
            ..RelaxationSettings::paper()
        };
        let missing = Missing::Some;
        let relaxer = relaxer(&network, &settings, missing);
        let (input, target, clamp) = data(1, missing, &mut rng);
        let mut activities = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
        let norm = |activities: &Activities<f64>| {
            let (input, post) = relaxer.gradients(activities, &clamp);
            post.iter().map(Mat::norm_max).fold(input.norm_max(), f64::max)
        };
        let before = norm(&activities);
        let report = relaxer.relax(&mut activities, &clamp);
        prop_assert_eq!(report.stop, Stop::Converged);
        prop_assert!(norm(&activities) <= 1e-4 * before, "{} from {before}", norm(&activities));
    }
}

#[test]
fn relaxation_reports_why_it_stopped() {
    let mut rng = rng(3);
    let network = network(Activation::Tanh, &mut rng);
    let (input, target, clamp) = data(4, Missing::Nothing, &mut rng);
    let relax = |settings: &RelaxationSettings| {
        let relaxer = relaxer(&network, settings, Missing::Nothing);
        let mut activities = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
        let start = activities.clone();
        let report = relaxer.relax(&mut activities, &clamp);
        let moved = start.post.iter().zip(&activities.post).any(|(a, b)| a != b);
        (report, moved)
    };
    let all_steps = RelaxationSettings {
        steps: 17,
        optimiser: ActivityOptimiser::Gradient { rate: None },
        ..RelaxationSettings::paper()
    };
    let (report, moved) = relax(&all_steps);
    assert_eq!((report.stop, report.steps, report.energy.len(), moved), (Stop::MaxSteps, 17, 18, true));

    let to_tolerance = RelaxationSettings {
        steps: 5000,
        tolerance: 1e-6,
        // Layers that move together may circle around the minimum.
        sweep: Sweep::Sequential,
        ..all_steps.clone()
    };
    let (report, moved) = relax(&to_tolerance);
    assert_eq!((report.stop, moved), (Stop::Converged, true));
    assert!(report.steps < 5000 && report.energy.len() == report.steps + 1);
    let last = &report.energy[report.energy.len() - 2..];
    assert!((last[0] - last[1]).abs() <= 1e-6 * last[0]);

    let too_far = RelaxationSettings {
        steps: 2000,
        optimiser: ActivityOptimiser::Gradient { rate: Some(1e3) },
        ..all_steps
    };
    let (report, moved) = relax(&too_far);
    assert_eq!((report.stop, moved), (Stop::Diverged, false), "a diverged relaxation leaves the start");
}

#[test]
fn the_report_has_the_energy_of_the_start_and_of_every_step() {
    let mut rng = rng(5);
    let network = network(Activation::Tanh, &mut rng);
    for missing in EVERY_MISSING {
        let (input, target, clamp) = data(4, missing, &mut rng);
        for sweep in [Sweep::Simultaneous, Sweep::Sequential] {
            let relax = |steps: usize| {
                let settings = RelaxationSettings { steps, sweep, ..RelaxationSettings::paper() };
                let relaxer = relaxer(&network, &settings, missing);
                let mut activities = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
                let energy = relaxer.relax(&mut activities, &clamp).energy;
                (energy, relaxer.energies(&activities, &clamp).iter().sum::<f64>())
            };
            let (energy, _) = relax(6);
            assert_eq!(energy.len(), 7);
            for (steps, &found) in energy.iter().enumerate() {
                assert_eq!(found, relax(steps).1, "{missing:?}, {sweep:?}, step {steps}");
            }
        }
    }
}

/// The prior of a free z_0 is in the first layer's share.
#[test]
fn the_energies_of_the_layers_add_up_to_that_of_the_samples_whatever_is_clamped() {
    for missing in EVERY_MISSING {
        let mut rng = rng(8);
        let network = network(Activation::Tanh, &mut rng);
        let relaxer = relaxer(&network, &RelaxationSettings::paper(), missing);
        let (input, target, clamp) = data(4, missing, &mut rng);
        let mut activities = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
        relaxer.relax(&mut activities, &clamp);
        let total: f64 = relaxer.energies(&activities, &clamp).iter().sum();
        let layers: f64 = relaxer.layer_energies(&activities, &clamp).iter().sum();
        assert_near(layers, total, 1e-12, &format!("{missing:?}"));
    }
}

/// One unit, weight 1, ⟨Σ⁻¹⟩ = 0.1 below and 1 above, forward activities from −4 to 4. Where f bends no step size is
/// safe for errors of any size: up to these it is, and steps that ignore sup |f′| > 1 already raise the energy from 4.1
/// (gelu) and 7.6 (silu) on.
#[test]
fn the_sequential_sweep_at_the_bound_never_raises_the_energy_of_a_steep_unit() {
    for (activation, largest_error) in [(Activation::Gelu, 5.0), (Activation::Silu, 9.0)] {
        let mut network =
            crate::common::network(&[1, 1, 1], activation, &NetworkSettings::default(), &mut rng(0));
        let identity = MatrixNormalWishart::new(
            Mat::from_fn(1, 2, |_, j| if j == 0 { 1.0 } else { 0.0 }),
            scaled_identity(2, 1.0),
            scaled_identity(1, 1.0),
            3.0,
        )
        .unwrap();
        network.hidden_mut()[0].set_natural(identity.to_natural()).unwrap();
        network.output_mut().update(|_, block| block.set_natural(identity.to_natural())).unwrap();
        let settings = RelaxationSettings {
            steps: 1,
            sweep: Sweep::Sequential,
            hidden_precision: HiddenPrecision::Fixed(0.1),
            output_precision: Some(1.0),
            ..RelaxationSettings::tied()
        };
        let (relaxer, clamp) = (relaxer(&network, &settings, Missing::Nothing), Clamp::supervised());
        for error in [-1.0, 1.0].map(|sign| sign * largest_error) {
            let input = Mat::from_fn(1, 81, |_, j| -4.0 + 0.1 * j as f64);
            let target = Mat::from_fn(1, 81, |_, j| activation.apply(input[(0, j)]) + error);
            let mut activities = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
            for _ in 0..60 {
                let before = relaxer.energies(&activities, &clamp);
                relaxer.relax(&mut activities, &clamp);
                for (j, after) in relaxer.energies(&activities, &clamp).into_iter().enumerate() {
                    let x = input[(0, j)];
                    assert!(
                        after <= before[j] * (1.0 + 1e-13),
                        "{activation:?} at {x}: {} to {after}",
                        before[j]
                    );
                }
            }
        }
    }
}

#[test]
fn heads_whose_target_is_not_the_activity_are_refused_by_name() {
    let heads = [
        (HeadSettings::Categorical(Categorical::default()), "categorical"),
        (HeadSettings::VarianceNode(VarianceNode::default()), "variance_node"),
    ];
    for (head, name) in heads {
        let settings = NetworkSettings { head, ..NetworkSettings::default() };
        let network = Network::<f64>::new(&settings, 3, 2, &mut rng(0)).unwrap();
        let (input, target) = (normal(3, 4, &mut rng(1)), normal(2, 4, &mut rng(2)));
        let paper = RelaxationSettings::paper();
        let relaxer = Relaxer::new(&network, &paper, true).unwrap();
        let lost = Mat::from_fn(3, 4, |i, j| if i == j { f64::NAN } else { input[(i, j)] });
        let mut clamp = Clamp::missing(lost.as_ref(), target.as_ref(), INPUT_VAR).unwrap();
        let errors = [
            // There is no precision of the output to tie hidden layers to.
            Bpc::new(network.clone(), Rule::Relaxation(RelaxationSettings::tied())).err(),
            Relaxer::new(&network, &RelaxationSettings::tied(), false).err(),
            // Learning needs every value too.
            relaxer.clamped_target(lost.as_ref(), target.as_ref(), &mut clamp).err(),
            impute(&network, input.as_ref(), target.as_ref(), 0.0).err(),
            generate(&network, 4, Parameters::Mean, &mut rng(3)).err(),
        ];
        let tied = "rule.hidden_precision = tied";
        let callers = [tied, tied, "missing values", "impute", "generate"];
        for (error, caller) in errors.into_iter().zip(callers) {
            let Some(Error::Conflict { first, second }) = error else { panic!("{caller}: {error:?}") };
            assert_eq!(first, caller);
            assert!(second.contains(name), "{second}");
        }
        assert!(Bpc::new(network.clone(), Rule::Relaxation(paper)).is_ok());
        assert!(Bpc::new(network, Rule::default()).is_ok());
    }
}

#[test]
fn hidden_precision_is_learned_tied_or_fixed() {
    let mut rng = rng(4);
    let network = network(Activation::Relu, &mut rng);
    let precisions = |hidden_precision, output_precision| {
        let settings =
            RelaxationSettings { hidden_precision, output_precision, ..RelaxationSettings::paper() };
        let relaxer = relaxer(&network, &settings, Missing::Nothing);
        relaxer.layers().iter().map(|layer| layer.precision.clone()).collect::<Vec<_>>()
    };
    let own: Vec<Mat<f64>> =
        network.layers().map(|layer| layer.posterior().unwrap().expected_precision()).collect();
    let tied = 0.5 * trace(own[2].as_ref()) / 2.0;
    let identity = |l: usize, p: f64| scaled_identity(WIDTHS[l + 1], p);
    let cases = [
        (HiddenPrecision::Learned, None, own.clone()),
        (HiddenPrecision::Tied(0.5), None, vec![identity(0, tied), identity(1, tied), own[2].clone()]),
        (HiddenPrecision::Fixed(3.0), None, vec![identity(0, 3.0), identity(1, 3.0), own[2].clone()]),
        (HiddenPrecision::Learned, Some(7.0), vec![own[0].clone(), own[1].clone(), identity(2, 7.0)]),
        // Tied to the output precision that relaxation uses, fixed or not.
        (HiddenPrecision::Tied(0.5), Some(7.0), vec![identity(0, 3.5), identity(1, 3.5), identity(2, 7.0)]),
    ];
    for (hidden, output, expected) in cases {
        let what = format!("{hidden:?}, {output:?}");
        for (found, expected) in precisions(hidden, output).iter().zip(&expected) {
            assert_close(found.as_ref(), expected.as_ref(), 1e-14, &what);
        }
    }
}
