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

use super::chunks::{from_columns, over_chunks};
use super::classes::{logits_into, shared_precision, softmax};
use super::codes::{CodeDraws, CodeMoments, Codes, entropy};
use super::component::{Component, Covariance};
use super::mixture::Predictive;
use crate::base::check::positive;
use crate::error::Result;

/// Codes drawn per component and class, and the seed of the draws, where nobody says otherwise.
pub const CLASS_DRAWS: (usize, u64) = (64, 0);

/// Entropy of the class of each sample, in nats, and its two parts, which add and are not negative.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
        let entropies = self.class_entropies(temperature, draws, seed)?;
        let mut parts = ClassDecomposition {
            total: Vec::with_capacity(entropies.len()),
            aleatoric: Vec::with_capacity(entropies.len()),
            epistemic: Vec::with_capacity(entropies.len()),
        };
        for (total, aleatoric) in entropies {
            // A finite number of draws may exceed the total by a little.
            let epistemic = (total - aleatoric).max(0.0);
            parts.total.push(total);
            parts.aleatoric.push(total - epistemic);
            parts.epistemic.push(epistemic);
        }
        Ok(parts)
    }

    /// Total and aleatoric part as the draws have them.
    pub(crate) fn class_entropies(
        &self,
        temperature: f64,
        draws: usize,
        seed: u64,
    ) -> Result<Vec<(f64, f64)>> {
        positive("temperature", temperature)?;
        let (k, n) = (self.n_targets(), self.n_samples());
        let draws = CodeDraws::new(k, draws, seed)?;
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
                        room.each_code(component, sample, temperature, &draws, |share, p| {
                            aleatoric += weight * share * entropy(p);
                        })?;
                    }
                    Ok((entropy(&mixed), aleatoric))
                })
                .collect()
        });
        Ok(chunks.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Variance of each class's probability under the posterior, `K × n`: the epistemic part of p (1 − p), of which the rest is
    /// noise. By the same draws, within components and between them.
    pub fn class_probability_variance(&self, temperature: f64, draws: usize, seed: u64) -> Result<Mat<f64>> {
        positive("temperature", temperature)?;
        let (k, n) = (self.n_targets(), self.n_samples());
        let draws = CodeDraws::new(k, draws, seed)?;
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
                    room.each_code(component, sample, temperature, &draws, |share, p| {
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

/// Memory that samples reuse.
struct Room {
    /// p_c of the sample at hand.
    probabilities: Vec<f64>,
    moments: CodeMoments,
}

impl Room {
    fn new(k: usize) -> Self {
        let (aleatoric, epistemic) = (Mat::zeros(k, k), Mat::zeros(k, k));
        Self {
            probabilities: vec![0.0; k],
            moments: CodeMoments { mean: vec![0.0; k], aleatoric, epistemic },
        }
    }

    /// Draws of p(· | a), a ~ q, with the share of each, given p_c.
    fn each_code(
        &mut self,
        component: &Component,
        sample: usize,
        temperature: f64,
        draws: &CodeDraws,
        mut visit: impl FnMut(f64, &[f64]),
    ) -> Result<()> {
        if matches!(component.epistemic, Covariance::Zero) {
            visit(1.0, &self.probabilities);
            return Ok(());
        }
        let CodeMoments { mean, aleatoric, epistemic } = &mut self.moments;
        for (j, mean) in mean.iter_mut().enumerate() {
            *mean = component.mean[(j, sample)];
            for i in 0..aleatoric.nrows() {
                aleatoric[(i, j)] = component.aleatoric.entry(i, j, sample);
                epistemic[(i, j)] = component.epistemic.entry(i, j, sample);
            }
        }
        let codes = Codes::new(&self.moments)?;
        codes.each(&self.probabilities, temperature, draws, |draw| visit(draw.share, draw.probabilities));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::base::linalg::Cholesky;
    use crate::base::random::stream;
    use crate::error::Error;
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
            skew: None,
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
