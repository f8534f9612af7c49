//! Noise that leans to one side: two Student-t's in place of one, with the same mean and variance together.
//!
//! ```text
//! noise ~ √A · [ w t_k(δ₁, c₁) + (1 − w) t_k(δ₂, c₂) ]        A: aleatoric variance; t_k(location, variance)
//!
//! two parts at 0 and d with variances 1 and r², shifted and scaled to mean 0 and variance 1:
//! s² = w + (1 − w) r² + w (1 − w) d²
//! δ₁ = −(1 − w) d/s ,   δ₂ = w d/s ,   c₁ = 1/s² ,   c₂ = r²/s²
//! ```
//!
//! Only the shape of a component changes: its mean, its two variances and whatever is made of them (attributions, ONNX,
//! conformal scores) know nothing of it. Doubt is symmetric and adds to either part: t_k(μ + δ √A, c A + E). Of one
//! target only: a direction to lean to is each target's own.

use serde::{Deserialize, Serialize};

use crate::base::check::{inside_unit_interval, positive};
use crate::error::{Error, Result};

/// w, d and r.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skew {
    /// w: share of the first part.
    pub share: f64,
    /// d: where the second part is, in deviations of the first; negative to the left.
    pub distance: f64,
    /// r: deviation of the second part, in those of the first.
    pub ratio: f64,
}

/// One of the two parts of a noise with variance 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) weight: f64,
    /// δ.
    pub(crate) shift: f64,
    /// c.
    pub(crate) variance: f64,
}

/// The whole of a noise that does not lean.
pub(crate) const WHOLE: [Part; 1] = [Part { weight: 1.0, shift: 0.0, variance: 1.0 }];

impl Skew {
    /// Both parts.
    pub(crate) fn parts(&self) -> [Part; 2] {
        let (w, d, r) = (self.share, self.distance, self.ratio);
        let square = w + (1.0 - w) * r * r + w * (1.0 - w) * d * d;
        let s = square.sqrt();
        [
            Part { weight: w, shift: -(1.0 - w) * d / s, variance: 1.0 / square },
            Part { weight: 1.0 - w, shift: w * d / s, variance: r * r / square },
        ]
    }

    /// The same of noise on a scale that falls: mirrored.
    #[cfg(test)]
    pub(crate) fn mirrored(self) -> Self {
        Self { distance: -self.distance, ..self }
    }

    /// Third moment of a noise with variance 1 whose parts are normal: positive if its long tail is on the right.
    pub fn skewness(&self) -> f64 {
        self.parts().iter().map(|p| p.weight * (p.shift.powi(3) + 3.0 * p.shift * p.variance)).sum()
    }

    /// Numbers that make a distribution.
    pub(crate) fn validate(&self) -> Result<()> {
        inside_unit_interval("skew.share", self.share)?;
        positive("skew.ratio", self.ratio)?;
        let parts = self.parts();
        if parts.iter().all(|part| part.shift.is_finite() && part.variance > 0.0 && part.variance.is_finite())
        {
            Ok(())
        } else {
            Err(Error::Setting {
                name: "skew.distance",
                value: self.distance,
                must_be: "finite and not huge",
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;

    use super::*;
    use crate::base::random::stream;
    use crate::metrics;
    use crate::prediction::{Component, Covariance, Dof, Predictive};

    const LEANS: Skew = Skew { share: 0.7, distance: 2.0, ratio: 1.8 };

    fn predictive(members: usize, dof: Dof, skew: Option<Skew>) -> Predictive {
        let member = |m: usize| Component {
            mean: Mat::from_fn(1, 3, |_, j| 0.4 * m as f64 - j as f64),
            aleatoric: Covariance::Diagonal(Mat::from_fn(1, 3, |_, j| 0.5 + j as f64)),
            epistemic: Covariance::Diagonal(Mat::from_fn(1, 3, |_, j| 0.1 * (1 + j + m) as f64)),
            dof,
            skew,
        };
        Predictive::new((0..members).map(member).collect()).unwrap()
    }

    #[test]
    fn two_parts_have_mean_zero_and_variance_one_together() {
        for skew in [LEANS, LEANS.mirrored(), Skew { share: 0.05, distance: -9.0, ratio: 0.1 }] {
            let sum = |f: &dyn Fn(&Part) -> f64| skew.parts().iter().map(|p| p.weight * f(p)).sum::<f64>();
            assert_relative_eq!(sum(&|_| 1.0), 1.0, epsilon = 1e-15);
            assert_relative_eq!(sum(&|p| p.shift), 0.0, epsilon = 1e-14);
            assert_relative_eq!(sum(&|p| p.variance + p.shift * p.shift), 1.0, epsilon = 1e-14);
        }
        assert!(LEANS.skewness() > 0.5);
        assert_relative_eq!(LEANS.mirrored().skewness(), -LEANS.skewness(), epsilon = 1e-14);
    }

    #[test]
    fn leaning_changes_no_mean_and_no_variance() {
        let (plain, leaning) =
            (predictive(3, Dof::Shared(5.0), None), predictive(3, Dof::Shared(5.0), Some(LEANS)));
        assert_eq!(plain.mean(), leaning.mean());
        assert_eq!(plain.aleatoric_variance(), leaning.aleatoric_variance());
        assert_eq!(plain.epistemic_variance(), leaning.epistemic_variance());
        assert_ne!(plain.quantile(&[0.5]).unwrap(), leaning.quantile(&[0.5]).unwrap());
    }

    /// Density, distribution function, quantiles, score and moments of one leaning distribution belong together.
    #[test]
    fn every_answer_is_that_of_one_distribution() {
        for (members, dof) in [(1, Dof::Normal), (1, Dof::Shared(4.0)), (3, Dof::Shared(6.0))] {
            let predictive = predictive(members, dof, Some(LEANS));
            for p in [1e-6, 0.01, 0.3, 0.5, 0.9, 0.999] {
                let quantile = &predictive.quantile(&[p]).unwrap()[0];
                for j in 0..3 {
                    let y = quantile[(0, j)];
                    assert_relative_eq!(predictive.marginal_cdf(0, j, y), p, max_relative = 1e-9);
                    let h = 1e-5;
                    let cdf = |y: f64| predictive.marginal_cdf(0, j, y);
                    let slope = (cdf(y + h) - cdf(y - h)) / (2.0 * h);
                    let density = predictive.log_density(quantile.as_ref()).unwrap()[j].exp();
                    assert_relative_eq!(slope, density, max_relative = 1e-4, epsilon = 1e-9);
                }
            }
            // Trapezium on a grid fine and wide enough for what is asserted.
            let (steps, reach) = (60_000, 300.0);
            let y = Mat::from_fn(1, 3, |_, j| 0.8 - j as f64);
            let crps = predictive.crps(y.as_ref()).unwrap();
            for j in 0..3 {
                let (mut first, mut second, mut score) = (0.0, 0.0, 0.0);
                let one = predictive.select(&[j]).unwrap();
                let grid: Vec<f64> =
                    (0..=steps).map(|i| -reach + 2.0 * reach * f64::from(i) / f64::from(steps)).collect();
                for pair in grid.windows(2) {
                    let (middle, h) = (0.5 * (pair[0] + pair[1]), pair[1] - pair[0]);
                    let below = |x: f64| one.marginal_cdf(0, 0, x);
                    let mass = below(pair[1]) - below(pair[0]);
                    first += middle * mass;
                    second += middle * middle * mass;
                    score += h * (below(middle) - f64::from(u8::from(middle >= y[(0, j)]))).powi(2);
                }
                assert_relative_eq!(first, predictive.mean()[(0, j)], epsilon = 1e-3);
                // A variance with four degrees of freedom has some of it beyond any grid.
                let variance = second - first * first;
                assert_relative_eq!(variance, predictive.variance()[(0, j)], max_relative = 1e-2);
                assert_relative_eq!(score, crps[(0, j)], max_relative = 1e-3);
            }
        }
    }

    /// A mirrored target has the mirrored distribution.
    #[test]
    fn the_mirror_image_of_a_leaning_noise_leans_to_the_other_side() {
        let one = predictive(1, Dof::Shared(5.0), Some(LEANS));
        let other = predictive(1, Dof::Shared(5.0), Some(LEANS.mirrored()));
        for p in [0.05, 0.5, 0.8] {
            let (a, b) = (&one.quantile(&[p]).unwrap()[0], &other.quantile(&[1.0 - p]).unwrap()[0]);
            for j in 0..3 {
                let mean = one.mean()[(0, j)];
                assert_relative_eq!(a[(0, j)] - mean, mean - b[(0, j)], epsilon = 1e-9);
            }
        }
    }

    /// Five standard errors of a share; noise of two samples of one draw is independent.
    #[test]
    fn draws_lean_sample_by_sample() {
        let predictive = predictive(1, Dof::Shared(8.0), Some(LEANS));
        let n_draws = 20_000;
        let draws = predictive.sample(n_draws, &mut stream(5, 0));
        let share = |inside: &dyn Fn(&Mat<f64>) -> bool| {
            draws.iter().filter(|y| inside(y)).count() as f64 / n_draws as f64
        };
        let tolerance = |p: f64| 5.0 * (p * (1.0 - p) / n_draws as f64).sqrt();
        for p in [0.05, 0.5, 0.9] {
            let quantile = &predictive.quantile(&[p]).unwrap()[0];
            for j in 0..3 {
                assert!((share(&|y| y[(0, j)] <= quantile[(0, j)]) - p).abs() < tolerance(p), "{p}");
            }
            let both = share(&|y| y[(0, 0)] <= quantile[(0, 0)] && y[(0, 1)] <= quantile[(0, 1)]);
            assert!((both - p * p).abs() < tolerance(p * p), "{p}: {both}");
        }
        let mean = Mat::from_fn(1, 1, |_, _| draws.iter().map(|y| y[(0, 0)]).sum::<f64>() / n_draws as f64);
        let error = (predictive.variance()[(0, 0)] / n_draws as f64).sqrt();
        assert!((mean[(0, 0)] - predictive.mean()[(0, 0)]).abs() < 5.0 * error);
    }

    #[test]
    fn units_and_selections_carry_it_along_and_several_targets_do_not_lean() {
        let predictive = predictive(2, Dof::Shared(5.0), Some(LEANS));
        let larger = predictive.unscale(&[3.0], &[10.0]).unwrap().select(&[2, 0]).unwrap();
        for p in [0.1, 0.7] {
            let (own, in_units) =
                (&predictive.quantile(&[p]).unwrap()[0], &larger.quantile(&[p]).unwrap()[0]);
            for (place, j) in [2, 0].into_iter().enumerate() {
                assert_relative_eq!(in_units[(0, place)], 3.0 + 10.0 * own[(0, j)], max_relative = 1e-9);
            }
        }
        let targets = Mat::from_fn(1, 3, |_, j| j as f64);
        assert!(metrics::mean_crps(&predictive, targets.as_ref()).unwrap().is_finite());
        let two = Component {
            mean: Mat::zeros(2, 1),
            aleatoric: Covariance::Diagonal(Mat::from_fn(2, 1, |_, _| 1.0)),
            epistemic: Covariance::Zero,
            dof: Dof::Normal,
            skew: Some(LEANS),
        };
        assert!(Predictive::from_component(two).is_err());
    }

    #[test]
    fn numbers_that_make_no_distribution_are_refused() {
        assert!(LEANS.validate().is_ok());
        assert!(Skew { share: 1.0, ..LEANS }.validate().is_err());
        assert!(Skew { ratio: 0.0, ..LEANS }.validate().is_err());
        assert!(Skew { distance: f64::NAN, ..LEANS }.validate().is_err());
        assert!(Skew { distance: 1e200, ..LEANS }.validate().is_err());
    }
}
