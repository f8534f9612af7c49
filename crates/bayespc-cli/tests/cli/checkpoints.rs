//! `fit --stream`: what was learned survives signals and crashes, and streams go on.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::interrupt::{END, Running};
use crate::streams::{SMALL, row, table};
use crate::support::{QUICK, Sandbox};

/// Networks that need a while for a chunk, so that a signal comes in time.
const SLOW: &str =
    "--target y --stream --search off --set members=5 --set network.hidden_layer_sizes=[64] --threads 1";
const INT: &str = "--default-signal=INT";
const CHUNK: usize = 8192;

/// Ten chunks, one of them with a bad row.
fn long(sandbox: &Sandbox) {
    let rows = |j: usize| if j == 20_000 { "oops,a,1".to_owned() } else { row(j) };
    sandbox.write("t.csv", table((0..10 * CHUNK).map(rows)));
}

/// Wait for a checkpoint.
fn wait_for(sandbox: &Sandbox, name: &str) {
    let start = Instant::now();
    while !sandbox.path(name).exists() {
        assert!(start.elapsed() < END, "no {name} in time");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_signal_keeps_what_was_learned_and_the_same_command_goes_on_to_the_same_bits() {
    let sandbox = Sandbox::new();
    long(&sandbox);
    sandbox.write("new.csv", "x,kind\n0.5,a\n0.1,b\n");
    sandbox.ok(&format!("fit t.csv {SLOW} --out whole.safetensors"));
    let line = format!("fit t.csv {SLOW} --out m.safetensors --checkpoint c --every 1");
    for (way, signal, code) in [(INT, "-INT", 130), ("--default-signal=TERM", "-TERM", 143)] {
        // There may be none yet.
        let _ = std::fs::remove_file(sandbox.path("c"));
        let mut running = Running::start(&sandbox, way, &line);
        wait_for(&sandbox, "c");
        running.signal(signal);
        assert_eq!(running.code_within(END), Some(code));
        let said = running.stderr();
        let rows = said.split("interrupted after ").nth(1).and_then(|rest| rest.split(' ').next());
        let rows: usize = rows.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
        assert!((CHUNK - 1..10 * CHUNK - 1).contains(&rows), "{said}");
        assert!(said.contains("in m.safetensors") && said.contains("goes on from c"), "{said}");
        assert_eq!(sandbox.files(), ["c", "m.safetensors", "new.csv", "t.csv", "whole.safetensors"]);
        assert_eq!(sandbox.ok("predict m.safetensors new.csv").lines().count(), 3);
    }
    sandbox.ok(&line);
    assert!(sandbox.read("m.safetensors") == sandbox.read("whole.safetensors"));
}

#[test]
fn a_signal_while_known_rows_are_passed_over_keeps_the_model_of_the_checkpoint() {
    let sandbox = Sandbox::new();
    let rows: Vec<String> = (0..3 * CHUNK).map(row).collect();
    sandbox.write("t.csv", table(rows.iter().cloned()));
    sandbox.write("two.csv", table(rows[..2 * CHUNK].iter().cloned()));
    // The last checkpoint is the one before the last chunk, which more rows could make longer.
    sandbox.ok(&format!("fit t.csv {SMALL} --checkpoint c --every 1"));
    sandbox.ok(&format!("fit two.csv {SMALL} --out two.safetensors"));
    let kept = sandbox.read("c");
    let line = format!("fit - {SMALL} --out m.safetensors --checkpoint c --every 1");
    let mut running = Running::start(&sandbox, "--default-signal=TERM", &line);
    // Enough to tell the columns; the second chunk comes in part, as from a pipe that is told to stop too.
    running.feed(&table(rows[..12_000].iter().cloned()));
    std::thread::sleep(Duration::from_secs(1));
    running.signal("-TERM");
    std::thread::sleep(Duration::from_millis(200));
    running.end_of_input();
    assert_eq!(running.code_within(END), Some(143));
    let said = running.stderr();
    assert!(said.contains(&format!("interrupted after {} rows", 2 * CHUNK)), "{said}");
    assert!(sandbox.read("c") == kept);
    let predictions = |model: &str| sandbox.ok(&format!("predict {model} t.csv --digits 17"));
    assert!(predictions("m.safetensors") == predictions("two.safetensors"));
    assert!(predictions("m.safetensors") == predictions("c"));
}

#[test]
fn a_file_may_grow_behind_its_checkpoint() {
    let sandbox = Sandbox::new();
    let rows: Vec<String> = (0..40_000).map(row).collect();
    let line = |out: &str, more: &str| format!("fit t.csv {SMALL} --out {out} {more} --json");
    sandbox.write("t.csv", table(rows[..20_000].iter().cloned()));
    sandbox.ok(&line("m.safetensors", "--checkpoint c --every 1"));
    sandbox.write("t.csv", table(rows.iter().cloned()));
    let json: Value =
        serde_json::from_str(&sandbox.ok(&line("m.safetensors", "--checkpoint c --every 1"))).unwrap();
    assert_eq!(json["new_rows"].as_u64(), Some(40_000 - 2 * CHUNK as u64), "{json}");
    sandbox.ok(&line("whole.safetensors", ""));
    assert!(sandbox.read("m.safetensors") == sandbox.read("whole.safetensors"));
}

#[test]
fn without_out_a_signal_says_that_nothing_is_kept() {
    let sandbox = Sandbox::new();
    long(&sandbox);
    let mut running = Running::start(&sandbox, INT, &format!("fit t.csv {SLOW} --checkpoint c --every 1"));
    wait_for(&sandbox, "c");
    running.signal("-INT");
    assert_eq!(running.code_within(END), Some(130));
    assert!(running.stderr().contains("nothing is kept without --out"));
}

#[test]
fn after_a_crash_the_same_command_goes_on_to_the_same_bits_and_scores() {
    let sandbox = Sandbox::new();
    long(&sandbox);
    let scores = |line: &str| {
        let mut json: Value = serde_json::from_str(&sandbox.ok(line)).unwrap();
        for key in ["seconds", "rows_per_second", "model", "new_rows"] {
            json.as_object_mut().unwrap().remove(key);
        }
        json
    };
    let whole = scores(&format!("fit t.csv {SLOW} --json --out whole.safetensors"));
    let line = format!("fit t.csv {SLOW} --json --out m.safetensors --checkpoint c --every 10000");
    let running = Running::start(&sandbox, INT, &line);
    wait_for(&sandbox, "c");
    running.kill();
    assert!(!sandbox.path("m.safetensors").exists());
    let early = sandbox.read("c");
    assert_eq!(scores(&line), whole);
    assert!(sandbox.read("m.safetensors") == sandbox.read("whole.safetensors"));
    assert!(sandbox.read("c") != early);
    // Once more, from the last checkpoint.
    assert_eq!(scores(&line), whole);
    assert!(sandbox.read("m.safetensors") == sandbox.read("whole.safetensors"));
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let sandbox = Sandbox::new();
    let file = |rows: usize, change: usize| {
        table((0..rows).map(|j| if j == change { "0.25,a,0.5".to_owned() } else { row(j) }))
    };
    sandbox.write("t.csv", file(30_000, usize::MAX));
    let line = |data: &str, more: &str| format!("fit {data} {SMALL} --checkpoint c --every 1 {more}");
    sandbox.ok(&line("t.csv", "--out m.safetensors"));
    for (data, content, more, word) in [
        ("t.csv", file(30_000, usize::MAX), "--seed 5", "other settings"),
        ("u.csv", file(30_000, 7), "", "another file"),
        // The same beginning, by which columns and scales are the same.
        ("u.csv", file(30_000, 22_000), "", "has changed in rows"),
        ("u.csv", file(12_000, usize::MAX), "", "has changed in rows"),
    ] {
        sandbox.write(data, content);
        let run = sandbox.run(&line(data, more));
        assert_eq!(run.code, 2, "{data} {more}: {}", run.stderr);
        assert!(run.stderr.contains("--checkpoint c is of") && run.stderr.contains(word), "{}", run.stderr);
    }
    let model = format!("fit t.csv {SMALL} --checkpoint m.safetensors");
    sandbox.fails(&model, 2, &["m.safetensors is a model, but no checkpoint"]);
    sandbox.fails(&format!("fit t.csv {SMALL} --checkpoint t.csv"), 2, &["t.csv", "would be lost"]);
    sandbox.fails(&format!("fit t.csv {SMALL} --checkpoint c --every 0"), 2, &["--every"]);
    sandbox.fails("fit t.csv --target y --checkpoint c", 2, &["--stream"]);
}

#[test]
fn a_stream_goes_on_from_a_model_as_if_it_had_not_ended() {
    let sandbox = Sandbox::new();
    let rows: Vec<String> = (0..4 * CHUNK).map(row).collect();
    sandbox.write("all.csv", table(rows.iter().cloned()));
    sandbox.write("one.csv", table(rows[..2 * CHUNK].iter().cloned()));
    sandbox.write("two.csv", table(rows[2 * CHUNK..].iter().cloned()));
    sandbox.ok(&format!("fit all.csv {SMALL} --out all.safetensors"));
    sandbox.ok(&format!("fit one.csv {SMALL} --out one.safetensors"));
    let line = "fit two.csv --stream --from one.safetensors --out two.safetensors --threads 1 --json";
    let json: Value = serde_json::from_str(&sandbox.ok(line)).unwrap();
    // Of the first rows some are scored too: there is a model that has not seen them.
    let n = 2 * CHUNK as u64;
    assert_eq!((json["rows"].as_u64(), json["scored_rows"].as_u64()), (Some(n), Some(n / 8)), "{json}");
    let predictions = |model: &str| sandbox.ok(&format!("predict {model} one.csv --digits 17"));
    assert!(predictions("two.safetensors") == predictions("all.safetensors"));
    assert!(predictions("one.safetensors") != predictions("all.safetensors"));
}

#[test]
fn a_stream_goes_on_from_a_plain_fit_and_from_a_checkpoint() {
    let sandbox = Sandbox::new();
    sandbox.write("few.csv", table((0..300).map(row)));
    sandbox.write("more.csv", table((300..20_000).map(row)));
    sandbox.ok(&format!("fit few.csv --target y --preset fast {QUICK} --out few.safetensors"));
    let from = |model: &str| {
        let line = format!(
            "fit more.csv --stream --from {model} --out m.safetensors --checkpoint c --every 1 --json"
        );
        let json: Value = serde_json::from_str(&sandbox.ok(&line)).unwrap();
        assert_eq!(json["rows"].as_u64(), Some(19_700), "{json}");
        json["last_tenth"]["rmse"].as_f64().unwrap()
    };
    // The noise has a standard deviation of 0.2.
    assert!(from("few.safetensors") < 0.25);
    sandbox.fails(
        "fit more.csv --stream --from m.safetensors --checkpoint c",
        2,
        &["a stream that began with another model"],
    );
    std::fs::rename(sandbox.path("c"), sandbox.path("early.safetensors")).unwrap();
    assert!(from("early.safetensors") < 0.25);
}

#[test]
fn what_a_stream_cannot_go_on_from_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", table((0..3000).map(row)));
    sandbox.write("other.csv", "kind,y\na,1\nb,2\n");
    sandbox.write("aimless.csv", "kind,x\na,1\nb,2\n");
    sandbox.ok(&format!("fit t.csv {SMALL} --out m.safetensors"));
    let from = "--stream --from m.safetensors";
    sandbox.fails(&format!("fit other.csv {from}"), 1, &["other", "no column `x`"]);
    sandbox.fails(&format!("fit aimless.csv {from}"), 1, &["aimless lacks the target (y)"]);
    sandbox.fails(&format!("fit t.csv {from} --target x"), 2, &["the model predicts y"]);
    sandbox.fails(&format!("fit t.csv {from} --set members=2"), 2, &["--from", "--set"]);
    sandbox.fails(&format!("fit t.csv {from} --out m.safetensors"), 2, &["the model of --from"]);
    sandbox.fails("fit t.csv --stream --from t.csv", 1, &["t.csv is not a model"]);
    sandbox.fails("fit t.csv --from m.safetensors", 2, &["--stream"]);
}
