//! The distribution function of one Student-t at very many places: interpolated between nodes by the quintic that has
//! the function's value, slope and curvature at both ends.
//!
//! ```text
//! F′ = f ,   F″ = f′ = −x (ν+1)/(ν+x²) f
//! ```
//!
//! The error is below 1e-10; beyond the last node the function itself is used.

use super::{student_t_cdf, student_t_ln_pdf};

/// Distance between nodes.
const STEP: f64 = 1.0 / 16.0;

/// Nodes on one side of zero, which reach to x = 8.
const NODES: usize = 129;

/// P(t ≤ x) of one ν, tabulated.
#[derive(Clone, Debug)]
pub(crate) struct StudentTTable {
    dof: f64,
    /// P(t > x), slope · STEP and curvature · STEP² of it at x = 0, STEP, …
    nodes: Vec<[f64; 3]>,
}

impl StudentTTable {
    pub fn new(dof: f64) -> Self {
        let node = |i: usize| {
            let x = STEP * i as f64;
            let density = student_t_ln_pdf(x, dof).exp();
            let fall = if dof.is_finite() { x * (dof + 1.0) / (dof + x * x) } else { x };
            [student_t_cdf(-x, dof), -STEP * density, STEP * STEP * fall * density]
        };
        Self { dof, nodes: (0..NODES).map(node).collect() }
    }

    /// P(t ≤ x).
    pub fn cdf(&self, x: f64) -> f64 {
        let place = x.abs() / STEP;
        let i = place as usize;
        // NaN has place 0, and stays NaN.
        let [Some(left), Some(right)] = [self.nodes.get(i), self.nodes.get(i.saturating_add(1))] else {
            return student_t_cdf(x, self.dof);
        };
        let tail = quintic(left, right, place - i as f64);
        if x < 0.0 { tail } else { 1.0 - tail }
    }
}

/// The polynomial on (0, 1) with these values, slopes and curvatures at its ends.
fn quintic(left: &[f64; 3], right: &[f64; 3], t: f64) -> f64 {
    let half = 0.5 * left[2];
    // What value, slope and curvature at 1 are short of after the Taylor polynomial at 0.
    let value = right[0] - (left[0] + left[1] + half);
    let slope = right[1] - (left[1] + left[2]);
    let curvature = right[2] - left[2];
    let cubic = 10.0 * value - 4.0 * slope + 0.5 * curvature;
    let quartic = -15.0 * value + 7.0 * slope - curvature;
    let fifth = 6.0 * value - 3.0 * slope + 0.5 * curvature;
    left[0] + t * (left[1] + t * (half + t * (cubic + t * (quartic + t * fifth))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_and_beyond_nodes_it_is_the_distribution_function() {
        for dof in [2.1, 3.0, 12.5, 300.0, 1e6, f64::INFINITY] {
            let table = StudentTTable::new(dof);
            for i in -400..=400 {
                let x = 0.0237 * f64::from(i);
                let (found, expected) = (table.cdf(x), student_t_cdf(x, dof));
                assert!((found - expected).abs() < 1e-10, "ν = {dof}, x = {x}: {found}, {expected}");
            }
            for x in [-1e300, f64::NEG_INFINITY, -8.0, 8.0, 1e300] {
                assert_eq!(table.cdf(x), student_t_cdf(x, dof));
            }
            assert!(table.cdf(f64::NAN).is_nan());
        }
    }
}
