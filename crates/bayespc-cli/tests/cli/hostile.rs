//! Tables as people have them: each goes through fit, predict and inspect, or is refused by row, column and remedy.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::support::{QUICK, Sandbox, flats};

/// One small network, hardly trained: what is tested is everything around it.
const HASTY: &str =
    "--search off --set members=1 --set training.epochs=2 --set network.hidden_layer_sizes=[4] --threads 1";

fn words(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// What is wrong with a table, if anything.
fn try_table(sandbox: &Sandbox, expected: &Value) -> Result<(), String> {
    let file = expected["file"].as_str().unwrap();
    let (target, code) = (expected["target"].as_str().unwrap(), expected["code"].as_i64().unwrap());
    let options = words(&expected["options"]).join(" ");
    let run = sandbox.run(&format!("fit {file} --target {target} {options} {HASTY} --out {file}.model"));
    let said = format!("{}{}", run.stdout, run.stderr);
    if i64::from(run.code) != code {
        return Err(format!("exit code {} instead of {code}: {said}", run.code));
    }
    for word in words(&expected["says"]) {
        if !said.contains(&word) {
            return Err(format!("no `{word}` in: {said}"));
        }
    }
    if code != 0 {
        return if run.stderr.starts_with("error: ") { Ok(()) } else { Err(said) };
    }
    let run = sandbox.run(&format!("predict {file}.model {file} --keep all"));
    let n_rows = run.stdout.lines().count();
    if run.code != 0 || n_rows < 25 || run.stdout.contains("NaN") {
        return Err(format!("predict: {n_rows} lines, {}", run.stderr));
    }
    let run = sandbox.run(&format!("inspect {file}.model"));
    if run.code != 0 || !run.stdout.contains("task") {
        Err(format!("inspect: {}", run.stderr))
    } else {
        Ok(())
    }
}

#[test]
fn hostile_tables_are_learned_from_or_refused_by_name() {
    let sandbox = Sandbox::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/hostile_tables.py");
    let made = Command::new("python3").arg(script).arg(sandbox.path("")).status();
    assert!(made.expect("python3 makes the tables").success());
    let tables: Vec<Value> = serde_json::from_slice(&sandbox.read("tables.json")).unwrap();
    assert!(tables.len() >= 40);
    let (next, wrong) = (AtomicUsize::new(0), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(table) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(problem) = try_table(&sandbox, table) {
                        wrong.lock().unwrap().push(format!("{}: {problem}", table["file"]));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(sandbox.files_with(".part").is_empty());
}

#[test]
fn what_is_no_model_is_refused_at_once_even_without_an_end() {
    let sandbox = Sandbox::new();
    for endless in ["/dev/zero", "/dev/urandom", "/dev/full"] {
        if Path::new(endless).exists() {
            sandbox.fails(&format!("inspect {endless}"), 1, &[endless, "is not a model"]);
        }
    }
    // A header as long as a word is no header; one that is promised and does not come is missed.
    sandbox.write("short", "y\ny\n");
    sandbox.fails("inspect short", 1, &["short is not a model"]);
    let mut promised = 1_000_000_u64.to_le_bytes().to_vec();
    promised.extend_from_slice(b"{\"a\":");
    sandbox.write("promised", promised);
    sandbox.fails("inspect promised", 1, &["promised is not a model"]);
}

/// A pipe waits for its writer, as pipes do; then table and model come through it as from files.
#[cfg(unix)]
#[test]
fn tables_and_models_come_through_pipes() {
    let sandbox = Sandbox::new();
    let made =
        |name: &str| assert!(Command::new("mkfifo").arg(sandbox.path(name)).status().unwrap().success());
    made("flats.csv");
    made("model");
    let fit = format!("fit flats.csv --target rent --out m.safetensors --test-fraction 0 {QUICK}");
    let through = |name: &str, bytes: Vec<u8>, line: &str| {
        let path = sandbox.path(name);
        std::thread::scope(|scope| {
            scope.spawn(move || std::fs::write(path, bytes).unwrap());
            sandbox.ok(line)
        })
    };
    through("flats.csv", flats(40).into_bytes(), &fit);
    let text = through("model", sandbox.read("m.safetensors"), "inspect model");
    assert!(text.contains("rent"), "{text}");
}

#[test]
fn escape_sequences_in_names_do_not_reach_the_terminal() {
    let sandbox = Sandbox::new();
    let evil = "\u{1b}]0;owned\u{7}size\u{1b}[2J";
    sandbox.write("evil.csv", flats(60).replacen("size", evil, 1));
    let run = sandbox.run(&format!("fit evil.csv --target rent --out m.safetensors {QUICK}"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let inspected = sandbox.run("inspect m.safetensors");
    let card = sandbox.run("inspect m.safetensors --card");
    sandbox.write("other.csv", "size,rent\n1,2\n");
    let refused = sandbox.run("predict m.safetensors other.csv");
    assert_eq!(refused.code, 1);
    for run in [run, inspected, card, refused] {
        assert!(
            !run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'),
            "{}{}",
            run.stdout,
            run.stderr
        );
        assert!(!run.stderr.contains('\u{7}') && !run.stdout.contains('\u{7}'));
    }
}
