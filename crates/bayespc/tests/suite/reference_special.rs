//! Special functions against SciPy and quadrature (`reference/special.json`).

use bayespc::special::{
    bivariate_normal_cdf, digamma, ln_gamma, ln_multigamma, multi_digamma, normal_cdf, normal_pdf,
    normal_quantile, student_t_cdf, student_t_ln_pdf, student_t_quantile,
};
use serde_json::Value;

fn table() -> Value {
    serde_json::from_str(include_str!("../reference/special.json")).expect("valid JSON")
}

/// JSON has no infinity: it is the string "inf".
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().and_then(|text| text.parse().ok()).expect("a number"))
}

/// Compare every row `[arguments …, expected]` of a table; report the worst, not the first.
fn check(name: &str, relative: f64, absolute: f64, function: impl Fn(&[f64]) -> f64) {
    let table = table();
    let rows = table[name].as_array().expect("an array");
    assert!(!rows.is_empty());
    let mut worst = (0.0, String::new());
    for row in rows {
        let row: Vec<f64> = row.as_array().expect("an array").iter().map(number).collect();
        let (expected, arguments) = row.split_last().expect("a row");
        let found = function(arguments);
        let excess = if found == *expected {
            0.0
        } else {
            (found - expected).abs() / (relative * expected.abs() + absolute)
        };
        if excess.is_nan() || excess > worst.0 {
            worst = (
                if excess.is_nan() { f64::INFINITY } else { excess },
                format!("{name}{arguments:?} = {found}, expected {expected}"),
            );
        }
    }
    assert!(worst.0 <= 1.0, "{} ({:.1} times the tolerance)", worst.1, worst.0);
}

#[test]
fn gamma_functions_match_scipy() {
    check("ln_gamma", 1e-13, 1e-15, |x| ln_gamma(x[0]));
    // SciPy itself is exact to about 1e-16 absolute at the root of ψ.
    check("digamma", 1e-13, 1e-16, |x| digamma(x[0]));
    check("multigammaln", 1e-12, 0.0, |x| ln_multigamma(x[0], x[1] as usize));
    check("multi_digamma", 1e-13, 0.0, |x| multi_digamma(x[0], x[1] as usize));
}

#[test]
fn normal_functions_match_scipy() {
    // In the far tail the rounding of x/√2 alone costs x² ε.
    check("normal_cdf", 1e-12, 0.0, |x| normal_cdf(x[0]));
    check("normal_pdf", 1e-12, 0.0, |x| normal_pdf(x[0]));
    check("normal_quantile", 1e-13, 1e-15, |x| normal_quantile(x[0]));
}

#[test]
fn student_t_functions_match_scipy_and_quadrature() {
    check("student_t_ln_pdf", 1e-12, 1e-13, |x| student_t_ln_pdf(x[0], x[1]));
    check("student_t_cdf", 1e-11, 0.0, |x| student_t_cdf(x[0], x[1]));
    // The table's quantiles invert a distribution function near ½, so close to 0 they are exact to ε, not to ε x.
    check("student_t_quantile", 1e-11, 1e-15, |x| student_t_quantile(x[0], x[1]));
}

#[test]
fn the_bivariate_normal_cdf_matches_quadrature_to_1e_minus_14() {
    check("bivariate_normal_cdf", 0.0, 1e-14, |x| bivariate_normal_cdf(x[0], x[1], x[2]));
}
