//! Energy of the activities: precision-weighted prediction errors (paper Eq. 5, App. B).
//!
//! ```text
//! E(Z) = ½ Σ_l [ ε_lᵀ ⟨Σ_l⁻¹⟩ ε_l + τ d_l φ_{l−1}ᵀ V_l φ_{l−1} ] ,   ε_l = z_l − M_l φ_{l−1}
//! ```
//!
//! The second term is what the posterior adds to plain predictive coding: it penalises presynaptic activity
//! in directions the weights are unsure about. τ is its temperature (1 on paper). Where z_0 is free, its
//! prior adds ½ z_0ᵀz_0/σ_0². A layer whose input is clamped may leave V out: its term is constant.
//!
//! A head whose weights carry the noise (a variance node, logits) clamps z_L to its working target t, and weighs errors
//! sample by sample. Both are taken at the forward pass, where the slope of this energy is that of −log p(y | a):
//!
//! ```text
//! E_L = ½ Σ_i w_i ε_i² + ½ τ Σ_b w_b d_b φᵀ V_b φ            rows i and blocks b of the output
//! ```
//!
//! In code activities count from 0 and layers too: z_k is predicted by layer k−1 and predicts through layer k.
//! `gradients` has the gradient in the activities, `errors` the same energy as a function of the errors.

mod errors;
mod gradients;

use faer::{Accum, Mat, MatRef};

pub(crate) use self::errors::Errors;
pub(crate) use self::gradients::Gradients;
use super::clamp::{Clamp, HeadWeights};
use crate::base::linalg::{cast, product_into, scaled_identity, trace};
use crate::network::{Activation, Activities};
use crate::real::Real;

/// ⟨Σ_l⁻¹⟩ of one layer.
#[derive(Clone, Debug)]
pub(crate) enum Precision<T: Real> {
    /// p · I.
    Scalar(T),
    /// Any other.
    Full(Mat<T>),
}

impl<T: Real> Precision<T> {
    /// Its mean eigenvalue.
    pub fn mean(&self) -> T {
        match self {
            Self::Scalar(p) => *p,
            Self::Full(matrix) => trace(matrix.as_ref()) / T::lit(matrix.nrows() as f64),
        }
    }

    /// The matrix, `d × d`.
    pub fn to_matrix(&self, d: usize) -> Mat<T> {
        match self {
            Self::Scalar(p) => cast(scaled_identity(d, p.as_f64()).as_ref()),
            Self::Full(matrix) => matrix.clone(),
        }
    }

    /// ⟨Σ⁻¹⟩ ε as a matrix and a factor, so that p · I needs no product; otherwise the product is in `room`.
    pub fn weigh<'a>(&self, error: &'a Mat<T>, room: &'a mut Mat<T>) -> (&'a Mat<T>, T) {
        match self {
            Self::Scalar(p) => (error, *p),
            Self::Full(matrix) => {
                product_into(room.as_mut(), Accum::Replace, matrix.as_ref(), error.as_ref(), T::one());
                (room, T::one())
            }
        }
    }
}

/// What the energy takes from the posterior of one layer beside its mean.
#[derive(Clone, Debug)]
pub(crate) struct LayerTerms<T: Real> {
    /// ⟨Σ⁻¹⟩.
    pub precision: Precision<T>,
    /// V, if its term plays a part.
    pub col_cov: Option<Mat<T>>,
    /// V and d of every block of an output layer whose samples the head weighs, if they play a part.
    pub blocks: Vec<(Mat<T>, usize)>,
}

/// The energy as a function of the activities.
#[derive(Clone, Debug)]
pub(crate) struct Energy<'a, T: Real> {
    /// M_1 … M_L.
    pub means: Vec<MatRef<'a, T>>,
    /// ⟨Σ⁻¹⟩ and V of layers 1 … L.
    pub terms: &'a [LayerTerms<T>],
    /// f.
    pub activation: Activation,
    /// τ.
    pub temperature: f64,
}

/// Add ½ z_0ᵀz_0/σ_0² of the free entries of z_0 of every sample.
pub(crate) fn add_input_prior<T: Real>(z: &Activities<T>, clamp: &Clamp<T>, columns: &mut [f64]) {
    let Some(free) = &clamp.free_input else { return };
    let half = 0.5 * clamp.input_precision.as_f64();
    for (j, column) in columns.iter_mut().enumerate() {
        for i in 0..free.nrows() {
            let z = (free[(i, j)] * z.pre[0][(i, j)]).as_f64();
            *column += half * z * z;
        }
    }
}

impl<T: Real> Energy<'_, T> {
    /// L.
    pub fn n_layers(&self) -> usize {
        self.means.len()
    }

    /// d_0 … d_L.
    pub fn widths(&self) -> Vec<usize> {
        std::iter::once(self.means[0].ncols() - 1).chain(self.means.iter().map(MatRef::nrows)).collect()
    }

    /// Energy of each sample over some layers, the prior of a free z_0 included.
    pub fn of_samples(
        &self,
        z: &Activities<T>,
        clamp: &Clamp<T>,
        layers: std::ops::Range<usize>,
    ) -> Vec<f64> {
        let mut columns = vec![0.0; z.capacity()];
        for l in layers {
            self.add_layer(z, clamp, l, &mut columns);
        }
        add_input_prior(z, clamp, &mut columns);
        columns
    }

    /// What the head says of the samples, if `l` is the layer it reads.
    fn head_of<'c>(&self, l: usize, clamp: &'c Clamp<T>) -> Option<&'c HeadWeights<T>> {
        clamp.head.as_ref().filter(|_| l + 1 == self.n_layers())
    }

    /// pull ← p Mᵀ x + τ d V φ_k of the layer above z_k, without the bias; x is what comes from there.
    fn pull_into(
        &self,
        z: &Activities<T>,
        clamp: &Clamp<T>,
        k: usize,
        (above, p): (&Mat<T>, T),
        pull: &mut Mat<T>,
    ) {
        let (terms, d) = (&self.terms[k], pull.nrows());
        let back = self.means[k].subcols(0, d).transpose();
        product_into(pull.as_mut(), Accum::Replace, back, above.as_ref(), p);
        if let Some(col_cov) = &terms.col_cov {
            let factor = T::lit(self.temperature * self.means[k].nrows() as f64);
            let (col_cov, pre) = (col_cov.subrows(0, d), z.pre[k].as_ref());
            product_into(pull.as_mut(), Accum::Add, col_cov, pre, factor);
        }
        if let Some(head) = self.head_of(k, clamp) {
            for (b, (col_cov, rows)) in terms.blocks.iter().enumerate() {
                let factor = T::lit(self.temperature * *rows as f64);
                let own = col_cov.subrows(0, d) * &z.pre[k];
                for j in 0..own.ncols() {
                    let weight = factor * head.blocks[(b, j)];
                    let to = pull.col_as_slice_mut(j).iter_mut().zip(own.col_as_slice(j));
                    to.for_each(|(to, from)| *to += weight * *from);
                }
            }
        }
    }

    /// Energy of all samples.
    pub fn total(&self, z: &Activities<T>, clamp: &Clamp<T>) -> f64 {
        self.of_samples(z, clamp, 0..self.n_layers()).iter().sum()
    }

    /// Add E_l of every sample.
    pub fn add_layer(&self, z: &Activities<T>, clamp: &Clamp<T>, l: usize, columns: &mut [f64]) {
        let (pre, post, terms) = (&z.pre[l], &z.post[l], &self.terms[l]);
        let error = post - self.means[l] * pre;
        if let Some(head) = self.head_of(l, clamp) {
            add_quadratic(&error, &times(&head.rows, &error), 0.5, columns);
        } else {
            let mut room = Mat::zeros(post.nrows(), post.ncols());
            let (weighted, p) = terms.precision.weigh(&error, &mut room);
            add_quadratic(&error, weighted, 0.5 * p.as_f64(), columns);
        }
        self.add_uncertainty(l, clamp, pre, 0.5, columns);
    }

    /// Add factor · τ d φᵀVφ of the layer; φ may be without its bias.
    fn add_uncertainty(&self, l: usize, clamp: &Clamp<T>, pre: &Mat<T>, factor: f64, columns: &mut [f64]) {
        let (terms, d) = (&self.terms[l], pre.nrows());
        if let Some(col_cov) = &terms.col_cov {
            let factor = factor * self.temperature * self.means[l].nrows() as f64;
            add_quadratic(pre, &(col_cov.submatrix(0, 0, d, d) * pre), factor, columns);
        }
        let Some(head) = self.head_of(l, clamp) else { return };
        for (b, (col_cov, rows)) in terms.blocks.iter().enumerate() {
            let mut samples = vec![0.0; columns.len()];
            let factor = factor * self.temperature * *rows as f64;
            add_quadratic(pre, &(col_cov.submatrix(0, 0, d, d) * pre), factor, &mut samples);
            for (j, (column, own)) in columns.iter_mut().zip(samples).enumerate() {
                *column += head.blocks[(b, j)].as_f64() * own;
            }
        }
    }
}

/// Entry by entry.
fn times<T: Real>(a: &Mat<T>, b: &Mat<T>) -> Mat<T> {
    Mat::from_fn(b.nrows(), b.ncols(), |i, j| a[(i, j)] * b[(i, j)])
}

fn add_quadratic<T: Real>(x: &Mat<T>, ax: &Mat<T>, factor: f64, columns: &mut [f64]) {
    for (j, column) in columns.iter_mut().enumerate() {
        let dot: f64 =
            x.col_as_slice(j).iter().zip(ax.col_as_slice(j)).map(|(a, b)| (*a * *b).as_f64()).sum();
        *column += factor * dot;
    }
}
