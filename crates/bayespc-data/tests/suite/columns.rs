//! How columns become inputs: what each is taken for, how it is coded, and what holds of every table.

#![allow(clippy::unwrap_used, clippy::format_collect)]

use bayespc_data::{
    Coding, Column, ColumnChoice, Encoding, EncodingOptions, Error, Kinds, Missing, RowBatches, Table, Texts,
    Understood, Warning, columns_table,
};
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};

const DAY: i64 = 86_400_000_000;

fn csv(text: &str) -> Table {
    Table::from_csv("t.csv", text.as_bytes(), &Kinds::new()).unwrap()
}

fn of(column: Column) -> Table {
    Table::from_columns("t", vec![column]).unwrap()
}

fn fit(table: &Table) -> Encoding {
    Encoding::fit(table, &[], &EncodingOptions::default()).unwrap()
}

/// With choices such as `size=number`.
fn asking(choices: &[&str]) -> EncodingOptions {
    let choice = |text: &&str| {
        let (name, choice) = text.split_once('=').unwrap();
        (name.to_owned(), choice.parse::<ColumnChoice>().unwrap())
    };
    EncodingOptions { columns: choices.iter().map(choice).collect(), ..EncodingOptions::default() }
}

fn rows(encoding: &Encoding, table: &Table) -> Vec<Vec<f64>> {
    let features = encoding.transform(table).unwrap().features;
    (0..features.ncols()).map(|j| features.col(j).iter().copied().collect()).collect()
}

fn understood(encoding: &Encoding) -> Vec<(&str, Understood, usize)> {
    encoding.columns.iter().map(|c| (c.name.as_str(), c.understood, c.inputs)).collect()
}

/// One column `a` of these cells, and a second so that there is always a feature.
fn column(cells: impl Iterator<Item = String>) -> Table {
    let lines: String = cells.enumerate().map(|(i, cell)| format!("{cell},{}\n", (i * 7) % 5)).collect();
    csv(&format!("a,b\n{lines}"))
}

#[test]
fn holes_of_numbers_have_the_mean_and_an_input_of_their_own_where_training_had_holes() {
    let train = csv("a,b\n1,1\n,2\n5,6\n");
    let encoding = fit(&train);
    assert_eq!(encoding.feature_names(), ["a", "a=(missing)", "b"]);
    assert_eq!(rows(&encoding, &train), [[1.0, 0.0, 1.0], [3.0, 1.0, 2.0], [5.0, 0.0, 6.0]]);
    let encoded = encoding.transform(&csv("a,b\n,\n2,\n")).unwrap();
    // Column `b` had no holes: its mean, and a word.
    assert_eq!(encoded.warnings, [Warning::Imputed { column: "b".into(), count: 2 }]);
    assert_eq!(rows(&encoding, &csv("a,b\n,\n2,\n")), [[3.0, 1.0, 3.0], [2.0, 0.0, 3.0]]);
    assert_eq!(encoding.columns[0].missing, 1);
}

#[test]
fn marks_far_from_all_others_are_missing_cells_and_slips_are_set_to_the_limits() {
    let cells = |i: usize| match i {
        7 | 8 => "9999".to_owned(),
        30 => "-9999".to_owned(),
        _ => ((i * 37) % 20).to_string(),
    };
    let train = column((0..100).map(cells));
    let encoding = fit(&train);
    assert_eq!(encoding.feature_names(), ["a", "a=(missing)", "b"]);
    assert_eq!(encoding.columns[0].remark, "9999 taken for missing");
    let Coding::Number(number) = &encoding.features[0].coding else { panic!("a number") };
    let mean =
        (0..100).filter(|i| ![7, 8, 30].contains(i)).map(|i| (i * 37) % 20).sum::<usize>() as f64 / 98.0;
    assert!((number.mean - mean).abs() < 1e-12, "{} {mean}", number.mean);
    let coded = rows(&encoding, &train);
    assert_eq!((&coded[7][..2], &coded[30][..2]), (&[number.mean, 1.0][..], &[0.0, 0.0][..]));
    let slip = fit(&column((0..100).map(|i| if i == 8 { "15".to_owned() } else { cells(i) })));
    assert_eq!(slip.feature_names(), ["a", "b"]);
    assert!(slip.columns[0].remark.contains("beyond 0 … 19"), "{:?}", slip.columns[0]);
    // A mark of one column is one in others, if it is far from their values.
    let near = |i: usize| (if i.is_multiple_of(3) { 9999 } else { i * 150 }).to_string();
    let lines: String = (0..100).map(|i| format!("{},{},{}\n", cells(i), (i * 7) % 20, near(i))).collect();
    let shared = fit(&csv(&format!("a,b,c\n{lines}")));
    assert_eq!(shared.feature_names(), ["a", "a=(missing)", "b", "c"]);
    let new = shared.transform(&csv("a,b,c\n1,9999,9999\n")).unwrap();
    assert!((new.features[(2, 0)] - 9.5).abs() < 1e-12 && new.features[(3, 0)] == 9999.0);
    assert_eq!(new.warnings, [Warning::Imputed { column: "b".into(), count: 1 }]);
    // Where a missing cell is an error, a mark is a slip.
    let strict = EncodingOptions { missing: Missing::Error, ..EncodingOptions::default() };
    let strict = Encoding::fit(&train, &[], &strict).unwrap();
    assert_eq!(strict.transform(&train).unwrap().features[(0, 7)], 19.0);
    // Who asks for a number gets it as it is; so does a column without outliers, also far from training.
    let asked = Encoding::fit(&train, &[], &asking(&["a=number"])).unwrap();
    assert_eq!(asked.transform(&train).unwrap().features[(0, 7)], 9999.0);
    let tame = fit(&column((0..100).map(|i| ((i * 37) % 20).to_string())));
    assert_eq!(tame.transform(&csv("a,b\n9999,0\n")).unwrap().features[(0, 0)], 9999.0);
    // Too many to be slips, too few values to tell, or no scale.
    for cells in [
        (0..100).map(|i| if i % 10 == 0 { 9999 } else { i % 7 }).collect::<Vec<_>>(),
        (0..40).map(|i| if i == 3 { 9999 } else { i % 7 }).collect(),
        (0..100).map(|i| if i == 3 { 9999 } else { i / 80 }).collect(),
    ] {
        let encoding = fit(&column(cells.iter().map(ToString::to_string)));
        assert_eq!(encoding.feature_names(), ["a", "b"], "{cells:?}");
    }
}

#[test]
fn holes_of_booleans_and_categories_are_values_of_their_own() {
    let train = csv("lift,city\ntrue,Bern\n,\nfalse,Aarau\ntrue,Bern\n");
    let encoding = fit(&train);
    assert_eq!(
        encoding.feature_names(),
        ["lift", "lift=(missing)", "city=Aarau", "city=Bern", "city=(missing)"]
    );
    assert_eq!(rows(&encoding, &train)[1], [0.0, 1.0, 0.0, 0.0, 1.0]);
    assert_eq!(rows(&encoding, &train)[0], [1.0, 0.0, 0.0, 1.0, 0.0]);
    // Without holes in training: the most frequent value, and a word.
    let whole = fit(&csv("lift,city\ntrue,Bern\nfalse,Aarau\ntrue,Bern\n"));
    let encoded = whole.transform(&csv("lift,city\n,\ntrue,\n")).unwrap();
    assert_eq!(encoded.warnings.len(), 2);
    assert_eq!(encoded.features.col(0).iter().copied().collect::<Vec<_>>(), [1.0, 0.0, 1.0]);
}

#[test]
fn an_error_is_asked_for_in_training_and_kept_for_prediction() {
    let options = EncodingOptions { missing: Missing::Error, ..EncodingOptions::default() };
    let error = Encoding::fit(&csv("a,b\n1,x\n,y\n3,x\n"), &[], &options).unwrap_err();
    assert!(matches!(&error, Error::MissingValue { row: 2, column, .. } if column == "a"), "{error}");
    assert!(error.to_string().contains("--missing encode"), "{error}");
    let encoding = Encoding::fit(&csv("a,b\n1,x\n2,y\n4,x\n"), &[], &options).unwrap();
    let error = encoding.transform(&csv("a,b\n1,x\n,y\n3,x\n")).unwrap_err();
    assert!(matches!(error, Error::MissingValue { row: 2, .. }), "{error}");
}

#[test]
fn rows_with_holes_are_left_out_on_request_and_columns_that_are_not_used_do_not_count() {
    let table = csv("a,b,empty,y\n1,x,,1\n,y,,2\n3,,,3\n5,y,,4\n5,x,,\n");
    let options = EncodingOptions { missing: Missing::Drop, ..EncodingOptions::default() };
    let encoding = Encoding::fit(&table, &["y"], &options).unwrap();
    let learnable = encoding.learnable(&table).unwrap();
    assert_eq!(learnable.rows, [0, 3]);
    assert_eq!((learnable.without_target, learnable.with_holes), (1, 2));
    assert_eq!(learnable.to_string(), "1 row without a target and 2 rows with missing cells left out");
    // The mean is that of the rows that are learned from, and no input tells of holes.
    assert_eq!(encoding.feature_names(), ["a", "b=x", "b=y"]);
    assert!(matches!(&encoding.features[0].coding, Coding::Number(number) if number.mean == 3.0));
    let error = Encoding::fit(&csv("a,b\n1,\n,2\n"), &[], &options).unwrap_err();
    assert!(matches!(&error, Error::NoLearnableRows { .. }), "{error}");
    assert!(error.to_string().contains("2 rows with missing cells left out"), "{error}");
}

#[test]
fn rows_without_a_target_teach_nothing() {
    let with = csv("a,b,y\n1,x,1\n9,z,\n3,y,3\n");
    let without = csv("a,b,y\n1,x,1\n3,y,3\n");
    let options = EncodingOptions::default();
    let encoding = Encoding::fit(&with, &["y"], &options).unwrap();
    assert_eq!(encoding, Encoding::fit(&without, &["y"], &options).unwrap());
    let learnable = encoding.learnable(&with).unwrap();
    assert_eq!((learnable.rows.as_slice(), learnable.without_target), (&[0, 2][..], 1));
    let error = encoding.targets(&with).unwrap_err();
    assert!(matches!(error, Error::MissingTarget { row: 2, .. }), "{error}");
    let error = Encoding::fit(&csv("a,y\n1,\n2,\n"), &["y"], &options).unwrap_err();
    assert!(matches!(&error, Error::AllMissing { column, .. } if column == "y"), "{error}");
}

/// Twelve values: `v0` … `v3` ten times, the others once or twice.
fn many_values() -> Vec<String> {
    let frequent = (0..40).map(|i| format!("v{}", i % 4));
    let seldom = (4..12).flat_map(|i| vec![format!("v{i}"); 1 + i % 2]);
    frequent.chain(seldom).collect()
}

#[test]
fn rare_values_share_an_input_and_unseen_ones_have_none() {
    let train = column(many_values().into_iter());
    let encoding = fit(&train);
    assert_eq!(encoding.feature_names(), ["a=v0", "a=v1", "a=v2", "a=v3", "a=(other)", "b"]);
    assert!(encoding.columns[0].remark.contains("8 rare values share an input"), "{:?}", encoding.columns[0]);
    let new = csv("a,b\nv3,0\nv7,0\nnever,0\n");
    let encoded = encoding.transform(&new).unwrap();
    assert_eq!(rows(&encoding, &new)[0][..5], [0.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(rows(&encoding, &new)[1][..5], [0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(rows(&encoding, &new)[2][..5], [0.0; 5]);
    assert!(
        matches!(&encoded.warnings[..], [Warning::UnseenCategory { count: 1, example, row: 3, .. }] if example == "never")
    );
}

#[test]
fn ties_of_frequency_are_broken_by_the_alphabet_and_ten_values_are_never_pooled() {
    let train = column(many_values().into_iter());
    let options = asking(&["a=category:3"]);
    let encoding = Encoding::fit(&train, &[], &options).unwrap();
    assert_eq!(encoding.feature_names(), ["a=v0", "a=v1", "a=v2", "a=(other)", "b"]);
    // Who asks for a category gets every value up to the number.
    let encoding = Encoding::fit(&train, &[], &asking(&["a=category"])).unwrap();
    assert_eq!(encoding.columns[0].inputs, 12);
    let ten = fit(&column((0..40).map(|i| if i < 31 { "often".to_owned() } else { format!("once{i}") })));
    assert_eq!(ten.columns[0].inputs, 10);
}

#[test]
fn text_of_many_values_is_left_out_with_a_word_or_hashed_on_request() {
    let notes = |i: usize| format!("flat {} near the lake {}", i / 2, i / 2 % 7);
    let train = column((0..60).map(notes));
    let encoding = fit(&train);
    assert_eq!(understood(&encoding), [("a", Understood::Text, 0), ("b", Understood::Number, 1)]);
    assert!(encoding.columns[0].remark.contains("a=text"), "{:?}", encoding.columns[0]);
    let encoding = Encoding::fit(&train, &[], &asking(&["a=text:8"])).unwrap();
    assert_eq!(encoding.columns[0].inputs, 8);
    assert_eq!(encoding.feature_names()[7], "a#8");
    let codes = rows(&encoding, &csv("a,b\nNear the lake,0\n\"lake, THE near!\",0\n,0\n"));
    assert_eq!(codes[0], codes[1]);
    assert!(codes[0].iter().any(|x| *x != 0.0));
    assert!(codes[2].iter().all(|x| *x == 0.0));
    // Three words, each ±1/√3 unless two meet.
    let squares: f64 = codes[0].iter().map(|x| x * x).sum();
    assert!((0.3..=3.1).contains(&squares), "{squares}");
}

#[test]
fn identifiers_are_left_out_with_a_word_and_taken_on_request() {
    for (name, cell) in [
        ("a", Box::new(|i: usize| format!("key{i}")) as Box<dyn Fn(usize) -> String>),
        ("a", Box::new(|i| i.to_string())),
        ("a", Box::new(|i| (i + 1).to_string())),
        ("order_id", Box::new(|i| (7919 * (i + 3) % 1_000_003).to_string())),
    ] {
        let lines: String = (0..40).map(|i| format!("{},{}\n", cell(i), i % 7)).collect();
        let table = csv(&format!("{name},b\n{lines}"));
        let encoding = fit(&table);
        assert_eq!(encoding.feature_names(), ["b"], "{}", cell(2));
        assert_eq!(encoding.columns[0].understood, Understood::Identifier);
        assert!(encoding.columns[0].remark.starts_with("left out"), "{:?}", encoding.columns[0]);
        let asked = asking(&[&format!("{name}=category")]);
        let taken = Encoding::fit(&table, &[], &asked).unwrap();
        assert_eq!((taken.columns[0].inputs, taken.columns[0].remark.as_str()), (40, "as asked"));
    }
    // A year counts up too, a time is called so, and measured values may well all differ.
    for (name, cell) in [
        ("year", Box::new(|i: usize| (1950 + i).to_string()) as Box<dyn Fn(usize) -> String>),
        ("day", Box::new(|i| i.to_string())),
        ("a", Box::new(|i| format!("{}", (i * i) as f64 * 0.5))),
        ("paid", Box::new(|i| (7919 * i % 100_003).to_string())),
    ] {
        let lines: String = (0..40).map(|i| format!("{},{}\n", cell(i), i % 7)).collect();
        assert_eq!(fit(&csv(&format!("{name},b\n{lines}"))).feature_names(), [name, "b"]);
    }
}

#[test]
fn columns_without_values_or_with_only_one_are_left_out_with_a_word() {
    let table = csv("a,empty,same,word,yes,half\n1,,3,x,true,\n2,NA,3,x,true,1\n4,,3.0,x,true,1\n");
    let encoding = fit(&table);
    assert_eq!(
        understood(&encoding),
        [
            ("a", Understood::Number, 1),
            ("empty", Understood::Empty, 0),
            ("same", Understood::Constant, 0),
            ("word", Understood::Constant, 0),
            ("yes", Understood::Constant, 0),
            // Whether there is a value tells something.
            ("half", Understood::Number, 2),
        ]
    );
    assert_eq!(encoding.columns[2].values, "3");
    let encoding = Encoding::fit(&table, &[], &asking(&["same=number", "a=ignore"])).unwrap();
    assert_eq!(encoding.feature_names(), ["same", "half", "half=(missing)"]);
    let error = Encoding::fit(&csv("same,empty\n3,\n3,\n"), &[], &EncodingOptions::default()).unwrap_err();
    assert!(error.to_string().contains("`same`: constant, `empty`: empty"), "{error}");
    // A single row tells nothing about what is constant.
    assert_eq!(fit(&csv("a,b\n1,x\n")).feature_names(), ["a", "b=x"]);
}

#[test]
fn every_decision_can_be_overridden() {
    let table = csv("n,t,w\n1,true,7\n0,false,8\n1,true,7\n3,false,x\n");
    let names = |choices: &[&str]| Encoding::fit(&table, &[], &asking(choices)).map(|e| e.feature_names());
    assert_eq!(names(&["n=category", "w=ignore"]).unwrap(), ["n=0", "n=1", "n=3", "t"]);
    assert_eq!(names(&["t=category", "w=ignore"]).unwrap(), ["n", "t=false", "t=true"]);
    assert_eq!(names(&["t=number", "w=text:2"]).unwrap(), ["n", "t", "w#1", "w#2"]);
    let error = names(&["n=bool"]).unwrap_err();
    assert!(
        matches!(&error, Error::WrongType { row: 4, value, expected: "boolean", .. } if value == "3"),
        "{error}"
    );
    let error = names(&["w=number"]).unwrap_err();
    assert!(matches!(&error, Error::WrongType { row: 4, value, .. } if value == "x"), "{error}");
    let error = names(&["w=time"]).unwrap_err();
    assert!(matches!(&error, Error::WrongType { expected: "time", .. }), "{error}");
    assert!(matches!(names(&["z=number"]), Err(Error::MissingColumn { column, .. }) if column == "z"));
    // A category of numbers is read as numbers again: 1 and 1.0 are one value.
    let encoding = Encoding::fit(&table, &[], &asking(&["n=category"])).unwrap();
    let again = Table::from_csv("new.csv", b"n,t,w\n1.0,true,7\n", &encoding.kinds()).unwrap();
    assert!(encoding.transform(&again).unwrap().warnings.is_empty());
}

fn times(days: impl Iterator<Item = f64>) -> Table {
    let micros = |day: f64| (day * DAY as f64).round() as i64;
    // 2020-01-01 was a Wednesday.
    of(Column::times("t", days.map(|day| micros(18_262.0 + day)).collect()))
}

#[test]
fn a_time_is_days_and_the_cycles_that_training_went_through() {
    for (table, expected) in [
        (times((0..10).map(f64::from)), &["t"][..]),
        (
            times((0..20).map(f64::from)),
            &["t", "t=Mon", "t=Tue", "t=Wed", "t=Thu", "t=Fri", "t=Sat", "t=Sun"],
        ),
        (times((0..20).map(|i| f64::from(i) / 4.0)), &["t", "t hour sin", "t hour cos"]),
        (times((0..5).map(|i| f64::from(i) / 48.0)), &["t"]),
        (
            times([0.0, 366.0, 731.0].into_iter()),
            // The first of January each year: weekdays vary but mean nothing.
            &["t", "t season sin", "t season cos"],
        ),
        (of(Column::times("t", (0..24).map(|h| h * DAY / 24).collect())), &["t", "t hour sin", "t hour cos"]),
        (of(Column::times("t", vec![0, i64::MIN, DAY])), &["t", "t=(missing)"]),
    ] {
        assert_eq!(fit(&table).feature_names(), expected);
    }
}

#[test]
fn cycles_close_and_days_count_from_the_first() {
    let table = times((0..800).map(f64::from));
    let encoding = fit(&table);
    let rows = rows(&encoding, &table);
    assert_eq!((rows[0][0], rows[799][0]), (0.0, 799.0));
    // A Wednesday, and the same day of the next year: 2020 was a leap year.
    assert_eq!(rows[0][3..], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    assert!((rows[0][1] - rows[366][1]).abs() < 1e-12 && (rows[0][2] - rows[366][2]).abs() < 1e-12);
    for row in &rows {
        assert!((row[1].powi(2) + row[2].powi(2) - 1.0).abs() < 1e-12);
        assert_eq!(row[3..].iter().sum::<f64>(), 1.0);
    }
    // Before the first day, and a hole.
    let new = of(Column::times("t", vec![0, i64::MIN]));
    let encoded = encoding.transform(&new).unwrap();
    assert_eq!(encoded.features[(0, 0)], -18_262.0);
    assert_eq!(encoded.features[(0, 1)], 399.5);
    assert_eq!(encoded.warnings, [Warning::Imputed { column: "t".into(), count: 1 }]);
}

#[test]
fn times_of_files_are_points_in_utc() {
    let text = |zone: &str| -> String {
        let lines: String =
            (1..30).map(|i| format!("2024-01-{:02}T{:02}:00:00{zone},{i}\n", i, i % 24)).collect();
        format!("t,b\n{lines}")
    };
    let plain = csv(&text(""));
    let encoding = fit(&plain);
    assert_eq!(encoding.columns[0].understood, Understood::Time);
    assert_eq!(rows(&encoding, &plain), rows(&encoding, &csv(&text("Z"))));
    let shifted = encoding.transform(&csv(&text("+01:00"))).unwrap().features;
    let features = encoding.transform(&plain).unwrap().features;
    assert!((features[(0, 3)] - shifted[(0, 3)] - 1.0 / 24.0).abs() < 1e-12);
}

#[test]
fn a_target_must_be_a_number_or_a_class() {
    let days: String = (1..30).map(|i| format!("{},2024-01-{i:02}\n", i * i)).collect();
    let error =
        Encoding::fit(&csv(&format!("a,y\n{days}")), &["y"], &EncodingOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Target { column, .. } if column == "y"), "{error}");
    let words: String = (0..50).map(|i| format!("{i},about {}\n", i * 17)).collect();
    let table = csv(&format!("a,y\n{words}"));
    let error = Encoding::fit(&table, &["y"], &EncodingOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::TooManyClasses { found: 50, rows: 50, .. }), "{error}");
    let options = EncodingOptions { task: Some(bayespc_data::Task::Classification), ..asking(&["a=number"]) };
    assert_eq!(Encoding::fit(&table, &["y"], &options).unwrap().classes().unwrap().len(), 50);
}

#[test]
fn a_plain_note_is_short() {
    let encoding = Encoding { columns: Vec::new(), ..fit(&csv("a,b\n1,2\n2,4\n")) };
    assert_eq!(
        serde_json::to_string(&encoding).unwrap(),
        r#"{"features":[{"name":"a","coding":{"kind":"number","mean":1.5}},{"name":"b","coding":{"kind":"number","mean":3.0}}],"target":null,"missing":"encode"}"#
    );
}

#[test]
fn what_was_understood_is_a_short_table() {
    let table =
        csv("size,city,id,when\n1.5,Bern,k1,2024-01-01\n,Bern,k2,2024-01-02\n3,Aarau,k1,2024-02-03\n");
    let text = columns_table(&fit(&table).columns, 40);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "column  understood as  values                   missing  inputs");
    assert_eq!(lines[1], "size    number         1.5 … 3                        1       2");
    assert_eq!(lines[2], "city    category       2: Bern, Aarau                 0       2");
    assert!(lines[4].starts_with("when    time           2024-01-01 … 2024-02-03"), "{text}");
    let many = (0..50).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",");
    let cells = |k: usize| (0..50).map(|i| (i * k).to_string()).collect::<Vec<_>>().join(",");
    let wide = fit(&csv(&format!("{many},name\n{},x\n{},y\n", cells(1), cells(2))));
    let text = columns_table(&wide.columns, 40);
    assert_eq!(text.lines().last(), Some("and 49 columns of numbers without holes"), "{text}");
}

#[test]
fn other_rows_teach_other_means_but_not_another_kind() {
    let table =
        column(many_values().into_iter().enumerate().map(|(i, v)| if i == 3 { String::new() } else { v }));
    let encoding = fit(&table);
    assert_eq!(encoding.refit(&table, &EncodingOptions::default()).unwrap(), encoding);
    let some = encoding.refit(&table.select_rows(&[0, 4, 8]), &EncodingOptions::default()).unwrap();
    assert_eq!(some.feature_names(), ["a=v0", "b"]);
    assert_eq!(some.columns[0].inputs, 1);
}

#[test]
fn batches_leave_out_what_cannot_be_learned_from_and_count_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let lines: String = (0..20)
        .map(|i| {
            format!(
                "{},{}\n",
                i * i,
                if (5..9).contains(&i) || i >= 17 { String::new() } else { i.to_string() }
            )
        })
        .collect();
    std::fs::write(&path, format!("a,y\n{lines}")).unwrap();
    let mut encoding =
        Encoding::fit(&Table::read(&path).unwrap(), &["y"], &EncodingOptions::default()).unwrap();
    let mut reader = RowBatches::open(&path, &encoding, 3).unwrap();
    let batches: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(|b| b.features.ncols()).sum::<usize>(), 13);
    assert_eq!(reader.left_out().without_target, 7);
    assert!(batches.iter().all(|batch| batch.features.ncols() > 0));
    // To predict, every row counts.
    encoding.target = None;
    let batches = RowBatches::open(&path, &encoding, 3).unwrap().map(Result::unwrap);
    assert_eq!(batches.map(|b| b.features.ncols()).sum::<usize>(), 20);
}

/// A table of every kind with holes, drawn from a seed.
fn drawn(seed: u64, n: usize) -> Table {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let hole = |rng: &mut ChaCha8Rng| rng.random_bool(0.1);
    let numbers = (0..n).map(|_| if hole(rng) { f64::NAN } else { rng.random_range(-9.0..9.0) }).collect();
    let bits = (0..n).map(|_| (!hole(rng)).then(|| rng.random_bool(0.3))).collect();
    let times = (0..n).map(|_| if hole(rng) { i64::MIN } else { rng.random_range(0..900 * DAY) }).collect();
    let words: Vec<Option<String>> = (0..n)
        .map(|_| (!hole(rng)).then(|| format!("w{}", (rng.next_u32() % 16).min(rng.next_u32() % 16))))
        .collect();
    let texts: Texts = words.iter().map(Option::as_deref).collect();
    let columns = vec![
        Column::numbers("n", numbers),
        Column::booleans("b", bits),
        Column::times("t", times),
        Column::texts("w", texts),
    ];
    Table::from_columns("drawn", columns).unwrap()
}

proptest! {
    #[test]
    fn a_permuted_table_is_encoded_to_permuted_columns(seed in any::<u64>(), n in 2_usize..80) {
        let table = drawn(seed, n);
        let Ok(encoding) = Encoding::fit(&table, &[], &EncodingOptions::default()) else { return Ok(()) };
        let mut order: Vec<usize> = (0..n).collect();
        let rng = &mut ChaCha8Rng::seed_from_u64(!seed);
        (1..n).rev().for_each(|i| order.swap(i, rng.random_range(0..=i)));
        let features = encoding.transform(&table).unwrap().features;
        let permuted = encoding.transform(&table.select_rows(&order)).unwrap().features;
        for (j, &i) in order.iter().enumerate() {
            prop_assert_eq!(permuted.col(j).to_owned(), features.col(i).to_owned());
        }
    }

    #[test]
    fn parts_put_together_are_the_whole_and_every_input_is_finite(seed in any::<u64>(), n in 2_usize..80) {
        let table = drawn(seed, n);
        let Ok(encoding) = Encoding::fit(&table, &[], &EncodingOptions::default()) else { return Ok(()) };
        let features = encoding.transform(&table).unwrap().features;
        prop_assert_eq!(features.nrows(), encoding.feature_names().len());
        prop_assert_eq!(features.nrows(), encoding.columns.iter().map(|c| c.inputs).sum::<usize>());
        let cut = (seed % n as u64) as usize;
        for rows in [0..cut, cut..n] {
            let part = encoding.transform(&table.select_rows(&rows.clone().collect::<Vec<_>>())).unwrap();
            prop_assert_eq!(part.features, features.subcols(rows.start, rows.len()).to_owned());
        }
        for j in 0..n {
            prop_assert!(features.col(j).iter().all(|x| x.is_finite()));
        }
    }

    #[test]
    fn an_encoding_is_read_back_as_it_was_written(seed in any::<u64>(), n in 2_usize..60) {
        let table = drawn(seed, n);
        let Ok(encoding) = Encoding::fit(&table, &[], &EncodingOptions::default()) else { return Ok(()) };
        let text = serde_json::to_string(&encoding).unwrap();
        let again: Encoding = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&again, &encoding);
    }
}
