//! Axes: from values to pixels, and ticks at round numbers.
//!
//! ```text
//! linear:       pixel = start + (v − low)/(high − low) · (end − start)
//! logarithmic:  the same in log₁₀ v
//! ```
//!
//! Linear ticks are multiples of 1, 2, 2.5 or 5 · 10ᵏ. Logarithmic ticks are powers of ten, joined by 2 and 5
//! where there are few, or linear ones where the axis does not span a factor of three.

use super::text;

/// Values beyond this are treated like infinities: their differences would overflow.
const LARGEST: f64 = 1e150;

/// A labelled position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// The values an axis spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// The scale that shows all drawable values with a little room at both ends.
    pub(super) fn fit(values: impl Iterator<Item = f64>, log: bool) -> Self {
        let (low, high) = values
            .filter(|&v| drawable(v, log))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            return if log { Self { low: 0.1, high: 10.0, log } } else { Self { low: 0.0, high: 1.0, log } };
        }
        if log {
            let (mut from, mut to) = (low.log10(), high.log10());
            if to - from < 1e-9 {
                (from, to) = (from - 0.5, to + 0.5);
            }
            let room = 0.04 * (to - from);
            return Self { low: 10f64.powf(from - room), high: 10f64.powf(to + room), log };
        }
        let (mut from, mut to) = (low, high);
        // A span within rounding of its own end points cannot carry distinct ticks.
        if to - from <= 1e-12 * from.abs().max(to.abs()) {
            let half = if low == 0.0 { 1.0 } else { 0.5 * low.abs() };
            (from, to) = (low - half, low + half);
        }
        let room = 0.04 * (to - from);
        Self { low: from - room, high: to + room, log }
    }

    /// The scale from `low` to `high`, if there is one.
    pub(super) fn exactly((low, high): (f64, f64), log: bool) -> Option<Self> {
        let wide_enough = high - low > 1e-12 * low.abs().max(high.abs());
        (drawable(low, log) && drawable(high, log) && wide_enough).then_some(Self { low, high, log })
    }

    /// The smallest scale that includes both.
    pub(super) fn union(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high), log: self.log }
    }

    /// Lower and upper end.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Where a value stands: 0 at the lower end, 1 at the upper; `None` if it cannot be drawn.
    pub(super) fn fraction(&self, value: f64) -> Option<f64> {
        let fraction = if self.log {
            (value.log10() - self.low.log10()) / (self.high.log10() - self.low.log10())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        // Far outside a narrow range the place no longer matters, but overflow would.
        drawable(value, self.log).then(|| fraction.clamp(-1e9, 1e9))
    }

    /// Like `fraction`, but a bound that is infinite, or not positive on a logarithmic axis, stands just
    /// outside the end it lies beyond; only NaN has no place.
    pub(super) fn fraction_of_bound(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        Some(self.fraction(value).unwrap_or(if value > 0.0 { 1.5 } else { -0.5 }).clamp(-1e6, 1e6))
    }

    /// About `count` ticks.
    pub(super) fn ticks(&self, count: usize) -> Vec<Tick> {
        let count = count.max(2);
        if !self.log {
            return self.linear_ticks(count);
        }
        let (from, to) = (self.low.log10(), self.high.log10());
        if to - from < 0.5 {
            return self.linear_ticks(count);
        }
        let (first, last) = (from.ceil() as i32, to.floor() as i32);
        let decades = (last - first + 1).max(0) as usize;
        let tick = |exponent: i32, digit: f64| Tick {
            value: digit * 10f64.powi(exponent),
            label: decade_label(exponent, digit),
        };
        if decades < 3 && count >= 3 {
            let digits: &[f64] = if decades < 2 { &[1.0, 2.0, 5.0] } else { &[1.0, 3.0] };
            return (first - 1..=last)
                .flat_map(|exponent| digits.iter().map(move |&digit| tick(exponent, digit)))
                .filter(|t| t.value >= self.low * (1.0 - 1e-12) && t.value <= self.high * (1.0 + 1e-12))
                .collect();
        }
        let stride = i32::try_from(decades.div_ceil(count)).unwrap_or(i32::MAX).max(1);
        (first..=last).filter(|exponent| exponent.rem_euclid(stride) == 0).map(|e| tick(e, 1.0)).collect()
    }

    /// The most ticks, from `most` down, whose labels stand side by side within `pixels`.
    pub(super) fn ticks_across(&self, pixels: f64, most: usize) -> Vec<Tick> {
        (2..=most)
            .rev()
            .map(|count| self.ticks(count))
            .find(|ticks| {
                let widest = ticks.iter().map(|t| text::width(&t.label, text::SMALL)).fold(0.0, f64::max);
                let positions: Vec<f64> =
                    ticks.iter().filter_map(|t| self.fraction(t.value)).map(|f| f * pixels).collect();
                positions.windows(2).all(|pair| pair[1] - pair[0] > widest + 14.0)
            })
            .unwrap_or_else(|| self.ticks(2).into_iter().take(1).collect())
    }

    /// Unlabelled lines between the powers of ten.
    pub(super) fn minor(&self) -> Vec<f64> {
        if !self.log {
            return Vec::new();
        }
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().floor() as i32);
        if last - first > 5 {
            return Vec::new();
        }
        (first..=last)
            .flat_map(|exponent| (2..10).map(move |digit| f64::from(digit) * 10f64.powi(exponent)))
            .filter(|&v| v > self.low && v < self.high)
            .collect()
    }

    fn linear_ticks(&self, count: usize) -> Vec<Tick> {
        let rough = (self.high - self.low) / count as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|digit| digit * power)
            .find(|&step| step >= rough * (1.0 - 1e-9))
            .unwrap_or(10.0 * power);
        let slack = 1e-9 * (self.high - self.low);
        let (first, last) = (((self.low - slack) / step).ceil(), ((self.high + slack) / step).floor());
        let values: Vec<f64> = (0..=(last - first) as usize).map(|i| (first + i as f64) * step).collect();
        let labels = linear_labels(&values, step);
        values.into_iter().zip(labels).map(|(value, label)| Tick { value, label }).collect()
    }
}

fn drawable(value: f64, log: bool) -> bool {
    value.abs() < LARGEST && (!log || value > 1.0 / LARGEST)
}

/// Labels with just the digits that tell neighbours apart.
fn linear_labels(values: &[f64], step: f64) -> Vec<String> {
    let largest = values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    // Digits behind the point: 0.25 needs two, 0.5 and 0.2 one.
    let decimals = (0..=16).find(|&d| is_whole(step * 10f64.powi(d))).unwrap_or(16);
    let plain = largest < 1e5 && (largest >= 1e-3 || largest == 0.0) && decimals <= 6;
    values
        .iter()
        .map(|&v| {
            // Zero up to rounding, so that it is not printed as −0.
            let v = if v.abs() < 1e-9 * step { 0.0 } else { v };
            if plain {
                signed(&format!("{v:.*}", decimals as usize))
            } else if v == 0.0 {
                "0".to_owned()
            } else {
                scientific(v, step, largest.log10().floor() as i32)
            }
        })
        .collect()
}

fn is_whole(x: f64) -> bool {
    x >= 0.5 && (x - x.round()).abs() < 1e-6 * x
}

/// 2.5×10⁶, with the digits that a step of this size needs; neighbours share the exponent.
fn scientific(value: f64, step: f64, exponent: i32) -> String {
    let mantissa_step = step / 10f64.powi(exponent);
    let digits = (0..=15).find(|&d| is_whole(mantissa_step * 10f64.powi(d))).unwrap_or(15);
    let mantissa = format!("{:.*}", digits as usize, value / 10f64.powi(exponent));
    match mantissa.as_str() {
        "1" => power_of_ten(exponent),
        "-1" => format!("−{}", power_of_ten(exponent)),
        _ => format!("{}×{}", signed(&mantissa), power_of_ten(exponent)),
    }
}

fn decade_label(exponent: i32, digit: f64) -> String {
    match exponent {
        0..=4 => format!("{:.0}", digit * 10f64.powi(exponent)),
        -3..0 => format!("{:.*}", exponent.unsigned_abs() as usize, digit * 10f64.powi(exponent)),
        _ if digit == 1.0 => power_of_ten(exponent),
        _ => format!("{digit:.0}×{}", power_of_ten(exponent)),
    }
}

fn power_of_ten(exponent: i32) -> String {
    let digits = exponent.to_string();
    let raised = digits.chars().map(|c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        // The other superscript digits follow each other: ⁰, ⁴ … ⁹.
        c => char::from_u32(0x2070 + c.to_digit(10).unwrap_or(0)).unwrap_or(c),
    });
    format!("10{}", raised.collect::<String>())
}

fn signed(number: &str) -> String {
    number.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(scale: Scale, count: usize) -> Vec<String> {
        scale.ticks(count).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(
            labels(Scale::exactly((0.0, 1.0), false).unwrap(), 5),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(Scale::exactly((-1.0, 1.0), false).unwrap(), 4),
            ["−1.0", "−0.5", "0.0", "0.5", "1.0"]
        );
        assert_eq!(
            labels(Scale::exactly((0.0, 1.0), false).unwrap(), 4),
            ["0.00", "0.25", "0.50", "0.75", "1.00"]
        );
        assert_eq!(labels(Scale::exactly((0.0, 2e6), false).unwrap(), 2), ["0", "10⁶", "2×10⁶"]);
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten() {
        assert_eq!(
            labels(Scale::exactly((1e-6, 1e2), true).unwrap(), 5),
            ["10⁻⁶", "10⁻⁴", "0.01", "1", "100"]
        );
        assert_eq!(labels(Scale::exactly((1.0, 20.0), true).unwrap(), 5), ["1", "3", "10"]);
        assert_eq!(labels(Scale::exactly((0.15, 0.9), true).unwrap(), 5), ["0.2", "0.5"]);
    }

    #[test]
    fn a_range_that_is_empty_or_not_positive_on_a_logarithmic_axis_is_refused() {
        for (range, log) in
            [((1.0, 1.0), false), ((2.0, 1.0), false), ((0.0, 1.0), true), ((f64::NAN, 1.0), false)]
        {
            assert_eq!(Scale::exactly(range, log), None, "{range:?}");
        }
    }

    proptest! {
        #[test]
        fn ticks_lie_inside_the_scale_and_their_labels_differ(
            centre in -1e7..1e7_f64, exponent in -3.0..8.0_f64, count in 2_usize..12, log: bool,
        ) {
            let half = 10f64.powf(exponent);
            let scale = if log {
                Scale::fit([half, half * (1.0 + centre.abs())].into_iter(), true)
            } else {
                Scale::fit([centre - half, centre + half].into_iter(), false)
            };
            let ticks = scale.ticks(count);
            prop_assert!(!ticks.is_empty());
            prop_assert!(ticks.len() <= 2 * count + 4, "{} ticks for {count}", ticks.len());
            for tick in &ticks {
                let fraction = scale.fraction(tick.value).unwrap();
                prop_assert!((-1e-6..=1.0 + 1e-6).contains(&fraction), "{tick:?} at {fraction}");
            }
            for pair in ticks.windows(2) {
                prop_assert!(pair[0].value < pair[1].value);
                prop_assert!(pair[0].label != pair[1].label, "{pair:?}");
            }
        }

        #[test]
        fn a_fitted_scale_contains_its_data(a in -1e10..1e10_f64, b in -1e10..1e10_f64) {
            let scale = Scale::fit([a, f64::NAN, b, f64::INFINITY].into_iter(), false);
            for v in [a, b] {
                prop_assert!((0.0..=1.0).contains(&scale.fraction(v).unwrap()));
            }
        }
    }
}
