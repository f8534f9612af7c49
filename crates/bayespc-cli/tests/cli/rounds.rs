//! `begin`, `stats` and `merge`: a model that many processes make is the one that one process makes.

use std::process::Command;

use bayespc::Model;

use crate::streams::{row, table};
use crate::support::{Sandbox, spots};

/// One small network, few rounds.
const SMALL: &str =
    "--target y --preset fast --set network.hidden_layer_sizes=[4] --rounds 3 --batch-rows 1000 --threads 1";

/// Rows of the table.
const ROWS: usize = 2600;

/// A file of rows, counted from 1.
fn part(sandbox: &Sandbox, name: &str, rows: std::ops::RangeInclusive<usize>) {
    sandbox.write(name, table(rows.map(row)));
}

/// The model without its notes, which name the files.
fn model(sandbox: &Sandbox, name: &str) -> Vec<u8> {
    let mut model = Model::from_bytes(&sandbox.read(name)).unwrap();
    model.notes_mut().clear();
    model.to_bytes().unwrap()
}

/// A model of all rows in one file, pass by pass.
fn alone(sandbox: &Sandbox) -> Vec<u8> {
    part(sandbox, "all.csv", 1..=ROWS);
    sandbox.ok(&format!("begin all.csv {SMALL} --out one.0"));
    for i in 0..7 {
        sandbox.ok(&format!("stats all.csv --model one.{i} --out all.{i}"));
        let next = sandbox.ok(&format!("merge all.{i} --model one.{i} --out one.{}", i + 1));
        assert_eq!(next.trim() == "finished", i == 6, "{next}");
    }
    model(sandbox, "one.7")
}

/// The script of docs/scaling.md, with fewer rounds of smaller networks.
#[test]
fn the_script_of_the_page_makes_the_model_of_one_process() {
    let page = include_str!("../../../../docs/scaling.md");
    let mut blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let script = blocks.find(|block| block.contains("while")).unwrap();
    let script = script.replace("--target load", SMALL);
    assert!(script.contains(SMALL), "{script}");
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("parts")).unwrap();
    part(&sandbox, "parts/a.csv", 1..=700);
    part(&sandbox, "parts/b.csv", 701..=2048);
    part(&sandbox, "parts/c.csv", 2049..=ROWS);
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_bayespc")).parent().unwrap().to_owned();
    let path = std::env::join_paths(
        std::iter::once(folder).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &script]).current_dir(sandbox.path("")).env("PATH", path.unwrap());
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sandbox.files(), ["model.safetensors", "parts"]);
    assert!(model(&sandbox, "model.safetensors") == alone(&sandbox));
    let predicted = sandbox.ok("predict model.safetensors parts/a.csv");
    assert_eq!(predicted.lines().count(), 701);
}

#[test]
fn files_that_do_not_belong_together_are_refused_by_name() {
    let sandbox = Sandbox::new();
    part(&sandbox, "a.csv", 1..=900);
    part(&sandbox, "b.csv", 901..=1500);
    sandbox.fails(&format!("begin a.csv a.csv {SMALL} --out m.0"), 2, &["a.csv is given twice"]);
    sandbox.ok(&format!("begin a.csv b.csv {SMALL} --out m.0"));
    sandbox.ok("stats a.csv --model m.0 --out a.0");
    sandbox.ok("stats b.csv --model m.0 --out b.0");
    sandbox.fails("merge a.0 --model m.0 --out m.1", 1, &["the statistics of b.csv", "rows 900 to"]);
    sandbox.fails("merge a.0 b.0 a.0 --model m.0 --out m.1", 1, &["the statistics of a.csv", "two parts"]);
    sandbox.fails("merge a.0 a.csv --model m.0 --out m.1", 1, &["a.csv is no file of `bayespc stats`"]);
    let mut damaged = sandbox.read("a.0");
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    sandbox.write("damaged.0", damaged);
    sandbox.fails(
        "merge damaged.0 b.0 --model m.0 --out m.1",
        1,
        &["damaged.0 is no file of `bayespc stats`", "checksum"],
    );
    sandbox.fails("merge a.0 b.0 --model m.0 --out m.0", 2, &["is the model, which would be lost"]);
    assert_eq!(sandbox.ok("merge b.0 a.0 --model m.0 --out m.1").trim(), "round 1 of 3");
    sandbox.ok("stats a.csv --model m.1 --out a.1");
    sandbox.fails(
        "merge a.1 b.0 --model m.1 --out m.2",
        1,
        &["b.0 cannot be merged", "another pass (table)"],
    );
    // A part may have moved, but not have changed.
    std::fs::create_dir(sandbox.path("there")).unwrap();
    part(&sandbox, "there/b.csv", 901..=1500);
    sandbox.ok("stats there/b.csv --model m.1 --out b.1");
    part(&sandbox, "b.csv", 901..=1400);
    sandbox.fails("stats b.csv --model m.1 --out c.1", 1, &["b.csv has 500 rows, and had 600"]);
    part(&sandbox, "other.csv", 1..=10);
    sandbox.fails("stats other.csv --model m.1 --out c.1", 2, &["other.csv is none of the parts"]);
    sandbox.write("bad.csv", format!("{}oops,a,1\n", table((1..=200).map(row))));
    sandbox.fails(
        &format!("begin a.csv bad.csv {SMALL} --out n.0"),
        1,
        &["bad.csv cannot be used", "row 201", "`oops`"],
    );
    sandbox.fails("predict m.0 a.csv", 1, &["m.0 is not a model"]);
    assert!(sandbox.files_with("c.1").is_empty() && sandbox.files_with("n.0").is_empty());
}

#[test]
fn classes_of_a_first_part_are_those_of_all() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", spots(300));
    sandbox.write("b.csv", spots(200));
    let small = "--preset fast --set network.hidden_layer_sizes=[4] --rounds 1 --held-out 0 --threads 1";
    sandbox.ok(&format!("begin a.csv b.csv --target colour {small} --out m.0"));
    for i in 0..4 {
        sandbox.ok(&format!("stats a.csv --model m.{i} --out a.{i}"));
        sandbox.ok(&format!("stats b.csv --model m.{i} --out b.{i}"));
        sandbox.ok(&format!("merge a.{i} b.{i} --model m.{i} --out m.{}", i + 1));
    }
    assert!(sandbox.ok("predict m.4 b.csv").contains("red"));
    sandbox.fails("stats a.csv --model m.4 --out a.4", 2, &["m.4 is finished"]);
}

#[test]
fn settings_that_rounds_do_not_obey_are_refused_before_rows_are_numbered() {
    let sandbox = Sandbox::new();
    part(&sandbox, "a.csv", 1..=300);
    sandbox.write("epochs.toml", "[training]\nepochs = 5\n");
    sandbox.write("search.toml", "[search]\nfolds = 3\n");
    for (flags, name) in [
        ("--time-limit 60", "time_limit"),
        ("--set training.epochs=5", "training.epochs"),
        ("--config epochs.toml", "training.epochs"),
        ("--set training.validation_fraction=0.1 --set training.patience=3", "training.validation_fraction"),
        ("--set rule.trust=0.1", "rule.trust"),
        ("--set calibration=holdout --held-out 0", "calibration = holdout"),
        ("--set search.prior_vars=[1,2]", "search.prior_vars"),
        ("--config search.toml", "search.folds"),
    ] {
        sandbox.fails(&format!("begin a.csv --target y {flags} --out m.0"), 2, &[name, "rounds"]);
    }
    assert!(sandbox.files_with("m.0").is_empty());
    // What fixes a setting takes it from the search.
    let fixed = "--set network.prior.var=1 --set network.activation=silu --set bins=0 --search off";
    sandbox.ok(&format!("begin a.csv --target y {fixed} --out m.0"));
}
