//! A part as it predicts: one normal distribution of rows, with the exact moments that its posterior implies.
//!
//! ```text
//! E x_d = M_d1 ,   Cov(x_d, x_e) = Σ_k M_dk M_ek + [d = e] δ_d ,   δ_d = ⟨σ_d²⟩ (1 + tr V_d)
//! ```
//!
//! since φ = [z; 1] has E φφᵀ = I: what is unsure about the weights adds to the noise of its own column and to nothing else.

use faer::Mat;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::lens::{Column, Inferred, Lens};
use crate::distributions::MatrixNormalWishart;
use crate::error::Result;

/// π, mean, loadings and noise of one part, in standardised units.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// log π.
    pub log_weight: f64,
    /// E x, of length d.
    pub mean: Vec<f64>,
    /// M without its bias, `d × k`.
    pub loadings: Mat<f64>,
    /// δ, of length d.
    pub noise: Vec<f64>,
}

impl Part {
    /// From the posterior of each column.
    pub fn of(log_weight: f64, columns: &[MatrixNormalWishart]) -> Result<Self> {
        let k = columns.first().map_or(0, |column| column.d_pre() - 1);
        let noise = |column: &MatrixNormalWishart| {
            let trace = crate::base::linalg::trace(column.col_cov().as_ref());
            Ok(column.expected_covariance()?[(0, 0)] * (1.0 + trace))
        };
        Ok(Self {
            log_weight,
            mean: columns.iter().map(|column| column.mean()[(0, k)]).collect(),
            loadings: Mat::from_fn(columns.len(), k, |d, a| columns[d].mean()[(0, a)]),
            noise: columns.iter().map(noise).collect::<Result<_>>()?,
        })
    }

    /// What its cells say of latents.
    pub fn lens(&self) -> Lens {
        let k = self.loadings.ncols();
        let means: Vec<Vec<f64>> = (0..self.mean.len())
            .map(|d| (0..k).map(|a| self.loadings[(d, a)]).chain([self.mean[d]]).collect())
            .collect();
        let column = |d: usize| Column {
            mean: &means[d],
            covariance: &[],
            precision: 1.0 / self.noise[d],
            log_precision: -self.noise[d].ln(),
        };
        Lens::new(k, (0..self.mean.len()).map(column))
    }

    /// Mean and variance of cell `d` given what was inferred of the row.
    pub fn cell(&self, d: usize, row: &Inferred) -> (f64, f64) {
        let k = self.loadings.ncols();
        let mut whitened = Mat::from_fn(k, 1, |a, _| self.loadings[(d, a)]);
        let mean = self.mean[d] + (0..k).map(|a| whitened[(a, 0)] * row.mean[(a, 0)]).sum::<f64>();
        row.precision.solve_lower_in_place(whitened.as_mut());
        (mean, self.noise[d] + (0..k).map(|a| whitened[(a, 0)].powi(2)).sum::<f64>())
    }

    /// Latents drawn given what was inferred of a row.
    pub fn draw_latents(row: &Inferred, rng: &mut dyn Rng) -> Mat<f64> {
        // H = L Lᵀ, so L⁻ᵀ ξ has covariance H⁻¹.
        let mut draw = Mat::from_fn(row.mean.nrows(), 1, |_, _| StandardNormal.sample(rng));
        row.precision.solve_upper_in_place(draw.as_mut());
        draw + &row.mean
    }

    /// Cell `d` drawn given the latents.
    pub fn draw_cell(&self, d: usize, latents: &Mat<f64>, rng: &mut dyn Rng) -> f64 {
        let signal: f64 = (0..latents.nrows()).map(|a| self.loadings[(d, a)] * latents[(a, 0)]).sum();
        let noise: f64 = StandardNormal.sample(rng);
        self.mean[d] + signal + self.noise[d].sqrt() * noise
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;
    use crate::base::linalg::Cholesky;
    use crate::base::random::standard_normal;
    use crate::distributions::MultivariateT;

    fn example() -> Part {
        Part {
            log_weight: 0.0,
            mean: vec![0.5, -1.0, 0.0, 2.0],
            loadings: Mat::from_fn(4, 2, |i, j| (1.0 + i as f64 - 2.0 * j as f64).sin()),
            noise: vec![0.3, 0.1, 1.2, 0.05],
        }
    }

    fn covariance(part: &Part) -> Mat<f64> {
        let noise = Mat::from_fn(4, 4, |i, j| if i == j { part.noise[i] } else { 0.0 });
        &part.loadings * part.loadings.transpose() + noise
    }

    /// The evidence of a row is the density of the normal distribution of the cells that are there, and a cell that is
    /// missing has the moments of the textbook's conditional.
    #[test]
    fn a_row_has_the_exact_density_and_conditional_moments() {
        let part = example();
        let all = covariance(&part);
        let row = [1.0, -0.5, 0.25, 1.5];
        for missing in [vec![], vec![2], vec![0, 3], vec![0, 1, 2], vec![0, 1, 2, 3]] {
            let there: Vec<usize> = (0..4).filter(|d| !missing.contains(d)).collect();
            let values: Vec<f64> = (0..4).map(|d| if missing.contains(&d) { 0.0 } else { row[d] }).collect();
            let inferred = part.lens().infer(&values, &missing).unwrap();
            let n = there.len();
            let own = Mat::from_fn(n, n, |i, j| all[(there[i], there[j])]);
            let mean = Mat::from_fn(n, 1, |i, _| part.mean[there[i]]);
            let found = Mat::from_fn(n, 1, |i, _| row[there[i]]);
            let expected = if n == 0 {
                0.0
            } else {
                MultivariateT::new(f64::INFINITY, mean.clone(), own.as_ref())
                    .unwrap()
                    .log_density(found.as_ref())
                    .unwrap()[0]
            };
            assert_relative_eq!(inferred.log_evidence, expected, epsilon = 1e-12);
            for &d in &missing {
                let cross = Mat::from_fn(n, 1, |i, _| all[(there[i], d)]);
                let gain = if n == 0 {
                    cross.clone()
                } else {
                    Cholesky::new(own.as_ref(), "own").unwrap().solve(cross.as_ref())
                };
                let shift: f64 = (0..n).map(|i| gain[(i, 0)] * (found[(i, 0)] - mean[(i, 0)])).sum();
                let less: f64 = (0..n).map(|i| gain[(i, 0)] * cross[(i, 0)]).sum();
                let (centre, variance) = part.cell(d, &inferred);
                assert_relative_eq!(centre, part.mean[d] + shift, epsilon = 1e-12);
                assert_relative_eq!(variance, all[(d, d)] - less, epsilon = 1e-12);
            }
        }
    }

    /// Rows drawn with weights and noise drawn from the posterior have the mean and covariance of the part; the standard
    /// error of each moment is estimated from the draws themselves, five of them.
    #[test]
    fn the_moments_are_those_of_the_posterior() {
        let (k, n) = (2, 40_000);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let columns: Vec<MatrixNormalWishart> = (0..2)
            .map(|d| {
                let mean = Mat::from_fn(1, k + 1, |_, a| (f64::from(d) - a as f64).cos());
                let precision = Mat::from_fn(k + 1, k + 1, |a, b| if a == b { 6.0 + a as f64 } else { 1.0 });
                MatrixNormalWishart::new(mean, precision, Mat::from_fn(1, 1, |_, _| 5.0), 20.0).unwrap()
            })
            .collect();
        let part = Part::of(0.0, &columns).unwrap();
        let rows: Vec<[f64; 2]> = (0..n)
            .map(|_| {
                let latents = standard_normal(k, 1, &mut rng);
                let mut cell = |column: &MatrixNormalWishart| {
                    let draw = column.sample(&mut rng);
                    let noise: f64 = StandardNormal.sample(&mut rng);
                    let signal: f64 = (0..k).map(|a| draw.weights[(0, a)] * latents[(a, 0)]).sum();
                    let precision = draw.precision.precision()[(0, 0)];
                    signal + draw.weights[(0, k)] + noise / precision.sqrt()
                };
                [cell(&columns[0]), cell(&columns[1])]
            })
            .collect();
        let shared: f64 = (0..k).map(|a| part.loadings[(0, a)] * part.loadings[(1, a)]).sum();
        let own = |d: usize| part.noise[d] + (0..k).map(|a| part.loadings[(d, a)].powi(2)).sum::<f64>();
        for (i, j, expected) in [(0, 0, own(0)), (1, 1, own(1)), (0, 1, shared)] {
            let products: Vec<f64> =
                rows.iter().map(|row| (row[i] - part.mean[i]) * (row[j] - part.mean[j])).collect();
            let mean = products.iter().sum::<f64>() / f64::from(n);
            let square = products.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / f64::from(n);
            let tolerance = 5.0 * (square / f64::from(n)).sqrt();
            assert!((mean - expected).abs() < tolerance, "{i} {j}: {mean} {expected} {tolerance}");
        }
    }
}
