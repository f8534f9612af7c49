//! What a person can be shown of a column: its kind, what its values were in training, and a typical one.

use bayespc::Model;
use bayespc_data::{Civil, Coding, Encoding, Kind, TimeFormat};
use serde::Serialize;
use serde_json::{Value, json};

/// Microseconds of a day.
const DAY: f64 = 86_400_000_000.0;

/// Values of a category that are listed.
const LISTED: usize = 1000;

/// Deviations on either side of the mean that stand for a range where none is known.
const DEVIATIONS: f64 = 2.5;

/// A column, for a form that asks for its value.
#[derive(Clone, Debug, Serialize)]
pub struct ColumnInfo {
    pub name: String,
    #[serde(flatten)]
    pub values: Values,
    /// A value in the middle, or the most frequent one.
    pub typical: Value,
    /// Whether some cells were missing in training.
    pub missing: bool,
    /// Number of inputs that it becomes.
    #[serde(skip)]
    pub width: usize,
}

/// The values of a column in training.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Values {
    /// Numbers.
    Number {
        /// Least and largest.
        range: (f64, f64),
        /// Between which nine in ten lie.
        usual: (f64, f64),
        /// Whether they are integers.
        integer: bool,
        /// Whether the range was seen, and is not guessed from mean and deviation.
        seen: bool,
    },
    /// Points in time, as ISO 8601 has them and in milliseconds since 1970.
    Time { range: (f64, f64), from: String, to: String, clock: bool },
    /// Texts of which there are few.
    Category { values: Vec<Share> },
    /// True or false.
    Bool { share: f64 },
    /// Words.
    Text,
}

/// A value and which share of the rows has it.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    pub value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

impl ColumnInfo {
    /// All columns of a model.
    pub fn all(model: &Model, encoding: &Encoding) -> Vec<Self> {
        let mut at = 0;
        let mut columns = Vec::with_capacity(encoding.features.len());
        for feature in &encoding.features {
            let width = feature.width();
            let (values, typical) = match &feature.coding {
                Coding::Number(coding) => {
                    let mut range = Range::of(model, at);
                    if let Some((low, high)) = coding.limits {
                        range.clamp(low, high);
                    }
                    (range.values(), json!(range.typical()))
                }
                Coding::Bool(coding) => {
                    let share = model.input_scaling().offset[at].clamp(0.0, 1.0);
                    (Values::Bool { share }, json!(coding.most_frequent))
                }
                Coding::Category(coding) => {
                    let share = |k: usize| {
                        Some(model.input_scaling().offset[at + k]).filter(|s| (0.0..=1.0).contains(s))
                    };
                    let own = coding.values.iter().enumerate();
                    let own = own.map(|(k, value)| Share { value: value.clone(), share: share(k) });
                    let rare = coding.pooled.iter().map(|value| Share { value: value.clone(), share: None });
                    let values = own.chain(rare).take(LISTED).collect();
                    (Values::Category { values }, json!(coding.values.get(coding.most_frequent)))
                }
                Coding::Time(coding) => {
                    let clock = feature.kind() == Kind::Time(TimeFormat::Clock);
                    let range = Range::of(model, at);
                    let time = |days: f64| coding.start.saturating_add((days * DAY) as i64);
                    // Whole minutes: what a person would type.
                    let minute = |time: i64| time - time.rem_euclid(60_000_000);
                    let (from, to) = (time(range.low), time(range.high));
                    let values = Values::Time {
                        range: (from as f64 / 1000.0, to as f64 / 1000.0),
                        from: written(from, clock),
                        to: written(to, clock),
                        clock,
                    };
                    (values, json!(written(minute(time(range.middle)), clock)))
                }
                Coding::Hash(_) => (Values::Text, json!("")),
            };
            let missing = has_holes(&feature.coding);
            columns.push(Self { name: feature.name.clone(), values, typical, missing, width });
            at += width;
        }
        columns
    }
}

/// Whether cells were missing in training; a text without words is one like any other.
fn has_holes(coding: &Coding) -> bool {
    match coding {
        Coding::Number(coding) => coding.missing,
        Coding::Bool(coding) => coding.missing,
        Coding::Category(coding) => coding.missing,
        Coding::Time(coding) => coding.missing,
        Coding::Hash(_) => true,
    }
}

/// A point in time as a request may have it.
pub fn written(microseconds: i64, clock: bool) -> String {
    let civil = Civil::of(microseconds);
    if clock {
        format!("{:02}:{:02}:{:02}", civil.hour, civil.minute, civil.second)
    } else {
        civil.to_string()
    }
}

/// What is known of an input's values.
struct Range {
    low: f64,
    high: f64,
    usual: (f64, f64),
    middle: f64,
    integer: bool,
    seen: bool,
}

impl Range {
    /// From quantiles that were kept, the edges of a code, or mean and deviation.
    fn of(model: &Model, input: usize) -> Self {
        let edges = || model.codes().values().next_back()?.edges().get(input).filter(|edges| edges.len() > 2);
        let mut range = if let Some(q) = model.reference().map(|reference| &reference.quantiles[input]) {
            let integer = q.iter().all(|x| x.fract() == 0.0);
            Self { low: q[0], usual: (q[1], q[5]), middle: q[3], high: q[6], integer, seen: true }
        } else if let Some(edges) = edges() {
            let last = edges.len() - 1;
            // Edges are quantiles at equal distances.
            let at = |p: f64| edges[(p * last as f64).round() as usize];
            let integer = edges.iter().all(|x| x.fract() == 0.0);
            Self {
                low: edges[0],
                usual: (at(0.05), at(0.95)),
                middle: at(0.5),
                high: edges[last],
                integer,
                seen: true,
            }
        } else {
            let (mean, deviation) = (model.input_scaling().offset[input], model.input_scaling().scale[input]);
            let around = |z: f64| (mean - z * deviation, mean + z * deviation);
            let (low, high) = around(DEVIATIONS);
            Self { low, high, usual: around(1.645), middle: mean, integer: false, seen: false }
        };
        if range.low >= range.high {
            let around = 0.1 * range.low.abs().max(1.0);
            (range.low, range.high) = (range.low - around, range.high + around);
        }
        range
    }

    fn clamp(&mut self, low: f64, high: f64) {
        for x in [&mut self.low, &mut self.high, &mut self.usual.0, &mut self.usual.1, &mut self.middle] {
            *x = x.clamp(low, high);
        }
    }

    fn values(&self) -> Values {
        Values::Number {
            range: (self.low, self.high),
            usual: self.usual,
            integer: self.integer,
            seen: self.seen,
        }
    }

    /// The middle in as many digits as tell rows apart.
    fn typical(&self) -> f64 {
        if self.seen {
            return self.middle;
        }
        let unit = 10_f64.powi(((self.high - self.low).log10().floor() as i32) - 2);
        let rounded = (self.middle / unit).round() * unit;
        if rounded.is_finite() { format!("{rounded:.12e}").parse().unwrap_or(rounded) } else { self.middle }
    }
}
