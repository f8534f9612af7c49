//! Columns that the posterior can do without, silenced as long as held-out samples are predicted as well.
//!
//! ```text
//! c_G = ½ tr(⟨Σ⁻¹⟩ M_G V_GG⁻¹ M_Gᵀ)             what it costs that the weights of the inputs G are zero
//! M_R ← M_R − M_G V_GG⁻¹ V_GR                    what the others are then: q given that W_G = 0
//! V_RR ← V_RR − V_RG V_GG⁻¹ V_GR
//! ```
//!
//! q is the posterior of the first layer. The costs of columns that go one after the other add up to that of all of them, so
//! the cheapest goes first, and then the cheapest beside those that are left: of two copies one goes for nothing, and the
//! other one is then worth both. A cost is in nats, and a mean over networks by their weights; the inputs G of a column are
//! its features and their codes.
//!
//! In natural parameters the condition leaves out the rows and columns G of η₁ and those of η₂. Here they stay, with a
//! precision beyond any data, in the prior too, so that the model has its shape and goes on learning without them. In
//! the output layer η₃ stays: what the column has explained is noise now. In a hidden layer Ψ stays, since it is the metric
//! of the weights (decision 0005).

use faer::Mat;

use super::{check_tolerance, rows_of};
use crate::base::linalg::{Cholesky, inner, symmetrised};
use crate::data::Samples;
use crate::distributions::NaturalParams;
use crate::error::{Error, Result};
use crate::model::ensemble::Member;
use crate::model::model::Model;
use crate::network::{Layer, Network};

/// Variance of a weight that is silent, as a share of its prior's.
const SILENT: f64 = 1e-9;

/// Times that held-out samples are predicted at most: of many columns several go at a time.
const TRIALS: usize = 64;

/// A column that was tried without.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pruned {
    /// Which of the columns.
    pub column: usize,
    /// What the posterior says that it costs, beside those before it, in nats.
    pub cost: f64,
    /// Mean log density of the held-out samples without it and those before it; none where several went at a time.
    pub log_density: Option<f64>,
}

/// A model without the columns it can do without.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pruning {
    /// The model, in which they are silent.
    pub model: Model,
    /// Mean log density of the held-out samples with all columns.
    pub log_density: f64,
    /// Columns in the order in which they went. The first `silenced` of them are silent; behind them stand those
    /// without which too much was lost.
    pub path: Vec<Pruned>,
    /// How many are silent.
    pub silenced: usize,
}

impl Model {
    /// What it would cost that a column says nothing, for each of the columns, given by the numbers of their features.
    ///
    /// It is the log density of the posterior of the first layer's weights at their mean, less that where those of the
    /// column are zero and all others are free. A column that another one stands in for costs little.
    pub fn relevance(&self, columns: &[Vec<usize>]) -> Result<Vec<f64>> {
        let views = self.views(columns)?;
        (0..columns.len()).map(|column| cost(&views, column)).collect()
    }

    /// Silence columns, the cheapest first, as long as the mean log density of these samples falls by no more than
    /// `tolerance` nats. They should be samples that the model has not learned from. An error for a wide model.
    pub fn prune(&self, samples: &Samples<'_>, columns: &[Vec<usize>], tolerance: f64) -> Result<Pruning> {
        check_tolerance(tolerance)?;
        if self.members().iter().any(|member| member.network().is_wide()) {
            return Err(Error::Conflict {
                first: "network.wide_layers other than dense",
                second: "pruning columns (fit with network.wide_layers = \"dense\")",
            });
        }
        let order = self.order(columns)?;
        let rows = rows_of(samples);
        let own = self.mean_log_density(&rows, samples)?;
        let (mut best, mut silenced, mut path) = (self.clone(), 0, Vec::new());
        for some in order.chunks(order.len().div_ceil(TRIALS).max(1)) {
            path.extend(some.iter().map(|&(column, cost)| Pruned { column, cost, log_density: None }));
            let gone: Vec<usize> = path.iter().flat_map(|pruned| columns[pruned.column].clone()).collect();
            let model = self.without(&gone)?;
            let found = model.mean_log_density(&rows, samples)?;
            if let Some(last) = path.last_mut() {
                last.log_density = Some(found);
            }
            if !(found >= own - tolerance) {
                break;
            }
            (best, silenced) = (model, path.len());
        }
        Ok(Pruning { model: best, log_density: own, path, silenced })
    }

    /// Columns from the cheapest on, each with what it costs beside those before it.
    fn order(&self, columns: &[Vec<usize>]) -> Result<Vec<(usize, f64)>> {
        let mut views = self.views(columns)?;
        let mut left: Vec<usize> = (0..columns.len()).collect();
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let costs = left.iter().map(|&column| cost(&views, column)).collect::<Result<Vec<_>>>()?;
            let cheapest = (1..left.len()).fold(0, |best, i| if costs[i] < costs[best] { i } else { best });
            let column = left.remove(cheapest);
            order.push((column, costs[cheapest]));
            views.iter_mut().try_for_each(|view| view.silence(column))?;
        }
        Ok(order)
    }

    /// What each network's first layer says of its inputs.
    fn views(&self, columns: &[Vec<usize>]) -> Result<Vec<View>> {
        let d = self.n_features();
        if let Some(&feature) = columns.iter().flatten().find(|&&feature| feature >= d) {
            let must_be = "the number of one the model has, from 0";
            return Err(Error::Setting { name: "feature", value: feature as f64, must_be });
        }
        let all: f64 = self.members().iter().map(|member| member.weight).sum();
        let mut views = Vec::new();
        for member in self.members() {
            let owners = self.ensemble.columns(member.bins);
            let groups: Vec<_> = columns.iter().map(|features| inputs_of(features, &owners)).collect();
            for layer in first(member.network()) {
                let posterior = layer.posterior()?;
                views.push(View {
                    mean: posterior.mean().to_owned(),
                    col_cov: posterior.col_cov(),
                    precision: posterior.expected_precision(),
                    groups: groups.clone(),
                    share: member.weight / all,
                });
            }
        }
        Ok(views)
    }

    /// The model in which these features are silent.
    fn without(&self, features: &[usize]) -> Result<Self> {
        let mut model = self.clone();
        let silent = |member: &Member| {
            let inputs = inputs_of(features, &self.ensemble.columns(member.bins));
            let mut network = member.network().clone();
            if network.hidden().is_empty() {
                network.output_mut().update(|_, block| silence(block, &inputs, Kept::Outer))?;
            } else {
                silence(&mut network.hidden_mut()[0], &inputs, Kept::Noise)?;
            }
            Ok(member.with_network(network))
        };
        model.ensemble.members = self.members().iter().map(silent).collect::<Result<_>>()?;
        Ok(model)
    }
}

/// The layers that see the inputs: one, or the blocks of the output.
fn first(network: &Network<f64>) -> &[Layer<f64>] {
    if network.hidden().is_empty() { network.output().blocks() } else { &network.hidden()[..1] }
}

/// The inputs that tell of these features, given the feature that each tells of.
fn inputs_of(features: &[usize], owners: &[usize]) -> Vec<usize> {
    (0..owners.len()).filter(|&input| features.contains(&owners[input])).collect()
}

/// The mean over networks of what it costs to silence a column.
fn cost(views: &[View], column: usize) -> Result<f64> {
    views.iter().map(|view| Ok(view.share * view.cost(column)?)).sum()
}

/// What a layer says of its weights, given those that are silent.
struct View {
    /// M.
    mean: Mat<f64>,
    /// V.
    col_cov: Mat<f64>,
    /// ⟨Σ⁻¹⟩.
    precision: Mat<f64>,
    /// Inputs of every column.
    groups: Vec<Vec<usize>>,
    /// How much the network counts.
    share: f64,
}

impl View {
    /// M_G, and V_GG factored.
    fn group(&self, group: &[usize]) -> Result<(Mat<f64>, Cholesky)> {
        let mean = Mat::from_fn(self.mean.nrows(), group.len(), |i, g| self.mean[(i, group[g])]);
        let cov = Mat::from_fn(group.len(), group.len(), |g, h| self.col_cov[(group[g], group[h])]);
        Ok((mean, Cholesky::new(symmetrised(cov.as_ref()).as_ref(), "the covariance of a column's weights")?))
    }

    fn cost(&self, column: usize) -> Result<f64> {
        if self.groups[column].is_empty() {
            return Ok(0.0);
        }
        let (mean, cov) = self.group(&self.groups[column])?;
        let told = cov.solve(mean.transpose());
        Ok(0.5 * inner((&self.precision * &mean).as_ref(), told.transpose()))
    }

    fn silence(&mut self, column: usize) -> Result<()> {
        let group = self.groups[column].clone();
        if group.is_empty() {
            return Ok(());
        }
        let (mean, cov) = self.group(&group)?;
        let d = self.col_cov.ncols();
        let across = Mat::from_fn(group.len(), d, |g, j| self.col_cov[(group[g], j)]);
        let gain = cov.solve(across.as_ref());
        self.mean -= &mean * &gain;
        self.col_cov -= across.transpose() * &gain;
        for &i in &group {
            self.mean.col_mut(i).fill(0.0);
            for j in 0..d {
                (self.col_cov[(i, j)], self.col_cov[(j, i)]) = (0.0, 0.0);
            }
        }
        Ok(())
    }
}

/// What of the noise stays as it is when inputs are silenced.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    /// η₃: the rest of the targets is noise.
    Outer,
    /// Ψ.
    Noise,
}

/// The layer given that its weights of these inputs are zero.
fn silence(layer: &mut Layer<f64>, inputs: &[usize], kept: Kept) -> Result<()> {
    let NaturalParams { mut pre_pre, mut post_pre, mut post_post, count } = layer.natural();
    let mut prior = layer.prior().clone();
    let inv_scale = &post_post - &post_pre * layer.mean().transpose();
    for &i in inputs {
        let still = prior.pre_pre[(i, i)] / SILENT;
        for j in 0..pre_pre.ncols() {
            (pre_pre[(i, j)], pre_pre[(j, i)]) = (0.0, 0.0);
        }
        (pre_pre[(i, i)], prior.pre_pre[(i, i)]) = (still, still);
        post_pre.col_mut(i).fill(0.0);
    }
    if kept == Kept::Noise {
        let mean = Cholesky::new(pre_pre.as_ref(), "the precision of the weights that are left")?
            .solve(post_pre.transpose());
        post_post = symmetrised((inv_scale + &post_pre * &mean).as_ref());
    }
    layer.set_prior(prior);
    layer.set_natural(NaturalParams { pre_pre, post_pre, post_post, count })
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand::RngExt;

    use super::*;
    use crate::base::random::stream;
    use crate::model::ModelSettings;

    /// The first column says much and the second a little; the third is the first again, the rest nothing.
    fn samples(n: usize) -> (Mat<f64>, Mat<f64>) {
        let mut rng = stream(5, 0);
        let mut x = Mat::from_fn(7, n, |_, _| rng.random_range(-1.0..1.0_f64));
        (0..n).for_each(|j| x[(2, j)] = x[(0, j)] + 1e-6 * x[(2, j)]);
        let y = Mat::from_fn(1, n, |_, j| {
            (3.0 * x[(0, j)]).sin() + 0.5 * x[(1, j)] + 0.1 * rng.random_range(-1.0..1.0)
        });
        (x, y)
    }

    fn settings(hidden: &[usize]) -> ModelSettings {
        let mut settings = ModelSettings::fast();
        settings.network.hidden_layer_sizes = hidden.to_vec();
        settings.training.epochs = 30;
        settings
    }

    fn each() -> Vec<Vec<usize>> {
        (0..7).map(|i| vec![i]).collect()
    }

    #[test]
    fn costs_of_columns_one_after_the_other_add_up_to_that_of_all() {
        let (x, y) = samples(200);
        let model = Model::fit(&Samples::new(&x, &y).unwrap(), &settings(&[8])).unwrap();
        let together: f64 = model.relevance(&[(0..7).collect()]).unwrap()[0];
        let path: f64 = model.order(&each()).unwrap().iter().map(|(_, cost)| cost).sum();
        assert_relative_eq!(together, path, max_relative = 1e-6);
    }

    /// Of a linear network the posterior given that weights are zero is that of a network which never saw the columns.
    #[test]
    fn a_linear_network_without_columns_is_one_that_never_had_them() {
        let (x, y) = samples(150);
        let model = Model::fit(&Samples::new(&x, &y).unwrap(), &settings(&[])).unwrap();
        let silent = model.without(&[3, 4, 5, 6]).unwrap();
        let narrow = x.subrows(0, 3).to_owned();
        let never = Model::fit(&Samples::new(&narrow, &y).unwrap(), &settings(&[])).unwrap();
        let (one, other) = (silent.predict(&x).unwrap(), never.predict(&narrow).unwrap());
        assert!((one.mean() - other.mean()).norm_max() < 1e-6);
        let (a, b) = (one.epistemic_variance(), other.epistemic_variance());
        (0..150).for_each(|j| assert_relative_eq!(a[(0, j)], b[(0, j)], max_relative = 1e-5));
        let (a, b) = (one.aleatoric_variance(), other.aleatoric_variance());
        (0..150).for_each(|j| assert_relative_eq!(a[(0, j)], b[(0, j)], max_relative = 1e-5));
    }

    #[test]
    fn a_silent_column_changes_nothing_and_stays_silent() {
        let (x, y) = samples(200);
        let samples = Samples::new(&x, &y).unwrap();
        let mut model = Model::fit(&samples, &settings(&[8])).unwrap().without(&[1]).unwrap();
        let other = Mat::from_fn(7, 200, |i, j| if i == 1 { 9.0 } else { x[(i, j)] });
        let differ = |model: &Model| {
            (model.predict(&x).unwrap().mean() - model.predict(&other).unwrap().mean()).norm_max()
        };
        assert!(differ(&model) < 1e-6, "{}", differ(&model));
        model.partial_fit(&samples).unwrap();
        assert!(differ(&model) < 1e-3, "{}", differ(&model));
        let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(again.predict(&x).unwrap().mean(), model.predict(&x).unwrap().mean());
    }

    #[test]
    fn a_linear_network_lets_noise_and_copies_go_first() {
        let (x, y) = samples(400);
        let part = |first| Samples::new(x.subcols(first, 200), y.subcols(first, 200)).unwrap();
        let model = Model::fit(&part(0), &settings(&[])).unwrap();
        // One of the copies and the four that say nothing, in some order; then what they are worth all at once.
        let order = model.order(&each()).unwrap();
        let mut first: Vec<_> = order[..5].iter().map(|(column, _)| *column).collect();
        first.sort_unstable();
        assert!(first == [2, 3, 4, 5, 6] || first == [0, 3, 4, 5, 6], "{order:?}");
        assert!(order[5].1 > 3.0 * order[4].1, "{order:?}");
        // Of two copies neither is missed, of what nothing stands in for all is.
        let relevance = model.relevance(&each()).unwrap();
        assert!(relevance[1] > 3.0 * relevance[0], "{relevance:?}");
    }

    #[test]
    fn columns_go_as_long_as_held_out_samples_allow() {
        let (x, y) = samples(400);
        let part = |first| Samples::new(x.subcols(first, 200), y.subcols(first, 200)).unwrap();
        let model = Model::fit(&part(0), &settings(&[12])).unwrap();
        // A network uses what it was given, noise too; but a copy goes first, and what says most goes last.
        let order = model.order(&each()).unwrap();
        assert!([0, 2].contains(&order[0].0) && [0, 2].contains(&order[6].0), "{order:?}");
        let pruning = model.prune(&part(200), &each(), 0.05).unwrap();
        assert!(pruning.silenced >= 1, "{:?}", pruning.path);
        let tried: Vec<_> = pruning.path.iter().map(|pruned| (pruned.column, pruned.cost)).collect();
        assert_eq!(tried, order[..tried.len()]);
        let least = pruning.log_density - 0.05;
        let lost = |pruned: &Pruned| pruned.log_density.unwrap() < least;
        assert_eq!(pruning.path.iter().position(lost), Some(pruning.silenced));
        let left = pruning.model.relevance(&each()).unwrap();
        assert!(pruning.path[..pruning.silenced].iter().all(|pruned| left[pruned.column] < 1e-6), "{left:?}");
    }

    #[test]
    fn wrong_questions_are_refused() {
        let (x, y) = samples(50);
        let samples = Samples::new(&x, &y).unwrap();
        let model = Model::fit(&samples, &settings(&[])).unwrap();
        assert!(matches!(model.relevance(&[vec![7]]), Err(Error::Setting { name: "feature", .. })));
        assert!(matches!(
            model.prune(&samples, &each(), -1.0),
            Err(Error::Setting { name: "tolerance", .. })
        ));
        let nothing = model.prune(&samples, &[], 0.1).unwrap();
        assert_eq!((nothing.silenced, nothing.path.len()), (0, 0));
    }
}
