//! A whole CSV text, in parts side by side.
//!
//! What the columns are is guessed from rows here and there, and then all rows are read as that. Formats are tried
//! in a fixed order, so if all cells can be read the guess from all of them would have been the same. Only columns
//! with a cell that cannot are read again, as texts, and judged by all their cells.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::Header;
use super::parts::{Part, Unreadable, Wanted};
use super::scan::{self, Scan};
use crate::table::guess::{Guess, Verdict};
use crate::table::{Column, Kind, Remark, Table, Texts, Values, Wish, Wishes};
use crate::{Error, Result};

/// Bytes of a part: small enough to share work out, large enough that its dictionaries are worth making.
const PART: usize = 4 << 20;
/// Records at the beginning that a first guess is from.
const FIRST: usize = 500;
/// Records of each further part that it is from.
const FURTHER: usize = 50;

/// Reads a CSV text; all columns, as asked or as they look.
pub(in crate::table) fn read(file: &str, text: &str, wishes: &Wishes) -> Result<Table> {
    read_by_parts(file, text, wishes, PART)
}

fn read_by_parts(file: &str, text: &str, wishes: &Wishes, size: usize) -> Result<Table> {
    let (header, start) = Header::read(file, text)?;
    let parts = cut(&header, text, start, size)?;
    let samples = sample(&header, &parts)?;
    let sampled_commas = samples.iter().any(Guess::has_decimal_commas);
    let wish = |i: usize| wishes.get(&header.names[i]).copied();
    let first_kind = |i: usize| match wish(i) {
        Some(wish) => samples[i].wished(wish, sampled_commas),
        None => samples[i].likely(sampled_commas),
    };
    let wanted: Vec<Wanted> =
        (0..header.names.len()).map(|index| Wanted { index, kind: first_kind(index) }).collect();
    let (n_rows, mut columns) = read_parts(&header, &parts, &wanted)?;
    if n_rows == 0 {
        return Err(Error::NoRows { file: file.to_owned() });
    }

    // Columns that must be judged by all cells: those with a cell that is not as guessed, and all that were read
    // as texts, since further cells may be of another mind.
    let mut texts: BTreeMap<usize, Texts> = BTreeMap::new();
    let mut again = Vec::new();
    for (i, column) in columns.iter_mut().enumerate() {
        match (&column, wish(i)) {
            (Err(unreadable), Some(Wish::As(kind))) => {
                return Err(wrong_type(&header, i, unreadable.clone(), kind));
            }
            (Err(_), _) => again.push(i),
            (Ok(Values::Text(_)), None) => {
                if let Ok(Values::Text(found)) = std::mem::replace(column, Ok(Values::new(Kind::Text))) {
                    texts.insert(i, found);
                }
            }
            (Ok(_), _) => {}
        }
    }
    let read_texts = |again: &[usize]| -> Result<Vec<(usize, Texts)>> {
        let wanted: Vec<Wanted> = again.iter().map(|&index| Wanted { index, kind: Kind::Text }).collect();
        let (_, columns) = read_parts(&header, &parts, &wanted)?;
        let text = |column| if let Ok(Values::Text(texts)) = column { texts } else { Texts::new() };
        Ok(again.iter().copied().zip(columns.into_iter().map(text)).collect())
    };
    texts.extend(read_texts(&again)?);
    let mut guesses: BTreeMap<usize, Guess> =
        texts.par_iter().map(|(&i, texts)| (i, Guess::of_texts(texts))).collect();

    // What the whole file says about decimal commas may differ from what its sample said.
    let says_commas = |i: usize| guesses.get(&i).unwrap_or(&samples[i]).has_decimal_commas();
    let commas = (0..columns.len()).any(says_commas);
    if commas != sampled_commas {
        let changed = |i: &usize| {
            !texts.contains_key(i)
                && !matches!(wish(*i), Some(Wish::As(_)))
                && samples[*i].depends_on_commas()
        };
        let again: Vec<usize> = (0..columns.len()).filter(changed).collect();
        for (i, found) in read_texts(&again)? {
            guesses.insert(i, Guess::of_texts(&found));
            texts.insert(i, found);
        }
    }

    let mut remarks = Vec::new();
    let mut finished = Vec::with_capacity(columns.len());
    for (i, column) in columns.into_iter().enumerate() {
        let name = header.names[i].clone();
        if name.is_empty() {
            // A delimiter at the end of every row makes no column.
            if texts.get(&i).is_some_and(|texts| texts.values().is_empty()) {
                continue;
            }
            return Err(Error::UnnamedColumn { file: file.to_owned(), position: i + 1 });
        }
        let verdict = match (wish(i), guesses.get(&i)) {
            (Some(wish), guess) => {
                let kind = guess.unwrap_or(&samples[i]).wished(wish, commas);
                Verdict { kind, suspect: None, or: None }
            }
            (None, Some(guess)) => guess.verdict(commas),
            (None, None) => samples[i].verdict(commas),
        };
        remarks.extend(verdict.or.map(|or| Remark::Ambiguous {
            column: name.clone(),
            kind: verdict.kind,
            or,
        }));
        let mut values = match (texts.remove(&i), column) {
            (Some(texts), _) => texts.read_as(verdict.kind).map_err(|(i_row, value)| {
                wrong_type(&header, i, Unreadable { row: i_row + 1, value }, verdict.kind)
            })?,
            (None, Ok(values)) => values,
            (None, Err(unreadable)) => return Err(wrong_type(&header, i, unreadable, verdict.kind)),
        };
        values.settle();
        finished.push(Column { name, kind: verdict.kind, values, suspect: verdict.suspect });
    }
    Ok(Table {
        file: file.to_owned(),
        rows: (1..=n_rows).collect(),
        header: header.names.into_iter().filter(|name| !name.is_empty()).collect(),
        columns: finished,
        remarks,
    })
}

fn wrong_type(header: &Header, i: usize, unreadable: Unreadable, kind: Kind) -> Error {
    Error::WrongType {
        file: header.file.clone(),
        row: unreadable.row,
        column: header.names[i].clone(),
        value: unreadable.value,
        expected: kind.noun(),
    }
}

/// The rows in parts of whole records.
fn cut<'a>(header: &Header, text: &'a str, start: usize, size: usize) -> Result<Vec<&'a str>> {
    let cuts = scan::cuts(text, start, header.delimiter, size).map_err(|quote| {
        let (mut at, mut row, mut cells) = (start, 0, Vec::new());
        while let Scan::Record(next) = scan::record(&text[..quote], at, header.delimiter, &mut cells) {
            (at, row) = (next, row + 1);
        }
        // The cells before the quote have been counted as a record of their own.
        Error::OpenQuote { file: header.file.clone(), row: row.max(1) }
    })?;
    let starts = std::iter::once(start).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([text.len()]);
    Ok(starts.zip(ends).map(|(start, end)| &text[start..end]).collect())
}

/// What each column looks like in rows here and there.
fn sample(header: &Header, parts: &[&str]) -> Result<Vec<Guess>> {
    let mut guesses: Vec<Guess> = header.names.iter().map(|_| Guess::default()).collect();
    let mut cells = Vec::new();
    for (k, part) in parts.iter().enumerate() {
        let mut at = 0;
        for row in 1..=if k == 0 { FIRST } else { FURTHER } {
            let Scan::Record(next) = scan::record(part, at, header.delimiter, &mut cells) else { break };
            if k == 0 {
                header.check_width(&cells, row)?;
            }
            for (guess, cell) in guesses.iter_mut().zip(&cells) {
                guess.see(&cell.text(part), row, 1);
            }
            at = next;
        }
    }
    Ok(guesses)
}

/// Number of rows, and the wanted columns of all parts; the first cell of each that cannot be read.
type Columns = (usize, Vec<Result<Values, Unreadable>>);

fn read_parts(header: &Header, parts: &[&str], wanted: &[Wanted]) -> Result<Columns> {
    if wanted.is_empty() {
        return Ok((0, Vec::new()));
    }
    let read = |text: &&str| {
        let mut part = Part::new(wanted);
        part.extend(header, text, usize::MAX, 0, true).map(|_| part)
    };
    let read: Vec<Result<Part>> = parts.par_iter().map(read).collect();
    let mut n_rows = 0;
    let mut by_column: Vec<Vec<(usize, Result<Values, Unreadable>)>> =
        wanted.iter().map(|_| Vec::with_capacity(parts.len())).collect();
    for part in read {
        let part = part.map_err(|error| error.rows_later(n_rows))?;
        for (column, values) in by_column.iter_mut().zip(part.columns) {
            column.push((n_rows, values));
        }
        n_rows += part.n_rows;
    }
    let join = |parts: Vec<(usize, Result<Values, Unreadable>)>| {
        let mut parts = parts.into_iter();
        let mut whole = parts.next().map_or_else(|| Ok(Values::new(Kind::Text)), |(_, first)| first)?;
        whole.reserve(n_rows);
        for (n_before, part) in parts {
            whole.append(part.map_err(|wrong| Unreadable { row: n_before + wrong.row, ..wrong })?);
        }
        Ok(whole)
    };
    Ok((n_rows, by_column.into_par_iter().map(join).collect()))
}

#[cfg(test)]
#[allow(clippy::format_collect)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers for `n` rows, then a cell; behind the sample if `n` is large.
    fn late(n: usize, cell: &str) -> Table {
        let text = format!("a,b\n{}{cell},x\n", "1,x\n".repeat(n));
        read_by_parts("t.csv", &text, &Wishes::new(), usize::MAX - 1000).unwrap()
    }

    #[test]
    fn cells_behind_the_sample_have_their_say() {
        for (cell, expected) in [
            ("\"1,5\"", "number 1234,5"),
            ("\"1,500.5\"", "number 1,234.5"),
            ("true", "text"),
            ("2024-01-01", "text"),
            ("7.5", "number"),
            ("", "number"),
        ] {
            for n in [FIRST - 1, FIRST, 3 * FIRST] {
                let table = late(n, cell);
                assert_eq!(table.columns[0].kind.to_string(), expected, "{cell} after {n}");
                assert_eq!(table.columns[0].n_cells(), Some(n + 1));
                let suspect = table.columns[0].suspect.as_ref().map(|suspect| suspect.row);
                assert_eq!(suspect, (expected == "text").then_some(n + 1), "{cell} after {n}");
            }
        }
        let empty = "\"\",x\n".repeat(FIRST);
        let text = format!("a,b\n{empty}2024-01-01,x\n");
        let table = read_by_parts("t.csv", &text, &Wishes::new(), PART).unwrap();
        assert_eq!(table.columns[0].kind.to_string(), "time YYYY-MM-DD");
    }

    #[test]
    fn decimal_commas_of_one_column_behind_the_sample_change_another() {
        let rows = "\"1,234\";5;\"1.234\"\n".repeat(FIRST);
        let text = format!("a;b;c\n{rows}1,234;5,5;1.234\n");
        let table = read_by_parts("t.csv", &text, &Wishes::new(), PART).unwrap();
        let kinds: Vec<_> = table.columns.iter().map(|column| column.kind.to_string()).collect();
        assert_eq!(kinds, ["number 1234,5", "number 1234,5", "number 1.234,5"]);
        assert_eq!(table.columns[2].number(0), Ok(Some(1234.0)));
        let plain = read_by_parts("t.csv", &format!("a;b;c\n{rows}"), &Wishes::new(), PART).unwrap();
        assert_eq!(
            (plain.columns[0].number(0), plain.columns[2].number(0)),
            (Ok(Some(1234.0)), Ok(Some(1.234)))
        );
    }

    #[test]
    fn rows_of_later_parts_are_counted_from_the_beginning() {
        let text = format!("a,b\n{}1\n", "1,x\n".repeat(40));
        let error = read_by_parts("t.csv", &text, &Wishes::new(), 10).unwrap_err();
        assert!(matches!(error, Error::RaggedRow { row: 41, .. }), "{error}");
        let text = format!("a,b\n{}y,x\n", "1,x\n".repeat(40));
        let wishes = Wishes::from([("a".to_owned(), Wish::Number)]);
        let error = read_by_parts("t.csv", &text, &wishes, 10).unwrap_err();
        assert!(matches!(&error, Error::WrongType { row: 41, value, .. } if value == "y"), "{error}");
    }

    proptest! {
        /// The size of parts changes nothing.
        #[test]
        fn parts_make_the_same_table(
            cells in prop::collection::vec(("[0-9]{1,3}", "[a-c]?", "(NA|[0-9],[0-9]|true)?"), 1..40),
            size in 1_usize..200,
        ) {
            let rows: String = cells.iter().map(|(a, b, c)| format!("{a};{b};{c}\n")).collect();
            let text = format!("a;b;c\n{rows}");
            let whole = read_by_parts("t.csv", &text, &Wishes::new(), PART).unwrap();
            let parts = read_by_parts("t.csv", &text, &Wishes::new(), size).unwrap();
            prop_assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
        }
    }
}
