//! Residual layers: a prior around the identity, and networks that carry their input through many layers.

use crate::common::{assert_close, normal, pre, rng};
use bayespc::Samples;
use bayespc::base::linalg::scaled_identity;
use bayespc::data::Dataset;
use bayespc::distributions::SufficientStats;
use bayespc::inference::{ActivityOptimiser, HiddenPrecision, Presynaptic, RelaxationSettings, Variables};
use bayespc::learners::{Backprop, BackpropSettings, Bpc, Learner, Rule, Step};
use bayespc::model::{Model, ModelSettings};
use bayespc::network::{Layer, LayerPrior, Network, NetworkSettings};
use bayespc::training::TrainingSettings;
use faer::Mat;

fn settings(hidden: &[usize]) -> NetworkSettings {
    NetworkSettings { hidden_layer_sizes: hidden.to_vec(), residual: true, ..NetworkSettings::default() }
}

/// [I 0].
fn identity(d: usize) -> Mat<f64> {
    Mat::from_fn(d, d + 1, |i, j| f64::from(u8::from(i == j)))
}

#[test]
fn layers_as_wide_as_the_one_below_are_around_the_identity_and_others_around_zero() {
    let network = Network::<f64>::new(&settings(&[4, 4, 4, 3, 3]), 4, 2, &mut rng(1)).unwrap();
    let residual = [false, true, true, false, true];
    for (layer, residual) in network.hidden().iter().zip(residual) {
        let d = layer.d_post();
        let centre = if residual { identity(d) } else { Mat::zeros(d, layer.d_pre()) };
        let prior = layer.prior_distribution().unwrap();
        assert_close(prior.mean(), centre.as_ref(), 1e-12, "prior mean");
        let posterior = layer.posterior().unwrap();
        // The posterior begins at the prior in everything but its mean.
        assert_close(
            posterior.expected_precision().as_ref(),
            prior.expected_precision().as_ref(),
            1e-9,
            "precision",
        );
        let apart = (layer.mean() - &centre).norm_max();
        // U(±1/√fan_in), and over √3 of three residual layers.
        let bound = 1.0 / (layer.d_pre() as f64 - 1.0).sqrt();
        let bound = if residual { bound / 3_f64.sqrt() } else { bound };
        assert!(apart > 0.5 * bound && apart <= bound, "{apart}");
    }
    assert!(!network.settings().is_residual(5), "the output is no hidden layer");
}

#[test]
fn a_residual_layer_learns_what_a_plain_one_learns_of_the_difference() {
    let mut rng = rng(2);
    let prior = LayerPrior { var: 0.7, bias_var: None, inv_scale: 0.2, extra_dof: 2.5 };
    let (d, n) = (4, 30);
    let (pre, post) = (pre(d, n, &mut rng), normal(d, n, &mut rng));
    let start = normal(d, d + 1, &mut rng);
    let difference = &post - identity(d) * &pre;
    let mut residual = Layer::<f64>::residual(&prior, (&start + identity(d)).as_ref()).unwrap();
    let mut plain = Layer::<f64>::new(&prior, start.as_ref()).unwrap();
    // A first step forgets where the means began, a second remembers the first.
    for (rate, scale) in [(1.0, 1.0), (0.3, 4.0)] {
        let of = |post: &Mat<f64>| SufficientStats::of(pre.as_ref(), post.as_ref()).unwrap();
        residual.blend(&of(&post), rate, scale).unwrap();
        plain.blend(&of(&difference), rate, scale).unwrap();
        let (a, b) = (residual.posterior().unwrap(), plain.posterior().unwrap());
        assert_close(a.mean(), (b.mean() + identity(d)).as_ref(), 1e-12, "mean");
        assert_close(a.expected_precision().as_ref(), b.expected_precision().as_ref(), 1e-10, "precision");
        assert_eq!(a.dof(), b.dof());
    }
    assert!(Layer::<f64>::residual(&prior, normal(3, 5, &mut rng).as_ref()).is_err());
}

#[test]
fn the_natural_gradient_of_a_residual_network_is_the_blended_conjugate_update() {
    let mut rng = rng(12);
    let (input, target) = (normal(3, 90, &mut rng), normal(2, 90, &mut rng));
    let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
    for presynaptic in [Presynaptic::Forward, Presynaptic::Relaxed] {
        let network = Network::<f64>::new(&settings(&[5, 5, 5]), 3, 2, &mut rng).unwrap();
        let rule = RelaxationSettings {
            presynaptic,
            variables: Variables::Errors,
            optimiser: ActivityOptimiser::Gradient { rate: Some(0.05) },
            hidden_precision: HiddenPrecision::Fixed(1.0),
            output_precision: Some(1.0),
            ..RelaxationSettings::tied()
        };
        let stale = RelaxationSettings { refresh_every: 20, ..rule.clone() };
        let mut learners =
            [rule, stale].map(|rule| Bpc::new(network.clone(), Rule::Relaxation(rule)).unwrap());
        // Factors so young are renewed at every step.
        for index in 1..=6 {
            let step = Step { index, total: Some(6), n_total: 900.0, full_batch: false };
            let losses = learners.each_mut().map(|learner| learner.learn(&data, &step, &mut rng).unwrap());
            assert!((losses[0] - losses[1]).abs() <= 1e-9 * losses[0], "{losses:?}");
        }
        let [exact, other] = learners.map(|learner| learner.into_network().unwrap());
        for (exact, other) in exact.layers().zip(other.layers()) {
            let (exact, other) = (exact.posterior().unwrap(), other.posterior().unwrap());
            assert_close(other.mean(), exact.mean(), 1e-9, "mean");
            let precisions = (other.expected_precision(), exact.expected_precision());
            assert_close(precisions.0.as_ref(), precisions.1.as_ref(), 1e-7, "precision");
        }
    }
}

#[test]
fn thirty_residual_layers_carry_the_input_that_thirty_plain_ones_lose() {
    let input = normal(5, 200, &mut rng(3));
    let spread = |residual| {
        let settings = NetworkSettings { residual, ..settings(&[20; 30]) };
        let network = Network::<f64>::new(&settings, 5, 1, &mut rng(4)).unwrap();
        let output = network.forward(input.as_ref()).unwrap();
        let mean = output.row(0).iter().sum::<f64>() / 200.0;
        (output.row(0).iter().map(|a| (a - mean).powi(2)).sum::<f64>() / 200.0).sqrt()
    };
    assert!(spread(true) > 0.05, "{}", spread(true));
    assert!(spread(false) < 1e-6, "{}", spread(false));
}

#[test]
fn point_learners_begin_at_the_weights_of_the_bayesian_network() {
    let settings = settings(&[6, 6, 6]);
    let network = Network::<f64>::new(&settings, 3, 2, &mut rng(7)).unwrap();
    let learner = Backprop::<f64>::new(&settings, &BackpropSettings::default(), 3, 2, &mut rng(7)).unwrap();
    for (mean, weights) in network.means().iter().zip(learner.mean_network().unwrap().weights) {
        assert_close(*mean, weights.as_ref(), 1e-12, "weights");
    }
}

#[test]
fn a_deep_residual_model_learns_and_goes_through_a_file() {
    let mut rng = rng(8);
    let input = normal(2, 300, &mut rng);
    let noise = normal(1, 300, &mut rng);
    let target =
        Mat::from_fn(1, 300, |_, j| (2.0 * input[(0, j)]).sin() + 0.5 * input[(1, j)] + 0.1 * noise[(0, j)]);
    let settings = ModelSettings {
        network: NetworkSettings {
            hidden_layer_sizes: vec![12; 15],
            residual: true,
            ..NetworkSettings::default()
        },
        training: TrainingSettings { epochs: 40, ..TrainingSettings::default() },
        ..ModelSettings::fast()
    };
    let model = Model::fit(&Samples::new(&input, &target).unwrap(), &settings).unwrap();
    let predictive = model.predict(&input).unwrap();
    let square: f64 =
        (0..300).map(|j| (predictive.mean()[(0, j)] - target[(0, j)]).powi(2)).sum::<f64>() / 300.0;
    // The target has variance near 0.75, its noise 0.01.
    assert!(square < 0.05, "{square}");
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.predict(&input).unwrap().mean(), predictive.mean());
    let layer = &loaded.members()[0].network().hidden()[7];
    let prior = layer.prior_distribution().unwrap();
    assert_close(prior.mean(), identity(12).as_ref(), 1e-12, "the prior in the file");
    // Finalisation keeps Ψ⁰ apart from what the prior mean adds to η⁰₃.
    let expected = scaled_identity(12, prior.dof() * 1000.0);
    assert_close(prior.expected_precision().as_ref(), expected.as_ref(), 1e-6, "prior precision");
}
