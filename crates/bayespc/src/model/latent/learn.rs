//! Learning: latents given the layers, layers given the latents, in turn, until the density of a row no longer rises.
//!
//! ```text
//! E-step   r_nc ∝ π_c exp(log evidence of row n under part c) ,   z_nc ~ N(H⁻¹ g, H⁻¹)
//! M-step   η_cd = η⁰_d + T_cd ,   π_c = (1 + Σ_n r_nc)/(n + C)
//! ```

use faer::Mat;

use super::cells::Cells;
use super::lens::Lens;
use super::part::Part;
use super::settings::LatentSettings;
use super::sums::{Sums, expected_lens};
use crate::base::parallel::over_spans;
use crate::distributions::{MatrixNormalWishart, NaturalParams};
use crate::error::Result;
use crate::model::observer::Work;

/// A part on its way: how much weight it has and what its cells say.
pub(super) type Weighted = (f64, Lens);

/// What learning gives.
pub(super) struct Learned {
    /// The parts as they predict.
    pub parts: Vec<Part>,
    /// Statistics of each part, folded.
    pub sums: Vec<Sums>,
    /// Steps it took.
    pub iterations: usize,
}

/// Learn from `cells` under the prior η⁰ of each column, starting from layers, and from memberships (`C × n`) if there
/// are any. Each step costs `cost` of `work`.
pub(super) fn learn(
    cells: &Cells,
    mut layers: Vec<Weighted>,
    memberships: Option<&Mat<f64>>,
    prior: &[NaturalParams],
    settings: &LatentSettings,
    work: &Work<'_>,
) -> Result<Learned> {
    let cost = step_cost(cells.n(), cells.d(), layers[0].1.n_latents(), layers.len());
    let mut before = f64::NEG_INFINITY;
    let mut done = 0;
    loop {
        let given = memberships.filter(|_| done == 0);
        let (density, sums) = expect(cells, &layers, given)?;
        let sums = sums.iter().map(Sums::folded).collect::<Result<Vec<_>>>()?;
        let columns = sums
            .iter()
            .map(|sums| {
                sums.natural(prior, 1.0)
                    .iter()
                    .map(MatrixNormalWishart::from_natural)
                    .collect::<Result<Vec<_>>>()
            })
            .collect::<Result<Vec<_>>>()?;
        let share = |sums: &Sums| ((sums.count + 1.0) / (cells.n() + layers.len()) as f64).ln();
        let weights: Vec<f64> = sums.iter().map(share).collect();
        done += 1;
        work.report(cost);
        work.check()?;
        // The first density may be of memberships that were given and is no bound.
        let settled = done > 2 && density - before < settings.tolerance;
        before = density;
        if settled || done == settings.iterations {
            work.skip(cost * (settings.iterations - done) as u64);
            let parts = weights.iter().zip(&columns).map(|(&weight, columns)| Part::of(weight, columns));
            return Ok(Learned { parts: parts.collect::<Result<_>>()?, sums, iterations: done });
        }
        layers = weights.into_iter().zip(columns.iter().map(|columns| expected_lens(columns))).collect();
    }
}

/// Mean log density of a row, and the sums of each part.
fn expect(cells: &Cells, layers: &[Weighted], given: Option<&Mat<f64>>) -> Result<(f64, Vec<Sums>)> {
    let empty =
        || -> Vec<Sums> { layers.iter().map(|(_, lens)| Sums::zero(lens.n_latents(), cells.d())).collect() };
    let spans = over_spans(cells.n(), |span| -> Result<(f64, Vec<Sums>)> {
        let mut sums = empty();
        let mut density = 0.0;
        for row in span {
            let (values, missing) = (cells.values.col_as_slice(row), &cells.missing[row]);
            let inferred =
                layers.iter().map(|(_, lens)| lens.infer(values, missing)).collect::<Result<Vec<_>>>()?;
            let logs = layers.iter().zip(&inferred).map(|((weight, _), row)| weight + row.log_evidence);
            let (own, shares) = normalised(logs.collect());
            density += own;
            for (part, (sums, inferred)) in sums.iter_mut().zip(&inferred).enumerate() {
                let share = given.map_or(shares[part], |given| given[(part, row)]);
                sums.add_row(share, values, missing, inferred);
            }
        }
        Ok((density, sums))
    });
    let mut all = (0.0, empty());
    for span in spans {
        let (density, sums) = span?;
        all.0 += density;
        all.1.iter_mut().zip(&sums).for_each(|(all, sums)| all.add(sums));
    }
    all.0 /= cells.n().max(1) as f64;
    Ok(all)
}

/// log Σ exp of `logs`, and the shares exp(log − that).
pub(super) fn normalised(mut logs: Vec<f64>) -> (f64, Vec<f64>) {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logs.iter().map(|log| (log - largest).exp()).sum();
    let total = largest + sum.ln();
    for log in &mut logs {
        *log = (*log - total).exp();
    }
    (total, logs)
}

/// Multiply-adds of one step, roughly.
pub(super) fn step_cost(n: usize, d: usize, n_latents: usize, parts: usize) -> u64 {
    let (n, d, width, parts) = (n as u64, d as u64, n_latents as u64 + 1, parts as u64);
    n * parts * (d * width + width * width * (width / 3 + 4)) + parts * d * width * width * width + 1000
}
