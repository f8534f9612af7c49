//! Settings of the feedback rule.

use serde::{Deserialize, Serialize};

use crate::base::check;
use crate::error::{Error, Result};
use crate::learning::Schedule;

/// Settings of the feedback rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeedbackSettings {
    /// s: how much of the error at rest is taken.
    pub gain: f64,
    /// λ: ridge on C_l, relative to its mean eigenvalue.
    pub damping: f64,
    /// Largest root mean square of ε_l in a batch.
    pub trust: f64,
    /// ρ: rate of the running mean C_l.
    pub rate: f64,
    /// κ_t.
    pub schedule: Schedule,
    /// Scale batch statistics by N/|B|, so that the posterior represents N samples.
    pub scale_batches: bool,
    /// k: batches between two refreshes of the hidden layers' V_l and A_l⁻¹. At 1 every step is exact.
    pub refresh_every: u64,
    /// Learn the first layer in coordinates where its column precision, known from all the data beforehand, is
    /// the identity: for wide inputs, and for data that are all there. A stream does not use it; a model does by itself
    /// from 64 inputs on.
    pub whiten_input: bool,
}

impl Default for FeedbackSettings {
    fn default() -> Self {
        Self {
            gain: 1.0,
            damping: 0.3,
            trust: 0.2,
            rate: 0.05,
            schedule: Schedule::Cosine { first: 0.3, last: 0.005 },
            scale_batches: true,
            refresh_every: 1,
            whiten_input: false,
        }
    }
}

impl FeedbackSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        let positive = [
            ("feedback.gain", self.gain),
            ("feedback.damping", self.damping),
            ("feedback.trust", self.trust),
        ];
        positive.into_iter().try_for_each(|(name, value)| check::positive(name, value))?;
        if !(self.rate > 0.0 && self.rate <= 1.0) {
            return Err(Error::Setting { name: "feedback.rate", value: self.rate, must_be: "in (0, 1]" });
        }
        if self.refresh_every == 0 {
            return Err(Error::Setting { name: "feedback.refresh_every", value: 0.0, must_be: "at least 1" });
        }
        self.schedule.validate()
    }
}
