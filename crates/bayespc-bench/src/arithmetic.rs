//! How many floating-point operations one batch needs, by hand count.
//!
//! Widths d_0 … d_L, presynaptic widths p_l = d_{l−1} + 1 with the bias, n samples. A product of a × b and
//! b × c is 2abc operations, a symmetric one (one triangle) half of it; a Cholesky factor is p³/3, and an
//! inverse from it another 2p³/3. Work per element (activations, optimisers, casts) is not counted, whatever
//! its time: the share of the peak that is reached says what it costs.
//!
//! ```text
//! forward       Σ_l 2 n d_l p_l
//! backward      Σ_{l≥2} 2 n d_l p_l
//! gradient      Σ_l 2 n d_l p_l
//! feedback      forward + backward
//!               hidden    n d(d+1) for Σ g gᵀ,  2nd² for A⁻¹g,  n p(p+1) for Σ φφᵀ
//!                         2np² for Vφ and 2ndp for Σ ε(Vφ)ᵀ;  every k-th batch instead 2ndp for Σ εφᵀ,
//!                         2dp² for its product with V, p³ for V, d³ for A⁻¹
//!               first     with whitened inputs neither Σ φφᵀ nor V: 2ndp for Σ εφᵀ, and every k-th batch d³ for
//!                         A⁻¹; the rare pull to the prior is not counted
//!               output    the conjugate update
//! relaxation    forward, T times the errors and upstream products of layers 2 … L and 2nd_L² for ⟨Σ⁻¹⟩ε, without
//!               those of hidden layers that the target's error has not reached: it climbs down one layer per step
//!               hidden    n d(d+1) for Σ εεᵀ,  n p(p+1) for Σ φφᵀ,  2np² for Vφ and 2ndp for Σ ε(Vφ)ᵀ;
//!                         every k-th batch instead 2ndp for Σ εφᵀ, 2dp² for its product with V, p³ for V
//!               first     with whitened inputs 2ndp for Σ εφᵀ and n d(d+1) for Σ εεᵀ alone
//!               output    the conjugate update
//!               with k = 1 and inputs as they are, the conjugate update of every layer
//! conjugate     n p(p+1) + 2ndp + n d(d+1) for T,  p³/3 + 2dp² for M = η₂η₁⁻¹
//! pc            forward, T times the errors and upstream products of layers 2 … L, errors, gradient
//! ```

/// Shape of the network and size of the batch.
#[derive(Clone, Debug)]
pub struct Shape {
    /// d_0 … d_L.
    pub widths: Vec<usize>,
    /// n.
    pub batch: usize,
}

/// What a batch goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Backpropagation.
    Backprop,
    /// Predictive coding with so many steps.
    PredictiveCoding {
        /// T.
        steps: usize,
    },
    /// The feedback rule.
    Feedback {
        /// k.
        refresh_every: u64,
        /// The first layer learns from whitened inputs.
        whiten_input: bool,
    },
    /// The relaxation rule, hidden precisions p · I, no weight-uncertainty term.
    Relaxation {
        /// T.
        steps: usize,
        /// k.
        refresh_every: u64,
        /// The first layer learns from whitened inputs.
        whiten_input: bool,
    },
}

impl Shape {
    /// Operations of one batch, refreshes spread evenly over batches.
    pub fn operations(&self, work: Work) -> f64 {
        let all: f64 = self.layers().map(|(d, p)| 2.0 * self.n() * d * p).sum();
        let above_first: f64 = self.layers().skip(1).map(|(d, p)| 2.0 * self.n() * d * p).sum();
        match work {
            Work::Backprop => all + above_first + all,
            Work::PredictiveCoding { steps } => all + steps as f64 * 2.0 * above_first + all + all,
            Work::Feedback { refresh_every, whiten_input } => {
                let hidden = self.layers().take(self.n_layers() - 1).enumerate();
                let learned: f64 = hidden
                    .map(|(l, layer)| self.feedback_layer(layer, refresh_every, whiten_input && l == 0))
                    .sum();
                let output: f64 = self.layers().skip(self.n_layers() - 1).map(|l| self.conjugate(l)).sum();
                all + above_first + learned + output
            }
            Work::Relaxation { steps, refresh_every, whiten_input } => {
                let d_output = self.widths[self.n_layers()] as f64;
                let step = 2.0 * above_first + 2.0 * self.n() * d_output * d_output;
                if refresh_every == 1 && !whiten_input {
                    let learned: f64 = self.layers().map(|layer| self.conjugate(layer)).sum();
                    return all + steps as f64 * step + learned;
                }
                let hidden = self.layers().take(self.n_layers() - 1).enumerate();
                let learned: f64 = hidden
                    .map(|(l, layer)| self.relaxed_layer(layer, refresh_every, whiten_input && l == 0))
                    .sum();
                let output: f64 = self.layers().skip(self.n_layers() - 1).map(|l| self.conjugate(l)).sum();
                all + steps as f64 * step - self.not_reached(steps) + learned + output
            }
        }
    }

    /// Products of layers above the first that relaxation leaves out of its first steps: with h hidden layers and
    /// layer l = 2 … h + 1 counted so, what layer l sends down is zero for h + 1 − l steps, and what it predicts is
    /// that of the forward pass for h + 2 − l steps, but at least one for the output layer.
    fn not_reached(&self, steps: usize) -> f64 {
        let n_hidden = self.n_layers() - 1;
        let saved = |(i, (d, p)): (usize, (f64, f64))| {
            let (upstream, errors) = (n_hidden - 1 - i, n_hidden - i);
            (upstream.min(steps) + errors.min(steps)) as f64 * 2.0 * self.n() * d * p
        };
        self.layers().skip(1).enumerate().map(saved).sum()
    }

    /// Natural-gradient step with its noise, and its share of a refresh.
    fn relaxed_layer(&self, (d, p): (f64, f64), refresh_every: u64, whitened: bool) -> f64 {
        let n = self.n();
        let every_time = n * d * (d + 1.0) + 2.0 * n * d * p;
        if whitened {
            return every_time;
        }
        let (stale, fresh) = (2.0 * n * p * p, 2.0 * d * p * p + p.powi(3));
        let share = 1.0 / refresh_every as f64;
        every_time + n * p * (p + 1.0) + share * fresh + (1.0 - share) * stale
    }

    /// Error, natural-gradient step and its share of a refresh.
    fn feedback_layer(&self, (d, p): (f64, f64), refresh_every: u64, whitened: bool) -> f64 {
        let n = self.n();
        let every_time = n * d * (d + 1.0) + 2.0 * n * d * d + 2.0 * n * d * p;
        if whitened {
            return every_time + d.powi(3) / refresh_every as f64;
        }
        let every_time = every_time + n * p * (p + 1.0);
        let stale = 2.0 * n * p * p;
        let fresh = 2.0 * d * p * p + p.powi(3) + d.powi(3);
        let share = 1.0 / refresh_every as f64;
        every_time + share * fresh + (1.0 - share) * stale
    }

    fn conjugate(&self, (d, p): (f64, f64)) -> f64 {
        let n = self.n();
        let statistics = n * p * (p + 1.0) + 2.0 * n * d * p + n * d * (d + 1.0);
        statistics + p.powi(3) / 3.0 + 2.0 * d * p * p
    }

    fn n(&self) -> f64 {
        self.batch as f64
    }

    fn n_layers(&self) -> usize {
        self.widths.len() - 1
    }

    /// (d_l, p_l) for l = 1 … L.
    fn layers(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.widths.windows(2).map(|pair| (pair[1] as f64, (pair[0] + 1) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2-3-1 with 4 samples: p = (3, 4), products 2·4·3·3 = 72 and 2·4·1·4 = 32.
    fn tiny() -> Shape {
        Shape { widths: vec![2, 3, 1], batch: 4 }
    }

    #[test]
    fn backpropagation_is_forward_backward_and_gradient() {
        assert_eq!(tiny().operations(Work::Backprop), (72.0 + 32.0) + 32.0 + (72.0 + 32.0));
    }

    #[test]
    fn predictive_coding_adds_two_products_per_step_above_the_first_layer() {
        let operations = |steps| tiny().operations(Work::PredictiveCoding { steps });
        assert_eq!(operations(0), 3.0 * (72.0 + 32.0));
        assert_eq!(operations(10) - operations(0), 10.0 * 2.0 * 32.0);
    }

    #[test]
    fn feedback_counts_by_hand() {
        // Output, d = 1 and p = 4: Σφφᵀ 4·4·5, Σzφᵀ 32, Σzzᵀ 4·1·2, factor 64/3, solve 2·16.
        let output = 80.0 + 32.0 + 8.0 + 64.0 / 3.0 + 32.0;
        // Hidden, d = 3 and p = 3: Σggᵀ 4·3·4, A⁻¹g 2·4·9, Σφφᵀ 4·3·4, Σεφᵀ or Σε(Vφ)ᵀ 72.
        let hidden = 48.0 + 72.0 + 48.0 + 72.0;
        let passes = 104.0 + 32.0;
        // Fresh: 2·3·9 for the product with V, 27 for V, 27 for A⁻¹; stale: Vφ 2·4·9.
        let (fresh, stale) = (54.0 + 27.0 + 27.0, 72.0);
        let operations =
            |refresh_every| tiny().operations(Work::Feedback { refresh_every, whiten_input: false });
        assert_eq!(operations(1), passes + hidden + fresh + output);
        let mixed = passes + hidden + 0.25 * fresh + 0.75 * stale + output;
        assert!((operations(4) - mixed).abs() < 1e-9);
        // With whitened inputs Σggᵀ, A⁻¹g and Σεφᵀ are left, and 27/4 for A⁻¹.
        let whitened = tiny().operations(Work::Feedback { refresh_every: 4, whiten_input: true });
        assert_eq!(whitened, passes + (48.0 + 72.0 + 72.0 + 6.75) + output);
    }

    #[test]
    fn relaxation_counts_by_hand() {
        let hidden = 48.0 + 72.0 + 48.0 + 9.0 + 54.0;
        let output = 80.0 + 32.0 + 8.0 + 64.0 / 3.0 + 32.0;
        let steps = 10.0 * (2.0 * 32.0 + 8.0);
        let operations = |refresh_every, whiten_input| {
            tiny().operations(Work::Relaxation { steps: 10, refresh_every, whiten_input })
        };
        assert_eq!(operations(1, false), 104.0 + steps + (hidden + output));
        // The output's error is known before the first step. Hidden, d = 3 and p = 3: Σεεᵀ 4·3·4, Σεφᵀ 72.
        let common = 104.0 + (steps - 32.0) + output + 48.0 + 72.0;
        assert!((operations(4, true) - common).abs() < 1e-9);
        // Σφφᵀ 4·3·4; fresh 2·3·9 for the product with V and 27 for V, stale 2·4·9 for Vφ.
        let running = common + 48.0 + 0.25 * (54.0 + 27.0) + 0.75 * 72.0;
        assert!((operations(4, false) - running).abs() < 1e-9);
    }

    #[test]
    fn the_first_steps_of_relaxation_leave_out_what_the_error_has_not_reached() {
        // Three hidden layers: layer 4 predicts nothing new in step 1; layer 3 sends nothing down in step 1 and
        // predicts nothing new in steps 1 and 2; layer 2 sends nothing in 1 and 2, predicts nothing new in 1 to 3.
        let shape = Shape { widths: vec![2, 3, 3, 3, 1], batch: 4 };
        let (hidden, output) = (2.0 * 4.0 * 3.0 * 4.0, 2.0 * 4.0 * 4.0);
        assert_eq!(shape.not_reached(10), output + (1.0 + 2.0) * hidden + (2.0 + 3.0) * hidden);
        assert_eq!(shape.not_reached(1), output + 2.0 * hidden + 2.0 * hidden);
    }
}
