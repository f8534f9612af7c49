//! How far each mini-batch moves the posterior: the rate κ_t of η ← (1−κ_t) η + κ_t (η⁰ + (N/|B|) T_B).
//!
//! ```text
//! constant   κ_t = κ
//! power      κ_t = (t + τ)^−ε                                    (paper: ε = 0.25, τ = 0)
//! cosine     κ_t = κ_last + ½ (κ_first − κ_last) (1 + cos(π t / total))
//! ```
//!
//! A stream has no known total; there the cosine becomes κ_t = max(κ_last, κ_first/√t), which has the same
//! two ends. t counts from 1 and goes on over calls, so a stream has one schedule.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Rate of learning over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Schedule {
    /// Always the same.
    Constant {
        /// κ.
        rate: f64,
    },
    /// (t + τ)^−ε.
    Power {
        /// ε.
        exponent: f64,
        /// τ.
        delay: f64,
    },
    /// Falls from `first` to `last` as half a cosine.
    Cosine {
        /// κ at the start.
        first: f64,
        /// κ at the end.
        last: f64,
    },
}

impl Schedule {
    /// κ_t for step t = 1, 2, …, of `total` if the end is known.
    pub fn rate(&self, step: u64, total: Option<u64>) -> f64 {
        match (*self, total) {
            (Self::Constant { rate }, _) => rate,
            (Self::Power { exponent, delay }, _) => (step as f64 + delay).powf(-exponent).min(1.0),
            (Self::Cosine { first, last }, Some(total)) => {
                let progress = (step as f64 / total.max(1) as f64).min(1.0);
                last + 0.5 * (first - last) * (1.0 + (std::f64::consts::PI * progress).cos())
            }
            (Self::Cosine { first, last }, None) => (first / (step.max(1) as f64).sqrt()).max(last),
        }
    }

    /// The same with rates of at least `least`, for a stream that forgets.
    pub fn at_least(self, least: f64) -> Self {
        match self {
            Self::Constant { rate } => Self::Constant { rate: rate.max(least) },
            Self::Cosine { first, last } => Self::Cosine { first: first.max(least), last: last.max(least) },
            // It falls below any rate in the end: the steady one takes its place.
            Self::Power { .. } => Self::Constant { rate: least },
        }
    }

    /// Check that every rate lies in (0, 1].
    pub fn validate(&self) -> Result<()> {
        let rate = |name, value: f64| {
            if value > 0.0 && value <= 1.0 {
                Ok(())
            } else {
                Err(Error::Setting { name, value, must_be: "in (0, 1]" })
            }
        };
        match *self {
            Self::Constant { rate: kappa } => rate("schedule.constant.rate", kappa),
            Self::Cosine { first, last } => {
                rate("schedule.cosine.first", first)?;
                rate("schedule.cosine.last", last)
            }
            Self::Power { exponent, delay } => {
                if !(exponent >= 0.0 && exponent.is_finite()) {
                    return Err(Error::Setting {
                        name: "schedule.power.exponent",
                        value: exponent,
                        must_be: "finite and not negative",
                    });
                }
                if !(delay >= 0.0 && delay.is_finite()) {
                    return Err(Error::Setting {
                        name: "schedule.power.delay",
                        value: delay,
                        must_be: "finite and not negative",
                    });
                }
                Ok(())
            }
        }
    }
}

/// Whether what was last renewed at step `last` (0: never) is due again at step `step`: every `every` steps, and
/// while it is young and changes much, after a quarter of the steps so far.
pub(crate) fn refresh_is_due(step: u64, last: u64, every: u64) -> bool {
    last == 0 || step - last >= every.min(step / 4).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    #[test]
    fn the_papers_schedule_starts_at_one() {
        let paper = Schedule::Power { exponent: 0.25, delay: 0.0 };
        assert_eq!(paper.rate(1, None), 1.0);
        assert_relative_eq!(paper.rate(16, None), 0.5);
    }

    #[test]
    fn cosine_ends_at_its_last_rate_and_stays_there() {
        let cosine = Schedule::Cosine { first: 0.3, last: 0.005 };
        assert_relative_eq!(cosine.rate(100, Some(100)), 0.005, epsilon = 1e-15);
        assert_relative_eq!(cosine.rate(900, Some(100)), 0.005, epsilon = 1e-15);
        assert_relative_eq!(cosine.rate(1_000_000, None), 0.005);
    }

    #[test]
    fn a_rate_outside_the_unit_interval_is_refused() {
        assert!(Schedule::Constant { rate: 1.5 }.validate().is_err());
        assert!(Schedule::Cosine { first: 0.3, last: f64::NAN }.validate().is_err());
    }
}
