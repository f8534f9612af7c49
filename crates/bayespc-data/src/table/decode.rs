//! Text from bytes: UTF-8, UTF-16 by its mark or its zeros, and Windows-1252, which contains Latin-1.
//!
//! Bytes that are not UTF-8 after nothing but ASCII are taken for Windows-1252. After a letter that UTF-8 writes in
//! several bytes they are damage, and an error.

use std::io::Read;
use std::path::Path;

use encoding_rs::{Decoder, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::Remark;
use crate::{Error, Result};

/// Bytes read at a time.
const BLOCK: usize = 1 << 20;

/// A file as text, some of it at a time.
pub(crate) struct TextReader {
    file: String,
    input: Box<dyn Read + Send>,
    state: State,
    /// Bytes of a letter whose others are still to come.
    carry: Vec<u8>,
    /// Line breaks so far, for messages.
    n_lines: usize,
    done: bool,
}

enum State {
    Start,
    Utf8 { only_ascii: bool },
    Other(Decoder),
}

impl TextReader {
    /// Reads nothing yet.
    pub fn new(file: &str, input: Box<dyn Read + Send>) -> Self {
        let (file, carry) = (file.to_owned(), Vec::new());
        Self { file, input, state: State::Start, carry, n_lines: 0, done: false }
    }

    /// All that is left, at once.
    pub fn whole(mut self) -> Result<(String, Option<Remark>)> {
        let mut bytes = Vec::new();
        self.input.read_to_end(&mut bytes).map_err(Error::io(Path::new(&self.file)))?;
        Self::decode_all(&self.file, bytes)
    }

    /// Bytes as text, and what they were taken for if not for UTF-8.
    pub fn decode_all(file: &str, bytes: Vec<u8>) -> Result<(String, Option<Remark>)> {
        // The usual case needs no copy.
        let bytes = match String::from_utf8(bytes) {
            Ok(text) if !text.starts_with('\u{feff}') && utf_16(text.as_bytes()).is_none() => {
                return Ok((text, None));
            }
            Ok(text) => text.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        let mut reader = Self::new(file, Box::new(std::io::Cursor::new(bytes)));
        let mut text = String::new();
        while reader.more(&mut text)? {}
        Ok((text, reader.remark()))
    }

    /// What the file was taken for, if not for UTF-8.
    pub fn remark(&self) -> Option<Remark> {
        let State::Other(decoder) = &self.state else { return None };
        let encoding = match decoder.encoding().name() {
            "UTF-16LE" | "UTF-16BE" => "UTF-16",
            _ => "Windows-1252 (Latin-1)",
        };
        Some(Remark::Encoding { file: self.file.clone(), encoding })
    }

    /// Whether the end has been reached.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Adds the next of the file to `text`; `false` at its end.
    pub fn more(&mut self, text: &mut String) -> Result<bool> {
        let mut bytes = std::mem::take(&mut self.carry);
        let wanted = BLOCK - bytes.len();
        let input = self.input.by_ref().take(wanted as u64);
        let n = { input }.read_to_end(&mut bytes).map_err(Error::io(Path::new(&self.file)))?;
        self.done = n < wanted;
        let mut start = 0;
        if matches!(self.state, State::Start) {
            (self.state, start) = match &bytes[..] {
                [0xEF, 0xBB, 0xBF, ..] => (State::Utf8 { only_ascii: false }, 3),
                [0xFF, 0xFE, ..] => (State::Other(UTF_16LE.new_decoder_without_bom_handling()), 2),
                [0xFE, 0xFF, ..] => (State::Other(UTF_16BE.new_decoder_without_bom_handling()), 2),
                bytes => match utf_16(bytes) {
                    Some(encoding) => (State::Other(encoding.new_decoder_without_bom_handling()), 0),
                    None => (State::Utf8 { only_ascii: true }, 0),
                },
            };
        }
        let at = text.len();
        self.decode(&bytes[start..], text)?;
        self.n_lines += memchr::memchr_iter(b'\n', &text.as_bytes()[at..]).count();
        Ok(!self.done)
    }

    fn decode(&mut self, bytes: &[u8], text: &mut String) -> Result<()> {
        let mut rest = bytes;
        if let State::Utf8 { only_ascii } = &mut self.state {
            let valid = match str::from_utf8(bytes) {
                Ok(valid) => valid,
                Err(error) => {
                    let (valid, wrong) = bytes.split_at(error.valid_up_to());
                    rest = wrong;
                    str::from_utf8(valid).unwrap_or_default()
                }
            };
            text.push_str(valid);
            *only_ascii &= valid.is_ascii();
            if valid.len() == bytes.len() {
                return Ok(());
            }
            if rest.len() < 4 && !self.done && str::from_utf8(rest).is_err_and(|e| e.error_len().is_none()) {
                rest.clone_into(&mut self.carry);
                return Ok(());
            }
            if !*only_ascii {
                let line = self.n_lines + 1 + valid.bytes().filter(|byte| *byte == b'\n').count();
                return Err(Error::NotUtf8 { file: self.file.clone(), line });
            }
            self.state = State::Other(WINDOWS_1252.new_decoder_without_bom_handling());
        }
        if let State::Other(decoder) = &mut self.state {
            text.reserve(decoder.max_utf8_buffer_length(rest.len()).unwrap_or(4 * rest.len()));
            // There is room for everything, so that all of it is decoded.
            let _ = decoder.decode_to_string(rest, text, self.done);
        }
        Ok(())
    }
}

/// UTF-16 without a mark: every other byte of Western text is zero.
fn utf_16(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let start = &bytes[..bytes.len().min(256)];
    let zeros = |odd: usize| start.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    match start.len() / 2 {
        0 | 1 => None,
        n if even == 0 && 10 * odd > 7 * n => Some(UTF_16LE),
        n if odd == 0 && 10 * even > 7 * n => Some(UTF_16BE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> (String, Option<&'static str>) {
        let (text, remark) = TextReader::decode_all("t.csv", bytes.to_vec()).unwrap();
        let encoding = remark.map(|remark| match remark {
            Remark::Encoding { encoding, .. } => encoding,
            other => panic!("{other}"),
        });
        (text, encoding)
    }

    #[test]
    fn text_is_the_same_in_every_encoding() {
        let text = "größe,città\n1,€\n";
        let utf_16: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = utf_16.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = utf_16.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        let (windows, ..) = WINDOWS_1252.encode(text);
        for (bytes, encoding) in [
            (text.as_bytes().to_vec(), None),
            ([b"\xEF\xBB\xBF", text.as_bytes()].concat(), None),
            ([b"\xFF\xFE", &little[..]].concat(), Some("UTF-16")),
            ([b"\xFE\xFF", &big[..]].concat(), Some("UTF-16")),
            (little, Some("UTF-16")),
            (big, Some("UTF-16")),
            (windows.into_owned(), Some("Windows-1252 (Latin-1)")),
        ] {
            assert_eq!(decoded(&bytes), (text.to_owned(), encoding));
        }
    }

    #[test]
    fn a_letter_may_be_cut_by_a_block_and_damage_is_named() {
        let mut text = "a".repeat(BLOCK - 1);
        text.push_str("ü\nb");
        let mut reader = TextReader::new("t.csv", Box::new(std::io::Cursor::new(text.clone().into_bytes())));
        let mut read = String::new();
        while reader.more(&mut read).unwrap() {}
        assert!(read == text && reader.remark().is_none());
        let damaged = TextReader::decode_all("t.csv", b"a\n\xC3\xBC\n\xFC\n".to_vec());
        assert!(matches!(damaged, Err(Error::NotUtf8 { line: 3, .. })));
    }
}
