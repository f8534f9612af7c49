//! A predictive recalibrated by conformal scores: one symmetric distribution of the standardised residual, the same for
//! all samples, in place of the model's own.
//!
//! ```text
//! y = ⟨y⟩ + std · Z ,   s_i = |y_i − ⟨y⟩_i| / std_i of n held-out samples, sorted
//! P(|Z| ≤ s_(k)) = k/(n+1)                        linear between scores, and from 0 to the first
//! P(|Z| > r)     = 2 P(t_k > a r)                  beyond the largest score: the model's own tail, with its heaviest
//!                                                 degrees of freedom k, and a such that it is continuous
//! ```
//!
//! Quantiles at ½ ± c/2 are then ⟨y⟩ ± std · s_(k) for every c = k/(n+1). Between two such c an interval takes the score
//! of the higher rank, ⌈(n+1) c⌉, by which it covers c whatever the model (split conformal prediction); beyond the last
//! the promise is the tail's. Scores that occur twice count once, at the lowest rank.
//!
//! ```text
//! A(x) = ∫_x^∞ P(|Z| > r) dr         E|Z − x| = |x| + A(|x|)         ½ E|Z − Z′| = A(0) − ½ ∫_0^∞ P(|Z| > r)² dr
//! ```

use std::sync::OnceLock;

use super::scores::integral;
use crate::special::{student_t_quantile, tail_and_density};

/// Error of the one integral without closed form, in largest scores.
const TOLERANCE: f64 = 1e-12;

/// Distribution of Z for one target.
#[derive(Clone, Debug)]
pub(crate) struct Recalibrated {
    /// Scores in rising order.
    scores: Vec<f64>,
    /// Distinct places r_0 = 0 < r_1 < …, P(|Z| > r_j), and A(r_j).
    knots: Vec<Knot>,
    tail: Tail,
    /// E[Z²].
    variance: f64,
    /// ½ E|Z − Z′|, once it is asked for.
    half_spread: OnceLock<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Knot {
    at: f64,
    survival: f64,
    integral: f64,
}

/// P(|Z| > r) = 2 P(t_k > `rate` · r).
#[derive(Clone, Copy, Debug)]
struct Tail {
    rate: f64,
    dof: f64,
}

impl Recalibrated {
    /// From scores in rising order and the degrees of freedom of the tail; nothing if the largest score is not a positive
    /// number, by which nothing can be scaled.
    pub(crate) fn new(scores: &[f64], dof: f64) -> Option<Self> {
        let share = 1.0 / (scores.len() + 1) as f64;
        let mut knots = vec![Knot { at: 0.0, survival: 1.0, integral: 0.0 }];
        for (i, &at) in scores.iter().enumerate() {
            if knots.last().is_some_and(|knot| at > knot.at) {
                knots.push(Knot { at, survival: 1.0 - (i + 1) as f64 * share, integral: 0.0 });
            }
        }
        let last = knots.len() - 1;
        if last == 0 || !knots[last].at.is_finite() {
            return None;
        }
        let rate = -student_t_quantile(0.5 * knots[last].survival, dof) / knots[last].at;
        let tail = Tail { rate, dof };
        knots[last].integral = tail.integral(knots[last].at);
        for j in (0..last).rev() {
            let (here, next) = (knots[j], knots[j + 1]);
            knots[j].integral = next.integral + 0.5 * (next.at - here.at) * (here.survival + next.survival);
        }
        let body: f64 = knots
            .windows(2)
            .map(|ends| {
                let (a, b) = (ends[0].at, ends[1].at);
                (ends[0].survival - ends[1].survival) * (a * a + a * b + b * b) / 3.0
            })
            .sum();
        let variance = body + tail.second_moment(knots[last].at);
        Some(Self { scores: scores.to_vec(), knots, tail, variance, half_spread: OnceLock::new() })
    }

    /// r with which ⟨y⟩ ± r · std covers `coverage`: the score of rank ⌈(n+1) `coverage`⌉, or the tail's quantile.
    pub(crate) fn radius(&self, coverage: f64) -> f64 {
        // Rounding must not raise (n+1) · k/(n+1) to the next rank.
        let rank = ((self.scores.len() + 1) as f64 * coverage * (1.0 - 4.0 * f64::EPSILON)).ceil() as usize;
        match self.scores.get(rank.max(1) - 1) {
            Some(&score) => score,
            None => self.survival_quantile(1.0 - coverage),
        }
    }

    /// P(|Z| > r), r ≥ 0.
    fn survival(&self, r: f64) -> f64 {
        match self.segment(r) {
            Some((here, next)) => {
                let share = (r - here.at) / (next.at - here.at);
                here.survival + share * (next.survival - here.survival)
            }
            None => self.tail.survival(r),
        }
    }

    /// P(Z ≤ z).
    pub(crate) fn cdf(&self, z: f64) -> f64 {
        if z < 0.0 { 0.5 * self.survival(-z) } else { 1.0 - 0.5 * self.survival(z) }
    }

    /// P(Z > |z|), the smaller tail at z, with all its digits.
    pub(crate) fn smaller_tail(&self, z: f64) -> f64 {
        0.5 * self.survival(z.abs())
    }

    /// z with P(Z ≤ z) = p.
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        let r = self.survival_quantile(2.0 * p.min(1.0 - p));
        if p < 0.5 { -r } else { r }
    }

    /// r with P(|Z| > r) = `survival`.
    fn survival_quantile(&self, survival: f64) -> f64 {
        let above = self.knots.partition_point(|knot| knot.survival >= survival);
        match (above.checked_sub(1).map(|j| self.knots[j]), self.knots.get(above)) {
            (Some(here), Some(next)) => {
                let share = (here.survival - survival) / (here.survival - next.survival);
                here.at + share * (next.at - here.at)
            }
            (None, _) => 0.0,
            (_, None) => -student_t_quantile(0.5 * survival, self.tail.dof) / self.tail.rate,
        }
    }

    /// Density of Z at z.
    pub(crate) fn density(&self, z: f64) -> f64 {
        match self.segment(z.abs()) {
            Some((here, next)) => 0.5 * (here.survival - next.survival) / (next.at - here.at),
            None => self.tail.rate * tail_and_density(self.tail.rate * z.abs(), self.tail.dof).1,
        }
    }

    /// E[Z²].
    pub(crate) fn variance(&self) -> f64 {
        self.variance
    }

    /// E|Z − z| − ½ E|Z − Z′|.
    pub(crate) fn crps(&self, z: f64) -> f64 {
        z.abs() + self.integral(z.abs()) - self.half_spread()
    }

    /// A(r).
    fn integral(&self, r: f64) -> f64 {
        match self.segment(r) {
            Some((_, next)) => next.integral + 0.5 * (next.at - r) * (self.survival(r) + next.survival),
            None => self.tail.integral(r),
        }
    }

    fn half_spread(&self) -> f64 {
        *self.half_spread.get_or_init(|| {
            let body: f64 = self
                .knots
                .windows(2)
                .map(|ends| {
                    let (a, b) = (ends[0].survival, ends[1].survival);
                    (ends[1].at - ends[0].at) * (a * a + a * b + b * b) / 3.0
                })
                .sum();
            self.knots[0].integral - 0.5 * (body + self.tail.squared_integral(self.largest()))
        })
    }

    fn largest(&self) -> Knot {
        self.knots[self.knots.len() - 1]
    }

    /// The knots around r, or nothing beyond the last.
    fn segment(&self, r: f64) -> Option<(Knot, Knot)> {
        let next = self.knots.partition_point(|knot| knot.at <= r);
        Some((self.knots[next.checked_sub(1)?], *self.knots.get(next)?))
    }
}

impl Tail {
    fn survival(&self, r: f64) -> f64 {
        2.0 * tail_and_density(self.rate * r, self.dof).0
    }

    /// ∫_r^∞ 2 P(t > a u) du = 2/a · [ (k + x²)/(k−1) f(x) − x P(t > x) ] ,  x = a r.
    fn integral(&self, r: f64) -> f64 {
        let x = self.rate * r;
        let (tail, density) = tail_and_density(x, self.dof);
        let spread = if self.dof.is_finite() { (self.dof + x * x) / (self.dof - 1.0) } else { 1.0 };
        2.0 / self.rate * (spread * density - x * tail)
    }

    /// ∫_r^∞ u² dP = 2/a² · [ x (k + x²) f(x) + k P(t > x) ] / (k−2) ,  x = a r.
    fn second_moment(&self, r: f64) -> f64 {
        let x = self.rate * r;
        let (tail, density) = tail_and_density(x, self.dof);
        let moment = if self.dof.is_finite() {
            (x * (self.dof + x * x) * density + self.dof * tail) / (self.dof - 2.0)
        } else {
            x * density + tail
        };
        2.0 / (self.rate * self.rate) * moment
    }

    /// ∫ P(|Z| > r)² dr beyond the last knot, on r = at + scale t/(1−t).
    fn squared_integral(&self, last: Knot) -> f64 {
        let scale = 1.0 / self.rate;
        let mapped = |t: f64| {
            let rest = 1.0 - t;
            scale / (rest * rest) * self.survival(last.at + scale * t / rest).powi(2)
        };
        integral(&mapped, 0.0, 1.0, TOLERANCE * last.at, 40)
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;
    use rand::RngExt;

    use super::*;
    use crate::base::random::stream;
    use crate::metrics;
    use crate::prediction::{Component, Covariance, Dof, Predictive};

    /// Held-out residuals of a model that is too sure of itself, sorted.
    fn scores(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = stream(seed, 0);
        let mut scores: Vec<f64> = (0..n).map(|_| 2.5 * -rng.random::<f64>().ln()).collect();
        scores.sort_by(f64::total_cmp);
        scores
    }

    fn own(d: usize, n: usize, n_members: usize) -> Predictive {
        let member = |m: usize| Component {
            mean: Mat::from_fn(d, n, |i, j| 0.3 * m as f64 * (j as f64).cos() - i as f64),
            aleatoric: Covariance::Shared(Mat::from_fn(
                d,
                d,
                |i, j| if i == j { 1.0 + i as f64 } else { 0.4 },
            )),
            epistemic: Covariance::Diagonal(Mat::from_fn(d, n, |_, j| 0.1 * (1 + j % 5) as f64)),
            dof: if m == 1 { Dof::Normal } else { Dof::Shared(5.0 + m as f64) },
            skew: None,
        };
        Predictive::new((0..n_members).map(member).collect()).unwrap()
    }

    fn calibrated(d: usize, n: usize, n_members: usize, n_scores: usize) -> Predictive {
        let scores: Vec<_> = (0..d).map(|i| scores(n_scores, i as u64)).collect();
        own(d, n, n_members).conformal(&scores)
    }

    #[test]
    fn quantiles_and_the_distribution_function_take_each_other_back() {
        for dof in [2.5, 30.0, f64::INFINITY] {
            let z = Recalibrated::new(&scores(37, 1), dof).unwrap();
            for p in [1e-9, 1e-3, 0.01, 0.2, 0.49, 0.5, 0.77, 0.97, 0.999] {
                assert_relative_eq!(z.cdf(z.quantile(p)), p, max_relative = 1e-11);
            }
            // Every score is the quantile of its rank.
            for (i, score) in scores(37, 1).iter().enumerate() {
                let p = 0.5 + 0.5 * (i + 1) as f64 / 38.0;
                assert_relative_eq!(z.quantile(p), *score, max_relative = 1e-9);
                assert_eq!(z.radius((i + 1) as f64 / 38.0), *score);
            }
        }
    }

    /// Midpoints on a fine grid between knots, so that no panel straddles a step of the density.
    #[test]
    fn the_density_integrates_to_the_distribution_function_the_variance_and_the_score() {
        for dof in [6.0, f64::INFINITY] {
            let z = Recalibrated::new(&scores(20, 3), dof).unwrap();
            let mut edges = vec![0.0];
            edges.extend(scores(20, 3));
            let last = edges[20];
            edges.extend((1..60).map(|i| last * 1.25_f64.powi(i)));
            let y = 0.83 * last;
            let over = |f: &dyn Fn(f64) -> f64| -> f64 {
                let panel = |ends: &[f64]| integral(&f, ends[0], ends[1], 1e-13, 40);
                edges.windows(2).map(panel).sum()
            };
            let both = |f: &dyn Fn(f64) -> f64| over(&|r| f(r)) + over(&|r| f(-r));
            assert_relative_eq!(both(&|r| z.density(r)), 1.0, epsilon = 1e-8);
            assert_relative_eq!(both(&|r| r * r * z.density(r)), z.variance(), max_relative = 1e-6);
            let squared = both(&|r| (z.cdf(r) - f64::from(u8::from(r >= y))).powi(2));
            assert_relative_eq!(squared, z.crps(y), max_relative = 1e-6);
            assert_relative_eq!(z.crps(-y), z.crps(y), max_relative = 1e-14);
        }
    }

    #[test]
    fn every_answer_is_that_of_one_distribution() {
        for n_members in [1, 3] {
            let predictive = calibrated(2, 4, n_members, 39);
            let own = own(2, 4, n_members);
            assert!(predictive.mean() == own.mean());
            // Ranks of 39 scores are fortieths; beyond 39/40 there is the tail.
            for coverage in [0.05, 0.5, 0.9, 0.975, 0.99, 0.9999] {
                let (low, high) = predictive.interval(coverage).unwrap();
                let bounds = predictive.quantile(&[0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage]).unwrap();
                for (bound, quantile) in [(&low, &bounds[0]), (&high, &bounds[1])] {
                    for (i, j) in (0..8).map(|k| (k % 2, k / 2)) {
                        assert_relative_eq!(bound[(i, j)], quantile[(i, j)], max_relative = 1e-9);
                    }
                }
                let transforms = metrics::pit(&predictive, high.as_ref()).unwrap();
                for (i, j) in (0..8).map(|k| (k % 2, k / 2)) {
                    assert_relative_eq!(transforms[(i, j)], 0.5 + 0.5 * coverage, max_relative = 1e-9);
                }
            }
            // Between two ranks an interval takes the higher one.
            let (_, high) = predictive.interval(0.88).unwrap();
            assert!(high == predictive.interval(0.9).unwrap().1);
            let variances = (predictive.variance(), own.variance());
            for j in 0..4 {
                let covariance = predictive.covariance(j);
                for i in 0..2 {
                    let factor = predictive.recalibrated().unwrap()[i].variance();
                    assert_relative_eq!(
                        variances.0[(i, j)],
                        factor * variances.1[(i, j)],
                        max_relative = 1e-12
                    );
                    assert_relative_eq!(covariance[(i, i)], variances.0[(i, j)], max_relative = 1e-12);
                }
            }
        }
    }

    #[test]
    fn the_density_of_a_target_is_the_slope_of_its_distribution_function() {
        let predictive = calibrated(1, 3, 2, 25);
        for place in [-9.0, -0.4, 0.1, 2.0, 30.0] {
            let at = |shift: f64| Mat::from_fn(1, 3, |_, j| predictive.mean()[(0, j)] + place + shift);
            let density = predictive.log_density(at(0.0).as_ref()).unwrap();
            for (j, density) in density.iter().enumerate() {
                let h = 1e-6;
                let cdf = |shift: f64| predictive.marginal_cdf(0, j, at(shift)[(0, j)]);
                assert_relative_eq!(
                    density.exp(),
                    (cdf(h) - cdf(-h)) / (2.0 * h),
                    max_relative = 1e-4,
                    epsilon = 1e-9
                );
            }
        }
    }

    /// ∫ p(y₁, y₂) dy₂ = p(y₁), on a grid of quantiles: ∫ p dy₂ = ∫₀¹ p(y₁ | u₂)/p(y₂) du₂ · p(y₁).
    #[test]
    fn a_joint_density_has_the_recalibrated_marginals() {
        let predictive = calibrated(2, 1, 1, 30);
        let z = predictive.recalibrated().unwrap();
        let (mean, std) = predictive.own_moments(1, 0);
        let (first_mean, first_std) = predictive.own_moments(0, 0);
        for y in [-2.0, 0.3] {
            let steps = 4000;
            let sum: f64 = (0..steps)
                .map(|i| {
                    let u = (f64::from(i) + 0.5) / f64::from(steps);
                    let place = z[1].quantile(u);
                    let targets = Mat::from_fn(2, 1, |k, _| if k == 0 { y } else { mean + std * place });
                    let joint = predictive.log_density(targets.as_ref()).unwrap()[0].exp();
                    joint / (z[1].density(place) / std) / f64::from(steps)
                })
                .sum();
            let expected = z[0].density((y - first_mean) / first_std) / first_std;
            assert_relative_eq!(sum, expected, max_relative = 1e-3);
        }
    }

    /// Held-out targets of the distribution that made the scores: coverage given n scores is Beta(k, n+1−k) for rank k,
    /// and the draws add a binomial error; five standard deviations of both.
    #[test]
    fn coverage_holds_on_samples_that_were_not_scored() {
        let (n, n_scores) = (4000, 399);
        let own = own(1, n, 2);
        let predictive = own.clone().conformal(&[scores(n_scores, 11)]);
        let mut rng = stream(12, 0);
        let targets = Mat::from_fn(1, n, |_, j| {
            let (mean, std) = own.own_moments(0, j);
            let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
            mean + sign * std * 2.5 * -rng.random::<f64>().ln()
        });
        for coverage in [0.25_f64, 0.5, 0.9] {
            let found = metrics::interval_coverage(&predictive, targets.as_ref(), coverage).unwrap();
            let variance = coverage * (1.0 - coverage) * (1.0 / n as f64 + 1.0 / n_scores as f64);
            assert!((found - coverage).abs() < 5.0 * variance.sqrt(), "{coverage}: {found}");
        }
        let error = metrics::calibration_error(&predictive, targets.as_ref()).unwrap();
        assert!(error < 5.0 * (0.25 / n_scores as f64 + 0.25 / n as f64).sqrt(), "{error}");
        assert!(metrics::calibration_error(&own, targets.as_ref()).unwrap() > 0.2);
        let score = |predictive: &Predictive| metrics::mean_crps(predictive, targets.as_ref()).unwrap();
        assert!(score(&predictive) < score(&own));
        let density = |p: &Predictive| metrics::log_predictive_density(p, targets.as_ref()).unwrap();
        assert!(density(&predictive) > density(&own));
    }

    /// Five standard errors of a mean and of a share.
    #[test]
    fn draws_are_those_of_the_recalibrated_distribution() {
        let predictive = calibrated(1, 1, 2, 50);
        let n_draws = 20_000;
        let draws = predictive.sample(n_draws, &mut stream(2, 0));
        for p in [0.05, 0.5, 0.9] {
            let quantile = predictive.quantile(&[p]).unwrap()[0][(0, 0)];
            let share = draws.iter().filter(|y| y[(0, 0)] <= quantile).count() as f64 / n_draws as f64;
            let tolerance = 5.0 * (p * (1.0 - p) / n_draws as f64).sqrt();
            assert!((share - p).abs() < tolerance, "{p}: {share}");
        }
    }

    #[test]
    fn scores_that_say_nothing_leave_the_model_its_word_and_ties_keep_the_lower_rank() {
        assert!(Recalibrated::new(&[0.0, 0.0], 5.0).is_none());
        assert!(Recalibrated::new(&[1.0, f64::INFINITY], 5.0).is_none());
        assert!(Recalibrated::new(&[], 5.0).is_none());
        let z = Recalibrated::new(&[0.0, 1.0, 1.0, 1.0, 2.0], 5.0).unwrap();
        assert_relative_eq!(z.survival(1.0), 1.0 - 2.0 / 6.0, max_relative = 1e-14);
        assert_relative_eq!(z.survival(2.0), 1.0 / 6.0, max_relative = 1e-14);
        assert_eq!(z.radius(0.5), 1.0);
    }
}
