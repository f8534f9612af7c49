//! Laws of column precisions that are linear in a layer's width: equal to the whole matrix where nothing is left out,
//! additive, and bounded where something is.

use crate::common::{assert_close, normal, pre, rng};
use bayespc::base::linalg::Cholesky;
use bayespc::distributions::{ColumnPrecision, FrequentDirections, Purpose, Structure};
use faer::{Mat, MatRef};
use proptest::prelude::*;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

const D: usize = 9;

/// V⁰⁻¹ with another entry for the bias.
fn prior(rng: &mut ChaCha8Rng) -> Vec<f64> {
    let own = rng.random_range(0.1..3.0);
    (0..D).map(|i| if i + 1 == D { 0.01 } else { own }).collect()
}

/// Activities that share a mean and have directions of very different sizes.
fn activities(n: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    let mut phi = pre(D - 1, n, rng);
    for j in 0..n {
        for i in 0..D - 1 {
            phi[(i, j)] = 1.0 + phi[(i, j)] * (-(i as f64)).exp2();
        }
    }
    phi
}

fn precision(structure: Structure, prior: &[f64], phi: MatRef<'_, f64>) -> ColumnPrecision {
    let mut precision = ColumnPrecision::new(structure, prior.to_vec());
    // In parts, as training has them.
    for start in (0..phi.ncols()).step_by(4) {
        precision.absorb(phi.subcols(start, 4.min(phi.ncols() - start)), 1.0).unwrap();
    }
    precision
}

fn exact(prior: &[f64], phi: MatRef<'_, f64>) -> Mat<f64> {
    let mut whole = phi * phi.transpose();
    (0..D).for_each(|i| whole[(i, i)] += prior[i]);
    whole
}

/// The least eigenvalue of B − A, in units of the largest of B.
fn least_gap(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    let values = (b - a).self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    values[0] / b.norm_max()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn where_nothing_is_left_out_every_structure_is_the_whole_matrix(seed in any::<u64>()) {
        let rng = &mut rng(seed);
        let (prior, phi) = (prior(rng), activities(30, rng));
        let expected = exact(&prior, phi.as_ref());
        let col_cov = Cholesky::new(expected.as_ref(), "V⁻¹").unwrap().inverse();
        let probe = normal(D, 3, rng);
        for structure in [Structure::Dense, Structure::Blocks(D), Structure::Sketch(D)] {
            let precision = precision(structure, &prior, phi.as_ref());
            assert_close(precision.dense().unwrap().as_ref(), expected.as_ref(), 1e-11, "V⁻¹");
            for purpose in [Purpose::Leverage, Purpose::Step] {
                let covariance = precision.covariance::<f64>(purpose).unwrap();
                let product = covariance.times(probe.as_ref());
                assert_close(product.as_ref(), (&col_cov * &probe).as_ref(), 1e-8, "VΦ");
                let leverage = covariance.leverage(probe.as_ref());
                for (j, found) in leverage.iter().enumerate() {
                    let own = probe.subcols(j, 1);
                    let expected = (own.transpose() * &col_cov * own)[(0, 0)];
                    prop_assert!((found - expected).abs() < 1e-8 * expected);
                }
            }
        }
    }

    #[test]
    fn a_sketch_with_a_direction_for_each_sample_is_the_whole_matrix(seed in any::<u64>()) {
        let rng = &mut rng(seed);
        let (prior, phi) = (prior(rng), activities(4, rng));
        let twice = Mat::from_fn(D, 12, |i, j| phi[(i, j % 4)]);
        let precision = precision(Structure::Sketch(4), &prior, twice.as_ref());
        assert_close(precision.dense().unwrap().as_ref(), exact(&prior, twice.as_ref()).as_ref(), 1e-9, "V⁻¹");
        prop_assert!(precision.slack() < 1e-8 * twice.norm_l2().powi(2));
    }

    #[test]
    fn blocks_of_a_union_are_exactly_the_sum_and_keep_every_block(seed in any::<u64>()) {
        let rng = &mut rng(seed);
        // More activities than the directions that blocks share.
        let (d, n, cut) = (90, 200, 70);
        let prior = vec![0.5; d];
        let phi = pre(d - 1, n, rng);
        let size = rng.random_range(4..20);
        let of = |phi: MatRef<'_, f64>| precision(Structure::Blocks(size), &prior, phi);
        let mut sum = of(phi.subcols(0, cut));
        sum.add(&of(phi.subcols(cut, n - cut))).unwrap();
        let mut whole = &phi * phi.transpose();
        (0..d).for_each(|i| whole[(i, i)] += prior[i]);
        for found in [sum.dense().unwrap(), of(phi.as_ref()).dense().unwrap()] {
            for j in 0..d {
                for i in (0..d).filter(|i| i / size == j / size) {
                    prop_assert!((found[(i, j)] - whole[(i, j)]).abs() < 1e-11 * whole.norm_max());
                }
            }
            Cholesky::new(found.as_ref(), "blocks and what they share").unwrap();
        }
        // What multiplies is the inverse of what is kept.
        let found = sum.dense().unwrap();
        let probe = normal(d, 3, rng);
        let covariance = sum.covariance::<f64>(Purpose::Step).unwrap();
        assert_close(covariance.times((&found * &probe).as_ref()).as_ref(), probe.as_ref(), 1e-8, "V V⁻¹ Φ");
        let kept: f64 = Cholesky::new(found.as_ref(), "V⁻¹").unwrap().inverse().diagonal().column_vector()
            .iter().zip(&prior).map(|(v, p)| v * p).sum();
        prop_assert!((sum.effective().unwrap() - (d as f64 - kept)).abs() < 1e-8);
    }

    #[test]
    fn blocks_are_the_whole_matrix_where_they_share_all_directions(seed in any::<u64>()) {
        let rng = &mut rng(seed);
        let (prior, phi) = (prior(rng), activities(30, rng));
        let precision = precision(Structure::Blocks(2), &prior, phi.as_ref());
        let expected = exact(&prior, phi.as_ref());
        assert_close(precision.dense().unwrap().as_ref(), expected.as_ref(), 1e-10, "V⁻¹");
    }

    #[test]
    fn a_sketch_is_below_the_sum_and_the_sum_below_it_and_what_was_shrunk(seed in any::<u64>()) {
        let rng = &mut rng(seed);
        let (prior, phi, n, cut) = (prior(rng), activities(40, rng), 40, rng.random_range(1..40));
        let whole = exact(&prior, phi.as_ref());
        let of = |phi| precision(Structure::Sketch(3), &prior, phi);
        let mut merged = of(phi.subcols(0, cut));
        merged.add(&of(phi.subcols(cut, n - cut))).unwrap();
        for sketch in [of(phi.as_ref()), merged] {
            let lower = sketch.dense().unwrap();
            prop_assert!(sketch.slack() > 0.0);
            prop_assert!(least_gap(&lower, &whole) > -1e-10);
            let upper = Mat::from_fn(D, D, |i, j| {
                lower[(i, j)] + if i == j { sketch.slack() * prior[i] } else { 0.0 }
            });
            prop_assert!(least_gap(&whole, &upper) > -1e-10);
            // No leverage is understated, whichever vector asks.
            let col_cov = Cholesky::new(whole.as_ref(), "V⁻¹").unwrap().inverse();
            let probe = normal(D, 5, rng);
            let leverage = sketch.covariance::<f64>(Purpose::Leverage).unwrap().leverage(probe.as_ref());
            for (j, found) in leverage.iter().enumerate() {
                let own = probe.subcols(j, 1);
                prop_assert!(*found > (own.transpose() * &col_cov * own)[(0, 0)] * (1.0 - 1e-9));
            }
            // Steps take the middle.
            let middle = Mat::from_fn(D, D, |i, j| 0.5 * (lower[(i, j)] + upper[(i, j)]));
            let product = sketch.covariance::<f64>(Purpose::Step).unwrap().times((&middle * &probe).as_ref());
            assert_close(product.as_ref(), probe.as_ref(), 1e-8, "V V⁻¹ Φ");
        }
    }

    #[test]
    fn samples_fade_by_a_factor_and_the_prior_does_not(seed in any::<u64>()) {
        let rng = &mut rng(seed);
        let (prior, phi) = (prior(rng), activities(20, rng));
        let nothing = exact(&prior, Mat::zeros(D, 1).as_ref());
        for structure in [Structure::Dense, Structure::Blocks(D), Structure::Sketch(D)] {
            let mut precision = precision(structure, &prior, phi.as_ref());
            precision.scale(0.3);
            let whole = exact(&prior, phi.as_ref());
            let expected = Mat::from_fn(D, D, |i, j| 0.3 * whole[(i, j)] + 0.7 * nothing[(i, j)]);
            assert_close(precision.dense().unwrap().as_ref(), expected.as_ref(), 1e-11, "V⁻¹");
        }
    }

    #[test]
    fn the_trace_of_a_sketch_is_that_of_all_samples(seed in any::<u64>()) {
        let rng = &mut rng(seed);
        let x = normal(D, 50, rng);
        let mut sketch = FrequentDirections::new(D, 2);
        sketch.absorb(x.as_ref(), 0.5).unwrap();
        let expected = 0.5 * x.norm_l2().powi(2);
        prop_assert!((sketch.trace() - expected).abs() < 1e-12 * expected);
        // What the directions do not hold was shrunk, k + 1 times at least.
        let held: f64 = sketch.directions().unwrap().values.iter().sum();
        prop_assert!(expected - held > 3.0 * sketch.shrunk() * (1.0 - 1e-9));
    }
}

#[test]
fn precisions_of_other_widths_and_structures_do_not_add() {
    let of = |structure, d: usize| ColumnPrecision::new(structure, vec![1.0; d]);
    assert!(of(Structure::Dense, 4).add(&of(Structure::Dense, 5)).is_err());
    assert!(of(Structure::Dense, 4).add(&of(Structure::Blocks(2), 4)).is_err());
    assert!(of(Structure::Blocks(3), 4).add(&of(Structure::Blocks(2), 4)).is_err());
}
