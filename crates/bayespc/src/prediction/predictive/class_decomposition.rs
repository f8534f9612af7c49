//! The entropy of a predicted class, split into noise and what more data would take away.
//!
//! ```text
//! total = H(p) ,   p = Σ_c w_c p_c                           p_c(k) ∝ N(e_k | μ_c, A_c + E_c)
//! aleatoric = Σ_c w_c E_{a ~ q_c}[ H(p(· | a)) ]              p(k | a) ∝ N(e_k | a, A_c)
//! epistemic = total − aleatoric                              the mutual information of class, component and code a
//! ```
//!
//! With a ~ N(μ, E) before the code is known to be one of e_1 … e_K, and after it
//!
//! ```text
//! q(a) ∝ N(a | μ, E) Σ_j N(e_j | a, A) = Σ_j p_c(j) N(a | μ + E C⁻¹ (e_j − μ), E − E C⁻¹ E) ,   C = A + E
//! ```
//!
//! p_c is exactly the mean of p(· | a) under q: the law of total probability holds within a component as it does
//! between them, so uncertainty within members counts as that between members does, and no part is negative. The mean of H is
//! taken over draws, the same standard normal ones for all samples, in pairs ±ξ. A temperature τ multiplies A and E.

use faer::Mat;
use rand_distr::{Distribution, StandardNormal};

use super::chunks::{from_columns, over_chunks};
use super::classes::{WHAT, logits_into, shared_precision, softmax};
use super::component::{Component, Covariance};
use super::draws::semidefinite_root;
use super::mixture::Predictive;
use crate::base::check::positive;
use crate::base::linalg::Cholesky;
use crate::base::random::stream;
use crate::error::{Error, Result};

/// Probability of a class below which its share of the entropy is not worth its draws.
const NEGLIGIBLE: f64 = 1e-9;

/// Entropy of the class of each sample, in nats, and its two parts, which add and are not negative.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassDecomposition {
    /// Entropy of the class probabilities.
    pub total: Vec<f64>,
    /// What would be left if the weights were known.
    pub aleatoric: Vec<f64>,
    /// What more data would take away.
    pub epistemic: Vec<f64>,
}

impl Predictive {
    /// Split the entropy of [`class_probabilities`](Self::class_probabilities) at the same `temperature`, by `draws` codes
    /// per component and class from the stream of a `seed`.
    pub fn class_decomposition(
        &self,
        temperature: f64,
        draws: usize,
        seed: u64,
    ) -> Result<ClassDecomposition> {
        positive("temperature", temperature)?;
        let (k, n) = (self.n_targets(), self.n_samples());
        let half = half_draws(k, draws, seed)?;
        let shared = self.components().iter().map(shared_precision).collect::<Result<Vec<_>>>()?;
        let chunks = over_chunks(n, |samples| -> Result<Vec<(f64, f64)>> {
            let mut room = Room::new(k);
            samples
                .map(|sample| {
                    let (mut mixed, mut aleatoric) = (vec![0.0; k], 0.0);
                    for ((weight, component), precision) in self.weighted_components().zip(&shared) {
                        logits_into(component, precision.as_ref(), sample, &mut room.probabilities)?;
                        softmax(&mut room.probabilities, temperature);
                        mixed.iter_mut().zip(&room.probabilities).for_each(|(sum, p)| *sum += weight * p);
                        aleatoric += weight * room.noise_entropy(component, sample, temperature, &half)?;
                    }
                    Ok((entropy(&mixed), aleatoric))
                })
                .collect()
        });
        let mut parts = ClassDecomposition {
            total: Vec::with_capacity(n),
            aleatoric: Vec::with_capacity(n),
            epistemic: Vec::with_capacity(n),
        };
        for (total, aleatoric) in chunks.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            // A finite number of draws may exceed the total by a little.
            let epistemic = (total - aleatoric).max(0.0);
            parts.total.push(total);
            parts.aleatoric.push(total - epistemic);
            parts.epistemic.push(epistemic);
        }
        Ok(parts)
    }

    /// Variance of each class's probability under the posterior, `K × n`: the epistemic part of p (1 − p), of which the rest is
    /// noise. By the same draws, within components and between them.
    pub fn class_probability_variance(&self, temperature: f64, draws: usize, seed: u64) -> Result<Mat<f64>> {
        positive("temperature", temperature)?;
        let (k, n) = (self.n_targets(), self.n_samples());
        let half = half_draws(k, draws, seed)?;
        let shared = self.components().iter().map(shared_precision).collect::<Result<Vec<_>>>()?;
        let chunks = over_chunks(n, |samples| -> Result<Vec<f64>> {
            let mut room = Room::new(k);
            let mut variances = Vec::with_capacity(k * samples.len());
            for sample in samples {
                // Moments of the draws within components, and of the components' own probabilities.
                let mut moments = vec![[0.0; 3]; k];
                for ((weight, component), precision) in self.weighted_components().zip(&shared) {
                    logits_into(component, precision.as_ref(), sample, &mut room.probabilities)?;
                    softmax(&mut room.probabilities, temperature);
                    let mut own = vec![[0.0; 3]; k];
                    room.each_code(component, sample, temperature, &half, |share, p| {
                        for (own, p) in own.iter_mut().zip(p) {
                            *own = [own[0] + share, own[1] + share * p, own[2] + share * p * p];
                        }
                    })?;
                    for ((sums, own), p) in moments.iter_mut().zip(own).zip(&room.probabilities) {
                        let within = (own[2] / own[0] - (own[1] / own[0]).powi(2)).max(0.0);
                        sums[0] += weight * within;
                        sums[1] += weight * p;
                        sums[2] += weight * p * p;
                    }
                }
                variances
                    .extend(moments.iter().map(|[within, p, square]| within + (square - p * p).max(0.0)));
            }
            Ok(variances)
        });
        Ok(from_columns(k, n, &chunks.into_iter().collect::<Result<Vec<_>>>()?))
    }
}

/// Standard normal draws for codes of `k` classes; each is used with both signs.
fn half_draws(k: usize, draws: usize, seed: u64) -> Result<Vec<f64>> {
    if draws == 0 {
        return Err(Error::Setting { name: "draws", value: 0.0, must_be: "at least 1" });
    }
    let mut rng = stream(seed, 0);
    Ok((0..k * draws.div_ceil(2)).map(|_| StandardNormal.sample(&mut rng)).collect())
}

/// Memory that samples reuse.
struct Room {
    /// p_c of the sample at hand.
    probabilities: Vec<f64>,
    logits: Vec<f64>,
    noise: Mat<f64>,
    epistemic: Mat<f64>,
    total: Mat<f64>,
}

impl Room {
    fn new(k: usize) -> Self {
        Self {
            probabilities: vec![0.0; k],
            logits: vec![0.0; k],
            noise: Mat::zeros(k, k),
            epistemic: Mat::zeros(k, k),
            total: Mat::zeros(k, k),
        }
    }

    /// E_{a ~ q}[ H(p(· | a)) ], given p_c.
    fn noise_entropy(
        &mut self,
        component: &Component,
        sample: usize,
        temperature: f64,
        half: &[f64],
    ) -> Result<f64> {
        let mut sum = 0.0;
        self.each_code(component, sample, temperature, half, |share, p| sum += share * entropy(p))?;
        Ok(sum)
    }

    /// Draws of p(· | a), a ~ q, with the share of each, given p_c.
    fn each_code(
        &mut self,
        component: &Component,
        sample: usize,
        temperature: f64,
        half: &[f64],
        mut visit: impl FnMut(f64, &[f64]),
    ) -> Result<()> {
        if matches!(component.epistemic, Covariance::Zero) {
            visit(1.0, &self.probabilities);
            return Ok(());
        }
        let k = self.probabilities.len();
        for j in 0..k {
            for i in 0..k {
                self.noise[(i, j)] = component.aleatoric.entry(i, j, sample);
                self.epistemic[(i, j)] = component.epistemic.entry(i, j, sample);
                self.total[(i, j)] = self.noise[(i, j)] + self.epistemic[(i, j)];
            }
        }
        let precision = Cholesky::new(self.noise.as_ref(), WHAT)?.inverse();
        // C⁻¹ E, of which the transpose is the gain E C⁻¹; and E C⁻¹ A = E − E C⁻¹ E without the difference.
        let gain = Cholesky::new(self.total.as_ref(), WHAT)?.solve(self.epistemic.as_ref());
        let mut root = gain.transpose() * &self.noise;
        semidefinite_root(&mut root);
        for j in 1..k {
            (0..j).for_each(|i| root[(i, j)] = 0.0);
        }
        // Logits are Λ a − ½ diag Λ, over τ: the draws' part of them is Λ R ξ √τ.
        let spread = &precision * &root * faer::Scale(temperature.sqrt());
        let mean = component.mean.subcols(sample, 1);
        for class in 0..k {
            let p = self.probabilities[class];
            if p < NEGLIGIBLE {
                continue;
            }
            let share = p / (2 * (half.len() / k)) as f64;
            let residual = Mat::from_fn(k, 1, |i, _| f64::from(u8::from(i == class)) - mean[(i, 0)]);
            let code = mean + gain.transpose() * residual;
            let centre = &precision * code;
            for draw in half.chunks_exact(k) {
                for sign in [1.0, -1.0] {
                    for (i, logit) in self.logits.iter_mut().enumerate() {
                        *logit = centre[(i, 0)] - 0.5 * precision[(i, i)];
                    }
                    for (j, xi) in draw.iter().enumerate() {
                        let column = spread.col_as_slice(j);
                        self.logits.iter_mut().zip(column).for_each(|(logit, s)| *logit += sign * xi * s);
                    }
                    softmax(&mut self.logits, temperature);
                    visit(share, &self.logits);
                }
            }
        }
        Ok(())
    }
}

/// −Σ p log p.
fn entropy(probabilities: &[f64]) -> f64 {
    -probabilities.iter().map(|&p| if p > 0.0 { p * p.ln() } else { 0.0 }).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::prediction::Dof;

    fn example(seed: u64, spread: f64) -> Component {
        let mut rng = stream(seed, 0);
        let mut positive = |scale: f64| {
            let a = Mat::from_fn(3, 3, |_, _| rng.random::<f64>() - 0.5);
            (&a * a.transpose() + Mat::<f64>::identity(3, 3) * faer::Scale(0.1)) * faer::Scale(scale)
        };
        let (aleatoric, epistemic) = (positive(1.0), positive(spread));
        Component {
            mean: Mat::from_fn(3, 2, |i, j| [[0.7, 0.2, 0.1], [0.3, 0.4, 0.3]][j][i]),
            aleatoric: Covariance::Shared(aleatoric),
            epistemic: Covariance::Shared(epistemic),
            dof: Dof::Normal,
        }
    }

    fn split(components: Vec<Component>, temperature: f64) -> (ClassDecomposition, Mat<f64>) {
        let predictive = Predictive::new(components).unwrap();
        let parts = predictive.class_decomposition(temperature, 64, 3).unwrap();
        (parts, predictive.class_probabilities(temperature).unwrap())
    }

    #[test]
    fn parts_add_up_to_the_entropy_of_the_class_probabilities_and_are_not_negative() {
        for seed in 0..20 {
            let spread = 10_f64.powf(f64::from(u32::try_from(seed).unwrap()) / 5.0 - 2.0);
            for temperature in [0.3, 1.0, 4.0] {
                let (parts, p) = split(vec![example(seed, spread), example(seed + 50, spread)], temperature);
                for j in 0..2 {
                    let total = entropy(p.col_as_slice(j));
                    assert!((parts.total[j] - total).abs() < 1e-13);
                    assert!((parts.aleatoric[j] + parts.epistemic[j] - total).abs() < 1e-13);
                    assert!(parts.epistemic[j] >= 0.0 && parts.aleatoric[j] >= -1e-15);
                }
            }
        }
    }

    /// Importance sampling from N(μ, τE) with weights Σ_j N(e_j | a, τA) is another way to the same mean; five standard
    /// errors of the ratio of means, and of 64 draws out of the same distribution.
    #[test]
    fn the_aleatoric_part_is_the_mean_entropy_under_the_reweighted_epistemic_distribution() {
        let (temperature, n) = (1.7, 40_000);
        let component = example(4, 0.6);
        let (parts, _) = split(vec![component.clone()], temperature);
        let matrix = |part: &Covariance| Mat::from_fn(3, 3, |i, j| temperature * part.entry(i, j, 0));
        let root = Cholesky::new(matrix(&component.epistemic).as_ref(), "e").unwrap();
        let precision = Cholesky::new(matrix(&component.aleatoric).as_ref(), "a").unwrap().inverse();
        let mut rng = stream(9, 0);
        let draws: Vec<(f64, f64)> = (0..n)
            .map(|_| {
                let xi = Mat::<f64>::from_fn(3, 1, |_, _| StandardNormal.sample(&mut rng));
                let a: Mat<f64> = component.mean.subcols(0, 1) + root.lower() * xi;
                let densities: Vec<f64> = (0..3)
                    .map(|k| {
                        let r = Mat::from_fn(3, 1, |i, _| f64::from(u8::from(i == k)) - a[(i, 0)]);
                        (-0.5 * (r.transpose() * &precision * &r)[(0, 0)]).exp()
                    })
                    .collect();
                let weight: f64 = densities.iter().sum();
                (weight, entropy(&densities.iter().map(|d| d / weight).collect::<Vec<_>>()))
            })
            .collect();
        let total: f64 = draws.iter().map(|d| d.0).sum();
        let expected = draws.iter().map(|d| d.0 * d.1).sum::<f64>() / total;
        let square = draws.iter().map(|d| (d.0 * (d.1 - expected)).powi(2)).sum::<f64>().sqrt() / total;
        // Entropies of single draws lie within (0, log 3).
        let tolerance = 5.0 * square + 5.0 * 0.25 * 3_f64.ln() / 64_f64.sqrt();
        assert!((parts.aleatoric[0] - expected).abs() < tolerance, "{} {expected}", parts.aleatoric[0]);
        let predictive = Predictive::from_component(component).unwrap();
        let many = predictive.class_decomposition(temperature, 20_000, 1).unwrap();
        let tolerance = 5.0 * square + 5.0 * 0.25 * 3_f64.ln() / 20_000_f64.sqrt();
        assert!((many.aleatoric[0] - expected).abs() < tolerance, "{} {expected}", many.aleatoric[0]);
    }

    /// The same importance sampling for the second moment of p(· | a); five standard errors of the ratio, and of draws that lie
    /// within (0, 1).
    #[test]
    fn the_variance_of_a_probability_is_that_under_the_reweighted_epistemic_distribution() {
        let (temperature, n, draws) = (1.7, 40_000, 20_000);
        let component = example(4, 0.6);
        let matrix = |part: &Covariance| Mat::from_fn(3, 3, |i, j| temperature * part.entry(i, j, 0));
        let root = Cholesky::new(matrix(&component.epistemic).as_ref(), "e").unwrap();
        let precision = Cholesky::new(matrix(&component.aleatoric).as_ref(), "a").unwrap().inverse();
        let mut rng = stream(10, 0);
        let (mut total, mut sums) = (0.0, [[0.0; 2]; 3]);
        for _ in 0..n {
            let xi = Mat::<f64>::from_fn(3, 1, |_, _| StandardNormal.sample(&mut rng));
            let a: Mat<f64> = component.mean.subcols(0, 1) + root.lower() * xi;
            let densities: Vec<f64> = (0..3)
                .map(|k| {
                    let r = Mat::from_fn(3, 1, |i, _| f64::from(u8::from(i == k)) - a[(i, 0)]);
                    (-0.5 * (r.transpose() * &precision * &r)[(0, 0)]).exp()
                })
                .collect();
            let weight: f64 = densities.iter().sum();
            total += weight;
            for (sum, density) in sums.iter_mut().zip(&densities) {
                *sum = [sum[0] + density, sum[1] + density * density / weight];
            }
        }
        let predictive = Predictive::from_component(component).unwrap();
        let found = predictive.class_probability_variance(temperature, draws, 3).unwrap();
        for k in 0..3 {
            let (mean, square) = (sums[k][0] / total, sums[k][1] / total);
            let tolerance = 5.0 * (1.0 / f64::from(n).sqrt() + 0.5 / (draws as f64).sqrt());
            assert!(found[(k, 0)] > 1e-3 && found[(k, 0)] < mean * (1.0 - mean));
            assert!((found[(k, 0)] - (square - mean * mean)).abs() < 0.5 * tolerance, "{k}");
        }
        // Networks that know but differ: the variance between them.
        let sure = |seed| Component { epistemic: Covariance::Zero, ..example(seed, 1.0) };
        let both = Predictive::new(vec![sure(1), sure(2)]).unwrap();
        let each = |seed| {
            let one = Predictive::from_component(sure(seed)).unwrap();
            one.class_probabilities(1.0).unwrap()[(0, 0)]
        };
        let expected = 0.25 * (each(1) - each(2)).powi(2);
        let found = both.class_probability_variance(1.0, 4, 0).unwrap()[(0, 0)];
        assert!((found - expected).abs() < 1e-14);
    }

    #[test]
    fn what_is_known_has_no_epistemic_part_and_what_is_unknown_has_little_else() {
        let known = Component { epistemic: Covariance::Zero, ..example(1, 1.0) };
        let (parts, _) = split(vec![known], 1.0);
        assert_eq!(parts.epistemic, [0.0, 0.0]);
        // Members that agree in their means, none of which knows anything.
        let mut unknown = example(1, 1.0);
        unknown.epistemic = Covariance::Shared(Mat::<f64>::identity(3, 3) * faer::Scale(1e4));
        unknown.aleatoric = Covariance::Shared(Mat::<f64>::identity(3, 3) * faer::Scale(0.01));
        let (parts, _) = split(vec![unknown.clone(), unknown], 1.0);
        for j in 0..2 {
            assert!(parts.total[j] > 0.99 * 3_f64.ln() && parts.epistemic[j] > 0.95 * parts.total[j]);
        }
    }

    #[test]
    fn wrong_settings_are_typed_errors() {
        let predictive = Predictive::from_component(example(1, 1.0)).unwrap();
        let error = predictive.class_decomposition(0.0, 8, 0).unwrap_err();
        assert!(matches!(error, Error::Setting { name: "temperature", .. }));
        let error = predictive.class_decomposition(1.0, 0, 0).unwrap_err();
        assert!(matches!(error, Error::Setting { name: "draws", .. }));
    }
}
