//! Records in memory: which units are complete, and values by group.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// One measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the data set.
    pub dataset: String,
    /// Name of the learner, with whatever distinguishes its settings.
    pub learner: String,
    /// Number of the train/test split; 0 where there is one.
    pub split: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Epoch after which the value was measured; none for the result of the whole run.
    pub epoch: Option<u32>,
    /// Name of the metric, with its unit where it has one.
    pub metric: String,
    /// The value; NaN and infinity are kept, because a run that diverged is a result.
    pub value: f64,
}

impl Record {
    /// The run this value comes from.
    pub fn unit(&self) -> Unit {
        Unit {
            experiment: self.experiment.clone(),
            dataset: self.dataset.clone(),
            learner: self.learner.clone(),
            split: self.split,
            seed: self.seed,
        }
    }
}

/// One run: what is done, or done again, as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the data set.
    pub dataset: String,
    /// Name of the learner.
    pub learner: String,
    /// Number of the split.
    pub split: u32,
    /// Seed of the run.
    pub seed: u64,
}

impl Unit {
    /// A value measured in this run.
    pub fn record(&self, epoch: Option<u32>, metric: &str, value: f64) -> Record {
        Record {
            experiment: self.experiment.clone(),
            dataset: self.dataset.clone(),
            learner: self.learner.clone(),
            split: self.split,
            seed: self.seed,
            epoch,
            metric: metric.to_owned(),
            value,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { experiment, dataset, learner, split, seed } = self;
        write!(f, "{experiment}/{dataset}/{learner}, split {split}, seed {seed}")
    }
}

/// The records of complete units.
#[derive(Clone, Debug, Default)]
pub struct Records {
    rows: Vec<Record>,
    complete: BTreeSet<Unit>,
}

impl Records {
    /// All values, in the order they were written.
    pub fn rows(&self) -> &[Record] {
        &self.rows
    }

    /// The complete units, in alphabetical order.
    pub fn units(&self) -> impl Iterator<Item = &Unit> {
        self.complete.iter()
    }

    /// Whether this run is recorded, so that an interrupted experiment can go on with the next.
    pub fn is_complete(&self, unit: &Unit) -> bool {
        self.complete.contains(unit)
    }

    /// Values of the records that `select` gives a key, by key.
    ///
    /// Final RMSE by data set and learner: `|r| (r.metric == "rmse" && r.epoch.is_none())
    /// .then(|| (r.dataset.clone(), r.learner.clone()))`.
    pub fn group_by<K: Ord>(&self, select: impl Fn(&Record) -> Option<K>) -> BTreeMap<K, Vec<f64>> {
        let mut groups: BTreeMap<K, Vec<f64>> = BTreeMap::new();
        for record in &self.rows {
            if let Some(key) = select(record) {
                groups.entry(key).or_default().push(record.value);
            }
        }
        groups
    }

    /// These records and others.
    pub fn with(&self, others: &Self) -> Self {
        Self {
            rows: self.rows.iter().chain(&others.rows).cloned().collect(),
            complete: self.complete.union(&others.complete).cloned().collect(),
        }
    }

    /// Add the rows of one whole unit.
    pub(super) fn extend(&mut self, unit: Unit, rows: Vec<Record>) {
        self.rows.extend(rows);
        self.complete.insert(unit);
    }
}
