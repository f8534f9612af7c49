//! Inputs in other units, while a stream goes on: offsets and scales follow all rows so far, and the networks with them.
//!
//! ```text
//! x̃ = (x − o)/s ,   x̃′ = (x − o′)/s′ ,   φ = [x̃; 1] = T φ′ ,   T = [ diag(r)  c ; 0  1 ] ,  r = s′/s ,  c = (o′ − o)/s
//! M′ = M T ,    η₁′ = V⁰⁻¹ + T⁻¹ (η₁ − V⁰⁻¹) T⁻ᵀ
//! ```
//!
//! The mean predicts what it did, and what rows have said is as if they had come in the new units from the start. Only
//! the prior is stated anew: it is about weights of standardised columns. Offset and scale with the weight of the rows so
//! far are a mean and a variance, which those of the next rows join; so nothing else need be kept. Codes of columns keep the
//! edges of the first rows.
//!
//! A column that has been constant has the scale 1 and has left no trace in η₁. Its weights say nothing of its units: they
//! stay as they are in the new ones, and the bias sees to it that the rows so far are predicted as before.

use faer::Mat;

use super::ensemble::Member;
use super::model::Model;
use super::settings::InputScaling;
use crate::data::{Inputs, Samples, Standardiser};
use crate::distributions::NaturalParams;
use crate::error::Result;
use crate::network::{Layer, Network};

/// Share of the variance of a standardised column below which it has been constant so far.
const TRACE: f64 = 1e-9;

/// A model's networks in other units.
pub(super) struct Rescaled {
    pub scaling: Standardiser,
    pub members: Vec<Member>,
    /// Whether a column that has been constant has begun to vary. No step may then use an old V, which knows nothing
    /// of it: a whole batch would go as far as each of its samples alone should.
    pub awake: bool,
}

impl Model {
    /// The same model for inputs scaled by all rows so far and these. `before` is the weight of the rows so far that
    /// still count.
    pub(super) fn rescaled(&self, samples: &Samples<'_>, before: f64) -> Result<Option<Rescaled>> {
        if before == 0.0 || self.settings.input_scaling == InputScaling::Whole {
            return Ok(None);
        }
        let own = &self.ensemble.input_scaling;
        let constant: Vec<bool> =
            (0..own.dim()).map(|i| own.scale[i] == 1.0 && self.was_constant(i)).collect();
        let scaling = joined(own, &constant, before, samples);
        if &scaling == own {
            return Ok(None);
        }
        let in_new_units =
            |member: &Member| Ok(member.with_network(in_units(member.network(), own, &scaling, &constant)?));
        let members = self.members().iter().map(in_new_units).collect::<Result<_>>()?;
        let awake = (0..own.dim()).any(|i| constant[i] && scaling.scale[i] != own.scale[i]);
        Ok(Some(Rescaled { scaling, members, awake }))
    }

    /// Whether a column has had one value so far, as the first network's η₁ tells.
    fn was_constant(&self, column: usize) -> bool {
        let Some(first) = self.members().first().and_then(|member| member.network().layers().next()) else {
            return false;
        };
        let (natural, prior) = (first.natural(), first.prior());
        let bias = natural.pre_pre.nrows() - 1;
        let seen = |i: usize| natural.pre_pre[(i, i)] - prior.pre_pre[(i, i)];
        seen(column) <= TRACE * seen(bias)
    }
}

/// Mean and deviation of earlier rows of weight `before` and of these.
fn joined(own: &Standardiser, constant: &[bool], before: f64, samples: &Samples<'_>) -> Standardiser {
    let (inputs, n): (Inputs<'_>, usize) = (samples.inputs(), samples.n_samples());
    let weight = |j: usize| samples.weights().map_or(1.0, |weights| weights[j]);
    let now = samples.total_weight();
    let share = now / (before + now);
    let mut scaling = own.clone();
    for i in 0..own.dim() {
        let mean = (0..n).map(|j| weight(j) / now * inputs.value(i, j)).sum::<f64>();
        let variance = (0..n).map(|j| weight(j) / now * (inputs.value(i, j) - mean).powi(2)).sum::<f64>();
        let earlier = if constant[i] { 0.0 } else { own.scale[i].powi(2) };
        let delta = mean - own.offset[i];
        let offset = own.offset[i] + share * delta;
        let both = (1.0 - share) * earlier + share * variance + share * (1.0 - share) * delta * delta;
        // What rounding alone does to a constant column.
        let rounding = 8.0 * f64::EPSILON * offset.abs().max(mean.abs());
        if both.is_finite() && both.sqrt() > rounding {
            (scaling.offset[i], scaling.scale[i]) = (offset, both.sqrt());
        }
    }
    scaling
}

/// The same network for inputs in other units.
fn in_units(
    network: &Network<f64>,
    from: &Standardiser,
    to: &Standardiser,
    constant: &[bool],
) -> Result<Network<f64>> {
    let mut network = network.clone();
    let ratio: Vec<f64> = to.scale.iter().zip(&from.scale).map(|(new, old)| new / old).collect();
    let shift: Vec<f64> = (0..ratio.len()).map(|i| (to.offset[i] - from.offset[i]) / from.scale[i]).collect();
    if network.hidden().is_empty() {
        network.output_mut().update(|_, block| change_units(block, &ratio, &shift, constant))?;
    } else {
        change_units(&mut network.hidden_mut()[0], &ratio, &shift, constant)?;
    }
    Ok(network)
}

/// η in the new units, with Ψ as it is.
fn change_units(layer: &mut Layer<f64>, ratio: &[f64], shift: &[f64], constant: &[bool]) -> Result<()> {
    let (natural, prior) = (layer.natural(), layer.prior().clone());
    let mean = layer.mean().to_owned();
    let inv_scale = &natural.post_post - &natural.post_pre * mean.transpose();
    let bias = mean.ncols() - 1;
    let mut seen = &natural.pre_pre - &prior.pre_pre;
    // T⁻¹ on the left, then on the right.
    for j in 0..=bias {
        for i in 0..ratio.len() {
            seen[(i, j)] = (seen[(i, j)] - shift[i] * seen[(bias, j)]) / ratio[i];
        }
    }
    for i in 0..=bias {
        for j in 0..ratio.len() {
            seen[(i, j)] = (seen[(i, j)] - shift[j] * seen[(i, bias)]) / ratio[j];
        }
    }
    // Weight and share of the bias that a column has in the new units, for each of its old weight.
    let factor = |k: usize| if constant[k] { (1.0, shift[k] / ratio[k]) } else { (ratio[k], shift[k]) };
    let moved = Mat::from_fn(mean.nrows(), mean.ncols(), |i, j| {
        if j < ratio.len() {
            mean[(i, j)] * factor(j).0
        } else if j == bias {
            mean[(i, bias)] + (0..ratio.len()).map(|k| mean[(i, k)] * factor(k).1).sum::<f64>()
        } else {
            mean[(i, j)]
        }
    });
    let pre_pre = crate::base::linalg::symmetrised((&prior.pre_pre + &seen).as_ref());
    let post_pre = &moved * &pre_pre;
    let post_post = inv_scale + &post_pre * moved.transpose();
    let post_post = crate::base::linalg::symmetrised(post_post.as_ref());
    layer.set_natural(NaturalParams { pre_pre, post_pre, post_post, count: natural.count })
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand::RngExt;

    use super::*;
    use crate::base::random::stream;
    use crate::model::ModelSettings;

    fn settings() -> ModelSettings {
        let mut settings = ModelSettings::fast();
        settings.network.hidden_layer_sizes = vec![6];
        settings.training.epochs = 3;
        settings
    }

    /// Columns of which the second moves and grows, and the third is constant in the first half.
    fn drifting(n: usize) -> (Mat<f64>, Mat<f64>) {
        let mut rng = stream(3, 0);
        let x = Mat::from_fn(3, n, |i, j| {
            let late = 2 * j >= n;
            let draw = rng.random_range(-1.0..1.0_f64);
            [draw, if late { 2.0 + 3.0 * draw } else { draw }, if late { 1e3 * draw } else { 7.0 }][i]
        });
        let y = Mat::from_fn(1, n, |_, j| (2.0 * x[(0, j)]).sin());
        (x, y)
    }

    #[test]
    fn other_units_change_no_prediction_and_make_statistics_those_of_the_new_units() {
        let (x, y) = drifting(400);
        let early = Samples::new(x.subcols(0, 200), y.subcols(0, 200)).unwrap();
        let late = Samples::new(x.subcols(200, 200), y.subcols(200, 200)).unwrap();
        let model = Model::fit(&early, &settings()).unwrap();
        let Rescaled { scaling, members, awake } = model.rescaled(&late, 200.0).unwrap().unwrap();
        assert!(awake);
        let both = Standardiser::fit(x.as_ref()).unwrap();
        for i in 0..3 {
            assert_relative_eq!(scaling.offset[i], both.offset[i], max_relative = 1e-10, epsilon = 1e-12);
            assert_relative_eq!(scaling.scale[i], both.scale[i], max_relative = 1e-10);
        }
        let mut other = model.clone();
        other.ensemble.input_scaling = scaling.clone();
        other.ensemble.members = members;
        let predicted = |model: &Model| model.predict(x.subcols(0, 200)).unwrap().mean();
        let (a, b) = (predicted(&model), predicted(&other));
        assert!((&a - &b).norm_max() < 1e-9 * (1.0 + a.norm_max()), "{}", (a - b).norm_max());
        // Finalisation left η₁ = V⁰⁻¹ + Σ φφᵀ of the early rows: so it is in the new units.
        let first = &other.members()[0].network().hidden()[0];
        let inputs = scaling.apply(x.subcols(0, 200)).unwrap();
        let phi = Mat::from_fn(4, 200, |i, j| if i == 3 { 1.0 } else { inputs[(i, j)] });
        let expected = &first.prior().pre_pre + &phi * phi.transpose();
        assert!((first.natural().pre_pre - &expected).norm_max() < 1e-8 * expected.norm_max());
    }

    #[test]
    fn a_stream_whose_first_rows_have_another_scale_is_learned_as_well() {
        let (x, y) = drifting(8000);
        let mut settings = settings();
        settings.network.hidden_layer_sizes = vec![20];
        let streamed = |x: &Mat<f64>, y: &Mat<f64>| {
            let chunk = |start: usize| Samples::new(x.subcols(start, 1000), y.subcols(start, 1000)).unwrap();
            let mut model = Model::for_stream(&chunk(0), &settings).unwrap();
            for start in (0..8000).step_by(1000) {
                model.partial_fit(&chunk(start)).unwrap();
            }
            model
        };
        let model = streamed(&x, &y);
        let scaling = Standardiser::fit(x.as_ref()).unwrap();
        for i in 0..3 {
            assert_relative_eq!(model.input_scaling().scale[i], scaling.scale[i], max_relative = 1e-9);
        }
        let rmse = |model: &Model| {
            let predicted = model.predict(x.subcols(7000, 1000)).unwrap();
            crate::metrics::rmse(predicted.mean().as_ref(), y.subcols(7000, 1000)).unwrap()
        };
        // The same rows in no particular order: 3571 and 8000 have no common divisor.
        let shuffled = |m: &Mat<f64>| Mat::from_fn(m.nrows(), 8000, |i, j| m[(i, j * 3571 % 8000)]);
        let (own, best) = (rmse(&model), rmse(&streamed(&shuffled(&x), &shuffled(&y))));
        assert!(own < 1.5 * best + 0.05, "{own} where rows in no order give {best}");
    }
}
