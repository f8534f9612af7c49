//! A model in the making as bytes: a model file with one more note, or before the first pass a file that says what the
//! model is to be.

use std::collections::BTreeMap;

use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::Rounds;
use super::plan::{Pass, Plan};
use crate::base::container::{Tensors, checked_header, to_json};
use crate::error::{Error, ModelFileError, Result};
use crate::model::model::Model;
use crate::model::settings::ModelSettings;

/// Note of the model that says what is still to be done.
const NOTE: &str = "rounds";

/// Metadata entry of a file without a model.
const KEY: &str = "bayespc-rounds";

/// Version this program writes and reads.
const VERSION: u32 = 2;

/// What a model is to be.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beginning {
    version: u32,
    settings: ModelSettings,
    plan: Plan,
    notes: BTreeMap<String, String>,
}

impl Rounds {
    /// The bytes of its file: an ordinary model file, but before the first pass.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let wrong = |_| ModelFileError::Metadata { key: format!("{NOTE} (not representable as JSON)") };
        match (&self.model, &self.plan) {
            (Some(model), Some(plan)) => {
                let mut model = model.clone();
                let note = serde_json::to_string(plan).map_err(wrong)?;
                model.notes_mut().insert(NOTE.to_owned(), note);
                model.to_bytes()
            }
            (Some(model), None) => model.to_bytes(),
            (None, Some(plan)) => {
                let beginning = Beginning {
                    version: VERSION,
                    settings: self.settings.clone(),
                    plan: plan.clone(),
                    notes: self.notes.clone(),
                };
                Tensors::default().serialize(KEY, to_json(&beginning)?)
            }
            (None, None) => Err(Error::NotFitted),
        }
    }

    /// Read it from the bytes of its file; a finished model is one for which no pass is due.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = |error: serde_json::Error| ModelFileError::Metadata { key: format!("{NOTE}: {error}") };
        let wrong = |what: &str| ModelFileError::Metadata { key: format!("{NOTE}: {what}") };
        let file = SafeTensors::deserialize(bytes).map_err(ModelFileError::from)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(ModelFileError::from)?;
        if metadata.metadata().as_ref().is_some_and(|entries| entries.contains_key(KEY)) {
            let value = checked_header(bytes, &file, KEY, VERSION)?;
            let Beginning { settings, plan, notes, .. } = serde_json::from_value(value).map_err(damaged)?;
            Self::check_settings(&settings, &plan.settings, plan.task)?;
            if plan.pass != Pass::Table || plan.members != settings.members {
                return Err(wrong("the pass or the members").into());
            }
            return Self::sealed(settings, Some(plan), None, notes);
        }
        let mut model = Model::from_bytes(bytes)?;
        let note = model.notes_mut().remove(NOTE);
        let plan: Option<Plan> = note.map(|note| serde_json::from_str(&note)).transpose().map_err(damaged)?;
        if let Some(plan) = &plan {
            Self::check_settings(model.settings(), &plan.settings, plan.task)?;
            if plan.pass == Pass::Table
                || plan.members != model.members().len()
                || plan.task != model.task()
                || model.members().iter().any(|member| member.network().is_wide())
            {
                return Err(wrong("the pass, the members or the task").into());
            }
        }
        Self::sealed(model.settings().clone(), plan, Some(model), BTreeMap::new())
    }

    /// With the digest of its bytes, which its statistics carry, once the plan is one that can be.
    pub(super) fn sealed(
        settings: ModelSettings,
        plan: Option<Plan>,
        model: Option<Model>,
        notes: BTreeMap<String, String>,
    ) -> Result<Self> {
        plan.iter().try_for_each(Plan::validate)?;
        let mut rounds = Self { settings, plan, model, notes, digest: 0 };
        rounds.digest = digest(&rounds.to_bytes()?);
        Ok(rounds)
    }
}

/// A number that differs where bytes differ: 64-bit FNV-1a over words of eight bytes.
fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    for word in words {
        add(u64::from_le_bytes(*word));
    }
    for byte in rest {
        add(u64::from(*byte));
    }
    hash
}
