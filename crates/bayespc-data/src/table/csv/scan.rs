//! Where records and cells begin and end in CSV text.
//!
//! A cell that begins with `"` ends at the next `"` that is not doubled; what follows up to the delimiter still
//! belongs to it. Line feed, carriage return or both end a record; empty lines are none.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// A cell of a record: its bytes, and whether quotes inside must be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: usize,
    end: usize,
    quotes: bool,
}

/// What a scan for a record came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// A record; the next begins here.
    Record(usize),
    /// Nothing but line ends.
    End,
    /// The text ends inside a quoted cell.
    OpenQuote,
}

impl Span {
    /// The trimmed text of the cell.
    pub fn text(self, text: &str) -> Cow<'_, str> {
        let raw = &text[self.start..self.end];
        if self.quotes { Cow::Owned(unquoted(raw).trim().to_owned()) } else { Cow::Borrowed(trimmed(raw)) }
    }
}

/// Without the blanks around it; most cells have none, and that is quickly seen.
fn trimmed(cell: &str) -> &str {
    let is_ink = |byte: Option<&u8>| byte.is_some_and(|byte| (b'!'..0x7f).contains(byte));
    let bytes = cell.as_bytes();
    if is_ink(bytes.first()) && is_ink(bytes.last()) { cell } else { cell.trim() }
}

/// What was written after an opening quote: doubled quotes are one, a single one closes.
fn unquoted(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut quoted = true;
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('"').filter(|_| quoted) {
        text.push_str(before);
        quoted = after.starts_with('"');
        rest = after.strip_prefix('"').unwrap_or(after);
        if quoted {
            text.push('"');
        }
    }
    text.push_str(rest);
    text
}

/// The cells of the record at or after `at`.
pub(super) fn record(text: &str, at: usize, delimiter: u8, cells: &mut Vec<Span>) -> Scan {
    let bytes = text.as_bytes();
    let mut at = at;
    while matches!(bytes.get(at), Some(b'\n' | b'\r')) {
        at += 1;
    }
    cells.clear();
    if at == bytes.len() {
        return Scan::End;
    }
    let is_end = |byte: u8| byte == delimiter || byte == b'\n' || byte == b'\r';
    loop {
        let (start, mut quotes) = (at, bytes.get(at) == Some(&b'"'));
        let mut closed = None;
        if quotes {
            let Some(close) = closing(bytes, at + 1) else { return Scan::OpenQuote };
            closed = Some(close);
            at = close + 1;
        }
        at += bytes[at..].iter().position(|byte| is_end(*byte)).unwrap_or(bytes.len() - at);
        let span = match closed {
            // Nothing inside or behind that would have to be taken out.
            Some(close) if close + 1 == at && memchr(b'"', &bytes[start + 1..close]).is_none() => {
                quotes = false;
                Span { start: start + 1, end: close, quotes }
            }
            Some(_) => Span { start: start + 1, end: at, quotes },
            None => Span { start, end: at, quotes },
        };
        cells.push(span);
        match bytes.get(at) {
            Some(byte) if *byte == delimiter => at += 1,
            Some(b'\r') if bytes.get(at + 1) == Some(&b'\n') => return Scan::Record(at + 2),
            Some(_) => return Scan::Record(at + 1),
            None => return Scan::Record(at),
        }
    }
}

/// The quote that closes a cell whose text begins at `at`.
fn closing(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr(b'"', &bytes[at..])?;
        if bytes.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// Places between records that cut the text from `start` on into parts of about `size` bytes; `Err` is a quote that
/// is never closed.
pub(super) fn cuts(text: &str, start: usize, delimiter: u8, size: usize) -> Result<Vec<usize>, usize> {
    let bytes = text.as_bytes();
    let (mut cuts, mut at, mut target) = (Vec::new(), start, start + size);
    loop {
        let quote = opening(bytes, at, delimiter);
        while target < quote {
            let from = target.max(at);
            let Some(found) = memchr2(b'\n', b'\r', &bytes[from..quote]) else { break };
            cuts.push(from + found + 1);
            target = from + found + 1 + size;
        }
        if quote == bytes.len() {
            return Ok(cuts);
        }
        at = closing(bytes, quote + 1).ok_or(quote)? + 1;
    }
}

/// The next quote that opens a cell, or the end.
fn opening(bytes: &[u8], mut at: usize, delimiter: u8) -> usize {
    while let Some(found) = memchr(b'"', &bytes[at..]) {
        let quote = at + found;
        let before = quote.checked_sub(1).map(|i| bytes[i]);
        if before.is_none_or(|byte| byte == delimiter || byte == b'\n' || byte == b'\r') {
            return quote;
        }
        at = quote + 1;
    }
    bytes.len()
}

/// The delimiter that gives the first records as many cells as the header has, and most; a comma if none does.
pub(super) fn delimiter(text: &str) -> u8 {
    const RECORDS: usize = 20;
    let mut best = (b',', (0, 0));
    for delimiter in [b',', b';', b'\t', b'|'] {
        let (mut at, mut widths, mut cells) = (0, Vec::new(), Vec::new());
        while widths.len() < RECORDS {
            let Scan::Record(next) = record(text, at, delimiter, &mut cells) else { break };
            widths.push(cells.len());
            at = next;
        }
        let width = widths.first().copied().unwrap_or(0);
        if width < 2 {
            continue;
        }
        // The text may have been cut inside the last record.
        let alike = widths.iter().filter(|found| **found == width).count();
        let score = (RECORDS * alike / widths.len(), width);
        if score > best.1 {
            best = (delimiter, score);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn records(text: &str, delimiter: u8) -> Vec<Vec<String>> {
        let (mut at, mut cells, mut found) = (0, Vec::new(), Vec::new());
        while let Scan::Record(next) = record(text, at, delimiter, &mut cells) {
            found.push(cells.iter().map(|cell| cell.text(text).into_owned()).collect());
            at = next;
        }
        found
    }

    #[test]
    fn quotes_blanks_and_line_ends_are_as_people_write_them() {
        for (text, expected) in [
            ("a,b\n1,2\n", &[&["a", "b"][..], &["1", "2"]][..]),
            ("\r\n\na,b\r\r\n1,", &[&["a", "b"], &["1", ""]]),
            ("\"a,\nb\",c", &[&["a,\nb", "c"]]),
            ("\"say \"\"hi\"\"\" , x ", &[&["say \"hi\"", "x"]]),
            ("\"ab\"cd,5\" pipe", &[&["abcd", "5\" pipe"]]),
            ("\"\",\"\"\"\"", &[&["", "\""]]),
            ("é,ü\n", &[&["é", "ü"]]),
        ] {
            assert_eq!(records(text, b','), expected, "{text:?}");
        }
        assert_eq!(record("a,\"b\nc", 0, b',', &mut Vec::new()), Scan::OpenQuote);
        assert_eq!(cuts("a,\"b\nc", 0, b',', 1), Err(2));
    }

    #[test]
    fn the_delimiter_is_the_one_that_fits_header_and_rows() {
        for (text, expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2,5\n", b';'),
            ("a\tb, c\n1\t2\n", b'\t'),
            ("a|b|c\n1|2|3\n", b'|'),
            ("a, b;c;d\n1;2;3\n4;5;6\n", b';'),
            ("\"a;b\",c\n1,2\n", b','),
            ("a\n1,5\n", b','),
            ("", b','),
        ] {
            assert_eq!(delimiter(text), expected, "{text:?}");
        }
    }

    proptest! {
        /// Cutting anywhere and reading the parts gives the records of the whole.
        #[test]
        fn parts_have_the_records_of_the_whole(text in "[a,\"\n\r;]{0,60}", size in 1_usize..20) {
            if let Ok(cuts) = cuts(&text, 0, b',', size) {
                let mut ends = cuts.clone();
                ends.push(text.len());
                let starts = std::iter::once(0).chain(cuts);
                let parts: Vec<_> = starts.zip(ends).flat_map(|(a, b)| records(&text[a..b], b',')).collect();
                prop_assert_eq!(parts, records(&text, b','));
            }
        }
    }
}
