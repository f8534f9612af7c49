//! What is tried: codes, priors and heads to begin with, then what lies around the best of them.

use crate::data::{LogCurve, Task};
use crate::heads::{Categorical, HeadSettings, VarianceNode};
use crate::learners::Rule;
use crate::model::ensemble::MemberPlan;
use crate::model::settings::{InputScaling, ModelSettings};
use crate::network::NetworkSettings;
use crate::training::TrainingSettings;

/// Factor between values of V⁰ around the best, and the range it stays in.
const STEP: f64 = 3.0;
const RANGE: (f64, f64) = (1e-3, 1e3);

/// Codes are so many times finer where a bin of them still has so many samples.
const FINER: usize = 3;
const BIN_SAMPLES: usize = 100;

/// Fewer samples than this ask for no more passes.
const FEWEST: usize = 700;

/// Samples of the largest batch.
const LARGEST: usize = 512;

/// Samples per batch of a linear model: its posterior is a sum, the same whatever they are.
const LINE_BATCH: usize = 4096;

/// Columns at most of which each may have a prior of its own.
const MANY: usize = 1024;

/// The first candidates.
pub(super) fn first(task: Task, n: usize, settings: &ModelSettings) -> Vec<MemberPlan> {
    let (search, own) = (&settings.search, &settings.network);
    let activation = search.activations.first().copied().unwrap_or(own.activation);
    let mut plans = Vec::new();
    for head in heads(task, settings) {
        for bins in all_bins(n, settings) {
            let vars = if bins == 0 || search.prior_vars.is_empty() {
                &search.prior_vars
            } else {
                &search.code_vars
            };
            for var in or_own(vars, own.prior.var) {
                let mut network = NetworkSettings { activation, head: head.clone(), ..own.clone() };
                network.prior.var = var;
                plans.push(MemberPlan::new(network, &training(1.0, n, settings), bins));
            }
        }
    }
    plans.extend(linear(n, settings));
    if matches!(task, Task::Classification { .. }) && settings.search.noise {
        plans.extend(logistic(n, settings));
    }
    plans
}

/// Logistic regression: logits that are linear in the columns.
fn logistic(n: usize, settings: &ModelSettings) -> Vec<MemberPlan> {
    let one = |plan: MemberPlan| {
        let network =
            NetworkSettings { head: HeadSettings::Categorical(Categorical::default()), ..plan.network };
        MemberPlan::new(network, &training(1.0, n, settings), plan.bins)
    };
    linear(n, settings).into_iter().filter(|plan| plan.bins == 0).map(one).collect()
}

/// The exact linear models: one conjugate layer, one pass; of columns as they are, and of their codes.
pub(super) fn linear(n: usize, settings: &ModelSettings) -> Vec<MemberPlan> {
    let own = &settings.network;
    let exact = matches!(settings.rule, Rule::Feedback(_)) && own.head == HeadSettings::default();
    let by_hand = own.hidden_layer_sizes != NetworkSettings::default().hidden_layer_sizes;
    if !exact || by_hand || settings.search.prior_vars.is_empty() {
        return Vec::new();
    }
    let one = |bins: usize, var: f64| {
        let mut network = NetworkSettings { hidden_layer_sizes: Vec::new(), ..own.clone() };
        network.prior.var = var;
        MemberPlan {
            epochs: 1,
            batch_size: Some(LINE_BATCH),
            ..MemberPlan::new(network, &settings.training, bins)
        }
    };
    let vars = &settings.search.linear_vars;
    all_bins(n, settings).into_iter().flat_map(|bins| vars.iter().map(move |&var| one(bins, var))).collect()
}

/// The exact linear model of `d` columns as they are, with a prior for each: where many columns tell nothing, one prior
/// for all is too narrow for those that do. Not of codes: one that is silenced would be sure of what it has never seen.
pub(super) fn relevant(n: usize, d: usize, settings: &ModelSettings) -> Option<MemberPlan> {
    let mut plan = linear(n, settings).into_iter().find(|plan| plan.bins == 0)?;
    plan.network.prior.var = 1.0;
    plan.network.prior.relevance = true;
    (2..=MANY).contains(&d).then_some(plan)
}

/// Bins to try. Where columns share one scale, as pixels do, they have no codes.
fn all_bins(n: usize, settings: &ModelSettings) -> Vec<usize> {
    let fine = |bins: usize| if n >= FINER * BIN_SAMPLES * bins { FINER * bins } else { bins };
    match settings.input_scaling {
        InputScaling::Whole => vec![0],
        _ if settings.search.bins.is_empty() => vec![settings.bins],
        _ => settings.search.bins.iter().map(|&bins| fine(bins)).collect(),
    }
}

/// Passes and batches of a network wider than the settings' by a factor. More samples are worth more steps, but not each
/// as much as the last, and steps of larger batches are better and cheaper for a sample.
fn training(wider: f64, n: usize, settings: &ModelSettings) -> TrainingSettings {
    let (search, own, default) = (&settings.search, &settings.training, TrainingSettings::default());
    let epochs = if own.epochs == default.epochs {
        let passes = search.epochs as f64 * (1000.0 / n.max(FEWEST) as f64).sqrt() / wider;
        (passes.round() as usize).clamp(1, own.epochs)
    } else {
        own.epochs
    };
    let batch_size = if own.batch_size == default.batch_size {
        let root = (search.batch_root * (n as f64).sqrt()).log2().floor().exp2() as usize;
        own.batch_size.map(|least| root.clamp(least, LARGEST))
    } else {
        own.batch_size
    };
    TrainingSettings { epochs, batch_size, ..own.clone() }
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

/// What lies around `best` and was not tried yet: the next values of V⁰, other activations, wider layers, the target
/// through a curve.
pub(super) fn around(
    best: &MemberPlan,
    tried: &[&MemberPlan],
    n: usize,
    settings: &ModelSettings,
    curve: Option<&LogCurve>,
) -> Vec<MemberPlan> {
    let search = &settings.search;
    let mut plans: Vec<MemberPlan> = Vec::new();
    if search.prior_vars.len() > 1 && !best.network.prior.relevance {
        plans.extend([best.network.prior.var / STEP, best.network.prior.var * STEP].into_iter().filter_map(
            |var| {
                let mut plan = best.clone();
                plan.network.prior.var = var;
                let near = |other: &&MemberPlan| {
                    same_kind(other, &plan) && (other.network.prior.var / var).ln().abs() < 0.5 * STEP.ln()
                };
                ((RANGE.0..=RANGE.1).contains(&var) && !tried.iter().any(near)).then_some(plan)
            },
        ));
    }
    if !best.network.hidden_layer_sizes.is_empty() {
        plans.extend(search.activations.iter().map(|&activation| {
            let mut plan = best.clone();
            plan.network.activation = activation;
            plan
        }));
        if may_widen(n, settings) {
            plans.extend(search.widths.iter().map(|&factor| wider(best, factor, n, settings)));
        }
    }
    plans.extend(curve.map(|&curve| MemberPlan { curve: Some(curve), ..best.clone() }));
    plans.retain(|plan| tried.iter().all(|other| *other != plan));
    plans
}

/// Alike in everything but V⁰.
fn same_kind(a: &MemberPlan, b: &MemberPlan) -> bool {
    let shape = |plan: &MemberPlan| {
        let network = &plan.network;
        (plan.bins, network.hidden_layer_sizes.clone(), network.activation, network.head.clone())
    };
    shape(a) == shape(b)
}

/// The same with layers wider by a factor.
fn wider(plan: &MemberPlan, factor: f64, n: usize, settings: &ModelSettings) -> MemberPlan {
    let mut plan = plan.clone();
    for width in &mut plan.network.hidden_layer_sizes {
        *width = ((*width as f64 * factor).round() as usize).max(1);
    }
    MemberPlan { epochs: training(factor.max(1.0), n, settings).epochs, ..plan }
}

/// Whether the settings leave the widths to the search.
fn may_widen(n: usize, settings: &ModelSettings) -> bool {
    let own = &settings.network.hidden_layer_sizes;
    n >= settings.search.widths_from && *own == NetworkSettings::default().hidden_layer_sizes
}

fn or_own<T: Clone>(values: &[T], own: T) -> Vec<T> {
    if values.is_empty() { vec![own] } else { values.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SearchSettings;

    fn vars(plans: &[MemberPlan]) -> Vec<f64> {
        plans.iter().map(|plan| plan.network.prior.var).collect()
    }

    #[test]
    fn every_combination_is_tried_and_the_linear_model_besides() {
        let plans = first(Task::Regression, 100, &ModelSettings::default());
        let linear: Vec<_> = plans.iter().filter(|plan| plan.network.hidden_layer_sizes.is_empty()).collect();
        // Two heads, three codes, two priors.
        assert_eq!(plans.len() - linear.len(), 12);
        assert_eq!(linear.len(), 3 * SearchSettings::default().linear_vars.len());
        assert!(linear.iter().all(|plan| plan.epochs == 1));
    }

    #[test]
    fn columns_have_priors_of_their_own_where_there_are_some_and_not_too_many() {
        let settings = ModelSettings::default();
        let plan = relevant(100, 20, &settings).unwrap();
        assert!(plan.network.prior.relevance && plan.bins == 0 && plan.validate().is_ok());
        assert!(around(&plan, &[&plan], 100, &settings, None).is_empty());
        assert_eq!(relevant(100, 1, &settings), None);
        assert_eq!(relevant(100, 2 * MANY, &settings), None);
        let mut by_hand = settings;
        by_hand.network.hidden_layer_sizes = vec![20];
        assert_eq!(relevant(100, 20, &by_hand), None);
    }

    #[test]
    fn what_is_set_by_hand_is_kept() {
        let mut settings = ModelSettings::default();
        settings.network.prior.var = 7.0;
        settings.search.prior_vars.clear();
        let plans = first(Task::Regression, 100, &settings);
        assert!(vars(&plans).iter().all(|&var| var == 7.0));
        settings = ModelSettings::default();
        settings.network.hidden_layer_sizes = vec![20];
        settings.search.bins.clear();
        let plans = first(Task::Classification { classes: 2 }, 100, &settings);
        assert!(
            plans.iter().all(|plan| plan.network.hidden_layer_sizes == [20] && plan.bins == settings.bins)
        );
        assert!(!may_widen(1000, &settings) && may_widen(1000, &ModelSettings::default()));
        assert!(!may_widen(10, &ModelSettings::default()));
    }

    #[test]
    fn around_the_best_lie_priors_activations_and_widths_that_were_not_tried() {
        let settings = ModelSettings::default();
        let mut best = first(Task::Regression, 100, &settings).remove(0);
        best.network.prior.var = 1.0;
        let mut low = best.clone();
        low.network.prior.var = 0.3;
        let tried = [&best, &low];
        let plans = around(&best, &tried, 1000, &settings, None);
        let found = vars(&plans);
        assert_eq!(plans.len(), 3, "{plans:?}");
        assert_eq!(found[0], 3.0);
        assert_eq!(plans[1].network.activation, settings.search.activations[1]);
        assert_eq!(plans[2].network.hidden_layer_sizes, [100, 100]);
        // Nothing wider on few samples; no prior beyond the range; of a linear model its prior only.
        assert_eq!(around(&best, &tried, 100, &settings, None).len(), 2);
        best.network.prior.var = 500.0;
        assert!(vars(&around(&best, &[&best], 100, &settings, None)).iter().all(|&var| var <= 500.0));
        let linear = linear(1000, &settings).remove(2);
        assert!(around(&linear, &[&linear], 1000, &settings, None).iter().all(|plan| plan.epochs == 1));
    }

    #[test]
    fn long_data_get_fewer_passes_in_larger_batches_and_what_is_set_by_hand_is_kept() {
        let mut settings = ModelSettings::default();
        let both = |wider: f64, n: usize, settings: &ModelSettings| {
            let training = training(wider, n, settings);
            (training.epochs, training.batch_size)
        };
        assert_eq!(both(1.0, 100, &settings), (60, Some(32)));
        assert_eq!(both(1.0, 1000, &settings), (50, Some(64)));
        assert_eq!(both(1.0, 16_000, &settings), (13, Some(256)));
        assert_eq!(both(2.0, 16_000, &settings), (6, Some(256)));
        assert_eq!(both(1.0, 100_000_000, &settings), (1, Some(512)));
        settings.training.epochs = 200;
        settings.training.batch_size = None;
        assert_eq!(both(2.0, 16_000, &settings), (200, None));
        assert_eq!(all_bins(1000, &settings), [0, 8, 20]);
        assert_eq!(all_bins(3000, &settings), [0, 24, 20]);
        assert_eq!(all_bins(6000, &settings), [0, 24, 60]);
    }
}
