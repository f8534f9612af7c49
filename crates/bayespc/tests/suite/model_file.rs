//! The model file: what is written is read back to the last bit, and anything else is a typed error.

use crate::common::rewritten;
use bayespc::error::{Error, ModelFileError};
use bayespc::heads::{HeadSettings, VarianceNode};
use bayespc::inference::RelaxationSettings;
use bayespc::learners::Rule;
use bayespc::network::NetworkSettings;
use bayespc::training::TrainingSettings;
use bayespc::{Model, ModelSettings, Samples};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

fn data() -> (Mat<f64>, Mat<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let x = Mat::from_fn(3, 40, |_, _| rng.random::<f64>());
    let y = Mat::from_fn(1, 40, |_, j| x[(0, j)] * x[(1, j)] + 100.0);
    (x, y)
}

fn settings() -> ModelSettings {
    ModelSettings {
        network: NetworkSettings { hidden_layer_sizes: vec![6, 5], ..NetworkSettings::default() },
        training: TrainingSettings { epochs: 3, ..TrainingSettings::default() },
        members: 2,
        ..ModelSettings::fast()
    }
}

fn model(settings: &ModelSettings) -> Model {
    let (x, y) = data();
    let mut model = Model::fit(&Samples::new(x.as_ref(), y.as_ref()).unwrap(), settings).unwrap();
    model.notes_mut().insert("columns".to_owned(), "a, b, c".to_owned());
    model
}

#[test]
fn a_loaded_model_predicts_the_same_bits_and_writes_the_same_bytes() {
    let relaxation = ModelSettings { rule: Rule::Relaxation(RelaxationSettings::tied()), ..settings() };
    let mut variance = settings();
    variance.network.head = HeadSettings::VarianceNode(VarianceNode::default());
    for settings in [settings(), relaxation, variance] {
        let model = model(&settings);
        let bytes = model.to_bytes().unwrap();
        let loaded = Model::from_bytes(&bytes).unwrap();
        let (x, _) = data();
        let (before, after) = (model.predict(x.as_ref()).unwrap(), loaded.predict(x.as_ref()).unwrap());
        assert_eq!(before.mean(), after.mean());
        assert_eq!(before.variance(), after.variance());
        assert_eq!(loaded.notes()["columns"], "a, b, c");
        assert_eq!(loaded.settings(), &settings);
        assert_eq!(loaded.to_bytes().unwrap(), bytes);
    }
}

#[test]
fn a_loaded_model_goes_on_learning_as_the_saved_one_would() {
    let (x, y) = data();
    let mut original = model(&settings());
    let mut loaded = Model::from_bytes(&original.to_bytes().unwrap()).unwrap();
    for model in [&mut original, &mut loaded] {
        model.partial_fit(&Samples::new(&x, &y).unwrap()).unwrap();
    }
    assert_eq!(original.predict(x.as_ref()).unwrap().mean(), loaded.predict(x.as_ref()).unwrap().mean());
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    assert_eq!(model(&settings()).to_bytes().unwrap(), model(&settings()).to_bytes().unwrap());
}

#[test]
fn every_truncation_is_a_typed_error() {
    let bytes = model(&settings()).to_bytes().unwrap();
    for keep in [0, 1, 7, 8, 9, 100, bytes.len() / 2, bytes.len() - 1] {
        let error = Model::from_bytes(&bytes[..keep]).unwrap_err();
        assert!(matches!(error, Error::ModelFile(ModelFileError::Format(_))), "{keep}: {error}");
    }
}

#[test]
fn bytes_that_are_no_model_are_refused() {
    for bytes in [&b"hello"[..], &[0; 64], &[255; 64]] {
        assert!(matches!(Model::from_bytes(bytes), Err(Error::ModelFile(_))));
    }
}

const TENSOR: &str = "member.0.hidden.0.posterior.post_pre";

#[test]
fn another_version_is_refused_before_anything_else_is_read() {
    let bytes = model(&settings()).to_bytes().unwrap();
    let newer = rewritten(&bytes, |_| r#"{"version":6,"anything":[]}"#.to_owned(), |_, _, _| true);
    let error = Model::from_bytes(&newer).unwrap_err();
    assert!(matches!(error, Error::ModelFile(ModelFileError::Version { supported: 5, .. })), "{error}");
}

#[test]
fn a_header_that_is_not_ours_is_refused() {
    let bytes = model(&settings()).to_bytes().unwrap();
    for header in ["", "{}", "[]", r#"{"version":5}"#] {
        let bad = rewritten(&bytes, |_| header.to_owned(), |_, _, _| true);
        assert!(matches!(Model::from_bytes(&bad), Err(Error::ModelFile(_))), "{header}");
    }
}

/// Each of some thousand bits, one at a time: the file is refused, whatever it would have said.
#[test]
fn no_flipped_bit_goes_unnoticed() {
    let bytes = model(&settings()).to_bytes().unwrap();
    let step = bytes.len() / 1000;
    for (k, place) in (0..bytes.len()).step_by(step).enumerate() {
        let mut bad = bytes.clone();
        bad[place] ^= 1 << (k % 8);
        let error = Model::from_bytes(&bad).unwrap_err();
        assert!(matches!(error, Error::ModelFile(_)), "byte {place}: {error}");
    }
}

#[test]
fn numbers_that_cannot_be_are_refused_in_a_file_too() {
    let bytes = model(&settings()).to_bytes().unwrap();
    let with = |place: &str, value: serde_json::Value| {
        let changed = |header: &str| {
            let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
            *header.pointer_mut(place).unwrap() = value.clone();
            header.to_string()
        };
        Model::from_bytes(&rewritten(&bytes, changed, |_, _, _| true)).unwrap_err().to_string()
    };
    let many = serde_json::json!(1_000_000_000_000_u64);
    assert!(with("/settings/members", many.clone()).contains("at most"));
    assert!(with("/settings/training/epochs", many.clone()).contains("at most"));
    let draws = serde_json::json!({"monte_carlo": {"draws": many, "seed": 0, "layer_noise": false}});
    assert!(with("/settings/method", draws).contains("draws"));
    assert!(with("/n_seen", serde_json::json!(-1)).contains("n_seen"));
}

#[test]
fn a_missing_tensor_is_named() {
    let bytes = model(&settings()).to_bytes().unwrap();
    let bad = rewritten(&bytes, str::to_owned, |name, _, _| name != TENSOR);
    let error = Model::from_bytes(&bad).unwrap_err();
    assert!(error.to_string().contains(TENSOR), "{error}");
}

#[test]
fn a_wrong_shape_is_named() {
    let bytes = model(&settings()).to_bytes().unwrap();
    let bad = rewritten(&bytes, str::to_owned, |name, shape, _| {
        if name == TENSOR {
            shape.reverse();
        }
        true
    });
    let error = Model::from_bytes(&bad).unwrap_err();
    assert!(matches!(error, Error::ModelFile(ModelFileError::TensorShape { .. })), "{error}");
}

#[test]
fn a_nan_inside_is_named() {
    let bytes = model(&settings()).to_bytes().unwrap();
    let bad = rewritten(&bytes, str::to_owned, |name, _, data| {
        if name == TENSOR {
            data[16..24].copy_from_slice(&f64::NAN.to_le_bytes());
        }
        true
    });
    let error = Model::from_bytes(&bad).unwrap_err();
    assert!(matches!(error, Error::ModelFile(ModelFileError::TensorNotFinite { index: 2, .. })), "{error}");
}
