//! From a published file to the rows of its benchmark table.
//!
//! The benchmark rounds some workbooks, in decimal and with halves away from zero:
//!
//! ```text
//! concrete   ingredients to 1 decimal, target to 2
//! energy     all columns to 2 decimals; the second target (cooling load) is left out
//! power      the fifth of five sheets, as it is
//! others     as they are
//! ```

use std::io::Cursor;

use calamine::{Data, Reader, open_workbook_auto_from_rs};

use crate::catalogue::{DatasetInfo, Layout, Sheet};
use crate::error::FormatError;

type Rows = Vec<Vec<f64>>;

/// Rows of the benchmark table, target last, from the bytes of the published file.
pub(crate) fn benchmark_rows(info: &DatasetInfo, bytes: &[u8]) -> Result<Rows, FormatError> {
    let n_columns = info.features.len() + 1;
    let rows = match info.published.layout {
        Layout::Blanks => text_rows(bytes, 0, str::split_ascii_whitespace),
        Layout::Semicolons => text_rows(bytes, 1, |line| line.split(';')),
        Layout::Sheet { sheet, first, target } => {
            let mut rows = sheet_rows(bytes, sheet, n_columns)?;
            for row in rows.iter_mut().filter(|row| row.len() == n_columns) {
                if let Some((n, decimals)) = first {
                    row[..n].iter_mut().for_each(|x| *x = round_decimal(*x, decimals));
                }
                if let Some(decimals) = target {
                    row[n_columns - 1] = round_decimal(row[n_columns - 1], decimals);
                }
            }
            Ok(rows)
        }
    }?;
    check_shape(&rows, info.rows, n_columns)?;
    Ok(rows)
}

/// Fails unless there are `n_rows` rows of `n_columns` numbers.
pub(crate) fn check_shape(rows: &Rows, n_rows: usize, n_columns: usize) -> Result<(), FormatError> {
    if let Some(row) = rows.iter().find(|row| row.len() != n_columns) {
        return Err(FormatError::Shape { axis: "columns", found: row.len(), expected: n_columns });
    }
    if rows.len() != n_rows {
        return Err(FormatError::Shape { axis: "rows", found: rows.len(), expected: n_rows });
    }
    Ok(())
}

/// Numbers of every line that is not blank, after `n_header` lines.
pub(crate) fn text_rows<'a, I: Iterator<Item = &'a str>>(
    bytes: &'a [u8],
    n_header: usize,
    cells: impl Fn(&'a str) -> I,
) -> Result<Rows, FormatError> {
    // A byte that is not UTF-8 fails as the text of its cell below, where its place is known.
    let lines = bytes.split(|&byte| byte == b'\n').skip(n_header);
    let lines = lines.filter(|line| !line.trim_ascii().is_empty()).enumerate();
    lines
        .map(|(row, line)| {
            let not_text = || FormatError::Cell {
                row: row + 1,
                column: 1,
                value: String::from_utf8_lossy(line).into_owned(),
            };
            let line = str::from_utf8(line).map_err(|_| not_text())?;
            cells(line)
                .enumerate()
                .map(|(column, cell)| {
                    cell.trim().parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| {
                        FormatError::Cell { row: row + 1, column: column + 1, value: cell.trim().to_owned() }
                    })
                })
                .collect()
        })
        .collect()
}

/// Numbers under the header of a sheet; blank rows and columns beyond `n_columns` are left out.
fn sheet_rows(bytes: &[u8], sheet: Sheet, n_columns: usize) -> Result<Rows, FormatError> {
    let mut workbook = open_workbook_auto_from_rs(Cursor::new(bytes))?;
    let name = match sheet {
        Sheet::First => workbook.sheet_names().first().cloned(),
        Sheet::Named(name) => workbook.sheet_names().into_iter().find(|found| found == name),
    };
    let name = name.ok_or_else(|| match sheet {
        Sheet::First => FormatError::Sheet("at all".to_owned()),
        Sheet::Named(name) => FormatError::Sheet(format!("`{name}`")),
    })?;
    let range = workbook.worksheet_range(&name)?;
    let blank = |row: &&[Data]| row.iter().take(n_columns).all(|cell| matches!(cell, Data::Empty));
    range
        .rows()
        .skip(1)
        .filter(|row| !blank(row))
        .enumerate()
        .map(|(row, cells)| {
            cells
                .iter()
                .take(n_columns)
                .enumerate()
                .map(|(column, cell)| match cell {
                    Data::Float(x) => Ok(*x),
                    Data::Int(x) => Ok(*x as f64),
                    other => {
                        Err(FormatError::Cell { row: row + 1, column: column + 1, value: other.to_string() })
                    }
                })
                .collect()
        })
        .collect()
}

/// The double nearest to `x` rounded to so many decimals, halves (of `x` as it is written) away from zero.
fn round_decimal(x: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    // A half such as 1.005 is stored a little below itself, so the product may miss it by an ulp or
    // two; the factor lifts such products back, and no published value lies so close below a half.
    (x * scale * (1.0 + 4.0 * f64::EPSILON)).round() / scale
}

#[cfg(test)]
#[allow(clippy::format_push_string)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero_as_they_are_written() {
        for (x, decimals, expected) in [
            (0.25, 1, 0.3),
            (-0.25, 1, -0.3),
            (0.35, 1, 0.4),
            (1.005, 2, 1.01),
            (2.675, 2, 2.68),
            (6.366, 2, 6.37),
            (79.986_110_756, 2, 79.99),
            (0.249_999_9, 1, 0.2),
            (540.0, 1, 540.0),
            (332.5, 1, 332.5),
        ] {
            assert_eq!(round_decimal(x, decimals), expected, "{x}");
        }
    }

    #[test]
    fn blank_separated_text_may_have_runs_of_blanks_and_empty_lines() {
        let rows = text_rows(b" -2.3  0.568 4.78\r\n1 2 3 \n\n \n", 0, str::split_ascii_whitespace).unwrap();
        assert_eq!(rows, [[-2.3, 0.568, 4.78], [1.0, 2.0, 3.0]]);
    }

    #[test]
    fn semicolons_separate_numbers_under_a_header() {
        let rows = text_rows(b"\"a b\";\"c\"\n7.4;0.7\n1;2\n", 1, |line| line.split(';')).unwrap();
        assert_eq!(rows, [[7.4, 0.7], [1.0, 2.0]]);
    }

    #[test]
    fn a_cell_that_is_no_number_is_named() {
        for text in [&b"1 2\n3 x\n"[..], b"1 2\n3 inf\n", b"1 2\n3 nan\n"] {
            let error = text_rows(text, 0, str::split_ascii_whitespace).unwrap_err();
            assert!(matches!(error, FormatError::Cell { row: 2, column: 2, .. }), "{error}");
        }
        let error = text_rows(b"1 2\n\xff 3\n", 0, str::split_ascii_whitespace).unwrap_err();
        assert!(matches!(error, FormatError::Cell { row: 2, .. }), "{error}");
    }

    /// A workbook with the least that makes an .xlsx file: content types, relations, one part per sheet.
    pub(crate) fn workbook(sheets: &[(&str, &str)]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let mut part = |name: &str, text: String| {
            zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        };
        let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
        let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
        let package = "http://schemas.openxmlformats.org/package/2006";
        part("[Content_Types].xml", format!("<Types xmlns=\"{package}/content-types\"/>"));
        part(
            "_rels/.rels",
            format!(
                "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"rId1\" Type=\"{relation}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        );
        let mut entries = String::new();
        let mut links = String::new();
        for (i, (name, data)) in sheets.iter().enumerate() {
            entries += &format!("<sheet name=\"{name}\" sheetId=\"{0}\" r:id=\"rId{0}\"/>", i + 1);
            links += &format!(
                "<Relationship Id=\"rId{0}\" Type=\"{relation}/worksheet\" Target=\"worksheets/sheet{0}.xml\"/>",
                i + 1
            );
            let mut rows = String::new();
            for (row, line) in data.lines().enumerate() {
                rows += &format!("<row r=\"{}\">", row + 1);
                for (column, cell) in line.split(',').enumerate().filter(|(_, cell)| !cell.is_empty()) {
                    let place = format!("{}{}", char::from(b'A' + column as u8), row + 1);
                    rows += &if cell.parse::<f64>().is_ok() {
                        format!("<c r=\"{place}\"><v>{cell}</v></c>")
                    } else {
                        format!("<c r=\"{place}\" t=\"inlineStr\"><is><t>{cell}</t></is></c>")
                    };
                }
                rows += "</row>";
            }
            part(
                &format!("xl/worksheets/sheet{}.xml", i + 1),
                format!("<worksheet xmlns=\"{main}\"><sheetData>{rows}</sheetData></worksheet>"),
            );
        }
        part(
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{main}\" xmlns:r=\"{relation}\"><sheets>{entries}</sheets></workbook>"
            ),
        );
        part(
            "xl/_rels/workbook.xml.rels",
            format!("<Relationships xmlns=\"{package}/relationships\">{links}</Relationships>"),
        );
        zip.finish().unwrap().into_inner()
    }

    fn info(name: &str, rows: usize) -> DatasetInfo {
        let known = crate::catalogue().iter().find(|info| info.name == name).unwrap();
        let published = crate::catalogue::Published { urls: &[], ..known.published };
        DatasetInfo { rows, published, ..*known }
    }

    #[test]
    fn energy_is_rounded_and_loses_its_second_target_blank_columns_and_blank_rows() {
        let bytes = workbook(&[(
            "Φύλλο1",
            "X1,X2,X3,X4,X5,X6,X7,X8,Y1,Y2\n0.98,514.5,294,110.25,7,2,0,0,6.366,21.33\n0.9,563.5,318.5,122.5,7,3,0.1,1,20.84,28.28,,\n,,\n",
        )]);
        let rows = benchmark_rows(&info("energy", 2), &bytes).unwrap();
        assert_eq!(rows[0], [0.98, 514.5, 294.0, 110.25, 7.0, 2.0, 0.0, 0.0, 6.37]);
        assert_eq!(rows[1], [0.9, 563.5, 318.5, 122.5, 7.0, 3.0, 0.1, 1.0, 20.84]);
    }

    #[test]
    fn power_is_the_fifth_sheet_as_it_is() {
        let bytes = workbook(&[
            ("Sheet1", "AT,V,AP,RH,PE\n1,2,3,4,5\n"),
            ("Sheet5", "AT,V,AP,RH,PE\n8.345,40.77,1010.84,90.01,480.48\n"),
        ]);
        let rows = benchmark_rows(&info("power", 1), &bytes).unwrap();
        assert_eq!(rows, [[8.345, 40.77, 1010.84, 90.01, 480.48]]);
        let error = benchmark_rows(&info("power", 1), &workbook(&[("Sheet1", "AT\n1\n")])).unwrap_err();
        assert!(matches!(error, FormatError::Sheet(name) if name == "`Sheet5`"));
    }

    #[test]
    fn concrete_ingredients_are_rounded_to_one_decimal_age_not_and_strength_to_two() {
        let header = "a,b,c,d,e,f,g,age,strength\n";
        let bytes = workbook(&[(
            "Sheet1",
            &format!("{header}140.25,0.04,0.05,162.0,2.449,1040,676.06,28.55,79.986110756\n"),
        )]);
        let rows = benchmark_rows(&info("concrete", 1), &bytes).unwrap();
        assert_eq!(rows, [[140.3, 0.0, 0.1, 162.0, 2.4, 1040.0, 676.1, 28.55, 79.99]]);
    }

    /// A small .xls written by xlwt 1.3: the first row of `concrete` above under its header.
    #[test]
    fn the_older_workbook_format_reads_alike() {
        let bytes = include_bytes!("../tests/fixtures/concrete.xls");
        let rows = benchmark_rows(&info("concrete", 1), bytes).unwrap();
        assert_eq!(rows, [[140.3, 0.0, 0.1, 162.0, 2.4, 1040.0, 676.1, 28.55, 79.99]]);
    }

    #[test]
    fn a_table_of_another_shape_or_a_text_cell_or_no_workbook_is_an_error() {
        let short = workbook(&[("Sheet5", "AT,V,AP,RH,PE\n1,2,3,4,5\n")]);
        let error = benchmark_rows(&info("power", 2), &short).unwrap_err();
        assert!(matches!(error, FormatError::Shape { axis: "rows", found: 1, expected: 2 }), "{error}");
        let text = workbook(&[("Sheet5", "AT,V,AP,RH,PE\n1,2,x,4,5\n")]);
        let error = benchmark_rows(&info("power", 1), &text).unwrap_err();
        assert!(matches!(&error, FormatError::Cell { row: 1, column: 3, value } if value == "x"), "{error}");
        assert!(matches!(benchmark_rows(&info("power", 1), b"nothing"), Err(FormatError::Workbook(_))));
        let error = benchmark_rows(&info("yacht", 1), b"1 2 3").unwrap_err();
        assert!(matches!(error, FormatError::Shape { axis: "columns", found: 3, expected: 7 }), "{error}");
    }
}
