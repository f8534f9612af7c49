//! Energy of the activities: precision-weighted prediction errors (paper Eq. 5, App. B), and its gradient.
//!
//! ```text
//! E(Z) = ½ Σ_l [ ε_lᵀ ⟨Σ_l⁻¹⟩ ε_l + τ d_l φ_{l−1}ᵀ V_l φ_{l−1} ] ,   ε_l = z_l − M_l φ_{l−1}
//! ∂E/∂z_l = ⟨Σ_l⁻¹⟩ ε_l + f′(z_l) ⊙ [ τ d_{l+1} V_{l+1} φ_l − M_{l+1}ᵀ ⟨Σ_{l+1}⁻¹⟩ ε_{l+1} ]_{without bias}
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

use faer::{Accum, Mat, MatRef};

use super::clamp::{Clamp, HeadWeights};
use crate::base::linalg::{cast, product_into, scaled_identity};
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
        if let Some(free) = &clamp.free_input {
            let half = 0.5 * clamp.input_precision.as_f64();
            for (j, column) in columns.iter_mut().enumerate() {
                for i in 0..free.nrows() {
                    let z = (free[(i, j)] * z.pre[0][(i, j)]).as_f64();
                    *column += half * z * z;
                }
            }
        }
        columns
    }

    /// What the head says of the samples, if `l` is the layer it reads.
    fn head_of<'c>(&self, l: usize, clamp: &'c Clamp<T>) -> Option<&'c HeadWeights<T>> {
        clamp.head.as_ref().filter(|_| l + 1 == self.n_layers())
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
            for (b, (col_cov, rows)) in terms.blocks.iter().enumerate() {
                let mut samples = vec![0.0; columns.len()];
                add_quadratic(pre, &(col_cov * pre), 0.5 * self.temperature * *rows as f64, &mut samples);
                for (j, (column, own)) in columns.iter_mut().zip(samples).enumerate() {
                    *column += head.blocks[(b, j)].as_f64() * own;
                }
            }
            return;
        }
        let mut room = Mat::zeros(post.nrows(), post.ncols());
        let (weighted, p) = terms.precision.weigh(&error, &mut room);
        add_quadratic(&error, weighted, 0.5 * p.as_f64(), columns);
        if let Some(col_cov) = &terms.col_cov {
            add_quadratic(pre, &(col_cov * pre), 0.5 * self.temperature * post.nrows() as f64, columns);
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

/// Errors and gradients of one batch, in buffers that are reused. What has not changed is not computed again.
#[derive(Clone, Debug)]
pub(crate) struct Gradients<T: Real> {
    /// ε of every layer.
    errors: Vec<Mat<T>>,
    /// ⟨Σ⁻¹⟩ ε of every layer whose precision is not p · I.
    weighted: Vec<Mat<T>>,
    /// τ d V φ − Mᵀ ⟨Σ⁻¹⟩ ε without the bias, for z_0 … z_{L−1}.
    upstream: Vec<Mat<T>>,
    /// ∂E/∂z_0 … ∂E/∂z_L.
    slopes: Vec<Mat<T>>,
    /// Layers whose error is not that of the activities as they are, or has not been weighed.
    stale: Vec<bool>,
    unweighed: Vec<bool>,
    /// Activities z_0 … z_L that have left the place the known predictions start from.
    moved: Vec<bool>,
}

impl<T: Real> Gradients<T> {
    /// Room for `n` samples of a network with widths d_0 … d_L.
    pub fn new(widths: &[usize], n: usize) -> Self {
        let zeros = |widths: &[usize]| -> Vec<Mat<T>> { widths.iter().map(|&d| Mat::zeros(d, n)).collect() };
        Self {
            errors: zeros(&widths[1..]),
            weighted: zeros(&widths[1..]),
            upstream: zeros(&widths[..widths.len() - 1]),
            slopes: zeros(widths),
            stale: vec![true; widths.len() - 1],
            unweighed: vec![true; widths.len() - 1],
            moved: vec![true; widths.len()],
        }
    }

    /// No activity has moved: the known predictions M φ are those of every layer.
    pub fn begin(&mut self) {
        self.stale.fill(true);
        self.moved.fill(false);
    }

    /// z_k has moved.
    pub fn mark_moved(&mut self, k: usize) {
        self.moved[k] = true;
        let last = self.stale.len().min(k + 1);
        self.stale[k.saturating_sub(1)..last].fill(true);
    }

    /// ε of layer `l`, as it was updated last.
    pub fn error(&self, l: usize) -> &Mat<T> {
        &self.errors[l]
    }

    /// The same, to weigh its samples.
    pub fn error_mut(&mut self, l: usize) -> &mut Mat<T> {
        &mut self.errors[l]
    }

    /// ∂E/∂z_k, as it was updated last.
    pub fn gradient(&self, k: usize) -> &Mat<T> {
        &self.slopes[k]
    }

    /// ∂E/∂z_0, and ∂E/∂z_1 … ∂E/∂z_L.
    pub fn into_parts(mut self) -> (Mat<T>, Vec<Mat<T>>) {
        let post = self.slopes.split_off(1);
        (self.slopes.swap_remove(0), post)
    }

    /// The first layer that has an error at all, or L.
    pub fn first_error(&self) -> usize {
        let is_zero = |m: &Mat<T>| (0..m.ncols()).all(|j| m.col_as_slice(j).iter().all(|x| *x == T::zero()));
        self.errors.iter().position(|error| !is_zero(error)).unwrap_or(self.errors.len())
    }

    /// Bring ε of these layers up to date. `predictions` has M φ of the layers whose φ has not moved.
    pub fn update_errors(
        &mut self,
        energy: &Energy<'_, T>,
        z: &Activities<T>,
        predictions: &[Mat<T>],
        layers: std::ops::Range<usize>,
    ) {
        for l in layers {
            if !self.stale[l] {
                continue;
            }
            (self.stale[l], self.unweighed[l]) = (false, true);
            let (error, post) = (&mut self.errors[l], &z.post[l]);
            if self.moved[l] {
                product_into(error.as_mut(), Accum::Replace, energy.means[l], z.pre[l].as_ref(), T::one());
            } else {
                error.copy_from(&predictions[l]);
            }
            for j in 0..post.ncols() {
                for (e, z) in error.col_as_slice_mut(j).iter_mut().zip(post.col_as_slice(j)) {
                    *e = *z - *e;
                }
            }
        }
    }

    /// ∂E/∂z_k from errors that are up to date; zero where z_k is clamped.
    pub fn update_gradient(&mut self, energy: &Energy<'_, T>, z: &Activities<T>, clamp: &Clamp<T>, k: usize) {
        let top = energy.n_layers();
        let gradient = &mut self.slopes[k];
        if k < top {
            let terms = &energy.terms[k];
            let head = energy.head_of(k, clamp);
            let (weighted, unweighed) = (&mut self.weighted[k], &mut self.unweighed[k]);
            let (error, p) = weighed(terms, head, &self.errors[k], weighted, unweighed);
            let d = gradient.nrows();
            let upstream = &mut self.upstream[k];
            let back = energy.means[k].subcols(0, d).transpose();
            product_into(upstream.as_mut(), Accum::Replace, back, error.as_ref(), -p);
            if let Some(col_cov) = &terms.col_cov {
                let factor = T::lit(energy.temperature * energy.means[k].nrows() as f64);
                let (col_cov, pre) = (col_cov.subrows(0, d), z.pre[k].as_ref());
                product_into(upstream.as_mut(), Accum::Add, col_cov, pre, factor);
            }
            if let Some(head) = head {
                for (b, (col_cov, rows)) in terms.blocks.iter().enumerate() {
                    let factor = T::lit(energy.temperature * *rows as f64);
                    let pull = col_cov.subrows(0, d) * &z.pre[k];
                    for j in 0..pull.ncols() {
                        let weight = factor * head.blocks[(b, j)];
                        let to = upstream.col_as_slice_mut(j).iter_mut().zip(pull.col_as_slice(j));
                        to.for_each(|(to, from)| *to += weight * *from);
                    }
                }
            }
        }
        if k == 0 {
            let pre = z.pre[0].subrows(0, gradient.nrows());
            faer::zip!(&mut *gradient, &self.upstream[0], pre)
                .for_each(|faer::unzip!(g, up, z)| *g = *up + clamp.input_precision * *z);
        } else {
            let below = k - 1;
            let (weighted, unweighed) = (&mut self.weighted[below], &mut self.unweighed[below]);
            let head = energy.head_of(below, clamp);
            let (own, p) = weighed(&energy.terms[below], head, &self.errors[below], weighted, unweighed);
            if k < top {
                energy.activation.derivative_into(z.post[below].as_ref(), gradient.as_mut());
                for j in 0..gradient.ncols() {
                    let from = own.col_as_slice(j).iter().zip(self.upstream[k].col_as_slice(j));
                    for (g, (own, up)) in gradient.col_as_slice_mut(j).iter_mut().zip(from) {
                        *g = p * *own + *g * *up;
                    }
                }
            } else {
                faer::zip!(&mut *gradient, own).for_each(|faer::unzip!(g, own)| *g = p * *own);
            }
        }
        let free = match k {
            0 => &clamp.free_input,
            _ if k == top => &clamp.free_output,
            _ => return,
        };
        match free {
            Some(free) => faer::zip!(gradient, free).for_each(|faer::unzip!(g, free)| *g *= *free),
            None => gradient.fill(T::zero()),
        }
    }
}

/// ⟨Σ⁻¹⟩ ε as a matrix and a factor, multiplied out once for each error.
fn weighed<'a, T: Real>(
    terms: &LayerTerms<T>,
    head: Option<&HeadWeights<T>>,
    error: &'a Mat<T>,
    weighted: &'a mut Mat<T>,
    unweighed: &mut bool,
) -> (&'a Mat<T>, T) {
    if let Some(head) = head {
        if std::mem::replace(unweighed, false) {
            faer::zip!(&mut *weighted, error, &head.rows)
                .for_each(|faer::unzip!(to, error, weight)| *to = *weight * *error);
        }
        return (weighted, T::one());
    }
    match terms.precision {
        Precision::Full(_) if !std::mem::replace(unweighed, false) => (weighted, T::one()),
        _ => terms.precision.weigh(error, weighted),
    }
}
