//! What networks need of the rows of a chunk in each pass, and what they make of all of it.

use super::plan::{Pass, Plan};
use super::rows::Rows;
use crate::base::linalg::Cholesky;
use crate::error::Result;
use crate::inference::{FeedbackSettings, gather};
use crate::learners::{Rule, Step};
use crate::learning::{BatchStatistics, CurvatureSums, WeightSums, curvature_root};
use crate::model::ensemble::{Member, member_seed};
use crate::model::model::Model;
use crate::network::Network;
use crate::real::{Precision, Real};

/// The networks of a model in working precision, to take statistics with.
pub(super) struct Gatherer<'a> {
    plan: &'a Plan,
    model: &'a Model,
    networks: Networks,
    /// Roots of the output layers' precisions, in the pass that needs them.
    roots: Vec<Cholesky>,
}

enum Networks {
    F32(Vec<Network<f32>>),
    F64(Vec<Network<f64>>),
}

impl<'a> Gatherer<'a> {
    /// Networks of a model.
    pub fn new(plan: &'a Plan, model: &'a Model) -> Result<Self> {
        fn of<T: Real>(model: &Model) -> Result<Vec<Network<T>>> {
            model.members().iter().map(|member| member.network().to_precision()).collect()
        }
        let networks = match model.settings().precision {
            Precision::F32 => Networks::F32(of(model)?),
            Precision::F64 => Networks::F64(of(model)?),
        };
        let roots = match plan.pass {
            Pass::Curvature => model
                .members()
                .iter()
                .map(|member| curvature_root(member.network()))
                .collect::<Result<_>>()?,
            _ => Vec::new(),
        };
        Ok(Self { plan, model, networks, roots })
    }

    /// Whether any network uses a row.
    pub fn uses(&self, row: u64) -> bool {
        (0..self.plan.members).any(|m| self.plan.uses(m, self.seed(m), row))
    }

    fn seed(&self, member: usize) -> u64 {
        member_seed(self.plan.seed, member)
    }

    /// What the rows of a chunk say to every network, one after the other.
    pub fn leaf(&self, rows: &Rows) -> Result<Vec<f64>> {
        match &self.networks {
            Networks::F32(networks) => self.leaf_of(networks, rows),
            Networks::F64(networks) => self.leaf_of(networks, rows),
        }
    }

    fn leaf_of<T: Real>(&self, networks: &[Network<T>], rows: &Rows) -> Result<Vec<f64>> {
        let mut values = Vec::new();
        for (m, network) in networks.iter().enumerate() {
            let own = rows.only(|row| self.plan.uses(m, self.seed(m), row));
            values.extend(self.of_network(m, network, &own)?);
        }
        Ok(values)
    }

    fn of_network<T: Real>(&self, m: usize, network: &Network<T>, rows: &Rows) -> Result<Vec<f64>> {
        if rows.is_empty() {
            return Ok(vec![0.0; self.length_of(network)]);
        }
        rows.with_samples(self.plan.task, |samples| {
            let samples = self.model.ensemble.standardise::<T>(samples, self.model.members()[m].bins)?;
            let (data, all) = (samples.view()?, 0..rows.len());
            Ok(match self.plan.pass {
                Pass::Round { .. } => gather(network, &data, all).values(),
                Pass::Weights => WeightSums::over(network, &data, all, false).values(),
                Pass::Curvature => CurvatureSums::over(network, &self.roots[m], &data, all).values(),
                Pass::Table | Pass::Calibration => Vec::new(),
            })
        })
    }

    /// How many numbers all networks have of a chunk.
    pub fn length(&self) -> usize {
        match &self.networks {
            Networks::F32(networks) => networks.iter().map(|network| self.length_of(network)).sum(),
            Networks::F64(networks) => networks.iter().map(|network| self.length_of(network)).sum(),
        }
    }

    /// How many numbers a network has in this pass.
    fn length_of<T: Real>(&self, network: &Network<T>) -> usize {
        match self.plan.pass {
            Pass::Round { .. } => BatchStatistics::zero(network).len(),
            Pass::Weights => WeightSums::zero(network, false).values().len(),
            Pass::Curvature => CurvatureSums::zero(network).values().len(),
            Pass::Table | Pass::Calibration => 0,
        }
    }
}

/// The networks after a pass whose sums over all rows these are.
pub(super) fn absorb(plan: &Plan, model: &Model, sums: &[f64]) -> Result<Vec<Member>> {
    let mut rest = sums;
    let mut members = Vec::with_capacity(plan.members);
    for member in model.members() {
        let network = member.network();
        let length = match plan.pass {
            Pass::Round { .. } => BatchStatistics::zero(network).len(),
            Pass::Weights => WeightSums::zero(network, false).values().len(),
            _ => CurvatureSums::zero(network).values().len(),
        };
        crate::base::check::same_length("statistics", rest.len().min(length), length)?;
        let (own, others) = rest.split_at(length);
        rest = others;
        members.push(absorbed(plan, model, member, own)?);
    }
    crate::base::check::same_length("statistics", rest.len(), 0)?;
    Ok(members)
}

fn absorbed(plan: &Plan, model: &Model, member: &Member, values: &[f64]) -> Result<Member> {
    let Pass::Round { index, of } = plan.pass else {
        let mut network = member.network().clone();
        match plan.pass {
            Pass::Weights => WeightSums::settle(&mut network, values)?,
            _ => CurvatureSums::settle(&mut network, values)?,
        }
        return Ok(member.with_network(network.to_precision()?));
    };
    let sums = BatchStatistics::from_values(member.network(), values)?;
    // A round may have no row for a network; it then stays as it is.
    if sums.weight() == 0.0 {
        return Ok(member.clone());
    }
    let mut learner = member.learner::<f64>(&rule(plan, model))?;
    let n_total = plan.weight * (1.0 - plan.held_out_share());
    let step = Step { index, total: Some(of), n_total, full_batch: false };
    let loss = learner.absorb(&sums, &step)?;
    let feedback = learner.feedback_state();
    // Natural parameters, as a file has them: the same bits on the way through one.
    let network = learner.into_network()?.to_precision()?;
    let mut next = member.with_network(network);
    next.feedback = feedback;
    next.steps += 1;
    next.report.steps += 1;
    next.report.loss.push(loss);
    Ok(next)
}

/// The feedback rule with the steps of rounds.
fn rule(plan: &Plan, model: &Model) -> Rule {
    let Rule::Feedback(own) = &model.settings().rule else { return model.settings().rule.clone() };
    Rule::Feedback(FeedbackSettings {
        // A whole step: large batches say where to go.
        gain: 1.0,
        schedule: plan.settings.schedule,
        trust: plan.settings.trust,
        damping: plan.settings.damping,
        rate: plan.settings.rate,
        refresh_every: 1,
        whiten_input: false,
        ..own.clone()
    })
}
