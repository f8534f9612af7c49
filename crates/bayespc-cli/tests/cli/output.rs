//! Predictions people can use, tables from anywhere, scores of each target, and messages that lead on.

use std::io::Write;
use std::process::Stdio;

use crate::support::{QUICK, Sandbox, flats};
use serde_json::Value;

/// The flats with an identifier in front.
fn numbered(n: usize) -> String {
    let lines = flats(n);
    let lines = lines.lines().enumerate();
    lines.map(|(i, line)| if i == 0 { format!("id,{line}\n") } else { format!("F{i:03},{line}\n") }).collect()
}

fn fitted() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", numbered(60));
    sandbox.ok(&format!("fit flats.csv --target rent --ignore id --out m.safetensors {QUICK}"));
    sandbox
}

fn first_cells(csv: &str, line: usize) -> Vec<&str> {
    csv.lines().nth(line).unwrap().split(',').collect()
}

#[test]
fn predictions_keep_columns_and_have_few_digits() {
    let sandbox = fitted();
    let text = sandbox.ok("predict m.safetensors flats.csv --keep id --keep city");
    assert_eq!(first_cells(&text, 0)[..3], ["id", "city", "mean"]);
    assert_eq!(first_cells(&text, 60)[..2], ["F060", "Chur"]);
    for cell in &first_cells(&text, 7)[2..] {
        assert!(cell.chars().filter(char::is_ascii_digit).count() <= 7, "{cell}");
    }
    let short = sandbox.ok("predict m.safetensors flats.csv --digits 2");
    let mean = |text: &str, at: usize| first_cells(text, 5)[at].parse::<f64>().unwrap();
    assert!((mean(&short, 0) - mean(&text, 2)).abs() <= 0.05 * mean(&text, 2).abs());
    let all = sandbox.ok("predict m.safetensors flats.csv --keep all");
    assert_eq!(first_cells(&all, 0)[..7], ["id", "size", "age", "city", "new", "rent", "mean"]);
    let words = ["--keep cty", "did you mean `city`?", "id, size, age, city, new, rent"];
    sandbox.fails("predict m.safetensors flats.csv --keep cty --out p.csv", 2, &words);
    sandbox.fails("predict m.safetensors flats.csv --digits 0", 2, &["--digits 0"]);
    assert!(!sandbox.path("p.csv").exists());
}

#[test]
fn predictions_are_parquet_if_the_name_says_so() {
    let sandbox = fitted();
    sandbox.ok("predict m.safetensors flats.csv --keep all --out p.parquet");
    let csv = sandbox.ok("predict m.safetensors flats.csv --keep id --digits 17");
    // What is written is a table like any other: the model reads it again.
    let again = sandbox.ok("predict m.safetensors p.parquet --keep id --digits 17");
    assert_eq!(again, csv);
    assert!(sandbox.read("p.parquet").starts_with(b"PAR1"));
    assert!(sandbox.files_with(".part").is_empty());
}

fn piped(sandbox: &Sandbox, line: &str, input: &[u8]) -> (i32, String, String) {
    let mut child = sandbox
        .command(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || pipe.write_all(&input));
    let output = child.wait_with_output().unwrap();
    // A command that fails need not read its input.
    let _ = writer.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn standard_input_is_a_table_too() {
    let sandbox = fitted();
    let expected = sandbox.ok("predict m.safetensors flats.csv --keep id");
    let table = numbered(60);
    assert_eq!(piped(&sandbox, "predict m.safetensors - --keep id", table.as_bytes()).1, expected);
    sandbox.ok("predict m.safetensors flats.csv --keep all --out p.parquet");
    assert_eq!(piped(&sandbox, "predict m.safetensors - --keep id", &sandbox.read("p.parquet")).1, expected);
    let line = format!("fit - --target rent --ignore id --out n.safetensors {QUICK}");
    let (code, _, stderr) = piped(&sandbox, &line, table.as_bytes());
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(sandbox.ok("predict n.safetensors flats.csv --keep id"), expected);
    let line = "fit - --target rent --ignore id --stream --search off --set members=1 --json";
    let (code, stdout, stderr) = piped(&sandbox, line, numbered(9000).as_bytes());
    assert_eq!(code, 0, "{stderr}");
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((json["rows"].as_u64(), json["scored_rows"].as_u64()), (Some(9000), Some((9000 - 8192) / 8)));
    let (code, _, stderr) = piped(&sandbox, "fit - --target rent", b"");
    assert!(code == 1 && stderr.contains("standard input is empty"), "{stderr}");
}

#[test]
fn several_targets_are_scored_one_by_one() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    let two = "flats.csv --target rent --target age";
    let text = sandbox.ok(&format!("fit {two} {QUICK}"));
    for words in ["rent: RMSE", "age: RMSE", "rent: CRPS", "age: coverage of the 90 % interval"] {
        assert!(text.contains(words), "{text}");
    }
    assert!(!text.contains("\nRMSE"), "errors of two units are not one: {text}");
    let json: Value = serde_json::from_str(&sandbox.ok(&format!("fit {two} --json {QUICK}"))).unwrap();
    let rmse = |target: &str| json["per_target"][target]["rmse"].as_f64().unwrap();
    // The joint one is over both.
    let both = (rmse("rent").powi(2) / 2.0 + rmse("age").powi(2) / 2.0).sqrt();
    assert!((both - json["rmse"].as_f64().unwrap()).abs() < 1e-9, "{json}");
    let line = format!("evaluate {two} --folds 2 {QUICK}");
    assert!(sandbox.ok(&line).contains("age: RMSE"));
    let json: Value = serde_json::from_str(&sandbox.ok(&format!("{line} --json"))).unwrap();
    assert!(json["per_target"]["age"]["rmse"]["mean"].is_number(), "{json}");
    let one: Value =
        serde_json::from_str(&sandbox.ok(&format!("fit flats.csv --target rent --json {QUICK}"))).unwrap();
    assert!(one["per_target"].is_null());
}

#[test]
fn a_table_that_lacks_a_column_says_which_it_has() {
    let sandbox = fitted();
    sandbox.write("foo.csv", "foo,bar\n1,2\n");
    let words = ["foo.csv", "no column `size`", "(its columns: foo, bar;", "bayespc inspect m.safetensors"];
    sandbox.fails("predict m.safetensors foo.csv", 1, &words);
    sandbox.write("sise.csv", flats(3).replacen("size", "sise", 1));
    sandbox.fails("predict m.safetensors sise.csv", 1, &["did you mean `sise`?"]);
}

#[test]
fn slips_of_the_finger_are_recognised_everywhere() {
    let sandbox = fitted();
    for (line, meant) in [
        ("fti flats.csv", "'fit'"),
        ("perdict m.safetensors flats.csv", "'predict'"),
        ("fit flats.csv --target rent --otu m", "'--out'"),
        ("predict m.safetensors flats.csv --kepe id", "'--keep'"),
        ("data lsit", "'list'"),
    ] {
        let run = sandbox.run(line);
        assert_eq!(run.code, 2, "{line}");
        assert!(run.stderr.contains(meant), "{line}: {}", run.stderr);
    }
    sandbox.fails("fit flts.csv --target rent", 1, &["did you mean `flats.csv`?"]);
    sandbox.fails("fit flats.csv --target rent --seed -1", 2, &["--seed", "-1"]);
    sandbox.fails("fit flats.csv --target rent --ignore rent", 2, &["rent", "target"]);
    sandbox.fails(
        "fit flats.csv --target rent --set network.hidden_layer_sizes=[5,0]",
        2,
        &["each at least 1"],
    );
}

#[test]
fn too_few_rows_are_refused_with_a_remedy_that_helps() {
    let sandbox = Sandbox::new();
    sandbox.write("one.csv", flats(1));
    sandbox.write("three.csv", flats(3));
    for fraction in ["0", "0.5"] {
        let line = format!("fit one.csv --target rent --test-fraction {fraction}");
        sandbox.fails(&line, 1, &["1 row", "two are the least"]);
    }
    sandbox.fails("fit three.csv --target rent --test-fraction 0.1", 1, &["3 rows", "--test-fraction 0"]);
    // Too few to hold any out: all are learned from, and nothing is said of how good the model is.
    for flags in ["", "--test-fraction 0"] {
        let line = format!("fit three.csv --target rent --search off --set members=1 {flags} {QUICK}");
        let text = sandbox.ok(&line);
        assert!(text.contains("learned from 3 rows") && text.contains("no scores"), "{text}");
        assert!(!text.contains("RMSE"), "{text}");
    }
}

/// The option that a message ends with, which may have blanks in it.
fn remedy(said: &str) -> String {
    let from = said.find("--column \"").expect(said) + "--column \"".len();
    said[from..].split('"').next().unwrap().to_owned()
}

#[test]
fn the_remedies_that_messages_name_help() {
    let sandbox = Sandbox::new();
    let quick = format!("--search off --set members=1 {QUICK}");
    let with = |column: &str, cell: &dyn Fn(usize) -> String| {
        let table = flats(60);
        let lines = table.lines().enumerate();
        let line = |(i, line): (usize, &str)| {
            if i == 0 { format!("{column},{line}\n") } else { format!("{},{line}\n", cell(i)) }
        };
        lines.map(line).collect::<String>()
    };
    let typed = |i: usize| if i == 7 { "1o".to_owned() } else { (i % 5).to_string() };
    let dated = |i: usize| format!("{}/{}/2024", i % 12 + 1, i % 11 + 1);
    let grouped = |i: usize| format!("\"{},{}\"", i, 100 + i);
    sandbox.write("typed.csv", with("typed", &typed));
    sandbox.write("dated.csv", with("dated", &dated));
    sandbox.write("grouped.csv", with("grouped", &grouped));
    for (file, code) in [("typed.csv", 1), ("dated.csv", 0), ("grouped.csv", 0)] {
        let line = format!("fit {file} --target rent {quick}");
        let run = sandbox.run(&line);
        assert_eq!(run.code, code, "{}", run.stderr);
        let remedy = remedy(&run.stderr);
        let output = sandbox.command(&line).args(["--column", &remedy]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !said.contains("--column"), "{remedy}: {said}");
    }
}

#[test]
fn interrupted_and_failed_predictions_leave_no_parquet_behind() {
    let sandbox = fitted();
    sandbox.write("bad.csv", format!("{}F,x,1,Bern,true,1\n", numbered(5000)));
    sandbox.fails("predict m.safetensors bad.csv --out p.parquet", 1, &["row 5001", "`x` is not a number"]);
    assert_eq!(sandbox.files(), ["bad.csv", "flats.csv", "m.safetensors"]);
    sandbox.fails("predict m.safetensors flats.csv --out flats.csv", 2, &["the data to read"]);
}
