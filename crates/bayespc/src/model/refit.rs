//! Fit again from where an earlier fit ended: the same networks and scaling, all epochs on the data given.
//!
//! Unlike a stream, whose posterior represents all samples ever seen, the result represents this data only;
//! the earlier fit is a starting point.

use faer::MatRef;

use crate::error::{Error, Result};
use crate::model::calibration::Calibration;
use crate::model::{Model, ModelSettings, Progress, Targets};
use crate::real::Real;

impl Model {
    /// Train this model's networks on `input` (`d × n`) and targets, with the scaling of the first fit.
    /// Everything but the shape, prior and head of the networks and the number of members may be set anew, but
    /// not to be calibrated. Calibration of the earlier fit is forgotten.
    pub fn refit<S: Real>(
        &self,
        input: MatRef<'_, S>,
        targets: Targets<'_>,
        weights: Option<&[f64]>,
        settings: &ModelSettings,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        settings.validate()?;
        let same =
            |a: &ModelSettings, b: &ModelSettings| (&a.network, &a.variants) == (&b.network, &b.variants);
        if !same(settings, &self.settings) || settings.members != self.members.len() {
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
        if targets.task() != self.task {
            return Err(Error::Conflict { first: "these targets", second: "the task of the first fit" });
        }
        self.check_input(input)?;
        let earlier = Self {
            settings: settings.clone(),
            temperature: settings.temperature,
            scores: Vec::new(),
            ..self.clone()
        };
        earlier.train(input, targets, weights, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Unwatched;
    use faer::Mat;

    fn line() -> (Mat<f64>, Mat<f64>) {
        let x = Mat::from_fn(1, 40, |_, j| j as f64 / 10.0);
        let y = Mat::from_fn(1, 40, |_, j| (j as f64 / 10.0).sin());
        (x, y)
    }

    fn settings(epochs: usize) -> ModelSettings {
        let mut settings = ModelSettings::default();
        settings.network.hidden_layer_sizes = vec![8];
        settings.training.epochs = epochs;
        settings
    }

    #[test]
    fn a_refit_of_no_epochs_keeps_the_weights_below_the_top() {
        let (x, y) = line();
        let targets = Targets::Values(y.as_ref());
        let first = Model::fit(x.as_ref(), targets, None, &settings(20), &mut Unwatched).unwrap();
        let again = first.refit(x.as_ref(), targets, None, &settings(0), &mut Unwatched).unwrap();
        let hidden = |model: &Model| model.members[0].network.hidden()[0].working_mean().to_owned();
        // A layer keeps η and solves M = η₂ η₁⁻¹ anew: equal up to ε times the condition of η₁ (below 1e3 here).
        let moved = (hidden(&first) - hidden(&again)).norm_max();
        assert!(moved < 1e3 * f64::EPSILON, "weights moved by {moved}");
    }

    #[test]
    fn a_refit_starts_from_the_earlier_loss() {
        let (x, y) = line();
        let targets = Targets::Values(y.as_ref());
        let first = Model::fit(x.as_ref(), targets, None, &settings(60), &mut Unwatched).unwrap();
        let again = first.refit(x.as_ref(), targets, None, &settings(2), &mut Unwatched).unwrap();
        assert!(again.reports[0].loss[0] < 0.5 * first.reports[0].loss[0]);
        assert_eq!(again.n_seen, 40.0);
    }

    #[test]
    fn a_refit_with_another_shape_is_refused() {
        let (x, y) = line();
        let targets = Targets::Values(y.as_ref());
        let first = Model::fit(x.as_ref(), targets, None, &settings(1), &mut Unwatched).unwrap();
        let mut other = settings(1);
        other.network.hidden_layer_sizes = vec![9];
        let refused = first.refit(x.as_ref(), targets, None, &other, &mut Unwatched);
        assert!(matches!(refused, Err(Error::Conflict { first: "a warm start", .. })));
    }

    #[test]
    fn a_refit_is_not_calibrated_and_forgets_the_earlier_calibration() {
        let (x, y) = line();
        let targets = Targets::Values(y.as_ref());
        for calibration in [Calibration::Holdout, Calibration::Conformal] {
            let calibrated = ModelSettings { calibration, ..settings(1) };
            let first = Model::fit(x.as_ref(), targets, None, &calibrated, &mut Unwatched).unwrap();
            assert!(first.temperature != 1.0 || !first.scores.is_empty());
            let refused = first.refit(x.as_ref(), targets, None, &calibrated, &mut Unwatched);
            assert!(refused.unwrap_err().to_string().contains("calibration on held-out samples"));
            let plain = first.refit(x.as_ref(), targets, None, &settings(1), &mut Unwatched).unwrap();
            assert_eq!((plain.temperature, plain.scores.len()), (1.0, 0));
        }
    }
}
