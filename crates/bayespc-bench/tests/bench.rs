//! What is measured, under which keys; not how fast, which a busy machine would decide.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A folder, and the program run inside it.
struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.0.path().join(name), content).unwrap();
    }

    /// Run it with these words; it finds no data sets.
    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bayespc-bench"));
        command.args(line.split_whitespace()).current_dir(self.0.path());
        command.env_remove("BAYESPC_DATA").env("XDG_CACHE_HOME", self.0.path().join("cache"));
        command.output().unwrap()
    }

    /// Run it and expect success; gives standard output.
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Run it, expect this exit code and these words in the error.
    fn fails(&self, line: &str, code: i32, words: &[&str]) {
        let output = self.run(line);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {error}");
        for word in words {
            assert!(error.contains(word), "{line}: no `{word}` in {error}");
        }
    }
}

fn json(sandbox: &Sandbox, line: &str) -> Value {
    serde_json::from_str(&sandbox.ok(&format!("{line} --json"))).unwrap()
}

fn positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|x| x.is_finite() && x > 0.0)
}

#[test]
fn an_epoch_of_images_is_timed_under_the_agreed_keys_and_threads_change_no_accuracy() {
    let sandbox = Sandbox::new();
    let line = "mnist --synthetic --rows 1280 --epochs 2 --refresh-every 3";
    let json = json(&sandbox, line);
    for key in ["seconds_per_epoch", "peak_gflops", "achieved_gflops"] {
        assert!(positive(&json[key]), "{key}: {json}");
    }
    assert!(json["peak_rss_mb"].is_null() || positive(&json["peak_rss_mb"]));
    assert_eq!((json["threads"].as_u64(), json["refresh_every"].as_u64()), (Some(2), Some(3)));
    let runs = json["runs"].as_array().unwrap();
    let threads: Vec<_> = runs.iter().map(|run| run["threads"].as_u64().unwrap()).collect();
    assert_eq!(threads, [1, 2]);
    assert_eq!(runs[0]["test_accuracy_per_epoch"], runs[1]["test_accuracy_per_epoch"]);
    let accuracy = json["test_accuracy_per_epoch"].as_array().unwrap();
    assert_eq!(accuracy.len(), 2);
    // The made-up digits are far apart.
    assert!(accuracy[1].as_f64().unwrap() > 0.9, "{accuracy:?}");
    assert_eq!(json["seconds_of_each_epoch"].as_array().unwrap().len(), 2);
}

#[test]
fn all_learners_can_be_compared_with_other_programs_in_one_run() {
    let sandbox = Sandbox::new();
    sandbox.write("peers.json", r#"{"peers": {"other": {"seconds_per_epoch": 2.0, "more": 1}}}"#);
    let line = "mnist --synthetic --rows 128 --epochs 1 --threads 1 --learner bpc,backprop,pc \
                --rule feedback,relaxation --peers peers.json";
    let json = json(&sandbox, line);
    let learners: Vec<_> =
        json["runs"].as_array().unwrap().iter().map(|run| run["learner"].as_str().unwrap()).collect();
    assert_eq!(learners, ["bpc feedback", "bpc relaxation", "backprop", "pc"]);
    let ratio = json["ratios"]["bpc feedback"]["other"].as_f64().unwrap();
    assert!((2.0 * ratio - json["seconds_per_epoch"].as_f64().unwrap()).abs() < 1e-12);
    sandbox.write("peers.json", "{}");
    sandbox.fails(line, 1, &["peers.json", "scripts/peers.py"]);
}

#[test]
fn small_tables_are_fitted_alone_and_as_an_ensemble() {
    let sandbox = Sandbox::new();
    let json = json(&sandbox, "tabular --epochs 1 --repeats 1 --threads 2");
    let runs = json["runs"].as_array().unwrap();
    let cases: Vec<_> = runs
        .iter()
        .map(|r| (r["table"].as_str().unwrap(), r["rows"].as_u64(), r["members"].as_u64()))
        .collect();
    let (yacht, energy) = (("like yacht", Some(308)), ("like energy", Some(768)));
    let expected = [(yacht, 1), (yacht, 5), (energy, 1), (energy, 5)];
    assert_eq!(cases, expected.map(|((name, rows), members)| (name, rows, Some(members))));
    assert!(runs.iter().all(|run| positive(&run["seconds_fit"])));
}

#[test]
fn every_way_to_predict_is_compared_with_the_forward_pass() {
    let sandbox = Sandbox::new();
    let json = json(&sandbox, "predict --rows 200 --repeats 1 --threads 1");
    let runs = json["runs"].as_array().unwrap();
    let cases: Vec<_> =
        runs.iter().map(|run| (run["method"].as_str().unwrap(), run["rows"].as_u64().unwrap())).collect();
    let expected =
        [("forward", 200), ("mean", 200), ("linearised", 200), ("monte_carlo", 50), ("moments", 1)];
    assert_eq!(cases, expected);
    assert_eq!(runs[0]["ratio_to_forward"], 1.0);
    assert!(runs.iter().all(|run| positive(&run["ratio_to_forward"])));
}

#[test]
fn a_stream_is_timed_from_both_kinds_of_file() {
    let sandbox = Sandbox::new();
    let json = json(&sandbox, "stream --rows 300 --threads 2");
    let runs = json["runs"].as_array().unwrap();
    let cases: Vec<_> =
        runs.iter().map(|run| (run["format"].as_str().unwrap(), run["members"].as_u64().unwrap())).collect();
    assert_eq!(cases, [("csv", 1), ("parquet", 1), ("csv", 5), ("parquet", 5)]);
    assert!(runs.iter().all(|run| run["rows"] == 300 && positive(&run["rows_per_second"])));
}

#[test]
fn counts_of_zero_are_mistakes() {
    let sandbox = Sandbox::new();
    for flag in ["--epochs", "--repeats", "--threads", "--rows", "--refresh-every"] {
        sandbox.fails(&format!("mnist --synthetic {flag} 0"), 2, &[flag, "at least 1"]);
    }
    sandbox.fails("mnist --synthetic --rows 127", 2, &["--rows 127", "batch of 128"]);
}

#[test]
fn the_server_is_measured_by_its_percentiles_and_one_large_request() {
    let result = json(&Sandbox::new(), "serve --rate 50 --seconds 1 --rows 500");
    assert_eq!((&result["requests"], &result["networks"]), (&50.into(), &5.into()));
    for key in ["p50_ms", "p99_ms", "max_ms", "batch_seconds", "answer_bytes"] {
        assert!(positive(&result[key]), "{key}: {result}");
    }
    assert!(result["p50_ms"].as_f64() <= result["p99_ms"].as_f64());
    Sandbox::new().fails("serve --rate 0", 2, &["--rate 0"]);
}
