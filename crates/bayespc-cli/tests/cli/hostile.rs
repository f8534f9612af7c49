//! Tables as people have them: each goes through fit, predict and inspect, or is refused by row, column and remedy.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::support::Sandbox;

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
