//! Parquet files that are not what they say.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

const TEXTS: [Option<&str>; 6] = [Some("tea"), None, Some("teapot"), Some("tea"), None, Some("")];
/// Two thousand million, as Thrift writes it.
const MANY: [u8; 5] = [0xFF, 0xFF, 0xFF, 0xFF, 0x07];

/// A file with one column of texts, not compressed.
fn file(
    texts: &[Option<&str>],
    properties: impl Fn() -> parquet::file::properties::WriterPropertiesBuilder,
) -> Vec<u8> {
    let is_optional = texts.iter().any(Option::is_none);
    let repetition = if is_optional { "optional" } else { "required" };
    let schema = parse_message_type(&format!("message m {{ {repetition} binary what (UTF8); }}")).unwrap();
    let properties = properties().set_compression(Compression::UNCOMPRESSED).build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let levels: Vec<i16> = texts.iter().map(|text| i16::from(text.is_some())).collect();
    let values: Vec<ByteArray> = texts.iter().flatten().map(|text| ByteArray::from(*text)).collect();
    column.typed::<ByteArrayType>().write_batch(&values, is_optional.then_some(&levels), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

fn encoded(
    encoding: Encoding,
    version: WriterVersion,
) -> impl Fn() -> parquet::file::properties::WriterPropertiesBuilder {
    move || {
        let builder = WriterProperties::builder().set_writer_version(version);
        match encoding {
            Encoding::RLE_DICTIONARY => builder,
            _ => builder.set_dictionary_enabled(false).set_encoding(encoding),
        }
    }
}

fn read(bytes: Vec<u8>) -> Result<Vec<Option<String>>> {
    let mut reader = Reader::open_bytes("t.parquet", Bytes::from(bytes))?;
    let table = reader.chunk(&Kinds::new(), usize::MAX, &mut Unread::Fail)?.expect("rows");
    Ok((0..table.n_rows())
        .map(|i| table.columns[0].values.text(i).map(std::borrow::Cow::into_owned))
        .collect())
}

fn refused(bytes: Vec<u8>, says: &str) {
    let error = read(bytes).expect_err(says).to_string();
    assert!(error.starts_with("t.parquet: ") && error.contains(says), "{error}");
}

/// The file with `old` replaced wherever it is, which is somewhere.
fn replaced(file: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let is_here = file[at..].starts_with(old);
        bytes.extend_from_slice(if is_here { new } else { &file[at..=at] });
        at += if is_here { old.len() } else { 1 };
    }
    assert_ne!(bytes, file, "{old:X?} is nowhere");
    bytes
}

#[test]
fn texts_are_read_in_every_encoding() {
    let present: Vec<_> = TEXTS.iter().flatten().copied().map(Some).collect();
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for encoding in [
            Encoding::PLAIN,
            Encoding::RLE_DICTIONARY,
            Encoding::DELTA_LENGTH_BYTE_ARRAY,
            Encoding::DELTA_BYTE_ARRAY,
        ] {
            for texts in [TEXTS.as_slice(), &present] {
                let long: Vec<_> = texts.iter().copied().cycle().take(700).collect();
                let found = read(file(&long, encoded(encoding, version))).unwrap();
                assert!(
                    long.iter().copied().eq(found.iter().map(Option::as_deref)),
                    "{encoding} {version:?}"
                );
            }
        }
    }
}

#[test]
fn a_page_header_that_promises_a_long_list_does_not_keep_us_busy() {
    let bytes = file(&TEXTS, encoded(Encoding::PLAIN, WriterVersion::PARQUET_1_0));
    for element in [7, 13, 8, 1] {
        let mut wrong = bytes[..4].to_vec();
        wrong.extend([0x15, 0, 0x89, 0xF0 | element]);
        wrong.extend(MANY);
        wrong.extend(&bytes[4..]);
        refused(wrong, "2147483647 elements in fewer bytes");
    }
}

#[test]
fn metadata_that_promise_a_long_list_do_not_keep_us_busy() {
    let bytes = file(&TEXTS, encoded(Encoding::PLAIN, WriterVersion::PARQUET_1_0));
    let end = bytes.len() - 8;
    // Before the last byte, which ends the struct, a field that nobody knows, again and again.
    let list = [&[0x89, 0xF1], MANY.as_slice()].concat().repeat(50);
    let length =
        u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) + u32::try_from(list.len()).unwrap();
    let wrong = [&bytes[..end - 1], &list, &bytes[end - 1..end], &length.to_le_bytes(), b"PAR1"].concat();
    refused(wrong, "damaged metadata: a list of 2147483647");
}

#[test]
fn fields_of_another_type_are_refused() {
    // The library would read their bytes as a number all the same, and what follows as anything.
    let bytes = file(&TEXTS, encoded(Encoding::PLAIN, WriterVersion::PARQUET_1_0));
    refused(replaced(&bytes, &[0x16, 0x0C], &[0x18, 0x0C]), "is not of its type");
}

#[test]
fn places_outside_the_file_are_refused() {
    let bytes = file(&TEXTS, encoded(Encoding::PLAIN, WriterVersion::PARQUET_1_0));
    // The first page is at 4; now it is at −4.
    refused(replaced(&bytes, &[0x26, 0x08], &[0x26, 0x07]), "column what in row group 0");
    let bytes = file(&TEXTS, encoded(Encoding::RLE_DICTIONARY, WriterVersion::PARQUET_1_0));
    refused(replaced(&bytes, &[0x26, 0x08], &[0x26, 0x07]), "at -4 in a file");
}

#[test]
fn counts_that_cannot_be_are_refused() {
    let bytes = file(&TEXTS, encoded(Encoding::PLAIN, WriterVersion::PARQUET_1_0));
    // Six rows, said to be 63.
    refused(replaced(&bytes, &[0x16, 0x0C], &[0x16, 0x7E]), "has 6 of 63 rows");
    // A dictionary of three texts, said to be two thousand million.
    let bytes = file(&TEXTS, encoded(Encoding::RLE_DICTIONARY, WriterVersion::PARQUET_1_0));
    let many = [&[0x4C, 0x15, 0xFE], &MANY[1..4], &[0x0F]].concat();
    refused(replaced(&bytes, &[0x4C, 0x15, 0x06], &many), "2147483647 values in");
    // Lengths of four texts, said to be 127; of prefixes and of what follows them.
    for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        let bytes = file(&TEXTS, encoded(encoding, WriterVersion::PARQUET_1_0));
        refused(replaced(&bytes, &[0x80, 1, 4, 4], &[0x80, 1, 4, 127]), "lengths of 127 texts for 6 values");
    }
}

#[test]
fn a_file_without_a_column_that_can_be_read_is_refused() {
    let schema = parse_message_type("message m { required group a { required double x; } }").unwrap();
    let mut bytes = Vec::new();
    let writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::default()).unwrap();
    writer.close().unwrap();
    assert!(matches!(read(bytes), Err(Error::UnsupportedColumn { column, .. }) if column == "a"));
}

#[test]
fn a_panic_of_the_library_is_an_error() {
    let schema = parse_message_type("message m { required int32 a; }").unwrap();
    let properties = encoded(Encoding::DELTA_BINARY_PACKED, WriterVersion::PARQUET_1_0)()
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .set_created_by(String::new());
    let mut bytes = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties.build())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<parquet::data_type::Int32Type>().write_batch(&[3, 1, 4, 1, 5, 9], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    // The numbers begin with 128, the size of a block, in two bytes; of ten the library says that they are too many.
    let start = bytes.windows(4).position(|four| four == [0x80, 1, 4, 6]).unwrap();
    bytes[start..start + 11].fill(0x80);
    refused(bytes, "damaged file");
}
