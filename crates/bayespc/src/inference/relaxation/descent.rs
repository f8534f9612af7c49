//! The paper's E-step: descent of the activities on the energy (Eq. 6, Alg. 1), from the forward pass.
//!
//! Layers move together (the paper) or in a sequential sweep from the top, each seeing its neighbour's new
//! value. The sweep at each layer's step size never raises the energy of a linear network; with step
//! halving it never does for any activation.
//!
//! At the forward pass only the output errs. While layers move together and τ = 0, its error climbs down one layer
//! per step, and no product is made before it arrives.

use std::ops::Range;

use faer::{Mat, MatRef};

use super::errors::ErrorDescent;
use super::halving::halve;
use super::layers::Relaxation;
use super::settings::{Sweep, Variables};
use crate::inference::clamp::Clamp;
use crate::inference::energy::{Energy, Gradients};
use crate::network::Activities;
use crate::optim::Moments;
use crate::real::Real;

/// Why relaxation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// All steps were taken.
    MaxSteps,
    /// The energy changed by less than the tolerance.
    Converged,
    /// The energy or an activity was no longer finite; the activities are those it started from.
    Diverged,
}

/// What relaxation did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RelaxationReport {
    /// Steps taken.
    pub steps: usize,
    /// Energy at the start and after every step, summed over samples.
    pub energy: Vec<f64>,
    /// Why it stopped.
    pub stop: Stop,
}

/// One descent: the energy, where it starts, and what is clamped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a, T: Real> {
    pub relaxation: &'a Relaxation<'a, T>,
    /// The activities to start from; clamped entries are not read.
    pub start: &'a Activities<T>,
    /// M φ of every layer there.
    pub predictions: &'a [Mat<T>],
    pub clamp: &'a Clamp<T>,
}

/// Buffers of a descent.
#[derive(Clone, Debug)]
pub(super) struct Descent<T: Real> {
    pub gradients: Gradients<T>,
    /// Of z_0 … z_L.
    moments: Vec<Moments<T>>,
    /// Where errors descend in place of activities.
    errors: Option<ErrorDescent<T>>,
}

/// Forward pass into `forward`, and its clamped copy into `z`: free entries of z_0 are at the prior mean 0, free
/// entries of z_L at their prediction. The input is in `z` alone, unless some of it is free.
pub(super) fn start<T: Real>(
    energy: &Energy<'_, T>,
    input: MatRef<'_, T>,
    target: MatRef<'_, T>,
    clamp: &Clamp<T>,
    (forward, z): (&mut Activities<T>, &mut Activities<T>),
) {
    pass_forward(energy, input, clamp, forward);
    clamp_copy(target, clamp, (forward, z));
}

/// The forward pass, with 0 where the input is free.
pub(super) fn pass_forward<T: Real>(
    energy: &Energy<'_, T>,
    input: MatRef<'_, T>,
    clamp: &Clamp<T>,
    forward: &mut Activities<T>,
) {
    match &clamp.free_input {
        None => forward.forward(&energy.means, energy.activation, input),
        Some(free) => {
            let known = Mat::from_fn(input.nrows(), input.ncols(), |i, j| {
                if free[(i, j)] > T::zero() { T::zero() } else { input[(i, j)] }
            });
            forward.forward(&energy.means, energy.activation, known.as_ref());
        }
    }
}

/// The forward pass with its output clamped to `target`.
pub(super) fn clamp_copy<T: Real>(
    target: MatRef<'_, T>,
    clamp: &Clamp<T>,
    (forward, z): (&mut Activities<T>, &mut Activities<T>),
) {
    let top = forward.post.len() - 1;
    std::mem::swap(&mut forward.pre[0], &mut z.pre[0]);
    if clamp.free_input.is_some() {
        forward.pre[0].copy_from(&z.pre[0]);
    }
    for l in 0..top {
        z.post[l].copy_from(&forward.post[l]);
        z.pre[l + 1].copy_from(&forward.pre[l + 1]);
    }
    z.post[top].copy_from(target);
    copy_free_output(z, forward, clamp);
}

/// Set the free entries of z_L to those of `from`.
fn copy_free_output<T: Real>(z: &mut Activities<T>, from: &Activities<T>, clamp: &Clamp<T>) {
    let top = z.post.len() - 1;
    if let Some(free) = &clamp.free_output {
        faer::zip!(&mut z.post[top], &from.post[top], free).for_each(|faer::unzip!(z, from, free)| {
            if *free > T::zero() {
                *z = *from;
            }
        });
    }
}

impl<T: Real> Descent<T> {
    /// Room for `n` samples.
    pub fn new(relaxation: &Relaxation<'_, T>, n: usize) -> Self {
        let widths = relaxation.energy.widths();
        // What an optimiser remembers does not depend on its rate.
        let optimiser = relaxation.settings.optimiser.at_rate(1.0);
        Self {
            gradients: Gradients::new(&widths, n),
            moments: widths.iter().map(|&d| Moments::new(optimiser, d, n)).collect(),
            errors: (relaxation.settings.variables == Variables::Errors)
                .then(|| ErrorDescent::new(relaxation, n)),
        }
    }

    /// ε_1 … ε_L at the end of the last run, where errors descend.
    pub fn errors(&self) -> Option<&[Mat<T>]> {
        self.errors.as_ref().map(ErrorDescent::errors)
    }

    /// Relax `z`. Unless it is `watched` the energy is only looked at where the settings need it.
    pub fn run(&mut self, task: &Task<'_, T>, z: &mut Activities<T>, watched: bool) -> RelaxationReport {
        let (settings, moving) = (task.relaxation.settings, moving(task));
        let total = |z: &Activities<T>| task.relaxation.energy.total(z, task.clamp);
        self.gradients.begin();
        self.moments.iter_mut().for_each(Moments::clear);
        if let Some(errors) = &mut self.errors {
            errors.begin(task, z);
            moving.clone().for_each(|k| self.gradients.mark_moved(k));
        }
        let may_stop = settings.tolerance > 0.0 || settings.halve_steps;
        let mut energy = if watched || may_stop { vec![total(z)] } else { Vec::new() };
        let (mut steps, mut stop) = (0, Stop::MaxSteps);
        while steps < settings.steps && stop == Stop::MaxSteps {
            steps += 1;
            match (&mut self.errors, settings.sweep) {
                (Some(errors), _) => errors.step(task, z, &moving, steps),
                (None, Sweep::Simultaneous) => self.step_together(task, z, &moving, steps),
                (None, Sweep::Sequential) => self.step_in_turn(task, z, &moving, steps),
            }
            if let Some(&before) = energy.last() {
                let now = total(z);
                energy.push(now);
                if !now.is_finite() {
                    stop = Stop::Diverged;
                } else if may_stop && (before - now).abs() <= settings.tolerance * before.abs() {
                    stop = Stop::Converged;
                }
            }
        }
        if stop == Stop::Diverged || !moving.clone().all(|k| is_finite(activity(z, k))) {
            self.restore(task, z, moving);
            stop = Stop::Diverged;
        }
        RelaxationReport { steps, energy, stop }
    }

    /// All layers at once.
    fn step_together(&mut self, task: &Task<'_, T>, z: &mut Activities<T>, moving: &Range<usize>, t: usize) {
        let energy = &task.relaxation.energy;
        self.gradients.update_errors(energy, z, task.predictions, 0..energy.n_layers());
        // Without an error on either side an activity stays, unless V or its prior pulls at it.
        let pulled = energy.temperature > 0.0 || moving.start == 0;
        let first = if pulled { 0 } else { self.gradients.first_error() };
        self.step(task, z, moving.start.max(first)..moving.end, t);
    }

    /// From the top down.
    fn step_in_turn(&mut self, task: &Task<'_, T>, z: &mut Activities<T>, moving: &Range<usize>, t: usize) {
        let energy = &task.relaxation.energy;
        for k in moving.clone().rev() {
            let layers = touched(&(k..k + 1), energy.n_layers());
            self.gradients.update_errors(energy, z, task.predictions, layers);
            self.step(task, z, k..k + 1, t);
        }
    }

    /// Step t of the activities `moving`.
    fn step(&mut self, task: &Task<'_, T>, z: &mut Activities<T>, moving: Range<usize>, t: usize) {
        let (energy, clamp) = (&task.relaxation.energy, task.clamp);
        let layers = touched(&moving, energy.n_layers());
        let halves = task.relaxation.settings.halve_steps;
        let before = halves.then(|| (z.clone(), energy.of_samples(z, clamp, layers.clone())));
        for k in moving.clone() {
            let Some(optimiser) = task.relaxation.optimiser(k) else { continue };
            self.gradients.update_gradient(energy, z, clamp, k);
            self.moments[k].step(optimiser, t as u64, activity_mut(z, k), self.gradients.gradient(k));
            activate(energy, z, k);
            self.gradients.mark_moved(k);
        }
        if let Some((start, before)) = before {
            halve(energy, z, clamp, (&start, &before), moving, layers);
        }
    }

    fn restore(&mut self, task: &Task<'_, T>, z: &mut Activities<T>, moving: Range<usize>) {
        let top = z.post.len();
        for k in moving.filter(|&k| k < top) {
            activity_mut(z, k).copy_from(activity(task.start, k));
            z.pre[k].copy_from(&task.start.pre[k]);
        }
        copy_free_output(z, task.start, task.clamp);
        self.gradients.begin();
    }
}

/// z_k that may move: hidden ones always, z_0 and z_L only where they are free.
fn moving<T: Real>(task: &Task<'_, T>) -> Range<usize> {
    let input_moves = task.clamp.free_input.is_some() && task.relaxation.optimiser(0).is_some();
    let top = task.relaxation.energy.n_layers();
    usize::from(!input_moves)..top + usize::from(task.clamp.free_output.is_some())
}

/// Layers that predict these activities or are predicted from them.
fn touched(activities: &Range<usize>, n_layers: usize) -> Range<usize> {
    activities.start.saturating_sub(1)..activities.end.min(n_layers)
}

/// z_k; z_0 has a row of ones below it.
pub(super) fn activity<T: Real>(z: &Activities<T>, k: usize) -> &Mat<T> {
    if k == 0 { &z.pre[0] } else { &z.post[k - 1] }
}

/// z_k, to change it.
pub(super) fn activity_mut<T: Real>(z: &mut Activities<T>, k: usize) -> &mut Mat<T> {
    if k == 0 { &mut z.pre[0] } else { &mut z.post[k - 1] }
}

/// φ_k of a hidden z_k that has changed.
pub(super) fn activate<T: Real>(energy: &Energy<'_, T>, z: &mut Activities<T>, k: usize) {
    if k > 0 && k < energy.n_layers() {
        z.activate(energy.activation, k - 1);
    }
}

fn is_finite<T: Real>(z: &Mat<T>) -> bool {
    (0..z.ncols()).all(|j| z.col_as_slice(j).iter().all(|x| x.is_finite()))
}
