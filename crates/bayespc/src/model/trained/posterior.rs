//! From trained weights to a posterior around them, in one pass over the data.
//!
//! ```text
//! given      a = W_L [f( … f(W_1 [x; 1]) … ); 1]          x, a in the units of the data
//! inside     x̃ = (x − o)/s ,   ã = (a − o_y)/s_y
//!            W̃_1 = W_1 diag(s) ,  b̃_1 = b_1 + W_1 o ,     W̃_L = diag(s_y)⁻¹ W_L ,  b̃_L = (b_L − o_y)/s_y
//! ```
//!
//! The network of the standardised data is the same function, and its weights are the means of the posterior: the mean
//! network predicts what the given one does. Covariances, noise and the hidden metric are those of finalisation
//! (`learning::settle_around`), so that the posterior of a hidden layer has the curvature factors of the Kronecker-factored
//! Laplace approximation, with V⁰⁻¹ added to the one and tr(F)/d to the other (`learning/finalise.rs`).
//!
//! Log-variances of a variance node are of y, not of ỹ: ℓ̃ = ℓ − 2 log s_y. Logits and one-hot codes have no units.

use faer::Mat;

use crate::data::{Dataset, Samples, Standardiser, Targets, Task};
use crate::error::{Error, Result};
use crate::heads::HeadSettings;
use crate::inference::{Feedback, FeedbackSettings};
use crate::learners::Rule;
use crate::learning;
use crate::metrics;
use crate::model::Model;
use crate::model::calibration;
use crate::model::ensemble::{Ensemble, Member, planned_steps};
use crate::model::fit::check_task;
use crate::model::memory;
use crate::model::reference::Reference;
use crate::model::settings::ModelSettings;
use crate::network::Network;
use crate::prediction::Method;
use crate::training::TrainingReport;

/// Batches from which the feedback rule learns what it would know after training: its memory is of some twenty.
const FEEDBACK_BATCHES: usize = 100;

impl Model {
    /// A model around the weights of a network that was trained elsewhere.
    ///
    /// `weights` are W_1 … W_L in the units of the data, each with its bias in the last column; `samples` are what it was
    /// trained on, or others like them. The settings say activation, head, prior, calibration and how to predict; the
    /// widths of the hidden layers follow from the weights. The mean network predicts as the given one; everything else
    /// that there is to know of a fitted model comes from one pass over the samples.
    ///
    /// Calibration holds samples out of that pass. It can only correct what the weights have not seen: give samples
    /// that the network was not trained on.
    pub fn from_weights(
        weights: &[Mat<f64>],
        samples: &Samples<'_>,
        settings: &ModelSettings,
    ) -> Result<Self> {
        let (settings, rule) = &settled(weights, settings)?;
        check_task(samples.task(), settings)?;
        check_finite(weights)?;
        memory::check(settings, samples.n_features(), samples.n_outputs())?;
        let parts = calibration::hold_out(samples, settings)?;
        let train = parts.as_ref().map_or(*samples, |parts| parts.train.view());
        let mut ensemble = Ensemble::untrained(&train, settings.input_scaling)?;
        // Shapes are checked before the units are changed.
        let (d, k) = (train.n_features(), train.n_outputs());
        Network::<f64>::with_weights(&settings.network, d, k, weights)?;
        let inside = standardised(weights, &ensemble, &settings.network.head);
        let mut network = Network::with_weights(&settings.network, d, k, &inside)?;
        let data = ensemble.standardise::<f64>(&train, 0)?;
        let data = data.view()?;
        learning::settle_around(&mut network, &data)?;
        let feedback = feedback_of(&network, &data, rule, settings.training.batch_size)?;
        let plan = settings.plans().remove(0);
        let steps = planned_steps(&settings.training, data.len());
        ensemble.members = vec![Member::new(network, &plan, feedback, steps, TrainingReport::none())];
        let mut model = Self::of(settings, ensemble, train.total_weight());
        model.warnings.extend(model.no_better_than_a_constant(&train)?);
        model.calibrate_on(parts.as_ref().map(|parts| parts.test.view()))?;
        model.reference = Some(Reference::of(&model, train.inputs())?);
        Ok(model)
    }

    /// A warning, if the weights do not know these targets: they may be of other columns, or of other units.
    fn no_better_than_a_constant(&self, samples: &Samples<'_>) -> Result<Option<String>> {
        let useless = match samples.targets() {
            Targets::Values(values) => {
                let mean = self.predict_by(samples.inputs(), Method::Mean)?.mean();
                let scale = &self.target_scaling().scale;
                (0..values.nrows()).any(|i| {
                    let errors = (0..values.ncols()).map(|j| (values[(i, j)] - mean[(i, j)]) / scale[i]);
                    let square = errors.map(|e| e * e).sum::<f64>() / values.ncols() as f64;
                    square > 1.0
                })
            }
            Targets::Classes { labels, classes } => {
                let probabilities = self.predict_probabilities_by(samples.inputs(), Method::Mean)?;
                let loss = metrics::negative_log_likelihood(probabilities.as_ref(), labels)?;
                let share = |class: usize| {
                    labels.iter().filter(|&&label| label == class).count() as f64 / labels.len() as f64
                };
                let shares = (0..classes).map(share).filter(|&p| p > 0.0);
                let entropy: f64 = shares.map(|p| -p * p.ln()).sum();
                loss > entropy && entropy > 0.0
            }
        };
        Ok(useless.then(|| {
            "the weights predict these targets no better than a constant does: are inputs and targets in the units and \
             the order of columns that the network was trained on?"
                .to_owned()
        }))
    }
}

/// The settings with the shape of these weights, and the rule to learn on by.
fn settled(weights: &[Mat<f64>], settings: &ModelSettings) -> Result<(ModelSettings, FeedbackSettings)> {
    let Rule::Feedback(rule) = settings.rule.clone() else {
        return Err(Error::Conflict {
            first: "rule = relaxation",
            second: "weights trained elsewhere, which know no noise of activities",
        });
    };
    let refuse = |first| Err(Error::Conflict { first, second: "weights trained elsewhere" });
    if settings.members != 1 {
        return refuse("members (there is one network)");
    }
    if settings.search.enabled {
        return refuse("search");
    }
    if settings.bins > 0 {
        return refuse("bins");
    }
    let mut settings = settings.clone();
    let below = weights.len().saturating_sub(1);
    settings.network.hidden_layer_sizes = weights[..below].iter().map(Mat::nrows).collect();
    settings.validate()?;
    Ok((settings, rule))
}

fn check_finite(weights: &[Mat<f64>]) -> Result<()> {
    weights.iter().try_for_each(|own| crate::base::check::check_finite("a weight", own.transpose()))
}

/// W̃ of W.
fn standardised(weights: &[Mat<f64>], ensemble: &Ensemble, head: &HeadSettings) -> Vec<Mat<f64>> {
    let mut inside = weights.to_vec();
    let Standardiser { offset, scale } = &ensemble.input_scaling;
    if let Some(first) = inside.first_mut() {
        let bias = first.ncols() - 1;
        for i in 0..first.nrows() {
            first[(i, bias)] += (0..bias).map(|j| first[(i, j)] * offset[j]).sum::<f64>();
            (0..bias).for_each(|j| first[(i, j)] *= scale[j]);
        }
    }
    if ensemble.task != Task::Regression {
        return inside;
    }
    let Standardiser { offset, scale } = &ensemble.target_scaling;
    if let Some(last) = inside.last_mut() {
        let (bias, n_targets) = (last.ncols() - 1, offset.len());
        for (i, (offset, scale)) in offset.iter().zip(scale).enumerate() {
            last[(i, bias)] -= offset;
            (0..=bias).for_each(|j| last[(i, j)] /= scale);
            if matches!(head, HeadSettings::VarianceNode(_)) {
                // d means, then d log-variances.
                last[(n_targets + i, bias)] -= 2.0 * scale.ln();
            }
        }
    }
    inside
}

/// What the feedback rule would know of this network after training: C_l from batches that each hold samples of all the
/// data.
fn feedback_of(
    network: &Network<f64>,
    data: &Dataset<'_, f64>,
    rule: &FeedbackSettings,
    batch_size: Option<usize>,
) -> Result<(Vec<Mat<f64>>, u64)> {
    let size = batch_size.unwrap_or(data.len()).min(data.len());
    let batches = data.len().div_ceil(size);
    let mut feedback = Feedback::new(network);
    for batch in 0..batches.min(FEEDBACK_BATCHES) {
        let samples: Vec<usize> = (batch..data.len()).step_by(batches).collect();
        let batch = data.gather(&samples);
        if batch.view().total_weight() > 0.0 {
            feedback.infer(network, &batch.view(), rule)?;
        }
    }
    Ok((feedback.covariance(), feedback.steps()))
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand::RngExt;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::base::random::stream;
    use crate::heads::{Categorical, VarianceNode};
    use crate::network::Activation;

    fn normal(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
        let mut rng = stream(seed, 0);
        Mat::from_fn(rows, columns, |_, _| StandardNormal.sample(&mut rng))
    }

    /// Inputs far from standardised.
    fn inputs(n: usize) -> Mat<f64> {
        let z = normal(2, n, 1);
        Mat::from_fn(2, n, |i, j| [100.0, -3.0][i] + [20.0, 0.1][i] * z[(i, j)])
    }

    /// A network for such inputs.
    fn given(outputs: usize) -> Vec<Mat<f64>> {
        let mut first = normal(5, 3, 2);
        for i in 0..5 {
            first[(i, 0)] *= 0.05;
            first[(i, 1)] *= 10.0;
            first[(i, 2)] -= 100.0 * first[(i, 0)] - 3.0 * first[(i, 1)];
        }
        vec![first, normal(outputs, 6, 3) * faer::Scale(7.0)]
    }

    fn settings(head: HeadSettings) -> ModelSettings {
        let mut settings = ModelSettings::fast();
        settings.network.activation = Activation::Tanh;
        settings.network.head = head;
        settings
    }

    /// What the given weights say, computed without the library.
    fn forward(weights: &[Mat<f64>], x: &Mat<f64>) -> Mat<f64> {
        let mut z = x.clone();
        for (l, own) in weights.iter().enumerate() {
            let below = if l == 0 { z } else { Mat::from_fn(z.nrows(), z.ncols(), |i, j| z[(i, j)].tanh()) };
            z = Mat::from_fn(own.nrows(), below.ncols(), |i, j| {
                let d = below.nrows();
                own[(i, d)] + (0..d).map(|k| own[(i, k)] * below[(k, j)]).sum::<f64>()
            });
        }
        z
    }

    fn regression(n: usize) -> (Mat<f64>, Mat<f64>, Vec<Mat<f64>>) {
        let (x, weights) = (inputs(n), given(1));
        let y = forward(&weights, &x) + normal(1, n, 4) * faer::Scale(0.5);
        (x, y, weights)
    }

    #[test]
    fn the_mean_is_what_the_weights_say_and_the_noise_is_that_of_the_errors() {
        let (x, y, weights) = regression(2000);
        let samples = Samples::new(&x, &y).unwrap();
        let model = Model::from_weights(&weights, &samples, &settings(HeadSettings::default())).unwrap();
        let predictive = model.predict(x.as_ref()).unwrap();
        let (mean, expected) = (predictive.mean(), forward(&weights, &x));
        for j in 0..100 {
            assert_relative_eq!(mean[(0, j)], expected[(0, j)], epsilon = 1e-9);
        }
        let noise = predictive.aleatoric_variance()[(0, 0)];
        // The variance of 2000 errors of variance ¼ has a relative deviation of √(2/2000); three of them.
        assert_relative_eq!(noise, 0.25, max_relative = 0.1);
        assert!(model.warnings().is_empty());
        // A tenth of the rows knows a tenth as much of the same weights.
        let some = Samples::new(x.subcols(0, 200), y.subcols(0, 200)).unwrap();
        let some = Model::from_weights(&weights, &some, &settings(HeadSettings::default())).unwrap();
        let mean_of = |model: &Model| {
            let epistemic = model.predict(&x).unwrap().epistemic_variance();
            epistemic.col_iter().map(|column| column[0]).sum::<f64>() / 2000.0
        };
        let ratio = mean_of(&some) / mean_of(&model);
        assert!((7.0..14.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn around_the_conjugate_mean_of_a_wide_prior_the_posterior_is_the_conjugate_one() {
        let (x, y, _) = regression(60);
        let samples = Samples::new(&x, &y).unwrap();
        let mut settings = settings(HeadSettings::default());
        settings.network.hidden_layer_sizes = Vec::new();
        settings.training.epochs = 1;
        settings.network.prior.var = 1e9;
        let fitted = Model::fit(&samples, &settings).unwrap();
        let layer = |model: &Model| model.members()[0].network().output().blocks()[0].clone();
        // The weights in the units of the data, from predictions at a corner of them.
        let corners = Mat::from_fn(2, 3, |i, j| f64::from(u8::from(i == j)));
        let at = fitted.predict(corners.as_ref()).unwrap().mean();
        let zero = at[(0, 2)];
        let own = Mat::from_fn(1, 3, |_, j| if j < 2 { at[(0, j)] - zero } else { zero });
        let around = Model::from_weights(&[own], &samples, &settings).unwrap();
        let (a, b) = (layer(&fitted).natural(), layer(&around).natural());
        for (a, b) in [(&a.pre_pre, &b.pre_pre), (&a.post_pre, &b.post_pre), (&a.post_post, &b.post_post)] {
            assert!((a - b).norm_max() < 1e-8 * a.norm_max(), "{a:?} {b:?}");
        }
        assert_relative_eq!(a.count, b.count);
    }

    #[test]
    fn logits_and_log_variances_keep_their_meaning() {
        let (x, weights) = (inputs(400), given(3));
        let logits = forward(&weights, &x);
        let mut rng = stream(5, 0);
        let probability = |i: usize, j: usize| {
            let total: f64 = (0..3).map(|k| logits[(k, j)].exp()).sum();
            logits[(i, j)].exp() / total
        };
        let labels: Vec<usize> = (0..400)
            .map(|j| {
                let u: f64 = rng.random();
                usize::from(u > probability(0, j)) + usize::from(u > probability(0, j) + probability(1, j))
            })
            .collect();
        let samples = Samples::new(&x, Targets::Classes { labels: &labels, classes: 3 }).unwrap();
        let head = HeadSettings::Categorical(Categorical::default());
        let model = Model::from_weights(&weights, &samples, &settings(head)).unwrap();
        let found = model.predict_probabilities_by(x.as_ref(), Method::Mean).unwrap();
        for (i, j) in (0..60).map(|k| (k % 3, k / 3)) {
            assert_relative_eq!(found[(i, j)], probability(i, j), epsilon = 1e-10);
        }

        let (x, y, weights) = regression(400);
        // One more row: a constant log-variance, of y and not of a standardised y.
        let both = Mat::from_fn(2, 6, |i, j| match (i, j) {
            (0, _) => weights[1][(0, j)],
            (_, 5) => 0.25f64.ln(),
            _ => 0.0,
        });
        let head = HeadSettings::VarianceNode(VarianceNode::default());
        let samples = Samples::new(&x, &y).unwrap();
        let model = Model::from_weights(&[weights[0].clone(), both], &samples, &settings(head)).unwrap();
        let noise = model.predict(x.as_ref()).unwrap().aleatoric_variance()[(0, 0)];
        // The tails are those of a t with 30 degrees of freedom.
        assert_relative_eq!(noise, 0.25 * 30.0 / 28.0, max_relative = 0.08);
    }

    #[test]
    fn it_learns_on_from_a_stream_and_its_file_is_any_models_file() {
        let (x, y, weights) = regression(400);
        let samples = Samples::new(&x, &y).unwrap();
        let mut model = Model::from_weights(&weights, &samples, &settings(HeadSettings::default())).unwrap();
        let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(again.predict(&x).unwrap().std(), model.predict(&x).unwrap().std());
        let rmse = |model: &Model| metrics::rmse(model.predict(&x).unwrap().mean().as_ref(), y.as_ref());
        let before = rmse(&model).unwrap();
        model.partial_fit(&samples).unwrap();
        assert_relative_eq!(model.n_seen(), 800.0);
        // The same samples again: what it knows is not lost.
        assert!(rmse(&model).unwrap() < 1.2 * before, "{} {before}", rmse(&model).unwrap());
    }

    #[test]
    fn weights_that_do_not_fit_are_named_and_those_of_other_units_are_warned_of() {
        let (x, y, weights) = regression(50);
        let samples = Samples::new(&x, &y).unwrap();
        let plain = settings(HeadSettings::default());
        let fit =
            |weights: &[Mat<f64>], settings: &ModelSettings| Model::from_weights(weights, &samples, settings);
        let narrow = [weights[0].subcols(0, 2).to_owned(), weights[1].clone()];
        assert!(matches!(fit(&narrow, &plain), Err(Error::Shape { axis: "columns", found: 2, .. })));
        let two = given(2);
        assert!(matches!(fit(&two, &plain), Err(Error::Shape { axis: "rows", found: 2, expected: 1, .. })));
        assert!(fit(&[], &plain).is_err());
        let mut infinite = weights.clone();
        infinite[1][(0, 0)] = f64::NAN;
        assert!(matches!(fit(&infinite, &plain), Err(Error::NotFinite { .. })));
        for refused in [
            ModelSettings { members: 3, ..plain.clone() },
            ModelSettings { bins: 8, ..plain.clone() },
            ModelSettings { rule: ModelSettings::paper().rule, ..plain.clone() },
            ModelSettings { search: ModelSettings::default().search, ..plain.clone() },
        ] {
            assert!(matches!(fit(&weights, &refused), Err(Error::Conflict { .. })));
        }
        // Inputs that were standardised when the network was trained, and are not now.
        let z = Standardiser::fit(x.as_ref()).unwrap();
        let mut other = weights.clone();
        for i in 0..5 {
            other[0][(i, 2)] += 100.0 * other[0][(i, 0)] - 3.0 * other[0][(i, 1)];
            (0..2).for_each(|j| other[0][(i, j)] *= z.scale[j]);
        }
        let warned = fit(&other, &plain).unwrap();
        assert!(warned.warnings()[0].contains("no better than a constant"), "{:?}", warned.warnings());
    }
}
