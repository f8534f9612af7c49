//! A model in the making as bytes: a model file with one more note, or before the first pass a file that says what the
//! model is to be.

use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};

use super::Rounds;
use super::plan::Plan;
use crate::error::{Error, ModelFileError, Result};
use crate::model::model::Model;
use crate::model::settings::ModelSettings;

/// Note of the model that says what is still to be done.
const NOTE: &str = "rounds";

/// Metadata entry of a file without a model.
const KEY: &str = "bayespc-rounds";

/// Version this program writes and reads.
const VERSION: u32 = 1;

/// What a model is to be.
#[derive(Serialize, Deserialize)]
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
                let text = serde_json::to_string(&beginning).map_err(wrong)?;
                let metadata = HashMap::from([(KEY.to_owned(), text)]);
                let none: [(&str, TensorView<'_>); 0] = [];
                Ok(serialize(none, Some(metadata)).map_err(ModelFileError::from)?)
            }
            (None, None) => Err(Error::NotFitted),
        }
    }

    /// Read it from the bytes of its file; a finished model is one for which no pass is due.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = |error: serde_json::Error| ModelFileError::Metadata { key: format!("{NOTE}: {error}") };
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(ModelFileError::from)?;
        if let Some(text) = metadata.metadata().as_ref().and_then(|entries| entries.get(KEY)) {
            let beginning: Beginning = serde_json::from_str(text).map_err(damaged)?;
            if beginning.version != VERSION {
                let found = beginning.version.to_string();
                return Err(ModelFileError::Version { found, supported: VERSION }.into());
            }
            beginning.settings.validate()?;
            return Self::sealed(beginning.settings, Some(beginning.plan), None, beginning.notes);
        }
        let mut model = Model::from_bytes(bytes)?;
        let note = model.notes_mut().remove(NOTE);
        let plan: Option<Plan> = note.map(|note| serde_json::from_str(&note)).transpose().map_err(damaged)?;
        if let Some(plan) = &plan {
            plan.settings.validate()?;
            if plan.members != model.members().len() {
                return Err(ModelFileError::Metadata { key: format!("{NOTE}: members") }.into());
            }
        }
        Self::sealed(model.settings().clone(), plan, Some(model), BTreeMap::new())
    }

    /// With the digest of its bytes, which its statistics carry.
    pub(super) fn sealed(
        settings: ModelSettings,
        plan: Option<Plan>,
        model: Option<Model>,
        notes: BTreeMap<String, String>,
    ) -> Result<Self> {
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
