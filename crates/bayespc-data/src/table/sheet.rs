//! Workbooks (`.xlsx`, `.xls`, `.ods`): one sheet, its first row that is not empty the header.
//!
//! The calamine crate makes room for the rectangle that all cells of a sheet lie in, and for as many texts as a workbook says
//! to have. A file of two kilobytes may have a cell in the last row of the last column, or say anything: both are looked at
//! before.

use std::io::{Cursor, Read};

use calamine::{
    Cell, CellErrorType, Data, DataRef, Range, Reader, Sheets, XlsxError, open_workbook_auto_from_rs,
};
use memchr::memmem;
use zip::ZipArchive;

use super::{Table, Texts, Wish};
use crate::{Error, FormatError, Result};

/// Cells of a rectangle that is read whatever is in it, and how many there may be for each that is not empty.
const SMALL: u64 = 1 << 22;
const SPARSE: u64 = 100;

/// No text of a workbook takes fewer bytes when packed: deflate makes at most 1032 of one, and `<si/>` are five.
const TEXTS_PER_BYTE: u64 = 1032 / 5 + 1;

/// Bytes at most between a name and its number: with more of them looking again at what is not read to its end would take long.
const FARTHEST: usize = 1024;
/// Digits of the largest number.
const MOST_DIGITS: usize = 20;

/// Reads a sheet, the first if none is named.
pub(super) fn read(
    file: &str,
    bytes: Vec<u8>,
    sheet: Option<&str>,
    wish: &dyn Fn(&str) -> Option<Wish>,
) -> Result<Table> {
    let wrong = |problem: FormatError| Error::Format { file: file.to_owned(), problem };
    check_texts(&bytes).map_err(wrong)?;
    let mut workbook = open_workbook_auto_from_rs(Cursor::new(bytes))
        .map_err(|error| wrong(FormatError::Workbook(error)))?;
    let names = workbook.sheet_names();
    let found = match sheet {
        None => names.first(),
        Some(sheet) => names.iter().find(|name| *name == sheet),
    };
    let name = found.ok_or_else(|| Error::NoSheet {
        file: file.to_owned(),
        sheet: sheet.unwrap_or_default().to_owned(),
        present: names.join(", "),
    })?;
    let range = range(&mut workbook, name).map_err(wrong)?;
    let is_empty = |row: &&[Data]| row.iter().all(|cell| matches!(cell, Data::Empty));
    let mut rows = range.rows().skip_while(is_empty);
    let header = rows.next().ok_or_else(|| Error::EmptyFile { file: file.to_owned() })?;
    let mut columns: Vec<(String, Texts)> =
        header.iter().map(|cell| (text(cell).trim().to_owned(), Texts::new())).collect();
    // Formatted but empty rows below the table are none, empty rows inside it are rows.
    let rows: Vec<&[Data]> = rows.collect();
    let n = rows.iter().rposition(|row| !is_empty(row)).map_or(0, |last| last + 1);
    for row in &rows[..n] {
        for ((_, texts), cell) in columns.iter_mut().zip(*row) {
            texts.push_cell(text(cell).trim());
        }
    }
    // So are columns to the right.
    columns.retain(|(name, texts)| !name.is_empty() || !texts.values().is_empty());
    Table::from_texts(file, columns, wish)
}

type Workbook = Sheets<Cursor<Vec<u8>>>;

/// All cells of a sheet. In `.ods` there is a limit already, and `.xls` has few columns and rows.
fn range(workbook: &mut Workbook, sheet: &str) -> std::result::Result<Range<Data>, FormatError> {
    let cells = match workbook {
        Sheets::Xlsx(book) => {
            let mut reader = match book.worksheet_cells_reader(sheet) {
                // A chart has no cells.
                Err(XlsxError::NotAWorksheet(_)) => return Ok(Range::empty()),
                found => found.map_err(calamine::Error::Xlsx)?,
            };
            filled(|| reader.next_cell().map_err(calamine::Error::Xlsx))?
        }
        Sheets::Xlsb(book) => {
            let mut reader = book.worksheet_cells_reader(sheet).map_err(calamine::Error::Xlsb)?;
            filled(|| reader.next_cell().map_err(calamine::Error::Xlsb))?
        }
        Sheets::Xls(_) | Sheets::Ods(_) => return Ok(workbook.worksheet_range(sheet)?),
    };
    let bounds = |place: fn(&Cell<Data>) -> u32| {
        let places = || cells.iter().map(place);
        (u64::from(places().min().unwrap_or(0)), u64::from(places().max().unwrap_or(0)))
    };
    let ((top, bottom), (left, right)) =
        (bounds(|cell| cell.get_position().0), bounds(|cell| cell.get_position().1));
    let area = (bottom - top + 1).saturating_mul(right - left + 1);
    if area > SMALL.max(SPARSE.saturating_mul(cells.len() as u64)) {
        return Err(FormatError::Sparse { cells: cells.len(), row: bottom + 1, column: right + 1 });
    }
    Ok(Range::from_sparse(cells))
}

/// The cells that are not empty.
fn filled<'a>(
    mut next: impl FnMut() -> std::result::Result<Option<Cell<DataRef<'a>>>, calamine::Error>,
) -> std::result::Result<Vec<Cell<Data>>, FormatError> {
    let mut cells = Vec::new();
    while let Some(cell) = next()? {
        if !matches!(cell.get_value(), DataRef::Empty) {
            cells.push(Cell::new(cell.get_position(), Data::from(cell.get_value().clone())));
        }
    }
    Ok(cells)
}

/// Whether the texts of an `.xlsx` may be as many as it says, wherever it says so: what comes first may be a comment. What is no
/// archive is none.
fn check_texts(bytes: &[u8]) -> std::result::Result<(), FormatError> {
    const NAME: &[u8] = b"uniqueCount";
    let Ok(mut archive) = ZipArchive::new(Cursor::new(bytes)) else { return Ok(()) };
    for i in 0..archive.len() {
        let Ok(mut entry) = archive.by_index(i) else { continue };
        if !entry.name_raw().to_ascii_lowercase().ends_with(b"sharedstrings.xml") {
            continue;
        }
        let most = entry.compressed_size().min(bytes.len() as u64).saturating_mul(TEXTS_PER_BYTE);
        // What may go on in the next part stays: a name that is cut, or a number that ends with what was read.
        let (mut window, mut kept) = (Vec::new(), 0);
        loop {
            window.drain(..kept);
            // What cannot be unpacked is refused by who reads it.
            match (&mut entry).take(1 << 16).read_to_end(&mut window) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            kept = window.len().saturating_sub(NAME.len());
            for at in memmem::find_iter(&window, NAME) {
                let behind = &window[at + NAME.len()..];
                let is_before = |byte: &u8| b" =\"'\t\r\n".contains(byte);
                let start = behind.iter().position(|byte| !is_before(byte)).unwrap_or(behind.len());
                let digits = &behind[start..];
                let n = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
                let said = String::from_utf8_lossy(&digits[..n]);
                if start > FARTHEST {
                    return Err(FormatError::Texts { said: "an unknown number of".to_owned() });
                }
                let goes_on = start + n == behind.len() && n <= MOST_DIGITS;
                if goes_on {
                    kept = kept.min(at);
                } else if n > 0 && said.parse::<u64>().map_or(true, |said| said > most) {
                    return Err(FormatError::Texts { said: said.into_owned() });
                }
            }
        }
    }
    Ok(())
}

/// A cell as a CSV file would have it.
fn text(cell: &Data) -> String {
    match cell {
        Data::Empty | Data::Error(CellErrorType::NA | CellErrorType::Null) => String::new(),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::DateTime(time) if time.is_datetime() => {
            let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
            if year < 1901 && time.as_f64() < 1.0 {
                return format!("{hour:02}:{minute:02}:{second:02}.{milli:03}");
            }
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{milli:03}")
        }
        Data::DateTime(duration) => duration.as_f64().to_string(),
        other => other.to_string(),
    }
}
