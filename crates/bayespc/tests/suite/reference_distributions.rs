//! Densities, entropies and means against SciPy (`reference/distributions.json`) and the NumPy reference
//! implementation (`reference/oracle.json`).

use crate::common::{assert_close, assert_near, list, matrix, natural, number, table};
use bayespc::base::linalg::Cholesky;
use bayespc::distributions::{MatrixNormalWishart, MultivariateT, Wishart};
use faer::Mat;
use serde_json::Value;

const SCIPY: &str = include_str!("../reference/distributions.json");

fn inverse(a: &Mat<f64>) -> Mat<f64> {
    Cholesky::new(a.as_ref(), "a reference matrix").unwrap().inverse()
}

fn vector(value: &Value) -> Mat<f64> {
    let entries: Vec<f64> = list(value).iter().map(number).collect();
    Mat::from_fn(entries.len(), 1, |i, _| entries[i])
}

#[test]
fn the_wishart_matches_scipy() {
    for row in list(&table(SCIPY)["wishart"]) {
        let what = format!("d = {}, ν = {}", row["d"], row["dof"]);
        let wishart = Wishart::from_inv_scale(inverse(&matrix(&row["scale"])), number(&row["dof"])).unwrap();
        let density = wishart.log_density(matrix(&row["x"]).as_ref()).unwrap();
        assert_near(density, number(&row["logpdf"]), 1e-10, &what);
        assert_near(wishart.entropy(), number(&row["entropy"]), 1e-10, &what);
        assert_close(wishart.expected_precision().as_ref(), matrix(&row["mean"]).as_ref(), 1e-10, &what);
    }
}

#[test]
fn the_multivariate_t_matches_scipy() {
    for row in list(&table(SCIPY)["multivariate_t"]) {
        let t = MultivariateT::new(number(&row["dof"]), vector(&row["loc"]), matrix(&row["shape"]).as_ref())
            .unwrap();
        let density = t.log_density(vector(&row["x"]).as_ref()).unwrap()[0];
        assert_near(density, number(&row["logpdf"]), 1e-10, &format!("{row}"));
    }
}

#[test]
fn the_matrix_normal_wishart_matches_the_reference_implementation() {
    let oracle = table(include_str!("../reference/oracle.json"));
    let row = &oracle["log_density"];
    let q = MatrixNormalWishart::from_natural(&natural(&row["eta"])).unwrap();
    let (weights, precision) = (matrix(&row["W"]), matrix(&row["P"]));
    let density = q.log_density(weights.as_ref(), precision.as_ref()).unwrap();
    assert_near(density, number(&row["log_density"]), 1e-10, "log density");
}

#[test]
fn the_matrix_normal_wishart_is_a_matrix_normal_times_a_wishart() {
    for row in list(&table(SCIPY)["matrix_normal"]) {
        let (mean, weights) = (matrix(&row["mean"]), matrix(&row["x"]));
        let (precision, col_precision) =
            (inverse(&matrix(&row["row_cov"])), inverse(&matrix(&row["col_cov"])));
        let inv_scale = matrix(&row["row_cov"]);
        let dof = mean.nrows() as f64 + 1.5;
        let q = MatrixNormalWishart::new(mean, col_precision, inv_scale, dof).unwrap();
        let noise = q.noise().log_density(precision.as_ref()).unwrap();
        let expected = number(&row["logpdf"]) + noise;
        let found = q.log_density(weights.as_ref(), precision.as_ref()).unwrap();
        assert_near(found, expected, 1e-10, "log density");
    }
}
