//! Predictions in the units of the data.

use faer::Mat;

use super::model::Model;
use crate::data::{Inputs, Task};
use crate::error::{Error, Result};
use crate::prediction::{Method, Predictive};
use crate::real::Precision;

impl Model {
    /// Predict, in the units of the data, by the method of the settings.
    pub fn predict<'a>(&self, inputs: impl Into<Inputs<'a>>) -> Result<Predictive> {
        self.predictive(inputs.into(), self.settings.method)
    }

    /// Predict by another method.
    pub fn predict_by<'a>(&self, inputs: impl Into<Inputs<'a>>, method: Method) -> Result<Predictive> {
        self.predictive(inputs.into(), method)
    }

    /// Class probabilities, `K × n`.
    pub fn predict_probabilities<'a>(&self, inputs: impl Into<Inputs<'a>>) -> Result<Mat<f64>> {
        self.probabilities(inputs.into(), self.settings.method)
    }

    /// Class probabilities by another method.
    pub fn predict_probabilities_by<'a>(
        &self,
        inputs: impl Into<Inputs<'a>>,
        method: Method,
    ) -> Result<Mat<f64>> {
        self.probabilities(inputs.into(), method)
    }

    fn probabilities(&self, inputs: Inputs<'_>, method: Method) -> Result<Mat<f64>> {
        match self.task() {
            Task::Regression => {
                Err(Error::Conflict { first: "class probabilities", second: "a regression model" })
            }
            Task::Classification { .. } => {
                self.predictive(inputs, method)?.class_probabilities(self.temperature())
            }
        }
    }

    fn predictive(&self, inputs: Inputs<'_>, method: Method) -> Result<Predictive> {
        self.predictive_in(inputs, method, self.settings.precision)
    }

    /// The same in another working precision.
    pub(super) fn predictive_in(
        &self,
        inputs: Inputs<'_>,
        method: Method,
        precision: Precision,
    ) -> Result<Predictive> {
        self.check_inputs(inputs)?;
        let change = |predictive| self.calibrated.spread(predictive);
        let mixture = self.ensemble.predict(inputs, method, precision, &change)?;
        if self.task() != Task::Regression {
            return Ok(mixture);
        }
        let temperature = self.temperature();
        let mixture = if temperature == 1.0 { mixture } else { mixture.tempered(temperature) };
        Ok(self.calibrated.apply(mixture))
    }

    pub(super) fn check_inputs(&self, inputs: Inputs<'_>) -> Result<()> {
        let (found, expected) = (inputs.n_features(), self.n_features());
        if found != expected {
            return Err(Error::Shape { what: "input", axis: "features", found, expected });
        }
        inputs.check_finite()
    }
}
