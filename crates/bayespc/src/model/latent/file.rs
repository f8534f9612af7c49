//! A latent model as the bytes of a safetensors file, and back.
//!
//! Tensors: `scaling.table.{offset,scale}`, `range.{least,most}`, and of the whole table and of each part (`whole`, `part.0`, …) `mean`, `noise`
//! and `loadings` (`d × k`). The metadata entry is JSON: version, settings, sizes, shrinkage, log weights of the parts, candidates, notes.

use std::collections::BTreeMap;

use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::model::LatentModel;
use super::part::Part;
use super::search::LatentCandidate;
use super::settings::LatentSettings;
use crate::error::{ModelFileError, Result};
use crate::model::tensors::{Reader, Tensors, checked_header, to_json};

/// Version this program writes and reads.
const VERSION: u32 = 2;

/// The metadata entry: another than that of a network's file, so that neither is taken for the other.
const KEY: &str = "bayespc.latent";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    settings: LatentSettings,
    n_columns: usize,
    n_latents: usize,
    shrinkage: f64,
    log_weights: Vec<f64>,
    candidates: Vec<LatentCandidate>,
    iterations: usize,
    notes: BTreeMap<String, String>,
}

impl LatentModel {
    /// The bytes of the model's file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let header = Header {
            version: VERSION,
            settings: self.settings.clone(),
            n_columns: self.n_columns(),
            n_latents: self.n_latents(),
            shrinkage: self.shrinkage,
            log_weights: self.parts.iter().map(|part| part.log_weight).collect(),
            candidates: self.candidates.clone(),
            iterations: self.iterations,
            notes: self.notes.clone(),
        };
        let mut tensors = Tensors::default();
        tensors.put_row("scaling.table.offset", &self.scaling.offset);
        tensors.put_row("scaling.table.scale", &self.scaling.scale);
        let ends = |end: usize| self.range.iter().map(|range| range[end]).collect::<Vec<_>>();
        tensors.put_row("range.least", &ends(0));
        tensors.put_row("range.most", &ends(1));
        put(&mut tensors, "whole", &self.whole);
        for (i, part) in self.parts.iter().enumerate() {
            put(&mut tensors, &format!("part.{i}"), part);
        }
        tensors.serialize(KEY, to_json(&header)?)
    }

    /// Whether these are the bytes of a latent model's file, damaged or not: its header says so.
    pub fn is_in(bytes: &[u8]) -> bool {
        // The library reads no header of a file that is cut short.
        let entry = || {
            let (length, rest) = bytes.split_first_chunk()?;
            let header = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            let header: serde_json::Value = serde_json::from_slice(header).ok()?;
            header.get("__metadata__")?.get(KEY).cloned()
        };
        entry().is_some()
    }

    /// Read a model from the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes).map_err(ModelFileError::from)?;
        let value = checked_header(bytes, &file, KEY, VERSION)?;
        let malformed = |what: String| ModelFileError::Metadata { key: format!("{KEY}: {what}") };
        let header: Header = serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?;
        header.settings.validate()?;
        if header.n_columns == 0 || header.log_weights.is_empty() {
            return Err(malformed("a size is zero".to_owned()).into());
        }
        if !header.log_weights.iter().all(|weight| weight.is_finite()) {
            return Err(malformed("log_weights".to_owned()).into());
        }
        if !(0.0..=1.0).contains(&header.shrinkage) {
            return Err(malformed("shrinkage".to_owned()).into());
        }
        let reader = Reader { file };
        let ends = |end: &str| reader.values(&format!("range.{end}"), &[header.n_columns]);
        let range: Vec<[f64; 2]> =
            ends("least")?.into_iter().zip(ends("most")?).map(<[f64; 2]>::from).collect();
        if range.iter().any(|&[least, most]| least > 0.0 || most < 0.0) {
            return Err(malformed("range".to_owned()).into());
        }
        let part = |name: &str, weight| part(&reader, name, weight, header.n_columns, header.n_latents);
        Ok(Self {
            scaling: reader.scaling("table", header.n_columns)?,
            range,
            shrinkage: header.shrinkage,
            whole: part("whole", 0.0)?,
            parts: header
                .log_weights
                .iter()
                .enumerate()
                .map(|(i, &weight)| part(&format!("part.{i}"), weight))
                .collect::<Result<_>>()?,
            settings: header.settings,
            candidates: header.candidates,
            iterations: header.iterations,
            notes: header.notes,
        })
    }
}

fn put(tensors: &mut Tensors, name: &str, part: &Part) {
    tensors.put_row(&format!("{name}.mean"), &part.mean);
    tensors.put_row(&format!("{name}.noise"), &part.noise);
    tensors.put(&format!("{name}.loadings"), &part.loadings);
}

fn part(reader: &Reader<'_>, name: &str, log_weight: f64, d: usize, k: usize) -> Result<Part> {
    let noise = reader.values(&format!("{name}.noise"), &[d])?;
    for &value in &noise {
        crate::base::check::positive("noise", value)?;
    }
    Ok(Part {
        log_weight,
        mean: reader.values(&format!("{name}.mean"), &[d])?,
        loadings: reader.matrix(&format!("{name}.loadings"), d, k)?,
        noise,
    })
}
