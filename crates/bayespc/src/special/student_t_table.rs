//! The Student-t distribution of one ν at very many places: the logarithm of its tail, by polynomials between nodes.
//!
//! ```text
//! G(x) = log P(t > x) ,   G′ = −h ,   h = f/P(t > x)                             h is the hazard
//! h′ = h (h − s) ,   h″ = h′(h − s) + h (h′ − s′) ,   s = −(log f)′ = x (ν+1)/(ν+x²)
//! ```
//!
//! Between nodes it is the polynomial of degree seven that has G and three derivatives of it at both ends; its slope
//! gives the density. The relative error of the tail is below 1e-12, however far out; beyond the last node the function
//! itself is used.

use super::student_t::{student_t_ln_pdf, tail_and_density};

/// Distance between nodes.
const STEP: f64 = 1.0 / 16.0;

/// Intervals between nodes, which reach to x = 16.
const INTERVALS: usize = 256;

/// P(t > x) and the density of one ν, tabulated.
#[derive(Clone, Debug)]
pub(crate) struct StudentTTable {
    dof: f64,
    /// Coefficients of G between two nodes, lowest power first.
    polynomials: Vec<[f64; 8]>,
}

impl StudentTTable {
    pub(crate) fn new(dof: f64) -> Self {
        let nodes: Vec<[f64; 4]> = (0..=INTERVALS).map(|i| node(STEP * i as f64, dof)).collect();
        let polynomials = nodes.windows(2).map(|ends| septic(&ends[0], &ends[1])).collect();
        Self { dof, polynomials }
    }

    pub(crate) fn dof(&self) -> f64 {
        self.dof
    }

    /// P(t > x) and the density at x, for x ≥ 0.
    #[inline]
    pub(crate) fn tail_and_density(&self, x: f64) -> (f64, f64) {
        let place = x * (1.0 / STEP);
        let i = place as usize;
        // NaN has place 0, and stays NaN.
        let Some(&[a0, a1, a2, a3, a4, a5, a6, a7]) = self.polynomials.get(i) else {
            return tail_and_density(x, self.dof);
        };
        let t = place - i as f64;
        // Even and odd powers apart, which halves the chain of dependent operations.
        let u = t * t;
        let value = (a0 + u * (a2 + u * (a4 + u * a6))) + t * (a1 + u * (a3 + u * (a5 + u * a7)));
        let slope = (a1 + u * (3.0 * a3 + u * (5.0 * a5 + u * (7.0 * a7))))
            + t * (2.0 * a2 + u * (4.0 * a4 + u * (6.0 * a6)));
        let tail = value.exp();
        (tail, -slope * (1.0 / STEP) * tail)
    }
}

/// G(x) and three derivatives, each times a power of the step.
fn node(x: f64, dof: f64) -> [f64; 4] {
    let log_tail = tail_and_density(x, dof).0.ln();
    let hazard = (student_t_ln_pdf(x, dof) - log_tail).exp();
    let (fall, fall_slope) = if dof.is_finite() {
        let sum = dof + x * x;
        (x * (dof + 1.0) / sum, (dof + 1.0) / sum * (dof - x * x) / sum)
    } else {
        (x, 1.0)
    };
    let first = hazard * (hazard - fall);
    let second = first * (hazard - fall) + hazard * (first - fall_slope);
    [log_tail, -STEP * hazard, -STEP * STEP * first, -STEP * STEP * STEP * second]
}

/// The polynomial on (0, 1) with these values and derivatives at its ends.
fn septic(left: &[f64; 4], right: &[f64; 4]) -> [f64; 8] {
    let [a0, a1, a2, a3] = [left[0], left[1], left[2] / 2.0, left[3] / 6.0];
    // What the ends at 1 are short of after the Taylor polynomial at 0.
    let value = (right[0] - a0) - (a1 + a2 + a3);
    let first = (right[1] - a1) - (2.0 * a2 + 3.0 * a3);
    let second = (right[2] - left[2]) - left[3];
    let third = right[3] - left[3];
    [
        a0,
        a1,
        a2,
        a3,
        35.0 * value - 15.0 * first + 2.5 * second - third / 6.0,
        -84.0 * value + 39.0 * first - 7.0 * second + 0.5 * third,
        70.0 * value - 34.0 * first + 6.5 * second - 0.5 * third,
        -20.0 * value + 10.0 * first - 2.0 * second + third / 6.0,
    ]
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    #[test]
    fn between_and_beyond_nodes_it_is_the_distribution() {
        for dof in [2.001, 2.5, 3.0, 12.5, 300.0, 1e6, f64::INFINITY] {
            let table = StudentTTable::new(dof);
            for i in 0..=800 {
                let x = 0.0237 * f64::from(i);
                let (found, expected) = (table.tail_and_density(x), tail_and_density(x, dof));
                assert_relative_eq!(found.0, expected.0, max_relative = 1e-12);
                assert_relative_eq!(found.1, expected.1, max_relative = 1e-10);
            }
            for x in [16.0, 1e300, f64::INFINITY] {
                assert_eq!(table.tail_and_density(x), tail_and_density(x, dof));
            }
            assert!(table.tail_and_density(f64::NAN).0.is_nan());
        }
    }
}
