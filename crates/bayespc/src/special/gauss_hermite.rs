//! Gauss–Hermite quadrature, by which tests check Gaussian moments.
//!
//! ```text
//! ∫ f(x) N(x | 0, 1) dx ≈ Σ_i w_i f(x_i)        nodes are eigenvalues of the Jacobi matrix
//! ```

use faer::{Mat, Side};

/// Nodes (rising) and weights (summing to 1) with E[f(x)] ≈ Σ wᵢ f(xᵢ) for x ~ N(0, 1), exact for
/// polynomials of degree 2n − 1.
///
/// # Panics
/// If `n` is zero.
pub(crate) fn gauss_hermite(n: usize) -> (Vec<f64>, Vec<f64>) {
    assert!(n > 0, "a quadrature rule needs at least one node");
    let jacobi = Mat::from_fn(n, n, |i, j| if i.abs_diff(j) == 1 { (i.max(j) as f64).sqrt() } else { 0.0 });
    let mut nodes = jacobi
        .self_adjoint_eigenvalues(Side::Lower)
        .expect("the QL iteration converges for a finite symmetric matrix");
    // The rule is symmetric about 0; rounding is not.
    for i in 0..n / 2 {
        let half = 0.5 * (nodes[n - 1 - i] - nodes[i]);
        (nodes[i], nodes[n - 1 - i]) = (-half, half);
    }
    if n % 2 == 1 {
        nodes[n / 2] = 0.0;
    }
    let mut weights = Vec::with_capacity(n);
    for x in &mut nodes {
        // h_k = He_k/√k! are orthonormal: h_{k+1} = (x h_k − √k h_{k−1}) / √(k+1), h_n′ = √n h_{n−1}.
        let polish = |x: f64| {
            let (mut previous, mut current, mut sum) = (0.0, 1.0, 0.0);
            for k in 0..n {
                sum += current * current;
                let next = (x * current - (k as f64).sqrt() * previous) / (k as f64 + 1.0).sqrt();
                (previous, current) = (current, next);
            }
            (current / ((n as f64).sqrt() * previous), sum)
        };
        // One Newton step: eigenvalues are exact to ε times the largest, nodes near 0 deserve better.
        let step = polish(*x).0;
        if step.is_finite() {
            *x -= step;
        }
        weights.push(1.0 / polish(*x).1);
    }
    let total: f64 = weights.iter().sum();
    for w in &mut weights {
        *w /= total;
    }
    (nodes, weights)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    /// `numpy.polynomial.hermite_e.hermegauss`; versions in the file, script beside it.
    const REFERENCE: &str = include_str!("../../tests/reference/special.json");

    #[test]
    fn rules_match_numpy() {
        let table: serde_json::Value = serde_json::from_str(REFERENCE).unwrap();
        for rule in table["gauss_hermite"].as_array().unwrap() {
            let (nodes, weights) = gauss_hermite(usize::try_from(rule["n"].as_u64().unwrap()).unwrap());
            for i in 0..nodes.len() {
                let number = |name: &str| rule[name][i].as_f64().unwrap();
                let (node, weight) = (number("nodes"), number("weights"));
                assert!((nodes[i] - node).abs() <= 1e-12 * (1.0 + node.abs()), "{i}: {} vs {node}", nodes[i]);
                let error = (weights[i] - weight).abs();
                assert!(error <= 1e-11 * weight + 1e-300, "{i}: {} vs {weight}", weights[i]);
            }
        }
    }

    #[test]
    fn gauss_hermite_integrates_polynomials_of_degree_2n_minus_1_exactly() {
        for n in [1_u8, 2, 7, 20] {
            let (nodes, weights) = gauss_hermite(n.into());
            // E[x^2k] = (2k−1)!!
            let mut moment = 1.0;
            for k in 0..n {
                let even: f64 = nodes.iter().zip(&weights).map(|(x, w)| w * x.powi(2 * i32::from(k))).sum();
                assert_relative_eq!(even, moment, max_relative = 1e-12);
                moment *= 2.0 * f64::from(k) + 1.0;
            }
        }
    }
}
