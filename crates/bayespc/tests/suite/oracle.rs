//! Whole training steps and predictions against the NumPy reference implementation
//! (`reference/oracle.json`): what one step of each rule does to every parameter.

use crate::common::{assert_close, assert_near, list, matrix, natural, number, rng, samples, table};
use bayespc::Activation;
use bayespc::data::Dataset;
use bayespc::heads::{HeadSettings, VarianceNode};
use bayespc::inference::{Clamp, FeedbackSettings, RelaxationSettings, Relaxer};
use bayespc::learners::{Bpc, Learner, Rule, Step};
use bayespc::learning::Schedule;
use bayespc::network::{Network, NetworkSettings};
use bayespc::prediction::Method;
use serde_json::Value;

const TOLERANCE: f64 = 1e-9;

fn oracle() -> Value {
    table(include_str!("../reference/oracle.json"))
}

/// The reference network at its start, of which the prior must already agree.
fn network(layers: &[Value], n_targets: usize, head: HeadSettings) -> Network<f64> {
    let settings = NetworkSettings {
        hidden_layer_sizes: vec![4, 4],
        activation: Activation::Relu,
        head,
        ..NetworkSettings::default()
    };
    let mut network = Network::new(&settings, 3, n_targets, &mut rng(0)).unwrap();
    for (layer, row) in network.hidden_mut().iter_mut().zip(layers) {
        assert_close(
            layer.prior().pre_pre.as_ref(),
            matrix(&row["prior"]["pre_pre"]).as_ref(),
            TOLERANCE,
            "prior",
        );
        assert_close(
            layer.prior().post_post.as_ref(),
            matrix(&row["prior"]["post_post"]).as_ref(),
            TOLERANCE,
            "prior",
        );
        assert_near(layer.prior().count, number(&row["prior"]["count"]), TOLERANCE, "prior");
        layer.set_natural(natural(&row["eta"])).unwrap();
    }
    network
        .output_mut()
        .update(|b, block| match b {
            0 => block.set_natural(natural(&layers[2]["eta"])),
            _ => Ok(()),
        })
        .unwrap();
    network
}

fn step(index: u64, n: usize) -> Step {
    Step { index, total: None, n_total: 3.0 * n as f64, full_batch: false }
}

fn feedback_rule(rate: f64) -> Rule {
    Rule::Feedback(FeedbackSettings {
        gain: 1.0,
        damping: 0.3,
        trust: 0.2,
        rate: 0.05,
        schedule: Schedule::Constant { rate },
        scale_batches: true,
        refresh_every: 1,
        whiten_input: false,
    })
}

/// η, M and ⟨Σ⁻¹⟩ of some layers.
fn assert_layers(network: &Network<f64>, expected: &[Value], layers: std::ops::Range<usize>) {
    let rows = network.layers().zip(expected).enumerate().skip(layers.start).take(layers.len());
    for (l, (layer, row)) in rows {
        let (found, eta) = (layer.natural(), natural(&row["eta"]));
        let what = |part: &str| format!("{part} of layer {l}");
        assert_close(found.pre_pre.as_ref(), eta.pre_pre.as_ref(), TOLERANCE, &what("η₁"));
        assert_close(found.post_pre.as_ref(), eta.post_pre.as_ref(), TOLERANCE, &what("η₂"));
        assert_close(found.post_post.as_ref(), eta.post_post.as_ref(), TOLERANCE, &what("η₃"));
        assert_near(found.count, eta.count, TOLERANCE, &what("η₄"));
        assert_close(layer.mean(), matrix(&row["M"]).as_ref(), TOLERANCE, &what("M"));
        assert_close(
            layer.posterior().unwrap().expected_precision().as_ref(),
            matrix(&row["precision"]).as_ref(),
            TOLERANCE,
            &what("⟨Σ⁻¹⟩"),
        );
    }
}

/// η₁, η₂ and M of every layer up to the rows of the mean. Under the feedback rule a hidden Σ is settled only
/// at the end of training, so that η₃ of hidden layers is not learned from single batches as it is in the
/// reference, which discards it then.
fn assert_weights(network: &Network<f64>, expected: &[Value]) {
    for (l, (layer, row)) in network.layers().zip(expected).enumerate() {
        let eta = row.get("eta").unwrap_or(row);
        let what = |part: &str| format!("{part} of layer {l}");
        let found = layer.natural();
        assert_close(found.pre_pre.as_ref(), matrix(&eta["pre_pre"]).as_ref(), TOLERANCE, &what("η₁"));
        assert_close(found.post_pre.as_ref(), matrix(&eta["post_pre"]).as_ref(), TOLERANCE, &what("η₂"));
        assert_close(layer.mean(), matrix(&row["M"]).as_ref(), TOLERANCE, &what("M"));
    }
}

/// C of every hidden layer and the number of steps; the library keeps lower triangles.
fn assert_feedback(learner: &Bpc<f64>, expected: &Value) {
    let (found, steps) = learner.feedback_state();
    assert_eq!(Some(steps), expected["t"].as_u64());
    for (l, (c, row)) in found.iter().zip(list(&expected["C"])).enumerate() {
        let mut c = c.clone();
        bayespc::base::linalg::mirror_lower(c.as_mut());
        assert_close(c.as_ref(), matrix(row).as_ref(), TOLERANCE, &format!("C of layer {l}"));
    }
}

#[test]
fn a_relaxation_step_matches_the_reference_implementation() {
    let oracle = oracle();
    let (x, y) = (samples(&oracle["X"]), samples(&oracle["Y"]));
    let expected = &oracle["relaxation"];
    let settings = RelaxationSettings {
        scale_batches: true,
        schedule: Schedule::Constant { rate: number(&expected["kappa"]) },
        ..RelaxationSettings::paper()
    };
    let network = network(list(&expected["layers"]), 2, HeadSettings::default());

    let relaxer = Relaxer::new(&network, &settings, false).unwrap();
    let clamp = Clamp::supervised();
    let mut activities = relaxer.start(x.as_ref(), y.as_ref(), &clamp);
    relaxer.relax(&mut activities, &clamp);
    for (l, (z, row)) in activities.post.iter().zip(list(&expected["relaxed"])).enumerate() {
        assert_close(z.as_ref(), samples(row).as_ref(), TOLERANCE, &format!("z of layer {l}"));
    }

    let mut learner = Bpc::new(network, Rule::Relaxation(settings)).unwrap();
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    learner.learn(&data, &step(1, data.len()), &mut rng(0)).unwrap();
    assert_layers(learner.network(), list(&expected["after_one"]), 0..3);
}

#[test]
fn feedback_steps_and_predictions_match_the_reference_implementation() {
    let oracle = oracle();
    let (x, y) = (samples(&oracle["X"]), samples(&oracle["Y"]));
    let expected = &oracle["feedback"];
    let network = network(list(&oracle["layers"]), 2, HeadSettings::default());
    let mut learner = Bpc::new(network, feedback_rule(number(&expected["kappa"]))).unwrap();
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    for t in 1..=3 {
        learner.learn(&data, &step(t, data.len()), &mut rng(0)).unwrap();
        if t != 2 {
            let expected = &expected[if t == 1 { "after_one" } else { "after_three" }];
            assert_weights(learner.network(), list(&expected["layers"]));
            assert_layers(learner.network(), list(&expected["layers"]), 2..3);
            assert_feedback(&learner, expected);
        }
    }

    learner.finish(&data).unwrap();
    assert_weights(learner.network(), list(&expected["finalised"]));
    let output = &learner.network().output().blocks()[0];
    let finalised = &list(&expected["finalised"])[2];
    assert_close(
        output.posterior().unwrap().expected_precision().as_ref(),
        matrix(&finalised["precision"]).as_ref(),
        TOLERANCE,
        "⟨Σ⁻¹⟩ of the output",
    );
    for (l, layer) in learner.network().hidden().iter().enumerate() {
        // ⟨Σ⁻¹⟩ = F + tr(F)/d · I
        let f = matrix(&list(&expected["prediction"]["F"])[l]);
        let d = f.nrows();
        let ridge = bayespc::base::linalg::trace(f.as_ref()) / d as f64;
        let precision = f + bayespc::base::linalg::scaled_identity(d, ridge);
        assert_close(
            layer.posterior().unwrap().expected_precision().as_ref(),
            precision.as_ref(),
            TOLERANCE,
            &format!("⟨Σ⁻¹⟩ of layer {l}"),
        );
    }

    let expected = &expected["prediction"];
    let x_test = samples(&oracle["X_test"]);
    let predictive = learner.predict(x_test.as_ref(), Method::Linearised).unwrap();
    assert_close(predictive.mean().as_ref(), samples(&expected["mean"]).as_ref(), TOLERANCE, "mean");
    for (sample, epistemic) in list(&expected["epistemic"]).iter().enumerate() {
        assert_close(
            predictive.aleatoric_covariance(sample).as_ref(),
            matrix(&expected["noise"]).as_ref(),
            TOLERANCE,
            "noise",
        );
        assert_close(
            predictive.epistemic_covariance(sample).as_ref(),
            matrix(epistemic).as_ref(),
            TOLERANCE,
            "epistemic",
        );
    }
}

/// The library counts samples where the reference sums their weights, and its F includes the Fisher
/// information of the log-variance; what does not depend on these two must agree.
#[test]
fn the_variance_node_matches_the_reference_implementation() {
    let oracle = oracle();
    let expected = &oracle["variance"];
    let (x, y) = (samples(&oracle["X"]), samples(&expected["Y"]));
    let head = HeadSettings::VarianceNode(VarianceNode::default());
    let network = network(list(&expected["layers"]), 1, head);
    let prior_log = matrix(&expected["prior_log"]);
    assert_close(
        network.output().blocks()[1].prior().pre_pre.as_ref(),
        prior_log.as_ref(),
        TOLERANCE,
        "prior of ℓ",
    );
    let mut learner = Bpc::new(network, feedback_rule(number(&expected["kappa"]))).unwrap();
    let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    for t in 1..=3 {
        learner.learn(&data, &step(t, data.len()), &mut rng(0)).unwrap();
        if t != 2 {
            let expected = &expected[if t == 1 { "after_one" } else { "after_three" }];
            assert_weights(learner.network(), list(&expected["layers"]));
            assert_feedback(&learner, expected);
            let log_variance = &learner.network().output().blocks()[1];
            let found = log_variance.natural();
            for (part, key) in [(&found.pre_pre, "pre_pre"), (&found.post_pre, "post_pre")] {
                assert_close(part.as_ref(), matrix(&expected["eta_log"][key]).as_ref(), TOLERANCE, key);
            }
            assert_close(log_variance.mean(), matrix(&expected["M_log"]).as_ref(), TOLERANCE, "M of ℓ");
        }
    }
    learner.finish(&data).unwrap();
    assert_weights(learner.network(), list(&expected["finalised"]));
    let x_test = samples(&oracle["X_test"]);
    let predictive = learner.predict(x_test.as_ref(), Method::Linearised).unwrap();
    let expected = &expected["prediction"];
    assert_close(predictive.mean().as_ref(), samples(&expected["mean"]).as_ref(), TOLERANCE, "mean");
    for (sample, noise) in list(&expected["noise"]).iter().enumerate() {
        assert_close(
            predictive.aleatoric_covariance(sample).as_ref(),
            matrix(noise).as_ref(),
            TOLERANCE,
            "noise",
        );
    }
}
