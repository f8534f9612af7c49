//! Rows of a long file that cannot be used are left out, counted and named, in every format.

#![allow(clippy::unwrap_used, clippy::format_collect, reason = "a test may panic and need not be fast")]

use std::path::{Path, PathBuf};

use bayespc_data::{
    BadRows, Column, Encoding, EncodingOptions, Error, ParquetWriter, ReadOptions, RowSource, Targets, Texts,
};
use tempfile::TempDir;

fn file(name: &str, content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    (folder, path)
}

/// Rows learned from, their first features, and the bad rows.
fn read(path: &Path, target: &str, limit: Option<usize>) -> Result<(Vec<f64>, BadRows), Error> {
    let options = ReadOptions::default();
    let mut source = RowSource::open(path, &options)?;
    let head = source.head_that_reads(&options, 40)?;
    let encoding = Encoding::fit(&head, &[target], &EncodingOptions::default())?;
    let mut batches = source.batches(&encoding, 16)?.skipping(BadRows::at_most(limit));
    let mut features = Vec::new();
    for batch in batches.by_ref() {
        let batch = batch?;
        features.extend((0..batch.features.ncols()).map(|j| batch.features[(0, j)]));
        let n = match batch.targets.unwrap() {
            Targets::Regression(values) => values.ncols(),
            Targets::Classification(labels) => labels.len(),
        };
        assert_eq!(n, batch.features.ncols());
    }
    Ok((features, batches.bad().clone()))
}

/// Rows 3, 20, 45, 46, 60 and 61 are bad; 45 and 46 behind the head, 3 and 20 in it.
fn rows() -> Vec<String> {
    let row = |i: usize| match i {
        3 => "oops,3".to_owned(),
        20 | 45 => "20".to_owned(),
        46 => "46,what".to_owned(),
        60 => "inf,60".to_owned(),
        61 => "1e999,61".to_owned(),
        i => format!("{i}.5,{}", 2 * i % 17),
    };
    (1..=80).map(row).collect()
}

fn sound() -> Vec<f64> {
    (1..=80).filter(|i| ![3, 20, 45, 46, 60, 61].contains(i)).map(|i| f64::from(i) + 0.5).collect()
}

#[test]
fn bad_rows_of_csv_are_left_out_and_the_first_is_named() {
    let (_folder, path) = file("t.csv", format!("x,y\n{}\n", rows().join("\n")));
    let (features, bad) = read(&path, "y", None).unwrap();
    assert_eq!((features, bad.count), (sound(), 6));
    let first = bad.first.unwrap();
    for word in ["t.csv", "row 3 ", "`x`", "`oops`"] {
        assert!(first.contains(word), "no {word} in {first}");
    }
}

#[test]
fn too_many_bad_rows_are_an_error_that_names_the_one_too_many() {
    let (_folder, path) = file("t.csv", format!("x,y\n{}\n", rows().join("\n")));
    assert_eq!(read(&path, "y", Some(6)).unwrap().1.count, 6);
    for (limit, row) in [(0, 3), (1, 20), (2, 45), (3, 46), (4, 60), (5, 61)] {
        let error = read(&path, "y", Some(limit)).unwrap_err();
        let Error::TooManyBadRows { count, rows, most, last } = &error else { panic!("{error}") };
        assert_eq!((*count, *rows, *most), (limit + 1, row, limit), "{error}");
        assert!(last.to_string().contains(&format!("row {row} ")) && error.to_string().contains("--max-bad"));
    }
}

#[test]
fn without_a_limit_a_hundred_or_one_in_a_hundred_may_be_bad() {
    let table = |n: usize, every: usize| -> String {
        let row = |i: usize| {
            if i > 50 && i.is_multiple_of(every) { "x,1\n".to_owned() } else { format!("{i}.5,{}\n", i % 7) }
        };
        format!("x,y\n{}", (1..=n).map(row).collect::<String>())
    };
    let (_folder, path) = file("t.csv", table(1000, 10));
    assert_eq!(read(&path, "y", None).unwrap().1.count, 95);
    let (_folder, path) = file("t.csv", table(30_000, 101));
    assert_eq!(read(&path, "y", None).unwrap().1.count, 297);
    let (_folder, path) = file("t.csv", table(30_000, 50));
    assert!(matches!(read(&path, "y", None), Err(Error::TooManyBadRows { count: 101, .. })));
}

#[test]
fn an_unknown_class_is_a_bad_row_and_a_missing_target_is_none() {
    let row = |i: usize| match i {
        50 => "1,green\n".to_owned(),
        51 => "1,\n".to_owned(),
        i => format!("{i}.5,{}\n", if i % 3 == 0 { "red" } else { "blue" }),
    };
    let (_folder, path) = file("t.csv", format!("x,y\n{}", (1..=70).map(row).collect::<String>()));
    let (features, bad) = read(&path, "y", Some(1)).unwrap();
    assert_eq!((features.len(), bad.count), (68, 1));
    let first = bad.first.unwrap();
    assert!(first.contains("row 50 ") && first.contains("`green`"), "{first}");
}

#[test]
fn bad_rows_of_json_lines_are_left_out() {
    let row = |i: usize| match i {
        2 => "{\"x\": 1,".to_owned(),
        55 => "[1, 2]".to_owned(),
        56 => "{\"x\": {\"a\": 1}, \"y\": 1}".to_owned(),
        57 => "{\"x\": \"oops\", \"y\": 1}".to_owned(),
        i => format!("{{\"x\": {i}.5, \"y\": {}}}", i % 7),
    };
    let (_folder, path) = file("t.jsonl", (1..=70).map(|i| row(i) + "\n").collect::<String>());
    let (features, bad) = read(&path, "y", Some(4)).unwrap();
    assert_eq!((features.len(), bad.count), (66, 4));
    assert!(bad.first.unwrap().contains("row 2 "));
    assert!(matches!(read(&path, "y", Some(3)), Err(Error::TooManyBadRows { rows: 57, .. })));
}

#[test]
fn bad_rows_of_parquet_are_left_out() {
    let (_folder, path) = file("t.parquet", "");
    let cells: Vec<String> =
        (1..=200).map(|i| if i == 7 || i == 150 { "oops".to_owned() } else { format!("{i}.5") }).collect();
    let texts: Texts = cells.iter().map(|cell| Some(cell.as_str())).collect();
    let y = Column::numbers("y", (1..=200).map(|i| f64::from(i % 7)).collect());
    let columns = vec![Column::texts("x", texts), y];
    let mut writer = ParquetWriter::new(&path, std::fs::File::create(&path).unwrap(), &columns).unwrap();
    writer.write(columns).unwrap();
    writer.finish().unwrap();
    let (features, bad) = read(&path, "y", None).unwrap();
    assert_eq!((features.len(), bad.count), (198, 2));
    assert!(bad.first.unwrap().contains("row 7 "));
}

#[test]
fn nothing_changes_where_nothing_is_bad() {
    let text: String = (1..=60).map(|i| format!("{i}.5,{}\n", i % 7)).collect();
    let (_folder, path) = file("t.csv", format!("x,y\n{text}"));
    let (features, bad) = read(&path, "y", Some(0)).unwrap();
    assert_eq!((features.len(), bad), (60, BadRows::at_most(Some(0))));
    let options = ReadOptions::default();
    let head = |that_reads: bool| {
        let mut source = RowSource::open(&path, &options).unwrap();
        if that_reads { source.head_that_reads(&options, 40) } else { source.head(&options, 40) }.unwrap()
    };
    assert_eq!(head(true), head(false));
}
