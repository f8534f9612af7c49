//! `fit --stream`: bad rows, the last tenth, rows in a bad order.

use serde_json::Value;

use crate::support::Sandbox;

/// One small network.
pub const SMALL: &str =
    "--target y --stream --search off --set members=1 --set network.hidden_layer_sizes=[4] --threads 1";

/// y = 2x + noise on seven values 0.1 apart, whose standard deviation is 0.2.
pub fn row(j: usize) -> String {
    let x = (j * 7919 % 997) as f64 / 997.0;
    format!("{x},{},{}", if j.is_multiple_of(3) { "a" } else { "b" }, 2.0 * x + 0.1 * (j % 7) as f64)
}

/// A table of these rows.
pub fn table(rows: impl Iterator<Item = String>) -> String {
    let rows: Vec<String> = rows.collect();
    format!("x,kind,y\n{}\n", rows.join("\n"))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn bad_rows_are_skipped_counted_and_named() {
    let sandbox = Sandbox::new();
    // In the first rows, which tell what columns are, and far behind them.
    let rows = |j: usize| match j {
        7 | 12_000 => "oops,a,1".to_owned(),
        100 => "0.5,a".to_owned(),
        11_000 => "0.5,b,1e999".to_owned(),
        j => row(j),
    };
    sandbox.write("t.csv", table((1..=20_000).map(rows)));
    let run = sandbox.run(&format!("fit t.csv {SMALL} --json --out m.safetensors"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let result = json(&run.stdout);
    assert_eq!((result["rows"].as_u64(), result["bad_rows"].as_u64()), (Some(19_996), Some(4)), "{result}");
    for word in ["4 bad rows left out", "row 7 ", "column `x`", "`oops`"] {
        assert!(run.stderr.contains(word), "no {word} in {}", run.stderr);
    }
    assert!(result["first_bad_row"].as_str().unwrap().contains("row 7 "), "{result}");
    assert!(result["rmse"].as_f64().unwrap() < 0.25, "{result}");
    let text = sandbox.run(&format!("fit t.csv {SMALL} --max-bad 4"));
    assert!(text.code == 0 && text.stderr.contains("4 bad rows left out"), "{}", text.stderr);

    let too_many = sandbox.run(&format!("fit t.csv {SMALL} --max-bad 3 --out n.safetensors"));
    assert_eq!(too_many.code, 1);
    for word in ["error: 4 of 12000 rows", "row 12000 ", "`oops`", "--max-bad"] {
        assert!(too_many.stderr.contains(word), "no {word} in {}", too_many.stderr);
    }
    assert!(sandbox.files_with("n.safetensors").is_empty());
    sandbox.fails("fit t.csv --target y --max-bad 3", 2, &["--stream"]);
}

#[test]
fn a_file_of_nothing_but_bad_cells_in_a_column_is_an_error() {
    let sandbox = Sandbox::new();
    let rows = |j: usize| if j < 300 { row(j) } else { "oops,a,1".to_owned() };
    sandbox.write("t.csv", table((1..=1000).map(rows)));
    // Most of the column are no numbers: it is a category then, and nothing is bad.
    let result = json(&sandbox.ok(&format!("fit t.csv {SMALL} --json")));
    assert_eq!((result["rows"].as_u64(), result["bad_rows"].as_u64()), (Some(1000), Some(0)), "{result}");
    sandbox.fails(
        &format!("fit t.csv {SMALL} --column x=number"),
        1,
        &["101 of 400 rows", "row 400 ", "`oops`"],
    );
}

#[test]
fn a_column_that_is_ignored_makes_no_row_bad() {
    let sandbox = Sandbox::new();
    let mark = |j: usize| if j.is_multiple_of(20) { "none".to_owned() } else { format!("{j}") };
    let rows: Vec<String> = (0..3000).map(|j| format!("{},{}", row(j), mark(j))).collect();
    sandbox.write("t.csv", format!("x,kind,y,mark\n{}\n", rows.join("\n")));
    let result = json(&sandbox.ok(&format!("fit t.csv {SMALL} --ignore mark --json")));
    assert_eq!((result["rows"].as_u64(), result["bad_rows"].as_u64()), (Some(3000), Some(0)), "{result}");
    // Nearly all of its cells are numbers, but 150 are not.
    sandbox.fails(
        &format!("fit t.csv {SMALL}"),
        1,
        &["101 of 2001 rows", "`mark`", "`none`", "--column NAME="],
    );
}

#[test]
fn a_class_that_comes_late_is_a_bad_row() {
    let sandbox = Sandbox::new();
    let class = |j: usize| if j == 15_000 { "green" } else { ["red", "blue"][j % 2] };
    let rows: Vec<String> =
        (0..20_000).map(|j| format!("{},{}", (j % 2) as f64 + j as f64 / 1e5, class(j))).collect();
    sandbox.write("t.csv", format!("x,y\n{}\n", rows.join("\n")));
    let run = sandbox.run(&format!("fit t.csv {SMALL} --json"));
    let result = json(&run.stdout);
    assert_eq!((result["rows"].as_u64(), result["bad_rows"].as_u64()), (Some(19_999), Some(1)), "{result}");
    assert!(run.stderr.contains("row 15001 ") && run.stderr.contains("`green`"), "{}", run.stderr);
    assert!(result["accuracy"].as_f64().unwrap() > 0.9, "{result}");
}

#[test]
fn the_last_tenth_is_scored_beside_the_whole() {
    let sandbox = Sandbox::new();
    // In the last tenth the noise is twenty times as large.
    let rows =
        |j: usize| if j < 90_000 { row(j) } else { format!("0.5,a,{}", 1.3 + 2.0 * ((j % 7) as f64 - 3.0)) };
    sandbox.write("t.csv", table((0..100_000).map(rows)));
    let run = sandbox.run(&format!("fit t.csv {SMALL} --json"));
    let result = json(&run.stdout);
    let last = &result["last_tenth"];
    let share = last["rows"].as_f64().unwrap() / result["scored_rows"].as_f64().unwrap();
    assert!((0.1..0.2).contains(&share), "{result}");
    assert!(last["rmse"].as_f64().unwrap() > 2.0 * result["rmse"].as_f64().unwrap(), "{result}");
    assert!(run.stderr.contains("the last tenth is predicted far worse"), "{}", run.stderr);
    assert!(result["remark"].as_str().unwrap().contains("last tenth"), "{result}");
    let text = sandbox.ok(&format!("fit t.csv {SMALL}"));
    assert!(text.contains(&format!("last {}", last["rows"])), "{text}");
}

#[test]
fn rows_sorted_by_the_target_are_told() {
    let sandbox = Sandbox::new();
    let mut rows: Vec<String> = (0..20_000).map(row).collect();
    sandbox.write("mixed.csv", table(rows.clone().into_iter()));
    let y = |row: &String| row.rsplit(',').next().unwrap().parse::<f64>().unwrap();
    rows.sort_by(|a, b| y(a).total_cmp(&y(b)));
    sandbox.write("sorted.csv", table(rows.into_iter()));
    let run = sandbox.run(&format!("fit sorted.csv {SMALL} --json"));
    assert!(run.stderr.contains("rows look sorted by the target: shuffle the file"), "{}", run.stderr);
    assert!(json(&run.stdout)["remark"].as_str().unwrap().contains("shuffle"));
    let run = sandbox.run(&format!("fit mixed.csv {SMALL} --json"));
    assert_eq!((run.stderr.as_str(), json(&run.stdout)["remark"].is_null()), ("", true));
}
