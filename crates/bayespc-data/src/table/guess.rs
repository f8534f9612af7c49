//! What a column is, from its cells.
//!
//! Formats are tried in a fixed order, and the first that reads every cell is meant. So what some cells say is
//! what all say, unless a further cell cannot be read: only then need a column be looked at again.

use super::cell::{is_missing, parse_bool};
use super::number::{Decimal, Group, NumberFormat, Unit, split_unit};
use super::time::TimeFormat;
use super::{Kind, Suspect, Texts, Wish};
use crate::error::OTHER_UNIT;

/// A share of cells of one kind above which another among them is suspect.
const NEARLY_ALL: f64 = 0.9;

/// Texts after which to ask whether looking at more is worth the while.
const HOPELESS: usize = 1024;

const N_DIGITS: usize = NumberFormat::DIGITS.len();
const N_TIMES: usize = TimeFormat::ALL.len();

/// What the cells of a column looked like.
#[derive(Clone, Debug)]
pub(crate) struct Guess {
    /// Cells that are not missing.
    n: usize,
    bools: Tally,
    /// For each way to write digits.
    digits: [Tally; N_DIGITS],
    times: [Tally; N_TIMES],
    /// Cells with a unit.
    n_unit: usize,
    /// The unit of the first cell that has one.
    unit: Unit,
    /// The first cell of another unit.
    stranger: Option<(usize, String)>,
    /// The first number without a unit.
    bare: Option<(usize, String)>,
    /// Whether a cell has a point, and a comma: either may be a decimal sign or stand between groups.
    has_point: bool,
    has_comma: bool,
}

/// Cells that a format reads, and the first that it does not.
#[derive(Clone, Debug, Default)]
struct Tally {
    n: usize,
    first_other: Option<(usize, String)>,
}

/// What a guess comes to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub kind: Kind,
    pub suspect: Option<Suspect>,
    /// Another kind that reads all cells too, with other values.
    pub or: Option<Kind>,
}

impl Tally {
    fn see(&mut self, fits: bool, cell: &str, row: usize, count: usize) {
        if fits {
            self.n += count;
        } else {
            first_of(&mut self.first_other, cell, row);
        }
    }
}

/// Keeps the cell of the least row.
fn first_of(first: &mut Option<(usize, String)>, cell: &str, row: usize) {
    if first.as_ref().is_none_or(|(known, _)| row < *known) {
        *first = Some((row, cell.to_owned()));
    }
}

impl Default for Guess {
    fn default() -> Self {
        Self {
            n: 0,
            bools: Tally::default(),
            digits: std::array::from_fn(|_| Tally::default()),
            times: std::array::from_fn(|_| Tally::default()),
            n_unit: 0,
            unit: Unit::None,
            stranger: None,
            bare: None,
            has_point: false,
            has_comma: false,
        }
    }
}

impl Guess {
    /// Looks at a trimmed cell that occurs `count` times, first in `row`.
    pub fn see(&mut self, cell: &str, row: usize, count: usize) {
        if is_missing(cell) {
            return;
        }
        self.n += count;
        self.bools.see(parse_bool(cell).is_some(), cell, row, count);
        let bare = split_unit(cell);
        for (tally, (decimal, group)) in self.digits.iter_mut().zip(NumberFormat::DIGITS) {
            let plain = NumberFormat { decimal, group, unit: Unit::None } == NumberFormat::PLAIN;
            let fits = plain && NumberFormat::PLAIN.parse(cell).is_some()
                || bare.is_some_and(|(bare, unit)| {
                    // Signs that only people write are not plain, even without a unit.
                    (!plain || unit != Unit::None) && bare.value(decimal, group).is_some()
                });
            tally.see(fits, cell, row, count);
        }
        for (tally, format) in self.times.iter_mut().zip(TimeFormat::ALL) {
            tally.see(format.parse(cell).is_some(), cell, row, count);
        }
        let is_number = bare.filter(|(bare, _)| {
            NumberFormat::DIGITS.iter().any(|(decimal, group)| bare.value(*decimal, *group).is_some())
        });
        match is_number {
            Some((_, Unit::None)) => first_of(&mut self.bare, cell, row),
            Some((_, unit)) => {
                self.n_unit += count;
                if self.unit == Unit::None {
                    self.unit = unit;
                } else if self.unit != unit {
                    first_of(&mut self.stranger, cell, row);
                }
            }
            None => {}
        }
        self.has_point |= cell.contains('.');
        self.has_comma |= cell.contains(',');
    }

    /// Looks at texts until it is clear that they are nothing else.
    pub fn of_texts(texts: &Texts) -> Self {
        let mut guess = Self::default();
        let occurrences = texts.occurrences();
        let n: usize = occurrences.iter().map(|(count, _)| count).sum();
        for (k, (text, (count, first))) in texts.values().iter().zip(occurrences).enumerate() {
            if count > 0 {
                guess.see(text, first + 1, count);
            }
            if k % HOPELESS == HOPELESS - 1 && guess.is_hopeless(n) {
                guess.n = n;
                break;
            }
        }
        guess
    }

    /// Whether too few of `n` cells can be numbers or dates for any to be suspect.
    fn is_hopeless(&self, n: usize) -> bool {
        let most = self.digits.iter().chain(&self.times).chain([&self.bools]).map(|tally| tally.n).max();
        (self.n - most.unwrap_or(0)) as f64 > (1.0 - NEARLY_ALL) * n as f64
    }

    /// What a column is to be read as first: text if all cells must be seen to tell.
    pub fn likely(&self, commas: bool) -> Kind {
        let verdict = self.verdict(commas);
        if self.n == 0 || verdict.or.is_some() { Kind::Text } else { verdict.kind }
    }

    /// Whether decimal commas in other columns would change the reading.
    pub fn depends_on_commas(&self) -> bool {
        self.verdict(true).kind != self.verdict(false).kind
    }

    /// Whether decimal commas are the only way to read these cells.
    pub fn has_decimal_commas(&self) -> bool {
        let reads = |wanted: Decimal| {
            let mut ways = self.digits.iter().zip(NumberFormat::DIGITS);
            ways.any(|(tally, (decimal, _))| decimal == wanted && self.n > 0 && tally.n == self.n)
        };
        reads(Decimal::Comma) && !reads(Decimal::Point)
    }

    /// What the column is; `commas` if other columns of the file have decimal commas.
    pub fn verdict(&self, commas: bool) -> Verdict {
        let sure = |kind| Verdict { kind, suspect: None, or: None };
        if self.n == 0 {
            return sure(Kind::NUMBER);
        }
        if self.bools.n == self.n {
            return sure(Kind::Bool);
        }
        if let Some((kind, or)) = self.number(commas) {
            return Verdict { kind, suspect: None, or };
        }
        if let Some((kind, or)) = self.time() {
            return Verdict { kind, suspect: None, or };
        }
        Verdict { kind: Kind::Text, suspect: self.suspect(), or: None }
    }

    /// What a column is that should be of one kind, on request; the format that reads most cells if none reads all.
    pub fn wished(&self, wish: Wish, commas: bool) -> Kind {
        let most = |tallies: &[Tally]| {
            // Of equals `max_by_key` takes the last.
            tallies.iter().enumerate().rev().max_by_key(|(_, tally)| tally.n).map_or(0, |(i, _)| i)
        };
        match wish {
            Wish::As(kind) => kind,
            Wish::Number => self.number(commas).map_or_else(
                || {
                    let (decimal, group) = NumberFormat::DIGITS[most(&self.digits)];
                    let unit = if 2 * self.n_unit > self.n { self.unit } else { Unit::None };
                    Kind::Number(NumberFormat { decimal, group, unit })
                },
                |(kind, _)| kind,
            ),
            Wish::Time => {
                self.time().map_or_else(|| Kind::Time(TimeFormat::ALL[most(&self.times)]), |(kind, _)| kind)
            }
        }
    }

    /// The number format that reads all cells, and another that reads other values.
    fn number(&self, commas: bool) -> Option<(Kind, Option<Kind>)> {
        if self.other_unit().is_some() {
            return None;
        }
        let reads = |decimal, group| {
            let i = NumberFormat::DIGITS.iter().position(|way| *way == (decimal, group));
            i.is_some_and(|i| self.digits[i].n == self.n)
        };
        let kind = |(decimal, group)| Kind::Number(NumberFormat { decimal, group, unit: self.unit });
        // `1.234` and `1,234` have two readings; the other columns of the file tell which is likelier.
        let point = (Decimal::Point, None);
        let german = (Decimal::Comma, Some(Group::Point));
        if reads(point.0, point.1) && reads(german.0, german.1) && self.has_point {
            let (first, second) = if commas { (german, point) } else { (point, german) };
            return Some((kind(first), commas.then(|| kind(second))));
        }
        let english = (Decimal::Point, Some(Group::Comma));
        let comma = (Decimal::Comma, None);
        if reads(english.0, english.1) && reads(comma.0, comma.1) && self.has_comma {
            let (first, second) = if commas { (comma, english) } else { (english, comma) };
            return Some((kind(first), Some(kind(second))));
        }
        NumberFormat::DIGITS.into_iter().find(|way| reads(way.0, way.1)).map(|way| (kind(way), None))
    }

    /// The time format that reads all cells, and another that reads other values.
    fn time(&self) -> Option<(Kind, Option<Kind>)> {
        let mut formats = TimeFormat::ALL.into_iter().zip(&self.times).filter(|(_, tally)| tally.n == self.n);
        let (first, _) = formats.next()?;
        Some((Kind::Time(first), formats.next().map(|(second, _)| Kind::Time(second))))
    }

    /// The first number whose unit is not that of the others: money may lack it, per cent may not.
    fn other_unit(&self) -> Option<&(usize, String)> {
        let bare = self.bare.as_ref().filter(|_| self.unit == Unit::Percent);
        self.stranger.as_ref().or(bare)
    }

    /// A cell that is not what nearly all others are.
    fn suspect(&self) -> Option<Suspect> {
        let nearly = |tally: &&Tally| tally.n as f64 > NEARLY_ALL * self.n as f64;
        let best =
            |tallies: &[Tally]| tallies.iter().rev().max_by_key(|tally| tally.n).filter(nearly).cloned();
        let suspect = |(row, value): (usize, String), expected| Suspect { row, value, expected };
        if let Some(best) = best(&self.digits) {
            let other = best.first_other.map(|first| suspect(first, "number"));
            return other.or_else(|| Some(suspect(self.other_unit()?.clone(), OTHER_UNIT)));
        }
        best(&self.times)?.first_other.map(|first| suspect(first, "date"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(cells: &[&str], commas: bool) -> Verdict {
        let mut guess = Guess::default();
        cells.iter().enumerate().for_each(|(i, cell)| guess.see(cell, i + 1, 1));
        guess.verdict(commas)
    }

    #[test]
    fn the_first_format_that_reads_every_cell_is_meant() {
        for (cells, expected) in [
            (&["1", "2.5", "-3e4", ""][..], "number"),
            (&["true", "FALSE", "NA"], "bool"),
            (&["true", "1"], "text"),
            (&["1,175.46", "850.00"], "number 1,234.5"),
            (&["83,1", "7"], "number 1234,5"),
            (&["1.234,50", "12,5"], "number 1.234,5"),
            (&["1.234.567", "12"], "number 1.234,5"),
            (&["1'234.50", "12"], "number 1'234.5"),
            (&["1\u{202f}234,5", "12"], "number 1 234,5"),
            (&["€1175.46", "€3"], "number 1234.5 €"),
            (&["$1,175.46", "3"], "number 1,234.5 $"),
            (&["CHF 12.50", "CHF 3"], "number 1234.5 CHF"),
            (&["12 %", "13.5%"], "number 1234.5 %"),
            (&["12,5 %", "13%"], "number 1234,5 %"),
            (&["12 %", "13"], "text"),
            (&["$12", "€13"], "text"),
            (&["(12)", "13"], "number 1,234.5"),
            (&["2024-12-31", "2024-01-01 08:00"], "time YYYY-MM-DD"),
            (&["31.12.2024", "1.1.2024"], "time DD.MM.YYYY"),
            (&["12/31/2024", "1/2/2024"], "time MM/DD/YYYY"),
            (&["1/2/2024", "31/12/2024"], "time DD/MM/YYYY"),
            (&["8:15", "23:59:59"], "time HH:MM"),
            (&["Bern", "Aarau"], "text"),
            (&["", "NA"], "number"),
            (&["inf", "1"], "number"),
        ] {
            let found = verdict(cells, false);
            assert_eq!(found.kind.to_string(), expected, "{cells:?}");
            assert_eq!(found.or, None, "{cells:?}");
        }
    }

    #[test]
    fn two_readings_are_settled_by_the_rest_of_the_file_and_told() {
        let commas = verdict(&["1,234", "2,345"], true);
        assert_eq!(
            (commas.kind.to_string(), commas.or.unwrap().to_string()),
            ("number 1234,5".into(), "number 1,234.5".into())
        );
        let points = verdict(&["1,234", "2,345"], false);
        assert_eq!((points.or, Some(points.kind)), (Some(commas.kind), commas.or));
        assert_eq!(verdict(&["1.234", "850"], true).kind.to_string(), "number 1.234,5");
        assert_eq!(verdict(&["1.234", "850"], false).kind, Kind::NUMBER);
        assert_eq!(verdict(&["1.5", "850"], true).kind, Kind::NUMBER);
        let dates = verdict(&["1/2/2024", "3/4/2024"], false);
        assert_eq!(dates.kind.to_string(), "time MM/DD/YYYY");
        assert_eq!(dates.or.unwrap().to_string(), "time DD/MM/YYYY");
    }

    #[test]
    fn one_stranger_among_many_is_suspect() {
        let among = |cell: &str, many: &str| {
            let cells: Vec<&str> = std::iter::repeat_n(many, 10).chain([cell]).collect();
            verdict(&cells, false).suspect.map(|suspect| (suspect.row, suspect.expected))
        };
        assert_eq!(among("1o", "1"), Some((11, "number")));
        assert_eq!(among("1o", "€1,000"), Some((11, "number")));
        assert_eq!(among("$5", "€1,000"), Some((11, "number of the same unit")));
        assert_eq!(among("5", "5 %"), Some((11, "number of the same unit")));
        assert_eq!(among("yesterday", "2024-12-31"), Some((11, "date")));
        assert_eq!(among("x", "y"), None);
    }
}
