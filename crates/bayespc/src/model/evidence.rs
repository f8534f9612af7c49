//! Free energies of a model's networks on data in original units.
//!
//! Of a network of one layer the negative free energy is a bound on the log evidence and compares models. Of hidden
//! layers it is not (decision 0014): it is here for those who study them.

use rayon::prelude::*;

use super::ensemble::Member;
use super::model::Model;
use crate::data::Samples;
use crate::error::{Error, Result};
use crate::learning::{self, FreeEnergy};

/// Samples whose free energy is taken at a time.
const CHUNK: usize = 1024;

/// Parallel tasks over samples: fixed, so that sums have one order whatever the number of threads, and few,
/// because what each keeps stands between blocks of memory that could be used again.
const SPANS: usize = 8;

type Energies = Vec<Vec<FreeEnergy>>;

impl Model {
    /// Free energy of every layer of every network; weight 2 counts a sample twice.
    ///
    /// The expected log-likelihood is a sum over samples, so they pass through in chunks: only those are copied.
    pub fn free_energy(&self, samples: &Samples<'_>) -> Result<Energies> {
        self.check_inputs(samples.inputs())?;
        let n = samples.n_samples();
        let energy = |start: usize, end: usize| -> Result<Option<Energies>> {
            let Some(chunk) = samples.span(start, end - start) else { return Ok(None) };
            let bins = self.members().iter().map(|member| member.bins);
            let standardised = self.ensemble.standardise_all::<f64>(&chunk, bins)?;
            let one = |member: &Member| {
                let samples = &standardised[&member.bins];
                samples.with_view(member.curve.as_ref(), |data| learning::free_energy(member.network(), data))
            };
            self.members().iter().map(one).collect::<Result<_>>().map(Some)
        };
        let length = n.div_ceil(SPANS).max(CHUNK);
        let spans: Vec<usize> = (0..n).step_by(length).collect();
        let sums: Vec<Option<Energies>> = spans
            .into_par_iter()
            .map(|span| {
                let end = (span + length).min(n);
                (span..end)
                    .step_by(CHUNK)
                    .try_fold(None, |sum, start| Ok(add(sum, energy(start, (start + CHUNK).min(end))?)))
            })
            .collect::<Result<_>>()?;
        let what = "the data with positive sample weight";
        sums.into_iter().fold(None, add).ok_or(Error::Empty { what })
    }
}

/// Free energies of more samples: the posteriors are the same, the log-likelihoods add.
fn add(sum: Option<Energies>, part: Option<Energies>) -> Option<Energies> {
    match (sum, part) {
        (Some(mut sum), Some(part)) => {
            for (sum, part) in sum.iter_mut().flatten().zip(part.iter().flatten()) {
                sum.expected_log_likelihood += part.expected_log_likelihood;
            }
            Some(sum)
        }
        (sum, part) => sum.or(part),
    }
}
