//! Rule "relaxation": the paper's E-step, gradient descent of the activities on the energy (Eq. 6, Alg. 1).
//!
//! Layers move together (the paper) or in a sequential sweep from the top, each seeing its neighbour's new
//! value. The sweep at each layer's spectral bound never raises the energy of a linear network; with step
//! halving it never does for any activation.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::optimiser::{ActivityOptimiser, ActivityState};
use crate::base::linalg::{cast, inner, largest_eigenvalue, scaled_identity, trace};
use crate::error::{Error, Result};
use crate::inference::clamp::Clamp;
use crate::inference::energy::{Gradients, add_input_energy, add_layer_energy, energies};
use crate::learning::Schedule;
use crate::network::{Activation, Activities, Expectations, Network};
use crate::real::Real;

/// What ⟨Σ_l⁻¹⟩ of a hidden layer is taken to be during relaxation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenPrecision {
    /// The posterior's own: the paper's, and unstable.
    Learned,
    /// r · tr⟨Σ_L⁻¹⟩/d_L · I, tied to the output's.
    Tied(f64),
    /// p · I.
    Fixed(f64),
}

/// Which presynaptic activities the M-step sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presynaptic {
    /// Those at rest: the paper's.
    Relaxed,
    /// Those of the forward pass, which prediction will see.
    Forward,
}

/// Order in which layers move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    /// All at once: the paper's.
    Simultaneous,
    /// From the top down, each seeing the new value above it.
    Sequential,
}

/// Settings of the relaxation rule; the default is the paper's (preset `paper`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RelaxationSettings {
    /// T: steps at most.
    pub steps: usize,
    /// Stop when the relative change of the energy falls below this; 0 runs all steps.
    pub tolerance: f64,
    /// Step rule.
    pub optimiser: ActivityOptimiser,
    /// Order of the layers.
    pub sweep: Sweep,
    /// Halve a sample's step until its energy does not rise.
    pub halve_steps: bool,
    /// Precision of hidden layers during relaxation.
    pub hidden_precision: HiddenPrecision,
    /// p of a fixed output precision p · I, or the posterior's own if not given.
    pub output_precision: Option<f64>,
    /// Presynaptic activities of the M-step.
    pub presynaptic: Presynaptic,
    /// τ: temperature of the weight-uncertainty term, in [0, 1].
    pub weight_uncertainty: f64,
    /// Scale batch statistics by N/|B|, so that the posterior represents N samples.
    pub scale_batches: bool,
    /// κ_t of mini-batches; a full batch always has κ = 1, unless inputs are whitened.
    pub schedule: Schedule,
    /// k: batches between two refreshes of the hidden layers' V_l and Ψ_l. At 1 every step is exact.
    pub refresh_every: u64,
    /// Learn the first layer in coordinates where its column precision, known from all the data beforehand, is
    /// the identity: for wide inputs, and for data that are all there. A stream does not use it.
    pub whiten_input: bool,
}

impl Default for RelaxationSettings {
    fn default() -> Self {
        Self::paper()
    }
}

impl RelaxationSettings {
    /// The paper's settings (App. F).
    pub fn paper() -> Self {
        Self {
            steps: 10,
            tolerance: 0.0,
            optimiser: ActivityOptimiser::Adam { rate: 0.01 },
            sweep: Sweep::Simultaneous,
            halve_steps: false,
            hidden_precision: HiddenPrecision::Learned,
            output_precision: None,
            presynaptic: Presynaptic::Relaxed,
            weight_uncertainty: 1.0,
            scale_batches: false,
            schedule: Schedule::Power { exponent: 0.25, delay: 0.0 },
            refresh_every: 1,
            whiten_input: false,
        }
    }

    /// The settings that make relaxation learn: tied precision, forward presynaptic statistics, no
    /// weight-uncertainty term, gradient descent at the bound.
    pub fn tied() -> Self {
        Self {
            optimiser: ActivityOptimiser::Gradient { rate: None },
            hidden_precision: HiddenPrecision::Tied(1.0),
            presynaptic: Presynaptic::Forward,
            weight_uncertainty: 0.0,
            scale_batches: true,
            schedule: Schedule::Cosine { first: 0.6, last: 0.01 },
            ..Self::paper()
        }
    }

    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        self.optimiser.validate()?;
        if !(self.tolerance >= 0.0 && self.tolerance < 1.0) {
            return Err(Error::Setting {
                name: "relaxation.tolerance",
                value: self.tolerance,
                must_be: "in [0, 1)",
            });
        }
        if !(0.0..=1.0).contains(&self.weight_uncertainty) {
            return Err(Error::Setting {
                name: "relaxation.weight_uncertainty",
                value: self.weight_uncertainty,
                must_be: "in [0, 1]",
            });
        }
        if let Some(p) = self.output_precision
            && !(p.is_finite() && p > 0.0)
        {
            return Err(Error::Setting {
                name: "relaxation.output_precision",
                value: p,
                must_be: "positive and finite",
            });
        }
        match self.hidden_precision {
            HiddenPrecision::Tied(r) | HiddenPrecision::Fixed(r) if !(r.is_finite() && r > 0.0) => {
                return Err(Error::Setting {
                    name: "relaxation.hidden_precision",
                    value: r,
                    must_be: "positive and finite",
                });
            }
            _ => {}
        }
        if self.refresh_every == 0 {
            return Err(Error::Setting {
                name: "relaxation.refresh_every",
                value: 0.0,
                must_be: "at least 1",
            });
        }
        // Without the scale η₁ remembers single batches: neither an old one nor that of all data stands for it.
        let unscaled = "relaxation.scale_batches = false";
        if self.refresh_every > 1 && !self.scale_batches {
            return Err(Error::Conflict { first: "relaxation.refresh_every > 1", second: unscaled });
        }
        if self.whiten_input && !self.scale_batches {
            return Err(Error::Conflict { first: "relaxation.whiten_input", second: unscaled });
        }
        self.schedule.validate()
    }
}

/// Why relaxation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All steps were taken.
    MaxSteps,
    /// The energy changed by less than the tolerance.
    Converged,
    /// The energy or an activity was no longer finite; the activities are those of the forward pass.
    Diverged,
}

/// What relaxation did.
#[derive(Clone, Debug, PartialEq)]
pub struct RelaxationReport {
    /// Steps taken.
    pub steps: usize,
    /// Energy after the forward pass and after every step, summed over samples.
    pub energy: Vec<f64>,
    /// Why it stopped.
    pub stop: Stop,
}

/// Relaxes activities of a network whose expectations it has collected once, per M-step.
#[derive(Clone, Debug)]
pub struct Relaxer<T: Real> {
    layers: Vec<Expectations<T>>,
    activation: Activation,
    /// α of z_0 … z_L.
    rates: Vec<f64>,
    settings: RelaxationSettings,
}

impl<T: Real> Relaxer<T> {
    /// Collect what relaxation needs. With the input clamped everywhere its layer's V is never used.
    pub fn new(network: &Network<T>, settings: &RelaxationSettings, input_is_free: bool) -> Result<Self> {
        settings.validate()?;
        if network.output().blocks().len() != 1 {
            return Err(Error::Conflict { first: "rule = relaxation", second: "a head other than gaussian" });
        }
        let needs_col_cov = settings.weight_uncertainty > 0.0;
        let mut layers = Vec::with_capacity(network.hidden().len() + 1);
        for (l, layer) in network.layers().enumerate() {
            layers.push(layer.expectations(needs_col_cov && (l > 0 || input_is_free))?);
        }
        let top = layers.len() - 1;
        let d_output = layers[top].precision.nrows();
        if let Some(p) = settings.output_precision {
            layers[top].precision = cast(scaled_identity(d_output, p).as_ref());
        }
        let fixed = match settings.hidden_precision {
            HiddenPrecision::Learned => None,
            HiddenPrecision::Tied(r) => {
                Some(r * trace(layers[top].precision.as_ref()).as_f64() / d_output as f64)
            }
            HiddenPrecision::Fixed(p) => Some(p),
        };
        if let Some(p) = fixed {
            for layer in &mut layers[..top] {
                layer.precision = cast(scaled_identity(layer.precision.nrows(), p).as_ref());
            }
        }
        let (activation, input_var) = (network.settings().activation, network.settings().input_var);
        Self::from_expectations(layers, activation, settings, input_var)
    }

    /// Relax with these expectations, whoever has learned them; precisions are taken as they are.
    pub fn from_expectations(
        layers: Vec<Expectations<T>>,
        activation: Activation,
        settings: &RelaxationSettings,
        input_var: f64,
    ) -> Result<Self> {
        settings.validate()?;
        if layers.is_empty() {
            return Err(Error::Empty { what: "the list of layers to relax" });
        }
        let rates = rates(&layers, settings, input_var);
        Ok(Self { layers, activation, rates, settings: settings.clone() })
    }

    /// M, ⟨Σ⁻¹⟩ and V of every layer, as relaxation uses them.
    pub fn layers(&self) -> &[Expectations<T>] {
        &self.layers
    }

    /// ‖z_L − M_L φ_{L−1}‖² summed over the samples; NaN-free because free entries start at their prediction.
    pub fn squared_output_error(&self, activities: &Activities<T>) -> f64 {
        let top = self.layers.len() - 1;
        let error = &activities.post[top] - &self.layers[top].mean * &activities.pre[top];
        inner(error.as_ref(), error.as_ref()).as_f64()
    }

    /// Energy of every sample.
    pub fn energies(&self, activities: &Activities<T>, clamp: &Clamp<T>) -> Vec<f64> {
        energies(&self.layers, activities, clamp, self.settings.weight_uncertainty)
    }

    /// Forward pass, then clamp: free entries of z_0 start at the prior mean 0, free entries of z_L at their
    /// prediction.
    pub fn start(
        &self,
        input: faer::MatRef<'_, T>,
        target: faer::MatRef<'_, T>,
        clamp: &Clamp<T>,
    ) -> Activities<T> {
        let widths: Vec<usize> =
            std::iter::once(input.nrows()).chain(self.layers.iter().map(|l| l.mean.nrows())).collect();
        let known = Mat::from_fn(input.nrows(), input.ncols(), |i, j| match &clamp.free_input {
            Some(free) if free[(i, j)] > T::zero() => T::zero(),
            _ => input[(i, j)],
        });
        let mut activities = Activities::new(&widths, input.ncols());
        let means: Vec<_> = self.layers.iter().map(|l| l.mean.as_ref()).collect();
        activities.forward(&means, self.activation, known.as_ref());
        let top = self.layers.len() - 1;
        for j in 0..target.ncols() {
            for i in 0..target.nrows() {
                if clamp.free_output.as_ref().is_none_or(|free| free[(i, j)] == T::zero()) {
                    activities.post[top][(i, j)] = target[(i, j)];
                }
            }
        }
        activities
    }

    /// ∂E/∂z_0 and ∂E/∂z_1 … ∂E/∂z_L, clamped entries zero.
    pub fn gradients(&self, activities: &Activities<T>, clamp: &Clamp<T>) -> (Mat<T>, Vec<Mat<T>>) {
        let mut gradients = Gradients::new(&self.layers, activities, clamp.free_input.is_none());
        self.all_gradients(&mut gradients, activities, clamp);
        (gradients.input, gradients.post)
    }

    /// Relax in place, from where the activities are.
    pub fn relax(&self, activities: &mut Activities<T>, clamp: &Clamp<T>) -> RelaxationReport {
        self.run(activities, clamp, true)
    }

    /// Relax in place without a word about the energy, as training does.
    pub(crate) fn relax_unwatched(&self, activities: &mut Activities<T>, clamp: &Clamp<T>) {
        self.run(activities, clamp, false);
    }

    fn run(&self, activities: &mut Activities<T>, clamp: &Clamp<T>, watched: bool) -> RelaxationReport {
        let start = activities.clone();
        let n = activities.capacity();
        let mut gradients = Gradients::new(&self.layers, activities, clamp.free_input.is_none());
        let mut states: Vec<ActivityState<T>> = std::iter::once(activities.pre[0].nrows() - 1)
            .chain(activities.post.iter().map(Mat::nrows))
            .map(|d| ActivityState::new(d, n))
            .collect();
        let track = self.settings.tolerance > 0.0 || self.settings.halve_steps;
        let mut energy = Vec::new();
        if watched || track {
            energy.push(self.total_energy(activities, clamp));
        }
        let mut stop = Stop::MaxSteps;
        let mut taken = 0;
        for t in 1..=self.settings.steps {
            match self.settings.sweep {
                Sweep::Simultaneous => self.step_together(activities, clamp, &mut gradients, &mut states, t),
                Sweep::Sequential => self.step_in_turn(activities, clamp, &mut gradients, &mut states, t),
            }
            taken = t;
            if track {
                let (before, now) = (energy[energy.len() - 1], self.total_energy(activities, clamp));
                energy.push(now);
                if !now.is_finite() {
                    break;
                }
                if (before - now).abs() <= self.settings.tolerance * before.abs() {
                    stop = Stop::Converged;
                    break;
                }
            }
        }
        if watched && !track {
            energy.push(self.total_energy(activities, clamp));
        }
        if !energy.iter().all(|e| e.is_finite()) || !all_finite(activities) {
            *activities = start;
            stop = Stop::Diverged;
        }
        RelaxationReport { steps: taken, energy, stop }
    }

    fn total_energy(&self, activities: &Activities<T>, clamp: &Clamp<T>) -> f64 {
        self.energies(activities, clamp).iter().sum()
    }

    fn all_gradients(&self, gradients: &mut Gradients<T>, activities: &Activities<T>, clamp: &Clamp<T>) {
        let temperature = self.settings.weight_uncertainty;
        for l in 0..self.layers.len() {
            gradients.update_error(&self.layers, activities, l);
        }
        for l in 0..self.layers.len() {
            gradients.update_post(&self.layers, activities, self.activation, temperature, l);
        }
        mask_output(gradients, clamp);
        match &clamp.free_input {
            Some(free) => {
                gradients.update_input(&self.layers, activities, clamp, temperature);
                multiply(&mut gradients.input, free);
            }
            None => gradients.input.fill(T::zero()),
        }
    }

    /// All layers at once.
    fn step_together(
        &self,
        activities: &mut Activities<T>,
        clamp: &Clamp<T>,
        gradients: &mut Gradients<T>,
        states: &mut [ActivityState<T>],
        t: usize,
    ) {
        self.all_gradients(gradients, activities, clamp);
        let moving: Vec<usize> = (0..=self.layers.len()).filter(|&k| self.is_free(k, clamp)).collect();
        for &k in &moving {
            let gradient = if k == 0 { &mut gradients.input } else { &mut gradients.post[k - 1] };
            states[k].step(self.settings.optimiser, gradient, self.rates[k], t);
        }
        let every_layer: Vec<usize> = (0..self.layers.len()).collect();
        self.descend(activities, clamp, gradients, &moving, &every_layer);
    }

    /// From the top down.
    fn step_in_turn(
        &self,
        activities: &mut Activities<T>,
        clamp: &Clamp<T>,
        gradients: &mut Gradients<T>,
        states: &mut [ActivityState<T>],
        t: usize,
    ) {
        let temperature = self.settings.weight_uncertainty;
        let top = self.layers.len();
        for k in (0..=top).rev().filter(|&k| self.is_free(k, clamp)) {
            // z_k is predicted by layers[k−1] and predicts through layers[k].
            let touched: Vec<usize> =
                [k.checked_sub(1), (k < top).then_some(k)].into_iter().flatten().collect();
            for &l in &touched {
                gradients.update_error(&self.layers, activities, l);
            }
            if k == 0 {
                gradients.update_input(&self.layers, activities, clamp, temperature);
                if let Some(free) = &clamp.free_input {
                    multiply(&mut gradients.input, free);
                }
                states[0].step(self.settings.optimiser, &mut gradients.input, self.rates[0], t);
            } else {
                gradients.update_post(&self.layers, activities, self.activation, temperature, k - 1);
                if k == top {
                    mask_output(gradients, clamp);
                }
                states[k].step(self.settings.optimiser, &mut gradients.post[k - 1], self.rates[k], t);
            }
            self.descend(activities, clamp, gradients, &[k], &touched);
        }
    }

    /// z_0 and z_L move only where they are free; hidden layers always.
    fn is_free(&self, k: usize, clamp: &Clamp<T>) -> bool {
        match k {
            0 => clamp.free_input.is_some(),
            _ if k == self.layers.len() => clamp.free_output.is_some(),
            _ => true,
        }
    }

    /// Subtract the steps of z_k for `moving` k; with step halving, shrink those of a sample until its energy
    /// in the `touched` layers does not rise.
    fn descend(
        &self,
        activities: &mut Activities<T>,
        clamp: &Clamp<T>,
        steps: &Gradients<T>,
        moving: &[usize],
        touched: &[usize],
    ) {
        let n = activities.capacity();
        if !self.settings.halve_steps {
            self.shift(activities, steps, moving, &vec![T::one(); n]);
            return;
        }
        let start = activities.clone();
        let before = self.local_energy(activities, clamp, touched);
        let mut factors = vec![T::one(); n];
        for _ in 0..60 {
            self.shift(activities, steps, moving, &factors);
            let after = self.local_energy(activities, clamp, touched);
            let mut settled = true;
            for j in 0..n {
                if !(after[j] <= before[j]) {
                    factors[j] *= T::lit(0.5);
                    settled = false;
                }
            }
            if settled {
                return;
            }
            restore(activities, &start, moving);
        }
        // Not even 2⁻⁶⁰ of the step descends: these samples are at rest to rounding.
        let after = {
            self.shift(activities, steps, moving, &factors);
            self.local_energy(activities, clamp, touched)
        };
        restore(activities, &start, moving);
        for j in 0..n {
            if !(after[j] <= before[j]) {
                factors[j] = T::zero();
            }
        }
        self.shift(activities, steps, moving, &factors);
    }

    fn local_energy(&self, activities: &Activities<T>, clamp: &Clamp<T>, touched: &[usize]) -> Vec<f64> {
        let mut columns = vec![0.0; activities.capacity()];
        for &l in touched {
            add_layer_energy(&self.layers, activities, self.settings.weight_uncertainty, l, &mut columns);
        }
        add_input_energy(activities, clamp, &mut columns);
        columns
    }

    fn shift(&self, activities: &mut Activities<T>, steps: &Gradients<T>, moving: &[usize], factors: &[T]) {
        for &k in moving {
            let step = if k == 0 { &steps.input } else { &steps.post[k - 1] };
            let target = if k == 0 { &mut activities.pre[0] } else { &mut activities.post[k - 1] };
            for (j, &factor) in factors.iter().enumerate() {
                for (z, s) in target.col_as_slice_mut(j).iter_mut().zip(step.col_as_slice(j)) {
                    *z -= factor * *s;
                }
            }
            if k > 0 && k < self.layers.len() {
                activities.activate(self.activation, k - 1);
            }
        }
    }
}

/// α of every activity: the optimiser's own, or 1/λ_max of the energy's curvature where f′ = 1.
fn rates<T: Real>(layers: &[Expectations<T>], settings: &RelaxationSettings, input_var: f64) -> Vec<f64> {
    if let Some(rate) = settings.optimiser.fixed_rate() {
        return vec![rate; layers.len() + 1];
    }
    (0..=layers.len())
        .map(|k| {
            let mut curvature: Mat<T> = match k {
                0 => cast(scaled_identity(layers[0].mean.ncols() - 1, 1.0 / input_var).as_ref()),
                _ => layers[k - 1].precision.clone(),
            };
            if k < layers.len() {
                let above = &layers[k];
                let d = curvature.nrows();
                let weights = above.mean.subcols(0, d);
                curvature += weights.transpose() * &above.precision * weights;
                if above.col_cov.nrows() > 0 {
                    let factor = T::lit(settings.weight_uncertainty * above.mean.nrows() as f64);
                    curvature += above.col_cov.submatrix(0, 0, d, d) * faer::Scale(factor);
                }
            }
            let largest = largest_eigenvalue(curvature.as_ref()).as_f64();
            if largest > 0.0 { 1.0 / largest } else { 1.0 }
        })
        .collect()
}

fn mask_output<T: Real>(gradients: &mut Gradients<T>, clamp: &Clamp<T>) {
    let top = gradients.post.len() - 1;
    match &clamp.free_output {
        Some(free) => multiply(&mut gradients.post[top], free),
        None => gradients.post[top].fill(T::zero()),
    }
}

fn multiply<T: Real>(gradient: &mut Mat<T>, mask: &Mat<T>) {
    faer::zip!(gradient, mask).for_each(|faer::unzip!(g, m)| *g *= *m);
}

fn all_finite<T: Real>(activities: &Activities<T>) -> bool {
    activities.post.iter().all(|z| (0..z.ncols()).all(|j| z.col_as_slice(j).iter().all(|x| x.is_finite())))
}

fn restore<T: Real>(activities: &mut Activities<T>, start: &Activities<T>, moving: &[usize]) {
    for &k in moving {
        if k == 0 {
            activities.pre[0].copy_from(&start.pre[0]);
        } else {
            activities.post[k - 1].copy_from(&start.post[k - 1]);
            if k < activities.pre.len() {
                activities.pre[k].copy_from(&start.pre[k]);
            }
        }
    }
}
