//! What is read off one network of a regression: the mean or a variance of one target.
//!
//! ```text
//! mean         m = a_k                           or u(a_k) through a curve u; then variances have the factor u′²
//! variances    (A, E) = parts(τ a, τ e)         a = N_kk + ⟨Σ_L⟩_kk , or e^ℓ of the variance node;   e = E_kk
//! ```
//!
//! τ is the network's temperature, and `parts` what calibration makes of the variances.

use crate::data::LogCurve;
use crate::heads::HeadSettings;
use crate::model::spread::Spread;
use crate::prediction::{Point, Reading};

/// Mean of one target, in standard deviations of it.
pub(super) struct Mean {
    pub(super) target: usize,
    /// The curve the network sees it through.
    pub(super) curve: Option<LogCurve>,
}

impl Reading for Mean {
    fn outputs(&self) -> &[usize] {
        &[]
    }

    fn nodes(&self) -> usize {
        if self.curve.is_some() { 4 } else { 1 }
    }

    fn read(&self, point: &Point) -> (f64, Point) {
        let mut slopes = flat(point);
        let (value, slope, _) = unbent(self.curve.as_ref(), point.activity[self.target]);
        slopes.activity[self.target] = slope;
        (value, slopes)
    }
}

/// Aleatoric or epistemic variance of one target, of standardised targets.
pub(super) struct Variance<'a> {
    pub(super) head: &'a HeadSettings,
    /// The one target.
    pub(super) target: [usize; 1],
    /// ⟨Σ_L⟩ of it.
    pub(super) noise: f64,
    pub(super) temperature: f64,
    /// The curve the network sees the target through.
    pub(super) curve: Option<LogCurve>,
    pub(super) spread: Option<Spread>,
    /// The epistemic one.
    pub(super) epistemic: bool,
}

impl Reading for Variance<'_> {
    fn outputs(&self) -> &[usize] {
        &self.target
    }

    fn nodes(&self) -> usize {
        // Quadratic between cuts, if noise is constant and calibration has factors only.
        if self.curve.is_some() { 4 } else { 2 }
    }

    fn read(&self, point: &Point) -> (f64, Point) {
        let mut slopes = flat(point);
        let log_variance = point.activity.len() / 2 + self.target[0];
        let (noise, by_log) = match self.head {
            HeadSettings::VarianceNode(head) => {
                exp_within(point.activity[log_variance], (head.floor, head.ceiling))
            }
            _ => (point.hidden_noise[0] + self.noise, 0.0),
        };
        let (_, slope, bend) = unbent(self.curve.as_ref(), point.activity[self.target[0]]);
        let factor = self.temperature * slope * slope;
        let (a, e) = (factor * noise, factor * point.epistemic[0]);
        let (parts, by_parts) = match &self.spread {
            Some(spread) => (spread.parts(a, e), spread.part_slopes(a, e)),
            None => ((a, e), [[1.0, 0.0], [0.0, 1.0]]),
        };
        let (value, [by_a, by_e]) =
            if self.epistemic { (parts.1, by_parts[1]) } else { (parts.0, by_parts[0]) };
        slopes.epistemic[0] = factor * by_e;
        if matches!(self.head, HeadSettings::VarianceNode(_)) {
            slopes.activity[log_variance] = factor * by_a * by_log;
        } else {
            slopes.hidden_noise[0] = factor * by_a;
        }
        // Variances grow with the square of the curve's slope, which changes along it.
        let by_factor = by_a * noise + by_e * point.epistemic[0];
        slopes.activity[self.target[0]] += 2.0 * self.temperature * slope * bend * by_factor;
        (value, slopes)
    }
}

/// e^x within limits of x, and its slope.
pub(super) fn exp_within(x: f64, (floor, ceiling): (f64, f64)) -> (f64, f64) {
    let value = x.clamp(floor, ceiling).exp();
    (value, if floor < x && x < ceiling { value } else { 0.0 })
}

/// The target that a network says, and the first two derivatives by what it says.
fn unbent(curve: Option<&LogCurve>, activity: f64) -> (f64, f64, f64) {
    curve.map_or((activity, 1.0, 0.0), |curve| curve.unbend(activity))
}

/// No slopes by anything.
pub(super) fn flat(point: &Point) -> Point {
    let zeros = |values: &[f64]| vec![0.0; values.len()];
    Point {
        activity: zeros(&point.activity),
        epistemic: zeros(&point.epistemic),
        hidden_noise: zeros(&point.hidden_noise),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use approx::assert_relative_eq;

    use super::*;
    use crate::heads::{Gaussian, VarianceNode};

    /// Slopes against central differences, symmetric entries together.
    pub(in super::super) fn check(reading: &dyn Reading, point: &Point) {
        let m = reading.outputs().len();
        let (_, slopes) = reading.read(point);
        let h = 1e-6;
        let difference = |change: &dyn Fn(&mut Point, f64)| {
            let at = |h: f64| {
                let mut moved = point.clone();
                change(&mut moved, h);
                reading.read(&moved).0
            };
            (at(h) - at(-h)) / (2.0 * h)
        };
        for i in 0..point.activity.len() {
            let expected = difference(&|p, h| p.activity[i] += h);
            assert_relative_eq!(slopes.activity[i], expected, epsilon = 1e-8, max_relative = 1e-6);
        }
        for (i, j) in (0..m * m).map(|k| (k % m, k / m)) {
            let both = |values: &mut [f64], h: f64| {
                values[j * m + i] += 0.5 * h;
                values[i * m + j] += 0.5 * h;
            };
            let expected = difference(&|p, h| both(&mut p.epistemic, h));
            assert_relative_eq!(slopes.epistemic[j * m + i], expected, epsilon = 1e-8, max_relative = 1e-6);
            let expected = difference(&|p, h| both(&mut p.hidden_noise, h));
            assert_relative_eq!(
                slopes.hidden_noise[j * m + i],
                expected,
                epsilon = 1e-8,
                max_relative = 1e-6
            );
        }
    }

    fn curve() -> LogCurve {
        let y = faer::Mat::from_fn(1, 30, |_, j| (0.3 * f64::from(j as u32)).exp());
        let scaling = crate::data::Standardiser::fit_with_weights(y.as_ref(), None).unwrap();
        LogCurve::of(crate::data::Targets::Values(y.as_ref()), None, &scaling).unwrap()
    }

    #[test]
    fn slopes_of_a_mean_through_a_curve_are_its_derivatives() {
        for activity in [-9.0, -0.4, 0.9, 7.0] {
            let point = Point { activity: vec![activity, 0.2], epistemic: vec![], hidden_noise: vec![] };
            check(&Mean { target: 0, curve: Some(curve()) }, &point);
        }
    }

    #[test]
    fn slopes_of_variances_are_their_derivatives() {
        let point = Point { activity: vec![0.3, -1.2], epistemic: vec![0.4], hidden_noise: vec![0.2] };
        let spread =
            Spread { aleatoric: 2.0, epistemic: 0.3, near: 0.7, far: 2.5, floor: 0.05, dof: 3.7, skew: None };
        let heads =
            [HeadSettings::Gaussian(Gaussian {}), HeadSettings::VarianceNode(VarianceNode::default())];
        for head in &heads {
            for (epistemic, temperature) in [(false, 1.0), (true, 1.0), (false, 3.0), (true, 3.0)] {
                for spread in [None, Some(spread)] {
                    for curve in [None, Some(curve())] {
                        let target = [0];
                        let noise = 0.1;
                        check(
                            &Variance { head, target, noise, temperature, curve, spread, epistemic },
                            &point,
                        );
                    }
                }
            }
        }
    }
}
