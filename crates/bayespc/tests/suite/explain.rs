//! Explanations: attributions that add up to the prediction, and are its gradients where there are any.

use bayespc::heads::{Categorical, HeadSettings, VarianceNode};
use bayespc::model::{Calibration, CurveSettings, Explanation, Loss, PermutationSettings, Quantity};
use bayespc::network::{Activation, NetworkSettings};
use bayespc::prediction::CLASS_DRAWS;
use bayespc::real::Precision;
use bayespc::{Error, Method, Model, ModelSettings, Rule, Samples, Targets};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// y = x₀ + sin 2x₁, with noise that grows with x₂; column 3 says nothing.
fn table(n: usize, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let x: Mat<f64> = Mat::from_fn(4, n, |i, _| [1.0, 10.0, 100.0, 1000.0][i] * rng.random_range(-2.0..2.0));
    let y = Mat::from_fn(1, n, |_, j| {
        let draw: f64 = StandardNormal.sample(&mut rng);
        20.0 + 5.0 * (x[(0, j)] + (0.2 * x[(1, j)]).sin() + 0.2 * (0.005 * x[(2, j)]).exp() * draw)
    });
    (x, y)
}

/// Three classes by two of the columns.
fn labels(x: &Mat<f64>) -> Vec<usize> {
    (0..x.ncols())
        .map(|j| usize::from(x[(0, j)] > 0.3) + usize::from(x[(1, j)] > 0.5 && x[(0, j)] > 0.3))
        .collect()
}

fn settings() -> ModelSettings {
    let mut settings = ModelSettings { members: 2, ..ModelSettings::fast() };
    settings.network.hidden_layer_sizes = vec![9, 7];
    settings.training.epochs = 15;
    settings
}

fn fitted(change: impl FnOnce(&mut ModelSettings)) -> Model {
    let (x, y) = table(150, 1);
    let mut settings = settings();
    change(&mut settings);
    Model::fit(&Samples::new(&x, &y).unwrap(), &settings).unwrap()
}

fn classifier(change: impl FnOnce(&mut ModelSettings)) -> Model {
    classifier_of(150, change)
}

/// The same of so many rows: of few much is unknown.
fn classifier_of(n: usize, change: impl FnOnce(&mut ModelSettings)) -> Model {
    let (x, _) = table(n, 1);
    let labels = labels(&x);
    let mut settings = settings();
    change(&mut settings);
    Model::fit(&Samples::new(&x, Targets::classes(&labels)).unwrap(), &settings).unwrap()
}

/// The quantity as the model predicts it.
fn predicted(model: &Model, x: &Mat<f64>, of: Quantity, target: usize) -> Vec<f64> {
    if model.task() != bayespc::Task::Regression && of != Quantity::Mean {
        let predictive = model.predict_by(x, Method::Linearised).unwrap();
        let parts =
            predictive.class_decomposition(model.temperature(), CLASS_DRAWS.0, CLASS_DRAWS.1).unwrap();
        return if of == Quantity::Aleatoric { parts.aleatoric } else { parts.epistemic };
    }
    let values = if model.task() == bayespc::Task::Regression {
        let predictive = model.predict_by(x, Method::Linearised).unwrap();
        match of {
            Quantity::Mean => predictive.mean(),
            Quantity::Aleatoric => predictive.aleatoric_variance(),
            Quantity::Epistemic => predictive.epistemic_variance(),
            _ => unreachable!("not asked for here"),
        }
    } else {
        model.predict_probabilities_by(x, Method::Linearised).unwrap()
    };
    values.row(target).iter().copied().collect()
}

/// Base and values add up to the prediction.
#[track_caller]
fn check_complete(model: &Model, x: &Mat<f64>, of: Quantity, target: usize, tolerance: f64) -> Explanation {
    let explanation = model.explain(x, of, target).unwrap();
    let expected = predicted(model, x, of, target);
    for (&found, expected) in explanation.totals().iter().zip(&expected) {
        // Draws may make an entropy negative, which the decomposition cuts off.
        let is_entropy = model.task() != bayespc::Task::Regression && of != Quantity::Mean;
        let found = if is_entropy { found.max(0.0) } else { found };
        // A probability near 0 comes from larger ones on the way.
        let is_probability = model.task() != bayespc::Task::Regression;
        let scale = if is_probability { 1.0 } else { expected.abs().max(explanation.base[0].abs()) };
        assert!((found - expected).abs() <= tolerance * scale, "{of:?}: {found} {expected}");
    }
    let scaling = model.input_scaling();
    let average = Mat::from_fn(scaling.dim(), 1, |i, _| scaling.offset[i]);
    let base = predicted(model, &average, of, target)[0];
    assert!((base - explanation.base[0]).abs() <= tolerance * base.abs());
    explanation
}

#[test]
fn attributions_add_up_where_networks_learn_the_logarithm_of_the_target() {
    let (x, y) = table(150, 1);
    let y = Mat::from_fn(1, 150, |_, j| (0.2 * y[(0, j)]).exp());
    let mut settings = ModelSettings::default();
    settings.network.hidden_layer_sizes = vec![9, 7];
    settings.training.epochs = 10;
    settings.search.slices = 0;
    let model = Model::fit(&Samples::new(&x, &y).unwrap(), &settings).unwrap();
    assert!(model.members().iter().any(|member| member.curve.is_some()));
    let (mut rows, _) = table(3, 2);
    (0..4).for_each(|i| rows[(i, 0)] *= 7.0);
    for of in [Quantity::Mean, Quantity::Aleatoric, Quantity::Epistemic] {
        check_complete(&model, &rows, of, 0, 1e-6);
    }
}

#[test]
fn attributions_add_up_for_every_activation_and_head() {
    // Some rows far from all data.
    let (mut x, _) = table(6, 2);
    (0..4).for_each(|i| x[(i, 0)] *= 7.0);
    for activation in Activation::ALL {
        for (variance_node, bins) in [(false, 0), (true, 6)] {
            let model = fitted(|s| {
                s.network.activation = activation;
                s.bins = bins;
                if variance_node {
                    s.network.head = HeadSettings::VarianceNode(VarianceNode::default());
                }
            });
            for of in Quantity::ALL {
                check_complete(&model, &x, of, 0, 1e-9);
            }
        }
    }
}

#[test]
fn attributions_add_up_in_searched_calibrated_tempered_and_relaxed_models() {
    let (mut x, _) = table(4, 3);
    (0..4).for_each(|i| x[(i, 0)] *= 5.0);
    let searched = fitted(|s| {
        *s = ModelSettings { network: s.network.clone(), ..ModelSettings::default() };
        s.training.epochs = 15;
        s.search.widths = Vec::new();
    });
    assert!(searched.spread().is_some() && searched.members().len() > 2);
    let conformal = fitted(|s| s.calibration = Calibration::Conformal);
    let tempered = fitted(|s| s.temperature = 2.5);
    // Hidden noise is part of the aleatoric variance.
    let relaxed = fitted(|s| {
        *s = ModelSettings {
            network: s.network.clone(),
            training: s.training.clone(),
            ..ModelSettings::paper()
        };
    });
    assert!(matches!(relaxed.settings().rule, Rule::Relaxation(_)));
    for model in [searched, conformal, tempered, relaxed] {
        for of in Quantity::ALL {
            check_complete(&model, &x, of, 0, 1e-9);
        }
    }
    let single = fitted(|s| s.precision = Precision::F32);
    for of in Quantity::ALL {
        check_complete(&single, &x, of, 0, 1e-4);
    }
}

#[test]
fn probabilities_of_classes_add_up() {
    let (x, _) = table(5, 4);
    let logits = HeadSettings::Categorical(Categorical::default());
    for activation in [Activation::Relu, Activation::Silu] {
        for head in [HeadSettings::default(), logits.clone()] {
            let model = classifier(|s| {
                s.network.activation = activation;
                s.network.head = head;
                s.temperature = 0.7;
            });
            let mut sums = vec![0.0; 4];
            for class in 0..3 {
                let explanation = check_complete(&model, &x, Quantity::Mean, class, 1e-9);
                sums.iter_mut().enumerate().for_each(|(i, sum)| *sum += explanation.values[(i, 0)]);
            }
            // What speaks for one class speaks against the others.
            assert!(sums.iter().all(|sum| sum.abs() < 1e-7), "{sums:?}");
        }
    }
}

/// Entropies: networks that disagree, heads, codes of columns, temperatures; and one network alone.
#[test]
fn both_parts_of_the_entropy_of_classes_add_up() {
    let (x, _) = table(2, 4);
    let logits = HeadSettings::Categorical(Categorical::default());
    let node = HeadSettings::VarianceNode(VarianceNode::default());
    let models = [
        (Activation::Relu, HeadSettings::default(), 0, 3),
        (Activation::Relu, logits.clone(), 5, 2),
        (Activation::Silu, node, 0, 2),
        (Activation::Tanh, logits, 0, 1),
    ];
    for (activation, head, bins, members) in models {
        let model = classifier(|s| {
            s.network.activation = activation;
            s.network.head = head;
            s.bins = bins;
            s.members = members;
            s.temperature = 0.7;
        });
        for of in [Quantity::Aleatoric, Quantity::Epistemic] {
            check_complete(&model, &x, of, 0, 1e-6);
        }
    }
}

/// Along a line as short as this no unit turns: the values are the gradient of the prediction, by central differences.
#[test]
fn attributions_of_near_rows_are_gradients() {
    let (x, _) = table(3, 5);
    let logits = HeadSettings::Categorical(Categorical::default());
    let models = [
        fitted(|s| s.bins = 6),
        fitted(|s| s.network.head = HeadSettings::VarianceNode(VarianceNode::default())),
        fitted(|s| s.network.activation = Activation::Gelu),
        classifier_of(40, |s| s.temperature = 1.3),
        classifier_of(40, |s| s.network.head = logits),
    ];
    for model in &models {
        let scale = &model.input_scaling().scale;
        for of in Quantity::ALL {
            for j in 0..3 {
                let short = 1e-5;
                let moved = |by: f64| Mat::from_fn(4, 1, |i, _| x[(i, j)] + by * short * scale[i]);
                let (from, to) = (moved(-0.5), moved(0.5));
                let found = model.explain_from(&to, of, 0, from.as_ref()).unwrap();
                let mut largest = 0.0_f64;
                let slopes: Vec<f64> = (0..4)
                    .map(|column| {
                        let at = |sign: f64| {
                            let row = Mat::from_fn(4, 1, |i, _| {
                                let by = if i == column { sign * short * scale[i] } else { 0.0 };
                                x[(i, j)] + by
                            });
                            predicted(model, &row, of, 0)[0]
                        };
                        let slope = 0.5 * (at(1.0) - at(-1.0));
                        largest = largest.max(slope.abs());
                        slope
                    })
                    .collect();
                for (column, slope) in slopes.iter().enumerate() {
                    let value = found.values[(column, 0)];
                    assert!((value - slope).abs() <= 1e-4 * largest + 1e-13, "{of:?}: {value} {slope}");
                }
            }
        }
    }
}

/// Along a long line: the integral of central differences. A difference over ±h sees a jump where it straddles it, which is
/// as often as the column has its share in it; steps are far shorter than h. Both errors are of the first order.
#[test]
fn attributions_of_far_rows_are_integrals_of_gradients_jumps_included() {
    let (x, _) = table(1, 6);
    for (activation, tolerance) in [(Activation::Tanh, 1e-3), (Activation::Relu, 0.03)] {
        let change = |s: &mut ModelSettings| {
            s.network.activation = activation;
            s.bins = 4;
        };
        let (values, classes) = (fitted(change), classifier_of(40, change));
        // Steps of an entropy cost more, and where the network is smooth fewer will do.
        let mut asked = vec![(&values, Quantity::Mean, 6000), (&values, Quantity::Epistemic, 6000)];
        if activation == Activation::Tanh {
            asked.extend([(&classes, Quantity::Aleatoric, 300), (&classes, Quantity::Epistemic, 300)]);
        }
        for (model, of, steps) in asked {
            let (offset, scale) = (&model.input_scaling().offset, &model.input_scaling().scale);
            let found = model.explain(&x, of, 0).unwrap();
            let (h, tolerance) = (2e-3, if steps < 6000 { 10.0 * tolerance } else { tolerance });
            let largest = found.values.col(0).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
            for column in 0..4 {
                let side = |sign: f64| {
                    let rows = Mat::from_fn(4, steps, |i, k| {
                        let t = (k as f64 + 0.5) / steps as f64;
                        let by = if i == column { sign * h * scale[i] } else { 0.0 };
                        offset[i] + t * (x[(i, 0)] - offset[i]) + by
                    });
                    predicted(model, &rows, of, 0).iter().sum::<f64>() / steps as f64
                };
                let slope = (side(1.0) - side(-1.0)) / (2.0 * h * scale[column]);
                let expected = slope * (x[(column, 0)] - offset[column]);
                let value = found.values[(column, 0)];
                assert!(
                    (value - expected).abs() < tolerance * largest,
                    "{of:?} {column}: {value} {expected}"
                );
            }
        }
    }
}

#[test]
fn a_column_that_does_not_move_has_no_part_and_means_over_baselines_are_means() {
    let (x, _) = table(2, 7);
    let model = fitted(|_| {});
    let still = Mat::from_fn(4, 1, |i, _| if i == 2 { x[(2, 0)] } else { 0.3 });
    let other = Mat::from_fn(4, 1, |i, _| x[(i, 1)]);
    let row = Mat::from_fn(4, 1, |i, _| x[(i, 0)]);
    let both = Mat::from_fn(4, 2, |i, j| if j == 0 { still[(i, 0)] } else { other[(i, 0)] });
    for of in Quantity::ALL {
        let explain = |from: &Mat<f64>| model.explain_from(&row, of, 0, from.as_ref()).unwrap();
        let (one, two, mean) = (explain(&still), explain(&other), explain(&both));
        assert_eq!(one.values[(2, 0)], 0.0);
        for i in 0..4 {
            let expected = 0.5 * (one.values[(i, 0)] + two.values[(i, 0)]);
            assert!((mean.values[(i, 0)] - expected).abs() < 1e-12 * expected.abs().max(1.0));
        }
        let itself = explain(&row);
        assert!(itself.values.col(0).iter().all(|&value| value == 0.0));
    }
}

#[test]
fn columns_of_several_inputs_take_their_sum_and_importance_finds_what_matters() {
    let model = fitted(|s| s.training.epochs = 40);
    let (x, y) = table(200, 8);
    let explanation = model.explain(&x, Quantity::Mean, 0).unwrap();
    let importance = explanation.importance();
    assert!(importance[0] > 3.0 * importance[3] && importance[1] > 2.0 * importance[3], "{importance:?}");
    let grouped = explanation.by_column(&[0, 1, 0, 1]).unwrap();
    assert_eq!(grouped.values.nrows(), 2);
    for (a, b) in grouped.totals().iter().zip(explanation.totals()) {
        assert!((a - b).abs() < 1e-12 * b.abs());
    }
    assert!(matches!(explanation.by_column(&[0, 1]), Err(Error::Shape { what: "owners", .. })));

    let samples = Samples::new(&x, &y).unwrap();
    let columns: Vec<Vec<usize>> = vec![vec![0], vec![1], vec![3], vec![0, 1]];
    for loss in [Loss::LogDensity, Loss::Crps, Loss::Rmse] {
        let settings = PermutationSettings { loss, ..PermutationSettings::default() };
        let found = model.permutation_importance(&samples, &columns, settings).unwrap();
        let again = model.permutation_importance(&samples, &columns, settings).unwrap();
        assert_eq!(found, again);
        // What is shuffled together matters more than each alone; what says nothing does not matter.
        assert!(found[0].mean > 5.0 * found[0].std_error, "{found:?}");
        assert!(found[3].mean > found[0].mean.max(found[1].mean), "{found:?}");
        assert!(found[2].mean.abs() < 0.05 * found[0].mean + 4.0 * found[2].std_error, "{found:?}");
    }
}

#[test]
fn a_curve_is_the_prediction_along_it_and_of_rows_their_mean_and_median_variance() {
    let model = fitted(|_| {});
    let (x, _) = table(3, 9);
    let grid = [-1.5, 0.0, 2.5];
    let settings = CurveSettings::default();
    let mut all = [[[0.0; 5]; 3]; 3];
    for j in 0..3 {
        let row = Mat::from_fn(4, 1, |i, _| x[(i, j)]);
        let curve = model.curve(&row, 0, &grid, settings).unwrap();
        for (g, &at) in grid.iter().enumerate() {
            let moved = Mat::from_fn(4, 1, |i, _| if i == 0 { at } else { x[(i, j)] });
            let predictive = model.predict(&moved).unwrap();
            let (lower, upper) = predictive.interval(0.9).unwrap();
            let expected = [
                predictive.mean()[(0, 0)],
                predictive.aleatoric_variance()[(0, 0)],
                predictive.epistemic_variance()[(0, 0)],
                lower[(0, 0)],
                upper[(0, 0)],
            ];
            let found = [
                curve.mean[g],
                curve.aleatoric_std[g].powi(2),
                curve.epistemic_std[g].powi(2),
                curve.lower[g],
                curve.upper[g],
            ];
            for k in 0..5 {
                assert!((found[k] - expected[k]).abs() < 1e-9 * expected[k].abs(), "{found:?} {expected:?}");
            }
            all[g][j] = expected;
        }
    }
    let whole = model.curve(&x, 0, &grid, settings).unwrap();
    for (g, rows) in all.iter().enumerate() {
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9 * expected.abs();
        let median = |value: &dyn Fn(&[f64; 5]) -> f64| {
            let mut three = [0, 1, 2].map(|j| value(&rows[j]));
            three.sort_by(f64::total_cmp);
            three[1]
        };
        let mean = rows.iter().map(|row| row[0]).sum::<f64>() / 3.0;
        assert!(near(whole.mean[g], mean));
        assert!(near(whole.aleatoric_std[g].powi(2), median(&|row| row[1])));
        assert!(near(whole.epistemic_std[g].powi(2), median(&|row| row[2])));
        assert!(near(whole.lower[g], mean + median(&|row| row[3] - row[0])));
        assert!(near(whole.upper[g], mean + median(&|row| row[4] - row[0])));
    }
    let classes = classifier(|_| {});
    let curve = classes.curve(&x, 0, &grid, CurveSettings { target: 2, ..settings }).unwrap();
    for g in 0..3 {
        assert!(curve.lower[g] <= curve.mean[g] && curve.mean[g] <= curve.upper[g]);
        assert!((0.0..=1.0).contains(&curve.lower[g]) && (0.0..=1.0).contains(&curve.upper[g]));
        let total = curve.aleatoric_std[g].powi(2) + curve.epistemic_std[g].powi(2);
        assert!(total <= 0.25 + 1e-12 && curve.epistemic_std[g] > 0.0);
    }
}

#[test]
fn what_cannot_be_explained_is_a_typed_error() {
    let model = fitted(|_| {});
    let (x, _) = table(1, 10);
    let error = model.explain(&x, Quantity::Mean, 1).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "target", .. }));
    let narrow = Mat::<f64>::zeros(3, 1);
    let error = model.explain_from(&x, Quantity::Mean, 0, narrow.as_ref()).unwrap_err();
    assert!(matches!(error, Error::Shape { what: "baseline", .. }));
    let nan = Mat::from_fn(4, 1, |_, _| f64::NAN);
    let error = model.explain_from(&x, Quantity::Mean, 0, nan.as_ref()).unwrap_err();
    assert!(matches!(error, Error::NotFinite { what: "baseline", .. }));
    assert!(matches!(model.explain(&narrow, Quantity::Mean, 0), Err(Error::Shape { what: "input", .. })));
    let error = classifier(|_| {}).explain(&x, Quantity::Epistemic, 3).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "target", .. }));
    let error = model.curve(&x, 9, &[0.0], CurveSettings::default()).unwrap_err();
    assert!(matches!(error, Error::Setting { name: "feature", .. }));
    let error = model.curve(&x, 0, &[f64::NAN], CurveSettings::default()).unwrap_err();
    assert!(matches!(error, Error::NotFinite { what: "grid", .. }));
}

#[test]
fn the_number_of_threads_changes_no_bit_of_an_explanation() {
    let model = fitted(|s| s.bins = 6);
    let (x, _) = table(8, 11);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| model.explain(&x, Quantity::Epistemic, 0).unwrap())
    };
    assert!(with(1).values == with(3).values);
}

#[test]
fn several_targets_are_explained_one_by_one() {
    let (x, y) = table(150, 1);
    let both =
        Mat::from_fn(2, 150, |i, j| if i == 0 { y[(0, j)] } else { 3.0 - 0.1 * y[(0, j)] + x[(0, j)] });
    let node = HeadSettings::VarianceNode(VarianceNode::default());
    for head in [HeadSettings::default(), node] {
        let network = NetworkSettings { head, ..settings().network };
        let settings = ModelSettings { network, ..settings() };
        let model = Model::fit(&Samples::new(&x, &both).unwrap(), &settings).unwrap();
        let (rows, _) = table(3, 12);
        for target in 0..2 {
            for of in Quantity::ALL {
                check_complete(&model, &rows, of, target, 1e-9);
            }
        }
    }
}
