//! Where learning starts: one layer along the principal axes of the table, and parts as clusters of its rows.

use faer::Mat;
use rand::{Rng, RngExt};

use super::cells::Cells;
use super::lens::Inferred;
use super::part::Part;
use crate::base::parallel::over_spans;
use crate::error::Result;

/// Rounds of moving the centres of clusters.
const ROUNDS: usize = 20;

/// How much a row belongs to the cluster it is in; the rest is shared by all.
const MEMBERSHIP: f64 = 0.9;

/// Probabilistic principal components of the table with every missing cell at its mean: the start of one linear layer.
pub(super) fn principal(cells: &Cells, n_latents: usize) -> Result<Part> {
    let (n, d) = (cells.n() as f64, cells.d());
    let covariance = &cells.values * cells.values.transpose() * faer::Scale(1.0 / n);
    let eigen = covariance
        .self_adjoint_eigen(faer::Side::Lower)
        .map_err(|_| crate::Error::NotPositiveDefinite { what: "the covariance of the table", pivot: 0 })?;
    // Ascending order.
    let value = |rank: usize| eigen.S().column_vector()[d - 1 - rank].max(0.0);
    let rest: f64 = (n_latents..d).map(value).sum::<f64>() / (d - n_latents.min(d)).max(1) as f64;
    let noise = rest.clamp(1e-3, 1.0);
    let loading = |i: usize, rank: usize| {
        if rank < d { eigen.U()[(i, d - 1 - rank)] * (value(rank) - noise).max(1e-3).sqrt() } else { 0.0 }
    };
    Ok(Part {
        log_weight: 0.0,
        mean: vec![0.0; d],
        loadings: Mat::from_fn(d, n_latents, loading),
        noise: vec![noise; d],
    })
}

/// How much each row belongs to each of `parts` clusters, `parts × n`: k-means of the rows, missing cells filled in by
/// `whole`.
pub(super) fn clusters(cells: &Cells, whole: &Part, parts: usize, rng: &mut dyn Rng) -> Result<Mat<f64>> {
    let lens = whole.lens();
    let mut filled = cells.values.clone();
    for row in 0..cells.n() {
        let inferred: Inferred = lens.infer(cells.values.col_as_slice(row), &cells.missing[row])?;
        for &d in &cells.missing[row] {
            filled[(d, row)] = whole.cell(d, &inferred).0;
        }
    }
    let mut centres = spread_out(&filled, parts, rng);
    let mut nearest = assign(&filled, &centres);
    for _ in 0..ROUNDS {
        centres = means(&filled, &nearest, &centres);
        let after = assign(&filled, &centres);
        if after == nearest {
            break;
        }
        nearest = after;
    }
    let rest = (1.0 - MEMBERSHIP) / parts as f64;
    Ok(Mat::from_fn(parts, cells.n(), |part, row| rest + if nearest[row] == part { MEMBERSHIP } else { 0.0 }))
}

/// Centres far from each other: each a row, drawn with the squared distance to those before (k-means++).
fn spread_out(rows: &Mat<f64>, parts: usize, rng: &mut dyn Rng) -> Mat<f64> {
    let (d, n) = (rows.nrows(), rows.ncols());
    let mut centres = Mat::zeros(d, parts);
    let mut chosen = rng.random_range(0..n);
    let mut distance = vec![f64::INFINITY; n];
    for part in 0..parts {
        centres.col_mut(part).copy_from(rows.col(chosen));
        for (row, distance) in distance.iter_mut().enumerate() {
            *distance = distance.min(squared_distance(rows, row, &centres, part));
        }
        let total: f64 = distance.iter().sum();
        let mut left = rng.random::<f64>() * total;
        // Rounding may leave a little at the end, and copies of one row leave no distance at all.
        chosen = distance
            .iter()
            .position(|x| {
                left -= x;
                left < 0.0
            })
            .unwrap_or_else(|| rng.random_range(0..n));
    }
    centres
}

/// The nearest centre of each row.
fn assign(rows: &Mat<f64>, centres: &Mat<f64>) -> Vec<usize> {
    let nearest = |row: usize| {
        let distances = (0..centres.ncols()).map(|part| squared_distance(rows, row, centres, part));
        let best = distances.enumerate().fold((0, f64::INFINITY), |best, (part, distance)| {
            if distance < best.1 { (part, distance) } else { best }
        });
        best.0
    };
    over_spans(rows.ncols(), |span| span.map(nearest).collect::<Vec<_>>()).concat()
}

/// The mean of the rows of each cluster; a cluster without rows stays where it is.
fn means(rows: &Mat<f64>, nearest: &[usize], before: &Mat<f64>) -> Mat<f64> {
    let mut sums = Mat::<f64>::zeros(rows.nrows(), before.ncols());
    let mut counts = vec![0.0; before.ncols()];
    for (row, &part) in nearest.iter().enumerate() {
        counts[part] += 1.0;
        for (sum, x) in sums.col_as_slice_mut(part).iter_mut().zip(rows.col_as_slice(row)) {
            *sum += x;
        }
    }
    Mat::from_fn(rows.nrows(), before.ncols(), |i, part| {
        if counts[part] > 0.0 { sums[(i, part)] / counts[part] } else { before[(i, part)] }
    })
}

fn squared_distance(rows: &Mat<f64>, row: usize, centres: &Mat<f64>, part: usize) -> f64 {
    let pairs = rows.col_as_slice(row).iter().zip(centres.col_as_slice(part));
    pairs.map(|(x, centre)| (x - centre).powi(2)).sum()
}
