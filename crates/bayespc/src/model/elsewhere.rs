//! Networks that are trained elsewhere: a fit says which it needs, and goes on once it has them.
//!
//! ```text
//! known = {}
//! loop: match Model::fit_step(samples, settings, known, {})
//!     Step::Model(model)   that is it
//!     Step::Wanted(jobs)   anybody, anywhere, for some of them:
//!                          Step::Made(networks) = Model::fit_step(samples, settings, known, some)
//!                          known = known ∪ networks
//! ```
//!
//! A fit is a function of samples and settings, so whoever has both and the networks so far comes to the same point and
//! trains the network asked for there. A network is known by what it is made of: its plan, its seed and the samples as it
//! sees them. The model has the same bits as that of [`Model::fit`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use super::ensemble::{Member, MemberPlan, Standardised};
use super::model::Model;
use super::observer::Work;
use super::settings::ModelSettings;
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::real::Real;

/// Networks by their keys: the bytes of each, none at all of one that cannot be trained.
pub type Networks = BTreeMap<String, Vec<u8>>;

/// How far a fit comes with the networks that are known.
#[derive(Debug)]
pub enum Step {
    /// To its end.
    Model(Box<Model>),
    /// To these networks, which can be trained side by side: key and cost of each, in the order of the fit.
    Wanted(Vec<(String, u64)>),
    /// To those that were to be trained here.
    Made(Networks),
}

/// What a fit knows of networks, and what it finds it needs.
pub(crate) struct Elsewhere<'a> {
    known: &'a Networks,
    here: &'a BTreeSet<String>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    wanted: BTreeMap<String, u64>,
    made: Networks,
}

impl Model {
    /// Fit a model as far as that is possible with the networks that are `known`, or train those of them that are asked
    /// for by `here`. A limit of time is an error: what is trained by then would depend on who trains.
    pub fn fit_step(
        samples: &Samples<'_>,
        settings: &ModelSettings,
        known: &Networks,
        here: &BTreeSet<String>,
    ) -> Result<Step> {
        if settings.time_limit.is_some() {
            return Err(Error::Conflict {
                first: "time_limit",
                second: "networks that are trained elsewhere",
            });
        }
        let elsewhere = Elsewhere { known, here, found: Mutex::default() };
        let result = Self::fit_by(samples, settings, &Work::with_help(&mut (), &elsewhere));
        let waits = elsewhere.waits();
        let found = elsewhere.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !here.is_empty() {
            return Ok(Step::Made(found.made));
        }
        if waits {
            return Ok(Step::Wanted(found.wanted.into_iter().collect()));
        }
        result.map(|model| Step::Model(Box::new(model)))
    }
}

impl Elsewhere<'_> {
    /// Whether a network is needed that is not known.
    pub(super) fn waits(&self) -> bool {
        !self.found().wanted.is_empty()
    }

    /// The network of a plan, if it is known or is to be trained here; none if it has to come from elsewhere.
    pub(super) fn member<T: Real>(
        &self,
        (plan, seed, settings): (&MemberPlan, u64, &ModelSettings),
        samples: &Standardised<T>,
        cost: u64,
        train: impl Fn() -> Result<Option<Member>>,
    ) -> Result<Option<Member>> {
        let key = key(plan, seed, settings, samples)?;
        if let Some(bytes) = self.known.get(&key) {
            // Whoever could not train it says why once more.
            return if bytes.is_empty() { train() } else { Member::from_bytes(bytes).map(Some) };
        }
        if self.here.contains(&key) {
            let bytes = match train() {
                Ok(Some(member)) => member.to_bytes()?,
                Ok(None) | Err(_) => Vec::new(),
            };
            self.found().made.insert(key.clone(), bytes);
        }
        self.found().wanted.insert(key, cost);
        Ok(None)
    }

    fn found(&self) -> std::sync::MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that differs where networks would.
fn key<T: Real>(
    plan: &MemberPlan,
    seed: u64,
    settings: &ModelSettings,
    samples: &Standardised<T>,
) -> Result<String> {
    let text = serde_json::to_string(&(plan, seed, &settings.rule, &settings.training))
        .map_err(|_| Error::NotFitted)?;
    // 64-bit FNV-1a, over numbers instead of bytes.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    text.bytes().for_each(|byte| add(u64::from(byte)));
    samples.numbers().for_each(|x| add(x.to_bits()));
    Ok(format!("{hash:016x}"))
}
