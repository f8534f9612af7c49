//! The bytes of a Parquet file, with its headers looked through before the parquet crate reads them.
//!
//! A damaged or hostile header may speak of sizes that are not: the crate would skip lists of thousands of millions of
//! elements, or make room for a page of 2 GB before it sees that the page has ten bytes.

use std::io::{self, Read};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::shapes::{FILE_METADATA, PAGE_HEADER};
use super::thrift::{self, Flaw};

/// The end of a file: the length of its metadata, and `PAR1`.
const TAIL: u64 = 8;
/// The longest page header. Statistics in it hold values, which may be long texts.
const LONGEST_HEADER: usize = 1 << 24;
/// What is read at first for a header.
const FIRST_READ: usize = 1 << 13;
/// No codec makes more of a byte: Zstandard has blocks of four bytes that say 128 kB.
const MOST_PACKED: i64 = 1 << 15;
/// Room that a page may have whatever its size is when packed.
const SMALL_PAGE: i64 = 1 << 20;
/// Numbers of the fields of a page header.
const UNPACKED_SIZE: i64 = 2;
const PACKED_SIZE: i64 = 3;

/// A file or bytes in memory.
pub(super) struct Source<R> {
    inner: R,
    len: u64,
}

impl<R: Length> Source<R> {
    pub fn new(inner: R) -> Self {
        Self { len: inner.len(), inner }
    }
}

impl<R: Length> Length for Source<R> {
    fn len(&self) -> u64 {
        self.len
    }
}

impl<R: ChunkReader> ChunkReader for Source<R> {
    type T = Header<R::T>;

    /// The crate asks for this to read a page header, and for the file's tail.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let is_tail = start.checked_add(TAIL) == Some(self.len);
        Ok(Header {
            input: self.inner.get_read(start)?,
            left: self.len.saturating_sub(start),
            is_checked: is_tail,
            bytes: Vec::new(),
            at: 0,
            is_tail,
        })
    }

    /// The crate asks for this to read a page, and for the metadata before the tail.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len).ok_or_else(|| {
            ParquetError::EOF(format!("{length} bytes at {start} in a file of {} bytes", self.len))
        })?;
        let bytes = self.inner.get_bytes(start, length)?;
        if end.checked_add(TAIL) == Some(self.len) {
            thrift::length(&bytes, FILE_METADATA, |_, _| {})
                .map_err(|flaw| ParquetError::General(format!("damaged metadata: {flaw}")))?;
        }
        Ok(bytes)
    }
}

/// A page header, checked when the first byte of it is asked for; or the tail of a file, as it is.
pub(super) struct Header<T> {
    input: T,
    /// Bytes of the file from here on.
    left: u64,
    is_tail: bool,
    is_checked: bool,
    /// The header, and nothing that is behind it.
    bytes: Vec<u8>,
    at: usize,
}

impl<T: Read> Read for Header<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_tail {
            return self.input.read(buffer);
        }
        if !self.is_checked {
            self.check()?;
            self.is_checked = true;
        }
        let n = buffer.len().min(self.bytes.len() - self.at);
        if n == 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer[..n].copy_from_slice(&self.bytes[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

impl<T: Read> Header<T> {
    /// Reads as much as the header is long, and looks at its sizes.
    fn check(&mut self) -> io::Result<()> {
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let mut wanted = FIRST_READ;
        let (length, packed, unpacked) = loop {
            let missing = wanted - self.bytes.len();
            let n = (&mut self.input).take(missing as u64).read_to_end(&mut self.bytes)?;
            let (mut packed, mut unpacked) = (0, 0);
            let length = thrift::length(&self.bytes, PAGE_HEADER, |field, value| match field {
                UNPACKED_SIZE => unpacked = value,
                PACKED_SIZE => packed = value,
                _ => {}
            });
            match length {
                Ok(length) => break (length, packed, unpacked),
                // More elements than bytes may be too few bytes.
                Err(Flaw::Short | Flaw::Crowded(_)) if n == missing && wanted < LONGEST_HEADER => wanted *= 4,
                Err(flaw) => return Err(wrong(format!("damaged page header: {flaw}"))),
            }
        };
        // The crate keeps 32 bits of a number, whatever the others say.
        if let Some(size) = [packed, unpacked].into_iter().find(|&size| i32::try_from(size).is_err()) {
            return Err(wrong(format!("damaged page header: a page of {size} bytes")));
        }
        // What a page has room for goes by its packed size, so that one must not be more than there is.
        if u64::try_from(packed).is_ok_and(|packed| packed > self.left) {
            return Err(wrong(format!("damaged page header: a page of {packed} bytes in {}", self.left)));
        }
        if unpacked > packed.max(0).saturating_mul(MOST_PACKED).saturating_add(SMALL_PAGE) {
            return Err(wrong(format!("damaged page header: {unpacked} bytes packed in {packed}")));
        }
        self.bytes.truncate(length);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut file = b"PAR1".to_vec();
        file.extend_from_slice(bytes);
        // What is behind a header is not read with it.
        file.extend_from_slice(&[0xFF; 50]);
        let mut header = Vec::new();
        let mut reader = Source::new(Bytes::from(file)).get_read(4).unwrap();
        let mut byte = [0];
        loop {
            match reader.read(&mut byte) {
                Ok(_) => header.push(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(header),
                Err(error) => return Err(error),
            }
        }
    }

    #[test]
    fn a_header_is_cut_out() {
        let header = [0x15, 4, 0x15, 0x60, 0x15, 0x54, 0x4C, 0x15, 0x0C, 0x15, 0, 0x12, 0, 0];
        assert_eq!(read(&header).unwrap(), header);
    }

    #[test]
    fn a_header_longer_than_the_first_read_is_cut_out_too() {
        let mut header = vec![0x15, 0, 0xE8, 0x80, 0x80, 0x04];
        header.extend(vec![b'x'; 1 << 16]);
        header.push(0);
        assert_eq!(read(&header).unwrap(), header);
    }

    #[test]
    fn a_header_with_sizes_that_cannot_be_is_refused() {
        // A list of 2³¹ − 1 doubles in a field of the future; a page of 2 GB packed in 42 bytes.
        let list = [0x15, 4, 0xE9, 0xF7, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0];
        let page = [0x15, 4, 0x15, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F, 0x15, 0x54, 0];
        // A page of 1 GB packed in 33 kB, in a file of some dozen bytes: it was found by fuzzing and made room for.
        let beyond = [0x15, 4, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0x15, 0x80, 0x84, 0x04, 0];
        // A size of −2³⁵ + 2³⁰, of which the lower half is 1 GB: so was this.
        let halved = [0x15, 4, 0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0xF7, 0x01, 0x15, 0x54, 0];
        for (header, says) in [
            (&halved[..], "a page of -33285996544 bytes"),
            (list.as_slice(), "2147483647 elements"),
            (&page, "2147483647 bytes packed in 42"),
            (&beyond, "a page of 33024 bytes in 63"),
        ] {
            let error = read(header).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let source = Source::new(Bytes::from(vec![0; 100]));
        assert!(source.get_bytes(0, 100).is_ok());
        for (start, length) in [(1, 100), (u64::MAX, 1), (0, usize::MAX)] {
            assert!(source.get_bytes(start, length).is_err(), "{start} {length}");
        }
    }
}
