//! What the parts say of one row together: its density, and the mean and variance of a missing cell.
//!
//! ```text
//! p(row) = Σ_c π_c p_c(row) ,   share_c = π_c p_c(row)/p(row)
//! E x_d = Σ share_c m_c ,   var x_d = Σ share_c (v_c + (m_c − E x_d)²) ,   m_c, v_c: of cell d given the row under part c
//! ```

use super::learn::normalised;
use super::lens::{Inferred, Lens};
use super::part::Part;
use crate::error::Result;

/// What the parts say of one row.
pub(super) struct RowView {
    pub shares: Vec<f64>,
    pub inferred: Vec<Inferred>,
}

/// log π and the lens of each part.
pub(super) fn lenses(parts: &[Part]) -> Vec<(f64, Lens)> {
    parts.iter().map(|part| (part.log_weight, part.lens())).collect()
}

/// What the parts say of a row with standardised `values` (0 where missing).
pub(super) fn view(lenses: &[(f64, Lens)], values: &[f64], missing: &[usize]) -> Result<RowView> {
    let inferred = lenses.iter().map(|(_, lens)| lens.infer(values, missing)).collect::<Result<Vec<_>>>()?;
    let logs = lenses.iter().zip(&inferred).map(|((weight, _), row)| weight + row.log_evidence);
    Ok(RowView { shares: normalised(logs.collect()).1, inferred })
}

/// log p of the cells of a row that are there.
pub(super) fn log_density(lenses: &[(f64, Lens)], values: &[f64], missing: &[usize]) -> Result<f64> {
    let logs = lenses.iter().map(|(weight, lens)| Ok(weight + lens.infer(values, missing)?.log_evidence));
    Ok(normalised(logs.collect::<Result<_>>()?).0)
}

/// Mean and variance of cell `d`: those of the mixture.
pub(super) fn cell(parts: &[Part], d: usize, view: &RowView) -> (f64, f64) {
    let of_parts = || parts.iter().zip(&view.inferred).map(|(part, row)| part.cell(d, row));
    let mean: f64 = of_parts().zip(&view.shares).map(|((mean, _), share)| share * mean).sum();
    let spread = of_parts().zip(&view.shares);
    (mean, spread.map(|((own, variance), share)| share * (variance + (own - mean).powi(2))).sum())
}
