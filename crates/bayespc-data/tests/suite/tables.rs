//! The user's own tables: from file to matrices, and every way a table can be wrong.

#![allow(clippy::unwrap_used, clippy::format_collect)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bayespc_data::{
    Encoding, EncodingOptions, Error, Kind, Kinds, Missing, RowBatches, Table, Targets, Task, Values, Warning,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use tempfile::TempDir;

const FLATS: &str = "\
size,city,lift,price
50,Bern,true,1.5
70,Aarau,false,2
40,Bern,true,1
";

fn table(text: &str) -> Table {
    Table::from_csv("t.csv", text.as_bytes(), &Kinds::new()).unwrap()
}

fn read_error(bytes: &[u8]) -> Error {
    Table::from_csv("t.csv", bytes, &Kinds::new()).unwrap_err()
}

fn fit(text: &str, targets: &[&str]) -> Result<Encoding, Error> {
    Encoding::fit(&table(text), targets, &EncodingOptions::default())
}

/// Cells as text, since NaN equals nothing.
fn cells(values: &Values, n: usize) -> Vec<Option<String>> {
    (0..n).map(|i| values.text(i).map(Into::into)).collect()
}

fn numbers(values: &[f64]) -> Vec<Option<String>> {
    cells(&Values::Number(values.to_vec()), values.len())
}

fn column(matrix: &faer::Mat<f64>, j: usize) -> Vec<f64> {
    matrix.col(j).iter().copied().collect()
}

#[test]
fn columns_become_rows_by_their_kind() {
    let flats = table(FLATS);
    let encoding = Encoding::fit(&flats, &["price"], &EncodingOptions::default()).unwrap();
    assert_eq!(encoding.feature_names(), ["size", "city=Aarau", "city=Bern", "lift"]);
    let encoded = encoding.transform(&flats).unwrap();
    assert!(encoded.warnings.is_empty());
    assert_eq!(column(&encoded.features, 0), [50.0, 0.0, 1.0, 1.0]);
    assert_eq!(column(&encoded.features, 1), [70.0, 1.0, 0.0, 0.0]);
    let Targets::Regression(prices) = encoding.targets(&flats).unwrap() else { panic!("numbers") };
    assert_eq!((prices.nrows(), prices[(0, 0)], prices[(0, 2)]), (1, 1.5, 1.0));
}

#[test]
fn a_table_to_predict_may_lack_the_target_and_reorder_or_add_columns() {
    let encoding = fit(FLATS, &["price"]).unwrap();
    let new = table("when,lift,city,size\nx,true,Aarau,60\n");
    assert_eq!(column(&encoding.transform(&new).unwrap().features, 0), [60.0, 1.0, 0.0, 1.0]);
    assert!(!encoding.has_targets(&new));
    let error = encoding.transform(&table("city,size\nBern,1\n")).unwrap_err();
    assert!(matches!(&error, Error::MissingColumn { column, .. } if column == "lift"), "{error}");
}

#[test]
fn an_unseen_text_is_all_zeros_and_counted() {
    let encoding = fit(FLATS, &["price"]).unwrap();
    let new = table("size,city,lift\n1,Bern,true\n2,Chur,true\n3,Davos,true\n");
    let encoded = encoding.transform(&new).unwrap();
    assert_eq!(column(&encoded.features, 1), [2.0, 0.0, 0.0, 1.0]);
    assert_eq!(
        encoded.warnings,
        [Warning::UnseenCategory { column: "city".into(), count: 2, example: "Chur".into(), row: 2 }]
    );
}

#[test]
fn an_encoding_survives_serialisation() {
    for targets in [&["price"][..], &["city"], &[]] {
        let encoding = fit(FLATS, targets).unwrap();
        let text = serde_json::to_string(&encoding).unwrap();
        assert_eq!(serde_json::from_str::<Encoding>(&text).unwrap(), encoding);
    }
    let options: EncodingOptions = serde_json::from_str(r#"{"missing": "drop"}"#).unwrap();
    assert_eq!(options, EncodingOptions { missing: Missing::Drop, ..EncodingOptions::default() });
    assert!(serde_json::from_str::<EncodingOptions>(r#"{"mising": "drop"}"#).is_err());
}

#[test]
fn texts_and_booleans_are_classes_in_sorted_order() {
    let flats = table(FLATS);
    let encoding = Encoding::fit(&flats, &["city"], &EncodingOptions::default()).unwrap();
    assert_eq!(encoding.classes().unwrap(), ["Aarau", "Bern"]);
    assert_eq!(encoding.targets(&flats).unwrap(), Targets::Classification(vec![1, 0, 1]));
    let encoding = Encoding::fit(&flats, &["lift"], &EncodingOptions::default()).unwrap();
    assert_eq!(encoding.classes().unwrap(), ["false", "true"]);
    let error = fit(FLATS, &["city"]).unwrap().targets(&table("city\nBern\nChur\n")).unwrap_err();
    assert!(matches!(&error, Error::UnknownClass { row: 2, class, .. } if class == "Chur"), "{error}");
}

#[test]
fn numbers_are_classes_on_request_in_order_of_size() {
    let digits = table("x,digit\n1,10\n2,9\n3,10.0\n");
    let options = EncodingOptions { task: Some(Task::Classification), ..EncodingOptions::default() };
    let encoding = Encoding::fit(&digits, &["digit"], &options).unwrap();
    assert_eq!(encoding.classes().unwrap(), ["9", "10"]);
    assert_eq!(encoding.targets(&digits).unwrap(), Targets::Classification(vec![1, 0, 1]));
}

#[test]
fn several_numbers_may_be_regressed_on_together() {
    let flats = table(FLATS);
    let encoding = Encoding::fit(&flats, &["price", "size"], &EncodingOptions::default()).unwrap();
    let Targets::Regression(targets) = encoding.targets(&flats).unwrap() else { panic!("numbers") };
    assert_eq!(column(&targets, 1), [2.0, 70.0]);
    assert!(matches!(fit(FLATS, &["price", "city"]), Err(Error::Target { column, .. }) if column == "city"));
    assert!(matches!(fit(FLATS, &["price", "price"]), Err(Error::Target { problem: "named twice", .. })));
    let options = EncodingOptions { task: Some(Task::Regression), ..EncodingOptions::default() };
    assert!(matches!(Encoding::fit(&flats, &["city"], &options), Err(Error::Target { .. })));
}

#[test]
fn a_missing_value_is_named_by_file_row_and_column() {
    for marker in ["", "NA", "n/a", "NaN", "null", "?", "  "] {
        let text = format!("a,b\n1,x\n{marker},y\n3,x\n");
        let options = EncodingOptions { missing: Missing::Error, ..EncodingOptions::default() };
        let error = Encoding::fit(&table(&text), &[], &options).unwrap_err();
        assert!(
            matches!(&error, Error::MissingValue { file, row: 2, column } if file == "t.csv" && column == "a")
        );
        assert!(error.to_string().contains("t.csv, row 2 (header not counted), column `a`"), "{error}");
        assert_eq!(fit(&text, &[]).unwrap().feature_names()[1], "a=(missing)");
    }
}

#[test]
fn an_empty_file_and_a_header_alone_are_errors() {
    assert!(matches!(read_error(b""), Error::EmptyFile { file } if file == "t.csv"));
    assert!(matches!(read_error(b"\n\n"), Error::EmptyFile { .. }));
    assert!(matches!(read_error(b"a,b\n"), Error::NoRows { .. }));
}

#[test]
fn a_ragged_row_is_named() {
    let error = read_error(b"a,b\n1,2\n3\n");
    assert!(matches!(error, Error::RaggedRow { row: 2, found: 1, expected: 2, .. }), "{error}");
    assert!(matches!(read_error(b"a,b\n1,2,3\n"), Error::RaggedRow { row: 1, found: 3, expected: 2, .. }));
}

#[test]
fn column_names_must_be_there_and_differ() {
    assert!(matches!(read_error(b"a,b,a\n1,2,3\n"), Error::DuplicateColumn { column, .. } if column == "a"));
    assert!(matches!(read_error(b",b\n0,1\n"), Error::UnnamedColumn { position: 1, .. }));
}

#[test]
fn latin_1_and_utf_16_are_read_with_a_word_and_damage_is_named() {
    let plain = table("a,größe\n1,ü\n");
    for bytes in
        [&b"a,gr\xF6\xDFe\n1,\xFC\n"[..], b"\xFF\xFEa\0,\0g\0r\0\xF6\0\xDF\0e\0\n\0\x31\0,\0\xFC\0\n\0"]
    {
        let read = Table::from_csv("t.csv", bytes, &Kinds::new()).unwrap();
        assert_eq!(read.columns(), plain.columns());
        assert!(read.remarks()[0].to_string().starts_with("t.csv is not UTF-8"), "{:?}", read.remarks());
    }
    let error =
        read_error("a,ü\n1,2\n".as_bytes().iter().chain(b"\xFC,3\n").copied().collect::<Vec<_>>().as_slice());
    assert!(matches!(error, Error::NotUtf8 { line: 3, .. }), "{error}");
}

#[test]
fn a_quote_that_is_never_closed_is_named() {
    assert!(matches!(read_error(b"a,b\n1,2\n3,\"x\n5,6\n"), Error::OpenQuote { row: 2, .. }));
    assert!(matches!(read_error(b"a,\"b\n1,2\n"), Error::OpenQuote { row: 0, .. }));
}

#[test]
fn infinite_values_are_named_in_features_and_targets() {
    for bad in ["inf", "-inf", "1e999", "-Infinity"] {
        let text = format!("a,y\n1,2\n2,{bad}\n");
        let error = fit(&text, &["y"]).unwrap_err();
        assert!(matches!(&error, Error::NotFinite { row: 2, column, .. } if column == "y"), "{error}");
        assert!(matches!(fit(&text, &["a"]), Err(Error::NotFinite { row: 2, .. })));
        let encoding = fit("a,y\n1,2\n2,3\n", &["y"]).unwrap();
        assert!(matches!(encoding.targets(&table(&text)), Err(Error::NotFinite { row: 2, .. })));
    }
}

#[test]
fn a_target_with_one_class_is_an_error() {
    let error = fit("a,y\n1,u\n2,u\n", &["y"]).unwrap_err();
    assert!(
        matches!(&error, Error::OneClass { column, class, .. } if column == "y" && class == "u"),
        "{error}"
    );
}

#[test]
fn no_features_and_unknown_names_are_errors() {
    assert!(matches!(fit("y\n1\n2\n", &["y"]), Err(Error::NoFeatures { .. })));
    assert!(matches!(fit(FLATS, &["prize"]), Err(Error::MissingColumn { column, .. }) if column == "prize"));
    let options = EncodingOptions { ignore: vec!["citi".into()], ..EncodingOptions::default() };
    assert!(matches!(Encoding::fit(&table(FLATS), &[], &options), Err(Error::MissingColumn { .. })));
    assert!(matches!(
        fit(FLATS, &["price"]).unwrap().targets(&table("a\n1\n")),
        Err(Error::MissingColumn { .. })
    ));
    assert!(matches!(fit(FLATS, &[]).unwrap().targets(&table(FLATS)), Err(Error::NoTarget)));
}

/// Ten numbers and a text: 10/11 > 0.9. Nine numbers and a text: 9/10 is not.
#[test]
fn one_text_among_numbers_is_taken_for_a_typing_error_and_more_for_text() {
    let text = |n: usize| format!("a\n{}1o\n", "1\n".repeat(n));
    let error = fit(&text(10), &[]).unwrap_err();
    assert!(matches!(&error, Error::NearlyNumeric { row: 11, value, .. } if value == "1o"), "{error}");
    assert_eq!(fit(&text(9), &[]).unwrap().feature_names(), ["a=1", "a=1o"]);
    let kinds = Kinds::from([("a".to_owned(), Kind::Text)]);
    let declared = Table::from_csv("t.csv", text(10).as_bytes(), &kinds).unwrap();
    assert!(Encoding::fit(&declared, &[], &EncodingOptions::default()).is_ok());
}

#[test]
fn reading_by_the_kinds_of_an_encoding_keeps_codes_that_look_like_numbers() {
    let encoding = fit("code,y\n007,1\nA12,2\nB3,3\n", &["y"]).unwrap();
    let new = Table::from_csv("new.csv", b"code\n007\n", &encoding.kinds()).unwrap();
    assert_eq!(column(&encoding.transform(&new).unwrap().features, 0), [1.0, 0.0, 0.0]);
    let encoding = fit("a,y\n1,1\n2,2\n", &["y"]).unwrap();
    let error = Table::from_csv("new.csv", b"a\n1\nx\n", &encoding.kinds()).unwrap_err();
    assert!(
        matches!(&error, Error::WrongType { row: 2, value, expected: "number", .. } if value == "x"),
        "{error}"
    );
    let error = encoding.transform(&table("a\n1\nx\n")).unwrap_err();
    assert!(matches!(error, Error::WrongType { row: 2, expected: "number", .. }), "{error}");
}

#[test]
fn byte_order_mark_quotes_semicolons_tabs_and_line_ends_are_understood() {
    let plain = table("a,b c\n1,\"x, y\"\n2,z\n");
    for text in [
        "\u{feff}a,b c\r\n1,\"x, y\"\r\n2,z\r\n",
        "\"a\";\"b c\"\n1;x, y\n2;z",
        "a\tb c\n1\tx, y\n2\tz\n",
        " a , b c \n 1 ,\"x, y\"\n\n2, z\n",
    ] {
        assert_eq!(table(text), plain, "{text:?}");
    }
}

#[test]
fn selected_rows_keep_their_numbers_for_messages() {
    let selected = table("a,b\n1,x\n2,y\n,x\n").select_rows(&[2, 0]);
    assert_eq!(selected.n_rows(), 2);
    let options = EncodingOptions { missing: Missing::Error, ..EncodingOptions::default() };
    let error = Encoding::fit(&selected, &[], &options).unwrap_err();
    assert!(matches!(error, Error::MissingValue { row: 3, .. }), "{error}");
    let empty = selected.select_rows(&[]);
    assert!(matches!(Encoding::fit(&empty, &[], &EncodingOptions::default()), Err(Error::NoRows { .. })));
}

#[test]
fn a_file_that_is_not_there_or_of_unknown_format_is_named() {
    assert!(
        matches!(Table::read(Path::new("no/such.csv")), Err(Error::Io { path, .. }) if path == Path::new("no/such.csv"))
    );
    assert!(matches!(Table::read(Path::new("no/such.parquet")), Err(Error::Io { .. })));
    assert!(matches!(Table::read(Path::new("table.xyz")), Err(Error::UnknownFormat { .. })));
}

/// The flats with a missing size, a date and a pandas index, in two row groups.
fn write_parquet(folder: &TempDir, compression: Compression) -> PathBuf {
    fn group<W: std::io::Write + Send>(
        mut group: SerializedRowGroupWriter<'_, W>,
        sizes: (&[i64], &[i16]),
        cities: &[&str],
        lifts: &[bool],
        prices: &[f64],
    ) {
        let n = i32::try_from(cities.len()).unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<Int64Type>().write_batch(sizes.0, Some(sizes.1), None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        let cities: Vec<ByteArray> = cities.iter().map(|&city| city.into()).collect();
        next.typed::<ByteArrayType>().write_batch(&cities, None, None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<BoolType>().write_batch(lifts, None, None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<DoubleType>().write_batch(prices, None, None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<Int32Type>().write_batch(&vec![7; n as usize], None, None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<Int64Type>().write_batch(&(0..i64::from(n)).collect::<Vec<_>>(), None, None).unwrap();
        next.close().unwrap();
        let mut next = group.next_column().unwrap().unwrap();
        next.typed::<Int32Type>().write_batch(&vec![-125; n as usize], None, None).unwrap();
        next.close().unwrap();
        group.close().unwrap();
    }
    let schema = parse_message_type(
        "message schema {
            OPTIONAL INT64 size;
            REQUIRED BINARY city (UTF8);
            REQUIRED BOOLEAN lift;
            REQUIRED DOUBLE price;
            REQUIRED INT32 built (DATE);
            REQUIRED INT64 __index_level_0__;
            REQUIRED INT32 debt (DECIMAL(9, 2));
        }",
    );
    let path = folder.path().join("flats.parquet");
    let properties = WriterProperties::builder().set_compression(compression).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(schema.unwrap()), Arc::new(properties)).unwrap();
    let first = writer.next_row_group().unwrap();
    group(first, (&[50], &[1, 0]), &["Bern", "Aarau"], &[true, false], &[1.5, f64::NAN]);
    group(writer.next_row_group().unwrap(), (&[40], &[1]), &["Bern"], &[true], &[1.0]);
    writer.close().unwrap();
    path
}

#[test]
fn parquet_columns_have_their_own_kinds_in_every_compression() {
    let folder = tempfile::tempdir().unwrap();
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(parquet::basic::GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
    ] {
        let table = Table::read(&write_parquet(&folder, compression)).unwrap();
        let names: Vec<_> = table.columns().iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["size", "city", "lift", "price", "built", "debt"]);
        let values = |name: &str| table.column(name).unwrap().values.clone();
        assert_eq!(cells(&values("size"), 3), numbers(&[50.0, f64::NAN, 40.0]));
        assert_eq!(values("city"), Values::Text(["Bern", "Aarau", "Bern"].into_iter().map(Some).collect()));
        assert_eq!(values("lift"), Values::Bool(vec![Some(true), Some(false), Some(true)]));
        assert_eq!(cells(&values("price"), 3), numbers(&[1.5, f64::NAN, 1.0]));
        assert_eq!(cells(&values("debt"), 3), numbers(&[-1.25; 3]));
        assert_eq!(cells(&values("built"), 3), vec![Some("1970-01-08".to_owned()); 3]);
    }
}

#[test]
fn a_missing_cell_of_a_parquet_file_is_named_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let table = Table::read(&write_parquet(&folder, Compression::SNAPPY)).unwrap();
    let strict = |ignore: &[&str]| EncodingOptions {
        missing: Missing::Error,
        ignore: ignore.iter().map(|&name| name.to_owned()).collect(),
        ..EncodingOptions::default()
    };
    let error = Encoding::fit(&table, &["city"], &strict(&["built"])).unwrap_err();
    assert!(matches!(&error, Error::MissingValue { row: 2, column, .. } if column == "size"), "{error}");
    let encoding = Encoding::fit(&table, &["city"], &strict(&["built", "size", "price"])).unwrap();
    assert_eq!(column(&encoding.transform(&table).unwrap().features, 1), [0.0]);
}

#[test]
fn a_broken_parquet_file_is_an_error_wherever_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_parquet(&folder, Compression::SNAPPY);
    let bytes = std::fs::read(&path).unwrap();
    for length in 1..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        assert!(matches!(Table::read(&path), Err(Error::Parquet { .. })), "{length}");
    }
    std::fs::write(&path, []).unwrap();
    assert!(matches!(Table::read(&path), Err(Error::EmptyFile { .. })));
}

#[test]
fn a_parquet_file_with_any_byte_flipped_does_not_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_parquet(&folder, Compression::SNAPPY);
    let bytes = std::fs::read(&path).unwrap();
    for i in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[i] ^= 0x80;
        std::fs::write(&path, &wrong).unwrap();
        // Without checksums in the file, a flipped value may read as another value.
        let read = Table::read(&path);
        assert!(
            read.is_ok() || matches!(read, Err(Error::Parquet { .. } | Error::NoRows { .. })),
            "{i}: {read:?}"
        );
    }
}

#[test]
fn batches_put_together_are_the_whole_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.csv");
    let rows: String = (0..10).map(|i| format!("{i},{},{}\n", ["u", "v"][i % 2], i * i)).collect();
    std::fs::write(&path, format!("a,b,y\n{rows}")).unwrap();
    let whole = Table::read(&path).unwrap();
    let encoding = Encoding::fit(&whole, &["y"], &EncodingOptions::default()).unwrap();
    let features = encoding.transform(&whole).unwrap().features;
    let Targets::Regression(targets) = encoding.targets(&whole).unwrap() else { panic!("numbers") };
    for batch_size in [1, 3, 5, 10, 11] {
        let mut at = 0;
        for batch in RowBatches::open(&path, &encoding, batch_size).unwrap() {
            let batch = batch.unwrap();
            let n = batch.features.ncols();
            assert!(n <= batch_size && (n == batch_size || at + n == 10));
            assert_eq!(batch.features, features.subcols(at, n).to_owned());
            assert_eq!(batch.targets, Some(Targets::Regression(targets.subcols(at, n).to_owned())));
            at += n;
        }
        assert_eq!(at, 10);
    }
    assert!(matches!(RowBatches::open(&path, &encoding, 0), Err(Error::Setting { name: "batch_size", .. })));
}

#[test]
fn parquet_batches_cross_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_parquet(&folder, Compression::SNAPPY);
    let options =
        EncodingOptions { ignore: vec!["built".into(), "debt".into()], ..EncodingOptions::default() };
    let encoding = Encoding::fit(&Table::read(&path).unwrap(), &["city"], &options).unwrap();
    let batches: Vec<_> = RowBatches::open(&path, &encoding, 2).unwrap().map(Result::unwrap).collect();
    let lengths: Vec<_> = batches.iter().map(|batch| batch.features.ncols()).collect();
    assert_eq!(lengths, [2, 1]);
    assert_eq!(column(&batches[0].features, 1), [45.0, 1.0, 0.0, 1.25, 1.0]);
    assert_eq!(batches[1].targets, Some(Targets::Classification(vec![1])));
}

#[test]
fn an_error_in_a_later_batch_names_the_row_of_the_file_and_ends_the_batches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.csv");
    std::fs::write(&path, "a,y\n1,1\n2,2\n3,3\n4,\nx,5\n").unwrap();
    let encoding = fit("a,y\n1,1\n2,2\n", &["y"]).unwrap();
    let mut batches = RowBatches::open(&path, &encoding, 2).unwrap();
    assert!(batches.next().unwrap().is_ok());
    // A row without a target is left out.
    assert_eq!(batches.next().unwrap().unwrap().features.ncols(), 1);
    assert_eq!(batches.left_out().without_target, 1);
    assert!(matches!(batches.next(), Some(Err(Error::WrongType { row: 5, .. }))));
    assert!(batches.next().is_none());
}
