//! Noise, doubt and tails as samples tell them that a network has not seen.
//!
//! ```text
//! y ~ t_ν( m, α a + β(e) + γ )       m, a, e: mean, aleatoric and epistemic variance of a prediction
//! β(e) = β min(e, e*) + β* max(e − e*, 0)
//! ```
//!
//! A network that fits its training rows closely thinks there is little noise. α, β, γ and ν, where the density of
//! all out-of-fold predictions is largest, put that right for every network of a model. On few samples a prior keeps
//! them near α = β = 1.
//!
//! Random folds leave every sample its neighbours: they say nothing of places far from all data. So e* is as much
//! epistemic variance as out-of-fold samples have (all but a twentieth of them), and β*, which acts beyond it, is where
//! the density is largest of samples held out as whole slices of a column ([`crate::data`]'s `slices`).
//!
//! Density tells how large the variance is, not what it is made of: where a and e rise and fall together, α and β stand
//! in for each other. What a network does know is the share e/(a + e): both are in proportion to its noise, and if it
//! thinks that too small, then both alike. So of the variance near the data at most this share is called epistemic:
//!
//! ```text
//! e' = min(e, e*) ,   T = α a + β e' + γ
//! epistemic = e' min(β, T/(a + e')) + β* (e − e') ,   aleatoric = the rest
//! ```
//!
//! Noise that leans to one side takes the shape that residuals ask for (`skew`), where the density of unseen samples is
//! larger with it by more than three more numbers gain by chance.
//!
//! All is in standard deviations of the targets.

use serde::{Deserialize, Serialize};

use super::skew;
use crate::base::check::positive;
use crate::base::nelder_mead::minimise;
use crate::error::{Error, Result};
use crate::prediction::{Part, Predictive, Skew};
use crate::special::{ln_gamma, log_sum_exp};

/// Least ν: with fewer degrees of freedom a standard deviation says little of where most targets are.
const LEAST_DOF: f64 = 2.5;

/// Mean and standard deviation of log α, log β, log γ and log(ν − 2.5) before anything is known.
const PRIOR: [(f64, f64); 4] = [(0.0, 1.0), (0.0, 1.0), (-6.0, 3.0), (2.0, 1.0)];

/// Where the search for them begins: as a network has it, and far less sure.
const STARTS: [[f64; 4]; 2] = [[0.0, 0.0, -6.0, 2.0], [1.0, 1.0, -3.0, 1.0]];

/// Samples that are enough to tell four numbers.
const ENOUGH: usize = 4000;

/// Least e*: networks without any epistemic variance have no place that is far.
const LEAST: f64 = 1e-12;

/// Share of the out-of-fold samples whose epistemic variance is at most e*.
const NEAR: f64 = 0.95;

/// Mean and standard deviation of log β* / β before anything is known.
const FAR_PRIOR: (f64, f64) = (2.0, 1.0);

/// log β* / β that are tried: a grid is enough for one number of which little is known.
const FAR_RANGE: (f64, f64, usize) = (0.0, 7.0, 36);

/// α, β, γ, ν, e* and β*.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// α: factor on the aleatoric variance.
    pub aleatoric: f64,
    /// β: factor on the epistemic variance.
    pub epistemic: f64,
    /// e*: epistemic variance, of standardised targets, beyond which a sample is far from all data.
    pub near: f64,
    /// β*: factor on what the epistemic variance is more than that.
    pub far: f64,
    /// γ: least variance of the noise, of standardised targets.
    pub floor: f64,
    /// ν: degrees of freedom, above 2.
    pub dof: f64,
    /// How the noise leans to one side, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skew>,
}

/// What one network says of each target of each sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Moments {
    pub(super) mean: Vec<f64>,
    pub(super) aleatoric: Vec<f64>,
    pub(super) epistemic: Vec<f64>,
}

impl Moments {
    /// Append what is predicted for more samples.
    pub(super) fn add(&mut self, predictive: &Predictive) {
        let (mean, aleatoric, epistemic) =
            (predictive.mean(), predictive.aleatoric_variance(), predictive.epistemic_variance());
        for j in 0..mean.ncols() {
            self.mean.extend(mean.col(j).iter());
            self.aleatoric.extend(aleatoric.col(j).iter());
            self.epistemic.extend(epistemic.col(j).iter());
        }
    }
}

impl Spread {
    /// The numbers under which the mixture of these networks, with their weights, gives the targets the largest
    /// density. `weights` are those of the targets.
    pub(super) fn fit(networks: &[(f64, &Moments)], targets: &[f64], weights: &[f64]) -> Self {
        Self::fit_with(None, networks, targets, weights)
    }

    /// The same, with noise of one target that leans to one side if that is clearly how it is.
    pub(super) fn and_skew(self, networks: &[(f64, &Moments)], targets: &[f64], weights: &[f64]) -> Self {
        let residuals = self.residuals(networks, targets);
        let Some(skew) = skew::of(&residuals, weights) else { return self };
        let leaning = Self::fit_with(Some(skew), networks, targets, weights);
        let density = |spread: &Self| -> f64 {
            let densities = spread.log_densities(networks, targets);
            densities.iter().zip(weights).map(|(density, weight)| density * weight).sum()
        };
        if density(&leaning) - density(&self) > skew::LEAST_GAIN { leaning } else { self }
    }

    fn fit_with(skew: Option<Skew>, networks: &[(f64, &Moments)], targets: &[f64], weights: &[f64]) -> Self {
        let step = targets.len().div_ceil(ENOUGH).max(1);
        let places: Vec<usize> = (0..targets.len()).step_by(step).collect();
        let loss = |p: &[f64; 4]| -> f64 {
            let spread = Self { skew, ..Self::at(p) };
            let constant = log_constant(spread.dof);
            let log_density: f64 = places
                .iter()
                .map(|&j| weights[j] * spread.mixture_log_density(networks, constant, targets[j], j))
                .sum();
            let prior: f64 = p.iter().zip(PRIOR).map(|(x, (m, s))| 0.5 * ((x - m) / s).powi(2)).sum();
            prior - log_density
        };
        let from = |start: [f64; 4]| minimise(loss, start, 0.5, (1e-4, 300));
        let (one, other) = (from(STARTS[0]), from(STARTS[1]));
        let mut spread = Self { skew, ..Self::at(&if other.1 < one.1 { other.0 } else { one.0 }) };
        let mut all: Vec<f64> =
            networks.iter().flat_map(|(_, moments)| places.iter().map(|&j| moments.epistemic[j])).collect();
        all.sort_by(f64::total_cmp);
        spread.near = all.get((NEAR * all.len() as f64) as usize).copied().unwrap_or(0.0).max(LEAST);
        spread
    }

    /// The same with the β* that gives targets of samples far from those a network has learned from the largest density.
    pub(super) fn and_far(self, moments: &Moments, targets: &[f64], weights: &[f64]) -> Self {
        let constant = log_constant(self.dof);
        let (low, high, steps) = FAR_RANGE;
        // Samples of a slice are wrong together: they count as much as one in ten of them.
        let share = 0.1;
        let at = |k: usize| {
            let log_ratio = low + (high - low) * k as f64 / (steps - 1) as f64;
            let spread = Self { far: self.epistemic * log_ratio.exp(), ..self };
            let density: f64 = targets
                .iter()
                .enumerate()
                .map(|(j, &y)| weights[j] * spread.log_density(moments, constant, y, j))
                .sum();
            (share * density - 0.5 * ((log_ratio - FAR_PRIOR.0) / FAR_PRIOR.1).powi(2), spread)
        };
        let best =
            (0..steps).map(at).filter(|(value, _)| value.is_finite()).max_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(self, |(_, spread)| spread)
    }

    /// The same with variances `c` times as large, but far from all data.
    pub(super) fn shrunk(self, c: f64) -> Self {
        let (aleatoric, epistemic, floor) = (c * self.aleatoric, c * self.epistemic, c * self.floor);
        Self { aleatoric, epistemic, floor, ..self }
    }

    /// β(e).
    pub(super) fn epistemic_variance(&self, e: f64) -> f64 {
        self.epistemic * e.min(self.near) + self.far * (e - self.near).max(0.0)
    }

    /// What noise and what doubt is in the variance of a prediction: aleatoric and epistemic part, which add up to
    /// α a + β(e) + γ.
    pub(super) fn parts(&self, a: f64, e: f64) -> (f64, f64) {
        let near = e.min(self.near);
        let known = self.aleatoric * a + self.floor + self.epistemic * near;
        let doubt = if near > 0.0 { near * self.epistemic.min(known / (a + near)) } else { 0.0 };
        (known - doubt, doubt + self.far * (e - near))
    }

    /// Slopes of the aleatoric part, then of the epistemic one, each by a and by e.
    pub(super) fn part_slopes(&self, a: f64, e: f64) -> [[f64; 2]; 2] {
        let near = e.min(self.near);
        let known = self.aleatoric * a + self.floor + self.epistemic * near;
        let share = known / (a + near);
        let (by_a, by_near) = if near > 0.0 && share < self.epistemic {
            let weight = near / (a + near);
            (weight * (self.aleatoric - share), share + weight * (self.epistemic - share))
        } else {
            (0.0, self.epistemic)
        };
        let by_e = if e < self.near { by_near } else { self.far };
        let total = if e < self.near { self.epistemic } else { self.far };
        [[self.aleatoric - by_a, total - by_e], [by_a, by_e]]
    }

    /// What a network says, with the noise, doubt and tails that samples it had not seen ask for.
    pub(super) fn apply(&self, predictive: &Predictive) -> Predictive {
        predictive.spread((self.aleatoric, self.floor), |a, e| self.parts(a, e), (self.dof, self.skew))
    }

    fn at(p: &[f64; 4]) -> Self {
        let [aleatoric, epistemic, floor, extra] = p.map(|x| x.clamp(-20.0, 12.0).exp());
        let dof = LEAST_DOF + extra;
        // No knee to begin with.
        Self { aleatoric, epistemic, near: f64::MAX, far: epistemic, floor, dof, skew: None }
    }

    /// log p of each target under the mixture.
    pub(super) fn log_densities(&self, networks: &[(f64, &Moments)], targets: &[f64]) -> Vec<f64> {
        let constant = log_constant(self.dof);
        let one = |(j, &y): (usize, &f64)| self.mixture_log_density(networks, constant, y, j);
        targets.iter().enumerate().map(one).collect()
    }

    fn mixture_log_density(&self, networks: &[(f64, &Moments)], constant: f64, y: f64, j: usize) -> f64 {
        if let [(_, only)] = networks {
            return self.log_density(only, constant, y, j);
        }
        let total: f64 = networks.iter().map(|(weight, _)| weight).sum();
        let terms: Vec<f64> = networks
            .iter()
            .map(|(weight, moments)| (weight / total).ln() + self.log_density(moments, constant, y, j))
            .collect();
        log_sum_exp(&terms)
    }

    fn log_density(&self, moments: &Moments, constant: f64, y: f64, j: usize) -> f64 {
        let at = |mean: f64, variance: f64| {
            let square = (y - mean).powi(2) / (variance * (self.dof - 2.0));
            constant - 0.5 * variance.ln() - 0.5 * (self.dof + 1.0) * square.ln_1p()
        };
        let (mean, a, e) = (moments.mean[j], moments.aleatoric[j], moments.epistemic[j]);
        let Some(skew) = &self.skew else {
            return at(mean, self.aleatoric * a + self.epistemic_variance(e) + self.floor);
        };
        let (noise, doubt) = self.parts(a, e);
        let within = |part: Part| {
            part.weight.ln() + at(mean + part.shift * noise.sqrt(), part.variance * noise + doubt)
        };
        log_sum_exp(&skew.parts().map(within))
    }

    /// Targets less the mixture's mean, in deviations of the mixture.
    fn residuals(&self, networks: &[(f64, &Moments)], targets: &[f64]) -> Vec<f64> {
        let total: f64 = networks.iter().map(|(weight, _)| weight).sum();
        let one = |(j, y): (usize, &f64)| {
            let over = |value: &dyn Fn(&Moments) -> f64| -> f64 {
                networks.iter().map(|(weight, moments)| weight / total * value(moments)).sum()
            };
            let mean = over(&|m| m.mean[j]);
            let variance = over(&|m| {
                let (noise, doubt) = self.parts(m.aleatoric[j], m.epistemic[j]);
                noise + doubt + (m.mean[j] - mean).powi(2)
            });
            (y - mean) / variance.sqrt()
        };
        targets.iter().enumerate().map(one).collect()
    }

    /// Positive factors, tails with a variance.
    pub(super) fn validate(&self) -> Result<()> {
        positive("spread.aleatoric", self.aleatoric)?;
        positive("spread.epistemic", self.epistemic)?;
        positive("spread.near", self.near)?;
        positive("spread.far", self.far)?;
        positive("spread.floor", self.floor)?;
        self.skew.iter().try_for_each(Skew::validate)?;
        if self.dof > 2.0 && self.dof.is_finite() {
            Ok(())
        } else {
            Err(Error::DegreesOfFreedom { what: "spread.dof", dof: self.dof, bound: 2.0 })
        }
    }
}

/// log of the factor that does not depend on the target, of a Student-t with unit variance.
fn log_constant(dof: f64) -> f64 {
    ln_gamma(0.5 * (dof + 1.0)) - ln_gamma(0.5 * dof) - 0.5 * (std::f64::consts::PI * (dof - 2.0)).ln()
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;
    use rand_distr::{Distribution, StandardNormal, StudentT};

    use super::*;
    use crate::base::random::stream;
    use crate::prediction::{Component, Covariance, Dof};

    /// Networks that predict `n` samples, and the number that belongs to sample j.
    fn moments(n: usize, aleatoric: impl Fn(usize) -> f64, epistemic: impl Fn(usize) -> f64) -> Moments {
        Moments {
            mean: (0..n).map(|j| (j as f64).sin()).collect(),
            aleatoric: (0..n).map(aleatoric).collect(),
            epistemic: (0..n).map(epistemic).collect(),
        }
    }

    #[test]
    fn factors_and_tails_that_made_the_targets_are_found_again() {
        let n = 4000;
        let network = moments(n, |j| 0.01 * (1 + j % 7) as f64, |j| 0.02 * (1 + j % 11) as f64);
        let (mut rng, tails) = (stream(1, 0), StudentT::new(6.0).unwrap());
        let targets: Vec<f64> = (0..n)
            .map(|j| {
                let variance = 3.0 * network.aleatoric[j] + 0.5 * network.epistemic[j];
                let draw: f64 = tails.sample(&mut rng);
                network.mean[j] + (variance * 4.0 / 6.0).sqrt() * draw
            })
            .collect();
        let spread = Spread::fit(&[(1.0, &network)], &targets, &vec![1.0; n]);
        // Four standard errors or so of each; the two factors stand in for each other.
        assert!((spread.dof - 6.0).abs() < 2.0, "{spread:?}");
        let variance = |s: &Spread, a: f64, e: f64| s.aleatoric * a + s.epistemic * e + s.floor;
        for (a, e) in [(0.01, 0.02), (0.07, 0.02), (0.01, 0.22), (0.07, 0.22)] {
            assert_relative_eq!(variance(&spread, a, e), 3.0 * a + 0.5 * e, max_relative = 0.25);
        }
        // No other numbers near them do better by more than the prior allows.
        let density = |s: &Spread| s.log_densities(&[(1.0, &network)], &targets).iter().sum::<f64>();
        for factor in [0.8, 1.25] {
            let other = Spread { aleatoric: factor * spread.aleatoric, ..spread };
            assert!(density(&other) < density(&spread));
            let other = Spread { dof: 2.0 + factor * (spread.dof - 2.0), ..spread };
            assert!(density(&other) < density(&spread));
        }
    }

    #[test]
    fn samples_far_away_say_how_doubt_grows_there_and_change_nothing_nearby() {
        let n = 2000;
        let mut rng = stream(3, 0);
        // Noise of variance 0.1; doubt that is right below 0.05 and a tenth of what it should be above.
        let draw = |network: &Moments, variance: &dyn Fn(f64) -> f64, rng: &mut dyn rand::Rng| -> Vec<f64> {
            let one = |j: usize, rng: &mut dyn rand::Rng| {
                let draw: f64 = StandardNormal.sample(rng);
                network.mean[j] + (0.1 + variance(network.epistemic[j])).sqrt() * draw
            };
            (0..network.mean.len()).map(|j| one(j, rng)).collect()
        };
        let truth = |e: f64| e.min(0.05) + 10.0 * (e - 0.05).max(0.0);
        let near = moments(n, |_| 0.1, |j| 0.05 * ((j % 10) as f64) / 9.0);
        let far = moments(n, |_| 0.1, |j| 0.05 * (1 + j % 10) as f64);
        let targets = draw(&near, &truth, &mut rng);
        let spread = Spread::fit(&[(1.0, &near)], &targets, &vec![1.0; n]);
        assert_relative_eq!(spread.near, 0.05, max_relative = 1e-12);
        let put_right = spread.and_far(&far, &draw(&far, &truth, &mut rng), &vec![1.0; n]);
        assert_relative_eq!(put_right.far, 10.0, max_relative = 0.3);
        assert_eq!(Spread { far: spread.far, ..put_right }, spread);
        for e in [0.0, 0.02, 0.05] {
            assert_eq!(put_right.epistemic_variance(e), spread.epistemic_variance(e));
        }
        assert!(put_right.epistemic_variance(0.5) > 5.0 * spread.epistemic_variance(0.5));
    }

    /// Twice as much noise as the network thinks, all of it charged to doubt by chance: the share is still the network's.
    #[test]
    fn no_more_is_called_epistemic_than_the_networks_own_share() {
        let (a, e) = (0.09, 0.01);
        let honest = Spread {
            aleatoric: 2.0,
            epistemic: 2.0,
            near: 0.05,
            far: 7.0,
            floor: 1e-9,
            dof: 5.0,
            skew: None,
        };
        let confused = Spread { aleatoric: 0.01, epistemic: 0.1991 / e, ..honest };
        for spread in [honest, confused] {
            let (aleatoric, epistemic) = spread.parts(a, e);
            assert_relative_eq!(aleatoric + epistemic, 0.2, max_relative = 1e-3);
            assert_relative_eq!(epistemic, 0.02, max_relative = 1e-3);
        }
        // A factor that says less is believed.
        let (_, epistemic) = Spread { epistemic: 0.5, ..honest }.parts(a, e);
        assert_relative_eq!(epistemic, 0.5 * e, max_relative = 1e-12);
    }

    #[test]
    fn parts_add_up_and_doubt_grows_with_the_networks_own() {
        let spreads = [(0.05, 17.0, 18.0), (1.3, 33.0, 110.0), (1.0, 0.2, 0.2), (1e-6, 1e3, 2e3)];
        for (aleatoric, epistemic, far) in spreads {
            let spread = Spread { aleatoric, epistemic, near: 0.03, far, floor: 1e-3, dof: 4.0, skew: None };
            for a in [1e-9, 1e-3, 0.2] {
                let mut last = 0.0;
                for k in 0..60 {
                    let e = if k == 0 { 0.0 } else { 1e-6 * 1.3_f64.powi(k) };
                    let (noise, doubt) = spread.parts(a, e);
                    let total = spread.aleatoric * a + spread.epistemic_variance(e) + spread.floor;
                    assert_relative_eq!(noise + doubt, total, max_relative = 1e-12);
                    assert!(noise >= 0.0 && doubt >= last, "{spread:?} {a} {e}");
                    last = doubt;
                }
            }
        }
    }

    #[test]
    fn a_few_samples_leave_networks_their_word_and_overconfident_ones_are_corrected() {
        let few = moments(4, |_| 0.1, |_| 0.1);
        let spread = Spread::fit(&[(1.0, &few)], &few.mean, &[1.0; 4]);
        assert!((0.1..2.0).contains(&spread.aleatoric), "{spread:?}");
        // Noise a hundred times what the network thinks.
        let n = 500;
        let sure = moments(n, |_| 1e-4, |_| 1e-4);
        let mut rng = stream(2, 0);
        let targets: Vec<f64> = sure
            .mean
            .iter()
            .map(|mean| {
                let draw: f64 = StandardNormal.sample(&mut rng);
                mean + 0.1 * draw
            })
            .collect();
        let spread = Spread::fit(&[(1.0, &sure)], &targets, &vec![1.0; n]);
        let variance = 1e-4 * (spread.aleatoric + spread.epistemic) + spread.floor;
        assert_relative_eq!(variance, 0.01, max_relative = 0.3);
    }

    #[test]
    fn a_weight_of_two_is_two_targets() {
        let (one, twice) = (moments(40, |_| 0.2, |_| 0.1), moments(80, |_| 0.2, |_| 0.1));
        let mut doubled = Moments { mean: one.mean.repeat(2), ..twice };
        doubled.mean.truncate(80);
        let targets: Vec<f64> =
            one.mean.iter().enumerate().map(|(j, m)| m + 0.5 * (j as f64).cos()).collect();
        let weighted = Spread::fit(&[(1.0, &one)], &targets, &[2.0; 40]);
        let repeated = Spread::fit(&[(1.0, &doubled)], &targets.repeat(2), &[1.0; 80]);
        assert_relative_eq!(weighted.aleatoric, repeated.aleatoric, max_relative = 1e-6);
    }

    /// The density that was fitted is the one that predictions have.
    #[test]
    fn a_predictive_that_is_spread_has_the_fitted_density() {
        let spread =
            Spread { aleatoric: 2.0, epistemic: 0.3, near: 0.7, far: 2.5, floor: 0.05, dof: 3.7, skew: None };
        let component = |shift: f64| Component {
            mean: Mat::from_fn(2, 3, |i, j| shift + (i + 2 * j) as f64 / 3.0),
            aleatoric: Covariance::Diagonal(Mat::from_fn(2, 3, |i, j| 0.1 * (1 + i + j) as f64)),
            epistemic: Covariance::Diagonal(Mat::from_fn(2, 3, |i, j| 0.2 * (2 + i * j) as f64)),
            dof: Dof::Normal,
            skew: None,
        };
        let members: Vec<Predictive> =
            [0.0, 0.4].iter().map(|&shift| Predictive::from_component(component(shift)).unwrap()).collect();
        let moments: Vec<Moments> = members
            .iter()
            .map(|member| {
                let mut moments = Moments::default();
                moments.add(member);
                moments
            })
            .collect();
        let spread_out = members.iter().zip([3.0, 1.0]).map(|(m, w)| (w, spread.apply(m)));
        let mixture = Predictive::weighted_mixture(spread_out.collect()).unwrap();
        // One target, so that the joint density is the marginal one.
        let networks = [(3.0, &moments[0]), (1.0, &moments[1])];
        let targets: Vec<f64> = (0..6).map(|k| 0.3 * f64::from(k)).collect();
        let expected = spread.log_densities(&networks, &targets);
        for j in 0..3 {
            for i in 0..2 {
                let h = 1e-5;
                let y = targets[2 * j + i];
                let slope =
                    (mixture.marginal_cdf(i, j, y + h) - mixture.marginal_cdf(i, j, y - h)) / (2.0 * h);
                assert_relative_eq!(slope.ln(), expected[2 * j + i], epsilon = 1e-6);
            }
        }
    }

    #[test]
    fn slopes_of_the_parts_are_their_derivatives() {
        let spread =
            Spread { aleatoric: 2.0, epistemic: 0.3, near: 0.7, far: 2.5, floor: 0.05, dof: 3.7, skew: None };
        // Doubt that is held to the network's own share.
        let held = Spread { aleatoric: 0.05, epistemic: 17.0, far: 18.0, ..spread };
        let h = 1e-6;
        let places = [(0.4, 0.2), (0.4, 0.9), (0.01, 0.5), (3.0, 5.0)];
        for (spread, (a, e)) in [spread, held].into_iter().flat_map(|s| places.map(|place| (s, place))) {
            let slopes = spread.part_slopes(a, e);
            for (by, (da, de)) in [(h, 0.0), (0.0, h)].into_iter().enumerate() {
                let (after, before) = (spread.parts(a + da, e + de), spread.parts(a - da, e - de));
                assert_relative_eq!(slopes[0][by], (after.0 - before.0) / (2.0 * h), epsilon = 1e-6);
                assert_relative_eq!(slopes[1][by], (after.1 - before.1) / (2.0 * h), epsilon = 1e-6);
            }
        }
    }

    #[test]
    fn draws_of_a_network_move_apart_with_the_epistemic_factor() {
        let draw = |mean: f64| Component {
            mean: Mat::from_fn(1, 1, |_, _| mean),
            aleatoric: Covariance::Shared(Mat::from_fn(1, 1, |_, _| 0.5)),
            epistemic: Covariance::Zero,
            dof: Dof::Normal,
            skew: None,
        };
        let draws = Predictive::new(vec![draw(1.0), draw(2.0), draw(6.0)]).unwrap();
        let spread = draws.spread((2.0, 0.1), |a, e| (2.0 * a + 0.1, 4.0 * e), (9.0, None));
        assert_relative_eq!(spread.mean()[(0, 0)], 3.0, epsilon = 1e-12);
        let epistemic = |p: &Predictive| p.epistemic_variance()[(0, 0)];
        assert_relative_eq!(epistemic(&spread), 4.0 * epistemic(&draws), epsilon = 1e-12);
        assert_relative_eq!(spread.aleatoric_variance()[(0, 0)], 1.1, epsilon = 1e-12);
    }

    #[test]
    fn numbers_that_make_no_distribution_are_refused() {
        let good =
            Spread { aleatoric: 1.0, epistemic: 1.0, near: 0.1, far: 1.0, floor: 1e-6, dof: 5.0, skew: None };
        assert!(good.validate().is_ok());
        assert!(Spread { dof: 2.0, ..good }.validate().is_err());
        assert!(Spread { aleatoric: 0.0, ..good }.validate().is_err());
        assert!(Spread { floor: f64::NAN, ..good }.validate().is_err());
    }
}
