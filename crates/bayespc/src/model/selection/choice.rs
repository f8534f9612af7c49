//! Whether there is anything to choose: then the race decides, else the settings are used as they are.

use super::candidates::{first, linear};
use super::out_of_fold::OutOfFold;
use super::race::Race;
use super::score::HeldOutScores;
use super::verdict::Candidate;
use crate::data::{Samples, folds};
use crate::error::Result;
use crate::model::calibration::Calibrated;
use crate::model::ensemble::{Ensemble, Member, MemberPlan, all_training_cost};
use crate::model::observer::{Stage, Work};
use crate::model::settings::ModelSettings;
use crate::network::Network;

/// Fewer samples than this are too few to hold any out.
pub const MIN_ROWS: usize = 20;

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
    pub(in crate::model) out_of_fold: Option<OutOfFold>,
}

impl Choice {
    pub(super) fn plain(plans: Vec<MemberPlan>) -> Self {
        Self {
            members: Vec::new(),
            plans,
            calibrated: Calibrated::default(),
            candidates: Vec::new(),
            held_out: None,
            out_of_fold: None,
        }
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
    // Networks that were asked for are trained whatever their size; among those to choose from is none that is too large.
    let of_table =
        |plan: &mut MemberPlan| match settings.wide_layers_of(&plan.network, samples.n_features(), n) {
            Some(kept) => {
                plan.network.wide_layers = kept;
                true
            }
            None => false,
        };
    let plain = |mut plans: Vec<MemberPlan>, ensemble: &mut Ensemble| {
        for plan in &mut plans {
            of_table(plan);
        }
        ensemble.add_codes(samples, &plans);
        work.plan(all_training_cost(&plans, settings, ensemble, n));
        Ok(Choice::plain(plans))
    };
    if !settings.searches() {
        return plain(settings.plans(), ensemble);
    }
    if n < MIN_ROWS {
        let mut lines = linear(n, settings);
        lines.retain_mut(|plan| plan.bins == 0 && of_table(plan));
        let plans =
            best_linear(samples, lines, settings)?.map_or_else(|| settings.plans(), |plan| vec![plan]);
        return plain(plans, ensemble);
    }
    // Fewer networks than this are trained on all samples, but chosen by as many folds.
    let most = search.folds.max(settings.members) * if n < search.few { 2 } else { 1 };
    let parts = folds(samples, settings.training.seed, most);
    if parts.len() < 2 {
        return plain(settings.plans(), ensemble);
    }
    let mut plans = first(samples.task(), n, settings);
    plans.retain_mut(of_table);
    ensemble.add_codes(samples, &plans);
    // Codes that tell nothing more than the columns need not be tried, nor more of them than there are samples.
    let width = |plan: &MemberPlan| ensemble.width(plan.bins);
    plans.retain(|plan| plan.bins == 0 || (width(plan) > ensemble.width(0) && width(plan) <= n));
    work.enter(Stage::Search)?;
    let choice = Race::new(samples, ensemble, parts, settings, work).run(plans)?;
    work.replan(all_training_cost(&choice.plans, settings, ensemble, n));
    Ok(choice)
}

/// Of exact linear models the one with the largest evidence, which for a single layer is exact and needs no held-out samples.
/// None where there are none, since the settings ask for another kind of network.
fn best_linear(
    samples: &Samples<'_>,
    lines: Vec<MemberPlan>,
    settings: &ModelSettings,
) -> Result<Option<MemberPlan>> {
    let mut best: Option<(f64, MemberPlan)> = None;
    for plan in lines {
        let mut ensemble = Ensemble::untrained(samples, settings.input_scaling)?;
        ensemble.train(samples, std::slice::from_ref(&plan), settings, &Work::new(&mut ()))?;
        let evidence = log_evidence(ensemble.members[0].network())?;
        if best.as_ref().is_none_or(|(largest, _)| evidence > *largest) {
            best = Some((evidence, plan));
        }
    }
    Ok(best.map(|(_, plan)| plan))
}

/// log p(Y | X) of an exact linear model, up to what is the same for all V⁰:
/// −½ d_y log |V⁻¹ V⁰| − ½ ν log |Ψ⁻¹| after the update.
fn log_evidence(network: &Network<f64>) -> Result<f64> {
    let mut sum = 0.0;
    for block in network.output().blocks() {
        let noise = block.noise()?;
        sum -= 0.5 * block.d_post() as f64 * block.log_det_gain()?
            + 0.5 * noise.dof() * noise.inv_scale_chol().log_det();
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;

    use super::*;
    use crate::learning::{FreeEnergy, free_energy};
    use crate::network::WideLayers;

    /// Of whole matrices and of a sketch, evidence differs from one V⁰ to another as the free energy does.
    #[test]
    fn the_evidence_of_linear_models_is_their_free_energy_up_to_a_constant() {
        let x = Mat::from_fn(30, 8, |i, j| (0.7 * ((i + 1) * (j + 1)) as f64).sin());
        let y = Mat::from_fn(2, 8, |k, j| x[(k, j)] + 0.3 * (j as f64).cos());
        let samples = Samples::new(&x, &y).unwrap();
        let settings = ModelSettings::default();
        let of = |var: f64, wide_layers: WideLayers| {
            let mut plan = linear(8, &settings).remove(0);
            plan.network.prior.var = var;
            plan.network.wide_layers = wide_layers;
            let mut ensemble = Ensemble::untrained(&samples, settings.input_scaling).unwrap();
            ensemble.train(&samples, &[plan], &settings, &Work::new(&mut ())).unwrap();
            let data = ensemble.standardise::<f64>(&samples, 0).unwrap();
            let network = ensemble.members[0].network();
            let energies = free_energy(network, &data.view().unwrap()).unwrap();
            (log_evidence(network).unwrap(), -energies.iter().map(FreeEnergy::total).sum::<f64>())
        };
        let (first, total) = of(0.1, WideLayers::Dense);
        for var in [0.01, 0.1, 3.0] {
            let dense = of(var, WideLayers::Dense);
            assert_relative_eq!(dense.0 - first, dense.1 - total, max_relative = 1e-8, epsilon = 1e-8);
            let sketch = of(var, WideLayers::Sketch(8));
            assert_relative_eq!(sketch.0, dense.0, max_relative = 1e-6);
        }
    }
}
