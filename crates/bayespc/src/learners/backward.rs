//! The backward pass of a point network under a squared error, shared by the learners that use it.
//!
//! ```text
//! loss      ℒ = ½ Σ_j w_j Σ_i c_i (a_ij − y_ij)²
//! top       δ_L = c wᵀ ⊙ (a − y)
//! below     δ_l = f′(z_l) ⊙ (W_{l+1}ᵀ δ_{l+1})_{without bias}
//! gradient  ∂ℒ/∂W_l = δ_l φ_{l−1}ᵀ
//! ```

use faer::{Accum, Mat, MatRef};

use crate::base::linalg::product_into;
use crate::base::parallel::for_each_worker;
use crate::data::Dataset;
use crate::network::{Activation, Activities, back_one_into};
use crate::real::Real;

/// Gradients of one batch, with the buffers that make them.
#[derive(Clone, Debug)]
pub(super) struct Backward<T: Real> {
    widths: Vec<usize>,
    gradients: Vec<Mat<T>>,
    squared_errors: Vec<f64>,
    workers: Vec<Worker<T>>,
}

/// Buffers of one chunk of samples.
#[derive(Clone, Debug)]
struct Worker<T: Real> {
    activities: Activities<T>,
    /// δ_1 … δ_L.
    sensitivities: Vec<Mat<T>>,
    /// Room for W_{l+1}ᵀ δ_{l+1}, l = 1 … L−1.
    upstream: Vec<Mat<T>>,
    gradients: Vec<Mat<T>>,
    squared_errors: Vec<f64>,
}

impl<T: Real> Backward<T> {
    /// Buffers for a network with these weights.
    pub fn new(weights: &[Mat<T>]) -> Self {
        Self {
            widths: widths(weights),
            gradients: zeros_like(weights),
            squared_errors: vec![0.0; weights[weights.len() - 1].nrows()],
            workers: Vec::new(),
        }
    }

    /// ∂ℒ/∂W_1 … ∂ℒ/∂W_L of the last batch.
    pub fn gradients(&self) -> &[Mat<T>] {
        &self.gradients
    }

    /// Σ_j w_j (a_ij − y_ij)² of each output of the last batch.
    pub fn squared_errors(&self) -> &[f64] {
        &self.squared_errors
    }

    /// Forward and backward pass; `scales` are the c_i.
    pub fn run(
        &mut self,
        weights: &[Mat<T>],
        activation: Activation,
        batch: &Dataset<'_, T>,
        scales: &[f64],
    ) {
        let references: Vec<_> = weights.iter().map(Mat::as_ref).collect();
        let n_weights = weights.iter().map(|w| w.nrows() * w.ncols()).sum();
        for gradient in &mut self.gradients {
            gradient.fill(T::zero());
        }
        self.squared_errors.fill(0.0);
        for_each_worker(
            &mut self.workers,
            batch.len(),
            n_weights,
            || Worker::new(&self.widths),
            |worker, start, n| {
                worker.resize(&self.widths, n);
                worker.run(&references, activation, batch, scales, start);
            },
            |worker| {
                add(&mut self.gradients, &worker.gradients);
                for (sum, square) in self.squared_errors.iter_mut().zip(&worker.squared_errors) {
                    *sum += square;
                }
            },
        );
    }
}

impl<T: Real> Worker<T> {
    fn new(widths: &[usize]) -> Self {
        let gradients = widths.windows(2).map(|d| Mat::zeros(d[1], d[0] + 1)).collect();
        Self {
            activities: Activities::new(widths, 0),
            sensitivities: Vec::new(),
            upstream: Vec::new(),
            gradients,
            squared_errors: vec![0.0; widths[widths.len() - 1]],
        }
    }

    fn resize(&mut self, widths: &[usize], n: usize) {
        if self.activities.capacity() != n {
            self.activities = Activities::new(widths, n);
            self.sensitivities = widths[1..].iter().map(|&d| Mat::zeros(d, n)).collect();
            let hidden = &widths[1..widths.len() - 1];
            self.upstream = hidden.iter().map(|&d| Mat::zeros(d, n)).collect();
        }
    }

    fn run(
        &mut self,
        weights: &[MatRef<'_, T>],
        activation: Activation,
        batch: &Dataset<'_, T>,
        scales: &[f64],
        start: usize,
    ) {
        let n = self.activities.capacity();
        self.activities.forward(weights, activation, batch.input().subcols(start, n));
        self.start_at_the_top(batch, scales, start);
        for l in (0..weights.len()).rev() {
            product_into(
                self.gradients[l].as_mut(),
                Accum::Replace,
                self.sensitivities[l].as_ref(),
                self.activities.pre[l].transpose(),
                T::one(),
            );
            let Some(below) = l.checked_sub(1) else { break };
            let (deltas, above) = self.sensitivities.split_at_mut(l);
            let (z, above) = (self.activities.post[below].as_ref(), above[0].as_ref());
            let (room, delta) = (&mut self.upstream[below], &mut deltas[below]);
            back_one_into(weights[l], activation, z, above, room, delta);
        }
    }

    /// δ_L and the squared errors.
    fn start_at_the_top(&mut self, batch: &Dataset<'_, T>, scales: &[f64], start: usize) {
        let top = self.sensitivities.len() - 1;
        let (output, delta) = (&self.activities.post[top], &mut self.sensitivities[top]);
        self.squared_errors.fill(0.0);
        for j in 0..output.ncols() {
            let weight = batch.weights().map_or(1.0, |w| w[start + j]);
            for i in 0..output.nrows() {
                let error = output[(i, j)] - batch.target()[(i, start + j)];
                self.squared_errors[i] += weight * error.as_f64() * error.as_f64();
                delta[(i, j)] = T::lit(weight * scales[i]) * error;
            }
        }
    }
}

/// d_0 … d_L of a network with these weights.
pub(super) fn widths<T: Real>(weights: &[Mat<T>]) -> Vec<usize> {
    std::iter::once(weights[0].ncols() - 1).chain(weights.iter().map(Mat::nrows)).collect()
}

/// Zero matrices of the same shapes.
pub(super) fn zeros_like<T: Real>(matrices: &[Mat<T>]) -> Vec<Mat<T>> {
    matrices.iter().map(|m| Mat::zeros(m.nrows(), m.ncols())).collect()
}

/// sums ← sums + terms, matrix by matrix.
pub(super) fn add<T: Real>(sums: &mut [Mat<T>], terms: &[Mat<T>]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        for j in 0..sum.ncols() {
            for (sum, &term) in sum.col_as_slice_mut(j).iter_mut().zip(term.col_as_slice(j)) {
                *sum += term;
            }
        }
    }
}
