//! What learning at the exact equilibrium does: errors at rest are shrunk sample by sample, by their leverage, and the mean
//! update they give has its fixed point elsewhere than the predictive loss (docs/depth.md).
//!
//! One hidden unit with input weights to learn, an output weight v that is known, one output:
//!
//! ```text
//! ε_n = g_n / P ,   g_n = f′(z_n) v p e_n ,   e_n = y_n − v f(z_n)     at rest
//! p = 1 / mean(e_n²) ,   P = mean(g_n²) / s                           self-consistent, with gain s
//! M ← Σ_n (ẑ_n + ε_n) φ_nᵀ (Σ_n φ_nφ_nᵀ)⁻¹                            fixed point: Σ_n ε_n φ_n = 0
//! ```
//!
//! Only P/p = mean(e_n² f′² v²) / mean(e_n²) / s matters; p is taken to be 1. In a linear network ε_n = ĝ_n/P / (1 + h) with
//! one leverage h = p v²/P = s for all samples.

use crate::common::{normal, rng};
use bayespc::Activation;
use bayespc::base::linalg::Cholesky;
use bayespc::inference::{ActivityOptimiser, Clamp, HiddenPrecision, RelaxationSettings, Relaxer, Variables};
use bayespc::network::{Network, NetworkSettings};
use faer::Mat;

const V: f64 = 3.0;
const N: usize = 80;

/// Where learning at gain s ends.
struct End {
    /// |Σ ĝ φ| / Σ |ĝ φ| of the forward pass: the gradient of the predictive loss, 1 if all samples agree.
    gradient: f64,
    /// |Σ ε φ| / Σ |ε φ|: 0 at the fixed point.
    update: f64,
    /// Mean squared error of the forward pass.
    loss: f64,
    /// p v² f′²/P, mean over samples.
    leverage: f64,
}

fn learn(activation: Activation, gain: f64) -> End {
    let mut rng = rng(21);
    let (input, noise) = (normal(1, N, &mut rng), normal(1, N, &mut rng));
    let target = Mat::from_fn(1, N, |_, j| {
        let x = input[(0, j)];
        1.2 * (2.0 * x).tanh() + 0.4 * x * x - 0.5 + 0.2 * noise[(0, j)]
    });
    let phi = bayespc::network::with_bias(input.as_ref());
    let outer = Cholesky::new((&phi * phi.transpose()).as_ref(), "Σ φφᵀ").unwrap();
    let top = Mat::from_fn(1, 2, |_, j| if j == 0 { V } else { 0.0 });
    let settings = NetworkSettings { hidden_layer_sizes: vec![1], activation, ..NetworkSettings::default() };
    let clamp = Clamp::supervised();
    let (mut mean, mut hidden) = (Mat::from_fn(1, 2, |_, j| [0.5, 0.1][j]), 1.0 / gain);
    let mut end = End { gradient: f64::NAN, update: f64::NAN, loss: f64::NAN, leverage: f64::NAN };
    for _ in 0..100 {
        let network = Network::with_weights(&settings, 1, 1, &[mean.clone(), top.clone()]).unwrap();
        let rule = RelaxationSettings {
            steps: 60,
            tolerance: 1e-15,
            optimiser: ActivityOptimiser::Gradient { rate: None },
            variables: Variables::Errors,
            hidden_precision: HiddenPrecision::Fixed(hidden),
            output_precision: Some(1.0),
            weight_uncertainty: 0.0,
            ..RelaxationSettings::paper()
        };
        let relaxer = Relaxer::new(&network, &rule, false).unwrap();
        let forward = relaxer.start(input.as_ref(), target.as_ref(), &clamp);
        let mut z = forward.clone();
        relaxer.relax(&mut z, &clamp);
        let sum = |of: &dyn Fn(usize) -> f64| (0..N).map(of).sum::<f64>();
        let left = |at: &Mat<f64>, j: usize| target[(0, j)] - V * activation.apply(at[(0, j)]);
        let feedback = |at: &Mat<f64>, j: usize| V * activation.derivative(at[(0, j)]) * left(at, j);
        let (first, rest) = (&forward.post[0], &z.post[0]);
        let apart = |of: &dyn Fn(usize) -> f64| {
            let of_entry =
                |i: usize| sum(&|j| of(j) * phi[(i, j)]).abs() / sum(&|j| (of(j) * phi[(i, j)]).abs());
            of_entry(0).max(of_entry(1))
        };
        end = End {
            gradient: apart(&|j| feedback(first, j)),
            update: apart(&|j| rest[(0, j)] - first[(0, j)]),
            loss: sum(&|j| left(first, j).powi(2)) / N as f64,
            leverage: sum(&|j| (V * activation.derivative(rest[(0, j)])).powi(2)) / (N as f64 * hidden),
        };
        // The weaker the feedback, the shorter the way of an update; the fixed point does not mind.
        let updated = outer.solve((&phi * rest.transpose()).as_ref()).transpose().to_owned();
        mean = &mean + (updated - &mean) * faer::Scale(0.5 * (1.0 + 1.0 / gain));
        // Towards the self-consistent precision, halfway at a time.
        let ratio = sum(&|j| feedback(rest, j).powi(2)) / sum(&|j| left(rest, j).powi(2));
        hidden = 0.5 * hidden + 0.5 * ratio / gain;
    }
    end
}

#[test]
fn at_the_exact_equilibrium_the_update_has_its_fixed_point_off_the_minimum_of_the_loss() {
    let ends = [1.0, 0.1, 0.03, 0.01].map(|gain| (gain, learn(Activation::Tanh, gain)));
    for (gain, end) in &ends {
        assert!(end.update < 1e-5, "gain {gain}: the update is at its fixed point: {}", end.update);
    }
    let slopes = ends.each_ref().map(|(_, end)| end.gradient);
    assert!(slopes[0] > 0.1, "the loss still has a slope: {}", slopes[0]);
    // In the limit of weak feedback the slope goes with the gain, and so does what is lost.
    for pair in ends[1..].windows(2) {
        let ratio = (pair[0].1.gradient / pair[1].1.gradient) / (pair[0].0 / pair[1].0);
        assert!((0.7..1.1).contains(&ratio), "{slopes:?}");
    }
    assert!(ends.windows(2).all(|pair| pair[0].1.loss > pair[1].1.loss));
}

#[test]
fn where_every_sample_has_the_same_leverage_nothing_is_lost() {
    let end = learn(Activation::Identity, 1.0);
    assert!(end.update < 1e-5 && end.gradient < 1e-9, "{} {}", end.update, end.gradient);
    // At the self-consistent point the leverage is the gain: half of the error is taken by the hidden unit.
    assert!((end.leverage - 1.0).abs() < 1e-6, "{}", end.leverage);
}
