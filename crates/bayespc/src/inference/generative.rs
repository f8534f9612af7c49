//! The network as a generative model: drawing from it, z_0 first and z_L last, and filling in what is missing.
//!
//! ```text
//! generate   z_0 ~ N(0, σ_0² I) ,   z_l ~ N(W_l φ_{l−1}, Σ_l) ,   y from the head
//! impute     z* = argmin E(Z) over the free entries ,   Cov ≈ H⁻¹ ,   H = ∂²E/∂Z² without f″
//! ```
//!
//! For a linear network H is exact and the imputed values are the exact conditional of a Gaussian model.

use faer::{Mat, MatRef};
use rand::Rng;
use rayon::prelude::*;

use super::clamp::Clamp;
use super::newton::{Newton, Settled};
use super::relaxation::{ActivityOptimiser, RelaxationReport, RelaxationSettings, Relaxer, Sweep};
use crate::base::linalg::cast;
use crate::base::random::standard_normal;
use crate::error::{Error, Result};
use crate::network::{Activities, Network};
use crate::prediction::Predictive;
use crate::real::Real;

/// Which weights generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameters {
    /// The posterior mean.
    Mean,
    /// One draw from the posterior.
    Draw,
}

/// Draw `n` targets from the model, inputs from their prior; returns `(z_0, y)`.
pub fn generate<T: Real>(
    network: &Network<T>,
    n: usize,
    parameters: Parameters,
    rng: &mut dyn Rng,
) -> Result<(Mat<f64>, Mat<f64>)> {
    network.settings().head.require_gaussian("generate")?;
    let point = match parameters {
        Parameters::Mean => network.mean_network()?,
        Parameters::Draw => network.draw(&network.posteriors()?, rng)?,
    };
    let std = network.settings().input_var.sqrt();
    let input = standard_normal(network.d_input(), n, rng) * faer::Scale(std);
    let activity = point.forward_noisy(cast(input.as_ref()).as_ref(), rng)?;
    let mut draws = Predictive::from_component(point.density(activity.as_ref())?)?.sample(1, rng);
    Ok((input, draws.swap_remove(0)))
}

/// Data with its missing entries inferred.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Imputed<T: Real> {
    /// Inputs, missing entries filled, `d_0 × n`.
    pub input: Mat<T>,
    /// Variance of each input entry: 0 where it was observed.
    pub input_variance: Mat<T>,
    /// Targets, missing entries filled, `d_L × n`.
    pub target: Mat<T>,
    /// Variance of each target entry: 0 where it was observed.
    pub target_variance: Mat<T>,
    /// What the relaxation did before the final Newton steps.
    pub report: RelaxationReport,
}

/// Infer the NaN entries of `input` and `target`. `weight_uncertainty` is the temperature τ of that term.
///
/// Hidden layers enter with their learned precision: of a network trained by relaxation that is the noise of
/// its activities; of one trained by feedback it is only a metric, and the result a heuristic.
pub fn impute<T: Real>(
    network: &Network<T>,
    input: MatRef<'_, T>,
    target: MatRef<'_, T>,
    weight_uncertainty: f64,
) -> Result<Imputed<T>> {
    let Relaxed { relaxer, clamp, activities, report } = relaxed(network, input, target, weight_uncertainty)?;
    let newton = Newton::new(network, &relaxer, weight_uncertainty);
    let columns: Vec<Settled> = (0..input.ncols())
        .into_par_iter()
        .map(|j| newton.settle(&activities, &clamp, j))
        .collect::<Result<_>>()?;
    let (d_0, d_top) = (input.nrows(), target.nrows());
    let total: usize = network.widths().iter().sum();
    let entry = |offset: usize, pick: fn(&Settled) -> &Vec<f64>| {
        let columns = &columns;
        move |i: usize, j: usize| T::lit(pick(&columns[j])[offset + i])
    };
    let n = input.ncols();
    Ok(Imputed {
        input: Mat::from_fn(d_0, n, entry(0, |c| &c.0)),
        input_variance: Mat::from_fn(d_0, n, entry(0, |c| &c.1)),
        target: Mat::from_fn(d_top, n, entry(total - d_top, |c| &c.0)),
        target_variance: Mat::from_fn(d_top, n, entry(total - d_top, |c| &c.1)),
        report,
    })
}

/// Activities at rest, and what brought them there.
pub(super) struct Relaxed<T: Real> {
    pub relaxer: Relaxer<T>,
    pub clamp: Clamp<T>,
    pub activities: Activities<T>,
    pub report: RelaxationReport,
}

/// Let the activities come to rest, with NaN entries free.
pub(super) fn relaxed<T: Real>(
    network: &Network<T>,
    input: MatRef<'_, T>,
    target: MatRef<'_, T>,
    weight_uncertainty: f64,
) -> Result<Relaxed<T>> {
    network.settings().head.require_gaussian("impute")?;
    crate::network::check_input(input, network.d_input())?;
    if target.nrows() != network.n_targets() {
        return Err(Error::Shape {
            what: "target",
            axis: "columns",
            found: target.nrows(),
            expected: network.n_targets(),
        });
    }
    let settings = RelaxationSettings {
        steps: 200,
        tolerance: 1e-9,
        optimiser: ActivityOptimiser::Gradient { rate: None },
        sweep: Sweep::Sequential,
        halve_steps: true,
        weight_uncertainty,
        ..RelaxationSettings::paper()
    };
    let clamp = Clamp::missing(input, target, network.settings().input_var)?;
    let relaxer = Relaxer::new(network, &settings, true)?;
    let mut activities = relaxer.start(input, target, &clamp);
    let report = relaxer.relax(&mut activities, &clamp);
    Ok(Relaxed { relaxer, clamp, activities, report })
}
