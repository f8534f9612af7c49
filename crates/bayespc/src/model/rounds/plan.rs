//! Which passes over a table make a model, and which rows each of them uses.
//!
//! ```text
//! table         means, deviations, and some rows for the edges of codes
//! round 1 … R   one step of every network each, from the statistics of a batch of rows
//! weights       the exact last pass: η₁ of every layer, the output layer by its conjugate update
//! curvature     the metric of the hidden layers
//! calibration   rows that a network has not seen say how sure it may be
//! ```
//!
//! Rows are drawn by their number in the table, without a shuffle: in every sweep over the table each row falls in one of
//! its rounds. A share of the rows is held out of each network, other ones of each.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::part::MOST_ROWS;
use crate::base::check::{at_least_one, positive};
use crate::base::random::of_row;
use crate::data::Task;
use crate::error::{Error, Result};
use crate::learning::Schedule;

/// Rows that a chunk should have in a pass.
const IN_A_CHUNK: f64 = 512.0;

/// Rows of the table in a chunk, at least and at most.
const CHUNK: (u64, u64) = (1024, 4096);

/// Uses of draws by row: sweep s of the rounds uses `SWEEP + s`.
const HOLD_OUT: u64 = 1;
pub(super) const DRAW: u64 = 2;
const SWEEP: u64 = 16;

/// Rows that are held out of a network at most, and the share of the table all networks may have held out.
const MOST_HELD_OUT: (f64, f64) = (5000.0, 0.5);

/// How rounds learn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoundSettings {
    /// Rounds, each of which moves every network once.
    pub rounds: u64,
    /// Rows of a round; all of a table that has no more.
    pub batch_rows: u64,
    /// κ: how far a round moves a network.
    pub schedule: Schedule,
    /// Largest root mean square of the errors at rest.
    pub trust: f64,
    /// λ: ridge on the feedback's covariance. A round has many rows, so that it is well known and needs little.
    pub damping: f64,
    /// ρ: how fast that covariance follows the rounds.
    pub rate: f64,
    /// Share of the rows that is held out of each network to calibrate it, at most 5000; 0: it is not calibrated.
    pub held_out: f64,
}

impl Default for RoundSettings {
    fn default() -> Self {
        Self {
            rounds: 200,
            batch_rows: 8192,
            schedule: Schedule::Cosine { first: 0.5, last: 0.1 },
            trust: 0.5,
            damping: 0.003,
            rate: 0.3,
            held_out: 0.1,
        }
    }
}

impl RoundSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        self.schedule.validate()?;
        positive("rounds.trust", self.trust)?;
        positive("rounds.damping", self.damping)?;
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            return Err(Error::Setting { name: "rounds.rate", value: self.rate, must_be: "in (0, 1]" });
        }
        at_least_one("rounds.batch_rows", usize::try_from(self.batch_rows).unwrap_or(usize::MAX))?;
        at_least_one("rounds.rounds", usize::try_from(self.rounds).unwrap_or(usize::MAX))?;
        if !(0.0..=0.5).contains(&self.held_out) {
            let (name, must_be) = ("rounds.held_out", "in [0, 0.5]");
            return Err(Error::Setting { name, value: self.held_out, must_be });
        }
        Ok(())
    }
}

/// A pass over the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "pass", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Pass {
    /// Means and deviations of the columns.
    Table,
    /// One step of every network.
    Round {
        /// Which one, from 1.
        index: u64,
        /// Of how many.
        of: u64,
    },
    /// The last pass: weights.
    Weights,
    /// The last pass: the hidden layers' metric.
    Curvature,
    /// Rows that networks have not seen.
    Calibration,
}

impl std::fmt::Display for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Table => write!(f, "table"),
            Self::Round { index, of } => write!(f, "round {index} of {of}"),
            Self::Weights => write!(f, "weights"),
            Self::Curvature => write!(f, "curvature"),
            Self::Calibration => write!(f, "calibration"),
        }
    }
}

/// Where the making of a model stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub task: Task,
    pub settings: RoundSettings,
    /// Seed of what is drawn, but for the rounds: there every network has its own.
    pub seed: u64,
    pub members: usize,
    /// The pass that is due.
    pub pass: Pass,
    /// Rows of the table and their weight, once they are known; 0 before.
    pub rows: u64,
    pub weight: f64,
}

impl Plan {
    /// Check what a file may say of it.
    pub fn validate(&self) -> Result<()> {
        self.settings.validate()?;
        at_least_one("rounds.members", self.members)?;
        let refused = |name, value, must_be| Err(Error::Setting { name, value, must_be });
        let is_table = self.pass == Pass::Table;
        if self.rows > MOST_ROWS || (self.rows == 0 && !is_table) {
            return refused("rounds.rows", self.rows as f64, "the rows of the table, at most 2⁴⁸");
        }
        if !(self.weight.is_finite() && self.weight >= 0.0) {
            return refused("rounds.weight", self.weight, "finite and not negative");
        }
        match self.pass {
            Pass::Round { index, of } if of != self.settings.rounds || !(1..=of).contains(&index) => {
                refused("rounds.pass", index as f64, "one of the rounds of the settings")
            }
            _ => Ok(()),
        }
    }

    /// The pass behind this one.
    pub fn after(&self) -> Option<Pass> {
        match self.pass {
            Pass::Table => Some(Pass::Round { index: 1, of: self.settings.rounds }),
            Pass::Round { index, of } if index < of => Some(Pass::Round { index: index + 1, of }),
            Pass::Round { .. } => Some(Pass::Weights),
            Pass::Weights => Some(Pass::Curvature),
            Pass::Curvature if self.held_out_share() > 0.0 => Some(Pass::Calibration),
            Pass::Curvature | Pass::Calibration => None,
        }
    }

    /// Rows of the table in a chunk of this pass.
    pub fn chunk(&self) -> u64 {
        let Pass::Round { .. } = self.pass else { return CHUNK.0 };
        let rows = IN_A_CHUNK * self.rounds_of_a_sweep() as f64;
        (rows as u64).next_power_of_two().clamp(CHUNK.0, CHUNK.1)
    }

    /// Rounds in which every row is used once.
    pub fn rounds_of_a_sweep(&self) -> u64 {
        self.rows.div_ceil(self.settings.batch_rows).max(1)
    }

    /// Share of the rows that is held out of each network.
    pub fn held_out_share(&self) -> f64 {
        let rows = (self.rows as f64).max(1.0);
        let most = (MOST_HELD_OUT.0 / rows).min(MOST_HELD_OUT.1 / self.members as f64);
        self.settings.held_out.min(most)
    }

    /// The network, if any, that a row is held out of.
    pub fn held_out_of(&self, row: u64) -> Option<usize> {
        let share = self.held_out_share();
        if share == 0.0 {
            return None;
        }
        // 53 bits are all that a number between 0 and 1 has.
        let place = (of_row(self.seed, HOLD_OUT, row) >> 11) as f64 / (1u64 << 53) as f64;
        Some((place / share) as usize).filter(|&member| member < self.members)
    }

    /// Those of these rounds, counted from 0, in which a row falls for a network with this seed.
    pub fn rounds_of(&self, seed: u64, row: u64, rounds: Range<u64>) -> impl Iterator<Item = u64> {
        let n = self.rounds_of_a_sweep();
        let round = move |sweep: u64| sweep * n + of_row(seed, SWEEP + sweep, row) % n;
        (rounds.start / n..rounds.end.div_ceil(n)).map(round).filter(move |round| rounds.contains(round))
    }

    /// Whether a row is used in this pass by the network `member` with this seed.
    pub fn uses(&self, member: usize, seed: u64, row: u64) -> bool {
        if self.held_out_of(row) == Some(member) {
            return false;
        }
        let Pass::Round { index, .. } = self.pass else { return true };
        self.rounds_of_a_sweep() == 1 || self.rounds_of(seed, row, index - 1..index).next().is_some()
    }
}
