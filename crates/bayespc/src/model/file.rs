//! A model as the bytes of a safetensors file, and back.
//!
//! Per member there are the prior and posterior natural parameters of every layer and what the feedback rule has learned,
//! and for all the scaling. One metadata entry, `bayespc`, holds version, settings and notes as JSON. Any safetensors
//! reader opens it; `tensors` has what model files share, those of `latent` included.

use std::collections::BTreeMap;

use faer::Mat;
use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::calibration::Calibrated;
use super::ensemble::{Ensemble, Member, MemberPlan};
use super::model::Model;
use super::reference::Reference;
use super::selection::{Candidate, HeldOutScores};
use super::settings::ModelSettings;
use super::spread::Spread;
use super::tensors::{Reader, Tensors, checked_header, to_json};
use crate::data::{Codes, Task};
use crate::error::{Error, ModelFileError, Result};
use crate::network::{Layer, Network};
use crate::training::TrainingReport;

/// Version this program writes and reads.
pub const VERSION: u32 = 5;

/// The metadata entry.
const KEY: &str = "bayespc";

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    settings: ModelSettings,
    task: Task,
    /// Factor from calibration, besides that of the settings.
    calibrated_temperature: f64,
    /// Held-out samples behind conformal intervals.
    conformal: usize,
    n_features: usize,
    n_targets: usize,
    n_seen: f64,
    /// What the samples look like that it was fitted to.
    reference: Option<Reference>,
    /// Edges of the columns' codes, by their number of bins.
    codes: Vec<Codes>,
    /// What out-of-fold predictions say of noise and tails.
    spread: Option<Spread>,
    /// How the networks predicted samples they had not seen.
    held_out: Option<HeldOutScores>,
    members: Vec<MemberHeader>,
    candidates: Vec<Candidate>,
    warnings: Vec<String>,
    interrupted: bool,
    notes: BTreeMap<String, String>,
}

/// What a network is and how far it has come.
#[derive(Serialize, Deserialize)]
struct MemberHeader {
    plan: MemberPlan,
    hidden_noise: bool,
    steps: u64,
    feedback_steps: u64,
    report: TrainingReport,
}

impl Model {
    /// The bytes of the model's file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.members().is_empty() {
            return Err(Error::NotFitted);
        }
        let header = Header {
            version: VERSION,
            settings: self.settings.clone(),
            task: self.task(),
            calibrated_temperature: self.calibrated.temperature,
            conformal: self.calibrated.scores.first().map_or(0, Vec::len),
            n_features: self.n_features(),
            n_targets: self.n_targets(),
            n_seen: self.n_seen,
            reference: self.reference.clone(),
            codes: self.ensemble.codes.values().cloned().collect(),
            spread: self.calibrated.spread,
            held_out: self.held_out.clone(),
            members: self.members().iter().map(Member::header).collect(),
            candidates: self.candidates.clone(),
            warnings: self.warnings.clone(),
            interrupted: self.interrupted,
            notes: self.notes.clone(),
        };
        let mut tensors = Tensors::default();
        for (which, scaling) in [("input", self.input_scaling()), ("target", self.target_scaling())] {
            tensors.put_row(&format!("scaling.{which}.offset"), &scaling.offset);
            tensors.put_row(&format!("scaling.{which}.scale"), &scaling.scale);
        }
        for (i, scores) in self.calibrated.scores.iter().enumerate() {
            tensors.put_row(&format!("conformal.{i}"), scores);
        }
        for (m, member) in self.members().iter().enumerate() {
            member.put(m, &mut tensors);
        }
        tensors.serialize(KEY, to_json(&header)?)
    }

    /// Read a model from the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes).map_err(ModelFileError::from)?;
        let header = read_header(bytes, &file)?;
        let reader = Reader { file };
        let (d_in, d_out) = (header.n_features, header.n_targets);
        let codes: BTreeMap<usize, Codes> =
            header.codes.into_iter().map(|codes| (codes.bins(), codes)).collect();
        let width = |bins: usize| d_in + codes.get(&bins).map_or(0, Codes::width);
        let member = |(m, own): (usize, &MemberHeader)| reader.member(m, own, width(own.plan.bins), d_out);
        let members = header.members.iter().enumerate().map(member).collect::<Result<Vec<_>>>()?;
        let scores = |i: usize| reader.values(&format!("conformal.{i}"), &[header.conformal]);
        let conformal = if header.conformal == 0 { 0 } else { d_out };
        Ok(Self {
            calibrated: Calibrated {
                temperature: header.calibrated_temperature,
                scores: (0..conformal).map(scores).collect::<Result<_>>()?,
                spread: header.spread,
            },
            ensemble: Ensemble {
                task: header.task,
                input_scaling: reader.scaling("input", d_in)?,
                target_scaling: reader.scaling("target", d_out)?,
                codes,
                members,
            },
            settings: header.settings,
            candidates: header.candidates,
            held_out: header.held_out,
            out_of_fold: None,
            warnings: header.warnings,
            interrupted: header.interrupted,
            n_seen: header.n_seen,
            reference: header.reference,
            notes: header.notes,
        })
    }
}

/// What a file of one network says of it.
#[derive(Serialize, Deserialize)]
struct SingleHeader {
    member: MemberHeader,
    n_inputs: usize,
    n_targets: usize,
}

impl Member {
    fn header(&self) -> MemberHeader {
        MemberHeader {
            plan: self.plan(self.report.epochs),
            hidden_noise: self.network().hidden_noise(),
            steps: self.steps,
            feedback_steps: self.feedback.1,
            report: self.report.clone(),
        }
    }

    fn put(&self, m: usize, tensors: &mut Tensors) {
        for (name, layer) in named_layers(m, self.network()) {
            if let Some(wide) = layer.wide() {
                tensors.put_wide(&name, wide);
                continue;
            }
            tensors.put_natural(&format!("{name}.prior"), layer.prior());
            tensors.put_natural(&format!("{name}.posterior"), &layer.natural());
        }
        if self.network().is_wide() {
            // It does not learn on.
            return;
        }
        for (l, covariance) in self.feedback.0.iter().enumerate() {
            tensors.put(&format!("member.{m}.hidden.{l}.feedback_cov"), covariance);
        }
    }

    /// The network alone, on its way between programs of this version.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let (n_inputs, n_targets) = (self.network().d_input(), self.network().n_targets());
        let header = SingleHeader { member: self.header(), n_inputs, n_targets };
        let mut tensors = Tensors::default();
        self.put(0, &mut tensors);
        tensors.serialize(KEY, to_json(&header)?)
    }

    /// Read it back.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(ModelFileError::from)?;
        let text = metadata.metadata().as_ref().and_then(|entries| entries.get(KEY));
        let malformed = || ModelFileError::Metadata { key: KEY.to_owned() };
        let header: SingleHeader =
            serde_json::from_str(text.ok_or_else(malformed)?).map_err(|_| malformed())?;
        header.member.plan.validate()?;
        let reader = Reader { file: SafeTensors::deserialize(bytes).map_err(ModelFileError::from)? };
        reader.member(0, &header.member, header.n_inputs, header.n_targets)
    }
}

fn read_header(bytes: &[u8], file: &SafeTensors<'_>) -> Result<Header> {
    let value = checked_header(bytes, file, KEY, VERSION)?;
    let malformed = |error: serde_json::Error| ModelFileError::Metadata { key: format!("{KEY}: {error}") };
    let header: Header = serde_json::from_value(value).map_err(malformed)?;
    header.settings.validate()?;
    header.members.iter().try_for_each(|member| member.plan.validate())?;
    crate::base::check::positive("calibrated_temperature", header.calibrated_temperature)?;
    header.codes.iter().try_for_each(|codes| codes.validate(header.n_features))?;
    header.spread.iter().try_for_each(Spread::validate)?;
    for bins in header.members.iter().map(|member| member.plan.bins).filter(|&bins| bins > 0) {
        if !header.codes.iter().any(|codes| codes.bins() == bins) {
            return Err(ModelFileError::Metadata { key: format!("{KEY}: codes of {bins} bins") }.into());
        }
    }
    if !(header.n_seen.is_finite() && header.n_seen >= 0.0) {
        return Err(ModelFileError::Metadata { key: format!("{KEY}: n_seen") }.into());
    }
    if header.reference.as_ref().is_some_and(|reference| !reference.is_of(header.n_features)) {
        return Err(ModelFileError::Metadata { key: format!("{KEY}: reference") }.into());
    }
    if header.members.is_empty() || header.n_features == 0 || header.n_targets == 0 {
        return Err(ModelFileError::Metadata { key: format!("{KEY}: a size is zero") }.into());
    }
    Ok(header)
}

fn named_layers(m: usize, network: &Network<f64>) -> impl Iterator<Item = (String, &Layer<f64>)> {
    let hidden =
        network.hidden().iter().enumerate().map(move |(l, layer)| (format!("member.{m}.hidden.{l}"), layer));
    let blocks = network.output().blocks().iter().enumerate();
    hidden.chain(blocks.map(move |(b, layer)| (format!("member.{m}.output.{b}"), layer)))
}

/// What a model file has beside tensors of numbers: layers and networks.
impl Reader<'_> {
    fn layer(&self, name: &str, d_post: usize, d_pre: usize) -> Result<Layer<f64>> {
        if self.is_wide(name) {
            return self.wide(name, d_post, d_pre);
        }
        Layer::from_natural(
            self.natural(&format!("{name}.prior"), d_post, d_pre)?,
            self.natural(&format!("{name}.posterior"), d_post, d_pre)?,
        )
    }

    fn member(&self, m: usize, header: &MemberHeader, n_features: usize, n_targets: usize) -> Result<Member> {
        let settings = header.plan.network.clone();
        let mut below = n_features;
        let mut hidden = Vec::new();
        let mut covariances = Vec::new();
        for (l, &width) in settings.hidden_layer_sizes.iter().enumerate() {
            let name = format!("member.{m}.hidden.{l}");
            hidden.push(self.layer(&name, width, below.saturating_add(1))?);
            covariances.push(if self.is_wide(&name) {
                Mat::new()
            } else {
                self.matrix(&format!("{name}.feedback_cov"), width, width)?
            });
            below = width;
        }
        let blocks = settings.head.head().blocks(n_targets, &settings.prior);
        let output = blocks
            .iter()
            .enumerate()
            .map(|(b, block)| {
                self.layer(&format!("member.{m}.output.{b}"), block.rows, below.saturating_add(1))
            })
            .collect::<Result<Vec<_>>>()?;
        let network =
            Network::from_parts(settings, n_features, n_targets, hidden, output, header.hidden_noise);
        let feedback = (covariances, header.feedback_steps);
        Ok(Member::new(network, &header.plan, feedback, header.steps, header.report.clone()))
    }
}
