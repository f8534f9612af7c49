//! Missing entries drawn, not only inferred: Langevin steps on the activities.
//!
//! ```text
//! p(z) ∝ exp(−E(z)) over the free entries
//! proposal    z′ = z − (h²/2) H⁻¹ ∇E(z) + h H^−½ ξ ,   ξ ~ N(0, I)
//! accepted    with probability min(1, p(z′) q(z | z′) / (p(z) q(z′ | z)))
//! ```
//!
//! H is the curvature where the energy is least, so that a step is as long in every direction as the posterior is wide. The test of
//! acceptance (Metropolis) makes draws those of exp(−E) whatever h is: in a linear network they have the exact
//! conditional moments, and in a bent one the spread that the curvature at one point does not know.

use faer::{Mat, MatRef};
use rand::{Rng, RngExt};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::generative::{Relaxed, relaxed};
use super::newton::{Newton, Rest};
use crate::base::check::{at_least_one, positive};
use crate::base::random::{standard_normal, stream};
use crate::error::Result;
use crate::network::{Activities, Network};
use crate::real::Real;

/// How missing entries are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LangevinSettings {
    /// Steps between two draws, and before the first.
    pub steps: usize,
    /// h for one free entry; of n entries it is h n^(−1/6).
    pub size: f64,
    /// Temperature of the weight-uncertainty term of E.
    pub weight_uncertainty: f64,
    /// Seed; sample j uses its stream j.
    pub seed: u64,
}

impl Default for LangevinSettings {
    fn default() -> Self {
        Self { steps: 20, size: 1.2, weight_uncertainty: 1.0, seed: 0 }
    }
}

/// Draws of data with missing entries.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Drawn<T: Real> {
    /// Inputs of each draw, missing entries drawn, `d_0 × n`.
    pub input: Vec<Mat<T>>,
    /// Targets of each draw, missing entries drawn, `d_L × n`.
    pub target: Vec<Mat<T>>,
    /// Share of proposals that were accepted, over all samples; 1 if nothing was missing.
    pub accepted: f64,
}

/// Draw the NaN entries of `input` and `target` `draws` times.
pub fn draw_missing<T: Real>(
    network: &Network<T>,
    input: MatRef<'_, T>,
    target: MatRef<'_, T>,
    draws: usize,
    settings: &LangevinSettings,
) -> Result<Drawn<T>> {
    at_least_one("steps", settings.steps)?;
    positive("size", settings.size)?;
    let Relaxed { relaxer, clamp, activities, .. } =
        relaxed(network, input, target, settings.weight_uncertainty)?;
    let newton = Newton::new(network, &relaxer, settings.weight_uncertainty);
    let chains = (0..input.ncols())
        .into_par_iter()
        .map(|j| {
            let mut chain = Chain::new(&newton, newton.rest(&activities, &clamp, j)?, settings.size);
            let mut rng = stream(settings.seed, j as u64);
            let stacks = (0..draws).map(|_| {
                (0..settings.steps).for_each(|_| chain.step(&mut rng));
                Newton::stack(&chain.sample)
            });
            Ok((stacks.collect::<Vec<_>>(), chain.accepted, chain.proposed))
        })
        .collect::<Result<Vec<_>>>()?;
    let (d_0, d_top, n) = (input.nrows(), target.nrows(), input.ncols());
    let total: usize = network.widths().iter().sum();
    let entry = |offset: usize, draw: usize| {
        let chains = &chains;
        move |i: usize, j: usize| T::lit(chains[j].0[draw][offset + i])
    };
    let proposed: f64 = chains.iter().map(|chain| chain.2).sum();
    let accepted: f64 = chains.iter().map(|chain| chain.1).sum();
    Ok(Drawn {
        input: (0..draws).map(|draw| Mat::from_fn(d_0, n, entry(0, draw))).collect(),
        target: (0..draws).map(|draw| Mat::from_fn(d_top, n, entry(total - d_top, draw))).collect(),
        accepted: if proposed > 0.0 { accepted / proposed } else { 1.0 },
    })
}

/// The walk of one sample.
struct Chain<'a, T: Real> {
    newton: &'a Newton<'a, T>,
    /// Where it started: the minimum, with its curvature.
    rest: Rest<T>,
    sample: Activities<T>,
    energy: f64,
    gradient: Mat<f64>,
    /// h.
    size: f64,
    accepted: f64,
    proposed: f64,
}

impl<'a, T: Real> Chain<'a, T> {
    fn new(newton: &'a Newton<'a, T>, rest: Rest<T>, size: f64) -> Self {
        let gradient = newton.gradient(&rest.sample, &rest.clamp, &rest.free);
        let size = size * (rest.free.len().max(1) as f64).powf(-1.0 / 6.0);
        let (sample, energy) = (rest.sample.clone(), rest.energy);
        Self { newton, rest, sample, energy, gradient, size, accepted: 0.0, proposed: 0.0 }
    }

    fn step(&mut self, rng: &mut dyn Rng) {
        if self.rest.free.is_empty() {
            return;
        }
        // H = L Lᵀ: L⁻ᵀ ξ has covariance H⁻¹.
        let mut noise = standard_normal(self.rest.free.len(), 1, rng);
        self.rest.precision.solve_upper_in_place(noise.as_mut());
        let drift = self.drift(&self.gradient);
        let back = &drift - faer::Scale(self.size) * &noise;
        let proposal = self.newton.shifted(&self.sample, &self.rest.free, &back, 1.0);
        let energy = self.newton.energy(&proposal, &self.rest.clamp);
        let gradient = self.newton.gradient(&proposal, &self.rest.clamp, &self.rest.free);
        // z′ = z − back, so the way back from z′ misses its own mean by −back − drift′.
        let forth = self.distance(&(&drift - &back));
        let home = self.distance(&(&back + self.drift(&gradient)));
        let log_ratio = self.energy - energy + 0.5 * (forth - home);
        self.proposed += 1.0;
        if log_ratio >= 0.0 || rng.random::<f64>().ln() < log_ratio {
            (self.sample, self.energy, self.gradient) = (proposal, energy, gradient);
            self.accepted += 1.0;
        }
    }

    /// (h²/2) H⁻¹ ∇E.
    fn drift(&self, gradient: &Mat<f64>) -> Mat<f64> {
        self.rest.precision.solve(gradient.as_ref()) * faer::Scale(0.5 * self.size * self.size)
    }

    /// xᵀ H x / h².
    fn distance(&self, x: &Mat<f64>) -> f64 {
        let white = self.rest.precision.lower().transpose() * x;
        white.squared_norm_l2() / (self.size * self.size)
    }
}
