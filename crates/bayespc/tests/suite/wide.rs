//! Networks whose layers keep what is linear in their widths: as whole ones where nothing is left out, of use where
//! something is, and with a file, threads and errors like any other.

use crate::common::{normal, rng};
use bayespc::data::Dataset;
use bayespc::error::Error;
use bayespc::heads::{Categorical, HeadSettings, VarianceNode};
use bayespc::inference::{FeedbackSettings, RelaxationSettings};
use bayespc::learners::{Bpc, Learner, Rule};
use bayespc::learning::Schedule;
use bayespc::model::rounds::{RoundSettings, Rounds};
use bayespc::network::{Activation, Network, NetworkSettings, WideLayers};
use bayespc::prediction::{Method, Predictive};
use bayespc::training::{self, Silent, TrainingSettings};
use bayespc::{Model, ModelSettings, Samples};
use faer::Mat;
use rayon::ThreadPoolBuilder;

/// Two moons, more or less: which side of a curve a point is on, as codes.
fn classes(n: usize) -> (Mat<f64>, Mat<f64>) {
    let x = normal(4, n, &mut rng(3));
    let above = |j: usize| x[(0, j)] > x[(1, j)] * x[(1, j)] - 0.7;
    let y = Mat::from_fn(2, n, |i, j| f64::from(u8::from(above(j) == (i == 0))));
    (x, y)
}

fn network(columns: WideLayers, activation: Activation, head: HeadSettings) -> NetworkSettings {
    let mut settings =
        NetworkSettings { hidden_layer_sizes: vec![4, 12], activation, head, ..NetworkSettings::default() };
    settings.wide_layers = columns;
    settings.prior.var = 1.0;
    settings
}

fn trained(settings: &NetworkSettings, rule: FeedbackSettings, weighted: bool) -> Bpc<f64> {
    let (x, y) = classes(200);
    let weights: Vec<f64> = (0..200).map(|j| 0.5 + f64::from(j % 3)).collect();
    let mut data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
    if weighted {
        data = data.with_weights(&weights).unwrap();
    }
    let network = Network::new(settings, 4, 2, &mut training::init_rng(0)).unwrap();
    let mut learner = Bpc::new(network, Rule::Feedback(rule)).unwrap();
    let training = TrainingSettings { epochs: 8, batch_size: Some(20), ..TrainingSettings::default() };
    training::fit(&mut learner, &data, &training, &mut Silent).unwrap();
    learner
}

fn predicted(learner: &Bpc<f64>) -> Predictive {
    learner.predict(normal(4, 300, &mut rng(7)).as_ref(), Method::Linearised).unwrap()
}

/// The largest difference relative to the largest entry.
fn difference(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (a - b).norm_max() / b.norm_max()
}

#[test]
fn where_a_sketch_leaves_nothing_out_a_whole_fit_is_that_of_whole_matrices() {
    // Without an activation the twelve units above have only five directions, and feedback one for each output.
    let categorical = || HeadSettings::Categorical(Categorical::default());
    let variances = || HeadSettings::VarianceNode(VarianceNode::default());
    for (head, weighted) in [(categorical(), false), (categorical(), true), (variances(), false)] {
        let rule = FeedbackSettings { refresh_every: 1, ..FeedbackSettings::default() };
        let fit =
            |columns| trained(&network(columns, Activation::Identity, head.clone()), rule.clone(), weighted);
        let (sketched, whole) = (fit(WideLayers::Sketch(10)), fit(WideLayers::Dense));
        assert!(sketched.network().is_wide() && !whole.network().is_wide());
        let (found, expected) = (predicted(&sketched), predicted(&whole));
        assert!(difference(&found.mean(), &expected.mean()) < 1e-6, "{head:?}");
        assert!(difference(&found.epistemic_variance(), &expected.epistemic_variance()) < 1e-5, "{head:?}");
        for (a, b) in sketched.network().layers().zip(whole.network().layers()) {
            assert!((a.samples_seen() - b.samples_seen()).abs() < 1e-9);
            let (found, expected) = (a.effective_inputs().unwrap(), b.effective_inputs().unwrap());
            assert!((found - expected).abs() < 1e-5 * expected, "{head:?}: {found} against {expected}");
        }
    }
}

#[test]
fn methods_that_need_whole_matrices_make_them() {
    let settings = network(WideLayers::Blocks(5), Activation::Relu, HeadSettings::default());
    let learner = trained(&settings, FeedbackSettings::default(), false);
    let x = normal(4, 40, &mut rng(7));
    let by = |method| learner.predict(x.as_ref(), method).unwrap();
    let (linearised, mean) = (by(Method::Linearised), by(Method::Mean));
    assert_eq!(linearised.mean(), mean.mean());
    // The same posterior in whole matrices, by the code of other networks.
    let mut whole = learner.network().clone();
    for layer in whole.hidden_mut() {
        layer.set_natural(layer.natural()).unwrap();
    }
    whole.output_mut().update(|_, block| block.set_natural(block.natural())).unwrap();
    assert!(!whole.is_wide());
    let expected = bayespc::prediction::predict(&whole, x.as_ref(), Method::Linearised).unwrap();
    assert!(difference(&linearised.epistemic_variance(), &expected.epistemic_variance()) < 1e-8);
    assert!(difference(&linearised.aleatoric_variance(), &expected.aleatoric_variance()) < 1e-8);
    let drawn = by(Method::MonteCarlo { draws: 5, seed: 1, layer_noise: false });
    let moments = by(Method::Moments { covariance: bayespc::network::CovarianceRule::default() });
    assert!(drawn.mean().is_all_finite() && moments.mean().is_all_finite());
}

fn accuracy(columns: WideLayers, rule: &FeedbackSettings) -> f64 {
    let head = HeadSettings::Categorical(Categorical::default());
    let mut settings = network(columns, Activation::Relu, head);
    settings.hidden_layer_sizes = vec![40, 40];
    let learner = trained(&settings, rule.clone(), false);
    let (x, y) = classes(600);
    let output = learner.network().forward(x.as_ref()).unwrap();
    let right = (0..600).filter(|&j| (output[(0, j)] > output[(1, j)]) == (y[(0, j)] > 0.5)).count();
    right as f64 / 600.0
}

#[test]
fn blocks_and_sketches_learn_what_whole_matrices_learn() {
    for whiten_input in [false, true] {
        let rule = FeedbackSettings {
            refresh_every: 3,
            whiten_input,
            schedule: Schedule::Cosine { first: 0.2, last: 0.01 },
            ..FeedbackSettings::default()
        };
        let whole = accuracy(WideLayers::Dense, &rule);
        assert!(whole > 0.93, "{whole}");
        for columns in
            [WideLayers::Blocks(10), WideLayers::Sketch(10), WideLayers::Blocks(3), WideLayers::Sketch(3)]
        {
            let found = accuracy(columns, &rule);
            assert!(found > whole - 0.03, "{columns:?}, whitened {whiten_input}: {found} against {whole}");
        }
    }
}

fn model(columns: WideLayers) -> Model {
    let x = normal(3, 60, &mut rng(1));
    let y = Mat::from_fn(1, 60, |_, j| x[(0, j)] * x[(1, j)] + 100.0);
    let mut settings = ModelSettings::fast();
    settings.network.hidden_layer_sizes = vec![9, 8];
    settings.network.wide_layers = columns;
    settings.training.epochs = 3;
    Model::fit(&Samples::new(x.as_ref(), y.as_ref()).unwrap(), &settings).unwrap()
}

#[test]
fn a_wide_model_is_read_back_as_it_was_and_cannot_learn_from_a_stream() {
    let x = normal(3, 60, &mut rng(1));
    for columns in
        [WideLayers::Blocks(4), WideLayers::Sketch(4), WideLayers::Blocks(2), WideLayers::Sketch(1)]
    {
        let model = model(columns);
        let bytes = model.to_bytes().unwrap();
        let mut loaded = Model::from_bytes(&bytes).unwrap();
        assert!(loaded.members()[0].network().is_wide());
        let (before, after) = (model.predict(x.as_ref()).unwrap(), loaded.predict(x.as_ref()).unwrap());
        assert_eq!(before.mean(), after.mean());
        assert_eq!(before.variance(), after.variance());
        assert_eq!(loaded.to_bytes().unwrap(), bytes);
        let y = Mat::from_fn(1, 60, |_, j| x[(0, j)]);
        let more = loaded.partial_fit(&Samples::new(x.as_ref(), y.as_ref()).unwrap());
        assert!(matches!(more, Err(Error::Conflict { first: "network.wide_layers other than dense", .. })));
        for cut in [bytes.len() / 2, bytes.len() - 1] {
            assert!(matches!(Model::from_bytes(&bytes[..cut]), Err(Error::ModelFile(_))));
        }
    }
}

#[test]
fn columns_of_a_wide_model_are_not_pruned() {
    let x = normal(3, 60, &mut rng(1));
    let y = Mat::from_fn(1, 60, |_, j| x[(0, j)] * x[(1, j)] + 100.0);
    let samples = Samples::new(x.as_ref(), y.as_ref()).unwrap();
    let columns: Vec<Vec<usize>> = (0..3).map(|i| vec![i]).collect();
    for kept in [WideLayers::Blocks(4), WideLayers::Sketch(4), WideLayers::Sketch(1)] {
        let error = model(kept).prune(&samples, &columns, 1e9).unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{error}");
        assert!(error.to_string().contains("wide_layers = \"dense\""), "{error}");
    }
    assert_eq!(model(WideLayers::Dense).prune(&samples, &columns, 1e9).unwrap().silenced, 3);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for columns in [WideLayers::Blocks(5), WideLayers::Sketch(5)] {
        let fit = |threads: usize| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| model(columns).to_bytes().unwrap())
        };
        assert!(fit(1) == fit(3), "{columns:?}");
    }
}

#[test]
fn what_needs_whole_matrices_says_so_unless_it_may_choose() {
    let conflict = |result: Result<(), Error>| matches!(result, Err(Error::Conflict { .. }));
    let relaxation = || Rule::Relaxation(RelaxationSettings::paper());
    let learner = |columns, rule| {
        let settings = network(columns, Activation::Relu, HeadSettings::default());
        Bpc::new(Network::<f64>::new(&settings, 4, 2, &mut training::init_rng(0)).unwrap(), rule).map(drop)
    };
    assert!(conflict(learner(WideLayers::Blocks(5), relaxation())));
    assert!(learner(WideLayers::Auto, relaxation()).is_ok());
    let residual = |columns| {
        let settings = network(columns, Activation::Relu, HeadSettings::default());
        let settings = NetworkSettings { hidden_layer_sizes: vec![12, 12], residual: true, ..settings };
        Network::<f64>::new(&settings, 4, 2, &mut training::init_rng(0)).map(drop)
    };
    assert!(conflict(residual(WideLayers::Blocks(5))));
    assert!(residual(WideLayers::Auto).is_ok());
    let mut settings = ModelSettings::fast();
    settings.network.wide_layers = WideLayers::Sketch(5);
    let x = normal(3, 60, &mut rng(1));
    let samples = Samples::new(x.as_ref(), x.subrows(0, 1)).unwrap();
    assert!(conflict(Model::for_stream(&samples, &settings).map(drop)));
    assert!(conflict(Rounds::begin(&settings, &RoundSettings::default(), samples.task()).map(drop)));
    settings.network.wide_layers = WideLayers::Sketch(0);
    assert!(matches!(settings.validate(), Err(Error::Setting { name: "network.wide_layers", .. })));
}

/// η₁ has no more directions than there are samples: a linear model of more columns than samples is that of whole matrices, mean,
/// noise and doubt, with weights and several targets too, along the samples and far from them.
#[test]
fn a_linear_model_of_few_samples_is_exact_in_their_directions() {
    let (d, n) = (70, 25);
    let (x, new) = (normal(d, n, &mut rng(5)), normal(d, 10, &mut rng(6)));
    let y = Mat::from_fn(2, n, |k, j| x[(k, j)] - 0.5 * x[(2, j)] + 0.2 * x[(3, j)] * x[(4, j)]);
    let weights: Vec<f64> = (0..n).map(|j| 0.5 + (j % 3) as f64).collect();
    for weighted in [false, true] {
        let samples = Samples::new(&x, &y).unwrap();
        let samples = if weighted { samples.weighted(&weights).unwrap() } else { samples };
        let fitted = |columns: WideLayers| {
            let mut settings = ModelSettings { precision: bayespc::Precision::F64, ..ModelSettings::fast() };
            settings.network = NetworkSettings { hidden_layer_sizes: vec![], ..settings.network };
            settings.network.wide_layers = columns;
            settings.network.prior.var = 0.3;
            Model::fit(&samples, &settings).unwrap()
        };
        let (sketch, whole) = (fitted(WideLayers::Sketch(n)), fitted(WideLayers::Dense));
        assert!(sketch.members()[0].network().is_wide() && !whole.members()[0].network().is_wide());
        for inputs in [&x, &new, &(&new * faer::Scale(100.0))] {
            let (found, expected) = (sketch.predict(inputs).unwrap(), whole.predict(inputs).unwrap());
            assert!(difference(&found.mean(), &expected.mean()) < 1e-9);
            assert!(difference(&found.aleatoric_variance(), &expected.aleatoric_variance()) < 1e-9);
            assert!(difference(&found.epistemic_variance(), &expected.epistemic_variance()) < 1e-9);
        }
        let again = Model::from_bytes(&sketch.to_bytes().unwrap()).unwrap();
        assert!(again.predict(&new).unwrap().mean() == sketch.predict(&new).unwrap().mean());
    }
}

/// Where nobody says what to keep, a wide table of few samples is kept by its samples, by the feedback rule only; a stream, which
/// does not know how many will come, says how to fit for it.
#[test]
fn a_wide_table_of_few_samples_is_kept_by_its_samples() {
    let (d, n) = (600, 40);
    let x = normal(d, n, &mut rng(5));
    let y = Mat::from_fn(1, n, |_, j| x[(0, j)] - x[(1, j)]);
    let samples = Samples::new(&x, &y).unwrap();
    let mut settings = ModelSettings::fast();
    settings.training.epochs = 2;
    let mut model = Model::fit(&samples, &settings).unwrap();
    assert!(model.members()[0].network().is_wide());
    assert!(matches!(model.partial_fit(&samples), Err(Error::Conflict { .. })));
    settings.network.wide_layers = WideLayers::Dense;
    let mut model = Model::fit(&samples, &settings).unwrap();
    assert!(!model.members()[0].network().is_wide() && model.partial_fit(&samples).is_ok());
    let mut paper = ModelSettings::paper();
    paper.training.epochs = 1;
    let model = Model::fit(&samples, &paper).unwrap();
    assert!(!model.members()[0].network().is_wide());
}

/// Classes too: by default every network of a wide table is kept by its samples, the one that has learned nothing as well, and no
/// class is impossible.
#[test]
fn classes_of_a_wide_table_have_probabilities() {
    let (d, n) = (700, 40);
    let x = normal(d, n, &mut rng(5));
    let labels: Vec<usize> = (0..n).map(|j| usize::from(x[(0, j)] > x[(1, j)])).collect();
    let targets = bayespc::Targets::Classes { labels: &labels, classes: 3 };
    let mut settings = ModelSettings::default();
    settings.search.relevance = false;
    let model = Model::fit(&Samples::new(&x, targets).unwrap(), &settings).unwrap();
    let is_wide = |member: &bayespc::model::Member| member.network().is_wide();
    assert!(model.members().iter().filter(|member| !member.plan(0).network.prior.relevance).all(is_wide));
    let p = model.predict_probabilities(&normal(d, 20, &mut rng(6))).unwrap();
    for j in 0..20 {
        assert!((p.col(j).iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(p.col(j).iter().all(|p| *p >= 0.4 * 0.5 / (n as f64 + 1.0) / 3.0), "{:?}", p.col(j));
    }
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert!(again.predict_probabilities(&x).unwrap() == model.predict_probabilities(&x).unwrap());
}
