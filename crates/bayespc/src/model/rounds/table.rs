//! The first pass: means, deviations and ranges of all columns, joined in pairs.
//!
//! ```text
//! w = w₁ + w₂ ,   m = m₁ + (w₂/w) δ ,   S = S₁ + S₂ + (w₁ w₂/w) δ² ,   δ = m₂ − m₁       (Chan et al. 1979)
//! ```

use super::rows::Rows;
use crate::data::Standardiser;

/// Numbers in front of the columns: the weight.
const FRONT: usize = 1;

/// Numbers of a column: mean, sum of squared deviations, least and largest value.
const EACH: usize = 4;

/// What the rows of a chunk say of their columns, inputs first.
pub(super) fn leaf(rows: &Rows) -> Vec<f64> {
    let (d, k) = rows.widths();
    let weight: f64 = rows.weights.iter().sum();
    let mut values = vec![weight];
    for (numbers, width) in [(&rows.inputs, d), (&rows.targets, k)] {
        for i in 0..width {
            let column = || numbers.iter().skip(i).step_by(width).zip(&rows.weights);
            let mut mean = 0.0;
            let mut so_far = 0.0;
            for (x, w) in column() {
                so_far += w;
                mean += (w / so_far) * (x - mean);
            }
            let square: f64 = column().map(|(x, w)| w * (x - mean).powi(2)).sum();
            let least = column().map(|(x, _)| *x).fold(f64::MAX, f64::min);
            let largest = column().map(|(x, _)| *x).fold(f64::MIN, f64::max);
            values.extend([mean, square, least, largest]);
        }
    }
    values
}

/// How many numbers a part with these columns has: of rows without weight only that.
pub(super) fn length(values: &[f64], widths: Option<(usize, usize)>) -> usize {
    match widths {
        Some((d, k)) if values.len() != FRONT => FRONT + EACH * (d + k),
        _ => FRONT,
    }
}

/// What two parts say together. One without rows does not know the columns.
pub(super) fn join(left: &mut Vec<f64>, right: &[f64]) {
    if right.len() <= FRONT {
        return;
    }
    if left.len() <= FRONT {
        right.clone_into(left);
        return;
    }
    let (own, others) = (left[0], right[0]);
    let weight = own + others;
    left[0] = weight;
    for (to, from) in left[FRONT..].chunks_mut(EACH).zip(right[FRONT..].chunks(EACH)) {
        let delta = from[0] - to[0];
        to[0] += others / weight * delta;
        to[1] += from[1] + own * (others / weight) * delta * delta;
        to[2] = to[2].min(from[2]);
        to[3] = to[3].max(from[3]);
    }
}

/// Columns of the whole table.
pub(super) struct Columns<'a> {
    values: &'a [f64],
}

impl<'a> Columns<'a> {
    /// From the joined numbers of all rows.
    pub fn new(values: &'a [f64]) -> Self {
        Self { values }
    }

    /// Σ w.
    pub fn weight(&self) -> f64 {
        self.values[0]
    }

    /// Number of columns, inputs and targets.
    pub fn len(&self) -> usize {
        (self.values.len() - FRONT) / EACH
    }

    /// Mean and deviation of columns `from..to`; 1 for the deviation of one that is constant.
    pub fn scaling(&self, from: usize, to: usize) -> Standardiser {
        let columns = || self.values[FRONT..].chunks(EACH).skip(from).take(to - from);
        Standardiser {
            offset: columns().map(|column| column[0]).collect(),
            scale: columns().map(|column| self.deviation(column)).collect(),
        }
    }

    /// One mean and one deviation for columns `0..to`.
    pub fn whole_scaling(&self, to: usize) -> Standardiser {
        let columns = || self.values[FRONT..].chunks(EACH).take(to);
        let d = to as f64;
        let offset = columns().map(|column| column[0]).sum::<f64>() / d;
        let spread = |column: &[f64]| column[1] / self.weight() + (column[0] - offset).powi(2);
        let variance = columns().map(spread).sum::<f64>() / d;
        let scale = if variance.is_finite() && variance > 0.0 { variance.sqrt() } else { 1.0 };
        Standardiser { offset: vec![offset; to], scale: vec![scale; to] }
    }

    fn deviation(&self, column: &[f64]) -> f64 {
        let (mean, least, largest) = (column[0], column[2], column[3]);
        let (magnitude, range) =
            (least.abs().max(largest.abs()), (0.5 * largest - 0.5 * mean).max(0.5 * mean - 0.5 * least));
        let deviation = (column[1] / self.weight()).sqrt();
        // What rounding alone does to a constant column.
        let rounding = 8.0 * f64::EPSILON * magnitude;
        if 2.0 * range > rounding && deviation > rounding && deviation.is_finite() { deviation } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;
    use rand::RngExt;

    use super::*;
    use crate::base::random::stream;

    fn rows(n: usize) -> Rows {
        let mut rng = stream(7, 0);
        Rows {
            numbers: (0..n as u64).collect(),
            inputs: (0..2 * n).map(|i| 1e6 * (i % 2) as f64 + rng.random_range(-1.0..1.0)).collect(),
            targets: (0..n).map(|_| rng.random_range(0.0..1e-3)).collect(),
            weights: (0..n).map(|j| 0.5 + (j % 3) as f64).collect(),
        }
    }

    #[test]
    fn joined_chunks_have_the_scaling_of_all_rows() {
        let all = rows(500);
        let mut joined = leaf(&all.only(|row| row < 130));
        join(&mut joined, &leaf(&all.only(|row| (130..131).contains(&row))));
        join(&mut joined, &leaf(&Rows::default()));
        join(&mut joined, &leaf(&all.only(|row| row >= 131)));
        let columns = Columns::new(&joined);
        let inputs = Mat::from_fn(2, 500, |i, j| all.inputs[2 * j + i]);
        let expected = Standardiser::fit_weighted(inputs.as_ref(), &all.weights).unwrap();
        let (found, whole) = (columns.scaling(0, 2), columns.whole_scaling(2));
        let one = Standardiser::fit_whole(inputs.as_ref(), Some(&all.weights)).unwrap();
        for i in 0..2 {
            assert_relative_eq!(found.offset[i], expected.offset[i], max_relative = 1e-12, epsilon = 1e-12);
            assert_relative_eq!(found.scale[i], expected.scale[i], max_relative = 1e-9);
            assert_relative_eq!(whole.offset[i], one.offset[i], max_relative = 1e-12);
            assert_relative_eq!(whole.scale[i], one.scale[i], max_relative = 1e-12);
        }
        assert_eq!(columns.len(), 3);
        assert_relative_eq!(columns.weight(), all.weights.iter().sum(), max_relative = 1e-12);
    }

    #[test]
    fn a_constant_column_keeps_the_scale_one() {
        for value in [0.0, 0.1, -7.0, 1e12] {
            let rows = Rows {
                numbers: vec![0, 1, 2],
                inputs: vec![value; 3],
                targets: vec![1.0, 2.0, 3.0],
                weights: vec![1.0; 3],
            };
            let values = leaf(&rows);
            assert_eq!(Columns::new(&values).scaling(0, 1).scale, [1.0], "{value}");
        }
    }
}
