//! Exact laws of the statistics and the conjugate posterior, and statistical ones with derived tolerances.
//!
//! A mean of independent draws is compared within 4 or 5 of its standard errors, which a correct sampler
//! misses with probability 6·10⁻⁵ or 6·10⁻⁷; 5 where hundreds of means are compared. All seeds are fixed.

use crate::common::{any_posterior, assert_close, assert_mean, normal, pre, relative_difference, rng};
use bayespc::base::linalg::Cholesky;
use bayespc::data::Dataset;
use bayespc::distributions::{MatrixNormalWishart, NaturalParams, SufficientStats};
use bayespc::heads::{HeadSettings, VarianceNode};
use bayespc::inference::{ActivityOptimiser, FeedbackSettings, Presynaptic, RelaxationSettings};
use bayespc::learners::{Bpc, Learner, Rule, Step};
use bayespc::learning::FreeEnergy;
use bayespc::network::{Activation, Layer, Network, NetworkSettings};
use faer::{Mat, MatRef};
use proptest::prelude::*;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

fn shape(rng: &mut ChaCha8Rng) -> (usize, usize) {
    (rng.random_range(1..5), rng.random_range(2..6))
}

/// φ and z of `n` samples for weights of this shape.
fn data((d_post, d_pre): (usize, usize), n: usize, rng: &mut ChaCha8Rng) -> (Mat<f64>, Mat<f64>) {
    (pre(d_pre - 1, n, rng), normal(d_post, n, rng))
}

fn stats(pre: MatRef<'_, f64>, post: MatRef<'_, f64>) -> SufficientStats {
    SufficientStats::of(pre, post).unwrap()
}

fn updated(prior: &NaturalParams, stats: &SufficientStats) -> NaturalParams {
    let mut natural = prior.clone();
    natural.add(stats).unwrap();
    natural
}

fn assert_same_stats(a: &SufficientStats, b: &SufficientStats, tolerance: f64) {
    assert_close(a.pre_pre.as_ref(), b.pre_pre.as_ref(), tolerance, "Σ φφᵀ");
    assert_close(a.post_pre.as_ref(), b.post_pre.as_ref(), tolerance, "Σ zφᵀ");
    assert_close(a.post_post.as_ref(), b.post_post.as_ref(), tolerance, "Σ zzᵀ");
    assert!((a.count - b.count).abs() <= tolerance * b.count.abs());
}

fn assert_same_natural(a: &NaturalParams, b: &NaturalParams, tolerance: f64) {
    assert_close(a.pre_pre.as_ref(), b.pre_pre.as_ref(), tolerance, "η₁");
    assert_close(a.post_pre.as_ref(), b.post_pre.as_ref(), tolerance, "η₂");
    assert_close(a.post_post.as_ref(), b.post_post.as_ref(), tolerance, "η₃");
    assert!((a.count - b.count).abs() <= tolerance * b.count.abs());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn statistics_of_a_union_are_the_sum_of_the_statistics(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let (n, cut) = (12, rng.random_range(1..12));
        let (pre, post) = data(shape(&mut rng), n, &mut rng);
        let mut sum = stats(pre.subcols(0, cut), post.subcols(0, cut));
        sum.add(&stats(pre.subcols(cut, n - cut), post.subcols(cut, n - cut))).unwrap();
        assert_same_stats(&sum, &stats(pre.as_ref(), post.as_ref()), 1e-13);
    }

    #[test]
    fn a_sample_of_weight_two_is_a_sample_seen_twice(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let n = 9;
        let (pre, post) = data(shape(&mut rng), n, &mut rng);
        let weights: Vec<f64> = (0..n).map(|_| f64::from(rng.random_range(0..3_u8))).collect();
        let copies: Vec<usize> = (0..n).flat_map(|j| vec![j; weights[j] as usize]).collect();
        let repeated = |m: &Mat<f64>| Mat::from_fn(m.nrows(), copies.len(), |i, j| m[(i, copies[j])]);
        let weighted = SufficientStats::weighted(pre.as_ref(), post.as_ref(), &weights).unwrap();
        prop_assume!(!copies.is_empty());
        assert_same_stats(&weighted, &stats(repeated(&pre).as_ref(), repeated(&post).as_ref()), 1e-13);
    }

    #[test]
    fn learning_sample_by_sample_is_learning_at_once(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let shape = shape(&mut rng);
        let prior = any_posterior(shape, &mut rng).to_natural();
        let (pre, post) = data(shape, 10, &mut rng);
        let mut sequential = prior.clone();
        for j in 0..10 {
            sequential.add(&stats(pre.subcols(j, 1), post.subcols(j, 1))).unwrap();
        }
        let batch = updated(&prior, &stats(pre.as_ref(), post.as_ref()));
        assert_same_natural(&sequential, &batch, 1e-13);
        // A full step of the mini-batch rule is the exact update as well.
        let mut blended = any_posterior(shape, &mut rng).to_natural();
        blended.blend(&prior, &stats(pre.as_ref(), post.as_ref()), 1.0, 1.0).unwrap();
        assert_same_natural(&blended, &batch, 1e-13);
    }

    #[test]
    fn natural_parameters_return_to_the_same_distribution(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let q = any_posterior(shape(&mut rng), &mut rng);
        let back = MatrixNormalWishart::from_natural(&q.to_natural()).unwrap();
        assert_close(back.mean(), q.mean(), 1e-12, "M");
        assert_close(back.col_precision(), q.col_precision(), 1e-12, "V⁻¹");
        // Ψ⁻¹ is a difference of larger matrices, here up to a hundred times.
        assert_close(back.noise().inv_scale(), q.noise().inv_scale(), 1e-11, "Ψ⁻¹");
        prop_assert!((back.dof() - q.dof()).abs() <= 1e-12 * q.dof());
    }

    #[test]
    fn divergence_is_positive_and_zero_only_from_itself(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let shape = shape(&mut rng);
        let (q, p) = (any_posterior(shape, &mut rng), any_posterior(shape, &mut rng));
        prop_assert!(q.kl_divergence(&p).unwrap() > 0.0);
        prop_assert!(q.kl_divergence(&q).unwrap().abs() <= 1e-10);
        prop_assert!(q.noise().kl_divergence(p.noise()) > 0.0);
        prop_assert!(q.noise().kl_divergence(q.noise()).abs() <= 1e-10);
    }

    #[test]
    fn log_evidence_is_the_chain_of_student_t_predictives(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let shape = shape(&mut rng);
        let prior = any_posterior(shape, &mut rng);
        let (pre, post) = data(shape, 12, &mut rng);
        let mut natural = prior.to_natural();
        let mut chain = 0.0;
        for j in 0..12 {
            let (phi, z) = (pre.subcols(j, 1), post.subcols(j, 1));
            let q = MatrixNormalWishart::from_natural(&natural).unwrap();
            chain += q.predictive(phi).unwrap().log_density(z).unwrap()[0];
            natural.add(&stats(phi, z)).unwrap();
        }
        let posterior = MatrixNormalWishart::from_natural(&natural).unwrap();
        let all = stats(pre.as_ref(), post.as_ref());
        let evidence = -FreeEnergy::of(&posterior, &prior, &all).unwrap().total();
        prop_assert!((evidence - chain).abs() <= 1e-9 * chain.abs(), "{evidence} and {chain}");
        // Any other posterior has a larger free energy.
        let other = any_posterior(shape, &mut rng);
        prop_assert!(FreeEnergy::of(&other, &prior, &all).unwrap().total() > -evidence);
    }

    #[test]
    fn a_full_batch_of_one_layer_is_the_exact_bayesian_update(seed in any::<u64>()) {
        let mut rng = rng(seed);
        let (input, target) = (normal(3, 20, &mut rng), normal(2, 20, &mut rng));
        let network = crate::common::network(&[3, 2], Activation::Relu, &NetworkSettings::default(), &mut rng);
        let prior = network.output().blocks()[0].prior().clone();
        let mut learner = Bpc::new(network, Rule::Relaxation(RelaxationSettings::paper())).unwrap();
        let step = Step { index: 1, total: None, n_total: 20.0, full_batch: true };
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        learner.learn(&data, &step, &mut rng).unwrap();
        let phi = bayespc::network::with_bias(input.as_ref());
        let expected = updated(&prior, &stats(phi.as_ref(), target.as_ref()));
        assert_same_natural(&learner.network().output().blocks()[0].natural(), &expected, 1e-13);
        // Its free energy is then minus the log evidence of the data.
        let prior = MatrixNormalWishart::from_natural(&prior).unwrap();
        let posterior = MatrixNormalWishart::from_natural(&expected).unwrap();
        let chain = FreeEnergy::of(&posterior, &prior, &stats(phi.as_ref(), target.as_ref())).unwrap().total();
        let found: f64 = learner.free_energy(&data).unwrap().unwrap().iter().map(FreeEnergy::total).sum();
        prop_assert!((found - chain).abs() <= 1e-9 * chain.abs(), "{found} and {chain}");
    }
}

fn log_det(a: &Mat<f64>) -> f64 {
    Cholesky::new(a.as_ref(), "a draw").unwrap().log_det()
}

#[test]
fn divergence_and_entropy_match_monte_carlo() {
    for seed in 0..6 {
        let mut rng = rng(seed);
        let shape = shape(&mut rng);
        let (q, p) = (any_posterior(shape, &mut rng), any_posterior(shape, &mut rng));
        let (mut divergence, mut entropy, mut noise) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..4000 {
            let draw = q.sample(&mut rng);
            let precision = draw.precision.precision();
            let log_q = q.log_density(draw.weights.as_ref(), precision.as_ref()).unwrap();
            let log_p = p.log_density(draw.weights.as_ref(), precision.as_ref()).unwrap();
            divergence.push(log_q - log_p);
            entropy.push(-log_q);
            noise.push(
                q.noise().log_density(precision.as_ref()).unwrap()
                    - p.noise().log_density(precision.as_ref()).unwrap(),
            );
        }
        assert_mean(&divergence, q.kl_divergence(&p).unwrap(), 4.0, &format!("KL, seed {seed}"));
        assert_mean(&entropy, q.entropy(), 4.0, &format!("entropy, seed {seed}"));
        assert_mean(
            &noise,
            q.noise().kl_divergence(p.noise()),
            4.0,
            &format!("KL of the noise, seed {seed}"),
        );
    }
}

#[test]
fn draws_have_the_expected_moments() {
    for seed in 0..4 {
        let mut rng = rng(seed);
        let (d_post, d_pre) = (2 + (seed % 2) as usize, 3);
        // ν = d + 14: Σ has finite fourth moments, so that its standard errors are meaningful.
        let q = crate::common::posterior((d_post, d_pre), 0.5, 4.0, 14.0, &mut rng);
        let moments: Vec<(&str, Mat<f64>)> = vec![
            ("W", q.mean().to_owned()),
            ("Σ⁻¹", q.expected_precision()),
            ("Σ", q.expected_covariance().unwrap()),
            ("Σ⁻¹W", q.expected_precision_weights()),
            ("WᵀΣ⁻¹W", q.expected_weights_precision_weights()),
            ("log|Σ⁻¹|", Mat::from_fn(1, 1, |_, _| q.expected_log_det_precision())),
        ];
        let mut draws: Vec<Vec<Mat<f64>>> = vec![Vec::new(); moments.len()];
        for _ in 0..20_000 {
            let draw = q.sample(&mut rng);
            let precision = draw.precision.precision();
            let covariance = draw.precision.covariance();
            let weighted = &precision * &draw.weights;
            let values = [
                draw.weights.clone(),
                precision.clone(),
                covariance,
                weighted.clone(),
                draw.weights.transpose() * weighted,
                Mat::from_fn(1, 1, |_, _| log_det(&precision)),
            ];
            for (list, value) in draws.iter_mut().zip(values) {
                list.push(value);
            }
        }
        for ((what, expected), draws) in moments.iter().zip(&draws) {
            for j in 0..expected.ncols() {
                for i in 0..expected.nrows() {
                    let entries: Vec<f64> = draws.iter().map(|draw| draw[(i, j)]).collect();
                    assert_mean(&entries, expected[(i, j)], 5.0, &format!("{what}[{i}, {j}], seed {seed}"));
                }
            }
        }
    }
}

#[test]
fn a_drawn_precision_is_the_inverse_of_its_covariance() {
    let mut rng = rng(5);
    let q = any_posterior((4, 3), &mut rng);
    let draw = q.sample(&mut rng).precision;
    let product = draw.precision() * draw.covariance();
    assert!(relative_difference(product.as_ref(), Mat::<f64>::identity(4, 4).as_ref()) <= 1e-10);
}

/// Simulation-based calibration (Talts et al. 2018): parameters from the prior, data from them, and the rank
/// of each parameter among draws from its posterior is uniform.
#[test]
fn posterior_ranks_of_prior_draws_are_uniform() {
    /// The 0.9999 quantile of χ² with 19 degrees of freedom, `scipy.stats.chi2.ppf`, SciPy 1.17.
    const QUANTILE: f64 = 50.795_489_7;
    const DRAWS: usize = 19;
    const REPLICATES: usize = 1000;
    let mut rng = rng(2018);
    let (d_post, d_pre, n) = (2, 3, 6);
    let prior = crate::common::posterior((d_post, d_pre), 0.5, 1.0, 3.0, &mut rng);
    let names = ["W[0, 1]", "W[1, 2]", "log|Σ⁻¹|", "Σ⁻¹[0, 1]"];
    let mut ranks = vec![[0_usize; DRAWS + 1]; names.len()];
    let parameters = |weights: &Mat<f64>, precision: &Mat<f64>| {
        [weights[(0, 1)], weights[(1, 2)], log_det(precision), precision[(0, 1)]]
    };
    for _ in 0..REPLICATES {
        let truth = prior.sample(&mut rng);
        let phi = pre(d_pre - 1, n, &mut rng);
        let noise = truth.precision.covariance_root_times(normal(d_post, n, &mut rng));
        let z = &truth.weights * &phi + noise;
        let natural = updated(&prior.to_natural(), &stats(phi.as_ref(), z.as_ref()));
        let posterior = MatrixNormalWishart::from_natural(&natural).unwrap();
        let truth = parameters(&truth.weights, &truth.precision.precision());
        let mut below = vec![0; names.len()];
        for _ in 0..DRAWS {
            let draw = posterior.sample(&mut rng);
            let drawn = parameters(&draw.weights, &draw.precision.precision());
            for (count, (drawn, truth)) in below.iter_mut().zip(drawn.iter().zip(truth)) {
                *count += usize::from(*drawn < truth);
            }
        }
        for (histogram, rank) in ranks.iter_mut().zip(below) {
            histogram[rank] += 1;
        }
    }
    let expected = REPLICATES as f64 / (DRAWS + 1) as f64;
    for (name, histogram) in names.iter().zip(&ranks) {
        let chi_square: f64 =
            histogram.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        assert!(chi_square < QUANTILE, "{name}: χ² {chi_square}, {histogram:?}");
    }
}

/// After a step and the finishing pass: η of every layer.
fn learned(rule: &Rule, head: &HeadSettings, data: &Dataset<'_, f64>) -> Vec<NaturalParams> {
    let settings = NetworkSettings {
        hidden_layer_sizes: vec![5, 4],
        activation: Activation::Tanh,
        head: head.clone(),
        ..NetworkSettings::default()
    };
    let network = Network::new(&settings, 3, 2, &mut rng(3)).unwrap();
    let mut learner = Bpc::new(network, rule.clone()).unwrap();
    for index in 1..=3 {
        let step = Step { index, total: None, n_total: 50.0, full_batch: false };
        learner.learn(data, &step, &mut rng(0)).unwrap();
    }
    let mut layers: Vec<NaturalParams> = learner.network().layers().map(Layer::natural).collect();
    learner.finish(data).unwrap();
    layers.extend(learner.network().layers().map(Layer::natural));
    layers
}

#[test]
fn every_rule_learns_from_weight_two_as_from_a_sample_seen_twice() {
    let mut rng = rng(8);
    let (n, weights) = (9, [1.0, 2.0, 0.0, 1.0, 3.0, 1.0, 0.0, 2.0, 1.0]);
    let (input, target) = (normal(3, n, &mut rng), normal(2, n, &mut rng));
    let copies: Vec<usize> = (0..n).flat_map(|j| vec![j; weights[j] as usize]).collect();
    let repeated = |m: &Mat<f64>| Mat::from_fn(m.nrows(), copies.len(), |i, j| m[(i, copies[j])]);
    let (input_twice, target_twice) = (repeated(&input), repeated(&target));
    let weighted = Dataset::new(input.as_ref(), target.as_ref()).unwrap().with_weights(&weights).unwrap();
    let twice = Dataset::new(input_twice.as_ref(), target_twice.as_ref()).unwrap();
    let gaussian = HeadSettings::default();
    let variance_node = HeadSettings::VarianceNode(VarianceNode::default());
    for (rule, head) in [
        (Rule::Relaxation(RelaxationSettings::tied()), &gaussian),
        (Rule::Feedback(FeedbackSettings::default()), &gaussian),
        (Rule::Feedback(FeedbackSettings::default()), &variance_node),
    ] {
        let pairs = learned(&rule, head, &weighted).into_iter().zip(learned(&rule, head, &twice));
        for (a, b) in pairs {
            assert_same_natural(&a, &b, 1e-10);
        }
    }
}

#[test]
fn relaxation_by_natural_gradient_is_the_blended_conjugate_update_while_factors_are_fresh() {
    let mut rng = rng(12);
    let (input, target) = (normal(3, 90, &mut rng), normal(2, 90, &mut rng));
    let weights: Vec<f64> = (0..90).map(|j| 0.5 + f64::from(j % 4)).collect();
    let plain = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
    for presynaptic in [Presynaptic::Forward, Presynaptic::Relaxed] {
        for data in [plain, plain.with_weights(&weights).unwrap()] {
            let network = crate::common::network(
                &[3, 6, 5, 2],
                Activation::Relu,
                &NetworkSettings::default(),
                &mut rng,
            );
            let settings = RelaxationSettings {
                presynaptic,
                // A step of its own choice would be found by two ways of power iteration.
                optimiser: ActivityOptimiser::Gradient { rate: Some(1e-3) },
                ..RelaxationSettings::tied()
            };
            let stale = RelaxationSettings { refresh_every: 20, ..settings.clone() };
            let mut learners =
                [settings, stale].map(|rule| Bpc::new(network.clone(), Rule::Relaxation(rule)).unwrap());
            // Factors so young are renewed at every step.
            for index in 1..=6 {
                let step = Step { index, total: Some(6), n_total: 900.0, full_batch: false };
                let losses =
                    learners.each_mut().map(|learner| learner.learn(&data, &step, &mut rng).unwrap());
                assert!((losses[0] - losses[1]).abs() <= 1e-9 * losses[0], "{losses:?}");
            }
            let [exact, other] = learners.map(|learner| learner.into_network().unwrap());
            for (exact, other) in exact.layers().zip(other.layers()) {
                assert_same_natural(&other.natural(), &exact.natural(), 1e-9);
            }
        }
    }
}

#[test]
fn relaxation_settings_that_need_scaled_batches_are_refused_without_them() {
    for (refresh_every, whiten_input) in [(0, false), (2, false), (1, true)] {
        let settings = RelaxationSettings { refresh_every, whiten_input, ..RelaxationSettings::paper() };
        assert!(settings.validate().is_err());
    }
}
