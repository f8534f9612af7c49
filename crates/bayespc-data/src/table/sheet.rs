//! Workbooks (`.xlsx`, `.xls`, `.ods`): one sheet, its first row that is not empty the header.

use std::io::Cursor;

use calamine::{CellErrorType, Data, Reader, open_workbook_auto_from_rs};

use super::{Table, Texts, Wish};
use crate::{Error, FormatError, Result};

/// Reads a sheet, the first if none is named.
pub(super) fn read(
    file: &str,
    bytes: Vec<u8>,
    sheet: Option<&str>,
    wish: &dyn Fn(&str) -> Option<Wish>,
) -> Result<Table> {
    let wrong = |problem: FormatError| Error::Format { file: file.to_owned(), problem };
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
    let range = workbook.worksheet_range(name).map_err(|error| wrong(FormatError::Workbook(error)))?;
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
