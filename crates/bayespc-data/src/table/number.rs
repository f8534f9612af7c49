//! Numbers as people write them: decimal comma, groups of three digits, currencies, per cent.
//!
//! A per cent sign or a currency is left out, not calculated with: `12 %` is 12. Parentheses and `−` mean
//! negative in every format but the plain one.

use std::fmt;

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberFormat {
    /// What stands before the fraction.
    pub decimal: Decimal,
    /// What may stand between groups of three digits.
    pub group: Option<Group>,
    /// What stands before or behind.
    pub unit: Unit,
}

/// The decimal sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decimal {
    /// `.`
    Point,
    /// `,`
    Comma,
}

/// What may stand between groups of three digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// `,`
    Comma,
    /// `.`
    Point,
    /// `'` or `’`
    Apostrophe,
    /// A blank of any width, broken or not.
    Blank,
}

/// What stands before or behind a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nothing.
    None,
    /// `%`, in every cell.
    Percent,
    /// The same currency wherever there is one.
    Currency(Currency),
}

/// A currency: its place in the list of those that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Currency(u8);

/// What money is called; of two that begin alike the longer comes first.
const CURRENCIES: [&str; 32] = [
    "US$", "R$", "A$", "C$", "€", "$", "£", "¥", "₹", "₽", "₩", "₺", "₫", "฿", "₴", "₪", "EUR", "USD", "GBP",
    "CHF", "JPY", "CNY", "INR", "AUD", "CAD", "SEK", "NOK", "DKK", "PLN", "Fr.", "kr", "zł",
];

/// Digits of a number longer than any that a double tells apart.
const LONGEST: usize = 64;

impl Currency {
    /// Its sign or code.
    pub fn text(self) -> &'static str {
        CURRENCIES[usize::from(self.0)]
    }

    fn all() -> impl Iterator<Item = Self> {
        (0..CURRENCIES.len() as u8).map(Self)
    }
}

impl Group {
    fn is(self, c: char) -> bool {
        match self {
            Self::Comma => c == ',',
            Self::Point => c == '.',
            Self::Apostrophe => c == '\'' || c == '’',
            Self::Blank => matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}'),
        }
    }
}

impl NumberFormat {
    /// As every program writes numbers.
    pub const PLAIN: Self = Self { decimal: Decimal::Point, group: None, unit: Unit::None };

    /// The ways to write digits, from the most to the least usual.
    pub(super) const DIGITS: [(Decimal, Option<Group>); 8] = [
        (Decimal::Point, None),
        (Decimal::Point, Some(Group::Comma)),
        (Decimal::Comma, None),
        (Decimal::Comma, Some(Group::Point)),
        (Decimal::Point, Some(Group::Apostrophe)),
        (Decimal::Comma, Some(Group::Blank)),
        (Decimal::Point, Some(Group::Blank)),
        (Decimal::Comma, Some(Group::Apostrophe)),
    ];

    /// Every format there is.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Self::DIGITS.into_iter().flat_map(|(decimal, group)| {
            let units = [Unit::None, Unit::Percent].into_iter().chain(Currency::all().map(Unit::Currency));
            units.map(move |unit| Self { decimal, group, unit })
        })
    }

    /// The number of a trimmed cell.
    pub fn parse(self, cell: &str) -> Option<f64> {
        if self == Self::PLAIN {
            return parse_plain(cell);
        }
        let (number, unit) = split_unit(cell)?;
        let fits = match self.unit {
            Unit::None => unit == Unit::None,
            Unit::Percent => unit == Unit::Percent,
            Unit::Currency(_) => unit == self.unit || unit == Unit::None,
        };
        if fits { number.value(self.decimal, self.group) } else { None }
    }
}

impl fmt::Display for NumberFormat {
    /// 1234.5 in this format.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = match self.group {
            None => "",
            Some(Group::Comma) => ",",
            Some(Group::Point) => ".",
            Some(Group::Apostrophe) => "'",
            Some(Group::Blank) => " ",
        };
        let decimal = if self.decimal == Decimal::Point { '.' } else { ',' };
        write!(f, "1{group}234{decimal}5")?;
        match self.unit {
            Unit::None => Ok(()),
            Unit::Percent => f.write_str(" %"),
            Unit::Currency(currency) => write!(f, " {}", currency.text()),
        }
    }
}

/// A number as every program writes it; infinite ones too, which are refused later by name.
pub(super) fn parse_plain(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|x: &f64| !x.is_nan())
}

/// Digits and their signs, and whether the number is negative.
#[derive(Clone, Copy)]
pub(super) struct Bare<'a> {
    digits: &'a str,
    negative: bool,
}

/// A cell without its unit and sign; `None` if it cannot be a number.
pub(super) fn split_unit(cell: &str) -> Option<(Bare<'_>, Unit)> {
    let (mut rest, mut negative) = (cell, false);
    if let Some(inner) = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        (rest, negative) = (inner.trim(), true);
    }
    let mut unit = Unit::None;
    let mut signed = negative;
    let mut sign = |rest: &mut &str, negative: &mut bool| {
        for (mark, minus) in [('-', true), ('−', true), ('+', false)] {
            if let Some(after) = rest.strip_prefix(mark).filter(|_| !signed) {
                (*rest, *negative, signed) = (after.trim_start(), minus, true);
            }
        }
    };
    sign(&mut rest, &mut negative);
    if !rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | ',')) {
        let (currency, after) =
            Currency::all().find_map(|currency| Some((currency, rest.strip_prefix(currency.text())?)))?;
        (unit, rest) = (Unit::Currency(currency), after.trim_start());
        sign(&mut rest, &mut negative);
    }
    if !rest.ends_with(|c: char| c.is_ascii_digit()) {
        let strip =
            |currency: Currency| Some((Unit::Currency(currency), rest.strip_suffix(currency.text())?));
        let percent = rest.strip_suffix('%').map(|before| (Unit::Percent, before));
        match percent.or_else(|| Currency::all().find_map(strip)) {
            Some(_) if unit != Unit::None => return None,
            Some((found, before)) => (unit, rest) = (found, before.trim_end()),
            // `12.` is a number, `12x` is none.
            None if rest.ends_with(['.', ',']) => {}
            None => return None,
        }
    }
    Some((Bare { digits: rest, negative }, unit))
}

impl Bare<'_> {
    /// Its value if digits are written like this.
    pub(super) fn value(self, decimal: Decimal, group: Option<Group>) -> Option<f64> {
        let decimal = if decimal == Decimal::Point { '.' } else { ',' };
        let is_group = |c: char| group.is_some_and(|group| group.is(c));
        let (whole, fraction) = self.digits.split_once(decimal).unwrap_or((self.digits, ""));
        let grouped = whole.contains(is_group);
        if grouped {
            let mut groups = whole.split(is_group);
            let first = groups.next()?;
            // 0,123 is no group of a larger number.
            if first.is_empty()
                || first.len() > 3
                || first.starts_with('0')
                || groups.any(|rest| rest.len() != 3)
            {
                return None;
            }
        }
        // An exponent stands behind the fraction, or behind ungrouped digits that have none.
        let (digits, mantissa) = if fraction.is_empty() && !grouped {
            (without_exponent(whole)?, "")
        } else {
            (whole, without_exponent(fraction)?)
        };
        let is_digit = |c: char| c.is_ascii_digit();
        if !digits.chars().all(|c| is_digit(c) || is_group(c)) || !mantissa.chars().all(is_digit) {
            return None;
        }
        let mut plain = [0_u8; LONGEST];
        let mut length = 0;
        let whole = whole.chars().filter(|c| !is_group(*c));
        for c in whole.chain(['.']).chain(fraction.chars()) {
            *plain.get_mut(length)? = u8::try_from(c).ok()?;
            length += 1;
        }
        let plain = str::from_utf8(&plain[..length]).ok()?;
        let value = parse_plain(if fraction.is_empty() { plain.strip_suffix('.')? } else { plain })?;
        Some(if self.negative { -value } else { value })
    }
}

/// What stands before `e±12`; `None` if what follows an `e` is no exponent.
fn without_exponent(digits: &str) -> Option<&str> {
    let Some((mantissa, power)) = digits.split_once(['e', 'E']) else { return Some(digits) };
    let power = power.strip_prefix(['+', '-']).unwrap_or(power);
    (!power.is_empty() && power.bytes().all(|byte| byte.is_ascii_digit())).then_some(mantissa)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(format: &str, cell: &str) -> Option<f64> {
        NumberFormat::all().find(|f| f.to_string() == format).unwrap().parse(cell)
    }

    #[test]
    fn every_format_reads_its_own_example_and_no_halves_of_it() {
        for format in NumberFormat::all() {
            let example = format.to_string();
            assert_eq!(format.parse(&example), Some(1234.5), "{example}");
            assert_eq!(format.parse(&format!("-{example}")), Some(-1234.5), "{example}");
        }
    }

    #[test]
    fn groups_have_three_digits_and_the_first_is_not_zero() {
        for (cell, expected) in [
            ("1,234", Some(1234.0)),
            ("12,345,678.25", Some(12_345_678.25)),
            ("850", Some(850.0)),
            ("1234567.5", Some(1_234_567.5)),
            ("(1,234)", Some(-1234.0)),
            ("−5", Some(-5.0)),
            ("1e3", Some(1000.0)),
            ("0,123", None),
            ("1,23", None),
            ("1,2345", None),
            ("1234,567", None),
            (",234", None),
            ("1,234.5.6", None),
            ("1,23a", None),
            ("", None),
            (".", None),
            ("-", None),
            ("--5", None),
            ("e5", None),
        ] {
            assert_eq!(parse("1,234.5", cell), expected, "{cell}");
        }
        assert_eq!(parse("1234,5", "83,1"), Some(83.1));
        assert_eq!(parse("1234,5", "1.234,5"), None);
        assert_eq!(parse("1234,5", "2,5e-3"), Some(2.5e-3));
        assert_eq!(parse("1 234,5", "1\u{202f}234,50"), Some(1234.5));
    }

    #[test]
    fn currencies_stand_before_or_behind_and_per_cent_behind_every_cell() {
        for cell in ["€1,175.46", "€ 1,175.46", "1,175.46 €", "1,175.46€", "1175.46", "+€1175.46"] {
            assert_eq!(parse("1,234.5 €", cell), Some(1175.46), "{cell}");
        }
        assert_eq!(parse("1,234.5 €", "-€5"), Some(-5.0));
        assert_eq!(parse("1,234.5 €", "€-5"), Some(-5.0));
        assert_eq!(parse("1,234.5 €", "(€5)"), Some(-5.0));
        assert_eq!(parse("1,234.5 €", "$5"), None);
        assert_eq!(parse("1,234.5 €", "€5€"), None);
        assert_eq!(parse("1234.5 CHF", "CHF 12.50"), Some(12.5));
        assert_eq!(parse("1234.5 %", "12.5%"), Some(12.5));
        assert_eq!(parse("1234.5 %", "12.5"), None);
    }
}
