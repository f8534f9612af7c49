//! What a file is: by its first bytes where they tell, else by its name; compressed or not, or standard input.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use super::decode::TextReader;
use super::parquet;
use crate::fetch::has_extension;
use crate::{Error, Result};

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";
/// Names that text files of rows have.
const TEXT: [&str; 3] = ["csv", "tsv", "txt"];
/// Names that JSON lines have.
const JSON: [&str; 3] = ["jsonl", "ndjson", "json"];
/// Names that workbooks have.
const WORKBOOK: [&str; 4] = ["xlsx", "xls", "xlsb", "ods"];
/// Names that files have whose content is packed.
const PACKED: [&str; 3] = ["gz", "zst", "zstd"];

/// A file, opened.
pub(super) enum Content {
    Csv(TextReader),
    Json(TextReader),
    Parquet(parquet::Reader),
    Workbook(Vec<u8>),
}

/// The name of a file in messages.
pub(super) fn name(path: &Path) -> String {
    if path == Path::new(STANDARD_INPUT) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Opens a file of any format.
pub(super) fn open(path: &Path) -> Result<Content> {
    let name = name(path);
    let is_input = path == Path::new(STANDARD_INPUT);
    let input: Box<dyn Read + Send> = if is_input {
        Box::new(std::io::stdin())
    } else {
        let is_special = std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
        if !is_special {
            check_extension(&name)?;
        }
        let file = File::open(path).map_err(Error::io(path))?;
        // Parquet is read here and there, not forward.
        if has_extension(&name, "parquet") && !is_special {
            return parquet::Reader::open_file(&name, file).map(Content::Parquet);
        }
        Box::new(file)
    };
    sniff(&name, path, input)
}

/// Looks at the first bytes, unpacking as often as it takes.
fn sniff(name: &str, path: &Path, mut input: Box<dyn Read + Send>) -> Result<Content> {
    let mut start = Vec::new();
    { &mut input }.take(64).read_to_end(&mut start).map_err(Error::io(path))?;
    let magic: [u8; 4] = std::array::from_fn(|i| start.get(i).copied().unwrap_or(0));
    let whole: Box<dyn Read + Send> = Box::new(Cursor::new(start.clone()).chain(input));
    let all = |mut input: Box<dyn Read + Send>| {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).map_err(Error::io(path)).map(|_| bytes)
    };
    match &magic {
        [0x1F, 0x8B, ..] => sniff(name, path, Box::new(MultiGzDecoder::new(whole))),
        [0x28, 0xB5, 0x2F, 0xFD] => {
            let decoder = zstd::stream::read::Decoder::new(whole).map_err(Error::io(path))?;
            sniff(name, path, Box::new(decoder))
        }
        b"PAR1" => parquet::Reader::open_bytes(name, Bytes::from(all(whole)?)).map(Content::Parquet),
        b"PK\x03\x04" | [0xD0, 0xCF, 0x11, 0xE0] => all(whole).map(Content::Workbook),
        _ if WORKBOOK.iter().any(|extension| has_extension(inner_name(name), extension)) => {
            all(whole).map(Content::Workbook)
        }
        _ => {
            let first = start.iter().find(|byte| !byte.is_ascii_whitespace() && **byte < 0x80);
            let reader = TextReader::new(name, whole);
            let is_json = JSON.iter().any(|extension| has_extension(inner_name(name), extension));
            if is_json || first == Some(&b'{') { Ok(Content::Json(reader)) } else { Ok(Content::Csv(reader)) }
        }
    }
}

/// The name without what says that the content is packed.
fn inner_name(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((inner, extension)) if PACKED.iter().any(|packed| extension.eq_ignore_ascii_case(packed)) => {
            inner
        }
        _ => name,
    }
}

fn check_extension(name: &str) -> Result<()> {
    let known = TEXT.iter().chain(&JSON).chain(&WORKBOOK).chain(&["parquet"]);
    if { known }.any(|extension| has_extension(inner_name(name), extension)) {
        Ok(())
    } else {
        Err(Error::UnknownFormat { file: name.to_owned() })
    }
}
