//! What each input of a row has to do with its prediction.
//!
//! ```text
//! Q(x) = Q(b) + Σ_i values_i          b: the baseline, a row that is average in every input
//! ```
//!
//! Values are integrated gradients of the linearised predictor from b straight to x; `prediction::linearised::path` says how
//! they are exact. Over networks c with weights w_c:
//!
//! ```text
//! mean        Σ w_c m_c
//! aleatoric   Σ w_c A_c
//! epistemic   Σ w_c E_c + Σ w_c (m_c − m̄)²
//! ```
//!
//! and of a model of classes, with p̄ = Σ w_c p_c and the parts of the entropy as `Predictive::class_decomposition` has them,
//!
//! ```text
//! mean        p̄(k)
//! aleatoric   Σ w_c ⟨H(p(· | a))⟩_c
//! epistemic   H(p̄) − aleatoric
//! ```
//!
//! with the factors of scaling, temperature and calibration on them. All is in double precision.

use std::collections::{BTreeMap, BTreeSet};

use faer::{Mat, MatRef};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::classes::{Classes, NoiseEntropy, Probability};
use super::reading::{Mean, Variance};
use crate::base::check::check_finite;
use crate::data::{Inputs, Line, Task};
use crate::error::{Error, Result};
use crate::model::{Member, Model};
use crate::prediction::{
    CLASS_DRAWS, CodeDraws, Follow, Method, Predictive, Reading, disagreement, entropy_of_mean,
};
use crate::real::Precision;

/// What is explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Quantity {
    /// The mean, or the probability of a class.
    #[default]
    Mean,
    /// Variance of the noise, or the entropy that noise leaves of the class.
    Aleatoric,
    /// Variance, or entropy, that more data would take away.
    Epistemic,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Mean, Self::Aleatoric, Self::Epistemic];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Aleatoric => "aleatoric",
            Self::Epistemic => "epistemic",
        }
    }
}

/// Attributions that add up, with the base, to what they explain.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The quantity at the baseline, for every sample.
    pub base: Vec<f64>,
    /// Part of every input in what the quantity is more, `d × n`.
    pub values: Mat<f64>,
}

impl Explanation {
    /// The quantity of every sample: base and values together.
    pub fn totals(&self) -> Vec<f64> {
        let total = |(j, base): (usize, &f64)| base + self.values.col(j).iter().sum::<f64>();
        self.base.iter().enumerate().map(total).collect()
    }

    /// Mean absolute value of every input: how much it matters over these samples.
    pub fn importance(&self) -> Vec<f64> {
        let n = self.values.ncols().max(1) as f64;
        self.values.row_iter().map(|row| row.iter().map(|value| value.abs()).sum::<f64>() / n).collect()
    }

    /// Values of columns that are several inputs each: `owners` says which column an input belongs to. What was added up
    /// before is added up still.
    pub fn by_column(&self, owners: &[usize]) -> Result<Self> {
        let (found, expected) = (owners.len(), self.values.nrows());
        if found != expected {
            return Err(Error::Shape { what: "owners", axis: "inputs", found, expected });
        }
        let n_columns = owners.iter().max().map_or(0, |last| last + 1);
        let mut values = Mat::zeros(n_columns, self.values.ncols());
        for j in 0..values.ncols() {
            for (i, &owner) in owners.iter().enumerate() {
                values[(owner, j)] += self.values[(i, j)];
            }
        }
        Ok(Self { base: self.base.clone(), values })
    }
}

impl Model {
    /// What each input of these samples has to do with a quantity of target `target` (or class), from the average row of
    /// the training data. The entropies of a model of classes are of all classes together, whatever `target` is: those of
    /// [`Predictive::class_decomposition`] by [`CLASS_DRAWS`], but not cut off at 0 where draws exceed the total.
    pub fn explain<'a>(
        &self,
        inputs: impl Into<Inputs<'a>>,
        of: Quantity,
        target: usize,
    ) -> Result<Explanation> {
        let scaling = self.input_scaling();
        let average = Mat::from_fn(scaling.dim(), 1, |i, _| scaling.offset[i]);
        self.explain_from(inputs, of, target, average.as_ref())
    }

    /// The same from other rows, `d × m`: attributions and base are means over these.
    pub fn explain_from<'a>(
        &self,
        inputs: impl Into<Inputs<'a>>,
        of: Quantity,
        target: usize,
        baselines: MatRef<'_, f64>,
    ) -> Result<Explanation> {
        let inputs = inputs.into();
        self.check_inputs(inputs)?;
        self.check_explained(target)?;
        let (found, expected) = (baselines.nrows(), self.n_features());
        if found != expected {
            return Err(Error::Shape { what: "baseline", axis: "features", found, expected });
        }
        if baselines.ncols() == 0 {
            return Err(Error::Empty { what: "baseline" });
        }
        check_finite("baseline", baselines)?;
        let predictive = self.predictive_in(baselines.into(), Method::Linearised, Precision::F64)?;
        let at_baselines = self.read(&predictive, of, target)?;
        let share = 1.0 / at_baselines.len() as f64;
        let base = share * at_baselines.iter().sum::<f64>();
        let factors = self.factors(&predictive, of, target);
        let rows: Vec<Vec<f64>> = (0..inputs.n_samples())
            .into_par_iter()
            .map(|j| {
                let row: Vec<f64> = (0..expected).map(|i| inputs.value(i, j)).collect();
                let mut sums = vec![0.0; expected];
                for baseline in baselines.col_iter() {
                    let from: Vec<f64> = baseline.iter().copied().collect();
                    let parts = self.attribute(&from, &row, of, target, factors)?;
                    sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += share * part);
                }
                Ok(sums)
            })
            .collect::<Result<_>>()?;
        let values = Mat::from_fn(expected, rows.len(), |i, j| rows[j][i]);
        Ok(Explanation { base: vec![base; rows.len()], values })
    }

    fn check_explained(&self, target: usize) -> Result<()> {
        if target >= self.n_targets() {
            let must_be = "the number of a target or class, from 0";
            return Err(Error::Setting { name: "target", value: target as f64, must_be });
        }
        Ok(())
    }

    /// The quantity of every sample.
    fn read(&self, predictive: &Predictive, of: Quantity, target: usize) -> Result<Vec<f64>> {
        let values = match (self.task(), of) {
            (Task::Classification { .. }, Quantity::Mean) => {
                predictive.class_probabilities(self.temperature())?
            }
            (Task::Classification { .. }, _) => {
                let (draws, seed) = CLASS_DRAWS;
                let parts = predictive.class_entropies(self.temperature(), draws, seed)?;
                let is_noise = of == Quantity::Aleatoric;
                let read = |(total, noise): (f64, f64)| if is_noise { noise } else { total - noise };
                return Ok(parts.into_iter().map(read).collect());
            }
            (_, Quantity::Mean) => predictive.mean(),
            (_, Quantity::Aleatoric) => predictive.aleatoric_variance(),
            (_, Quantity::Epistemic) => predictive.epistemic_variance(),
        };
        Ok(values.row(target).iter().copied().collect())
    }

    /// Factors on what single networks say and on how far they are apart, from standardised targets to the units of the
    /// data.
    fn factors(&self, predictive: &Predictive, of: Quantity, target: usize) -> (f64, f64) {
        if self.task() != Task::Regression {
            // What more data would take away is the total less the noise; the total comes besides.
            return (if of == Quantity::Epistemic { -1.0 } else { 1.0 }, 0.0);
        }
        let scale = self.target_scaling().scale[target];
        let recalibrated = predictive.recalibrated().map_or(1.0, |z| z[target].variance());
        let variance = recalibrated * scale * scale;
        match of {
            Quantity::Mean => (scale, 0.0),
            Quantity::Aleatoric => (variance * self.temperature(), 0.0),
            Quantity::Epistemic => (variance * self.temperature(), variance),
        }
    }

    /// Values of one row.
    fn attribute(
        &self,
        from: &[f64],
        to: &[f64],
        of: Quantity,
        target: usize,
        (factor, apart): (f64, f64),
    ) -> Result<Vec<f64>> {
        let bins: BTreeSet<usize> = self.members().iter().map(|member| member.bins).collect();
        let line = |bins: usize| Line::new(self.input_scaling(), self.codes().get(&bins), from, to);
        let lines: BTreeMap<usize, Line> =
            bins.into_iter().map(|bins| Ok((bins, line(bins)?))).collect::<Result<_>>()?;
        let total: f64 = self.members().iter().map(|member| member.weight).sum();
        let networks: Vec<(f64, Follow<'_>)> = self
            .members()
            .iter()
            .map(|member| Ok((member.weight / total, member.predictor().follow(&lines[&member.bins])?)))
            .collect::<Result<_>>()?;
        let numbers: Vec<usize> = (0..self.n_targets()).collect();
        let draws = CodeDraws::new(self.n_targets(), CLASS_DRAWS.0, CLASS_DRAWS.1)?;
        let asked = Asked { of, target, classes: &numbers, draws: &draws };
        let parts: Vec<Vec<f64>> = self
            .members()
            .par_iter()
            .zip(&networks)
            .map(|(member, (_, network))| Ok(network.attribute(&*self.reading(member, asked)?)))
            .collect::<Result<_>>()?;
        let mut sums = vec![0.0; from.len()];
        for ((weight, _), parts) in networks.iter().zip(&parts) {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += factor * weight * part);
        }
        if apart > 0.0 && networks.len() > 1 {
            let curves: Vec<_> = self.members().iter().map(|member| member.curve).collect();
            let parts = disagreement(&networks, &curves, target);
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += apart * part);
        }
        if self.task() != Task::Regression && of == Quantity::Epistemic {
            let members = self.members().iter();
            let readings: Vec<_> =
                members.map(|member| self.classes(member, &numbers)).collect::<Result<_>>()?;
            let parts = entropy_of_mean(&networks, &readings);
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
        Ok(sums)
    }

    /// What is read off one network.
    fn reading<'a>(&self, member: &'a Member, asked: Asked<'a>) -> Result<Box<dyn Reading + 'a>> {
        let Asked { of, target, classes, draws } = asked;
        if self.task() != Task::Regression {
            let classes = self.classes(member, classes)?;
            return Ok(match of {
                Quantity::Mean => Box::new(Probability { of: classes, class: target }),
                Quantity::Aleatoric | Quantity::Epistemic => Box::new(NoiseEntropy { of: classes, draws }),
            });
        }
        if of == Quantity::Mean {
            return Ok(Box::new(Mean { target, curve: member.curve }));
        }
        Ok(Box::new(Variance {
            head: &member.network().settings().head,
            target: [target],
            noise: member.predictor().output_noise()?[(target, target)],
            temperature: member.temperature,
            curve: member.curve,
            spread: self.spread(),
            epistemic: of == Quantity::Epistemic,
        }))
    }

    /// The probabilities of one network.
    fn classes<'a>(&self, member: &'a Member, numbers: &'a [usize]) -> Result<Classes<'a>> {
        Ok(Classes {
            head: &member.network().settings().head,
            numbers,
            noise: member.predictor().output_noise()?,
            temperatures: (member.temperature, self.temperature()),
        })
    }
}

/// What is asked of every network.
#[derive(Clone, Copy)]
struct Asked<'a> {
    of: Quantity,
    target: usize,
    /// 0 … K−1.
    classes: &'a [usize],
    draws: &'a CodeDraws,
}
