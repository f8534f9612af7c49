//! A target that is not negative seen through its logarithm, and the way back.
//!
//! ```text
//! z = (ln(y + o) − c)/s          y standardised, o its zero: y + o > 0
//! y = u(z) = e^{c + s z} − o     between the smallest and the largest target, and along the tangents beyond them
//! ```
//!
//! Where some targets are 0 (counts, amounts of rain) a small one is added to all: that below which a tenth of the positive
//! ones are. Of counts that is most often 1, and z the logarithm of one more.
//!
//! Beyond the data the exponential would explode, or end in an edge where nothing is uncertain any more; the tangents keep
//! slope and doubt as they are at the last target that was seen.
//!
//! What a network says of z is carried over to first order: mean u(m), and variances times u′(m)². The result is of the
//! same kind as any other network's and mixes with them, in units of y, so densities need no Jacobian to compare.

use serde::{Deserialize, Serialize};

use super::scaling::Standardiser;
use super::targets::Targets;
use crate::error::{Error, Result};

/// Targets of which the middle four fifths span a smaller factor are close to a line of their logarithm.
const BENT: f64 = 4.0;

/// The logarithm of a standardised target, standardised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogCurve {
    /// o.
    zero: f64,
    /// c and s.
    centre: f64,
    spread: f64,
    /// z of the smallest and the largest target.
    low: f64,
    high: f64,
}

impl LogCurve {
    /// The curve of targets with this scaling; none unless there is one target, it is not negative, and its logarithm is
    /// another thing than itself.
    pub(crate) fn of(targets: Targets<'_>, weights: Option<&[f64]>, scaling: &Standardiser) -> Option<Self> {
        let Targets::Values(values) = targets else { return None };
        if values.nrows() != 1 {
            return None;
        }
        let weight = |j: usize| weights.map_or(1.0, |weights| weights[j]);
        let mut sorted: Vec<(f64, f64)> =
            (0..values.ncols()).filter(|&j| weight(j) > 0.0).map(|j| (values[(0, j)], weight(j))).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (&(smallest, _), &(largest, _)) = (sorted.first()?, sorted.last()?);
        let at = |of: &[(f64, f64)], share: f64| of[((of.len() - 1) as f64 * share).round() as usize].0;
        let positive = &sorted[sorted.partition_point(|(y, _)| *y <= 0.0)..];
        if smallest < 0.0 || positive.is_empty() {
            return None;
        }
        let added = if smallest > 0.0 { 0.0 } else { at(positive, 0.1) };
        if at(&sorted, 0.9) + added < BENT * (at(&sorted, 0.1) + added) {
            return None;
        }
        // ln of y in units of its scale, as u has it.
        let unit = scaling.scale[0];
        let log = |y: f64| ((y + added) / unit).ln();
        let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
        let centre = sorted.iter().map(|(y, weight)| weight / total * log(*y)).sum::<f64>();
        let spread =
            sorted.iter().map(|(y, weight)| weight / total * (log(*y) - centre).powi(2)).sum::<f64>().sqrt();
        let z = |y: f64| (log(y) - centre) / spread;
        let curve = Self {
            zero: (scaling.offset[0] + added) / unit,
            centre,
            spread,
            low: z(smallest),
            high: z(largest),
        };
        curve.validate().is_ok().then_some(curve)
    }

    /// z of a standardised target.
    pub(crate) fn bend(&self, y: f64) -> f64 {
        for (end, beyond) in [(self.low, f64::lt as fn(&f64, &f64) -> bool), (self.high, f64::gt)] {
            let (at, slope, _) = self.unbend(end);
            if beyond(&y, &at) {
                return end + (y - at) / slope;
            }
        }
        ((y + self.zero).ln() - self.centre) / self.spread
    }

    /// u, u′ and u″ at z.
    pub(crate) fn unbend(&self, z: f64) -> (f64, f64, f64) {
        let within = z.clamp(self.low, self.high);
        let value = (self.centre + self.spread * within).exp();
        let slope = self.spread * value;
        let curvature = if within == z { self.spread * slope } else { 0.0 };
        (value - self.zero + slope * (z - within), slope, curvature)
    }

    /// Numbers that make a curve.
    pub(crate) fn validate(&self) -> Result<()> {
        let finite = [self.zero, self.centre, self.spread, self.low, self.high].iter().all(|x| x.is_finite());
        let rises = || self.unbend(self.low).1 > 0.0 && self.unbend(self.high).1.is_finite();
        if finite && self.spread > 0.0 && self.low < self.high && rises() {
            Ok(())
        } else {
            let value = self.spread;
            Err(Error::Setting { name: "member.curve.spread", value, must_be: "of a curve that rises" })
        }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;

    use super::*;

    fn targets() -> Mat<f64> {
        Mat::from_fn(1, 40, |_, j| 0.01 * (0.2 * j as f64).exp())
    }

    fn curve() -> (LogCurve, Standardiser) {
        let y = targets();
        let scaling = Standardiser::fit_with_weights(y.as_ref(), None).unwrap();
        (LogCurve::of(Targets::Values(y.as_ref()), None, &scaling).unwrap(), scaling)
    }

    #[test]
    fn the_logarithm_of_the_targets_is_standardised_and_comes_back() {
        let (curve, scaling) = curve();
        let y = targets();
        let z: Vec<f64> =
            (0..40).map(|j| curve.bend((y[(0, j)] - scaling.offset[0]) / scaling.scale[0])).collect();
        let mean = z.iter().sum::<f64>() / 40.0;
        assert_relative_eq!(mean, 0.0, epsilon = 1e-12);
        assert_relative_eq!(z.iter().map(|z| z * z).sum::<f64>() / 40.0, 1.0, epsilon = 1e-12);
        // Equal ratios are equal distances.
        assert_relative_eq!(z[7] - z[6], z[33] - z[32], epsilon = 1e-10);
        for (j, &z) in z.iter().enumerate() {
            let back = scaling.offset[0] + scaling.scale[0] * curve.unbend(z).0;
            assert_relative_eq!(back, y[(0, j)], max_relative = 1e-10);
        }
    }

    #[test]
    fn counts_with_zeros_are_seen_through_the_logarithm_of_one_more() {
        let y = Mat::from_fn(1, 60, |_, j| if j < 12 { 0.0 } else { (0.05 * (j - 12) as f64).exp().round() });
        let scaling = Standardiser::fit_with_weights(y.as_ref(), None).unwrap();
        let curve = LogCurve::of(Targets::Values(y.as_ref()), None, &scaling).unwrap();
        let z = |y: f64| curve.bend((y - scaling.offset[0]) / scaling.scale[0]);
        // ln 2 − ln 1 = ln 4 − ln 2.
        assert_relative_eq!(z(1.0) - z(0.0), z(3.0) - z(1.0), max_relative = 1e-10);
        assert_relative_eq!(curve.unbend(z(0.0)).0, -scaling.offset[0] / scaling.scale[0], epsilon = 1e-12);
        assert!(curve.unbend(z(0.0)).1 > 0.0);
    }

    #[test]
    fn beyond_the_data_it_is_a_line_and_slopes_are_derivatives() {
        let (curve, _) = curve();
        for z in [curve.low - 3.0, curve.low - 0.1, -0.7, 0.0, 1.2, curve.high + 0.1, curve.high + 50.0] {
            let h = 1e-6;
            let (value, slope, bend) = curve.unbend(z);
            let (more, less) = (curve.unbend(z + h), curve.unbend(z - h));
            assert_relative_eq!(slope, (more.0 - less.0) / (2.0 * h), max_relative = 1e-6);
            assert_relative_eq!(bend, (more.1 - less.1) / (2.0 * h), max_relative = 1e-6, epsilon = 1e-9);
            assert_relative_eq!(curve.bend(value), z, max_relative = 1e-8, epsilon = 1e-10);
        }
        let far = curve.unbend(curve.high + 1e6).0;
        assert!(far.is_finite() && curve.unbend(curve.low - 1e6).0.is_finite());
    }

    #[test]
    fn what_is_no_curve_is_none() {
        let none = |y: Mat<f64>| {
            let scaling = Standardiser::fit_with_weights(y.as_ref(), None).unwrap();
            LogCurve::of(Targets::Values(y.as_ref()), None, &scaling).is_none()
        };
        // Negative somewhere; a small range; two targets; one value; zeros alone, and with few others.
        assert!(none(Mat::from_fn(1, 40, |_, j| (0.2 * j as f64).exp() - 1.5)));
        assert!(none(Mat::from_fn(1, 40, |_, _| 0.0)));
        assert!(none(Mat::from_fn(1, 40, |_, j| if j < 37 { 0.0 } else { 9.0 })));
        assert!(none(Mat::from_fn(1, 40, |_, j| 100.0 + j as f64)));
        assert!(none(Mat::from_fn(2, 40, |_, j| (0.2 * j as f64).exp())));
        assert!(none(Mat::from_fn(1, 40, |_, _| 3.0)));
        // A sample of weight 0 is none.
        let y = Mat::from_fn(1, 40, |_, j| if j == 0 { -1.0 } else { (0.2 * j as f64).exp() });
        let mut weights = vec![1.0; 40];
        weights[0] = 0.0;
        let scaling = Standardiser::fit_with_weights(y.as_ref(), Some(&weights)).unwrap();
        assert!(LogCurve::of(Targets::Values(y.as_ref()), Some(&weights), &scaling).is_some());
        // Damaged numbers are an error.
        let damaged = LogCurve { spread: f64::NAN, ..curve().0 };
        assert!(damaged.validate().is_err());
        assert!(LogCurve { low: 3.0, high: 1.0, ..curve().0 }.validate().is_err());
        assert!(LogCurve { centre: 1e6, ..curve().0 }.validate().is_err());
    }
}
