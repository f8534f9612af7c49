//! Relaxation of one network at a time, for those who want to look at it: energies, gradients and reports.

use faer::{Mat, MatRef};

use super::batch::respond;
use super::descent::{Descent, RelaxationReport, Task, start};
use super::layers::{Relaxation, RelaxingLayers};
use super::settings::RelaxationSettings;
use crate::base::linalg::cast;
use crate::error::Result;
use crate::heads::HeadSettings;
use crate::inference::clamp::Clamp;
use crate::inference::energy::{Errors, Gradients, LayerTerms, add_input_prior};
use crate::network::{Activation, Activities, Expectations, Layer, Network};
use crate::real::Real;

/// Relaxes activities of a network as it is now.
#[derive(Clone, Debug)]
pub struct Relaxer<T: Real> {
    means: Vec<Mat<T>>,
    layers: RelaxingLayers<T>,
    activation: Activation,
    settings: RelaxationSettings,
    head: HeadSettings,
    /// Rows of each block of the output.
    block_rows: Vec<usize>,
}

impl<T: Real> Relaxer<T> {
    /// Collect what relaxation needs. Unless `input_is_free`, z_0 never moves and its layer's V is not needed.
    pub fn new(network: &Network<T>, settings: &RelaxationSettings, input_is_free: bool) -> Result<Self> {
        settings.validate()?;
        let head = network.settings().head.clone();
        settings.check_head(&head)?;
        Ok(Self {
            head,
            block_rows: network.output().blocks().iter().map(Layer::d_post).collect(),
            means: network.means().into_iter().map(|mean| mean.to_owned()).collect(),
            layers: RelaxingLayers::new(network, settings, input_is_free)?,
            activation: network.settings().activation,
            settings: settings.clone(),
        })
    }

    fn relaxation(&self) -> Relaxation<'_, T> {
        let means = self.means.iter().map(Mat::as_ref).collect();
        self.layers.relaxation(means, self.activation, &self.settings)
    }

    /// M, ⟨Σ⁻¹⟩ and V of every layer, as relaxation uses them.
    pub fn layers(&self) -> Vec<Expectations<T>> {
        let parts = self.means.iter().zip(self.layers.terms());
        let expectations = |(mean, terms): (&Mat<T>, &LayerTerms<T>)| Expectations {
            mean: mean.clone(),
            precision: terms.precision.to_matrix(mean.nrows()),
            col_cov: terms.col_cov.clone().unwrap_or_else(Mat::new),
        };
        parts.map(expectations).collect()
    }

    /// Energy of every sample, summed over the layers, the prior of a free z_0 included.
    pub fn energies(&self, activities: &Activities<T>, clamp: &Clamp<T>) -> Vec<f64> {
        self.relaxation().energy.of_samples(activities, clamp, 0..self.means.len())
    }

    /// Energy of every layer, summed over the samples; that of the first includes the prior of a free z_0. They add up
    /// to the sum of [`Relaxer::energies`].
    pub fn layer_energies(&self, activities: &Activities<T>, clamp: &Clamp<T>) -> Vec<f64> {
        let energy = self.relaxation().energy;
        let of_layer = |l| {
            let mut samples = vec![0.0; activities.capacity()];
            if l == 0 {
                add_input_prior(activities, clamp, &mut samples);
            }
            energy.add_layer(activities, clamp, l, &mut samples);
            samples.iter().sum()
        };
        (0..self.means.len()).map(of_layer).collect()
    }

    /// What the output is clamped to: the targets, or under a head whose weights carry the noise its working targets at
    /// the forward pass, whose weights the clamp then has. Learning clamps the same.
    pub fn clamped_target(
        &self,
        input: MatRef<'_, T>,
        target: MatRef<'_, T>,
        clamp: &mut Clamp<T>,
    ) -> Result<Mat<T>> {
        let head = self.head.head();
        if head.is_gaussian() {
            return Ok(target.to_owned());
        }
        if clamp.free_input.is_some() || clamp.free_output.is_some() {
            self.head.require_gaussian("missing values")?;
        }
        let energy = self.relaxation().energy;
        let mut forward = Activities::new(&energy.widths(), input.ncols());
        forward.forward(&energy.means, energy.activation, input);
        let activity = forward.post[forward.post.len() - 1].as_ref();
        let (response, weights) = respond(head, &self.block_rows, activity, target);
        clamp.head = Some(weights);
        Ok(cast(response.targets.as_ref()))
    }

    /// Forward pass, then clamp: free entries of z_0 start at the prior mean 0, free entries of z_L at their
    /// prediction. `target` is that of [`Relaxer::clamped_target`].
    pub fn start(&self, input: MatRef<'_, T>, target: MatRef<'_, T>, clamp: &Clamp<T>) -> Activities<T> {
        let energy = self.relaxation().energy;
        let mut forward = Activities::new(&energy.widths(), input.ncols());
        let mut activities = forward.clone();
        start(&energy, input, target, clamp, (&mut forward, &mut activities));
        activities
    }

    /// ∂E/∂z_0 and ∂E/∂z_1 … ∂E/∂z_L, clamped entries zero.
    pub fn gradients(&self, activities: &Activities<T>, clamp: &Clamp<T>) -> (Mat<T>, Vec<Mat<T>>) {
        let energy = self.relaxation().energy;
        let mut gradients = Gradients::new(&energy.widths(), activities.capacity());
        gradients.update_errors(&energy, activities, &[], 0..energy.n_layers());
        for k in 0..=energy.n_layers() {
            gradients.update_gradient(&energy, activities, clamp, k);
        }
        gradients.into_parts()
    }

    /// The same for errors in a network that runs freely: ∂E/∂z_0 and ∂E/∂ε_1 … ∂E/∂ε_L, clamped entries zero.
    pub fn error_gradients(&self, activities: &Activities<T>, clamp: &Clamp<T>) -> (Mat<T>, Vec<Mat<T>>) {
        let energy = self.relaxation().energy;
        let mut errors = Errors::new(&energy.widths(), activities.capacity());
        errors.begin(activities, &self.predictions(activities));
        errors.update_gradients(&energy, activities, clamp, 0);
        errors.into_gradients()
    }

    /// M φ of every layer.
    fn predictions(&self, activities: &Activities<T>) -> Vec<Mat<T>> {
        self.means.iter().zip(&activities.pre).map(|(mean, pre)| mean * pre).collect()
    }

    /// Relax in place, from where the activities are.
    pub fn relax(&self, activities: &mut Activities<T>, clamp: &Clamp<T>) -> RelaxationReport {
        let relaxation = self.relaxation();
        let start = activities.clone();
        let predictions = self.predictions(&start);
        let task = Task { relaxation: &relaxation, start: &start, predictions: &predictions, clamp };
        Descent::new(&relaxation, activities.capacity()).run(&task, activities, true)
    }
}
