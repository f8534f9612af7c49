//! Fitting: hold out what calibration asks for, choose what is to be chosen, train, calibrate.

use super::calibration::{self, Calibrated};
use super::ensemble::Ensemble;
use super::memory;
use super::model::Model;
use super::observer::{Observer, Stage, Work};
use super::pictures;
use super::reference::Reference;
use super::selection;
use super::settings::ModelSettings;
use crate::data::{Samples, Targets, Task, canonical};
use crate::error::{Error, Result};
use crate::heads::HeadSettings;

impl Model {
    /// Fit a model to samples.
    pub fn fit(samples: &Samples<'_>, settings: &ModelSettings) -> Result<Self> {
        Self::fit_watched(samples, settings, &mut ())
    }

    /// Fit a model while `observer` watches. If it stops the work before any network has learned enough to be of use,
    /// the error is [`Error::Interrupted`]; afterwards the networks that have are kept, and
    /// [`Model::was_interrupted`] says so.
    pub fn fit_watched(
        samples: &Samples<'_>,
        settings: &ModelSettings,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let work = Work::within(observer, settings.time_limit);
        Self::fit_by(samples, settings, &work)
    }

    /// Fit a model as a piece of work.
    pub(super) fn fit_by(samples: &Samples<'_>, settings: &ModelSettings, work: &Work<'_>) -> Result<Self> {
        settings.validate()?;
        check_task(samples.task(), settings)?;
        let sorted = canonical(samples, batch_to_sort(settings));
        let samples = sorted.as_ref().map_or(*samples, |sorted| sorted.samples.view());
        let said = settings;
        let settings = &pictures::adapted(said, &samples);
        memory::check_table(settings, &samples)?;

        let parts = calibration::hold_out(&samples, settings)?;
        let train = parts.as_ref().map_or(samples, |parts| parts.train.view());
        let mut ensemble = Ensemble::untrained(&train, settings.input_scaling)?;
        let choice = selection::choose(&train, &mut ensemble, settings, work)?;
        if choice.members.is_empty() {
            work.enter(Stage::Training)?;
            // What was chosen in a precision is trained in it.
            let chosen = !choice.candidates.is_empty();
            let precision = if chosen { settings.search.precision } else { settings.precision };
            let settings = &ModelSettings { precision, ..settings.clone() };
            ensemble.train(&train, &choice.plans, settings, work)?;
        } else {
            ensemble.members = choice.members;
        }
        ensemble.forget_unused_codes();
        let late = settings.time_limit.filter(|_| work.is_late()).map(|seconds| {
            format!("the time limit of {seconds} s was reached: the model is what could be trained in it")
        });
        // Predictions that calibration changes afterwards say nothing of those the model makes.
        let out_of_fold = choice.out_of_fold.filter(|_| parts.is_none());
        let out_of_fold = match &sorted {
            Some(sorted) => out_of_fold.map(|out| out.for_rows(&sorted.stands_for)).transpose()?,
            None => out_of_fold,
        };
        let mut model = Self {
            calibrated: choice.calibrated,
            candidates: choice.candidates,
            held_out: choice.held_out,
            out_of_fold,
            warnings: [constant_target(&train), few_values(&train), late].into_iter().flatten().collect(),
            interrupted: work.is_stopped(),
            ..Self::of(said, ensemble, train.total_weight())
        };
        model.calibrate_on(parts.as_ref().map(|parts| parts.test.view()))?;
        model.reference = Some(Reference::of(&model, train.inputs())?);
        Ok(model)
    }

    /// Calibrate on what was held out, if anything was.
    pub(super) fn calibrate_on(&mut self, held_out: Option<Samples<'_>>) -> Result<()> {
        let Some(test) = held_out else { return Ok(()) };
        let predictive = self.predict(test.inputs())?;
        let own = calibration::calibrate(self.settings.calibration, &predictive, &test)?;
        let temperature = self.calibrated.temperature * own.temperature;
        self.calibrated = Calibrated { temperature, scores: own.scores, spread: self.calibrated.spread };
        Ok(())
    }
}

/// Samples up to which order and repetition carry no information: those of a full batch, of which none is held out by
/// its place.
pub(super) fn batch_to_sort(settings: &ModelSettings) -> usize {
    if settings.training.validation_fraction > 0.0 {
        return 0;
    }
    settings.training.batch_size.unwrap_or(usize::MAX)
}

/// The head knows what it is given.
pub(super) fn check_task(task: Task, settings: &ModelSettings) -> Result<()> {
    let categorical = matches!(settings.network.head, HeadSettings::Categorical(_));
    if task == Task::Regression && categorical {
        return Err(Error::Conflict {
            first: "head.kind = categorical",
            second: "targets that are no classes",
        });
    }
    Ok(())
}

/// A warning, if a target has few evenly spaced values: its densities depend on how narrow a peak on them may be.
fn few_values(samples: &Samples<'_>) -> Option<String> {
    let spacing = samples.targets().spacings().into_iter().flatten().next()?;
    Some(format!(
        "a target has few values, {spacing} apart: log densities of such targets do not compare between methods, CRPS does"
    ))
}

/// A warning, if a target has no spread to learn noise from.
pub(super) fn constant_target(samples: &Samples<'_>) -> Option<String> {
    let Targets::Values(values) = samples.targets() else { return None };
    if values.ncols() == 1 {
        return Some(
            "there is one sample: nothing is known about its noise, and the intervals mean little".to_owned(),
        );
    }
    let constant = |i: usize| (1..values.ncols()).all(|j| values[(i, j)] == values[(i, 0)]);
    let which: Vec<String> = (0..values.nrows()).filter(|&i| constant(i)).map(|i| i.to_string()).collect();
    (!which.is_empty()).then(|| {
        format!(
            "target {} has one value in all samples: nothing is known about its noise, and the intervals mean little",
            which.join(", ")
        )
    })
}
