//! Looks through a Thrift struct (compact protocol) before the parquet crate reads it.
//!
//! That crate believes the size of a list in a field it skips: a few bytes that say "two thousand million" keep it busy for
//! minutes, since elements without bytes, and those behind the end of a file, cost nothing to skip. Here a collection must
//! fit in the bytes that are left. Booleans in one are refused: no header of the format has such a list, and the crate takes
//! their bytes for those of the next field.

use std::fmt;

/// Structs in lists in structs … as deep as the parquet crate goes.
const DEEPEST: usize = 64;

/// What is wrong with a struct.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flaw {
    /// The bytes end before it does.
    Short,
    /// More elements than bytes.
    Crowded(u64),
    /// A collection of booleans.
    Booleans,
    /// A type that there is not.
    UnknownType(u8),
    /// Too many levels.
    Deep,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(f, "it ends too early"),
            Self::Crowded(n) => write!(f, "a list of {n} elements in fewer bytes"),
            Self::Booleans => write!(f, "a list of booleans where there is none"),
            Self::UnknownType(kind) => write!(f, "a field of the unknown type {kind}"),
            Self::Deep => write!(f, "it is nested too deeply"),
        }
    }
}

/// How many bytes the struct at the start of `bytes` has. Its own whole numbers go to `number`, with their field's number.
pub(super) fn length(bytes: &[u8], mut number: impl FnMut(i64, i64)) -> Result<usize, Flaw> {
    let mut walk = Walk { bytes, at: 0 };
    walk.fields(0, &mut number)?;
    Ok(walk.at)
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn byte(&mut self) -> Result<u8, Flaw> {
        let byte = *self.bytes.get(self.at).ok_or(Flaw::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, n: u64) -> Result<(), Flaw> {
        let n = usize::try_from(n).ok().filter(|n| *n <= self.bytes.len() - self.at).ok_or(Flaw::Short)?;
        self.at += n;
        Ok(())
    }

    /// Seven bits to a byte, the last ones first; bits beyond the sixty-fourth are lost, as in the parquet crate.
    fn unsigned(&mut self) -> Result<u64, Flaw> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift = shift.wrapping_add(7);
        }
    }

    fn signed(&mut self) -> Result<i64, Flaw> {
        let value = self.unsigned()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn fields(&mut self, depth: usize, number: &mut dyn FnMut(i64, i64)) -> Result<(), Flaw> {
        let mut field = 0_i64;
        loop {
            let byte = self.byte()?;
            let (kind, step) = (byte & 0x0F, byte >> 4);
            if kind == 0 {
                return Ok(());
            }
            field = if step == 0 { self.signed()? } else { field.saturating_add(i64::from(step)) };
            match kind {
                // A field that is a boolean has its value in its type.
                1 | 2 => {}
                4..=6 => {
                    let value = self.signed()?;
                    if depth == 0 {
                        number(field, value);
                    }
                }
                _ => self.value(kind, depth)?,
            }
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Result<(), Flaw> {
        if depth == DEEPEST {
            return Err(Flaw::Deep);
        }
        match kind {
            3 => self.skip(1),
            4..=6 => self.unsigned().map(drop),
            7 => self.skip(8),
            8 => {
                let n = self.unsigned()?;
                self.skip(n)
            }
            9 | 10 => self.list(depth),
            11 => self.map(depth),
            12 => self.fields(depth + 1, &mut |_, _| {}),
            13 => self.skip(16),
            _ => Err(Flaw::UnknownType(kind)),
        }
    }

    fn list(&mut self, depth: usize) -> Result<(), Flaw> {
        let header = self.byte()?;
        let n = if header >> 4 == 15 { self.unsigned()? } else { u64::from(header >> 4) };
        self.elements(n, &[header & 0x0F], depth)
    }

    fn map(&mut self, depth: usize) -> Result<(), Flaw> {
        let n = self.unsigned()?;
        if n == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        self.elements(n, &[kinds >> 4, kinds & 0x0F], depth)
    }

    /// Skips so many elements, each of values of these types. Every value has at least a byte.
    fn elements(&mut self, n: u64, kinds: &[u8], depth: usize) -> Result<(), Flaw> {
        if n > (self.bytes.len() - self.at) as u64 {
            return Err(Flaw::Crowded(n));
        }
        if n > 0 && kinds.iter().any(|kind| matches!(kind, 1 | 2)) {
            return Err(Flaw::Booleans);
        }
        for _ in 0..n {
            for kind in kinds {
                self.value(*kind, depth + 1)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bytes: &[u8]) -> Result<(usize, Vec<(i64, i64)>), Flaw> {
        let mut found = Vec::new();
        let length = length(bytes, |field, value| found.push((field, value)))?;
        Ok((length, found))
    }

    /// The header of a dictionary page: type 2, 48 bytes of 42, six values, encoding 0, not sorted.
    const HEADER: [u8; 14] = [0x15, 4, 0x15, 0x60, 0x15, 0x54, 0x4C, 0x15, 0x0C, 0x15, 0, 0x12, 0, 0];

    #[test]
    fn a_header_has_its_length_and_numbers() {
        let mut bytes = HEADER.to_vec();
        bytes.extend([1, 2, 3]);
        assert_eq!(numbers(&bytes), Ok((HEADER.len(), vec![(1, 2), (2, 48), (3, 42)])));
    }

    #[test]
    fn a_header_that_is_cut_is_short() {
        for n in 0..HEADER.len() {
            assert_eq!(numbers(&HEADER[..n]), Err(Flaw::Short), "{n}");
        }
    }

    #[test]
    fn every_type_is_skipped() {
        let bytes = [
            0x11, 0x12, // booleans
            0x13, 9, // a byte
            0x17, 0, 0, 0, 0, 0, 0, 0, 0, // a double
            0x18, 2, b'a', b'b', // a text
            0x1D, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // a UUID
            0x19, 0x25, 2, 3, // two whole numbers
            0x1B, 1, 0x58, 7, 1, b'x', // a map of a number to a text
            0x1C, 0x19, 0x1C, 0, 0, // a struct with a list of an empty struct
            0x19, 0, // an empty list
            0x05, 0x28, 0x06, // field 20 by its number
            0,
        ];
        assert_eq!(numbers(&bytes), Ok((bytes.len(), vec![(20, 3)])));
    }

    #[test]
    fn lists_that_cannot_be_are_refused() {
        let many = [0xFF, 0xFF, 0xFF, 0xFF, 0x07];
        let list = |element: u8| [&[0x19, 0xF0 | element], many.as_slice(), &[0, 0]].concat();
        assert_eq!(numbers(&list(7)), Err(Flaw::Crowded(0x7FFF_FFFF)));
        assert_eq!(numbers(&list(1)), Err(Flaw::Crowded(0x7FFF_FFFF)));
        assert_eq!(numbers(&[0x19, 0x21, 1, 1, 0]), Err(Flaw::Booleans));
        assert_eq!(numbers(&[0x1B, 1, 0x51, 2, 1, 0]), Err(Flaw::Booleans));
        assert_eq!(numbers(&[0x1E, 0]), Err(Flaw::UnknownType(14)));
        assert_eq!(numbers(&[0x1C; 200]), Err(Flaw::Deep));
        assert_eq!(numbers(&[0x19; 200]), Err(Flaw::Deep));
    }
}
