//! Averages over splits, and the help that leads there.

use crate::support::{QUICK, Sandbox, flats, spots};
use serde_json::Value;

const COMMON: [&str; 4] = ["dataset", "splits", "seconds_fit", "seconds_predict"];

fn keys(json: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn sorted<'a>(own: &[&'a str]) -> Vec<&'a str> {
    let mut keys = [&COMMON, own].concat();
    keys.sort_unstable();
    keys
}

#[test]
fn values_are_summarised_under_the_agreed_keys() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    let line = format!("evaluate flats.csv --target rent --folds 3 --json {QUICK}");
    let run = sandbox.run(&line);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    let expected = ["rmse", "log_density", "log_density_standardised", "coverage_90", "crps"];
    assert_eq!(keys(&json), sorted(&expected));
    assert_eq!((json["dataset"].as_str(), json["splits"].as_u64()), (Some("flats"), Some(3)));
    for score in ["rmse", "log_density", "log_density_standardised"] {
        assert!(json[score]["mean"].is_number() && json[score]["se"].is_number(), "{score}");
    }
    assert!(json["crps"].is_number() && (0.0..=1.0).contains(&json["coverage_90"].as_f64().unwrap()));
    // One split has no standard error.
    let json: Value = serde_json::from_str(&sandbox.ok(&format!("{line} --max-splits 1"))).unwrap();
    assert_eq!(json["splits"], 1);
    assert!(json["rmse"]["se"].is_null());
}

#[test]
fn classes_are_summarised_under_the_agreed_keys() {
    let sandbox = Sandbox::new();
    sandbox.write("spots.csv", spots(60));
    let line = format!("evaluate spots.csv --target colour --json {QUICK}");
    let json: Value = serde_json::from_str(&sandbox.ok(&line)).unwrap();
    assert_eq!(keys(&json), sorted(&["accuracy", "nll", "ece"]));
    assert_eq!(json["splits"], 5);
    assert!(json["accuracy"]["mean"].as_f64().unwrap() > 0.5);
}

#[test]
fn splits_can_come_from_a_file_and_threads_change_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.write("splits.csv", "0,1,2,3,4,5\n10,11,12,59\n7,8,9\n");
    let scores = |threads: usize| {
        let line = format!(
            "evaluate flats.csv --target rent --splits splits.csv --json --set training.epochs=2 --threads {threads}"
        );
        let mut json: Value = serde_json::from_str(&sandbox.ok(&line)).unwrap();
        let object = json.as_object_mut().unwrap();
        assert!(object.remove("seconds_fit").is_some() && object.remove("seconds_predict").is_some());
        json
    };
    let json = scores(1);
    assert_eq!(json["splits"], 3);
    assert_eq!(json, scores(2));
    sandbox.write("splits.csv", "0,1\n60\n");
    let words = ["splits.csv", "line 2", "60", "0..60"];
    sandbox.fails("evaluate flats.csv --target rent --splits splits.csv", 1, &words);
}

#[test]
fn a_nearly_linear_task_is_predicted_to_its_noise() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(200));
    let line = "evaluate flats.csv --target rent --preset fast --json";
    let json: Value = serde_json::from_str(&sandbox.ok(line)).unwrap();
    // The noise is a regular lattice of standard deviation 0.37.
    let rmse = json["rmse"]["mean"].as_f64().unwrap();
    assert!(rmse > 0.3 && rmse < 0.8, "{rmse}");
    assert!((0.8..=1.0).contains(&json["coverage_90"].as_f64().unwrap()));
}

#[test]
fn people_get_a_table() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    let text = sandbox.ok(&format!("evaluate flats.csv --target rent --folds 2 {QUICK}"));
    assert!(text.starts_with("flats, 2 splits\n"), "{text}");
    assert!(text.contains("RMSE") && text.contains(" ± ") && text.contains("seconds to fit"), "{text}");
}

#[test]
fn a_named_data_set_that_is_nowhere_says_what_to_do() {
    let sandbox = Sandbox::new();
    let text = sandbox.ok("data list");
    for name in ["yacht", "concrete", "wine", "housing", "power", "energy", "mnist", "fashion-mnist"] {
        assert!(text.contains(name), "no {name} in {text}");
    }
    let json: Value = serde_json::from_str(&sandbox.ok("data list --json")).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 6);
    // A file of the right name with other values is not the benchmark.
    sandbox.write("energy.csv", "a,b\n1,2\n");
    sandbox.fails("evaluate energy --data .", 1, &["energy.csv"]);
}

#[test]
fn every_help_teaches_with_an_example() {
    let sandbox = Sandbox::new();
    for command in
        ["", "fit", "predict", "evaluate", "inspect", "reproduce", "data", "data list", "data fetch"]
    {
        let text = sandbox.ok(&format!("{command} --help"));
        assert!(text.contains("\n  bayespc "), "no example in {command} --help");
    }
    assert_eq!(sandbox.run("").code, 2);
    assert!(sandbox.ok("--version").starts_with("bayespc "));
}
