//! Hidden units that a model can do without, taken out.
//!
//! ```text
//! c_j = ½ M_jᵀ⟨Σ⁻¹⟩M_j / V_jj              what it costs that nobody above listens to unit j
//! above   η₁, η₂ without their rows and columns j      q given that W_j = 0
//! below   η₂, η₃ without their rows j                  q of the weights of the other units
//! ```
//!
//! As for columns, what a unit has explained of the targets is noise of the output then, and Ψ of a hidden layer stays.
//! Units of all networks stand in one line, the cheapest first. As many go as the mean log density of held-out samples
//! allows; a bisection finds how many. Every layer keeps one.

use faer::Mat;

use super::columns::Kept;
use super::{check_tolerance, rows_of};
use crate::base::linalg::{Cholesky, mirror_lower, symmetrised};
use crate::data::Samples;
use crate::distributions::NaturalParams;
use crate::error::{Error, Result};
use crate::model::ensemble::Member;
use crate::model::model::Model;
use crate::network::{Layer, Network};

/// A model without the hidden units it can do without.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnitPruning {
    /// The model, with smaller layers.
    pub model: Model,
    /// Hidden units of all its networks before.
    pub units: usize,
    /// How many of them are gone.
    pub removed: usize,
    /// Mean log density of the held-out samples before and after.
    pub log_density: (f64, f64),
}

/// A hidden unit: its network, its layer and its place in that.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unit {
    member: usize,
    layer: usize,
    place: usize,
}

impl Model {
    /// Take out hidden units, those first that the posterior says cost least, as long as the mean log density of these
    /// samples falls by no more than `tolerance` nats. They should be samples that the model has not learned from.
    pub fn prune_units(&self, samples: &Samples<'_>, tolerance: f64) -> Result<UnitPruning> {
        check_tolerance(tolerance)?;
        if self.members().iter().any(|member| member.network().is_wide()) {
            return Err(Error::Conflict { first: "pruning of units", second: "wide layers" });
        }
        if self.members().iter().any(|member| member.network().settings().residual) {
            return Err(Error::Conflict { first: "pruning of units", second: "network.residual" });
        }
        let order = self.units_by_cost()?;
        let rows = rows_of(samples);
        let own = self.mean_log_density(&rows, samples)?;
        let mut best =
            UnitPruning { model: self.clone(), units: order.len(), removed: 0, log_density: (own, own) };
        let (mut kept, mut too_many) = (0, order.len() + 1);
        while too_many - kept > 1 {
            let n = kept.midpoint(too_many);
            let model = self.without_units(&order[..n])?;
            let found = model.mean_log_density(&rows, samples)?;
            if found >= own - tolerance {
                kept = n;
                let removed = self.n_units() - model.n_units();
                best = UnitPruning { model, removed, log_density: (own, found), ..best };
            } else {
                too_many = n;
            }
        }
        Ok(best)
    }

    fn n_units(&self) -> usize {
        let widths = |member: &Member| member.network().hidden().iter().map(Layer::d_post).sum::<usize>();
        self.members().iter().map(widths).sum()
    }

    fn units_by_cost(&self) -> Result<Vec<Unit>> {
        let mut all: Vec<(f64, Unit)> = Vec::new();
        for (m, member) in self.members().iter().enumerate() {
            let network = member.network();
            for layer in 0..network.hidden().len() {
                let costs = costs(layers_above(network, layer))?;
                let unit = |place: usize| Unit { member: m, layer, place };
                all.extend(costs.into_iter().enumerate().map(|(place, cost)| (cost, unit(place))));
            }
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(all.into_iter().map(|(_, unit)| unit).collect())
    }

    fn without_units(&self, gone: &[Unit]) -> Result<Self> {
        let mut model = self.clone();
        let smaller = |(m, member): (usize, &Member)| {
            let kept = |layer: usize| -> Vec<usize> {
                let width = member.network().hidden()[layer].d_post();
                let stays = |place: &usize| !gone.contains(&Unit { member: m, layer, place: *place });
                let kept: Vec<usize> = (0..width).filter(stays).collect();
                // The dearest of a layer of which all should go.
                let last = gone.iter().rev().find(|unit| unit.member == m && unit.layer == layer);
                if kept.is_empty() { last.map(|unit| unit.place).into_iter().collect() } else { kept }
            };
            let kept: Vec<Vec<usize>> = (0..member.network().hidden().len()).map(kept).collect();
            let network = reduced(member.network(), &kept)?;
            let feedback = member.feedback.0.iter().zip(&kept).map(|(c, kept)| square(c, kept)).collect();
            let mut smaller = member.with_network(network);
            smaller.feedback = (feedback, member.feedback.1);
            Ok(smaller)
        };
        model.ensemble.members = self.members().iter().enumerate().map(smaller).collect::<Result<_>>()?;
        Ok(model)
    }
}

/// The layers that listen to hidden layer `l`: one, or the blocks of the output.
fn layers_above(network: &Network<f64>, l: usize) -> &[Layer<f64>] {
    network.hidden().get(l + 1..l + 2).unwrap_or_else(|| network.output().blocks())
}

/// c of every unit that these layers listen to, the bias left out.
fn costs(above: &[Layer<f64>]) -> Result<Vec<f64>> {
    let mut costs = vec![0.0; above[0].d_pre() - 1];
    for layer in above {
        let posterior = layer.posterior()?;
        let (mean, cov) = (posterior.mean(), posterior.col_cov());
        let weighed = posterior.expected_precision() * mean;
        for (j, cost) in costs.iter_mut().enumerate() {
            let square: f64 = (0..mean.nrows()).map(|i| mean[(i, j)] * weighed[(i, j)]).sum();
            *cost += 0.5 * square / cov[(j, j)];
        }
    }
    Ok(costs)
}

/// The network of these units of its hidden layers.
fn reduced(network: &Network<f64>, kept: &[Vec<usize>]) -> Result<Network<f64>> {
    let mut settings = network.settings().clone();
    settings.hidden_layer_sizes = kept.iter().map(Vec::len).collect();
    let mut inputs: Vec<usize> = (0..network.d_input()).collect();
    let mut hidden = Vec::with_capacity(kept.len());
    for (layer, kept) in network.hidden().iter().zip(kept) {
        hidden.push(part(layer, kept, &inputs, Kept::Noise)?);
        inputs.clone_from(kept);
    }
    let block = |layer: &Layer<f64>| {
        let all: Vec<usize> = (0..layer.d_post()).collect();
        part(layer, &all, &inputs, Kept::Outer)
    };
    let output = network.output().blocks().iter().map(block).collect::<Result<_>>()?;
    let (d, k) = (network.d_input(), network.n_targets());
    Ok(Network::from_parts(settings, d, k, hidden, output, network.hidden_noise()))
}

/// The layer of these outputs, given that its weights of all but these inputs are zero.
fn part(layer: &Layer<f64>, outputs: &[usize], inputs: &[usize], kept: Kept) -> Result<Layer<f64>> {
    let inputs: Vec<usize> = inputs.iter().copied().chain([layer.d_pre() - 1]).collect();
    let part = |own: &NaturalParams| -> Result<NaturalParams> {
        let mut own = own.clone();
        mirror_lower(own.pre_pre.as_mut());
        mirror_lower(own.post_post.as_mut());
        let mut smaller = NaturalParams {
            pre_pre: square(&own.pre_pre, &inputs),
            post_pre: Mat::from_fn(outputs.len(), inputs.len(), |i, j| own.post_pre[(outputs[i], inputs[j])]),
            post_post: square(&own.post_post, outputs),
            // ν stays: with Ψ it is the metric ⟨Σ⁻¹⟩ of a hidden layer.
            count: own.count + (inputs.len() + layer.d_post()) as f64
                - (layer.d_pre() + outputs.len()) as f64,
        };
        if kept == Kept::Noise {
            let inv_scale = &smaller.post_post - square(&explained(&own)?, outputs);
            smaller.post_post = symmetrised((inv_scale + explained(&smaller)?).as_ref());
        }
        Ok(smaller)
    };
    Layer::from_natural(part(layer.prior())?, part(&layer.natural())?)
}

/// M η₁ Mᵀ.
fn explained(natural: &NaturalParams) -> Result<Mat<f64>> {
    let precision = Cholesky::new(natural.pre_pre.as_ref(), "the precision of the weights that are left")?;
    Ok(&natural.post_pre * precision.solve(natural.post_pre.transpose()))
}

fn square(matrix: &Mat<f64>, places: &[usize]) -> Mat<f64> {
    Mat::from_fn(places.len(), places.len(), |i, j| matrix[(places[i], places[j])])
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand::RngExt;

    use super::*;
    use crate::base::random::stream;
    use crate::model::ModelSettings;

    fn data(n: usize, seed: u64) -> (Mat<f64>, Mat<f64>) {
        let mut rng = stream(seed, 0);
        let x = Mat::from_fn(2, n, |_, _| rng.random_range(-1.0..1.0_f64));
        let noise: Vec<f64> = (0..n).map(|_| 0.1 * rng.random_range(-1.0..1.0)).collect();
        let y = Mat::from_fn(1, n, |_, j| (3.0 * x[(0, j)]).sin() + 0.5 * x[(1, j)] + noise[j]);
        (x, y)
    }

    fn settings(hidden: &[usize]) -> ModelSettings {
        let mut settings = ModelSettings::fast();
        settings.network.hidden_layer_sizes = hidden.to_vec();
        settings.training.epochs = 40;
        settings
    }

    #[test]
    fn units_go_as_long_as_held_out_samples_allow_and_the_smaller_model_is_a_model() {
        let ((x, y), (new, truth)) = (data(200, 1), data(200, 2));
        let model = Model::fit(&Samples::new(&x, &y).unwrap(), &settings(&[30, 20])).unwrap();
        let held_out = Samples::new(&new, &truth).unwrap();
        let found = model.prune_units(&held_out, 0.02).unwrap();
        assert_eq!(found.units, 50 * model.members().len());
        assert!(found.removed > found.units / 10, "{}", found.removed);
        assert!(found.log_density.1 >= found.log_density.0 - 0.02);
        assert_eq!(found.model.n_units(), found.units - found.removed);
        let again = Model::from_bytes(&found.model.to_bytes().unwrap()).unwrap();
        assert_eq!(again.predict(&new).unwrap().mean(), found.model.predict(&new).unwrap().mean());
        // It goes on learning.
        let mut going = found.model.clone();
        going.partial_fit(&held_out).unwrap();
        // Whoever may lose everything keeps a unit in each layer.
        let bare = model.prune_units(&held_out, 1e9).unwrap();
        assert_eq!(bare.model.n_units(), 2 * model.members().len());
        let same = model.prune_units(&held_out, 0.0).unwrap();
        assert!(same.log_density.1 >= same.log_density.0);
    }

    #[test]
    fn without_units_that_nobody_hears_predictions_are_the_same() {
        let (x, y) = data(100, 3);
        let mut model = Model::fit(&Samples::new(&x, &y).unwrap(), &settings(&[8])).unwrap();
        // What listens to units 2 and 5 is zero, and knows that.
        let deaf = |member: &Member| {
            let mut network = member.network().clone();
            network
                .output_mut()
                .update(|_, block| {
                    let mut natural = block.natural();
                    for i in [2, 5] {
                        for j in 0..natural.pre_pre.ncols() {
                            (natural.pre_pre[(i, j)], natural.pre_pre[(j, i)]) = (0.0, 0.0);
                        }
                        natural.pre_pre[(i, i)] = 1e12;
                        natural.post_pre.col_mut(i).fill(0.0);
                    }
                    block.set_natural(natural)
                })
                .unwrap();
            member.with_network(network)
        };
        model.ensemble.members = model.members().iter().map(deaf).collect();
        let units = model.units_by_cost().unwrap();
        let cheapest = &units[..2 * model.members().len()];
        assert!(cheapest.iter().all(|unit| [2, 5].contains(&unit.place)), "{cheapest:?}");
        let smaller = model.without_units(cheapest).unwrap();
        let (before, after) = (model.predict(&x).unwrap(), smaller.predict(&x).unwrap());
        for j in 0..x.ncols() {
            assert_relative_eq!(before.mean()[(0, j)], after.mean()[(0, j)], max_relative = 1e-8);
            assert_relative_eq!(before.variance()[(0, j)], after.variance()[(0, j)], max_relative = 1e-6);
        }
    }

    #[test]
    fn wrong_questions_are_refused() {
        let (x, y) = data(50, 4);
        let samples = Samples::new(&x, &y).unwrap();
        let model = Model::fit(&samples, &settings(&[])).unwrap();
        assert!(matches!(
            model.prune_units(&samples, f64::NAN),
            Err(Error::Setting { name: "tolerance", .. })
        ));
        // There is nothing to take out of a linear model.
        assert_eq!(model.prune_units(&samples, 1.0).unwrap().removed, 0);
    }
}
