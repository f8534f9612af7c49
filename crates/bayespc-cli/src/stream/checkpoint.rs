//! Where a stream stands, kept in a model file: the same command goes on from there, to the same bits.
//!
//! A checkpoint is the model learned so far, with a note that says after which chunk. Going on reads the file from
//! its beginning and passes over what has been learned; a digest of all that is passed over tells a file that is no
//! longer the same.

use std::path::Path;

use anyhow::{Context, Result};
use bayespc::model::{Model, ModelSettings};
use bayespc_data::{Encoding, Targets};
use faer::Mat;
use serde::{Deserialize, Serialize};

use super::order::Order;
use super::sums::Sums;
use crate::failure::usage;
use crate::fit::ENCODING_NOTE;
use crate::input::Part;
use crate::output::Output;
use crate::predict::{encoding_of, read_model};

/// Note of the model that says where the stream stands.
const NOTE: &str = "stream";

/// A file to write again and again.
#[derive(Debug)]
pub struct Checkpoint {
    /// The file.
    pub out: Output,
    /// After how many rows.
    pub every: usize,
}

/// A model to begin with.
#[derive(Debug)]
pub struct Beginning {
    /// The model.
    pub model: Model,
    /// How it reads columns, which stays as it is.
    pub encoding: Encoding,
    /// Of its file.
    pub digest: Digest,
}

impl Beginning {
    /// Read the model of `bayespc fit`.
    pub fn read(path: &Path) -> Result<Self> {
        let mut model = read_model(path)?;
        // A checkpoint may be begun with, as the model that it is.
        model.notes_mut().remove(NOTE);
        let encoding = encoding_of(&model, path)?;
        let digest = Digest::of(&model.to_bytes()?);
        Ok(Self { model, encoding, digest })
    }
}

/// Where a stream stands, between two chunks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Chunks learned.
    pub chunks: usize,
    /// Scores so far, and rows.
    pub sums: Sums,
    /// Targets so far.
    pub order: Order,
    /// Of all that was learned.
    pub digest: Digest,
    /// Of the model the stream began with; none if it began with nothing.
    pub from: Option<Digest>,
}

/// A number that differs where what was read differs: 64-bit FNV-1a over words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut digest = Self::default();
        for byte in bytes {
            digest.word(u64::from(*byte));
        }
        digest
    }

    /// Add rows.
    pub fn add(&mut self, part: &Part) {
        self.matrix(&part.features);
        match &part.targets {
            Targets::Regression(values) => self.matrix(values),
            Targets::Classification(labels) => {
                for label in labels {
                    self.word(*label as u64);
                }
            }
        }
    }

    fn matrix(&mut self, values: &Mat<f64>) {
        for column in values.col_iter() {
            column.iter().for_each(|x| self.word(x.to_bits()));
        }
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

impl Checkpoint {
    /// The model and where it stands, if there is such a file. It must be of this encoding, these settings and the
    /// same beginning.
    pub fn read(
        &self,
        encoding: &Encoding,
        settings: &ModelSettings,
        from: Option<Digest>,
    ) -> Result<Option<(Model, State)>> {
        let path = self.out.path();
        if !path.exists() {
            return Ok(None);
        }
        let mut model = read_model(path)?;
        let Some(note) = model.notes_mut().remove(NOTE) else {
            return Err(usage(format!(
                "--checkpoint {} is a model, but no checkpoint of a stream: give another name",
                path.display()
            )));
        };
        let state: State = serde_json::from_str(&note)
            .with_context(|| format!("{}: the note `{NOTE}` is damaged", path.display()))?;
        if model.notes().get(ENCODING_NOTE) != Some(&serde_json::to_string(encoding)?) {
            return Err(other(path, "another file, or of other columns"));
        }
        if model.settings() != settings {
            return Err(other(path, "other settings"));
        }
        if state.from != from {
            return Err(other(path, "a stream that began with another model"));
        }
        Ok(Some((model, state)))
    }

    /// Keep a model and where it stands; its notes say what it is.
    pub fn write(&self, model: &mut Model, state: &State) -> Result<()> {
        model.notes_mut().insert(NOTE.to_owned(), serde_json::to_string(state)?);
        let bytes = model.to_bytes();
        model.notes_mut().remove(NOTE);
        self.out.clone().write_whole(&bytes?)
    }
}

/// A checkpoint that does not belong to this command.
pub fn other(path: &Path, what: &str) -> anyhow::Error {
    usage(format!(
        "--checkpoint {} is of {what}: remove it to begin anew, or give another name",
        path.display()
    ))
}
