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
    let prior_vars = or_own(&search.prior_vars, own.prior.var);
    let mut plans = Vec::new();
    for head in heads(task, settings) {
        for &activation in &activations {
            for &var in &prior_vars {
                let mut network = NetworkSettings { activation, head: head.clone(), ..own.clone() };
                network.prior.var = var;
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
        network.prior.var = var;
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
    let var = best.network.prior.var;
    let of_kind = tried.iter().filter(|plan| same_kind(plan, best)).map(|plan| plan.network.prior.var);
    let (low, high) = of_kind.fold((var, var), |(low, high), v| (low.min(v), high.max(v)));
    let next = if var <= low { var / STEP } else { var * STEP };
    if (var > low && var < high) || next < RANGE.0 || next > RANGE.1 {
        return None;
    }
    let mut plan = best.clone();
    plan.network.prior.var = next;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(plans: &[MemberPlan]) -> Vec<f64> {
        plans.iter().map(|plan| plan.network.prior.var).collect()
    }

    #[test]
    fn every_combination_is_tried_and_the_linear_model_besides() {
        let plans = first(Task::Regression, &ModelSettings::default());
        let linear: Vec<_> = plans.iter().filter(|plan| plan.network.hidden_layer_sizes.is_empty()).collect();
        // Two heads, two activations, three priors.
        assert_eq!(plans.len() - linear.len(), 12);
        assert_eq!(linear.len(), SearchSettings::default().linear_vars.len());
        assert!(linear.iter().all(|plan| plan.epochs == 1));
    }

    #[test]
    fn what_is_set_by_hand_is_kept() {
        let mut settings = ModelSettings::default();
        settings.network.prior.var = 7.0;
        settings.search.prior_vars.clear();
        let plans = first(Task::Regression, &settings);
        assert!(vars(&plans).iter().all(|&var| var == 7.0));
        settings = ModelSettings::default();
        settings.network.hidden_layer_sizes = vec![20];
        let plans = first(Task::Classification { classes: 2 }, &settings);
        assert!(plans.iter().all(|plan| plan.network.hidden_layer_sizes == [20]));
        assert!(!may_widen(1000, &settings) && may_widen(1000, &ModelSettings::default()));
        assert!(!may_widen(10, &ModelSettings::default()));
    }

    #[test]
    fn beyond_the_edge_comes_the_next_decade_until_the_range_ends() {
        let search = SearchSettings::default();
        let tried = first(Task::Regression, &ModelSettings::default());
        let of = |var: f64| {
            let mut plan = tried[0].clone();
            plan.network.prior.var = var;
            plan
        };
        let next = |var: f64| beyond(&of(var), &tried, &search).map(|plan| plan.network.prior.var);
        assert!((next(0.3).unwrap() - 0.03).abs() < 1e-12);
        assert_eq!(next(3.0), None);
        assert!((next(30.0).unwrap() - 300.0).abs() < 1e-9);
        assert_eq!(next(2e-3), None);
        assert_eq!(next(500.0), None);
        // One prior alone was meant as it is.
        let one = SearchSettings { prior_vars: vec![0.3], ..search };
        assert!(beyond(&of(0.3), &tried, &one).is_none());
    }

    #[test]
    fn wider_is_wider_by_the_factor_and_nothing_without_hidden_layers() {
        let plan = first(Task::Regression, &ModelSettings::default()).remove(0);
        assert_eq!(wider(&plan, 2.0).unwrap().network.hidden_layer_sizes, [100, 100]);
        let linear = linear(&ModelSettings::default()).remove(0);
        assert!(wider(&linear, 2.0).is_none());
    }
}
