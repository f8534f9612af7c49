//! Bayesian predictive coding: a network, a rule for its activities, and the Hebbian M-step.

use std::borrow::Cow;

use faer::{Mat, MatRef};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::{Learner, Step};
use crate::base::parallel::{CHUNK, for_each_worker, join_if, splits_batch};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::heads::Head;
use crate::inference::{
    Clamp, Feedback, FeedbackSettings, Presynaptic, RelaxationSettings, RelaxedBatch, RelaxedChunk,
    RelaxingLayers,
};
use crate::learning::{self, Blend, ErrorChunk, FreeEnergy, Hebbian, NaturalGradient};
use crate::network::{Network, NetworkSettings, PointNetwork};
use crate::prediction::{self, Method, Predictive};
use crate::real::Real;

/// How activities are inferred.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Rule {
    /// One backward sweep at the self-consistent point: the default.
    Feedback(FeedbackSettings),
    /// Gradient descent on the energy: the paper's.
    Relaxation(RelaxationSettings),
}

impl Default for Rule {
    fn default() -> Self {
        Self::Feedback(FeedbackSettings::default())
    }
}

impl Rule {
    /// Check the rule's settings.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Feedback(settings) => settings.validate(),
            Self::Relaxation(settings) => settings.validate(),
        }
    }
}

/// A Bayesian predictive-coding learner.
#[derive(Clone, Debug)]
pub struct Bpc<T: Real> {
    pub(super) network: Network<T>,
    pub(super) rule: Rule,
    pub(super) feedback: Feedback<T>,
    relaxed: RelaxedBatch<T>,
    hebbian: Hebbian,
    pub(super) natural_gradient: NaturalGradient<T>,
}

impl<T: Real> Bpc<T> {
    /// Train `network` by `rule`.
    pub fn new(mut network: Network<T>, rule: Rule) -> Result<Self> {
        rule.validate()?;
        if let Rule::Relaxation(settings) = &rule {
            settings.check_head(&network.settings().head)?;
            if network.is_wide() {
                network.settings().wide_layers.or_dense("rule = relaxation")?;
                network.make_dense()?;
            }
            network.set_hidden_noise(true);
        }
        Ok(Self {
            feedback: Feedback::new(&network),
            hebbian: match rule {
                // A wide output moves by natural gradient.
                Rule::Feedback(_) if network.is_wide() => Hebbian::empty(),
                Rule::Feedback(_) => Hebbian::of_output(&network),
                Rule::Relaxation(_) => Hebbian::new(&network),
            },
            natural_gradient: match rule {
                Rule::Feedback(_) => NaturalGradient::new(&network),
                Rule::Relaxation(_) => NaturalGradient::with_noise(&network),
            },
            relaxed: RelaxedBatch::default(),
            network,
            rule,
        })
    }

    /// The network as it is now; while inputs are whitened its first layer is in their coordinates.
    pub fn network(&self) -> &Network<T> {
        &self.network
    }

    /// Hand over the network, with every natural parameter up to date.
    pub fn into_network(mut self) -> Result<Network<T>> {
        self.natural_gradient.settle(&mut self.network)?;
        Ok(self.network)
    }

    /// The network in the coordinates of the data.
    fn in_data_coordinates(&self) -> Result<Cow<'_, Network<T>>> {
        if !self.natural_gradient.is_whitened() {
            return Ok(Cow::Borrowed(&self.network));
        }
        self.clone().into_network().map(Cow::Owned)
    }

    /// The rule.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// What the feedback rule has learned: C_1 … C_{L−1} and the number of batches behind them.
    pub fn feedback_state(&self) -> (Vec<Mat<f64>>, u64) {
        (self.feedback.covariance(), self.feedback.steps())
    }

    /// Restore [`Bpc::feedback_state`], to go on learning where another session stopped.
    pub fn restore_feedback_state(&mut self, feedback_cov: Vec<Mat<f64>>, steps: u64) -> Result<()> {
        let expected = self.network.hidden().len();
        if feedback_cov.len() != expected {
            return Err(Error::Shape {
                what: "feedback state",
                axis: "layers",
                found: feedback_cov.len(),
                expected,
            });
        }
        for (cov, layer) in feedback_cov.iter().zip(self.network.hidden()) {
            // Of a wide layer nothing is kept.
            if cov.nrows() != layer.d_post() && layer.wide().is_none() {
                return Err(Error::Shape {
                    what: "feedback state",
                    axis: "rows",
                    found: cov.nrows(),
                    expected: layer.d_post(),
                });
            }
        }
        self.feedback.restore(feedback_cov, steps);
        Ok(())
    }

    /// A batch has the network's inputs and targets.
    pub(super) fn check_batch(&self, batch: &Dataset<'_, T>) -> Result<()> {
        crate::network::check_input(batch.input(), self.network.d_input())?;
        let (found, expected) = (batch.target().nrows(), self.network.n_targets());
        if found == expected {
            return Ok(());
        }
        Err(Error::Shape { what: "target", axis: "columns", found, expected })
    }

    fn learn_by_feedback(
        &mut self,
        batch: &Dataset<'_, T>,
        step: &Step,
        settings: &FeedbackSettings,
    ) -> Result<f64> {
        if batch.has_missing() {
            return Err(Error::Conflict {
                first: "rule = feedback",
                second: "missing values (use relaxation)",
            });
        }
        if self.network.is_wide() {
            return self.learn_wide(batch, step, settings);
        }
        if settings.refresh_every == 1 && self.sums_are_cheaper(batch.len()) {
            return self.absorb(&self.statistics(batch)?, step);
        }
        let remembered = self.feedback.sweep(&self.network, batch, settings)?;
        let rate = settings.schedule.rate(step.index, step.total);
        let scale = if settings.scale_batches { step.n_total / batch.total_weight() } else { 1.0 };
        let parallel = self.splits_batch(batch.len());
        let (hidden, output) = self.network.layers_mut();
        let (memory, chunks, response) = self.feedback.parts();
        let (natural_gradient, hebbian) = (&mut self.natural_gradient, &mut self.hebbian);
        let learn_hidden = || {
            let blend = Blend { rate, scale };
            natural_gradient.step(hidden, chunks, blend, settings.refresh_every, parallel)
        };
        let learn_output = || {
            hebbian.clear_output();
            for chunk in chunks {
                hebbian.accumulate_output(chunk.activities(), response, chunk.start(), chunk.weights());
            }
            hebbian.blend_output(output, rate, scale)
        };
        let remember = || if remembered { Ok(()) } else { memory.learn(chunks, settings, false, parallel) };
        let (hidden, (output, memory)) =
            join_if(parallel, learn_hidden, || join_if(parallel, learn_output, remember));
        hidden.and(output).and(memory)?;
        Ok(self.feedback.mean_squared_error())
    }

    /// The same in a network whose layers keep what is linear in their widths.
    fn learn_wide(
        &mut self,
        batch: &Dataset<'_, T>,
        step: &Step,
        settings: &FeedbackSettings,
    ) -> Result<f64> {
        self.feedback.infer(&self.network, batch, settings)?;
        let rate = settings.schedule.rate(step.index, step.total);
        let scale = if settings.scale_batches { step.n_total / batch.total_weight() } else { 1.0 };
        let ranges: Vec<(usize, usize)> = self.network.output().row_ranges().collect();
        let (chunks, response) = (self.feedback.chunks(), self.feedback.response());
        self.natural_gradient.step_wide(
            self.network.layers_mut(),
            chunks,
            |block, chunk| chunks[chunk].output_error(response, block, ranges[block]),
            Blend { rate, scale },
            settings.refresh_every,
        )?;
        Ok(self.feedback.mean_squared_error())
    }

    fn learn_by_relaxation(
        &mut self,
        batch: &Dataset<'_, T>,
        step: &Step,
        settings: &RelaxationSettings,
    ) -> Result<f64> {
        if self.natural_gradient.is_whitened() {
            if batch.has_missing() {
                return Err(Error::Conflict { first: "relaxation.whiten_input", second: "missing values" });
            }
        } else if settings.refresh_every == 1 || step.full_batch || batch.has_missing() {
            return self.learn_exactly(batch, step, settings);
        }
        self.relaxed.infer(&self.network, batch, settings)?;
        let rate = settings.schedule.rate(step.index, step.total);
        let scale = step.n_total / batch.total_weight();
        let parallel = self.splits_batch(batch.len());
        let (hidden, output) = self.network.layers_mut();
        let (natural_gradient, hebbian, relaxed) =
            (&mut self.natural_gradient, &mut self.hebbian, &self.relaxed);
        let learn_hidden = || {
            let blend = Blend { rate, scale };
            natural_gradient.step(hidden, relaxed.chunks(), blend, settings.refresh_every, parallel)
        };
        let learn_output = || {
            hebbian.clear_output();
            if let Some(response) = relaxed.response() {
                for chunk in relaxed.chunks() {
                    let weights = chunk.sample_weights();
                    hebbian.accumulate_output(chunk.activities(), response, chunk.first(), weights);
                }
            }
            hebbian.blend_output(output, rate, scale)
        };
        let (hidden, output) = join_if(parallel, learn_hidden, learn_output);
        hidden.and(output)?;
        if self.natural_gradient.is_fresh() {
            self.relaxed.forget();
        }
        Ok(self.relaxed.squared_error() / (batch.len() * batch.target().nrows()) as f64)
    }

    /// Every posterior by the conjugate update as it is written, on full batches with κ = 1.
    ///
    /// With presynaptic activities of the forward pass, layers that take a whole step together count an error several
    /// times: a layer answers it, and so do the layers above, from the activities as they were. There a full batch
    /// updates the hidden layers first, and then the output layer from what they now give.
    fn learn_exactly(
        &mut self,
        batch: &Dataset<'_, T>,
        step: &Step,
        settings: &RelaxationSettings,
    ) -> Result<f64> {
        if batch.has_missing() {
            self.network.settings().head.require_gaussian("missing values")?;
        }
        self.natural_gradient.settle(&mut self.network)?;
        self.relaxed.forget();
        let square = self.gather(batch, settings)?;
        // On the full batch the update is exact: η = η⁰ + T.
        let rate = if step.full_batch { 1.0 } else { settings.schedule.rate(step.index, step.total) };
        let scale = if settings.scale_batches { step.n_total / batch.total_weight() } else { 1.0 };
        self.hebbian.blend_hidden(&mut self.network, rate, scale)?;
        let has_hidden = !self.network.hidden().is_empty();
        if step.full_batch && has_hidden && settings.presynaptic == Presynaptic::Forward {
            // Only missing values move anything that the output layer sees.
            let steps = if batch.has_missing() { settings.steps } else { 0 };
            self.gather(batch, &RelaxationSettings { steps, ..settings.clone() })?;
        }
        self.hebbian.blend_output(self.network.output_mut(), rate, scale)?;
        Ok(square / (batch.len() * batch.target().nrows()) as f64)
    }

    /// Relax a batch under the network as it is, and gather the statistics of what came of it. Returns the squared error
    /// of the forward pass, summed over samples and targets.
    fn gather(&mut self, batch: &Dataset<'_, T>, settings: &RelaxationSettings) -> Result<f64> {
        let layers = RelaxingLayers::new(&self.network, settings, batch.has_missing())?;
        let &NetworkSettings { activation, input_var, .. } = self.network.settings();
        let clamp = if batch.has_missing() {
            Clamp::missing(batch.input(), batch.target(), input_var)?
        } else {
            Clamp::supervised()
        };
        let relaxation = layers.relaxation(self.network.means(), activation, settings).read_by(&self.network);
        let ones = Mat::from_fn(1, CHUNK, |_, _| 1.0);
        let mut square = 0.0;
        self.hebbian.clear();
        for_each_worker(
            self.relaxed.chunks_mut(),
            batch.len(),
            self.network.n_weights() * settings.steps.max(1),
            || RelaxedChunk::new(&relaxation, 0),
            |chunk, first, n| chunk.infer(&relaxation, batch, &clamp, first, n),
            |chunk| {
                let (activities, weights) = (chunk.activities(), chunk.sample_weights());
                let ones = ones.subcols(0, activities.capacity());
                let of_head = chunk.response().map_or(ones, |response| response.weights.as_ref());
                self.hebbian.accumulate(activities, of_head, weights);
                square += chunk.squared_errors().iter().sum::<f64>();
            },
        );
        Ok(square)
    }
}

impl<T: Real> Learner<T> for Bpc<T> {
    fn name(&self) -> &'static str {
        match self.rule {
            Rule::Feedback(_) => "bpc-feedback",
            Rule::Relaxation(_) => "bpc-relaxation",
        }
    }

    fn splits_batch(&self, n: usize) -> bool {
        splits_batch(self.network.n_weights(), n)
    }

    fn begin(&mut self, data: &Dataset<'_, T>) -> Result<Option<Mat<T>>> {
        let whiten = match &self.rule {
            Rule::Feedback(settings) => settings.whiten_input,
            Rule::Relaxation(settings) => settings.whiten_input,
        };
        if !whiten || data.has_missing() {
            return Ok(None);
        }
        crate::network::check_input(data.input(), self.network.d_input())?;
        self.relaxed.forget();
        self.natural_gradient.whiten(&mut self.network, data)
    }

    fn learn(&mut self, batch: &Dataset<'_, T>, step: &Step, _rng: &mut dyn Rng) -> Result<f64> {
        self.check_batch(batch)?;
        let rule = self.rule.clone();
        match &rule {
            Rule::Feedback(settings) => self.learn_by_feedback(batch, step, settings),
            Rule::Relaxation(settings) => self.learn_by_relaxation(batch, step, settings),
        }
    }

    fn finish(&mut self, data: &Dataset<'_, T>) -> Result<()> {
        match self.rule {
            Rule::Feedback(_) => {
                let first_is_known = self.natural_gradient.knows_first();
                self.natural_gradient.settle(&mut self.network)?;
                learning::finalise(&mut self.network, data, first_is_known)
            }
            Rule::Relaxation(_) => {
                self.natural_gradient.settle(&mut self.network)?;
                learning::pin_output_noise(&mut self.network)
            }
        }
    }

    fn mean_network(&self) -> Result<PointNetwork<T>> {
        self.in_data_coordinates()?.mean_network()
    }

    fn draw_network(&self, rng: &mut dyn Rng) -> Result<PointNetwork<T>> {
        let network = self.in_data_coordinates()?;
        network.draw(&network.posteriors()?, rng)
    }

    fn head(&self) -> &dyn Head {
        self.network.settings().head.head()
    }

    fn free_energy(&self, data: &Dataset<'_, T>) -> Result<Option<Vec<FreeEnergy>>> {
        learning::free_energy(&*self.in_data_coordinates()?, data).map(Some)
    }

    fn predict(&self, input: MatRef<'_, T>, method: Method) -> Result<Predictive> {
        prediction::predict(&*self.in_data_coordinates()?, input, method)
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::base::random::stream;
    use crate::heads::{HeadSettings, VarianceNode};
    use crate::training::{self, Silent, TrainingSettings};

    /// Noise that is nine times as large on the right as on the left.
    fn fan(n: usize) -> (Mat<f64>, Mat<f64>) {
        let mut rng = stream(4, 0);
        let x = Mat::from_fn(1, n, |_, _| rng.random_range(-1.5..1.5_f64));
        let y = Mat::from_fn(1, n, |_, j| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            x[(0, j)] + (0.5 + 0.4 * x[(0, j)] / 1.5) * noise
        });
        (x, y)
    }

    fn network() -> Network<f64> {
        let settings = NetworkSettings {
            hidden_layer_sizes: vec![20],
            head: HeadSettings::VarianceNode(VarianceNode::default()),
            ..NetworkSettings::default()
        };
        Network::new(&settings, 1, 1, &mut training::init_rng(0)).unwrap()
    }

    #[test]
    fn relaxation_learns_noise_that_depends_on_the_input_in_full_and_in_small_batches() {
        let (x, y) = fan(600);
        let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
        let small =
            RelaxationSettings { refresh_every: 5, scale_batches: true, ..RelaxationSettings::paper() };
        for (rule, batch_size) in [(RelaxationSettings::paper(), None), (small, Some(100))] {
            let mut learner = Bpc::new(network(), Rule::Relaxation(rule)).unwrap();
            let settings = TrainingSettings { epochs: 30, batch_size, ..TrainingSettings::default() };
            training::fit(&mut learner, &data, &settings, &mut Silent).unwrap();
            let ends = Mat::from_fn(1, 2, |_, j| [-1.2, 1.2][j]);
            let noise = learner.predict(ends.as_ref(), Method::Linearised).unwrap().aleatoric_variance();
            // 0.18² and 0.82²: a ratio of 21. The tails of the predictive are in both.
            let ratio = noise[(0, 1)] / noise[(0, 0)];
            assert!((5.0..60.0).contains(&ratio), "{batch_size:?}: {noise:?}");
            assert!((noise[(0, 1)] / 0.67).ln().abs() < 0.7, "{batch_size:?}: {noise:?}");
        }
    }

    #[test]
    fn what_relaxation_cannot_do_under_a_head_it_says() {
        let tied = Bpc::new(network(), Rule::Relaxation(RelaxationSettings::tied()));
        assert!(matches!(tied, Err(Error::Conflict { first: "rule.hidden_precision = tied", .. })));
        let mut learner = Bpc::new(network(), Rule::Relaxation(RelaxationSettings::paper())).unwrap();
        let (x, mut y) = fan(20);
        y[(0, 3)] = f64::NAN;
        let data = Dataset::with_missing(x.as_ref(), y.as_ref()).unwrap();
        let step = Step { index: 1, total: None, n_total: 20.0, full_batch: true };
        let missing = learner.learn(&data, &step, &mut stream(0, 0));
        assert!(matches!(missing, Err(Error::Conflict { first: "missing values", .. })));
    }
}
