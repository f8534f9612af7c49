//! Energy of the activities: precision-weighted prediction errors (paper Eq. 5, App. B).
//!
//! ```text
//! E(Z) = ½ Σ_l [ ε_lᵀ ⟨Σ_l⁻¹⟩ ε_l + τ d_l φ_{l−1}ᵀ V_l φ_{l−1} ] ,   ε_l = z_l − M_l φ_{l−1}
//! ∂E/∂z_l = ⟨Σ_l⁻¹⟩ ε_l + f′(z_l) ⊙ [ τ d_{l+1} V_{l+1} φ_l − M_{l+1}ᵀ ⟨Σ_{l+1}⁻¹⟩ ε_{l+1} ]_{without bias}
//! ```
//!
//! The second term is what the posterior adds to plain predictive coding: it penalises presynaptic activity
//! in directions the weights are unsure about. τ is its temperature (1 on paper). Where z_0 is free, its
//! prior adds ½ z_0ᵀz_0/σ_0². A layer whose input is clamped may leave V out (`0 × 0`): its term is constant.

use faer::{Accum, Mat};

use super::clamp::Clamp;
use crate::base::linalg::product_into;
use crate::network::{Activation, Activities, Expectations};
use crate::real::Real;

/// Energy of each layer, summed over the samples.
pub fn layer_energies<T: Real>(
    layers: &[Expectations<T>],
    activities: &Activities<T>,
    temperature: f64,
) -> Vec<f64> {
    let n = activities.capacity();
    (0..layers.len())
        .map(|l| {
            let mut columns = vec![0.0; n];
            add_layer_energy(layers, activities, temperature, l, &mut columns);
            columns.iter().sum()
        })
        .collect()
}

/// Energy of each sample, summed over the layers, the prior of a free z_0 included.
pub fn energies<T: Real>(
    layers: &[Expectations<T>],
    activities: &Activities<T>,
    clamp: &Clamp<T>,
    temperature: f64,
) -> Vec<f64> {
    let mut columns = vec![0.0; activities.capacity()];
    for l in 0..layers.len() {
        add_layer_energy(layers, activities, temperature, l, &mut columns);
    }
    add_input_energy(activities, clamp, &mut columns);
    columns
}

/// Add E_l of every sample.
pub(in crate::inference) fn add_layer_energy<T: Real>(
    layers: &[Expectations<T>],
    activities: &Activities<T>,
    temperature: f64,
    l: usize,
    columns: &mut [f64],
) {
    let layer = &layers[l];
    let (pre, post) = (&activities.pre[l], &activities.post[l]);
    let error = post - &layer.mean * pre;
    add_quadratic(&error, &(&layer.precision * &error), 0.5, columns);
    if layer.col_cov.nrows() > 0 && temperature > 0.0 {
        add_quadratic(pre, &(&layer.col_cov * pre), 0.5 * temperature * post.nrows() as f64, columns);
    }
}

/// Add ½ z_0ᵀz_0/σ_0² over the free entries of every sample.
pub(in crate::inference) fn add_input_energy<T: Real>(
    activities: &Activities<T>,
    clamp: &Clamp<T>,
    columns: &mut [f64],
) {
    if let Some(free) = &clamp.free_input {
        let half = 0.5 * clamp.input_precision.as_f64();
        for (j, column) in columns.iter_mut().enumerate() {
            for i in 0..free.nrows() {
                let z = (free[(i, j)] * activities.pre[0][(i, j)]).as_f64();
                *column += half * z * z;
            }
        }
    }
}

fn add_quadratic<T: Real>(x: &Mat<T>, ax: &Mat<T>, factor: f64, columns: &mut [f64]) {
    for (j, column) in columns.iter_mut().enumerate() {
        let dot: f64 =
            x.col_as_slice(j).iter().zip(ax.col_as_slice(j)).map(|(a, b)| (*a * *b).as_f64()).sum();
        *column += factor * dot;
    }
}

/// Buffers for errors and gradients of one batch.
#[derive(Clone, Debug)]
pub(in crate::inference) struct Gradients<T: Real> {
    /// ⟨Σ_l⁻¹⟩ ε_l, l = 1 … L.
    weighted_errors: Vec<Mat<T>>,
    errors: Vec<Mat<T>>,
    /// τ d V φ − Mᵀ ⟨Σ⁻¹⟩ ε with the bias row, for φ_0 … φ_{L−1}.
    upstream: Vec<Mat<T>>,
    /// ∂E/∂z_1 … ∂E/∂z_L.
    pub post: Vec<Mat<T>>,
    /// ∂E/∂z_0.
    pub input: Mat<T>,
    /// M_1 φ_0, where the input is clamped and the first prediction never changes.
    first_prediction: Option<Mat<T>>,
    /// p of every layer whose ⟨Σ⁻¹⟩ is p · I.
    scalar_precision: Vec<Option<T>>,
}

impl<T: Real> Gradients<T> {
    pub fn new(layers: &[Expectations<T>], activities: &Activities<T>, input_is_clamped: bool) -> Self {
        let like = |m: &Mat<T>| Mat::zeros(m.nrows(), m.ncols());
        Self {
            first_prediction: input_is_clamped.then(|| &layers[0].mean * &activities.pre[0]),
            scalar_precision: layers.iter().map(|layer| scalar_of(&layer.precision)).collect(),
            weighted_errors: activities.post.iter().map(like).collect(),
            errors: activities.post.iter().map(like).collect(),
            upstream: activities.pre.iter().map(like).collect(),
            post: activities.post.iter().map(like).collect(),
            input: Mat::zeros(activities.pre[0].nrows() - 1, activities.pre[0].ncols()),
        }
    }

    /// ε_l and ⟨Σ_l⁻¹⟩ ε_l of `layers[l]`.
    pub fn update_error(&mut self, layers: &[Expectations<T>], activities: &Activities<T>, l: usize) {
        let error = &mut self.errors[l];
        match &self.first_prediction {
            Some(prediction) if l == 0 => {
                faer::zip!(&mut *error, &activities.post[0], prediction)
                    .for_each(|faer::unzip!(error, z, prediction)| *error = *z - *prediction);
            }
            _ => {
                error.copy_from(&activities.post[l]);
                let (mean, pre) = (layers[l].mean.as_ref(), activities.pre[l].as_ref());
                product_into(error.as_mut(), Accum::Add, mean, pre, -T::one());
            }
        }
        let weighted = &mut self.weighted_errors[l];
        if let Some(p) = self.scalar_precision[l] {
            faer::zip!(weighted, &*error).for_each(|faer::unzip!(w, error)| *w = p * *error);
        } else {
            let precision = layers[l].precision.as_ref();
            product_into(weighted.as_mut(), Accum::Replace, precision, error.as_ref(), T::one());
        }
    }

    /// ∂E/∂φ_l into `upstream[l]`, from the error of `layers[l]` above it.
    fn update_upstream(
        &mut self,
        layers: &[Expectations<T>],
        activities: &Activities<T>,
        temperature: f64,
        l: usize,
    ) {
        let layer = &layers[l];
        let upstream = &mut self.upstream[l];
        product_into(
            upstream.as_mut(),
            Accum::Replace,
            layer.mean.transpose(),
            self.weighted_errors[l].as_ref(),
            -T::one(),
        );
        if layer.col_cov.nrows() > 0 && temperature > 0.0 {
            let factor = T::lit(temperature * layer.mean.nrows() as f64);
            product_into(
                upstream.as_mut(),
                Accum::Add,
                layer.col_cov.as_ref(),
                activities.pre[l].as_ref(),
                factor,
            );
        }
    }

    /// ∂E/∂z of the activity `post[l]`, given up-to-date errors of its two layers.
    pub fn update_post(
        &mut self,
        layers: &[Expectations<T>],
        activities: &Activities<T>,
        activation: Activation,
        temperature: f64,
        l: usize,
    ) {
        if l + 1 < layers.len() {
            self.update_upstream(layers, activities, temperature, l + 1);
            let d = self.post[l].nrows();
            activation.derivative_into(activities.post[l].as_ref(), self.post[l].as_mut());
            faer::zip!(&mut self.post[l], self.upstream[l + 1].subrows(0, d), &self.weighted_errors[l])
                .for_each(|faer::unzip!(g, up, own)| *g = *own + *g * *up);
        } else {
            self.post[l].copy_from(&self.weighted_errors[l]);
        }
    }

    /// ∂E/∂z_0: the identity below, its prior, and the first layer above.
    pub fn update_input(
        &mut self,
        layers: &[Expectations<T>],
        activities: &Activities<T>,
        clamp: &Clamp<T>,
        temperature: f64,
    ) {
        self.update_upstream(layers, activities, temperature, 0);
        let d = self.input.nrows();
        faer::zip!(&mut self.input, self.upstream[0].subrows(0, d), activities.pre[0].subrows(0, d))
            .for_each(|faer::unzip!(g, up, z)| *g = *up + clamp.input_precision * *z);
    }
}

/// p if the matrix is p · I.
fn scalar_of<T: Real>(matrix: &Mat<T>) -> Option<T> {
    let p = matrix[(0, 0)];
    let is_scalar = (0..matrix.ncols()).all(|j| {
        matrix.col_as_slice(j).iter().enumerate().all(|(i, x)| *x == if i == j { p } else { T::zero() })
    });
    is_scalar.then_some(p)
}
