//! Points in time as people write them, in microseconds since 1970-01-01 UTC.
//!
//! A date may have a time of day behind it, after a blank or `T`: `HH:MM`, seconds, fractions, AM or PM, and `Z`
//! or an offset from UTC; without one it is taken as it stands. Years of two digits are 1969–2068.

use std::fmt;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// How points in time are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeFormat {
    /// A date, perhaps with a time of day behind.
    Date {
        /// Which part comes first.
        order: DateOrder,
        /// What stands between the parts.
        separator: DateSeparator,
    },
    /// A time of day alone.
    Clock,
}

/// The order of year, month and day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateOrder {
    /// Year, month, day.
    Year,
    /// Day, month, year.
    Day,
    /// Month, day, year.
    Month,
}

/// What stands between the parts of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateSeparator {
    /// `-`
    Hyphen,
    /// `/`
    Slash,
    /// `.`
    Point,
}

/// A point in time as a calendar and a clock show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Year of the Gregorian calendar.
    pub year: i64,
    /// From 1.
    pub month: u32,
    /// From 1.
    pub day: u32,
    /// From 0 on Monday.
    pub weekday: u32,
    /// Days since the first of January, from 0.
    pub day_of_year: u32,
    /// From 0.
    pub hour: u32,
    /// From 0.
    pub minute: u32,
    /// From 0.
    pub second: u32,
    /// Parts of a second.
    pub microsecond: u32,
}

const fn date(order: DateOrder, separator: DateSeparator) -> TimeFormat {
    TimeFormat::Date { order, separator }
}

impl TimeFormat {
    /// Dates as ISO 8601 has them.
    pub const ISO: Self = date(DateOrder::Year, DateSeparator::Hyphen);

    /// Every format; of two that read a column the first is meant. So 3/4/2024 is in March, as the United States
    /// and most programs have it, and 3.4.2024 and 3-4-2024 are in April.
    pub(super) const ALL: [Self; 10] = [
        Self::ISO,
        date(DateOrder::Year, DateSeparator::Slash),
        date(DateOrder::Year, DateSeparator::Point),
        date(DateOrder::Day, DateSeparator::Point),
        date(DateOrder::Month, DateSeparator::Slash),
        date(DateOrder::Day, DateSeparator::Slash),
        date(DateOrder::Day, DateSeparator::Hyphen),
        date(DateOrder::Month, DateSeparator::Hyphen),
        date(DateOrder::Month, DateSeparator::Point),
        Self::Clock,
    ];

    /// The point in time of a trimmed cell, in microseconds since 1970-01-01 UTC.
    pub fn parse(self, cell: &str) -> Option<i64> {
        let bytes = cell.as_bytes();
        // Quick to say no: nothing but a digit begins a date or a time of day.
        if !bytes.first()?.is_ascii_digit() {
            return None;
        }
        let Self::Date { order, separator } = self else { return clock(bytes) };
        let separator = match separator {
            DateSeparator::Hyphen => b'-',
            DateSeparator::Slash => b'/',
            DateSeparator::Point => b'.',
        };
        let (first, n_first, rest) = digits(bytes)?;
        let (second, n_second, rest) = digits(rest.strip_prefix(&[separator])?)?;
        // A month without a day is its first.
        let (third, n_third, rest) = match rest.strip_prefix(&[separator]) {
            Some(rest) => digits(rest)?,
            None if order == DateOrder::Year && separator == b'-' && rest.is_empty() => (1, 1, rest),
            None => return None,
        };
        let ((year, n_year), month, day) = match order {
            DateOrder::Year => ((first, n_first), second, third),
            DateOrder::Day => ((third, n_third), second, first),
            DateOrder::Month => ((third, n_third), first, second),
        };
        let short = if order == DateOrder::Year { n_second.max(n_third) } else { n_first.max(n_second) };
        let year = match n_year {
            4 => year,
            2 if order != DateOrder::Year => year + if year < 69 { 2000 } else { 1900 },
            _ => return None,
        };
        if short > 2 || !(1..=12).contains(&month) || day == 0 || day > days_in(year, month) {
            return None;
        }
        let midnight = days_from_civil(year, month, day) * DAY;
        let rest = rest.strip_prefix(b"T").or_else(|| rest.strip_prefix(b" ")).unwrap_or(rest);
        if rest.is_empty() {
            return Some(midnight);
        }
        Some(midnight + clock(rest)?)
    }
}

impl fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Date { order, separator } = self else { return f.write_str("HH:MM") };
        let separator = match separator {
            DateSeparator::Hyphen => "-",
            DateSeparator::Slash => "/",
            DateSeparator::Point => ".",
        };
        let parts = match order {
            DateOrder::Year => ["YYYY", "MM", "DD"],
            DateOrder::Day => ["DD", "MM", "YYYY"],
            DateOrder::Month => ["MM", "DD", "YYYY"],
        };
        f.write_str(&parts.join(separator))
    }
}

/// The number that text begins with, of at most nine digits, how many they are, and what follows.
fn digits(text: &[u8]) -> Option<(i64, usize, &[u8])> {
    let n = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if n == 0 || n > 9 {
        return None;
    }
    let value = text[..n].iter().fold(0, |sum, byte| 10 * sum + i64::from(byte - b'0'));
    Some((value, n, &text[n..]))
}

/// Microseconds since midnight UTC of `HH:MM[:SS[.f]]`, AM or PM, and an offset.
fn clock(text: &[u8]) -> Option<i64> {
    let (mut hour, n_hour, rest) = digits(text)?;
    let (minute, n_minute, mut rest) = digits(rest.strip_prefix(b":")?)?;
    let (mut second, mut fraction) = (0, 0);
    if let Some(after) = rest.strip_prefix(b":") {
        let n_second;
        (second, n_second, rest) = digits(after)?;
        if n_second != 2 {
            return None;
        }
        if let Some(after) = rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) {
            let (value, n, after) = digits(after)?;
            fraction =
                if n <= 6 { value * 10_i64.pow(6 - n as u32) } else { value / 10_i64.pow(n as u32 - 6) };
            rest = after;
        }
    }
    let rest = rest.trim_ascii();
    let half = rest.get(..2).map(<[u8]>::to_ascii_uppercase);
    let (half, rest) = match half.as_deref() {
        Some(b"AM") => (Some(0), &rest[2..]),
        Some(b"PM") => (Some(12), &rest[2..]),
        _ => (None, rest),
    };
    if let Some(half) = half {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + half;
    }
    // 23:59:60 is a leap second.
    if n_hour > 2 || n_minute != 2 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction - offset(rest)?)
}

/// Microseconds ahead of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let (ahead, rest) = match text.split_first() {
        None => return Some(0),
        Some((b'+', rest)) => (1, rest),
        Some((b'-', rest)) => (-1, rest),
        _ => return matches!(text, b"Z" | b"z" | b"UTC" | b"GMT").then_some(0),
    };
    let (value, n, rest) = digits(rest)?;
    let (hours, minutes) = match (n, rest) {
        (2, []) => (value, 0),
        (4, []) => (value / 100, value % 100),
        (2, [b':', rest @ ..]) => match digits(rest)? {
            (minutes, 2, []) => (value, minutes),
            _ => return None,
        },
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(ahead * (hours * 60 + minutes) * 60_000_000)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01. Years begin in March, so that a leap day is the last of its year, and come in eras of 400.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

impl Civil {
    /// What calendar and clock show in UTC, so many microseconds after 1970-01-01.
    pub fn of(microseconds: i64) -> Self {
        let (days, of_day) = (microseconds.div_euclid(DAY), microseconds.rem_euclid(DAY));
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * from_march + 2) / 153;
        let month = (month_from_march + 2) % 12 + 1;
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        let seconds = of_day / 1_000_000;
        Self {
            year,
            month: month as u32,
            day: (from_march - (153 * month_from_march + 2) / 5 + 1) as u32,
            // 1970-01-01 was a Thursday.
            weekday: (days + 3).rem_euclid(7) as u32,
            day_of_year: (days - days_from_civil(year, 1, 1)) as u32,
            hour: (seconds / 3600) as u32,
            minute: (seconds / 60 % 60) as u32,
            second: (seconds % 60) as u32,
            microsecond: (of_day % 1_000_000) as u32,
        }
    }
}

/// As ISO 8601 has it: the date alone at midnight, else with the time of day.
impl fmt::Display for Civil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)?;
        if (self.hour, self.minute, self.second, self.microsecond) == (0, 0, 0, 0) {
            return Ok(());
        }
        write!(f, "T{:02}:{:02}:{:02}", self.hour, self.minute, self.second)?;
        if self.microsecond > 0 { write!(f, ".{:06}", self.microsecond) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(format: &str, cell: &str) -> Option<String> {
        let format = TimeFormat::ALL.into_iter().find(|f| f.to_string() == format).unwrap();
        format.parse(cell).map(|time| Civil::of(time).to_string())
    }

    #[test]
    fn calendar_and_count_of_days_are_inverse_from_year_0_to_9999() {
        let mut day = days_from_civil(0, 1, 1);
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        for year in 0..10_000 {
            let first = day;
            for month in 1..=12 {
                for day_of_month in 1..=days_in(year, month) {
                    assert_eq!(days_from_civil(year, month, day_of_month), day);
                    let civil = Civil::of(day * DAY + DAY - 1);
                    assert_eq!((civil.year, i64::from(civil.month)), (year, month));
                    assert_eq!(i64::from(civil.day), day_of_month);
                    assert_eq!(i64::from(civil.day_of_year), day - first);
                    day += 1;
                }
            }
        }
        let civil = Civil::of(days_from_civil(2024, 2, 29) * DAY);
        assert_eq!(civil.weekday, 3, "29 February 2024 was a Thursday");
    }

    #[test]
    fn dates_and_times_are_read_as_they_are_written() {
        for (format, cell, expected) in [
            ("YYYY-MM-DD", "2024-12-31", Some("2024-12-31")),
            ("YYYY-MM-DD", "2024-12-31T08:05", Some("2024-12-31T08:05:00")),
            ("YYYY-MM-DD", "2024-12-31 08:05:09.25", Some("2024-12-31T08:05:09.250000")),
            ("YYYY-MM-DD", "2024-12-31T23:30:00Z", Some("2024-12-31T23:30:00")),
            ("YYYY-MM-DD", "2024-12-31T23:30:00-01:00", Some("2025-01-01T00:30:00")),
            ("YYYY-MM-DD", "2024-12-31 23:30:00 +0130", Some("2024-12-31T22:00:00")),
            ("YYYY-MM-DD", "2024-12-31T00:00:00.123456789", Some("2024-12-31T00:00:00.123456")),
            ("YYYY-MM-DD", "2024-03", Some("2024-03-01")),
            ("YYYY-MM-DD", "2023-02-29", None),
            ("YYYY-MM-DD", "2024-13-01", None),
            ("YYYY-MM-DD", "2024-1-1-1", None),
            ("YYYY-MM-DD", "24-12-31", None),
            ("YYYY-MM-DD", "2024-12-31 25:00", None),
            ("YYYY-MM-DD", "2024-12-31 morning", None),
            ("YYYY/MM/DD", "2024/12/31", Some("2024-12-31")),
            ("DD.MM.YYYY", "31.12.2024", Some("2024-12-31")),
            ("DD.MM.YYYY", "1.2.24 7:30", Some("2024-02-01T07:30:00")),
            ("DD.MM.YYYY", "1.2.70", Some("1970-02-01")),
            ("DD.MM.YYYY", "1.2.3", None),
            ("MM/DD/YYYY", "12/31/2024 1:05 PM", Some("2024-12-31T13:05:00")),
            ("MM/DD/YYYY", "12/31/2024 12:05 am", Some("2024-12-31T00:05:00")),
            ("MM/DD/YYYY", "31/12/2024", None),
            ("DD/MM/YYYY", "31/12/2024", Some("2024-12-31")),
            ("HH:MM", "08:15:30", Some("1970-01-01T08:15:30")),
            ("HH:MM", "24:00", None),
            ("HH:MM", "8", None),
        ] {
            assert_eq!(parse(format, cell).as_deref(), expected, "{format}: {cell}");
        }
    }
}
