//! `bayespc impute` and `bayespc generate`.

use crate::support::{Sandbox, flats};

/// The table of flats, with every seventh cell removed.
fn holes(n: usize) -> (String, usize) {
    let mut removed = 0;
    let whole = flats(n);
    let lines = whole.lines().enumerate().map(|(row, line)| {
        let cells = line.split(',').enumerate().map(|(column, cell)| {
            if row > 0 && (row * 5 + column) % 7 == 0 {
                removed += 1;
                String::new()
            } else {
                cell.to_owned()
            }
        });
        cells.collect::<Vec<_>>().join(",")
    });
    (lines.collect::<Vec<_>>().join("\n"), removed)
}

fn cells(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn holes_are_filled_and_nothing_else_is_changed() {
    let sandbox = Sandbox::new();
    let (table, removed) = holes(90);
    sandbox.write("flats.csv", &table);
    let told = sandbox.ok("impute flats.csv --out whole.csv --std --threads 1");
    assert!(told.contains(&format!("{removed} missing cells of 90 rows")), "{told}");
    let whole = String::from_utf8(sandbox.read("whole.csv")).unwrap();
    let (before, after, truth) = (cells(&table), cells(&whole), cells(&flats(90)));
    assert_eq!(after.len(), 91);
    assert_eq!(after[0][..5], before[0][..]);
    assert!(after[0][5..].contains(&"rent_std".to_owned()), "{:?}", after[0]);
    let mut right = (0, 0);
    for ((before, after), truth) in before.iter().zip(&after).zip(&truth).skip(1) {
        for i in 0..5 {
            assert!(!after[i].is_empty());
            if !before[i].is_empty() {
                assert_eq!(before[i], after[i]);
            } else if i == 2 {
                right = (right.0 + usize::from(after[i] == truth[i]), right.1 + 1);
                assert!(["Aarau", "Bern", "Chur"].contains(&after[i].as_str()));
            }
        }
    }
    assert!(right.1 > 5);
}

#[test]
fn a_model_is_kept_fills_other_tables_and_generates_rows() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", holes(90).0);
    let told = sandbox.ok("impute flats.csv --out whole.parquet --model-out m.safetensors --json");
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["rows"], 90);
    let shown = sandbox.ok("inspect m.safetensors");
    assert!(shown.contains("columns") && shown.contains("rent"), "{shown}");
    let shown: serde_json::Value = serde_json::from_str(&sandbox.ok("inspect m.safetensors --json")).unwrap();
    assert_eq!(shown["latents"], told["latents"], "{told}");
    assert!(shown["candidates"].as_array().unwrap().len() > 1);
    sandbox.fails("inspect m.safetensors --card", 2, &["--card"]);
    assert!(told["candidates"].as_array().unwrap().len() > 2);
    sandbox.write("new.csv", "rent,city,size,age,new\n,Bern,5,3,true\n9,,5,3,false\n");
    let filled = sandbox.ok("impute new.csv --model m.safetensors");
    let filled = cells(&filled);
    assert_eq!(filled[0], ["rent", "city", "size", "age", "new"]);
    let rent: f64 = filled[1][0].parse().unwrap();
    assert!((rent - 13.0).abs() < 3.0, "{rent}");
    sandbox.ok("generate m.safetensors --rows 50 --out more.csv --seed 3");
    let more = cells(&String::from_utf8(sandbox.read("more.csv")).unwrap());
    assert_eq!(more.len(), 51);
    assert_eq!(more[0], ["size", "age", "city", "new", "rent"]);
    let again = sandbox.ok("generate m.safetensors --rows 50 --seed 3 --threads 1");
    assert_eq!(cells(&again), more);
    assert!(cells(&sandbox.ok("generate m.safetensors --rows 5 --seed 3")) == more[..6]);
    sandbox.fails("predict m.safetensors flats.csv", 1, &["without a target", "bayespc generate"]);
}

#[test]
fn draws_differ_where_cells_were_missing_only() {
    let sandbox = Sandbox::new();
    let table = holes(60).0;
    sandbox.write("flats.csv", &table);
    let drawn = cells(&sandbox.ok("impute flats.csv --draws 3 --latents 1 --parts 1"));
    let before = cells(&table);
    assert_eq!(drawn.len(), 1 + 3 * 60);
    assert_eq!(drawn[0][0], "draw");
    let mut apart = 0;
    for (row, before) in before.iter().enumerate().skip(1) {
        for column in 0..5 {
            let values: Vec<&String> = (0..3).map(|draw| &drawn[draw * 60 + row][column + 1]).collect();
            if before[column].is_empty() {
                apart += usize::from(values[0] != values[1]);
            } else {
                assert!(values.iter().all(|value| **value == before[column]));
            }
        }
    }
    assert!(apart > 20, "{apart}");
}

#[test]
fn mistakes_are_named_and_leave_nothing_behind() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", holes(60).0);
    sandbox.write("names.csv", "name\nAnna\nBeat\nCarla\n");
    sandbox.write("no.safetensors", "no model");
    sandbox.fails("impute flats.csv --draws 0", 2, &["--draws 0"]);
    sandbox.fails("impute flats.csv --parts 0", 2, &["parts"]);
    sandbox.fails("impute flats.csv --digits 18", 2, &["--digits 18"]);
    sandbox.fails("impute flats.csv --out flats.csv", 2, &["would be lost"]);
    sandbox.fails("impute names.csv", 1, &["names", "no column"]);
    sandbox.fails("impute nothing.csv", 1, &["nothing.csv"]);
    sandbox.fails("generate no.safetensors --rows 5 --out x.csv", 1, &["no.safetensors"]);
    sandbox.fails("generate no.safetensors --rows 0", 2, &["--rows 0"]);
    sandbox.ok("impute flats.csv --out w.csv --model-out m.safetensors --latents 1 --parts 1");
    sandbox.write("other.csv", "size,age,city,new,rent\n1,2,Basel,true,3\n");
    sandbox.fails("impute other.csv --model m.safetensors", 1, &["row 1", "city", "Basel"]);
    sandbox.write("fewer.csv", "size,age,city,new\n1,2,Bern,true\n");
    sandbox.fails("impute fewer.csv --model m.safetensors --out f.csv", 1, &["fewer", "rent"]);
    assert!(!sandbox.files().contains(&"f.csv".to_owned()) && !sandbox.files().contains(&"x.csv".to_owned()));
}

#[test]
fn a_damaged_model_is_named_as_what_it_is() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", holes(60).0);
    sandbox.ok("impute flats.csv --out w.csv --model-out m.safetensors --latents 1 --parts 1");
    let whole = sandbox.read("m.safetensors");
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    sandbox.write("flipped.safetensors", flipped);
    sandbox.write("short.safetensors", &whole[..whole.len() - 5]);
    for (file, problem) in [("flipped", "checksum"), ("short", "not a whole safetensors file")] {
        for command in ["inspect FILE", "predict FILE flats.csv"] {
            let line = command.replace("FILE", &format!("{file}.safetensors"));
            sandbox.fails(&line, 1, &[file, "bayespc impute --model-out", problem]);
        }
    }
}
