//! What is tried: every combination of prior, activation and head to begin with, then what lies beyond the edge, then
//! wider layers of what did best.

use super::settings::SearchSettings;
use crate::data::Task;
use crate::heads::{Categorical, HeadSettings, VarianceNode};
use crate::learners::Rule;
use crate::model::ensemble::MemberPlan;
use crate::model::settings::ModelSettings;
use crate::network::NetworkSettings;

/// Factor between values of V⁰ beyond the edge, and the range it stays in.
const STEP: f64 = 10.0;
const RANGE: (f64, f64) = (1e-3, 1e3);

/// The first candidates.
pub(super) fn first(task: Task, settings: &ModelSettings) -> Vec<MemberPlan> {
    let (search, own) = (&settings.search, &settings.network);
    let activations = or_own(&search.activations, own.activation);
    let prior_vars = or_own(&search.prior_vars, own.prior.col_var);
    let mut plans = Vec::new();
    for head in heads(task, settings) {
        for &activation in &activations {
            for &var in &prior_vars {
                let mut network = NetworkSettings { activation, head: head.clone(), ..own.clone() };
                network.prior.col_var = var;
                plans.push(plan(network, settings.training.epochs));
            }
            if own.hidden_layer_sizes.is_empty() {
                // Without hidden layers there is nothing to activate.
                break;
            }
        }
    }
    plans.extend(linear(settings));
    plans
}

/// The exact linear models: one conjugate layer, one pass.
pub(super) fn linear(settings: &ModelSettings) -> Vec<MemberPlan> {
    let own = &settings.network;
    let exact = matches!(settings.rule, Rule::Feedback(_)) && own.head == HeadSettings::default();
    let by_hand = own.hidden_layer_sizes != NetworkSettings::default().hidden_layer_sizes;
    if !exact || by_hand || settings.search.prior_vars.is_empty() {
        return Vec::new();
    }
    let one = |&var: &f64| {
        let mut network = NetworkSettings { hidden_layer_sizes: Vec::new(), ..own.clone() };
        network.prior.col_var = var;
        plan(network, 1)
    };
    settings.search.linear_vars.iter().map(one).collect()
}

/// The head of the settings, and the other one for this task.
fn heads(task: Task, settings: &ModelSettings) -> Vec<HeadSettings> {
    let mut heads = vec![settings.network.head.clone()];
    if settings.search.noise && matches!(settings.rule, Rule::Feedback(_)) {
        heads.push(match task {
            Task::Regression => HeadSettings::VarianceNode(VarianceNode::default()),
            Task::Classification { .. } => HeadSettings::Categorical(Categorical::default()),
        });
        heads.dedup();
    }
    heads
}

/// The next value of V⁰ for the kind of candidate `best`, if it lies at the edge of what was tried of its kind.
pub(super) fn beyond(best: &MemberPlan, tried: &[MemberPlan], search: &SearchSettings) -> Option<MemberPlan> {
    if search.prior_vars.len() < 2 || best.network.hidden_layer_sizes.is_empty() {
        return None;
    }
    let var = best.network.prior.col_var;
    let of_kind = tried.iter().filter(|plan| same_kind(plan, best)).map(|plan| plan.network.prior.col_var);
    let (low, high) = of_kind.fold((var, var), |(low, high), v| (low.min(v), high.max(v)));
    let next = if var <= low { var / STEP } else { var * STEP };
    if (var > low && var < high) || next < RANGE.0 || next > RANGE.1 {
        return None;
    }
    let mut plan = best.clone();
    plan.network.prior.col_var = next;
    Some(plan)
}

/// Alike in everything but V⁰.
pub(super) fn same_kind(a: &MemberPlan, b: &MemberPlan) -> bool {
    let shape = |plan: &MemberPlan| {
        let network = &plan.network;
        (network.hidden_layer_sizes.clone(), network.activation, network.head.clone())
    };
    shape(a) == shape(b)
}

/// The same with layers wider by a factor; none for a network without hidden layers.
pub(super) fn wider(plan: &MemberPlan, factor: f64) -> Option<MemberPlan> {
    let mut plan = plan.clone();
    for width in &mut plan.network.hidden_layer_sizes {
        *width = ((*width as f64 * factor).round() as usize).max(1);
    }
    (!plan.network.hidden_layer_sizes.is_empty()).then_some(plan)
}

/// Whether the settings leave the widths to the search.
pub(super) fn may_widen(samples: usize, settings: &ModelSettings) -> bool {
    let own = &settings.network.hidden_layer_sizes;
    samples >= settings.search.widths_from && *own == NetworkSettings::default().hidden_layer_sizes
}

fn plan(network: NetworkSettings, epochs: usize) -> MemberPlan {
    MemberPlan { network, epochs, temperature: 1.0 }
}

fn or_own<T: Clone>(values: &[T], own: T) -> Vec<T> {
    if values.is_empty() { vec![own] } else { values.to_vec() }
}
