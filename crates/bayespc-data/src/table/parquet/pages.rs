//! The pages of a flat column, with what they say of themselves checked before the parquet crate decodes them.
//!
//! The crate makes room for as many values as a header says. A page cannot have more values than its row group has rows, a
//! dictionary not more than bytes, and texts with their lengths packed apart not more lengths than values.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// Reads pages and checks them.
pub(super) struct Pages {
    pub inner: Box<dyn PageReader>,
    /// Rows of the row group.
    pub n_rows: usize,
    /// Whether cells may be missing: pages then begin with which are.
    pub is_optional: bool,
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        page.map(|page| self.checked(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.inner.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        let page = self.inner.take_deferred_dictionary()?;
        page.map(|page| self.checked(page)).transpose()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl Pages {
    fn checked(&self, page: Page) -> Result<Page> {
        let bytes = page.buffer();
        let n_values = page.num_values() as usize;
        let (most, of) = match page {
            // One value may have no bytes, if its type is so many bytes and that is none.
            Page::DictionaryPage { .. } => (bytes.len().max(1), "bytes"),
            _ => (self.n_rows, "rows"),
        };
        if n_values > most {
            return Err(damaged(&format!("{n_values} values in {most} {of}")));
        }
        let n_lists = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return Ok(page),
        };
        let mut rest = bytes.get(self.levels(&page)..).unwrap_or_default();
        for _ in 0..n_lists {
            let (n, end) = lengths(rest).ok_or_else(|| damaged("it ends too early"))?;
            if n > n_values as u64 {
                return Err(damaged(&format!("lengths of {n} texts for {n_values} values")));
            }
            rest = rest.get(end..).unwrap_or_default();
        }
        Ok(page)
    }

    /// How many bytes say which cells are missing; these columns do not repeat.
    fn levels(&self, page: &Page) -> usize {
        match page {
            Page::DataPage { buf, def_level_encoding: Encoding::RLE, .. } if self.is_optional => {
                let n = buf.first_chunk().map_or(0, |n| u32::from_le_bytes(*n));
                (n as usize).saturating_add(size_of::<u32>())
            }
            // The old form: a bit for each value.
            Page::DataPage { num_values, .. } if self.is_optional => (*num_values as usize).div_ceil(8),
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                (*def_levels_byte_len as usize).saturating_add(*rep_levels_byte_len as usize)
            }
            _ => 0,
        }
    }
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!("damaged page: {what}"))
}

/// How many whole numbers in blocks of packed differences (`DELTA_BINARY_PACKED`) there are, and where they end.
///
/// The header says how many values a block has, how many parts a block, and how many values there are; the first of them
/// follows. A block has its smallest difference, the width of the others in each part, and the parts; parts without a value
/// are left out.
fn lengths(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut at = 0;
    let number = |at: &mut usize| {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = *bytes.get(*at)?;
            *at += 1;
            value |= u64::from(byte & 0x7F).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    };
    let in_block = number(&mut at)?;
    let n_parts = number(&mut at)?;
    let n = number(&mut at)?;
    number(&mut at)?;
    let in_part = in_block.checked_div(n_parts)?;
    let n_parts = usize::try_from(n_parts).ok()?;
    let mut left = n.saturating_sub(1);
    while left > 0 {
        number(&mut at)?;
        let widths = bytes.get(at..at.checked_add(n_parts)?)?;
        at += n_parts;
        for width in widths {
            if left > 0 {
                let part = u64::from(*width).checked_mul(in_part)? / 8;
                at = at.checked_add(usize::try_from(part).ok()?)?;
            }
            left = left.saturating_sub(in_part);
        }
    }
    Some((n, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_end_where_they_say() {
        // Blocks of 128 in 4 parts. One number has no block; of five the first part alone has bytes, 32 of 2 bits.
        assert_eq!(lengths(&[0x80, 1, 4, 1, 8, 9, 9]), Some((1, 5)));
        let five = [[0x80, 1, 4, 5, 8, 0].as_slice(), &[2, 7, 7, 7], &[0; 8], &[9; 3]].concat();
        assert_eq!(lengths(&five), Some((5, 18)));
        assert_eq!(lengths(&five[..8]), None);
        assert_eq!(lengths(&[0x80, 1, 0, 5, 8]), None, "no parts");
        assert_eq!(lengths(&[0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 7, 0, 0, 0]), None, "no values in a block");
    }
}
