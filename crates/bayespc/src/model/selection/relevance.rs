//! Prior variances of the inputs, by what columns tell of samples held out.
//!
//! ```text
//! I_c = L(column c shuffled) − L(as it is)          of samples that the network has not learned from
//! s²  = mean of I_c² over the columns with I_c < 0    what chance makes of a column that tells nothing
//! v_i ∝ √max(I_c − s, 0)                            of every input i that tells of column c; their mean over columns is 1
//! ```
//!
//! However closely a network has fitted a column that tells nothing, shuffling it makes predictions of unseen samples no
//! worse on average. Weights themselves say less: those of such a column are as large as those of the others, and the
//! evidence of a column's own variance is that of an overfitted network (decision 0028). ½ I_c is the variance of what a
//! prediction owes to column c, so that I_c itself would be the natural v; its root errs on the side of keeping a column.
//!
//! A network with these variances fits less noise and can say better which columns tell something, so this is done again
//! as long as it is better. Then other codes are worth a trial, finer ones too: those of columns that tell nothing are
//! silent with them.

use faer::MatRef;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::race::Race;
use crate::base::random::stream;
use crate::data::Targets;
use crate::error::Result;
use crate::metrics;
use crate::model::ensemble::{Member, MemberPlan, Standardised, predict_member};
use crate::model::settings::InputScaling;
use crate::prediction::Method;
use crate::real::{Precision, Real};

/// Columns at most: of more, each tells too little to be told from chance in good time.
const MANY: usize = 1024;

/// Samples of a fold that are predicted with a column shuffled at most, and how many times it is shuffled.
const SAMPLES: usize = 1000;
const SHUFFLES: usize = 3;

/// Factors lie in this range.
const RANGE: (f64, f64) = (1e-3, 1e2);

/// Samples that a kind has predicted without having learned from them before its columns are judged, if there are so many.
const ENOUGH: usize = 300;

/// Times that variances are set anew at most.
const ROUNDS: usize = 3;

/// First of the streams of the seed that shuffle columns.
const SHUFFLE_STREAM: u64 = 1 << 32;

/// The lowest log probability of a class that counts: one sample must not decide for all.
const LEAST: f64 = -10.0;

impl Race<'_, '_> {
    /// Try kinds like `best` whose inputs have variances by what they tell, one after the other, as long as each is
    /// better than the one before. All of them join `contenders`, which are compared by so many `folds`; the last that was
    /// better is what to try more around, or `best` itself.
    pub(super) fn relevant(
        &mut self,
        mut best: usize,
        folds: usize,
        contenders: &mut Vec<usize>,
    ) -> Result<usize> {
        let search = &self.settings.search;
        // Priors set by hand stay, and pixels are what they are by their place.
        let pixels = self.settings.input_scaling == InputScaling::Whole;
        let asked = search.relevance && !search.prior_vars.is_empty() && !pixels;
        if !asked || !(2..=MANY).contains(&self.samples.n_features()) {
            return Ok(best);
        }
        for _ in 0..ROUNDS {
            let asked = ENOUGH.div_ceil(self.folds[0].len()).clamp(folds, self.folds.len());
            let cost: u64 = (0..asked + folds).map(|f| self.cost(best, f % self.folds.len())).sum();
            if !self.work.has_time_for(cost) {
                break;
            }
            self.advance(&[best], asked, false)?;
            self.judge_by(best, folds);
            let Some(factors) = self.factors(best)? else { break };
            let mut plan = self.kinds[best].plan.clone();
            plan.network.prior.input_factors = self.of_inputs(&factors, plan.bins);
            let own = self.kinds.len();
            self.add(vec![plan]);
            self.advance(&[own], folds, false)?;
            contenders.push(own);
            if self.best(&[best, own], 1) != [own] {
                break;
            }
            best = own;
        }
        Ok(best)
    }

    /// Kinds like `c` with other codes of the columns. Where columns tell nothing, their codes cost nothing either.
    pub(super) fn with_other_codes(&self, c: usize) -> Vec<MemberPlan> {
        let plan = &self.kinds[c].plan;
        let factors = &plan.network.prior.input_factors;
        let Some(&var) = self.settings.search.code_vars.first().filter(|_| !factors.is_empty()) else {
            return Vec::new();
        };
        let like = |&bins: &usize| {
            let mut plan = MemberPlan { bins, ..plan.for_inputs(&self.ensemble.columns(bins)) };
            plan.network.prior.var = var;
            plan
        };
        self.ensemble.codes.keys().filter(|&&bins| bins != plan.bins).map(like).collect()
    }

    /// Factors on the variances of columns, by the folds that kind `c` has been through; none if no column tells anything.
    fn factors(&self, c: usize) -> Result<Option<Vec<f64>>> {
        let losses = match self.settings.search.precision {
            Precision::F32 => self.losses_without::<f32>(c)?,
            Precision::F64 => self.losses_without::<f64>(c)?,
        };
        Ok(factors(&losses))
    }

    /// Factors of columns, of the inputs of a network that sees codes of so many bins.
    fn of_inputs(&self, factors: &[f64], bins: usize) -> Vec<f64> {
        self.ensemble.columns(bins).into_iter().map(|column| factors[column]).collect()
    }

    /// I of every column.
    fn losses_without<T: Real>(&self, c: usize) -> Result<Vec<f64>> {
        let kind = &self.kinds[c];
        let columns = self.ensemble.columns(kind.plan.bins);
        let mut more = vec![0.0; self.samples.n_features()];
        for (f, trained) in kind.networks.iter().enumerate() {
            let rows = &self.folds[f][..self.folds[f].len().min(SAMPLES)];
            let fold = self.seen_by::<T>(&kind.plan, rows)?;
            let targets = self.samples.select(rows);
            let loss = |fold: &Standardised<T>| loss(&trained.member, fold, targets.view().targets());
            let own = loss(&fold)?;
            let without = |column: usize| -> Result<f64> {
                let inputs: Vec<usize> = (0..columns.len()).filter(|&i| columns[i] == column).collect();
                let mut order: Vec<usize> = (0..rows.len()).collect();
                let mut rng = stream(self.settings.training.seed, SHUFFLE_STREAM + column as u64);
                let mut sum = 0.0;
                for _ in 0..SHUFFLES {
                    order.shuffle(&mut rng);
                    sum += loss(&fold.shuffled(&inputs, &order))? - own;
                }
                Ok(sum / SHUFFLES as f64)
            };
            let each = (0..more.len()).into_par_iter().map(without).collect::<Result<Vec<f64>>>()?;
            more.iter_mut().zip(each).for_each(|(sum, own)| *sum += own / kind.networks.len() as f64);
        }
        Ok(more)
    }
}

impl MemberPlan {
    /// The same plan for a network whose inputs tell of these columns, each of which has the variance that it has here.
    pub(super) fn for_inputs(&self, columns: &[usize]) -> Self {
        let mut plan = self.clone();
        let factors = &mut plan.network.prior.input_factors;
        if !factors.is_empty() {
            // Columns as they are come before their codes.
            *factors = columns.iter().map(|&column| factors[column]).collect();
        }
        plan
    }
}

/// Squared error of standardised targets, or minus the log probability of classes: the mean over samples.
fn loss<T: Real>(member: &Member, fold: &Standardised<T>, targets: Targets<'_>) -> Result<f64> {
    let said = predict_member(member, fold, Method::Mean)?;
    if let Targets::Classes { labels, .. } = targets {
        let each = metrics::log_probabilities(said.class_probabilities(1.0)?.as_ref(), labels)?;
        return Ok(-mean(each.into_iter().map(|density| density.max(LEAST))));
    }
    let (values, said) = (fold.targets().collect::<Vec<f64>>(), said.mean());
    let values = MatRef::from_column_major_slice(&values, said.nrows(), said.ncols());
    Ok(mean((0..said.ncols()).map(|j| (values.col(j) - said.col(j)).squared_norm_l2())))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

/// v of every column, by I of each; none where all of that may be chance.
fn factors(losses: &[f64]) -> Option<Vec<f64>> {
    let below: Vec<f64> = losses.iter().copied().filter(|&loss| loss < 0.0).collect();
    let chance = (below.iter().map(|loss| loss * loss).sum::<f64>() / below.len().max(1) as f64).sqrt();
    let roots: Vec<f64> = losses.iter().map(|loss| (loss - chance).max(0.0).sqrt()).collect();
    let mean = mean(roots.iter().copied());
    let factors = || roots.iter().map(|root| (root / mean).clamp(RANGE.0, RANGE.1)).collect();
    (mean > 0.0 && mean.is_finite()).then(factors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_chance_is_silenced_and_the_mean_is_one() {
        let factors = factors(&[0.4, 0.09, 0.011, 0.009, -0.01, 0.0]).unwrap();
        assert!(factors[0] > factors[1] && factors[1] > factors[2]);
        assert!((factors[0] / factors[1] - (0.39f64 / 0.08).sqrt()).abs() < 1e-12);
        assert_eq!(factors[3..], [RANGE.0; 3]);
        assert!((mean(factors.into_iter()) - 1.0).abs() < RANGE.0);
    }

    #[test]
    fn columns_that_all_tell_nothing_stay_as_they_are() {
        assert_eq!(factors(&[0.0, -0.1, 0.1]), None);
        assert_eq!(factors(&[0.0, 0.0]), None);
    }
}
