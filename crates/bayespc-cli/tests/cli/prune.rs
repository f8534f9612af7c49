//! Models without the columns and units they can do without.

use serde_json::Value;

use crate::support::{QUICK, Sandbox, flats, spots};

#[test]
fn a_pruned_model_is_smaller_and_predicts_as_well() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.write("more.csv", flats(90));
    sandbox.ok(&format!("fit flats.csv --target rent --out m.safetensors {QUICK}"));
    let text = sandbox.ok("prune m.safetensors more.csv --tolerance 0.05 --out small.safetensors");
    assert!(text.starts_with("columns silenced") && text.contains("hidden units gone"), "{text}");
    let value: Value = serde_json::from_str(
        &sandbox.ok("prune m.safetensors more.csv --tolerance 0.05 --out also.safetensors --json"),
    )
    .unwrap();
    let density = |when: &str| value["log_density"][when].as_f64().unwrap();
    assert!(density("after") >= density("before") - 0.1);
    assert!(value["removed"].as_u64() > Some(0) && value["columns"] == 4);
    assert_eq!(sandbox.read("small.safetensors"), sandbox.read("also.safetensors"));
    assert!(sandbox.read("small.safetensors").len() < sandbox.read("m.safetensors").len());
    assert_eq!(sandbox.ok("predict small.safetensors more.csv").lines().count(), 91);
    let units = sandbox.ok("prune m.safetensors more.csv --keep-columns --out units.safetensors");
    assert!(!units.contains("columns"), "{units}");
}

#[test]
fn wrong_questions_are_answered() {
    let sandbox = Sandbox::new();
    sandbox.write("spots.csv", spots(60));
    sandbox.ok(&format!("fit spots.csv --target colour --out m.safetensors {QUICK}"));
    sandbox.fails("prune m.safetensors spots.csv --tolerance=-1 --out x.safetensors", 2, &["tolerance"]);
    sandbox.write("bare.csv", "a,b\n1,2\n");
    sandbox.fails("prune m.safetensors bare.csv --out x.safetensors", 1, &["bare.csv", "colour"]);
    let both = "prune m.safetensors spots.csv --keep-columns --keep-units --out x.safetensors";
    sandbox.fails(both, 2, &["cannot be used with"]);
    assert!(!sandbox.path("x.safetensors").exists());
}
