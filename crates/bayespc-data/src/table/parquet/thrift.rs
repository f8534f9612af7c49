//! Looks through a Thrift struct (compact protocol) before the parquet crate reads it.
//!
//! That crate believes the size of a list in a field it skips: a few bytes that say "two thousand million" keep it busy for
//! minutes, since elements without bytes, and those behind the end of a file, cost nothing to skip. Here a collection must
//! fit in the bytes that are left. Booleans in one are refused: no header of the format has such a list, and the crate takes
//! their bytes for those of the next field. Fields that the format knows must be of its types (`shapes`).

use std::fmt;

use super::shapes::{Kind, Shape};

/// Structs in lists in structs … as deep as the parquet crate goes.
const DEEPEST: usize = 64;

/// What is wrong with a struct.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flaw {
    /// The bytes end before it does.
    Short,
    /// More elements than bytes.
    Crowded(u64),
    /// A number of elements that are to follow, less than none or more than bytes.
    Miscounted(i64),
    /// A collection of booleans.
    Booleans,
    /// A type that there is not.
    UnknownType(u8),
    /// A field that is said to be of another type than the format has.
    OtherType(i64),
    /// A list of elements of another type than the format has.
    OtherElements,
    /// Too many levels.
    Deep,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => write!(f, "it ends too early"),
            Self::Crowded(n) => write!(f, "a list of {n} elements in fewer bytes"),
            Self::Miscounted(n) => write!(f, "{n} elements are to follow"),
            Self::Booleans => write!(f, "a list of booleans where there is none"),
            Self::UnknownType(kind) => write!(f, "a field of the unknown type {kind}"),
            Self::OtherType(field) => write!(f, "field {field} is not of its type"),
            Self::OtherElements => write!(f, "the elements of a list are not of their type"),
            Self::Deep => write!(f, "it is nested too deeply"),
        }
    }
}

/// How many bytes the struct at the start of `bytes` has, which is of this shape. Its own whole numbers go to `number`, with
/// their field's number.
pub(super) fn length(bytes: &[u8], shape: Shape, mut number: impl FnMut(i64, i64)) -> Result<usize, Flaw> {
    let mut walk = Walk { bytes, at: 0 };
    walk.fields(shape, 0, &mut number)?;
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

    fn fields(&mut self, shape: Shape, depth: usize, number: &mut dyn FnMut(i64, i64)) -> Result<(), Flaw> {
        let mut field = 0_i64;
        loop {
            let byte = self.byte()?;
            let (kind, step) = (byte & 0x0F, byte >> 4);
            if kind == 0 {
                return Ok(());
            }
            field = if step == 0 { self.signed()? } else { field.saturating_add(i64::from(step)) };
            let known = shape.iter().find(|(id, _)| *id == field).map(|(_, known)| *known);
            if known.is_some_and(|known| !known.is(kind)) {
                return Err(Flaw::OtherType(field));
            }
            match kind {
                // A field that is a boolean has its value in its type.
                1 | 2 => {}
                4..=6 => {
                    let value = self.signed()?;
                    // All of its bits, of which the crate keeps 32.
                    let is_count = matches!(known, Some(Kind::Count));
                    if is_count && !usize::try_from(value).is_ok_and(|n| n <= self.bytes.len()) {
                        return Err(Flaw::Miscounted(value));
                    }
                    if depth == 0 {
                        number(field, value);
                    }
                }
                _ => self.value(kind, known, depth)?,
            }
        }
    }

    /// Skips a value of this type, which is of a known kind or not.
    fn value(&mut self, kind: u8, known: Option<Kind>, depth: usize) -> Result<(), Flaw> {
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
            9 | 10 => self.list(known, depth),
            11 => self.map(depth),
            12 => {
                let shape = if let Some(Kind::Struct(shape)) = known { shape } else { &[] };
                self.fields(shape, depth + 1, &mut |_, _| {})
            }
            13 => self.skip(16),
            _ => Err(Flaw::UnknownType(kind)),
        }
    }

    fn list(&mut self, known: Option<Kind>, depth: usize) -> Result<(), Flaw> {
        let header = self.byte()?;
        let n = if header >> 4 == 15 { self.unsigned()? } else { u64::from(header >> 4) };
        let known = if let Some(Kind::List(element)) = known { Some(*element) } else { None };
        self.elements(n, &[(header & 0x0F, known)], depth)
    }

    fn map(&mut self, depth: usize) -> Result<(), Flaw> {
        let n = self.unsigned()?;
        if n == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        self.elements(n, &[(kinds >> 4, None), (kinds & 0x0F, None)], depth)
    }

    /// Skips so many elements, each of values of these types. Every value has at least a byte.
    fn elements(&mut self, n: u64, kinds: &[(u8, Option<Kind>)], depth: usize) -> Result<(), Flaw> {
        if n > (self.bytes.len() - self.at) as u64 {
            return Err(Flaw::Crowded(n));
        }
        if n > 0 && kinds.iter().any(|(kind, _)| matches!(kind, 1 | 2)) {
            return Err(Flaw::Booleans);
        }
        if n > 0 && kinds.iter().any(|(kind, known)| known.is_some_and(|known| !known.is(*kind))) {
            return Err(Flaw::OtherElements);
        }
        for _ in 0..n {
            for (kind, known) in kinds {
                self.value(*kind, *known, depth + 1)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::shapes::{FILE_METADATA, PAGE_HEADER};
    use super::*;

    fn numbers(bytes: &[u8]) -> Result<(usize, Vec<(i64, i64)>), Flaw> {
        let mut found = Vec::new();
        let length = length(bytes, &[], |field, value| found.push((field, value)))?;
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
    fn fields_and_elements_are_of_the_types_that_the_format_has() {
        let check = |bytes: &[u8]| length(bytes, PAGE_HEADER, |_, _| {});
        assert_eq!(check(&HEADER), Ok(HEADER.len()));
        // Its sizes as a text; whether its values are sorted as a number; and a field that the format does not have yet.
        assert_eq!(check(&[0x15, 4, 0x18, 0, 0]), Err(Flaw::OtherType(2)));
        assert_eq!(check(&[0x7C, 0x15, 0, 0x15, 0, 0x15, 0, 0, 0]), Err(Flaw::OtherType(3)));
        assert_eq!(check(&[0x15, 4, 0xF8, 1, b'a', 0]), Ok(6));
        let names = |element: u8| [0x29, 0x1C, 0x48, 1, b'x', 0, 0x29, 0x10 | element, 0, 0];
        let metadata = |element: u8| length(&names(element), FILE_METADATA, |_, _| {});
        assert_eq!(metadata(12), Ok(10));
        assert_eq!(metadata(8), Err(Flaw::OtherElements));
    }

    #[test]
    fn a_column_of_columns_has_no_more_of_them_than_there_are_bytes() {
        // A schema of one element with so many children.
        let schema = |children: &[u8]| [&[0x29, 0x1C, 0x48, 1, b's', 0x15], children, &[0, 0]].concat();
        let check = |children: &[u8]| length(&schema(children), FILE_METADATA, |_, _| {});
        assert_eq!(check(&[2]), Ok(9));
        assert_eq!(check(&[0x80, 2]), Err(Flaw::Miscounted(128)));
        assert_eq!(check(&[1]), Err(Flaw::Miscounted(-1)));
        // Of 35 bits the lower half would be small.
        assert_eq!(check(&[0x82, 0x80, 0x80, 0x80, 0x40]), Err(Flaw::Miscounted((1 << 33) + 1)));
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
