//! The energy as a function of the errors: the network runs from the input up, and every layer adds its error.
//!
//! ```text
//! z_l = M_l φ_{l−1} + ε_l  (l < L) ,   ε_L = y − M_L φ_{L−1}
//! E(ε) = ½ Σ_l [ ε_lᵀ ⟨Σ_l⁻¹⟩ ε_l + τ d_l φ_{l−1}ᵀ V_l φ_{l−1} ]
//! λ_L = −⟨Σ_L⁻¹⟩ ε_L ,   λ_l = f′(z_l) ⊙ [ M_{l+1}ᵀ λ_{l+1} + τ d_{l+1} V_{l+1} φ_l ]_{without bias}
//! ∂E/∂ε_l = ⟨Σ_l⁻¹⟩ ε_l + λ_l
//! ```
//!
//! Errors and activities determine each other, so that the energy has the same points of rest in both (Goemaere et
//! al., *ePC: Fast and Deep Predictive Coding for Digital Hardware*, 2026). But λ is a backward sweep: what the output
//! says reaches every layer at once, and not one layer per step.
//!
//! Along a direction ε̇ the network linearised at z answers with ż, and E has the curvature
//!
//! ```text
//! ż_l = M_l φ̇_{l−1} + ε̇_l ,   φ̇_l = f′(z_l) ⊙ ż_l ,   ε̇_L = −M_L φ̇_{L−1}
//! c = Σ_l [ ε̇_lᵀ ⟨Σ_l⁻¹⟩ ε̇_l + τ d_l φ̇_{l−1}ᵀ V_l φ̇_{l−1} ]          without f″
//! ```
//!
//! A free z_0 is the error around its prior mean 0. A free entry of z_L has an error of its own.

use faer::{Accum, Mat};

use super::{Energy, LayerTerms, Precision, add_quadratic};
use crate::base::linalg::product_into;
use crate::inference::clamp::{Clamp, HeadWeights};
use crate::network::Activities;
use crate::real::Real;

/// Errors as variables, and what the energy says of them, in buffers that are reused.
#[derive(Clone, Debug)]
pub(crate) struct Errors<T: Real> {
    /// ε_1 … ε_L.
    values: Vec<Mat<T>>,
    /// Room for ⟨Σ⁻¹⟩ ε of every layer.
    weighted: Vec<Mat<T>>,
    /// λ_0 … λ_L.
    pulls: Vec<Mat<T>>,
    /// f′(z_1) … f′(z_{L−1}).
    derivatives: Vec<Mat<T>>,
    /// ∂E/∂z_0, and ∂E/∂ε_1 … ∂E/∂ε_L.
    slopes: Vec<Mat<T>>,
    /// φ̇_0 … φ̇_{L−1} and M_L φ̇_{L−1}; the last also has room for the prediction.
    tangents: Vec<Mat<T>>,
}

impl<T: Real> Errors<T> {
    /// Room for `n` samples of a network with widths d_0 … d_L.
    pub fn new(widths: &[usize], n: usize) -> Self {
        let zeros = |widths: &[usize]| -> Vec<Mat<T>> { widths.iter().map(|&d| Mat::zeros(d, n)).collect() };
        let top = widths.len() - 1;
        Self {
            values: zeros(&widths[1..]),
            weighted: zeros(&widths[1..]),
            pulls: zeros(widths),
            derivatives: zeros(&widths[1..top]),
            slopes: zeros(widths),
            tangents: zeros(widths),
        }
    }

    /// ε_1 … ε_L.
    pub fn values(&self) -> &[Mat<T>] {
        &self.values
    }

    /// The same, to change them: ε_1 … ε_{L−1}, and those entries of ε_L whose target is free.
    pub fn values_mut(&mut self) -> &mut [Mat<T>] {
        &mut self.values
    }

    /// ∂E/∂ε_k, or ∂E/∂z_0, as it was updated last.
    pub fn gradient(&self, k: usize) -> &Mat<T> {
        &self.slopes[k]
    }

    /// ε_k, to change it, and ∂E/∂ε_k.
    pub fn value_and_gradient(&mut self, k: usize) -> (&mut Mat<T>, &Mat<T>) {
        (&mut self.values[k - 1], &self.slopes[k])
    }

    /// ∂E/∂z_0, and ∂E/∂ε_1 … ∂E/∂ε_L.
    pub fn into_gradients(mut self) -> (Mat<T>, Vec<Mat<T>>) {
        let rest = self.slopes.split_off(1);
        (self.slopes.swap_remove(0), rest)
    }

    /// Take the errors of these activities; `predictions` has M φ of every layer.
    pub fn begin(&mut self, z: &Activities<T>, predictions: &[Mat<T>]) {
        for ((error, post), prediction) in self.values.iter_mut().zip(&z.post).zip(predictions) {
            faer::zip!(error, post, prediction).for_each(|faer::unzip!(e, z, p)| *e = *z - *p);
        }
    }

    /// Let the network run: z_1 … z_L of the errors as they are, and ε_L of the clamped targets.
    pub fn run(&mut self, energy: &Energy<'_, T>, z: &mut Activities<T>, clamp: &Clamp<T>) {
        let last = energy.n_layers() - 1;
        for l in 0..last {
            z.post[l].copy_from(&self.values[l]);
            product_into(z.post[l].as_mut(), Accum::Add, energy.means[l], z.pre[l].as_ref(), T::one());
            z.activate(energy.activation, l);
        }
        let prediction = &mut self.tangents[last + 1];
        let (mean, pre) = (energy.means[last], z.pre[last].as_ref());
        product_into(prediction.as_mut(), Accum::Replace, mean, pre, T::one());
        let (error, post) = (&mut self.values[last], &mut z.post[last]);
        match &clamp.free_output {
            None => {
                faer::zip!(error, post, prediction).for_each(|faer::unzip!(e, z, p)| *e = *z - *p);
            }
            Some(free) => {
                faer::zip!(error, post, prediction, free).for_each(|faer::unzip!(e, z, p, free)| {
                    if *free > T::zero() {
                        *z = *p + *e;
                    } else {
                        *e = *z - *p;
                    }
                });
            }
        }
    }

    /// E of every sample, from the errors as they are.
    pub fn energies(&mut self, energy: &Energy<'_, T>, z: &Activities<T>, clamp: &Clamp<T>) -> Vec<f64> {
        let mut columns = energy.of_samples(z, clamp, 0..0);
        for (l, error) in self.values.iter().enumerate() {
            let room = &mut self.weighted[l];
            weigh_into(&energy.terms[l], energy.head_of(l, clamp), error, room);
            add_quadratic(error, room, 0.5, &mut columns);
            energy.add_uncertainty(l, clamp, &z.pre[l], 0.5, &mut columns);
        }
        columns
    }

    /// ∂E/∂ε of every layer, and ∂E/∂z_0 if `first` is 0, in one backward sweep; zero where an entry is clamped.
    pub fn update_gradients(
        &mut self,
        energy: &Energy<'_, T>,
        z: &Activities<T>,
        clamp: &Clamp<T>,
        first: usize,
    ) {
        let top = energy.n_layers();
        self.turn_at_the_top(energy, clamp);
        for k in (first..top).rev() {
            let (below, above) = self.pulls.split_at_mut(k + 1);
            energy.pull_into(z, clamp, k, (&above[0], T::one()), &mut below[k]);
            let (pull, slope) = (&mut below[k], &mut self.slopes[k]);
            if k == 0 {
                let pre = z.pre[0].subrows(0, slope.nrows());
                faer::zip!(&mut *slope, &*pull, pre)
                    .for_each(|faer::unzip!(g, up, z)| *g = *up + clamp.input_precision * *z);
                keep_free(slope, clamp.free_input.as_ref());
                continue;
            }
            let derivative = &mut self.derivatives[k - 1];
            energy.activation.derivative_into(z.post[k - 1].as_ref(), derivative.as_mut());
            faer::zip!(&mut *pull, &*derivative).for_each(|faer::unzip!(pull, slope)| *pull *= *slope);
            let room = &mut self.weighted[k - 1];
            let (own, p) = energy.terms[k - 1].precision.weigh(&self.values[k - 1], room);
            for j in 0..slope.ncols() {
                let from = own.col_as_slice(j).iter().zip(pull.col_as_slice(j));
                for (g, (own, pull)) in slope.col_as_slice_mut(j).iter_mut().zip(from) {
                    *g = p * *own + *pull;
                }
            }
        }
    }

    /// ∂E/∂ε_L where the output is free, and λ_L, which is zero there.
    fn turn_at_the_top(&mut self, energy: &Energy<'_, T>, clamp: &Clamp<T>) {
        let last = energy.n_layers() - 1;
        let (slope, back) = (&mut self.slopes[last + 1], &mut self.pulls[last + 1]);
        let head = energy.head_of(last, clamp);
        weigh_into(&energy.terms[last], head, &self.values[last], slope);
        faer::zip!(&mut *back, &*slope).for_each(|faer::unzip!(back, slope)| *back = -*slope);
        if let Some(free) = &clamp.free_output {
            faer::zip!(back, free).for_each(|faer::unzip!(back, free)| *back *= T::one() - *free);
        }
        keep_free(slope, clamp.free_output.as_ref());
    }

    /// c of every sample along ε̇, given for z_0 … z_L and zero where an entry is clamped. The gradients must be those of
    /// the activities as they are.
    pub fn curvature(
        &mut self,
        energy: &Energy<'_, T>,
        clamp: &Clamp<T>,
        direction: &[Mat<T>],
        first: usize,
    ) -> Vec<f64> {
        let last = energy.n_layers() - 1;
        let mut columns = vec![0.0; direction[0].ncols()];
        self.tangents[0].fill(T::zero());
        if first == 0 {
            self.tangents[0].copy_from(&direction[0]);
            add_quadratic(&direction[0], &direction[0], clamp.input_precision.as_f64(), &mut columns);
        }
        for l in 0..=last {
            let (below, above) = self.tangents.split_at_mut(l + 1);
            let (pre, post) = (&below[l], &mut above[0]);
            let (d, terms) = (pre.nrows(), &energy.terms[l]);
            let weights = energy.means[l].subcols(0, d);
            product_into(post.as_mut(), Accum::Replace, weights, pre.as_ref(), T::one());
            energy.add_uncertainty(l, clamp, pre, 1.0, &mut columns);
            if l < last {
                let (own, p) = terms.precision.weigh(&direction[l + 1], &mut self.weighted[l]);
                add_quadratic(&direction[l + 1], own, p.as_f64(), &mut columns);
                faer::zip!(post, &direction[l + 1], &self.derivatives[l])
                    .for_each(|faer::unzip!(t, own, slope)| *t = (*t + *own) * *slope);
                continue;
            }
            if let Some(free) = &clamp.free_output {
                // The sign of the clamped entries must be that beside which free ones have theirs.
                faer::zip!(&mut *post, &direction[l + 1], free)
                    .for_each(|faer::unzip!(t, own, free)| *t = if *free > T::zero() { -*own } else { *t });
            }
            let room = &mut self.weighted[l];
            weigh_into(terms, energy.head_of(l, clamp), post, room);
            add_quadratic(post, room, 1.0, &mut columns);
        }
        columns
    }
}

/// Zero where an entry is clamped.
fn keep_free<T: Real>(slope: &mut Mat<T>, free: Option<&Mat<T>>) {
    match free {
        Some(free) => faer::zip!(slope, free).for_each(|faer::unzip!(g, free)| *g *= *free),
        None => slope.fill(T::zero()),
    }
}

/// ⟨Σ⁻¹⟩ ε, or the head's weights times ε.
fn weigh_into<T: Real>(
    terms: &LayerTerms<T>,
    head: Option<&HeadWeights<T>>,
    error: &Mat<T>,
    weighted: &mut Mat<T>,
) {
    match (head, &terms.precision) {
        (Some(head), _) => faer::zip!(weighted, &head.rows, error)
            .for_each(|faer::unzip!(to, weight, error)| *to = *weight * *error),
        (None, Precision::Scalar(p)) => {
            faer::zip!(weighted, error).for_each(|faer::unzip!(to, error)| *to = *p * *error);
        }
        (None, Precision::Full(precision)) => {
            product_into(weighted.as_mut(), Accum::Replace, precision.as_ref(), error.as_ref(), T::one());
        }
    }
}
