//! One network and its rule, as Python sees them: for those who want to look inside or train by hand.
//!
//! Inputs and targets are standardised, or on any scale the user likes: nothing here rescales them.

use bayespc::data::{Dataset, Standardiser};
use bayespc::distributions::MatrixNormalWishart as InnerPosterior;
use bayespc::inference::{
    Clamp, Feedback, FeedbackSettings, LangevinSettings, Parameters, RelaxationSettings, Relaxer, Stop,
    draw_missing, generate, impute,
};
use bayespc::learners::{Bpc, Learner, Rule, Step};
use bayespc::model::{Member, Model as InnerModel, ModelSettings};
use bayespc::network::{Activities, Network as Inner, NetworkSettings};
use bayespc::prediction::{Method, predict};
use bayespc::{Error, Result, Task, training};
use faer::Mat;
use pyo3::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::arrays::{
    Array1, Array2, Matrix, Stack, Vector, array, columns, raised, refused, rows, stacked, values, vector,
};
use crate::distributions::MatrixNormalWishart;
use crate::model::{Model, json, parse};
use crate::pool::run;
use crate::predictive::Predictive;

/// A network that learns by Bayesian predictive coding.
#[pyclass(module = "bayespc._core")]
pub struct Network {
    learner: Bpc<f64>,
}

impl Network {
    pub fn of_member(py: Python<'_>, member: &Member, settings: &ModelSettings) -> PyResult<Self> {
        let learner = run(py, || -> Result<_> {
            let mut learner = Bpc::new(member.network().clone(), settings.rule.clone())?;
            let (feedback_cov, steps) = member.feedback.clone();
            learner.restore_feedback_state(feedback_cov, steps)?;
            Ok(learner)
        })?;
        Ok(Self { learner: learner.map_err(raised)? })
    }

    fn network(&self) -> &Inner<f64> {
        self.learner.network()
    }

    fn check_data(&self, data: &Dataset<'_, f64>) -> PyResult<()> {
        check("input", "features", data.input().nrows(), self.network().d_input())?;
        check("target", "columns", data.target().nrows(), self.network().n_targets())
    }

    /// Settings of relaxation: those of the rule, or the paper's.
    fn relaxation(&self) -> RelaxationSettings {
        match self.learner.rule() {
            Rule::Relaxation(settings) => settings.clone(),
            Rule::Feedback(_) => RelaxationSettings::paper(),
        }
    }

    /// Settings of feedback: those of the rule, or the default.
    fn feedback(&self) -> FeedbackSettings {
        match self.learner.rule() {
            Rule::Feedback(settings) => settings.clone(),
            Rule::Relaxation(_) => FeedbackSettings::default(),
        }
    }
}

/// The library checks shapes where it learns and predicts; its parts trust their caller.
fn check(what: &'static str, axis: &'static str, found: usize, expected: usize) -> PyResult<()> {
    if found == expected { Ok(()) } else { Err(refused(Error::Shape { what, axis, found, expected })) }
}

fn arrays(py: Python<'_>, matrices: &[Mat<f64>]) -> PyResult<Vec<Matrix>> {
    matrices.iter().map(|matrix| rows(py, matrix.as_ref())).collect()
}

fn distributions(posteriors: Vec<Result<InnerPosterior>>) -> PyResult<Vec<MatrixNormalWishart>> {
    posteriors.into_iter().map(|q| Ok(MatrixNormalWishart { inner: q.map_err(refused)? })).collect()
}

#[pymethods]
impl Network {
    /// A network that has seen no data; `settings` and `rule` as JSON.
    #[new]
    fn new(
        py: Python<'_>,
        d_input: usize,
        n_targets: usize,
        settings: &str,
        rule: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let settings: NetworkSettings = parse("settings", settings)?;
        let rule: Rule = parse("rule", rule)?;
        let learner = run(py, || {
            Bpc::new(Inner::new(&settings, d_input, n_targets, &mut training::init_rng(seed))?, rule)
        })?;
        Ok(Self { learner: learner.map_err(raised)? })
    }

    fn copy(&self) -> Self {
        Self { learner: self.learner.clone() }
    }

    /// A model of this network after `steps` batches, for `classes` classes or 0. Offset and scale say how inputs and
    /// targets became what it was trained on.
    fn to_model(
        &self,
        py: Python<'_>,
        steps: u64,
        classes: usize,
        input: (Vec<f64>, Vec<f64>),
        target: (Vec<f64>, Vec<f64>),
    ) -> PyResult<Model> {
        let task = if classes > 0 { Task::Classification { classes } } else { Task::Regression };
        let scaling = |(offset, scale): (Vec<f64>, Vec<f64>)| Standardiser { offset, scale };
        let scaling = (scaling(input), scaling(target));
        let inner = run(py, || InnerModel::of_network(&self.learner, steps, task, scaling))?;
        Ok(Model { inner: inner.map_err(raised)? })
    }

    #[getter]
    fn settings(&self) -> PyResult<String> {
        json(self.network().settings())
    }

    #[getter]
    fn rule(&self) -> PyResult<String> {
        json(self.learner.rule())
    }

    #[getter]
    fn widths(&self) -> Vec<usize> {
        self.network().widths()
    }

    /// M_1 … M_L, bias in the last column.
    #[getter]
    fn weights(&self, py: Python<'_>) -> PyResult<Vec<Matrix>> {
        self.network().means().into_iter().map(|mean| array(py, mean)).collect()
    }

    /// Posteriors of all layers, blocks of the output last.
    fn posteriors(&self, py: Python<'_>) -> PyResult<Vec<MatrixNormalWishart>> {
        distributions(run(py, || self.network().layers().map(bayespc::network::Layer::posterior).collect())?)
    }

    /// Priors of all layers, blocks of the output last.
    fn priors(&self, py: Python<'_>) -> PyResult<Vec<MatrixNormalWishart>> {
        let priors =
            run(py, || self.network().layers().map(bayespc::network::Layer::prior_distribution).collect())?;
        distributions(priors)
    }

    /// z_1 … z_L of the forward pass.
    fn forward(&self, py: Python<'_>, x: Array2<'_, f64>) -> PyResult<Vec<Matrix>> {
        let input = columns(&x);
        let network = self.network();
        check("input", "features", input.nrows(), network.d_input())?;
        let post = run(py, || {
            let mut activities = Activities::new(&network.widths(), input.ncols());
            activities.forward(&network.means(), network.settings().activation, input);
            activities.post
        })?;
        arrays(py, &post)
    }

    /// Relax the hidden activities with both ends clamped (NaN is free). Returns z_0 … z_L at rest, the energy
    /// after the forward pass and after every step, the energy of each layer at rest, and why it stopped.
    #[pyo3(signature = (x, y, settings=None))]
    fn relax(
        &self,
        py: Python<'_>,
        x: Array2<'_, f64>,
        y: Array2<'_, f64>,
        settings: Option<&str>,
    ) -> PyResult<(Vec<Matrix>, Vector, Vector, &'static str)> {
        let (input, target) = (columns(&x), columns(&y));
        let settings = settings.map_or_else(|| Ok(self.relaxation()), |text| parse("settings", text))?;
        let network = self.network();
        self.check_data(&Dataset::with_missing(input, target).map_err(refused)?)?;
        let relaxed = run(py, || -> Result<_> {
            let mut clamp = Clamp::missing(input, target, network.settings().input_var)?;
            let relaxer = Relaxer::new(network, &settings, clamp.free_input.is_some())?;
            let target = relaxer.clamped_target(input, target, &mut clamp)?;
            let mut activities = relaxer.start(input, target.as_ref(), &clamp);
            let report = relaxer.relax(&mut activities, &clamp);
            let layers = relaxer.layer_energies(&activities, &clamp);
            Ok((activities, report, layers))
        })?;
        let (activities, report, layers) = relaxed.map_err(raised)?;
        let stop = match report.stop {
            Stop::MaxSteps => "max_steps",
            Stop::Converged => "converged",
            Stop::Diverged => "diverged",
            _ => "stopped",
        };
        let mut at_rest = vec![rows(py, activities.pre[0].subrows(0, input.nrows()))?];
        at_rest.extend(arrays(py, &activities.post)?);
        Ok((at_rest, vector(py, report.energy), vector(py, layers), stop))
    }

    /// z_1 … z_L as the feedback rule infers them: hidden targets ẑ + ε, and the head's working targets.
    fn infer_by_feedback(
        &self,
        py: Python<'_>,
        x: Array2<'_, f64>,
        y: Array2<'_, f64>,
    ) -> PyResult<Vec<Matrix>> {
        let data = Dataset::new(columns(&x), columns(&y)).map_err(refused)?;
        let network = self.network();
        self.check_data(&data)?;
        let post = run(py, || -> Result<Vec<Mat<f64>>> {
            let mut feedback = Feedback::new(network);
            feedback.infer(network, &data, &self.feedback())?;
            let mut post: Vec<Mat<f64>> =
                network.widths()[1..].iter().map(|&d| Mat::zeros(d, data.len())).collect();
            let (top, hidden) = post.split_last_mut().expect("a network has a layer");
            top.copy_from(&feedback.response().targets);
            for chunk in feedback.chunks() {
                for ((whole, z), error) in hidden.iter_mut().zip(&chunk.activities().post).zip(chunk.errors())
                {
                    whole.as_mut().subcols_mut(chunk.start(), chunk.len()).copy_from(z + error);
                }
            }
            Ok(post)
        })?;
        arrays(py, &post.map_err(raised)?)
    }

    /// Learn from one batch, as step `step` of `total`, with a posterior that represents `n_total` samples.
    /// Returns the mean squared error before. NaN is missing (relaxation only).
    #[pyo3(signature = (x, y, step, total, n_total, full_batch, weights=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords on the Python side")]
    fn learn(
        &mut self,
        py: Python<'_>,
        x: Array2<'_, f64>,
        y: Array2<'_, f64>,
        step: u64,
        total: Option<u64>,
        n_total: f64,
        full_batch: bool,
        weights: Option<Array1<'_, f64>>,
    ) -> PyResult<f64> {
        let (input, target) = (columns(&x), columns(&y));
        let missing = input.col_iter().chain(target.col_iter()).any(|c| c.iter().any(|v| v.is_nan()));
        let data = if missing { Dataset::with_missing(input, target) } else { Dataset::new(input, target) };
        let mut data = data.map_err(refused)?;
        if let Some(weights) = &weights {
            data = data.with_weights(values(weights)).map_err(refused)?;
        }
        let place = Step { index: step, total, n_total, full_batch };
        let learner = &mut self.learner;
        // Neither rule draws anything while learning.
        run(py, || learner.learn(&data, &place, &mut ChaCha8Rng::seed_from_u64(0)))?.map_err(raised)
    }

    /// Settle every posterior on the data trained on.
    fn finish(&mut self, py: Python<'_>, x: Array2<'_, f64>, y: Array2<'_, f64>) -> PyResult<()> {
        let data = Dataset::new(columns(&x), columns(&y)).map_err(refused)?;
        self.check_data(&data)?;
        let learner = &mut self.learner;
        run(py, || learner.finish(&data))?.map_err(raised)
    }

    /// Predict by a method given as JSON.
    fn predict(&self, py: Python<'_>, x: Array2<'_, f64>, method: &str) -> PyResult<Predictive> {
        let input = columns(&x);
        let method: Method = parse("method", method)?;
        let inner = run(py, || predict(self.network(), input, method))?.map_err(raised)?;
        Ok(Predictive { inner })
    }

    /// Complexity and expected log-likelihood of every layer, shape `(layers, 2)`.
    fn free_energy(&self, py: Python<'_>, x: Array2<'_, f64>, y: Array2<'_, f64>) -> PyResult<Matrix> {
        let data = Dataset::new(columns(&x), columns(&y)).map_err(refused)?;
        self.check_data(&data)?;
        let layers = run(py, || bayespc::learning::free_energy(self.network(), &data))?.map_err(raised)?;
        let table = Mat::from_fn(2, layers.len(), |part, layer| match part {
            0 => layers[layer].complexity,
            _ => layers[layer].expected_log_likelihood,
        });
        rows(py, table.as_ref())
    }

    /// Draw n inputs from their prior and targets from the network.
    fn generate(&self, py: Python<'_>, n: usize, draw: bool, seed: u64) -> PyResult<(Matrix, Matrix)> {
        let parameters = if draw { Parameters::Draw } else { Parameters::Mean };
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let generated = run(py, || generate(self.network(), n, parameters, &mut rng))?;
        let (input, target) = generated.map_err(raised)?;
        Ok((rows(py, input.as_ref())?, rows(py, target.as_ref())?))
    }

    /// Infer NaN entries: inputs, their variances, targets, their variances.
    fn impute(
        &self,
        py: Python<'_>,
        x: Array2<'_, f64>,
        y: Array2<'_, f64>,
        weight_uncertainty: f64,
    ) -> PyResult<(Matrix, Matrix, Matrix, Matrix)> {
        let (input, target) = (columns(&x), columns(&y));
        check("target", "columns", target.nrows(), self.network().n_targets())?;
        let imputed = run(py, || impute(self.network(), input, target, weight_uncertainty))?;
        let imputed = imputed.map_err(raised)?;
        Ok((
            rows(py, imputed.input.as_ref())?,
            rows(py, imputed.input_variance.as_ref())?,
            rows(py, imputed.target.as_ref())?,
            rows(py, imputed.target_variance.as_ref())?,
        ))
    }

    /// Draw NaN entries `draws` times by Langevin steps, with settings as JSON: inputs and targets, `(draws, n, d)`, and
    /// the share of steps that were accepted.
    fn draw_missing(
        &self,
        py: Python<'_>,
        x: Array2<'_, f64>,
        y: Array2<'_, f64>,
        draws: usize,
        settings: &str,
    ) -> PyResult<(Stack, Stack, f64)> {
        let (input, target) = (columns(&x), columns(&y));
        let settings: LangevinSettings = parse("settings", settings)?;
        let drawn = run(py, || draw_missing(self.network(), input, target, draws, &settings))?;
        let drawn = drawn.map_err(raised)?;
        Ok((
            stacked(py, &drawn.input, input.nrows(), input.ncols())?,
            stacked(py, &drawn.target, target.nrows(), target.ncols())?,
            drawn.accepted,
        ))
    }
}
