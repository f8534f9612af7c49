//! One cell: what counts as missing and as a boolean, and how a number becomes a label.

/// What marks a missing cell, besides nothing at all.
const MISSING: [&str; 5] = ["NA", "N/A", "NaN", "null", "?"];

/// Whether a trimmed cell is missing.
pub(crate) fn is_missing(cell: &str) -> bool {
    // Most cells are longer than every marker, or begin otherwise.
    cell.is_empty() || cell.len() <= 4 && MISSING.iter().any(|marker| cell.eq_ignore_ascii_case(marker))
}

/// The boolean of a trimmed cell.
pub(super) fn parse_bool(cell: &str) -> Option<bool> {
    if cell.eq_ignore_ascii_case("true") {
        Some(true)
    } else if cell.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// The boolean of a trimmed cell where booleans are expected: 0 and 1 too.
pub(super) fn parse_bit(cell: &str) -> Option<bool> {
    parse_bool(cell).or(match cell {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    })
}

/// A number as a label: 3 and 3.0 are both `3`.
pub(super) fn label(x: f64) -> String {
    // Adding zero turns −0 into 0.
    format!("{}", x + 0.0)
}
