//! Explanations that add up, model cards, and a report that says what it shows.

use serde_json::Value;

use crate::support::{QUICK, Sandbox, flats, spots};

fn fitted() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.ok(&format!("fit flats.csv --target rent --out m.safetensors {QUICK}"));
    sandbox
}

fn numbers(line: &str) -> Vec<f64> {
    line.split(',').map(|cell| cell.parse().unwrap()).collect()
}

#[test]
fn parts_of_the_columns_add_up_to_the_prediction() {
    let sandbox = fitted();
    let text = sandbox.ok("explain m.safetensors flats.csv --digits 17");
    let predicted = sandbox.ok("predict m.safetensors flats.csv --digits 17");
    assert_eq!(text.lines().next().unwrap(), "base,size,age,city,new,total");
    assert_eq!(text.lines().count(), 61);
    for (row, prediction) in text.lines().zip(predicted.lines()).skip(1) {
        let (row, mean) = (numbers(row), numbers(prediction)[0]);
        let sum: f64 = row[..5].iter().sum();
        assert!((sum - row[5]).abs() < 1e-9 && (row[5] - mean).abs() < 1e-8 * mean.abs().max(1.0));
    }
    for of in ["aleatoric", "epistemic"] {
        let text = sandbox.ok(&format!("explain m.safetensors flats.csv --of {of} --digits 17"));
        let at = if of == "aleatoric" { 2 } else { 3 };
        for (row, prediction) in text.lines().zip(predicted.lines()).skip(1) {
            let variance = numbers(prediction)[at].powi(2);
            assert!((numbers(row)[5] - variance).abs() < 1e-8 * variance, "{of}");
        }
    }
}

#[test]
fn rows_go_to_a_file_and_importance_to_the_reader_or_all_of_it_as_json() {
    let sandbox = fitted();
    let text = sandbox.ok("explain m.safetensors flats.csv --keep city --out why.csv");
    assert!(text.starts_with("column") && text.lines().nth(1).unwrap().starts_with("size"), "{text}");
    let written = String::from_utf8(sandbox.read("why.csv")).unwrap();
    // The column `city` is there twice: as it is, and its part.
    assert_eq!(written.lines().next().unwrap(), "city,base,size,age,predicted_city,new,total");
    let value: Value = serde_json::from_str(&sandbox.ok("explain m.safetensors flats.csv --json")).unwrap();
    assert_eq!(value["columns"].as_array().unwrap().len(), 4);
    assert_eq!((value["of"].as_str(), value["target"].as_str()), (Some("mean"), Some("rent")));
    assert_eq!(value["rows"].as_array().unwrap().len(), 60);
    assert!(value["importance"][0].as_f64().unwrap() > value["importance"][3].as_f64().unwrap());
}

#[test]
fn a_class_is_named_or_each_rows_own() {
    let sandbox = Sandbox::new();
    sandbox.write("spots.csv", spots(60));
    sandbox.ok(&format!("fit spots.csv --target colour --out m.safetensors {QUICK}"));
    let own = sandbox.ok("explain m.safetensors spots.csv");
    let predicted = sandbox.ok("predict m.safetensors spots.csv");
    assert_eq!(own.lines().next().unwrap(), "class,base,a,b,total");
    for (row, prediction) in own.lines().zip(predicted.lines()).skip(1) {
        assert_eq!(row.split(',').next(), prediction.split(',').next());
        assert!(row.split(',').next_back().unwrap().parse::<f64>().unwrap() >= 0.5);
    }
    let red = sandbox.ok("explain m.safetensors spots.csv --target red");
    assert_eq!(red.lines().next().unwrap(), "base,a,b,total");
    sandbox.fails("explain m.safetensors spots.csv --target rd", 2, &["--target rd", "did you mean `red`?"]);
    let doubt = sandbox.ok("explain m.safetensors spots.csv --of epistemic");
    assert_eq!(doubt.lines().next().unwrap(), "base,a,b,total");
    assert!(doubt.lines().skip(1).all(|row| *numbers(row).last().unwrap() < std::f64::consts::LN_2));
    let value: Value =
        serde_json::from_str(&sandbox.ok("explain m.safetensors spots.csv --of aleatoric --json")).unwrap();
    assert!(value["target"].is_null() && value["rows"][0]["total"].as_f64().unwrap() > 0.0);
    sandbox.fails(
        "explain m.safetensors spots.csv --of epistemic --target red",
        2,
        &["--target", "--of epistemic", "all classes"],
    );
}

#[test]
fn what_cannot_be_explained_is_named_and_leaves_nothing() {
    let sandbox = fitted();
    sandbox.write("other.csv", "size,age,new\n1,2,true\n");
    sandbox.fails("explain m.safetensors other.csv --out why.csv", 1, &["no column `city`"]);
    sandbox.fails(
        "explain m.safetensors flats.csv --target rnt",
        2,
        &["--target rnt", "did you mean `rent`?"],
    );
    sandbox.fails("explain m.safetensors flats.csv --out m.safetensors", 2, &["m.safetensors"]);
    assert!(!sandbox.path("why.csv").exists() && sandbox.files_with(".part").is_empty());
}

#[test]
fn a_card_says_what_a_model_is_how_good_and_where_it_ends() {
    let sandbox = fitted();
    let card = sandbox.ok("inspect m.safetensors --card");
    for words in [
        "# Model card: m",
        "predicts `rent`",
        "`flats`",
        "| city | category |",
        "## How good it is",
        "root mean squared error",
        "±",
        "R²",
        "## Limits",
        "bayespc predict m.safetensors",
    ] {
        assert!(card.contains(words), "no `{words}` in {card}");
    }
    let sandbox = Sandbox::new();
    sandbox.write("spots.csv", spots(60));
    sandbox.ok(&format!("fit spots.csv --target colour --preset fast --out m.safetensors {QUICK}"));
    let card = sandbox.ok("inspect m.safetensors --card");
    assert!(card.contains("2 classes: `blue`, `red`") && card.contains("nothing was held out"), "{card}");
}

#[test]
fn a_report_says_what_its_plots_mean() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(90));
    sandbox.ok(&format!("fit flats.csv --target rent --report r.html {QUICK}"));
    let page = String::from_utf8(sandbox.read("r.html")).unwrap();
    for words in [
        "In short",
        "R² is",
        "constant guess",
        "What matters",
        "Along a column",
        "Worst rows",
        "What the search tried",
    ] {
        assert!(page.contains(words), "no `{words}`");
    }
}
