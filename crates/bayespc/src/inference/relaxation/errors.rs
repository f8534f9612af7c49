//! Descent of the errors on the energy: the network runs freely between steps.
//!
//! With a rate every error takes the steps of the optimiser. Without one, errors follow conjugate gradients, each sample
//! by itself, preconditioned by the mean precision p_l of each layer:
//!
//! ```text
//! s_l = ∂E/∂ε_l / p_l ,   D ← −s + max(0, β) D ,   β = Σ_l s_lᵀ (∂E/∂ε_l − its last) / Σ_l s_lᵀ ∂E/∂ε_l of the last
//! ε ← ε + a D ,           a = −Σ_l D_lᵀ ∂E/∂ε_l / (ρ c)
//! ```
//!
//! c is the curvature along D of the network linearised at the sample, so that no step size has to be known. In a linear
//! network whose hidden precisions are p_l I all curvature beyond p_l is that of the d_L outputs: d_L + 1 steps reach
//! rest, however deep it is. Where the network bends there is more: ρ ≥ 1 is by how much the step before has shown, and a
//! step that raises the energy of its sample all the same is halved until it does not.

use std::ops::Range;

use faer::Mat;

use super::descent::Task;
use super::layers::Relaxation;
use crate::inference::energy::Errors;
use crate::network::Activities;
use crate::optim::Moments;
use crate::real::Real;

/// A step that is 2⁻⁶⁰ of its length and still does not descend: the sample is at rest to rounding.
const HALVINGS: usize = 60;

/// The same for conjugate gradients, whose steps know their length.
const CONJUGATE_HALVINGS: usize = 6;

/// Largest ρ of a sample that moves; that of one at rest is infinite.
const MOST_BEND: f64 = 1e6;

/// Errors and buffers of their descent.
#[derive(Clone, Debug)]
pub(super) struct ErrorDescent<T: Real> {
    errors: Errors<T>,
    moments: Vec<Moments<T>>,
    /// D, and the gradients of the step before.
    directions: Vec<Mat<T>>,
    before: Vec<Mat<T>>,
    /// Σ_l s_lᵀ ∂E/∂ε_l of the step before, for every sample; 0 if the next begins anew.
    norms: Vec<f64>,
    /// Σ_l D_lᵀ ∂E/∂ε_l of the step before, and ρ.
    falls: Vec<f64>,
    bends: Vec<f64>,
}

impl<T: Real> ErrorDescent<T> {
    /// Room for `n` samples.
    pub fn new(relaxation: &Relaxation<'_, T>, n: usize) -> Self {
        let widths = relaxation.energy.widths();
        let optimiser = relaxation.settings.optimiser.at_rate(1.0);
        let conjugate = relaxation.settings.optimiser.fixed_rate().is_none();
        let room = || -> Vec<Mat<T>> {
            let widths = if conjugate { widths.as_slice() } else { &[] };
            widths.iter().map(|&d| Mat::zeros(d, n)).collect()
        };
        Self {
            errors: Errors::new(&widths, n),
            moments: widths.iter().map(|&d| Moments::new(optimiser, d, n)).collect(),
            directions: room(),
            before: room(),
            norms: vec![0.0; n],
            falls: vec![0.0; n],
            bends: vec![1.0; n],
        }
    }

    /// ε_1 … ε_L.
    pub fn errors(&self) -> &[Mat<T>] {
        self.errors.values()
    }

    /// Start from the errors of `z`, whose predictions the task knows.
    pub fn begin(&mut self, task: &Task<'_, T>, z: &Activities<T>) {
        self.errors.begin(z, task.predictions);
        self.moments.iter_mut().for_each(Moments::clear);
        self.norms.fill(0.0);
        self.bends.fill(1.0);
    }

    /// Step t of the errors `moving`, and the activities that they give.
    pub fn step(&mut self, task: &Task<'_, T>, z: &mut Activities<T>, moving: &Range<usize>, t: usize) {
        let (energy, clamp) = (&task.relaxation.energy, task.clamp);
        let settings = task.relaxation.settings;
        let conjugate = settings.optimiser.fixed_rate().is_none();
        let before = (conjugate || settings.halve_steps).then(|| {
            let energies = self.errors.energies(energy, z, clamp);
            (z.pre[0].clone(), self.errors.values().to_vec(), energies)
        });
        self.errors.update_gradients(energy, z, clamp, moving.start);
        if conjugate {
            self.step_conjugate(task, z, moving);
        } else {
            for k in moving.clone() {
                let Some(optimiser) = task.relaxation.optimiser(k) else { continue };
                let (variable, gradient) = variable_and_gradient(&mut self.errors, z, k);
                self.moments[k].step(optimiser, t as u64, variable, gradient);
            }
        }
        self.errors.run(energy, z, clamp);
        if let Some((input, errors, energies)) = before {
            self.halve(task, z, (&input, &errors, &energies));
        }
    }

    fn step_conjugate(&mut self, task: &Task<'_, T>, z: &mut Activities<T>, moving: &Range<usize>) {
        let (energy, clamp) = (&task.relaxation.energy, task.clamp);
        let scale = |k: usize| {
            let mean = if k == 0 { clamp.input_precision } else { energy.terms[k - 1].precision.mean() };
            T::one() / mean
        };
        let (mut norms, mut change) = (vec![0.0; self.norms.len()], vec![0.0; self.norms.len()]);
        for k in moving.clone() {
            let (now, before, scale) = (self.errors.gradient(k), &self.before[k], scale(k).as_f64());
            for (j, (norm, change)) in norms.iter_mut().zip(&mut change).enumerate() {
                let (now, before) = (now.col_as_slice(j), before.col_as_slice(j));
                *norm += scale * dot(now, now);
                *change += scale * (dot(now, now) - dot(now, before));
            }
        }
        self.learn_bends(moving);
        let mut falls = vec![0.0; norms.len()];
        for k in moving.clone() {
            let (gradient, scale) = (self.errors.gradient(k), scale(k));
            for (j, fall) in falls.iter_mut().enumerate() {
                let beta = if self.norms[j] > 0.0 { (change[j] / self.norms[j]).max(0.0) } else { 0.0 };
                let (direction, beta) = (self.directions[k].col_as_slice_mut(j), T::lit(beta));
                for (d, g) in direction.iter_mut().zip(gradient.col_as_slice(j)) {
                    *d = beta * *d - scale * *g;
                }
                *fall += dot(direction, gradient.col_as_slice(j));
            }
        }
        // Where the network bends, D may have ceased to lead down: then it begins anew.
        for (j, fall) in falls.iter_mut().enumerate().filter(|(_, fall)| !(**fall < 0.0)) {
            for k in moving.clone() {
                let (gradient, scale) = (self.errors.gradient(k).col_as_slice(j), scale(k));
                let direction = self.directions[k].col_as_slice_mut(j);
                direction.iter_mut().zip(gradient).for_each(|(d, g)| *d = -scale * *g);
            }
            *fall = -norms[j];
        }
        let curvature = self.errors.curvature(energy, clamp, &self.directions, moving.start);
        for k in moving.clone() {
            let (variable, gradient) = variable_and_gradient(&mut self.errors, z, k);
            for (j, (fall, curvature)) in falls.iter().zip(&curvature).enumerate() {
                let curvature = curvature * self.bends[j];
                let step = T::lit(if curvature > 0.0 { -fall / curvature } else { 0.0 });
                let own = variable.col_as_slice_mut(j).iter_mut().zip(self.directions[k].col_as_slice(j));
                own.for_each(|(e, d)| *e += step * *d);
            }
            self.before[k].copy_from(gradient);
        }
        (self.norms, self.falls) = (norms, falls);
    }

    /// ρ of every sample, from the slope that is left along its last step: none, had its curvature been ρ c.
    fn learn_bends(&mut self, moving: &Range<usize>) {
        for j in 0..self.norms.len() {
            if !(self.norms[j] > 0.0 && self.bends[j].is_finite()) {
                continue;
            }
            let along =
                |k: usize| dot(self.directions[k].col_as_slice(j), self.errors.gradient(k).col_as_slice(j));
            let ratio = (moving.clone().map(along).sum::<f64>() - self.falls[j]) / -self.falls[j];
            if ratio.is_finite() {
                self.bends[j] = (self.bends[j] * ratio.clamp(0.25, 4.0)).clamp(1.0, MOST_BEND);
            }
        }
    }

    /// Halve the step of every sample whose energy has risen, until it has not. `start` has z_0, the errors and the
    /// energy of every sample before the step.
    fn halve(
        &mut self,
        task: &Task<'_, T>,
        z: &mut Activities<T>,
        (input, errors, before): (&Mat<T>, &[Mat<T>], &[f64]),
    ) {
        let (energy, clamp) = (&task.relaxation.energy, task.clamp);
        let (end, end_input) = (self.errors.values().to_vec(), z.pre[0].clone());
        let careful = task.relaxation.settings.halve_steps;
        let halvings = if careful { HALVINGS } else { CONJUGATE_HALVINGS };
        // Nobody has to be told of a rise that is rounding.
        let rounding = if careful { 1.0 } else { 1.0 + 16.0 * T::epsilon().as_f64() };
        let mut share = T::one();
        for halving in 0..=halvings {
            let after = self.errors.energies(energy, z, clamp);
            // A sample that does not descend yet has been halved in every round: all of them have the same share.
            let rises = |j: &usize| !(after[*j] <= rounding * before[*j]);
            let rising: Vec<usize> = (0..before.len()).filter(rises).collect();
            if rising.is_empty() {
                return;
            }
            share = if halving < halvings { T::lit(0.5) * share } else { T::zero() };
            let shorten = |own: &mut Mat<T>, start: &Mat<T>, end: &Mat<T>| {
                for &j in &rising {
                    let ends = start.col_as_slice(j).iter().zip(end.col_as_slice(j));
                    for (own, (&start, &end)) in own.col_as_slice_mut(j).iter_mut().zip(ends) {
                        *own = if share > T::zero() { start + share * (end - start) } else { start };
                    }
                }
            };
            shorten(&mut z.pre[0], input, &end_input);
            for ((own, start), end) in self.errors.values_mut().iter_mut().zip(errors).zip(&end) {
                shorten(own, start, end);
            }
            for &j in &rising {
                self.norms[j] = 0.0;
                self.bends[j] =
                    if share > T::zero() { (2.0 * self.bends[j]).min(MOST_BEND) } else { f64::INFINITY };
            }
            self.errors.run(energy, z, clamp);
        }
    }
}

/// z_0 or ε_k, to change it, and ∂E of it.
fn variable_and_gradient<'a, T: Real>(
    errors: &'a mut Errors<T>,
    z: &'a mut Activities<T>,
    k: usize,
) -> (&'a mut Mat<T>, &'a Mat<T>) {
    if k == 0 {
        return (&mut z.pre[0], errors.gradient(0));
    }
    errors.value_and_gradient(k)
}

fn dot<T: Real>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (*a * *b).as_f64()).sum()
}
