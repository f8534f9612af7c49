//! Fit again from where an earlier fit ended: the same networks and scaling, all epochs on the data given.
//!
//! Unlike a stream, whose posterior represents all samples ever seen, the result represents this data only;
//! the earlier fit is a starting point.

use super::calibration::{Calibrated, Calibration};
use super::ensemble::{Ensemble, Member, MemberPlan};
use super::model::Model;
use super::observer::{Observer, Stage, Work};
use super::reference::Reference;
use super::settings::ModelSettings;
use crate::data::{Samples, canonical};
use crate::error::{Error, Result};

impl Model {
    /// Train this model's networks on other samples, with the scaling of the first fit. Everything but the shape,
    /// prior and head of the networks and their number may be set anew, but not to be calibrated. What was chosen for
    /// the first fit stays chosen, and so does what its folds have said of noise; its calibration on held-out samples,
    /// warnings and notes are forgotten.
    pub fn refit(&self, samples: &Samples<'_>, settings: &ModelSettings) -> Result<Self> {
        self.refit_watched(samples, settings, &mut ())
    }

    /// The same while `observer` watches, as in [`Model::fit_watched`].
    pub fn refit_watched(
        &self,
        samples: &Samples<'_>,
        settings: &ModelSettings,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        settings.validate()?;
        if settings.network != self.settings.network || settings.members != self.settings.members {
            return Err(Error::Conflict {
                first: "a warm start",
                second: "another shape, prior, head or number of members than the earlier fit's",
            });
        }
        if settings.calibration != Calibration::None {
            return Err(Error::Conflict {
                first: "calibration on held-out samples",
                second: "a warm start, which may have learned from them before (use calibration = none)",
            });
        }
        self.check_goes_on(samples)?;
        let sorted = canonical(samples, super::fit::batch_to_sort(settings));
        let samples = sorted.as_ref().map_or(*samples, |sorted| sorted.samples.view());
        let work = Work::within(observer, settings.time_limit);
        work.enter(Stage::Training)?;
        // Batches that were chosen stay, unless others are asked for.
        let own_batches = settings.training.batch_size != self.settings.training.batch_size;
        let plan = |member: &Member| {
            let plan = member.plan(settings.training.epochs);
            let batch_size = if own_batches { settings.training.batch_size } else { plan.batch_size };
            MemberPlan { batch_size, ..plan }
        };
        let plans: Vec<MemberPlan> = self.members().iter().map(plan).collect();
        let mut ensemble: Ensemble = self.ensemble.clone();
        work.plan(super::ensemble::all_training_cost(&plans, settings, &ensemble, samples.n_samples()));
        ensemble.train(&samples, &plans, settings, &work)?;
        let mut model = Self {
            // What out-of-fold predictions have said of such networks still holds.
            calibrated: Calibrated { spread: self.calibrated.spread, ..Calibrated::default() },
            candidates: self.candidates.clone(),
            warnings: super::fit::constant_target(&samples).into_iter().collect(),
            interrupted: work.is_stopped(),
            ..Self::of(settings, ensemble, samples.total_weight())
        };
        model.reference = Some(Reference::of(&model, samples.inputs())?);
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::Mat;

    fn line() -> (Mat<f64>, Mat<f64>) {
        let x = Mat::from_fn(1, 40, |_, j| j as f64 / 10.0);
        let y = Mat::from_fn(1, 40, |_, j| (j as f64 / 10.0).sin());
        (x, y)
    }

    fn settings(epochs: usize) -> ModelSettings {
        let mut settings = ModelSettings::fast();
        settings.network.hidden_layer_sizes = vec![8];
        settings.training.epochs = epochs;
        settings
    }

    #[test]
    fn a_refit_of_no_epochs_keeps_the_weights_below_the_top() {
        let (x, y) = line();
        let samples = Samples::new(&x, &y).unwrap();
        let first = Model::fit(&samples, &settings(20)).unwrap();
        let again = first.refit(&samples, &settings(0)).unwrap();
        let hidden = |model: &Model| model.members()[0].network().hidden()[0].working_mean().to_owned();
        // A layer keeps η and solves M = η₂ η₁⁻¹ anew: equal up to ε times the condition of η₁ (below 1e3 here).
        let moved = (hidden(&first) - hidden(&again)).norm_max();
        assert!(moved < 1e3 * f64::EPSILON, "weights moved by {moved}");
    }

    #[test]
    fn a_refit_starts_from_the_earlier_loss() {
        let (x, y) = line();
        let samples = Samples::new(&x, &y).unwrap();
        let first = Model::fit(&samples, &settings(60)).unwrap();
        let again = first.refit(&samples, &settings(2)).unwrap();
        assert!(again.reports()[0].loss[0] < 0.5 * first.reports()[0].loss[0]);
        assert_eq!(again.n_seen, 40.0);
    }

    #[test]
    fn a_refit_with_another_shape_is_refused() {
        let (x, y) = line();
        let samples = Samples::new(&x, &y).unwrap();
        let first = Model::fit(&samples, &settings(1)).unwrap();
        let mut other = settings(1);
        other.network.hidden_layer_sizes = vec![9];
        let refused = first.refit(&samples, &other);
        assert!(matches!(refused, Err(Error::Conflict { first: "a warm start", .. })));
    }

    #[test]
    fn a_refit_is_not_calibrated_and_forgets_the_earlier_calibration() {
        let (x, y) = line();
        let samples = Samples::new(&x, &y).unwrap();
        for calibration in [Calibration::Holdout, Calibration::Conformal] {
            let calibrated = ModelSettings { calibration, ..settings(1) };
            let first = Model::fit(&samples, &calibrated).unwrap();
            assert!(first.calibrated != Calibrated::default());
            let refused = first.refit(&samples, &calibrated);
            assert!(refused.unwrap_err().to_string().contains("calibration on held-out samples"));
            let plain = first.refit(&samples, &settings(1)).unwrap();
            assert_eq!(plain.calibrated, Calibrated::default());
        }
    }
}
