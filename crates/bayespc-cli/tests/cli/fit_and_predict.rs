//! From a table to a model, and from the model to predictions.

use std::io::Read;
use std::process::Stdio;

use crate::support::{QUICK, Sandbox, flats, spots};
use serde_json::Value;

fn fitted() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.ok(&format!("fit flats.csv --target rent --out rent.safetensors {QUICK}"));
    sandbox
}

fn rows(csv: &str) -> Vec<Vec<String>> {
    csv.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn fit_learns_from_all_rows_and_says_what_its_scores_are_of() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    let text = sandbox.ok(&format!("fit flats.csv --target rent {QUICK}"));
    assert!(text.contains("learned from 60 rows") && text.contains("by cross-validation"), "{text}");
    for score in ["RMSE", "log density (original units)", "log density (standardised)", "90 %", "CRPS"] {
        assert!(text.contains(score), "{text}");
    }
    for (flags, said) in [
        ("--test-fraction 0", "by cross-validation"),
        ("--test-fraction 0.2", "on 12 held-out rows"),
        ("--preset fast", "on 6 other rows, held out since nothing is cross-validated"),
        ("--preset fast --test-fraction 0", "no scores"),
    ] {
        let text = sandbox.ok(&format!("fit flats.csv --target rent {flags} {QUICK}"));
        assert!(text.contains(said), "{flags}: {text}");
    }
    assert_eq!(sandbox.files(), ["flats.csv"]);
}

#[test]
fn fit_json_is_json_and_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    let run = sandbox.run(&format!("fit flats.csv --target rent --json --report page.html {QUICK}"));
    let json: Value = serde_json::from_str(&run.stdout).unwrap();
    for key in ["rmse", "log_density", "log_density_standardised", "coverage_90", "crps", "seconds_fit"] {
        assert!(json[key].is_number(), "{key}: {json}");
    }
    assert_eq!(json["dataset"], "flats");
    assert_eq!(
        (&json["train_rows"], &json["scored_rows"], &json["test_rows"]),
        (&60.into(), &60.into(), &0.into())
    );
    // Nobody watches: no progress bar.
    assert_eq!(run.stderr, "");
    let page = String::from_utf8(sandbox.read("page.html")).unwrap();
    for text in
        ["Calibration", "predicted and observed", "two kinds of uncertainty", "Learning curve", "seed"]
    {
        assert!(page.contains(text), "no {text}");
    }
}

#[test]
fn classes_have_their_own_scores_report_and_predictions() {
    let sandbox = Sandbox::new();
    sandbox.write("spots.csv", spots(80));
    let line = format!("fit spots.csv --target colour --json --out m.safetensors --report page.html {QUICK}");
    let json: Value = serde_json::from_str(&sandbox.ok(&line)).unwrap();
    for key in ["accuracy", "nll", "ece"] {
        assert!(json[key].is_number(), "{key}: {json}");
    }
    let page = String::from_utf8(sandbox.read("page.html")).unwrap();
    assert!(page.contains("Reliability") && page.contains("as red") && page.contains("Learning curve"));
    let table = rows(&sandbox.ok("predict m.safetensors spots.csv --digits 17"));
    assert_eq!(table[0], ["class", "probability_blue", "probability_red"]);
    assert_eq!(table.len(), 81);
    for row in &table[1..] {
        let (blue, red): (f64, f64) = (row[1].parse().unwrap(), row[2].parse().unwrap());
        assert!((blue + red - 1.0).abs() < 1e-9);
        assert_eq!(row[0], if red > blue { "red" } else { "blue" });
    }
    // Numbers are classes if we say so.
    sandbox.write("digits.csv", "a,b,k\n1,2,0\n2,1,1\n1,3,0\n3,1,1\n1,4,2\n4,1,1\n0,2,0\n2,0,1\n1,5,2\n");
    let line = format!("fit digits.csv --target k --task classification --test-fraction 0 --json {QUICK}");
    let json: Value = serde_json::from_str(&sandbox.ok(&line)).unwrap();
    assert!(json["accuracy"].is_null() && json["scored_on"].is_null(), "{json}");
}

/// Pure noise: scores of training rows underestimate it.
#[test]
fn scores_of_a_fit_are_those_of_rows_it_has_not_seen() {
    let sandbox = Sandbox::new();
    let noise = |i: usize, j: usize| (((i + 1) * (j + 3)) as f64 * 0.754_877).fract();
    let lines = (0..80)
        .map(|j| format!("{},{},{},{}\n", noise(0, j * j), noise(1, j * j), noise(2, j), noise(7, j * j)));
    sandbox.write("noise.csv", format!("a,b,c,y\n{}", lines.collect::<String>()));
    let fit = |flags: &str| -> Value {
        serde_json::from_str(
            &sandbox.ok(&format!("fit noise.csv --target y --json --out m.safetensors {flags}")),
        )
        .unwrap()
    };
    let json = fit("");
    assert_eq!(json["scored_on"], "out-of-fold rows");
    assert_eq!((json["train_rows"].as_u64(), json["scored_rows"].as_u64()), (Some(80), Some(80)));
    let rmse = json["rmse"].as_f64().unwrap();
    let table = rows(&sandbox.ok("predict m.safetensors noise.csv --digits 17"));
    let square = table[1..]
        .iter()
        .enumerate()
        .map(|(j, row)| (row[0].parse::<f64>().unwrap() - noise(7, j * j)).powi(2));
    let trained = (square.sum::<f64>() / 80.0).sqrt();
    assert!(rmse > trained, "{rmse} on new rows, {trained} on those learned from");
    // `--test-fraction 0` gives the same model.
    let model = sandbox.read("m.safetensors");
    fit("--test-fraction 0");
    assert!(model == sandbox.read("m.safetensors"));
}

#[test]
fn predictions_add_up_and_do_not_depend_on_the_order_of_columns() {
    let sandbox = fitted();
    let table = rows(&sandbox.ok("predict rent.safetensors flats.csv --digits 17"));
    assert_eq!(table[0], ["mean", "std", "aleatoric_std", "epistemic_std", "lower", "upper"]);
    assert_eq!(table.len(), 61);
    for row in &table[1..] {
        let v: Vec<f64> = row.iter().map(|cell| cell.parse().unwrap()).collect();
        assert!((v[1].powi(2) - v[2].powi(2) - v[3].powi(2)).abs() < 1e-9 * v[1].powi(2).max(1.0));
        assert!(v[4] < v[0] && v[0] < v[5]);
    }
    // Other order, no target, a column that nobody asked for.
    let mut text = "extra,new,city,age,size\n".to_owned();
    for row in &rows(&flats(60))[1..] {
        text.push_str(&["x", &row[3], &row[2], &row[1], &row[0]].join(","));
        text.push('\n');
    }
    sandbox.write("new.csv", text);
    sandbox.ok("predict rent.safetensors new.csv --digits 17 --out p.csv");
    assert_eq!(rows(&String::from_utf8(sandbox.read("p.csv")).unwrap()), table);
    // A wider interval contains a narrower one.
    let narrow = rows(&sandbox.ok("predict rent.safetensors flats.csv --coverage 0.5"));
    for (wide, narrow) in table[1..].iter().zip(&narrow[1..]) {
        let number = |cell: &String| cell.parse::<f64>().unwrap();
        assert!(number(&wide[4]) < number(&narrow[4]) && number(&narrow[5]) < number(&wide[5]));
    }
}

#[test]
fn every_method_predicts() {
    let sandbox = fitted();
    let std = |method: &str| {
        let table = rows(&sandbox.ok(&format!("predict rent.safetensors flats.csv --method {method}")));
        table[1][3].parse::<f64>().unwrap()
    };
    // Without uncertain weights all that is left is where the members disagree.
    assert!(std("mean") < std("linearised"));
    for method in ["monte-carlo", "monte-carlo --draws 50 --seed 3", "moments", "linearised"] {
        assert!(std(method) > 0.0, "{method}");
    }
}

#[test]
fn several_targets_are_told_apart_by_name() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.ok(&format!("fit flats.csv --target rent --target age --out m.safetensors {QUICK}"));
    let table = rows(&sandbox.ok("predict m.safetensors flats.csv"));
    assert_eq!(table[0].len(), 12);
    assert_eq!((table[0][0].as_str(), table[0][11].as_str()), ("rent_mean", "age_upper"));
}

#[test]
fn unseen_words_are_bridged_over_with_a_warning() {
    let sandbox = fitted();
    sandbox.write("new.csv", "size,age,city,new\n5,1,Zug,true\n");
    let run = sandbox.run("predict rent.safetensors new.csv");
    assert_eq!(run.code, 0);
    assert!(run.stderr.starts_with("warning: ") && run.stderr.contains("`Zug`"), "{}", run.stderr);
    assert_eq!(rows(&run.stdout).len(), 2);
}

#[test]
fn same_seed_same_bytes_whatever_the_threads() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    let quick = "--set training.epochs=3 --set members=2";
    for (name, flags) in [("a", "--seed 5 --threads 1"), ("b", "--seed 5 --threads 2"), ("c", "--seed 6")] {
        sandbox.ok(&format!("fit flats.csv --target rent --out {name}.safetensors {quick} {flags}"));
    }
    let bytes = |name: &str| sandbox.read(&format!("{name}.safetensors"));
    assert!(bytes("a") == bytes("b"));
    assert!(bytes("a") != bytes("c"));
}

#[test]
fn settings_come_from_file_then_flags() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.write(
        "settings.toml",
        "members = 2\n[network]\nhidden_layer_sizes = [4]\n[network.prior]\nvar = 0.5\n[training]\nepochs = 2\n",
    );
    sandbox
        .ok("fit flats.csv --target rent --config settings.toml --set training.epochs=1 --out m.safetensors");
    let json: Value = serde_json::from_str(&sandbox.ok("inspect m.safetensors --json")).unwrap();
    assert_eq!(json["settings"]["members"], 2);
    assert_eq!(json["settings"]["training"]["epochs"], 1);
    assert_eq!(json["members"][1]["layers"][0]["post"], 4);
    assert_eq!(json["members"][1]["layers"][0]["prior_var"], 0.5);
}

#[test]
fn inspect_shows_what_the_data_decided() {
    let sandbox = fitted();
    let text = sandbox.ok("inspect rent.safetensors");
    for word in
        ["regression", "city=Bern", "rent", "hidden 1", "output 1", "effective", "prior var", "[training]"]
    {
        assert!(text.contains(word), "no {word} in {text}");
    }
    let json: Value = serde_json::from_str(&sandbox.ok("inspect rent.safetensors --json")).unwrap();
    for layer in json["members"][0]["layers"].as_array().unwrap() {
        let effective = layer["effective_parameters"].as_f64().unwrap();
        assert!(effective > 0.0 && effective < layer["parameters"].as_f64().unwrap(), "{layer}");
        assert!(layer["prior_var"].is_number());
    }
    assert!(json["noise_std"][0].as_f64().unwrap() > 0.0);
    assert_eq!(json["training"][0]["epochs"], 3);
}

/// The noise is a fifth of the target, of which half are below 1000.
#[test]
fn inspect_shows_noise_that_grows_with_the_target_at_a_target() {
    let sandbox = Sandbox::new();
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut rows = "x,y\n".to_owned();
    for _ in 0..300 {
        let x = 2.0 * uniform() - 1.0;
        // The sum of twelve has variance 1.
        let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        rows += &format!("{x},{}\n", 1000.0 * (2.0 * x + 0.2 * normal).exp());
    }
    sandbox.write("t.csv", rows);
    let short = "--set training.epochs=10 --set search.widths=[] --set search.noise=false --threads 1";
    sandbox.ok(&format!("fit t.csv --target y --out m.safetensors {short}"));
    let json: Value = serde_json::from_str(&sandbox.ok("inspect m.safetensors --json")).unwrap();
    let members = json["members"].as_array().unwrap();
    let logs: f64 = members.iter().filter(|m| m["plan"]["curve"].is_object()).count() as f64;
    assert!(logs > 0.5 * members.len() as f64, "{logs} of {}", members.len());
    let (std, at) = (json["noise_std"][0].as_f64().unwrap(), json["noise_at"].as_f64());
    assert!((150.0..270.0).contains(&std), "{std} at {at:?}");
    assert!((800.0..1250.0).contains(&at.unwrap()), "{at:?}");
    let text = sandbox.ok("inspect m.safetensors");
    assert!(text.contains("and grows with it"), "{text}");
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let sandbox = fitted();
    sandbox.write("many.csv", flats(20_000));
    let mut child = sandbox
        .command("predict rent.safetensors many.csv")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_stream_learns_in_one_pass_and_scores_rows_before_it_learns_them() {
    let sandbox = Sandbox::new();
    let line = |j: usize| {
        let x = (j % 997) as f64 / 997.0;
        format!("{x},{},{}\n", if j.is_multiple_of(3) { "a" } else { "b" }, 2.0 * x + 0.1 * (j % 7) as f64)
    };
    let rows: String = (0..20_000).map(line).collect();
    sandbox.write("long.csv", format!("x,kind,y\n{rows}"));
    let command =
        "fit long.csv --target y --stream --set members=1 --search off --json --out model.safetensors";
    let json: Value = serde_json::from_str(&sandbox.ok(command)).unwrap();
    assert_eq!(
        (json["rows"].as_u64(), json["scored_rows"].as_u64()),
        (Some(20_000), Some((20_000 - 8192) / 8))
    );
    // The noise is uniform on seven values 0.1 apart: standard deviation 0.2.
    assert!(json["rmse"].as_f64().unwrap() < 0.25, "{json}");
    assert!(json["rows_per_second"].as_f64().unwrap() > 0.0);
    sandbox.write("new.csv", "x,kind\n0.5,a\n0.1,b\n");
    assert_eq!(sandbox.ok("predict model.safetensors new.csv").lines().count(), 3);
    sandbox.fails("fit wine --stream", 2, &["--stream", "wine"]);
    sandbox.fails("fit long.csv --target y --stream --report page.html", 2, &["--stream", "--report"]);
    let calibrated = "fit long.csv --target y --stream --set calibration=conformal";
    sandbox.fails(calibrated, 2, &["--stream", "calibration"]);
}
