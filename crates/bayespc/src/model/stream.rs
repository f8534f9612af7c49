//! Learning from a stream: one pass over every chunk of samples, one posterior over all of them.

use rayon::prelude::*;

use super::calibration::Calibration;
use super::ensemble::{Ensemble, Member, MemberPlan, member_seed};
use super::fit::check_task;
use super::memory;
use super::model::Model;
use super::settings::ModelSettings;
use crate::data::{Dataset, Samples};
use crate::error::{Error, Result};
use crate::learners::Rule;
use crate::learning::{self, Schedule};
use crate::real::{Precision, Real};
use crate::training;

/// Of so many samples of a chunk one says how the output bends with the hidden layers.
const CURVATURE_OF: usize = 8;

impl Model {
    /// A model that has learned nothing yet, scaled by the first samples of a stream; go on with
    /// [`Model::partial_fit`] on the same samples. A stream holds nothing out: nothing is searched, and the settings
    /// must not ask for calibration.
    pub fn for_stream(samples: &Samples<'_>, settings: &ModelSettings) -> Result<Self> {
        settings.validate()?;
        check_task(samples.task(), settings)?;
        if settings.calibration != Calibration::None {
            return Err(Error::Conflict {
                first: "calibration on held-out samples",
                second: "a stream, which holds none out (use calibration = none)",
            });
        }
        let mut whole = settings.clone();
        whole.network.wide_layers = settings.network.wide_layers.or_dense("learning from a stream")?;
        memory::check(&whole, samples.n_features(), samples.n_outputs())?;
        let mut ensemble = Ensemble::untrained(samples, settings.input_scaling)?;
        let plans = whole.plans();
        ensemble.add_codes(samples, &plans);
        let member = |(m, plan): (usize, &MemberPlan)| {
            let (d, k) = (ensemble.width(plan.bins), ensemble.target_scaling.dim());
            Member::untrained(plan, &settings.rule, d, k, member_seed(settings.training.seed, m))
        };
        ensemble.members = plans.iter().enumerate().map(member).collect::<Result<_>>()?;
        Ok(Self::of(settings, ensemble, 0.0))
    }

    /// Learn from more samples: one pass, one schedule over all calls. Inputs are scaled by all samples so far,
    /// targets by the first ones.
    /// Either all networks learn, or on an error none has. A calibrated model is refused: its calibration would
    /// speak of networks it no longer has.
    pub fn partial_fit(&mut self, samples: &Samples<'_>) -> Result<()> {
        self.check_goes_on(samples)?;
        if self.settings.calibration != Calibration::None {
            return Err(Error::Conflict {
                first: "the model's calibration on held-out samples",
                second: "learning on from a stream, after which it no longer holds (fit with calibration = none)",
            });
        }
        if self.members().iter().any(|member| member.network().is_wide()) {
            return Err(Error::Conflict {
                first: "network.wide_layers other than dense",
                second: "learning on from a stream (fit with network.wide_layers = dense)",
            });
        }
        let n_seen = self.n_seen + samples.total_weight();
        let before = self.settings.training.forget.map_or(self.n_seen, |rows| self.n_seen.min(rows));
        let mut next = self.clone();
        let mut awake = false;
        if let Some(rescaled) = self.rescaled(samples, before)? {
            next.ensemble.input_scaling = rescaled.scaling;
            next.ensemble.members = rescaled.members;
            awake = rescaled.awake;
        }
        let mean_weight = samples.total_weight() / samples.n_samples() as f64;
        let rule = self.stream_rule(mean_weight, awake);
        next.ensemble.members = match self.settings.precision {
            Precision::F64 => next.streamed::<f64>(samples, &rule, n_seen)?,
            Precision::F32 => next.streamed::<f32>(samples, &rule, n_seen)?,
        };
        next.n_seen = n_seen;
        // What the samples so far looked like is not what all of them do.
        next.reference = None;
        *self = next;
        Ok(())
    }

    /// These samples are of the kind the model was fitted to.
    pub(super) fn check_goes_on(&self, samples: &Samples<'_>) -> Result<()> {
        if samples.task() != self.task() {
            return Err(Error::Conflict { first: "these targets", second: "the task of the first fit" });
        }
        let (found, expected) = (samples.n_outputs(), self.n_targets());
        if found != expected {
            return Err(Error::Shape { what: "target", axis: "columns", found, expected });
        }
        self.check_inputs(samples.inputs())
    }

    fn streamed<T: Real>(&self, samples: &Samples<'_>, rule: &Rule, n_seen: f64) -> Result<Vec<Member>> {
        let bins = self.members().iter().map(|member| member.bins);
        let standardised = self.ensemble.standardise_all::<T>(samples, bins)?;
        let learn = |member: &Member| {
            let samples = &standardised[&member.bins];
            samples.with_view(member.curve.as_ref(), |data| self.learn_on(member, data, rule, n_seen))
        };
        self.members().par_iter().map(learn).collect()
    }

    /// The rule with steps that forget as they should: with κ = |B|/N every batch counts as much as its share of the
    /// last N samples, and older ones fade as exp(−age/N). With `exact` every step renews its factors.
    fn stream_rule(&self, mean_weight: f64, exact: bool) -> Rule {
        let training = &self.settings.training;
        let schedule = |own: Schedule| match (training.forget, training.batch_size) {
            (Some(rows), Some(size)) => own.at_least((size as f64 * mean_weight / rows).min(1.0)),
            _ => own,
        };
        let mut rule = self.settings.rule.clone();
        let (own, every) = match &mut rule {
            Rule::Feedback(own) => (&mut own.schedule, &mut own.refresh_every),
            Rule::Relaxation(own) => (&mut own.schedule, &mut own.refresh_every),
        };
        *own = schedule(*own);
        if exact {
            *every = 1;
        }
        rule
    }

    fn learn_on<T: Real>(
        &self,
        member: &Member,
        data: &Dataset<'_, T>,
        rule: &Rule,
        n_seen: f64,
    ) -> Result<Member> {
        let training = &self.settings.training;
        let kept = training.forget.map_or(n_seen, |rows| n_seen.min(rows));
        let earlier = learning::hidden_curvature_of(member.network())?;
        let mut learner = member.learner::<T>(rule)?;
        let steps = training::partial_fit(&mut learner, data, training, member.steps, kept)?;
        let feedback = learner.feedback_state();
        let mut network = learner.into_network()?;
        if matches!(rule, Rule::Feedback(_)) {
            let some: Vec<usize> = (0..data.len()).step_by(CURVATURE_OF).collect();
            let share = (data.total_weight() / kept).min(1.0);
            let sample = data.gather(&some);
            // Samples of weight 0 have no curvature.
            let has_weight = sample.view().total_weight() > 0.0;
            let sample = if has_weight { sample.view() } else { *data };
            learning::settle_stream(&mut network, &sample, &earlier, share)?;
        }
        let plan = member.plan(member.report.epochs);
        Ok(Member::new(network.to_precision()?, &plan, feedback, steps, member.report.clone()))
    }
}

#[cfg(test)]
mod tests {
    use faer::Mat;
    use rand::RngExt;

    use super::*;
    use crate::base::random::stream;
    use crate::metrics;

    /// y = ±2 x₁ + x₂, whose sign changes in the middle of the stream.
    fn turning(n: usize) -> (Mat<f64>, Mat<f64>) {
        let mut rng = stream(9, 0);
        let x = Mat::from_fn(2, n, |_, _| rng.random_range(-1.0..1.0_f64));
        let y = Mat::from_fn(1, n, |_, j| {
            let sign = if 2 * j < n { 2.0 } else { -2.0 };
            sign * x[(0, j)] + x[(1, j)] + 0.1 * rng.random_range(-1.0..1.0)
        });
        (x, y)
    }

    /// A linear model of the first rows.
    fn streamed(x: &Mat<f64>, y: &Mat<f64>, rows: usize, forget: Option<f64>) -> Model {
        let mut settings = ModelSettings::fast();
        settings.network.hidden_layer_sizes = vec![];
        settings.training.forget = forget;
        let chunk = |start: usize| Samples::new(x.subcols(start, 1000), y.subcols(start, 1000)).unwrap();
        let mut model = Model::for_stream(&chunk(0), &settings).unwrap();
        for start in (0..rows).step_by(1000) {
            model.partial_fit(&chunk(start)).unwrap();
        }
        model
    }

    #[test]
    fn a_stream_that_forgets_follows_what_has_changed_and_represents_so_many_rows() {
        let (x, y) = turning(20_000);
        // 1000 rows behind the turn: exp(−1000/300) of the forgetful posterior is still of the old kind.
        let kept = streamed(&x, &y, 11_000, None);
        let forgetful = streamed(&x, &y, 11_000, Some(300.0));
        let rmse = |model: &Model| {
            let predicted = model.predict(x.subcols(11_000, 1000)).unwrap();
            metrics::rmse(predicted.mean().as_ref(), y.subcols(11_000, 1000)).unwrap()
        };
        // Noise of 0.06, and 4 · 0.036 of a column whose root mean square is 0.58.
        assert!(rmse(&forgetful) < 0.13, "{}", rmse(&forgetful));
        assert!(rmse(&kept) > 0.5, "{}", rmse(&kept));
        // η₄ less the prior's counts the rows a posterior represents.
        let rows = |model: &Model| {
            let block = &model.members()[0].network().output().blocks()[0];
            block.natural().count - block.prior().count
        };
        assert!((rows(&forgetful) - 300.0).abs() < 3.0, "{}", rows(&forgetful));
        assert!(rows(&kept) > 5000.0, "{}", rows(&kept));
    }
}
