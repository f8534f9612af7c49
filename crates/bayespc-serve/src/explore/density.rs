//! The predictive density of one target as a curve, and how much of it is noise alone.
//!
//! ```text
//! total(y)   (F(y + h/2) − F(y − h/2)) / h          the mean density of a cell of the grid
//! noise(y)   c t_ν(y | ⟨y⟩, A)                       the same mean without ignorance; c ≤ 1 so large that it nowhere
//!                                                    exceeds total
//! ```
//!
//! What total has beside noise is there because the weights are not known. With one component c is √(A/(A + E)).

use bayespc::Predictive;
use bayespc::prediction::{Component, Covariance};
use faer::Mat;
use serde::Serialize;

use crate::problem::Problem;

/// Cells of the grid.
const CELLS: usize = 160;

/// Probability beyond the grid on either side.
const TAIL: f64 = 0.002;

/// Densities, at the middle of each cell.
#[derive(Debug, Serialize)]
pub struct Density {
    pub y: Vec<f64>,
    pub total: Vec<f64>,
    pub noise: Vec<f64>,
}

impl Density {
    /// Of one target of the first sample; none for a prediction without spread.
    pub fn of(predictive: &Predictive, target: usize) -> Result<Option<Self>, Problem> {
        let ends = predictive.quantile(&[TAIL, 1.0 - TAIL])?;
        let (low, high) = (ends[0][(target, 0)], ends[1][(target, 0)]);
        if !(high > low && (high - low).is_finite()) {
            return Ok(None);
        }
        let h = (high - low) / CELLS as f64;
        let edge = |i: usize| low + h * i as f64;
        let over_cells = |predictive: &Predictive, target: usize| -> Vec<f64> {
            let cdf: Vec<f64> = (0..=CELLS).map(|i| predictive.marginal_cdf(target, 0, edge(i))).collect();
            cdf.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0) / h).collect()
        };
        let total = over_cells(predictive, target);
        let noise = match noise_alone(predictive, target)? {
            Some(alone) => beneath(over_cells(&alone, 0), &total),
            None => vec![0.0; CELLS],
        };
        Ok(Some(Self { y: (0..CELLS).map(|i| edge(i) + 0.5 * h).collect(), total, noise }))
    }
}

/// The same mean with the noise alone; none without noise.
fn noise_alone(predictive: &Predictive, target: usize) -> Result<Option<Predictive>, Problem> {
    let variance = predictive.aleatoric_variance()[(target, 0)];
    if variance <= 0.0 {
        return Ok(None);
    }
    let component = Component {
        mean: Mat::from_fn(1, 1, |_, _| predictive.mean()[(target, 0)]),
        aleatoric: Covariance::Diagonal(Mat::from_fn(1, 1, |_, _| variance)),
        epistemic: Covariance::Zero,
        dof: predictive.components()[0].dof,
        skew: predictive.components()[0].skew,
    };
    Ok(Some(Predictive::from_component(component)?))
}

/// `inner` times the largest c ≤ 1 for which it nowhere exceeds `outer`, where it is worth drawing.
fn beneath(mut inner: Vec<f64>, outer: &[f64]) -> Vec<f64> {
    let largest = inner.iter().copied().fold(0.0, f64::max);
    let ratios = inner.iter().zip(outer).filter(|(x, _)| **x > 1e-3 * largest).map(|(x, most)| most / x);
    let c = ratios.fold(1.0, f64::min);
    inner.iter_mut().zip(outer).for_each(|(x, most)| *x = (c * *x).min(*most));
    inner
}

#[cfg(test)]
mod tests {
    use super::*;
    use bayespc::prediction::Dof;

    fn normal(aleatoric: f64, epistemic: f64) -> Predictive {
        let one = |x: f64| Covariance::Diagonal(Mat::from_fn(1, 1, |_, _| x));
        let component = Component {
            mean: Mat::from_fn(1, 1, |_, _| 3.0),
            aleatoric: one(aleatoric),
            epistemic: one(epistemic),
            dof: Dof::Normal,
            skew: None,
        };
        Predictive::from_component(component).unwrap()
    }

    #[test]
    fn areas_are_the_probability_on_the_grid_and_the_share_of_the_noise() {
        for (a, e) in [(1.0, 0.0), (1.0, 3.0), (0.2, 0.05)] {
            let density = Density::of(&normal(a, e), 0).unwrap().unwrap();
            let h = density.y[1] - density.y[0];
            let area = |values: &[f64]| h * values.iter().sum::<f64>();
            assert!((area(&density.total) - (1.0 - 2.0 * TAIL)).abs() < 1e-9);
            // c = √(A/(A+E)), reached at the mean; the mean of a cell is lower than the peak by about (h/σ)²/24.
            let share = (a / (a + e)).sqrt();
            assert!((area(&density.noise) - share).abs() < 0.01, "{} {share}", area(&density.noise));
            assert!(density.noise.iter().zip(&density.total).all(|(noise, total)| noise <= total));
        }
    }

    #[test]
    fn a_point_has_no_density_and_pure_ignorance_no_noise() {
        assert!(Density::of(&normal(0.0, 0.0), 0).unwrap().is_none());
        let density = Density::of(&normal(0.0, 1.0), 0).unwrap().unwrap();
        assert!(density.noise.iter().all(|x| *x == 0.0));
    }
}
