//! Models without the columns they can do without.

use serde_json::Value;

use crate::support::{QUICK, Sandbox, flats, spots};

#[test]
fn a_pruned_model_predicts_as_well() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.write("more.csv", flats(90));
    sandbox.ok(&format!("fit flats.csv --target rent --out m.safetensors {QUICK}"));
    let text = sandbox.ok("prune m.safetensors more.csv --tolerance 0.05 --out small.safetensors");
    assert!(text.starts_with("columns silenced") && text.contains("mean log density"), "{text}");
    let value: Value = serde_json::from_str(
        &sandbox.ok("prune m.safetensors more.csv --tolerance 0.05 --out also.safetensors --json"),
    )
    .unwrap();
    let density = |when: &str| value["log_density"][when].as_f64().unwrap();
    assert!(density("after") >= density("before") - 0.05);
    assert_eq!(value["columns"], 4);
    assert_eq!(sandbox.read("small.safetensors"), sandbox.read("also.safetensors"));
    assert_eq!(sandbox.ok("predict small.safetensors more.csv").lines().count(), 91);
}

#[test]
fn wrong_questions_are_answered() {
    let sandbox = Sandbox::new();
    sandbox.write("spots.csv", spots(60));
    sandbox.ok(&format!("fit spots.csv --target colour --out m.safetensors {QUICK}"));
    sandbox.fails("prune m.safetensors spots.csv --tolerance=-1 --out x.safetensors", 2, &["tolerance"]);
    sandbox.write("bare.csv", "a,b\n1,2\n");
    sandbox.fails("prune m.safetensors bare.csv --out x.safetensors", 1, &["bare.csv", "colour"]);
    assert!(!sandbox.path("x.safetensors").exists());
}

#[test]
fn columns_of_a_wide_model_are_not_pruned() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.ok(&format!(
        "fit flats.csv --target rent --out m.safetensors {QUICK} --search off --set network.wide_layers={{sketch=4}}"
    ));
    sandbox.fails(
        "prune m.safetensors flats.csv --tolerance 1000000 --out x.safetensors",
        1,
        &["network.wide_layers", "wide_layers = \"dense\""],
    );
    assert!(!sandbox.path("x.safetensors").exists());
}
