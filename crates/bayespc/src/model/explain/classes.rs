//! What is read off one network of classes: their probabilities, and the entropy its noise leaves.
//!
//! ```text
//! codes     μ = a ,   A = τ (N + ⟨Σ_L⟩) , or τ diag e^ℓ of the variance node ,   E = τ E
//! logits    μ = a/√(1 + r) ,   A = τ/(1 + r) ,   E = τ r/(1 + r) ,   r = π/8 (E_kk + N_kk)
//! ```
//!
//! τ is the network's temperature. Probabilities and entropies are functions of μ, A and E at the model's temperature;
//! `prediction::Codes` has both with their slopes, and here these pass on to what a network says.

use std::f64::consts::FRAC_PI_8;

use faer::Mat;

use super::reading::{exp_within, flat};
use crate::heads::HeadSettings;
use crate::prediction::{CodeDraws, CodeMoments, Codes, Logits, Point, Precision, Reading, Readings};

/// How exactly parts add up to an entropy. Codes hardly vary in the direction in which all of them sum to 1, so precisions are
/// large there and logits, which are their differences, carry far more rounding than means and variances.
const OF_ENTROPIES: Precision = Precision { tolerance: 1e-8, rounding: 1e-8, pieces: 1 << 8 };

/// The probabilities of all classes.
#[derive(Clone, Copy)]
pub(super) struct Classes<'a> {
    pub(super) head: &'a HeadSettings,
    /// 0 … K−1.
    pub(super) numbers: &'a [usize],
    /// ⟨Σ_L⟩.
    pub(super) noise: &'a Mat<f64>,
    /// τ of the network, T of the model.
    pub(super) temperatures: (f64, f64),
}

impl Readings for Classes<'_> {
    fn outputs(&self) -> &[usize] {
        self.numbers
    }

    fn read(&self, point: &Point) -> Vec<f64> {
        match Logits::new(&self.moments(point)) {
            Ok(logits) => logits.probabilities(self.temperatures.1),
            // What cannot be factored cannot be predicted either: the prediction has failed before.
            Err(_) => vec![f64::NAN; self.numbers.len()],
        }
    }

    fn slopes(&self, point: &Point, by: &[f64]) -> Point {
        self.probabilities(point, by).1
    }
}

impl Classes<'_> {
    /// Probabilities, and slopes of ⟨by, p⟩.
    fn probabilities(&self, point: &Point, by: &[f64]) -> (Vec<f64>, Point) {
        let (moments, temperature) = (self.moments(point), self.temperatures.1);
        let Ok(logits) = Logits::new(&moments) else { return (vec![f64::NAN; by.len()], flat(point)) };
        let p = logits.probabilities(temperature);
        let slopes = logits.slopes(&moments.mean, &p, by, temperature);
        (p, self.pull(point, &slopes))
    }

    /// μ, A and E.
    fn moments(&self, point: &Point) -> CodeMoments {
        let (k, tau) = (self.numbers.len(), self.temperatures.0);
        let diagonal = |value: &dyn Fn(usize) -> f64| {
            Mat::from_fn(k, k, |i, j| if i == j { tau * value(i) } else { 0.0 })
        };
        if matches!(self.head, HeadSettings::Categorical(_)) {
            return CodeMoments {
                mean: (0..k).map(|i| point.activity[i] / (1.0 + self.ratio(point, i)).sqrt()).collect(),
                aleatoric: diagonal(&|i| 1.0 / (1.0 + self.ratio(point, i))),
                epistemic: diagonal(&|i| self.ratio(point, i) / (1.0 + self.ratio(point, i))),
            };
        }
        let aleatoric = match self.limits() {
            Some(limits) => diagonal(&|i| exp_within(point.activity[k + i], limits).0),
            None => Mat::from_fn(k, k, |i, j| tau * (point.hidden_noise[j * k + i] + self.noise[(i, j)])),
        };
        let epistemic = Mat::from_fn(k, k, |i, j| tau * point.epistemic[j * k + i]);
        CodeMoments { mean: point.activity[..k].to_vec(), aleatoric, epistemic }
    }

    /// Slopes by what the network says, of those by μ, A and E.
    fn pull(&self, point: &Point, by: &CodeMoments) -> Point {
        let (k, tau) = (self.numbers.len(), self.temperatures.0);
        let mut slopes = flat(point);
        if matches!(self.head, HeadSettings::Categorical(_)) {
            for i in 0..k {
                let whole = 1.0 + self.ratio(point, i);
                slopes.activity[i] = by.mean[i] / whole.sqrt();
                let by_ratio = -0.5 * by.mean[i] * point.activity[i] / whole.powf(1.5)
                    + tau * (by.epistemic[(i, i)] - by.aleatoric[(i, i)]) / (whole * whole);
                slopes.epistemic[i * k + i] = FRAC_PI_8 * by_ratio;
                slopes.hidden_noise[i * k + i] = FRAC_PI_8 * by_ratio;
            }
            return slopes;
        }
        slopes.activity[..k].copy_from_slice(&by.mean);
        for (entry, (i, j)) in (0..k * k).map(|entry| (entry, (entry % k, entry / k))) {
            slopes.epistemic[entry] = tau * by.epistemic[(i, j)];
            match self.limits() {
                Some(limits) if i == j => {
                    let by_log = exp_within(point.activity[k + i], limits).1;
                    slopes.activity[k + i] = tau * by.aleatoric[(i, i)] * by_log;
                }
                Some(_) => {}
                None => slopes.hidden_noise[entry] = tau * by.aleatoric[(i, j)],
            }
        }
        slopes
    }

    /// r of logits.
    fn ratio(&self, point: &Point, i: usize) -> f64 {
        let entry = i * self.numbers.len() + i;
        FRAC_PI_8 * (point.epistemic[entry] + point.hidden_noise[entry])
    }

    /// Limits of the log-variances, of a variance node.
    fn limits(&self) -> Option<(f64, f64)> {
        match self.head {
            HeadSettings::VarianceNode(head) => Some((head.floor, head.ceiling)),
            _ => None,
        }
    }
}

/// Probability of one class.
pub(super) struct Probability<'a> {
    pub(super) of: Classes<'a>,
    pub(super) class: usize,
}

impl Reading for Probability<'_> {
    fn outputs(&self) -> &[usize] {
        self.of.numbers
    }

    fn nodes(&self) -> usize {
        4
    }

    fn read(&self, point: &Point) -> (f64, Point) {
        let only = |k: &usize| f64::from(u8::from(*k == self.class));
        let by: Vec<f64> = self.of.numbers.iter().map(only).collect();
        let (p, slopes) = self.of.probabilities(point, &by);
        (p[self.class], slopes)
    }
}

/// Mean entropy of the class if the weights were known.
pub(super) struct NoiseEntropy<'a> {
    pub(super) of: Classes<'a>,
    pub(super) draws: &'a CodeDraws,
}

impl Reading for NoiseEntropy<'_> {
    fn outputs(&self) -> &[usize] {
        self.of.numbers
    }

    fn nodes(&self) -> usize {
        4
    }

    fn precision(&self) -> Precision {
        OF_ENTROPIES
    }

    fn read(&self, point: &Point) -> (f64, Point) {
        let moments = self.of.moments(point);
        let Ok(codes) = Codes::new(&moments) else { return (f64::NAN, flat(point)) };
        let (value, by) = codes.noise_entropy_slopes(&moments.mean, self.of.temperatures.1, self.draws);
        (value, self.of.pull(point, &by))
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::check;
    use super::*;
    use crate::heads::{Categorical, Gaussian, VarianceNode};

    #[test]
    fn slopes_of_probabilities_and_entropies_are_their_derivatives() {
        let point = Point {
            activity: vec![0.7, 0.1, 0.3, -1.0, -0.4, -2.0],
            epistemic: vec![0.3, 0.1, 0.05, 0.1, 0.4, -0.1, 0.05, -0.1, 0.2],
            hidden_noise: vec![0.2, 0.02, 0.0, 0.02, 0.1, 0.01, 0.0, 0.01, 0.3],
        };
        let noise = Mat::from_fn(3, 3, |i, j| if i == j { 0.2 + 0.1 * i as f64 } else { -0.05 });
        let logits = Point { activity: point.activity[..3].to_vec(), ..point.clone() };
        let draws = CodeDraws::new(3, 8, 0).unwrap();
        let heads = [
            (HeadSettings::Gaussian(Gaussian {}), &logits),
            (HeadSettings::Categorical(Categorical {}), &logits),
            (HeadSettings::VarianceNode(VarianceNode::default()), &point),
        ];
        for (head, point) in &heads {
            let of = Classes { head, numbers: &[0, 1, 2], noise: &noise, temperatures: (1.7, 0.6) };
            (0..3).for_each(|class| check(&Probability { of, class }, point));
            check(&NoiseEntropy { of, draws: &draws }, point);
        }
    }
}
