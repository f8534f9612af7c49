//! Means with their uncertainty.
//!
//! ```text
//! sd² = Σ (v − mean)² / (n − 1) ,   se = sd / √n
//! ```

use std::fmt;

/// A mean with a spread around it: standard error or standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean; NaN without values.
    pub mean: f64,
    /// Standard error or deviation; NaN with fewer than two values.
    pub spread: f64,
    /// Number of values.
    pub count: usize,
}

impl fmt::Display for Estimate {
    /// `2.62 ± 0.15`; the precision (`{:.3}`, two by default) holds for both, and a spread that is not known
    /// is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let mean = format!("{:.digits$}", self.mean).replace('-', "−");
        if self.spread.is_nan() {
            write!(f, "{mean}")
        } else {
            write!(f, "{mean} ± {:.digits$}", self.spread)
        }
    }
}

/// Mean and standard error of the mean. A value that is not finite shows in the result.
pub fn mean_se(values: &[f64]) -> Estimate {
    let estimate = mean_sd(values);
    Estimate { spread: estimate.spread / (values.len() as f64).sqrt(), ..estimate }
}

/// Mean and standard deviation, with n − 1. A value that is not finite shows in the result.
pub fn mean_sd(values: &[f64]) -> Estimate {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let spread = if count < 2 { f64::NAN } else { (squares / (count as f64 - 1.0)).sqrt() };
    Estimate { mean, spread, count }
}

/// The value below which a share `p` of the values lies, straight between two of them; NaN without values, or where one is
/// NaN.
pub fn quantile(values: &[f64], p: f64) -> f64 {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = p * (sorted.len() - 1) as f64;
    let (below, share) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    if share == 0.0 { sorted[below] } else { (1.0 - share) * sorted[below] + share * sorted[above] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    /// `np.std([2.1, 3.4, 1.9, 5.0], ddof=1)`, NumPy 2.
    const NUMPY_SD: f64 = 1.430_617_582_258_329_1;

    #[test]
    fn spread_matches_numpy() {
        let values = [2.1, 3.4, 1.9, 5.0];
        assert_relative_eq!(mean_sd(&values).mean, 3.1, max_relative = 1e-15);
        assert_relative_eq!(mean_sd(&values).spread, NUMPY_SD, max_relative = 1e-14);
        assert_relative_eq!(mean_se(&values).spread, NUMPY_SD / 2.0, max_relative = 1e-14);
    }

    /// `np.quantile([2.1, 3.4, 1.9, 5.0], [0, 0.16, 0.5, 0.84, 1])`, NumPy 2.
    #[test]
    fn quantiles_match_numpy() {
        let values = [2.1, 3.4, 1.9, 5.0];
        for (p, expected) in [(0.0, 1.9), (0.16, 1.996), (0.5, 2.75), (0.84, 4.232), (1.0, 5.0)] {
            assert_relative_eq!(quantile(&values, p), expected, max_relative = 1e-12);
        }
        assert!(quantile(&[], 0.5).is_nan() && quantile(&[1.0, f64::NAN], 0.5).is_nan());
        assert_relative_eq!(quantile(&[7.0], 0.16), 7.0);
    }

    #[test]
    fn a_spread_that_is_not_known_is_not_printed() {
        assert_eq!(mean_se(&[1.5]).to_string(), "1.50");
        assert_eq!(mean_se(&[]).to_string(), "NaN");
        assert_eq!(format!("{:.1}", mean_se(&[-1.0, -3.0])), "−2.0 ± 1.0");
    }
}
