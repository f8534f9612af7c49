//! What columns are taken for, missing cells, and what a user can say about both.

use std::fmt::Write as _;

use crate::support::{QUICK, Sandbox, flats};
use serde_json::Value;

/// Flats as people keep them: a key, a date, a remark, a constant, holes, and rows without a rent.
fn messy(n: usize) -> String {
    let mut text = "key,listed,size,age,city,new,remark,country,rent\n".to_owned();
    for (i, line) in flats(n).lines().skip(1).enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let size = if i % 9 == 4 { "" } else { cells[0] };
        let city = if i % 11 == 7 { "NA" } else { cells[2] };
        let rent = if i % 20 == 19 { "" } else { cells[4] };
        let (month, day) = (1 + i / 28 % 12, 1 + i % 28);
        writeln!(
            text,
            "F{i},2024-{month:02}-{day:02},{size},{},{city},{},flat no {} by the lake,CH,{rent}",
            cells[1],
            cells[3],
            i / 2
        )
        .unwrap();
    }
    text
}

fn columns(json: &Value) -> Vec<(String, String, u64)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let column = |c: &Value| (text(&c["name"]), text(&c["understood"]), c["inputs"].as_u64().unwrap());
    json["columns"].as_array().unwrap().iter().map(column).collect()
}

#[test]
fn a_table_as_people_have_it_is_fitted_with_no_option_and_says_what_was_understood() {
    let sandbox = Sandbox::new();
    sandbox.write("messy.csv", messy(100));
    let run = sandbox.run(&format!("fit messy.csv --target rent --out m.safetensors {QUICK}"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("messy: 5 rows without a target left out"), "{}", run.stderr);
    let line = |name: &str| run.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    for (name, words) in [
        ("key", &["identifier", "left out", "key=text"][..]),
        ("listed", &["time", "2024-01-01 … 2024-04-", "weekday"]),
        ("size", &["number", "0 … 10"]),
        ("city", &["category", "3: ", "Bern"]),
        ("new", &["bool", "53 % true"]),
        ("remark", &["text", "left out"]),
        ("country", &["constant", "CH"]),
    ] {
        for word in words {
            assert!(line(name).contains(word), "{word}: {}", line(name));
        }
    }
    assert!(run.stdout.contains("--column COL=KIND"), "{}", run.stdout);
    let text = sandbox.ok("inspect m.safetensors");
    assert!(text.contains("understood as") && text.contains("left out: no value occurs twice"), "{text}");
    // What the model was fitted on it predicts, and a table without what it does not need.
    assert_eq!(sandbox.ok("predict m.safetensors messy.csv").lines().count(), 101);
    sandbox.write("new.csv", "city,new,age,size,listed\nBern,true,3,,2024-03-01\n,,,,\n");
    let run = sandbox.run("predict m.safetensors new.csv");
    assert_eq!((run.code, run.stdout.lines().count()), (0, 3), "{}", run.stderr);
    // `age` had no holes in training.
    assert!(run.stderr.contains("column `age`: 1 missing values imputed"), "{}", run.stderr);
    assert!(!run.stderr.contains("`size`"), "{}", run.stderr);
}

#[test]
fn json_of_fit_and_inspect_tell_the_columns() {
    let sandbox = Sandbox::new();
    sandbox.write("messy.csv", messy(100));
    let line = format!("fit messy.csv --target rent --test-fraction 0 --json --out m.safetensors {QUICK}");
    let fit: Value = serde_json::from_str(&sandbox.ok(&line)).unwrap();
    assert_eq!((fit["rows_without_target"].as_u64(), fit["train_rows"].as_u64()), (Some(5), Some(95)));
    let expected = [
        ("key", "identifier", 0),
        ("listed", "time", 8),
        ("size", "number", 2),
        ("age", "number", 1),
        ("city", "category", 4),
        ("new", "bool", 1),
        ("remark", "text", 0),
        ("country", "constant", 0),
    ];
    let expected: Vec<_> = expected.map(|(a, b, n)| (a.to_owned(), b.to_owned(), n)).into();
    assert_eq!(columns(&fit), expected);
    let inspect: Value = serde_json::from_str(&sandbox.ok("inspect m.safetensors --json")).unwrap();
    assert_eq!(columns(&inspect), expected);
    assert_eq!(inspect["features"].as_array().unwrap().len(), 16);
}

#[test]
fn every_decision_can_be_overridden_by_one_option() {
    let sandbox = Sandbox::new();
    sandbox.write("messy.csv", messy(100));
    let fit = |flags: &str| {
        let line = format!("fit messy.csv --target rent --json {flags} {QUICK}");
        columns(&serde_json::from_str(&sandbox.ok(&line)).unwrap())
    };
    let inputs = |columns: &[(String, String, u64)], name: &str| {
        columns.iter().find(|column| column.0 == name).map(|column| column.2).unwrap()
    };
    let asked =
        fit("--column remark=text:8 --column key=category:5 --column age=category --column listed=ignore");
    assert_eq!(
        ["remark", "key", "listed", "country"].map(|name| inputs(&asked, name)),
        [8, 6, 0, 0],
        "{asked:?}"
    );
    assert!(inputs(&asked, "age") > 10, "{asked:?}");
    assert_eq!(inputs(&fit("--column country=category"), "country"), 1);
    assert_eq!(inputs(&fit("--ignore size"), "size"), 0);
}

#[test]
fn missing_cells_are_encoded_refused_or_dropped() {
    let sandbox = Sandbox::new();
    sandbox.write("messy.csv", messy(100));
    let fit =
        |flags: &str| sandbox.run(&format!("fit messy.csv --target rent --test-fraction 0 {flags} {QUICK}"));
    sandbox.fails(
        &format!("fit messy.csv --target rent --missing error {QUICK}"),
        1,
        &["row 5", "column `size`", "--missing encode"],
    );
    let dropped = fit("--missing drop");
    assert!(
        dropped.stderr.contains("5 rows without a target and 19 rows with missing cells left out"),
        "{}",
        dropped.stderr
    );
    assert!(dropped.stdout.contains("learned from 76 rows"), "{}", dropped.stdout);
    assert_eq!(fit("--impute").stdout.lines().next(), fit("").stdout.lines().next());
    sandbox.fails(&format!("fit messy.csv --target rent --impute --missing drop {QUICK}"), 2, &["--missing"]);
}

#[test]
fn a_stream_leaves_out_rows_without_a_target_and_tells_the_columns() {
    let sandbox = Sandbox::new();
    sandbox.write("messy.csv", messy(300));
    let run =
        sandbox.run("fit messy.csv --target rent --stream --search off --set members=1 --out m.safetensors");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("15 rows without a target left out"), "{}", run.stderr);
    assert!(
        run.stdout.contains("understood as") && run.stdout.contains("learned from 285 rows"),
        "{}",
        run.stdout
    );
    assert_eq!(sandbox.ok("predict m.safetensors messy.csv").lines().count(), 301);
    let line = "fit messy.csv --target rent --stream --search off --set members=1 --missing drop --json";
    let json: Value = serde_json::from_str(&sandbox.ok(line)).unwrap();
    assert_eq!(json["rows_without_target"].as_u64(), Some(15));
    assert!(json["rows_with_holes_dropped"].as_u64() > Some(30), "{json}");
}

#[test]
fn rows_left_out_and_a_splits_file_do_not_go_together() {
    let sandbox = Sandbox::new();
    sandbox.write("messy.csv", messy(60));
    sandbox.write("splits.csv", "0,1,2\n");
    let run = sandbox.run(&format!("evaluate messy.csv --target rent --splits splits.csv {QUICK}"));
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("error: --splits counts all rows"), "{}", run.stderr);
}

#[test]
fn benchmark_tables_are_taken_as_they_are() {
    let sandbox = Sandbox::new();
    let json: Value =
        serde_json::from_str(&sandbox.ok(&format!("fit wine --json --preset fast {QUICK}"))).unwrap();
    assert!(columns(&json).iter().all(|column| column.1 == "number" && column.2 == 1), "{json}");
}
