//! A straight line between two rows of inputs, as a network sees it.
//!
//! ```text
//! x(t) = x(0) + t (x(1) − x(0)) ,   0 ≤ t ≤ 1
//! ```
//!
//! Standardised columns run straight; codes bend at the knots where a column passes an edge. Between two knots all
//! inputs of a network run straight, each with a rate of its own, and each belongs to one column.

use faer::{ColRef, Mat};

use super::codes::Codes;
use super::inputs::Inputs;
use super::scaling::Standardiser;
use crate::error::Result;

/// Times nearer to each other than this are one.
pub(crate) const SAME_TIME: f64 = 1e-12;

/// Inputs of a network along a line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// 0 = τ_0 < τ_1 < … < τ_K = 1.
    knots: Vec<f64>,
    /// Inputs at the knots, `width × (K + 1)`.
    at_knots: Mat<f64>,
    /// The column each input belongs to.
    owners: Vec<usize>,
    n_columns: usize,
}

impl Line {
    /// From one row to another, for a network that sees these codes beside the standardised columns.
    pub(crate) fn new(
        columns: &Standardiser,
        codes: Option<&Codes>,
        from: &[f64],
        to: &[f64],
    ) -> Result<Self> {
        let d = columns.dim();
        let knots = knots(codes, from, to);
        let raw = Mat::from_fn(d, knots.len(), |i, k| (1.0 - knots[k]) * from[i] + knots[k] * to[i]);
        let inputs = Inputs::from(&raw);
        let packed: Vec<f64> = match codes {
            Some(codes) => codes.encode(inputs, columns),
            None => inputs.standardised(columns)?,
        };
        let mut owners: Vec<usize> = (0..d).collect();
        if let Some(codes) = codes {
            let coded = codes.edges().iter().enumerate().filter(|(_, edges)| edges.len() > 2);
            owners.extend(coded.flat_map(|(i, edges)| std::iter::repeat_n(i, edges.len() - 1)));
        }
        let width = owners.len();
        let at_knots = Mat::from_fn(width, knots.len(), |i, k| packed[k * width + i]);
        Ok(Self { knots, at_knots, owners, n_columns: d })
    }

    /// Where a code bends, and both ends.
    pub(crate) fn knots(&self) -> &[f64] {
        &self.knots
    }

    /// Number of columns.
    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Inputs at these times, `width × n`.
    pub(crate) fn inputs(&self, times: &[f64]) -> Mat<f64> {
        let mut inputs = Mat::zeros(self.owners.len(), times.len());
        for (j, &t) in times.iter().enumerate() {
            let k = self.stretch(t);
            let share = (t - self.knots[k]) / (self.knots[k + 1] - self.knots[k]);
            let (from, to) = (self.at_knots.col_as_slice(k), self.at_knots.col_as_slice(k + 1));
            let ends = from.iter().zip(to);
            inputs
                .col_as_slice_mut(j)
                .iter_mut()
                .zip(ends)
                .for_each(|(x, (a, b))| *x = (1.0 - share) * a + share * b);
        }
        inputs
    }

    /// Add to every column `factor` times what its inputs' rates at time `t` make of these slopes: Σ_i slope_i dx_i/dt.
    pub(crate) fn add_by_column(&self, t: f64, factor: f64, slopes: ColRef<'_, f64>, sums: &mut [f64]) {
        let k = self.stretch(t);
        let (from, to) = (self.at_knots.col_as_slice(k), self.at_knots.col_as_slice(k + 1));
        let duration = self.knots[k + 1] - self.knots[k];
        for (i, slope) in slopes.iter().enumerate() {
            sums[self.owners[i]] += factor * slope * (to[i] - from[i]) / duration;
        }
    }

    /// Number of the stretch between knots that `t` is in.
    fn stretch(&self, t: f64) -> usize {
        let after = self.knots.partition_point(|&knot| knot <= t);
        after.clamp(1, self.knots.len() - 1) - 1
    }
}

/// Both ends, and where a column passes an edge of its code.
fn knots(codes: Option<&Codes>, from: &[f64], to: &[f64]) -> Vec<f64> {
    let mut knots = vec![0.0];
    for (i, edges) in codes.map_or(&[][..], Codes::edges).iter().enumerate().filter(|(_, e)| e.len() > 2) {
        for edge in edges {
            // Halves, because the distance of two huge values of opposite sign overflows.
            let t = (0.5 * edge - 0.5 * from[i]) / (0.5 * to[i] - 0.5 * from[i]);
            if t > SAME_TIME && t < 1.0 - SAME_TIME {
                knots.push(t);
            }
        }
    }
    knots.sort_by(f64::total_cmp);
    knots.dedup_by(|b, a| *b - *a < SAME_TIME);
    knots.push(1.0);
    knots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (Standardiser, Codes, [f64; 2], [f64; 2]) {
        let x = Mat::from_fn(2, 40, |i, j| ((7 * j + 3 * i) % 40) as f64 * (1.0 + i as f64));
        let columns = Standardiser::fit(x.as_ref()).unwrap();
        (columns, Codes::fit(Inputs::from(&x), None, 5), [-3.0, 60.0], [50.0, 11.0])
    }

    #[test]
    fn inputs_on_the_line_are_those_of_its_rows() {
        let (columns, codes, from, to) = example();
        let line = Line::new(&columns, Some(&codes), &from, &to).unwrap();
        // The first column passes all six of its edges, the second three.
        assert_eq!(line.knots().len(), 2 + 6 + 3);
        for t in [0.0, 0.13, 0.5, 0.731, 1.0] {
            let row = Mat::from_fn(2, 1, |i, _| from[i] + t * (to[i] - from[i]));
            let expected: Vec<f64> = codes.encode(Inputs::from(&row), &columns);
            let found = line.inputs(&[t]);
            for (i, expected) in expected.iter().enumerate() {
                assert!((found[(i, 0)] - expected).abs() < 1e-12, "{t} {i}");
            }
        }
    }

    #[test]
    fn rates_are_those_of_the_inputs_and_sum_by_column() {
        let (columns, codes, from, to) = example();
        let line = Line::new(&columns, Some(&codes), &from, &to).unwrap();
        let slopes = faer::Col::from_fn(12, |i| (i as f64).cos());
        let (t, h) = (0.4, 1e-7);
        let mut sums = [0.0; 2];
        line.add_by_column(t, 1.0, slopes.as_ref(), &mut sums);
        // Two columns, then five codes of each.
        for (column, sum) in sums.iter().enumerate() {
            let own = std::iter::once(column).chain(2 + 5 * column..7 + 5 * column);
            let (after, before) = (line.inputs(&[t + h]), line.inputs(&[t - h]));
            let expected: f64 = own.map(|i| slopes[i] * (after[(i, 0)] - before[(i, 0)]) / (2.0 * h)).sum();
            assert!((sum - expected).abs() < 1e-6, "{sum} {expected}");
        }
    }

    #[test]
    fn a_row_and_itself_make_a_line_without_knots() {
        let (columns, codes, from, _) = example();
        let line = Line::new(&columns, Some(&codes), &from, &from).unwrap();
        assert_eq!(line.knots(), [0.0, 1.0]);
        let mut sums = [0.0; 2];
        line.add_by_column(0.5, 1.0, faer::Col::from_fn(12, |_| 1.0).as_ref(), &mut sums);
        assert_eq!(sums, [0.0; 2]);
    }
}
