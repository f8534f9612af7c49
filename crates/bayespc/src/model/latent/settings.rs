//! What can be set about a latent model.

use serde::{Deserialize, Serialize};

use crate::base::check::{at_least_one, positive};
use crate::error::{Error, Result};

/// More latents or parts than a table can say anything about: a slip of the keyboard should not fill the memory.
const MOST: usize = 10_000;

/// Everything that can be set about a latent model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LatentSettings {
    /// Number of latents k; none: chosen by the density of cells taken out. 0: columns do not depend on each other
    /// within a part.
    pub latents: Option<usize>,
    /// Number of linear parts; none: chosen the same way. 1: factor analysis.
    pub parts: Option<usize>,
    /// Steps of learning at most.
    pub iterations: usize,
    /// Learning ends when the mean log density of a row rises by less than this in a step.
    pub tolerance: f64,
    /// Seed of everything drawn while fitting.
    pub seed: u64,
}

impl Default for LatentSettings {
    fn default() -> Self {
        Self { latents: None, parts: None, iterations: 100, tolerance: 1e-3, seed: 0 }
    }
}

impl LatentSettings {
    /// Every setting is in its range.
    pub fn validate(&self) -> Result<()> {
        at_least_one("iterations", self.iterations)?;
        positive("tolerance", self.tolerance)?;
        self.parts.map_or(Ok(()), |parts| at_least_one("parts", parts))?;
        for (name, value) in [("latents", self.latents), ("parts", self.parts)] {
            if let Some(value) = value.filter(|&value| value > MOST) {
                return Err(Error::Setting { name, value: value as f64, must_be: "at most 10000" });
            }
        }
        Ok(())
    }
}
