//! A point in time is the number of days since the first one in training, and where calendar and clock stand.
//!
//! ```text
//! days     (t − t₀) / day                                  always
//! season   sin, cos of 2π · day of the year / length of it  if training spans a year
//! weekday  one input per weekday that occurred              if it spans two weeks, and not one day of each month
//! hour     sin, cos of 2π · time of day / day               if times of day differ, and it spans two days
//! ```
//!
//! A cycle is coded only if training has gone through it: within part of a year the season says nothing that the
//! number of days does not say. Times of day without a date are coded by their hour alone. A missing cell
//! has the mean of the days and 0 elsewhere, and an input that tells so if training had holes.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::number::missing_name;
use super::sink::Sink;
use super::{Cells, is_false};
use crate::Result;
use crate::table::Civil;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

const YEAR: i64 = 365 * DAY;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// How a point in time becomes inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeCoding {
    /// The first time in training, in microseconds since 1970.
    pub start: i64,
    /// Training mean of the days since then.
    pub mean: f64,
    /// Whether the season is an input.
    #[serde(default, skip_serializing_if = "is_false")]
    pub season: bool,
    /// Weekdays with an input of their own, from 0 on Monday.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weekdays: Vec<u32>,
    /// Whether the time of day is an input.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hour: bool,
    /// Whether an input tells which cells were missing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub missing: bool,
}

fn days(microseconds: i64) -> f64 {
    microseconds as f64 / DAY as f64
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl TimeCoding {
    pub(super) fn learn(cells: &Cells<'_>) -> Result<Self> {
        let mut times = Vec::with_capacity(cells.len());
        for i in 0..cells.len() {
            times.extend(cells.time(i)?);
        }
        let missing = times.len() < cells.len();
        let (start, end) = (times.iter().min().copied(), times.iter().max().copied());
        let (start, end) = (start.unwrap_or(0), end.unwrap_or(0));
        let (mut mean, mut count) = (0.0, 0.0);
        let mut occurs = [false; 7];
        let (mut of_month, mut of_day) = (Spread::default(), Spread::default());
        for &time in &times {
            count += 1.0;
            mean += (days(time.saturating_sub(start)) - mean) / count;
            let civil = Civil::of(time);
            occurs[civil.weekday as usize % 7] = true;
            of_month.add(i64::from(civil.day));
            of_day.add(time.rem_euclid(DAY));
        }
        let span = end.saturating_sub(start);
        let weekdays: Vec<u32> = (0..7).filter(|&day| occurs[day as usize]).collect();
        let by_weekday = span >= 14 * DAY && weekdays.len() > 1 && of_month.varies;
        let clock = times.iter().all(|time| (0..DAY).contains(time));
        Ok(Self {
            start,
            mean,
            season: span >= YEAR,
            weekdays: if by_weekday { weekdays } else { Vec::new() },
            hour: of_day.varies && (clock || span >= 2 * DAY),
            missing,
        })
    }

    pub(super) fn names(&self, column: &str) -> Vec<String> {
        let mut names = vec![column.to_owned()];
        if self.season {
            names.extend(["season sin", "season cos"].map(|part| format!("{column} {part}")));
        }
        names.extend(self.weekdays.iter().map(|&day| format!("{column}={}", WEEKDAYS[day as usize % 7])));
        if self.hour {
            names.extend(["hour sin", "hour cos"].map(|part| format!("{column} {part}")));
        }
        names.extend(self.missing.then(|| missing_name(column)));
        names
    }

    /// What besides the number of days is coded, in words.
    pub(super) fn parts(&self) -> String {
        let parts = [("season", self.season), ("weekday", !self.weekdays.is_empty()), ("hour", self.hour)];
        let parts: Vec<_> = parts.into_iter().filter_map(|(name, used)| used.then_some(name)).collect();
        if parts.is_empty() { String::new() } else { format!("days, {}", parts.join(", ")) }
    }

    pub(super) fn encode(&self, cells: &Cells<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let weekday_at = 1 + 2 * usize::from(self.season);
        let hour_at = weekday_at + self.weekdays.len();
        let missing_at = hour_at + 2 * usize::from(self.hour);
        for i in 0..cells.len() {
            let Some(time) = cells.time(i)? else {
                sink.set(0, i, self.mean);
                sink.hole(cells, i, self.missing.then_some(missing_at))?;
                continue;
            };
            sink.set(0, i, days(time.saturating_sub(self.start)));
            let civil = Civil::of(time);
            let of_day = days(time.rem_euclid(DAY));
            if self.season {
                let length = if is_leap(civil.year) { 366.0 } else { 365.0 };
                let angle = TAU * (f64::from(civil.day_of_year) + of_day) / length;
                sink.set(1, i, angle.sin());
                sink.set(2, i, angle.cos());
            }
            if let Some(k) = self.weekdays.iter().position(|&day| day == civil.weekday) {
                sink.set(weekday_at + k, i, 1.0);
            }
            if self.hour {
                let angle = TAU * of_day;
                sink.set(hour_at, i, angle.sin());
                sink.set(hour_at + 1, i, angle.cos());
            }
        }
        Ok(())
    }
}

/// Whether numbers differ.
#[derive(Default)]
struct Spread {
    first: Option<i64>,
    varies: bool,
}

impl Spread {
    fn add(&mut self, value: i64) {
        self.varies |= *self.first.get_or_insert(value) != value;
    }
}
