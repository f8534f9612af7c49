//! Bad input is an error that names the culprit; odd but valid input works and stays finite.
use bayespc::data::Dataset;
use bayespc::heads::{HeadSettings, VarianceNode};
use bayespc::inference::RelaxationSettings;
use bayespc::learners::{Bpc, Rule};
use bayespc::network::{Network, NetworkSettings};
use bayespc::prediction::Method;
use bayespc::training::{TrainingSettings, init_rng};
use bayespc::{Error, Result};
use bayespc::{Model, ModelSettings, Samples, Targets};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

fn table(d: usize, n: usize, scale: f64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let x = Mat::from_fn(d, n, |_, _| scale * (2.0 * rng.random::<f64>() - 1.0));
    let y =
        Mat::from_fn(1, n, |_, j| (0..d).map(|i| x[(i, j)]).sum::<f64>() + 0.1 * scale * rng.random::<f64>());
    (x, y)
}

fn quick(rule: Rule) -> ModelSettings {
    ModelSettings {
        network: NetworkSettings { hidden_layer_sizes: vec![8, 8], ..NetworkSettings::default() },
        rule,
        training: TrainingSettings { epochs: 10, ..TrainingSettings::default() },
        ..ModelSettings::fast()
    }
}

fn variance_node() -> ModelSettings {
    let mut settings = quick(Rule::default());
    settings.network.head = HeadSettings::VarianceNode(VarianceNode::default());
    settings
}

fn all_rules() -> [ModelSettings; 4] {
    [
        quick(Rule::default()),
        quick(Rule::Relaxation(RelaxationSettings::paper())),
        quick(Rule::Relaxation(RelaxationSettings::tied())),
        variance_node(),
    ]
}

fn fit(x: &Mat<f64>, y: &Mat<f64>, settings: &ModelSettings) -> Result<Model> {
    Model::fit(&Samples::new(x, y)?, settings)
}

/// Fits and predicts by every method; everything must be finite and variances positive.
fn works(x: &Mat<f64>, y: &Mat<f64>) {
    for settings in all_rules() {
        let model = fit(x, y, &settings).unwrap_or_else(|error| panic!("{:?}: {error}", settings.rule));
        let covariance = bayespc::network::CovarianceRule::Exact;
        for method in
            [Method::Mean, Method::Linearised, Method::monte_carlo(), Method::Moments { covariance }]
        {
            let predictive = model.predict_by(x.as_ref(), method).unwrap();
            let (mean, variance) = (predictive.mean(), predictive.variance());
            for j in 0..x.ncols() {
                assert!(mean[(0, j)].is_finite(), "{method:?} mean of sample {j}");
                assert!(
                    variance[(0, j)].is_finite() && variance[(0, j)] > 0.0,
                    "{method:?} variance of sample {j}"
                );
            }
            assert!(predictive.log_density(y.as_ref()).unwrap().iter().all(|density| density.is_finite()));
        }
    }
}

#[test]
fn fewer_samples_than_features_work() {
    let (x, y) = table(30, 10, 1.0);
    works(&x, &y);
}

#[test]
fn one_row_works() {
    let (x, y) = table(3, 1, 1.0);
    works(&x, &y);
}

#[test]
fn three_rows_work() {
    let (x, y) = table(3, 3, 1.0);
    works(&x, &y);
}

#[test]
fn constant_and_duplicated_columns_work() {
    let (mut x, y) = table(5, 60, 1.0);
    for j in 0..60 {
        x[(1, j)] = 4.0;
        x[(3, j)] = x[(2, j)];
    }
    works(&x, &y);
}

#[test]
fn a_constant_target_works() {
    let (x, mut y) = table(3, 40, 1.0);
    y.fill(5.0);
    works(&x, &y);
}

#[test]
fn huge_and_tiny_scales_work() {
    for scale in [1e12, 1e-12] {
        let (x, y) = table(3, 60, scale);
        works(&x, &y);
    }
}

#[test]
fn unscaled_huge_inputs_stay_finite_in_the_core_itself() {
    for scale in [1e6, 1e-6] {
        let (x, y) = table(3, 60, scale);
        for settings in all_rules() {
            let network = Network::<f64>::new(&settings.network, 3, 1, &mut init_rng(0)).unwrap();
            let mut learner = Bpc::new(network, settings.rule.clone()).unwrap();
            let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
            bayespc::training::fit(&mut learner, &data, &settings.training, &mut bayespc::training::Silent)
                .unwrap();
            let output = learner.network().forward(x.as_ref()).unwrap();
            assert!((0..60).all(|j| output[(0, j)].is_finite()), "{scale} {:?}", settings.rule);
        }
    }
}

#[test]
fn a_heavy_tailed_target_works() {
    let (x, mut y) = table(3, 80, 1.0);
    y[(0, 11)] = 1e9;
    works(&x, &y);
}

#[test]
fn a_value_that_is_not_finite_is_named_by_row_and_column() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (mut x, y) = table(3, 20, 1.0);
        x[(2, 7)] = value;
        let error = fit(&x, &y, &quick(Rule::default())).unwrap_err();
        assert!(matches!(error, Error::NotFinite { what: "input", row: 7, column: 2, .. }), "{error}");
        let (x, mut y) = table(3, 20, 1.0);
        y[(0, 19)] = value;
        let error = fit(&x, &y, &quick(Rule::default())).unwrap_err();
        assert!(matches!(error, Error::NotFinite { what: "target", row: 19, column: 0, .. }), "{error}");
    }
}

#[test]
fn prediction_checks_its_input_too() {
    let (x, y) = table(3, 20, 1.0);
    let model = fit(&x, &y, &quick(Rule::default())).unwrap();
    let error = model.predict(x.subrows(0, 2)).unwrap_err();
    assert!(matches!(error, Error::Shape { what: "input", found: 2, expected: 3, .. }), "{error}");
    let mut bad = x.clone();
    bad[(0, 3)] = f64::NAN;
    let error = model.predict(bad.as_ref()).unwrap_err();
    assert!(matches!(error, Error::NotFinite { row: 3, column: 0, .. }), "{error}");
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let (x, y) = table(3, 20, 1.0);
    let short = y.subcols(0, 19).to_owned();
    assert!(matches!(
        fit(&x, &short, &quick(Rule::default())),
        Err(Error::Shape { found: 19, expected: 20, .. })
    ));
}

#[test]
fn empty_data_are_refused() {
    let settings = quick(Rule::default());
    for (x, y) in [
        (Mat::<f64>::zeros(3, 0), Mat::<f64>::zeros(1, 0)),
        (Mat::zeros(0, 5), Mat::zeros(1, 5)),
        (Mat::zeros(3, 5), Mat::zeros(0, 5)),
    ] {
        assert!(matches!(fit(&x, &y, &settings), Err(Error::Empty { .. })));
    }
}

#[test]
fn every_bad_setting_is_an_error_that_names_it() {
    type Change = fn(&mut ModelSettings);
    let (x, y) = table(2, 20, 1.0);
    let changes: [(&str, Change); 12] = [
        ("prior.var", |s| s.network.prior.var = 0.0),
        ("prior.var", |s| s.network.prior.var = f64::NAN),
        ("prior.scale", |s| s.network.prior.scale = -1.0),
        ("prior.extra_dof", |s| s.network.prior.extra_dof = 0.5),
        ("hidden_layer_sizes", |s| s.network.hidden_layer_sizes = vec![5, 0]),
        ("input_var", |s| s.network.input_var = -1.0),
        ("training.batch_size", |s| s.training.batch_size = Some(0)),
        ("training.validation_fraction", |s| s.training.validation_fraction = 1.0),
        ("training.patience", |s| s.training.patience = Some(2)),
        ("members", |s| s.members = 0),
        ("method.monte_carlo.draws", |s| {
            s.method = Method::MonteCarlo { draws: 0, seed: 0, layer_noise: false };
        }),
        ("feedback.damping", |s| {
            if let Rule::Feedback(rule) = &mut s.rule {
                rule.damping = 0.0;
            }
        }),
    ];
    for (name, change) in changes {
        let mut settings = quick(Rule::default());
        change(&mut settings);
        let message = fit(&x, &y, &settings).unwrap_err().to_string();
        assert!(message.contains(name), "{name}: {message}");
    }
}

#[test]
fn a_network_without_hidden_layers_is_a_bayesian_linear_model() {
    let (x, y) = table(3, 50, 1.0);
    let mut settings = quick(Rule::default());
    settings.network.hidden_layer_sizes.clear();
    let model = fit(&x, &y, &settings).unwrap();
    assert!(
        bayespc::metrics::rmse(model.predict(x.as_ref()).unwrap().mean().as_ref(), y.as_ref()).unwrap()
            < 0.05
    );
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let (x, y) = table(2, 20, 1.0);
    let mut settings = variance_node();
    settings.rule = Rule::Relaxation(RelaxationSettings::tied());
    assert!(matches!(fit(&x, &y, &settings), Err(Error::Conflict { .. })));
}

#[test]
fn an_unknown_setting_is_refused_by_name() {
    let error =
        toml::from_str::<ModelSettings>("[network]\nhiden_layer_sizes = [5]").unwrap_err().to_string();
    assert!(error.contains("hiden_layer_sizes"), "{error}");
    let error = toml::from_str::<ModelSettings>("epochs = 5").unwrap_err().to_string();
    assert!(error.contains("epochs"), "{error}");
}

#[test]
fn every_preset_round_trips_through_toml() {
    let [feedback, paper, tied, variance] = all_rules();
    for settings in [ModelSettings::fast(), ModelSettings::paper(), feedback, paper, tied, variance] {
        let text = toml::to_string(&settings).unwrap();
        assert_eq!(toml::from_str::<ModelSettings>(&text).unwrap(), settings, "{text}");
    }
}

#[test]
fn sample_weights_are_checked() {
    let (x, y) = table(2, 4, 1.0);
    let settings = quick(Rule::default());
    let fit = |weights: &[f64]| Model::fit(&Samples::new(&x, &y)?.weighted(weights)?, &settings);
    assert!(fit(&[1.0, 1.0, 1.0]).is_err());
    assert!(fit(&[1.0, 1.0, -1.0, 1.0]).is_err());
    assert!(fit(&[0.0; 4]).is_err());
    assert!(fit(&[1.0, f64::NAN, 1.0, 1.0]).is_err());
    assert!(fit(&[1.0, 2.0, 0.0, 1.0]).is_ok());
}

#[test]
fn a_label_outside_its_classes_is_named() {
    let (x, _) = table(2, 4, 1.0);
    let targets = Targets::Classes { labels: &[0, 1, 2, 1], classes: 2 };
    let error = Samples::new(&x, targets).unwrap_err();
    assert!(matches!(error, Error::Label { label: 2, row: 2, classes: 2 }), "{error}");
}
