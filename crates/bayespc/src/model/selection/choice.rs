//! Whether there is anything to choose: then the race decides, else the settings are used as they are.

use super::candidates::{first, linear};
use super::race::Race;
use super::score::HeldOutScores;
use super::verdict::Candidate;
use crate::data::{Samples, folds};
use crate::error::Result;
use crate::learning;
use crate::model::calibration::Calibrated;
use crate::model::ensemble::{Ensemble, Member, MemberPlan, all_training_cost};
use crate::model::observer::{Stage, Work};
use crate::model::settings::ModelSettings;

/// Fewer samples than this are too few to hold any out.
const MIN_ROWS: usize = 20;

/// What was chosen, and all that was tried.
pub(in crate::model) struct Choice {
    /// Networks that are trained already.
    pub(in crate::model) members: Vec<Member>,
    /// Networks still to be trained, on all samples.
    pub(in crate::model) plans: Vec<MemberPlan>,
    /// What the held-out samples say of their predictions.
    pub(in crate::model) calibrated: Calibrated,
    /// Every candidate; empty if nothing was searched.
    pub(in crate::model) candidates: Vec<Candidate>,
    /// How samples were predicted by networks that had not seen them.
    pub(in crate::model) held_out: Option<HeldOutScores>,
}

impl Choice {
    pub(super) fn plain(plans: Vec<MemberPlan>) -> Self {
        let calibrated = Calibrated::default();
        Self { members: Vec::new(), plans, calibrated, candidates: Vec::new(), held_out: None }
    }
}

/// Choose the networks of the ensemble that `settings` ask for. `ensemble` has the scaling of the samples, and gets the
/// codes of their columns.
pub(in crate::model) fn choose(
    samples: &Samples<'_>,
    ensemble: &mut Ensemble,
    settings: &ModelSettings,
    work: &Work<'_>,
) -> Result<Choice> {
    let (search, n) = (&settings.search, samples.n_samples());
    let plain = |plans: Vec<MemberPlan>, ensemble: &mut Ensemble| {
        ensemble.add_codes(samples, &plans);
        work.plan(all_training_cost(&plans, settings, ensemble, n));
        Ok(Choice::plain(plans))
    };
    if !search.enabled || search.has_nothing_to_choose() {
        return plain(settings.plans(), ensemble);
    }
    if n < MIN_ROWS {
        let plans = best_linear(samples, settings)?.map_or_else(|| settings.plans(), |plan| vec![plan]);
        return plain(plans, ensemble);
    }
    // Fewer networks than this are trained on all samples, but chosen by as many folds.
    let most = search.folds.max(settings.members) * if n < search.few { 2 } else { 1 };
    let parts = folds(samples, settings.training.seed, most);
    if parts.len() < 2 {
        return plain(settings.plans(), ensemble);
    }
    let mut plans = first(samples.task(), n, settings);
    ensemble.add_codes(samples, &plans);
    // Codes that tell nothing more than the columns need not be tried, nor more of them than there are samples.
    let width = |plan: &MemberPlan| ensemble.width(plan.bins);
    plans.retain(|plan| plan.bins == 0 || (width(plan) > ensemble.width(0) && width(plan) <= n));
    work.enter(Stage::Search)?;
    let choice = Race::new(samples, ensemble, parts, settings, work).run(plans)?;
    work.replan(all_training_cost(&choice.plans, settings, ensemble, n));
    Ok(choice)
}

/// The exact linear model with the largest evidence, which for a single layer is exact and needs no held-out samples.
/// None where the settings ask for another kind of network.
fn best_linear(samples: &Samples<'_>, settings: &ModelSettings) -> Result<Option<MemberPlan>> {
    let mut best: Option<(f64, MemberPlan)> = None;
    for plan in linear(samples.n_samples(), settings).into_iter().filter(|plan| plan.bins == 0) {
        let mut ensemble = Ensemble::untrained(samples, settings.input_scaling)?;
        ensemble.train(samples, std::slice::from_ref(&plan), settings, &Work::new(&mut ()))?;
        let standardised = ensemble.standardise::<f64>(samples, 0)?;
        let energies = learning::free_energy(ensemble.members[0].network(), &standardised.view()?)?;
        let evidence: f64 = energies.iter().map(|f| f.expected_log_likelihood - f.complexity).sum();
        if best.as_ref().is_none_or(|(largest, _)| evidence > *largest) {
            best = Some((evidence, plan));
        }
    }
    Ok(best.map(|(_, plan)| plan))
}
