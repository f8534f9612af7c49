//! A network with known weights: the mean of a posterior, or one draw from it.
//!
//! ```text
//! φ_0 = [x; 1] ,   z_l = W_l φ_{l−1} (+ noise) ,   φ_l = [f(z_l); 1] ,   a = z_L
//! ```
//!
//! A posterior is a distribution over point networks, so Monte Carlo prediction is written once for every
//! learner.

use faer::{Accum, Mat, MatRef};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::activation::Activation;
use crate::base::linalg::{cast, product_into};
use crate::base::parallel::for_each_pass;
use crate::error::{Error, Result};
use crate::heads::{ActivityPredictive, HeadSettings};
use crate::prediction::{Component, Covariance};
use crate::real::Real;

/// Weights, activation and head of a network without uncertainty.
#[derive(Clone, Debug)]
pub struct PointNetwork<T: Real> {
    /// W_1 … W_L, each `d_l × (d_{l−1} + 1)`, bias in the last column.
    pub weights: Vec<Mat<T>>,
    /// f.
    pub activation: Activation,
    /// How the output activity is read.
    pub head: HeadSettings,
    /// Covariance of the output noise, `d_L × d_L`.
    pub output_noise: Mat<f64>,
    /// Roots R_l of the hidden layers' noise Σ_l = R_l R_lᵀ, if it is activity noise.
    pub hidden_noise: Option<Vec<Mat<T>>>,
}

impl<T: Real> PointNetwork<T> {
    /// Number of weights, biases included.
    pub fn n_weights(&self) -> usize {
        self.weights.iter().map(|w| w.nrows() * w.ncols()).sum()
    }

    /// Width of the input.
    pub fn d_input(&self) -> usize {
        self.weights[0].ncols() - 1
    }

    /// Output activity a, `d_L × n`.
    pub fn forward(&self, input: MatRef<'_, T>) -> Result<Mat<T>> {
        check_input(input, self.d_input())?;
        let weights: Vec<_> = self.weights.iter().map(Mat::as_ref).collect();
        Ok(forward_chunks(&weights, self.activation, input))
    }

    /// Output activity with noise added in every hidden layer that has it.
    pub fn forward_noisy(&self, input: MatRef<'_, T>, rng: &mut dyn Rng) -> Result<Mat<T>> {
        check_input(input, self.d_input())?;
        let Some(roots) = &self.hidden_noise else {
            return self.forward(input);
        };
        let mut pre = with_bias(input);
        for (weights, root) in self.weights.iter().zip(roots) {
            let draws = Mat::from_fn(root.ncols(), input.ncols(), |_, _| {
                let draw: f64 = StandardNormal.sample(rng);
                T::lit(draw)
            });
            let post = weights * &pre + root * draws;
            pre = activated(self.activation, post.as_ref());
        }
        Ok(&self.weights[self.weights.len() - 1] * &pre)
    }

    /// The distribution of the target around an output activity of this network.
    pub fn density(&self, activity: MatRef<'_, T>) -> Result<Component> {
        self.head.head().density(ActivityPredictive {
            mean: cast(activity),
            epistemic: Covariance::Zero,
            hidden_noise: Covariance::Zero,
            noise: self.output_noise.clone(),
            dof: f64::INFINITY,
        })
    }
}

/// Activities of a whole network for up to `capacity` samples, in buffers that are reused.
#[derive(Clone, Debug)]
pub struct Activities<T: Real> {
    /// φ_0 … φ_{L−1}, each `(d_l + 1) × capacity`, the last row ones.
    pub pre: Vec<Mat<T>>,
    /// z_1 … z_L, each `d_l × capacity`.
    pub post: Vec<Mat<T>>,
}

impl<T: Real> Activities<T> {
    /// Room for `capacity` samples of a network with these layer widths d_0 … d_L.
    pub fn new(widths: &[usize], capacity: usize) -> Self {
        let with_ones =
            |&d: &usize| Mat::from_fn(d + 1, capacity, |i, _| if i == d { T::one() } else { T::zero() });
        Self {
            pre: widths[..widths.len() - 1].iter().map(with_ones).collect(),
            post: widths[1..].iter().map(|&d| Mat::zeros(d, capacity)).collect(),
        }
    }

    /// Number of samples there is room for.
    pub fn capacity(&self) -> usize {
        self.pre[0].ncols()
    }

    /// Forward pass of `input` with these weights; every sample of the capacity is used.
    pub fn forward(&mut self, weights: &[MatRef<'_, T>], activation: Activation, input: MatRef<'_, T>) {
        let d_input = input.nrows();
        self.pre[0].as_mut().subrows_mut(0, d_input).copy_from(input);
        let last = weights.len() - 1;
        for (l, weight) in weights.iter().enumerate() {
            product_into(self.post[l].as_mut(), Accum::Replace, *weight, self.pre[l].as_ref(), T::one());
            if l < last {
                self.activate(activation, l);
            }
        }
    }

    /// φ_{l+1} ← [f(z_{l+1}); 1], where z_{l+1} is `post[l]`.
    pub fn activate(&mut self, activation: Activation, l: usize) {
        let d = self.post[l].nrows();
        activation.apply_into(self.post[l].as_ref(), self.pre[l + 1].as_mut().subrows_mut(0, d));
    }
}

/// [x; 1].
pub fn with_bias<T: Real>(x: MatRef<'_, T>) -> Mat<T> {
    Mat::from_fn(x.nrows() + 1, x.ncols(), |i, j| if i == x.nrows() { T::one() } else { x[(i, j)] })
}

/// [f(z); 1].
pub fn activated<T: Real>(activation: Activation, z: MatRef<'_, T>) -> Mat<T> {
    let mut pre = Mat::from_fn(z.nrows() + 1, z.ncols(), |_, _| T::one());
    activation.apply_into(z, pre.as_mut().subrows_mut(0, z.nrows()));
    pre
}

pub(crate) fn check_input<T: Real>(input: MatRef<'_, T>, d_input: usize) -> Result<()> {
    if input.nrows() == d_input {
        Ok(())
    } else {
        Err(Error::Shape { what: "input", axis: "features", found: input.nrows(), expected: d_input })
    }
}

/// Forward pass in parallel over fixed chunks of samples.
pub(crate) fn forward_chunks<T: Real>(
    weights: &[MatRef<'_, T>],
    activation: Activation,
    input: MatRef<'_, T>,
) -> Mat<T> {
    let widths: Vec<usize> =
        std::iter::once(input.nrows()).chain(weights.iter().map(MatRef::nrows)).collect();
    let mut output = Mat::zeros(widths[widths.len() - 1], input.ncols());
    for_each_pass(output.as_mut(), |start, chunk| {
        let n = chunk.ncols();
        let mut activities = Activities::new(&widths, n);
        activities.forward(weights, activation, input.subcols(start, n));
        chunk.copy_from(&activities.post[weights.len() - 1]);
    });
    output
}
