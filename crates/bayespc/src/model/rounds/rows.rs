//! Rows of a table with their numbers, copied.

use faer::MatRef;

use crate::data::{Samples, Targets, Task};
use crate::error::Result;

/// Some rows of a table, in rising order of their numbers; none has weight 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows {
    /// Number of each row in the whole table.
    pub numbers: Vec<u64>,
    /// Inputs, row after row.
    pub inputs: Vec<f64>,
    /// Targets, row after row; of classes their numbers.
    pub targets: Vec<f64>,
    /// Weights.
    pub weights: Vec<f64>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Those of samples `first_row`, `first_row + 1` … whose number is wanted.
    pub fn of(samples: &Samples<'_>, first_row: u64, wanted: impl Fn(u64) -> bool) -> Self {
        let mut rows = Self::default();
        for j in 0..samples.n_samples() {
            let weight = samples.weights().map_or(1.0, |weights| weights[j]);
            let number = first_row + j as u64;
            if weight == 0.0 || !wanted(number) {
                continue;
            }
            rows.numbers.push(number);
            rows.weights.push(weight);
            rows.inputs.extend((0..samples.n_features()).map(|i| samples.inputs().value(i, j)));
            let targets = samples.targets();
            rows.targets.extend((0..targets.n_keys()).map(|i| targets.key(i, j)));
        }
        rows
    }

    /// Those whose number is wanted.
    pub fn only(&self, wanted: impl Fn(u64) -> bool) -> Self {
        let mut rows = Self::default();
        (0..self.len()).filter(|&j| wanted(self.numbers[j])).for_each(|j| rows.push(self, j));
        rows
    }

    /// Append row `j` of others.
    pub fn push(&mut self, others: &Self, j: usize) {
        let (d, k) = others.widths();
        self.numbers.push(others.numbers[j]);
        self.weights.push(others.weights[j]);
        self.inputs.extend_from_slice(&others.inputs[j * d..(j + 1) * d]);
        self.targets.extend_from_slice(&others.targets[j * k..(j + 1) * k]);
    }

    /// Append others.
    pub fn append(&mut self, others: &Self) {
        self.numbers.extend_from_slice(&others.numbers);
        self.weights.extend_from_slice(&others.weights);
        self.inputs.extend_from_slice(&others.inputs);
        self.targets.extend_from_slice(&others.targets);
    }

    /// Numbers of a row: inputs and targets.
    pub fn widths(&self) -> (usize, usize) {
        let n = self.len().max(1);
        (self.inputs.len() / n, self.targets.len() / n)
    }

    /// What `work` makes of them as samples. Weights that are all 1 are none: it must not matter who says so.
    pub fn with_samples<R>(&self, task: Task, work: impl FnOnce(&Samples<'_>) -> Result<R>) -> Result<R> {
        let (d, k) = self.widths();
        let inputs = MatRef::from_column_major_slice(&self.inputs, d, self.len());
        let weighted = self.weights.iter().any(|&weight| weight != 1.0);
        let work = |samples: Samples<'_>| {
            let samples = if weighted { samples.weighted(&self.weights)? } else { samples };
            work(&samples)
        };
        match task {
            Task::Regression => {
                let values = MatRef::from_column_major_slice(&self.targets, k, self.len());
                work(Samples::new(inputs, values)?)
            }
            Task::Classification { classes } => {
                let labels: Vec<usize> = self.targets.iter().map(|&label| label as usize).collect();
                work(Samples::new(inputs, Targets::Classes { labels: &labels, classes })?)
            }
        }
    }
}
