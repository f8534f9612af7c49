//! The same table in every format that files have, whole and in batches.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};

use bayespc_data::{
    Column, Encoding, EncodingOptions, Error, Keep, Kind, ParquetWriter, ReadOptions, RowBatches, RowSource,
    Table, Values, Wish, Wishes,
};
use flate2::write::GzEncoder;

const PLAIN: &str = "\
id,size,city,lift,built,price
007,50,Bern,true,2001-05-17,1.5
008,,Aarau,false,1999-12-31,2
009,40,Bern,,2020-02-29,1
010,70,,true,2011-01-01,3
";

const JSON: &str = r#"{"id": "007", "size": 50, "city": "Bern", "lift": true, "built": "2001-05-17", "price": 1.5}
{"id": "008", "size": null, "city": "Aarau", "lift": false, "built": "1999-12-31", "price": 2}

{"id": "009", "size": 40.0, "city": "Bern", "built": "2020-02-29", "price": 1}
{"id": "010", "size": 70, "lift": true, "built": "2011-01-01", "price": 3}
"#;

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip(parts: &[(&str, String)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in parts {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A workbook of two sheets, the table in the second, dates as numbers with a format of dates.
fn xlsx() -> Vec<u8> {
    let mut rows = String::new();
    for (i, line) in PLAIN.lines().enumerate() {
        rows += &format!("<row r=\"{}\">", i + 3);
        for (j, cell) in line.split(',').enumerate() {
            let place = format!("{}{}", char::from(b'B' + j as u8), i + 3);
            let excel = |date: &str| match date {
                "2001-05-17" => Some(37028),
                "1999-12-31" => Some(36525),
                "2020-02-29" => Some(43890),
                "2011-01-01" => Some(40544),
                _ => None,
            };
            rows += &match (cell, excel(cell)) {
                ("", _) => String::new(),
                (_, Some(day)) => format!("<c r=\"{place}\" s=\"1\"><v>{day}</v></c>"),
                ("true" | "false", _) => {
                    format!("<c r=\"{place}\" t=\"b\"><v>{}</v></c>", u8::from(cell == "true"))
                }
                _ if cell.parse::<f64>().is_ok() && j > 0 => format!("<c r=\"{place}\"><v>{cell}</v></c>"),
                _ => format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{cell}</t></is></c>"),
            };
        }
        rows += "</row>";
    }
    workbook(&rows, "<sst uniqueCount=\"0\"/>")
}

/// A workbook with these rows in its second sheet, and these texts.
fn workbook(rows: &str, texts: &str) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006";
    let sheet = |rows: &str| format!("<worksheet xmlns=\"{main}\"><sheetData>{rows}</sheetData></worksheet>");
    zip(&[
        ("[Content_Types].xml", format!("<Types xmlns=\"{package}/content-types\"/>")),
        (
            "_rels/.rels",
            format!(
                "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"r1\" Type=\"{relation}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{main}\" xmlns:r=\"{relation}\"><sheets><sheet name=\"Notes\" sheetId=\"1\" r:id=\"r1\"/><sheet name=\"Flats\" sheetId=\"2\" r:id=\"r2\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"r1\" Type=\"{relation}/worksheet\" Target=\"worksheets/sheet1.xml\"/><Relationship Id=\"r2\" Type=\"{relation}/worksheet\" Target=\"worksheets/sheet2.xml\"/><Relationship Id=\"r3\" Type=\"{relation}/styles\" Target=\"styles.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/styles.xml",
            format!(
                "<styleSheet xmlns=\"{main}\"><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>"
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            sheet("<row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>a</t></is></c></row>"),
        ),
        ("xl/worksheets/sheet2.xml", sheet(rows)),
        ("xl/sharedStrings.xml", texts.to_owned()),
    ])
}

fn ods() -> Vec<u8> {
    let mut rows = String::new();
    for (i, line) in PLAIN.lines().enumerate() {
        rows += "<table:table-row>";
        for (j, cell) in line.split(',').enumerate() {
            rows += &match cell {
                "" => "<table:table-cell/>".to_owned(),
                "true" | "false" => format!(
                    "<table:table-cell office:value-type=\"boolean\" office:boolean-value=\"{cell}\"><text:p>{cell}</text:p></table:table-cell>"
                ),
                _ if j == 4 && i > 0 => format!(
                    "<table:table-cell office:value-type=\"date\" office:date-value=\"{cell}\"><text:p>{cell}</text:p></table:table-cell>"
                ),
                _ if j > 0 && cell.parse::<f64>().is_ok() => format!(
                    "<table:table-cell office:value-type=\"float\" office:value=\"{cell}\"><text:p>{cell}</text:p></table:table-cell>"
                ),
                _ => format!(
                    "<table:table-cell office:value-type=\"string\"><text:p>{cell}</text:p></table:table-cell>"
                ),
            };
        }
        rows += "</table:table-row>";
    }
    let names = "xmlns:office=\"urn:oasis:names:tc:opendocument:xmlns:office:1.0\" xmlns:table=\"urn:oasis:names:tc:opendocument:xmlns:table:1.0\" xmlns:text=\"urn:oasis:names:tc:opendocument:xmlns:text:1.0\"";
    zip(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet".to_owned()),
        (
            "META-INF/manifest.xml",
            "<manifest:manifest xmlns:manifest=\"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0\"/>"
                .to_owned(),
        ),
        (
            "content.xml",
            format!(
                "<office:document-content {names}><office:body><office:spreadsheet><table:table table:name=\"Flats\">{rows}</table:table></office:spreadsheet></office:body></office:document-content>"
            ),
        ),
    ])
}

/// Every cell as text.
fn cells(table: &Table) -> Vec<(String, Vec<String>)> {
    let column = |column: &Column| {
        let cells = (0..table.n_rows()).map(|i| column.text(i).unwrap_or_default().into_owned());
        (format!("{}: {}", column.name, column.kind), cells.collect())
    };
    table.columns().iter().map(column).collect()
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Files of the same table, and how to read them.
fn files(folder: &Path) -> Vec<(PathBuf, ReadOptions)> {
    let plain = ReadOptions::default();
    let sheet = ReadOptions { sheet: Some("Flats".to_owned()), ..ReadOptions::default() };
    let zst = zstd::encode_all(PLAIN.as_bytes(), 0).unwrap();
    vec![
        (write(folder, "t.csv", PLAIN.as_bytes()), plain.clone()),
        (write(folder, "t.csv.gz", &gz(PLAIN.as_bytes())), plain.clone()),
        (write(folder, "t.csv.zst", &zst), plain.clone()),
        (write(folder, "T.TXT", PLAIN.replace(',', "|").as_bytes()), plain.clone()),
        (write(folder, "t.jsonl", JSON.as_bytes()), plain.clone()),
        (write(folder, "t.ndjson.gz", &gz(JSON.as_bytes())), plain.clone()),
        (write(folder, "t.xlsx", &xlsx()), sheet),
        (write(folder, "t.ods", &ods()), plain),
    ]
}

#[test]
fn every_format_gives_the_same_table() {
    let folder = tempfile::tempdir().unwrap();
    let plain = cells(&Table::from_csv("t.csv", PLAIN.as_bytes(), &[].into()).unwrap());
    assert_eq!(plain[4].0, "built: time YYYY-MM-DD");
    for (path, options) in files(folder.path()) {
        let table = Table::read_with(&path, &options).unwrap();
        assert_eq!(cells(&table), plain, "{}", path.display());
        let head = Table::read_head(&path, &options, 2).unwrap();
        assert_eq!(head.n_rows(), 2, "{}", path.display());
        // A wish holds in every format: an identifier keeps its zeros.
        let wishes = Wishes::from([("id".to_owned(), Wish::As(Kind::Text))]);
        let table = Table::read_with(&path, &ReadOptions { wishes, ..options }).unwrap();
        assert_eq!(table.column("id").unwrap().text(0).as_deref(), Some("007"), "{}", path.display());
    }
}

#[test]
fn every_format_is_read_in_batches_that_keep_columns() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Table::from_csv("t.csv", PLAIN.as_bytes(), &[].into()).unwrap();
    let options = EncodingOptions { ignore: vec!["id".to_owned()], ..EncodingOptions::default() };
    let encoding = Encoding::fit(&whole, &["price"], &options).unwrap();
    let features = encoding.transform(&whole).unwrap().features;
    for (path, options) in files(folder.path()) {
        for size in [1, 3, 100] {
            let sheet = options.sheet.as_deref();
            let batches = RowBatches::open_sheet(&path, sheet, &encoding, size).unwrap();
            let keep = Keep::Columns(vec!["id".to_owned(), "size".to_owned()]);
            let mut ids = Vec::new();
            for batch in batches.keeping(&keep) {
                let batch = batch.unwrap();
                let n = batch.features.ncols();
                assert_eq!(batch.features, features.subcols(ids.len(), n).to_owned(), "{}", path.display());
                ids.extend((0..n).map(|i| batch.kept[0].text(i).unwrap().into_owned()));
                assert!(matches!(batch.kept[1].values, Values::Number(_)));
            }
            assert_eq!(ids, ["007", "008", "009", "010"], "{}", path.display());
        }
        let batches = RowBatches::open_sheet(&path, options.sheet.as_deref(), &encoding, 3).unwrap();
        let batch = batches.keeping(&Keep::All).next().unwrap().unwrap();
        let names: Vec<_> = batch.kept.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["id", "size", "city", "lift", "built", "price"], "{}", path.display());
    }
}

#[test]
fn what_was_looked_at_first_is_read_nonetheless() {
    let folder = tempfile::tempdir().unwrap();
    for (path, options) in files(folder.path()) {
        let mut source = RowSource::open(&path, &options).unwrap();
        let head = source.head(&options, 3).unwrap();
        let encoding = Encoding::fit(&head, &["price"], &EncodingOptions::default()).unwrap();
        let rows: usize =
            source.batches(&encoding, 2).unwrap().map(|batch| batch.unwrap().features.ncols()).sum();
        assert_eq!((head.n_rows(), rows), (3, 4), "{}", path.display());
    }
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, bytes: &[u8]| Table::read(&write(folder.path(), name, bytes)).unwrap_err();
    assert!(matches!(read("t.jsonl", b"{\"a\": 1}\n[2]\n"), Error::Json { row: 2, .. }));
    assert!(matches!(read("t.jsonl", b"{\"a\": 1}\n{\"a\": 2\n"), Error::Json { row: 2, .. }));
    assert!(matches!(read("empty.jsonl", b"\n"), Error::EmptyFile { .. }));
    assert!(matches!(read("t.xlsx", b"nothing"), Error::Format { .. }));
    assert!(matches!(read("t.csv.gz", &gz(PLAIN.as_bytes())[..40]), Error::Io { .. }));
    let path = write(folder.path(), "t.xlsx", &xlsx());
    let options = ReadOptions { sheet: Some("Flat".to_owned()), ..ReadOptions::default() };
    let error = Table::read_with(&path, &options).unwrap_err();
    assert!(error.to_string().contains("no sheet `Flat` (its sheets: Notes, Flats)"), "{error}");
    assert!(matches!(Table::read(&path), Err(Error::NoRows { .. })));
    let nested = write(folder.path(), "nested.jsonl", b"{\"a\": 1, \"b\": {\"c\": 2}}\n");
    let table = Table::read(&nested).unwrap();
    assert!(matches!(table.column("b").unwrap().values, Values::Unsupported(_)));
}

/// Two kilobytes that would have the reading library make room for a rectangle of 17 thousand million cells, or for as many texts
/// as the file says.
#[test]
fn workbooks_that_ask_for_more_room_than_they_fill_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = ReadOptions { sheet: Some("Flats".to_owned()), ..ReadOptions::default() };
    let read = |bytes: &[u8]| Table::read_with(&write(folder.path(), "t.xlsx", bytes), &options);
    let row = |r: u32, cells: &[&str]| {
        let cell = |(i, at): (usize, &&str)| format!("<c r=\"{at}{r}\"><v>{r}{i}</v></c>");
        let cells: String = cells.iter().enumerate().map(cell).collect();
        format!("<row r=\"{r}\">{cells}</row>")
    };
    let table = row(1, &["A", "B"]) + &row(2, &["A", "B"]) + &row(3, &["A", "B"]);
    let none = "<sst uniqueCount=\"0\"/>";
    let error = read(&workbook(&(table.clone() + &row(1_048_576, &["XFD"])), none)).unwrap_err().to_string();
    assert!(error.contains("7 cells reach to row 1048576 and column 16384"), "{error}");
    // A stray cell far below or far to the right leaves a table that can be read.
    let far_below = read(&workbook(&(table.clone() + &row(90_000, &["A"])), none)).unwrap();
    assert_eq!((far_below.columns().len(), far_below.n_rows()), (2, 89_999));
    assert!(read(&workbook(&table, "<sst count=\"3\" uniqueCount=\"3\"><si/><si/><si/></sst>")).is_ok());
    let far = " ".repeat(1000);
    for count in
        ["uniqueCount=\"9999999999\"".to_owned(), format!("uniqueCount ={far}'99999999999999999999999'")]
    {
        let error = read(&workbook(&table, &format!("<sst {count}></sst>"))).unwrap_err().to_string();
        assert!(error.contains("it says to have 99999999"), "{error}");
    }
    // Where a part that is read at a time ends in the middle; and one that would be looked at again and again.
    let count = |filler: usize, gap: usize| {
        format!("<sst a=\"{}\" uniqueCount ={}\"9999999999\"></sst>", "x".repeat(filler), " ".repeat(gap))
    };
    for filler in 65_500..65_560 {
        let error = read(&workbook(&table, &count(filler, 3))).unwrap_err().to_string();
        assert!(error.contains("it says to have 9999999999 texts"), "{filler}: {error}");
    }
    let error = read(&workbook(&table, &count(0, 1_000_000))).unwrap_err().to_string();
    assert!(error.contains("an unknown number of texts"), "{error}");
}

#[test]
fn a_delimiter_behind_every_row_makes_no_column() {
    let table = Table::from_csv("t.csv", b"a,b,\n1,2,\n3,4,\n", &[].into()).unwrap();
    assert_eq!(table.header(), ["a", "b"]);
    assert_eq!(table.columns().len(), 2);
}

#[test]
fn a_long_file_reads_the_same_in_batches_as_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "a,b,c\n".to_owned();
    for i in 0..60_000 {
        let word = if i % 7 == 0 { "\"x\ny\"\"\"" } else { "Zürich" };
        text += &format!("{i},{word},{}.25\n", i % 13);
    }
    let path = write(folder.path(), "long.csv", text.as_bytes());
    let whole = Table::read(&path).unwrap();
    let encoding = Encoding::fit(&whole, &["c"], &EncodingOptions::default()).unwrap();
    let features = encoding.transform(&whole).unwrap().features;
    assert_eq!(whole.n_rows(), 60_000);
    let mut at = 0;
    for batch in RowBatches::open(&path, &encoding, 7_000).unwrap() {
        let batch = batch.unwrap();
        assert_eq!(batch.features, features.subcols(at, batch.features.ncols()).to_owned());
        at += batch.features.ncols();
    }
    assert_eq!(at, 60_000);
}

#[test]
fn texts_in_parquet_are_judged_like_those_of_other_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.parquet");
    let texts = |name: &str, cells: [&str; 3]| Column::texts(name, cells.into_iter().map(Some).collect());
    let columns = vec![
        texts("when", ["2024-01-01", "2024-02-01", "2024-03-01"]),
        texts("price", ["€5", "€1,000.50", "€7"]),
        texts("city", ["Bern", "Aarau", "Bern"]),
        texts("code", ["007", "008", "009"]),
    ];
    let mut writer = ParquetWriter::new(&path, std::fs::File::create(&path).unwrap(), &columns).unwrap();
    writer.write(columns).unwrap();
    writer.finish().unwrap();
    let wishes = Wishes::from([("code".to_owned(), Wish::As(Kind::Text))]);
    let table = Table::read_with(&path, &ReadOptions { wishes, ..ReadOptions::default() }).unwrap();
    let kinds: Vec<_> = table.columns().iter().map(|column| column.kind.to_string()).collect();
    assert_eq!(kinds, ["time YYYY-MM-DD", "number 1,234.5 €", "text", "text"]);
    assert_eq!(table.column("price").unwrap().number(1), Ok(Some(1000.5)));
    // And so are further rows, by the kinds of the model.
    let encoding = Encoding::fit(&table, &["price"], &EncodingOptions::default()).unwrap();
    let batch = RowBatches::open(&path, &encoding, 2).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.features.ncols(), 2);
}

/// One row of every type that numbers and times have in Parquet.
#[test]
fn parquet_types_are_read_for_what_they_mean() {
    use parquet::data_type::{
        ByteArray, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
        Int96, Int96Type,
    };
    let schema = "message schema {
        REQUIRED INT64 millis (TIMESTAMP(MILLIS, true));
        REQUIRED INT64 micros (TIMESTAMP(MICROS, false));
        REQUIRED INT64 nanos (TIMESTAMP(NANOS, false));
        REQUIRED INT96 spark;
        REQUIRED INT32 clock (TIME(MILLIS, false));
        REQUIRED INT32 day (DATE);
        REQUIRED INT64 unsigned (INTEGER(64, false));
        REQUIRED INT32 small (INTEGER(32, false));
        REQUIRED FIXED_LEN_BYTE_ARRAY (5) decimal (DECIMAL(10, 2));
        REQUIRED INT64 money (DECIMAL(18, 4));
        REQUIRED FIXED_LEN_BYTE_ARRAY (2) half (FLOAT16);
        REQUIRED FLOAT single;
        REQUIRED DOUBLE double;
        REQUIRED FIXED_LEN_BYTE_ARRAY (16) uuid (UUID);
    }";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("types.parquet");
    let schema = std::sync::Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let file = std::fs::File::create(&path).unwrap();
    let mut writer =
        parquet::file::writer::SerializedFileWriter::new(file, schema, std::sync::Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    macro_rules! put {
        ($type:ty, $value:expr) => {{
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<$type>().write_batch(&[$value], None, None).unwrap();
            column.close().unwrap();
        }};
    }
    let fixed = |bytes: &[u8]| FixedLenByteArray::from(ByteArray::from(bytes.to_vec()));
    // 2024-02-29 12:00 UTC
    let seconds = 1_709_208_000_i64;
    put!(Int64Type, seconds * 1000);
    put!(Int64Type, seconds * 1_000_000);
    put!(Int64Type, seconds * 1_000_000_000 + 999);
    let mut spark = Int96::new();
    let nanos = 43_200_u64 * 1_000_000_000;
    spark.set_data(nanos as u32, (nanos >> 32) as u32, 2_440_588 + 19_782);
    put!(Int96Type, spark);
    put!(Int32Type, 8 * 3_600_000);
    put!(Int32Type, 19_782);
    put!(Int64Type, -1);
    put!(Int32Type, -1);
    put!(FixedLenByteArrayType, fixed(&(-12_345_i64).to_be_bytes()[3..]));
    put!(Int64Type, 12_345);
    put!(FixedLenByteArrayType, fixed(&0xC100_u16.to_le_bytes()));
    put!(FloatType, 0.5);
    put!(DoubleType, -2.5);
    put!(FixedLenByteArrayType, fixed(&[7; 16]));
    group.close().unwrap();
    writer.close().unwrap();
    let table = Table::read(&path).unwrap();
    let noon = "2024-02-29T12:00:00";
    let expected = [
        noon,
        noon,
        noon,
        noon,
        "1970-01-01T08:00:00",
        "2024-02-29",
        "18446744073709552000",
        "4294967295",
        "-123.45",
        "1.2345",
        "-2.5",
        "0.5",
        "-2.5",
    ];
    for (column, expected) in table.columns().iter().zip(expected) {
        assert_eq!(column.text(0).as_deref(), Some(expected), "{}", column.name);
    }
    assert!(matches!(table.column("uuid").unwrap().values, Values::Unsupported(_)));
}
