//! Moments of rectified Gaussians against quadrature (`reference/relu_moments.json`).

use bayespc::Activation;
use bayespc::network::activation::moments::{covariance, moments};
use serde_json::Value;

fn rows(name: &str) -> Vec<Vec<f64>> {
    let table: Value =
        serde_json::from_str(include_str!("../reference/relu_moments.json")).expect("a table of numbers");
    let rows: Vec<Vec<f64>> = serde_json::from_value(table[name].clone()).expect("a table of numbers");
    assert!(!rows.is_empty());
    rows
}

#[test]
fn rectified_means_and_variances_match_quadrature() {
    for row in rows("moments") {
        let found = moments(Activation::Relu, row[0], row[1]);
        assert!((found.mean - row[2]).abs() <= 1e-11 * row[2] + 1e-14, "{row:?}: mean {}", found.mean);
        assert!((found.var - row[3]).abs() <= 1e-11 * row[3] + 1e-14, "{row:?}: variance {}", found.var);
    }
}

#[test]
fn rectified_covariances_match_quadrature_up_to_perfect_correlation() {
    for row in rows("covariances") {
        let found = covariance(Activation::Relu, (row[0], row[1]), (row[2], row[3]), row[4]);
        assert!((found - row[5]).abs() <= 1e-12, "{row:?}: {found}, off by {:e}", found - row[5]);
    }
}
