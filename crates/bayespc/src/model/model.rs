//! A fitted model: networks, scaling, calibration, settings and notes.

use std::collections::BTreeMap;

use super::calibration::Calibrated;
use super::ensemble::{Ensemble, Member};
use super::reference::Reference;
use super::selection::{Candidate, HeldOutScores, OutOfFold};
use super::settings::ModelSettings;
use super::spread::Spread;
use crate::data::{Codes, Standardiser, Task};
use crate::error::Result;
use crate::prediction::Method;
use crate::training::TrainingReport;

/// A fitted model. It is what the command and the Python package fit, keep and load.
#[derive(Clone, Debug)]
pub struct Model {
    pub(super) settings: ModelSettings,
    pub(super) ensemble: Ensemble,
    pub(super) calibrated: Calibrated,
    /// What the search tried.
    pub(super) candidates: Vec<Candidate>,
    /// How the networks predicted samples they had not seen.
    pub(super) held_out: Option<HeldOutScores>,
    pub(super) out_of_fold: Option<OutOfFold>,
    /// What a user should know before trusting the model.
    pub(super) warnings: Vec<String>,
    /// Whether training was stopped before its end.
    pub(super) interrupted: bool,
    pub(super) n_seen: f64,
    /// What the samples look like that it was fitted to; none of a stream.
    pub(super) reference: Option<Reference>,
    pub(super) notes: BTreeMap<String, String>,
}

impl Model {
    /// Networks and the settings they were asked for with, after samples of this weight; nothing is known of it besides.
    pub(super) fn of(settings: &ModelSettings, ensemble: Ensemble, n_seen: f64) -> Self {
        Self {
            settings: settings.clone(),
            ensemble,
            calibrated: Calibrated::default(),
            candidates: Vec::new(),
            held_out: None,
            out_of_fold: None,
            warnings: Vec::new(),
            interrupted: false,
            n_seen,
            reference: None,
            notes: BTreeMap::new(),
        }
    }

    /// Settings the model was asked for. What was chosen stands in [`Model::members`].
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// What it predicts.
    pub fn task(&self) -> Task {
        self.ensemble.task
    }

    /// Number of input features.
    pub fn n_features(&self) -> usize {
        self.ensemble.input_scaling.dim()
    }

    /// Number of target columns, or classes.
    pub fn n_targets(&self) -> usize {
        self.ensemble.target_scaling.dim()
    }

    /// Factor on the predictive covariance, or temperature of the class probabilities.
    pub fn temperature(&self) -> f64 {
        self.settings.temperature * self.calibrated.temperature
    }

    /// Scaling of the inputs.
    pub fn input_scaling(&self) -> &Standardiser {
        &self.ensemble.input_scaling
    }

    /// Scaling of the targets.
    pub fn target_scaling(&self) -> &Standardiser {
        &self.ensemble.target_scaling
    }

    /// The trained networks.
    pub fn members(&self) -> &[Member] {
        &self.ensemble.members
    }

    /// What training did, per network.
    pub fn reports(&self) -> Vec<&TrainingReport> {
        self.members().iter().map(|member| &member.report).collect()
    }

    /// What the search tried; empty if nothing was searched.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// How samples were predicted by those networks that had not learned from them; none if nothing was searched.
    pub fn held_out(&self) -> Option<&HeldOutScores> {
        self.held_out.as_ref()
    }

    /// What networks predicted for samples that they had not learned from, to plot and score; none if nothing was searched
    /// or samples were held out for calibration, nor of a model that comes from a file.
    pub fn out_of_fold(&self) -> Option<&OutOfFold> {
        self.out_of_fold.as_ref()
    }

    /// What out-of-fold predictions have said of noise, epistemic variance and tails; none if nothing was searched.
    pub fn spread(&self) -> Option<Spread> {
        self.calibrated.spread
    }

    /// Codes of the columns, by their number of bins; empty where networks see columns as they are.
    pub fn codes(&self) -> &BTreeMap<usize, Codes> {
        &self.ensemble.codes
    }

    /// What a user should know before trusting the model.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether training was stopped before its end.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Samples learned from, in all calls.
    pub fn n_seen(&self) -> f64 {
        self.n_seen
    }

    /// What the samples look like that it was fitted to, and how unsure it is of them; none if it has learned from a
    /// stream, whose samples are gone.
    pub fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    /// Notes kept with the model, such as column names; the library does not read them.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// Notes, to write.
    pub fn notes_mut(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.notes
    }

    /// Predict by this method from now on.
    pub fn set_method(&mut self, method: Method) -> Result<()> {
        method.validate()?;
        self.settings.method = method;
        Ok(())
    }
}
