//! The noise of targets, where it does not depend on the inputs.
//!
//! ```text
//! σ² = s² τ Σ_m w_m (α τ_m u′(z)² a_m + γ) / Σ_m w_m
//! ```
//!
//! a_m is the noise of network m in the target as it sees it, w_m its weight and τ_m its temperature; s is the scale of
//! the target, τ, α and γ are what held-out samples say. A network that learns the logarithm sees the target through a
//! curve u: there the noise grows with the target, and is given at the centre of the logarithms, z = 0.

use super::ensemble::Member;
use super::model::Model;
use crate::data::Task;
use crate::error::Result;
use crate::heads::HeadSettings;

/// Noise that does not depend on the inputs, but perhaps on the target.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Noise {
    /// Standard deviation of the noise of every target, in its units.
    pub std: Vec<f64>,
    /// The target where it is that, if networks learn its logarithm; with others the noise grows.
    pub at: Option<f64>,
}

impl Model {
    /// The noise, averaged over networks by their weights; none if it depends on the input.
    pub fn noise(&self) -> Result<Option<Noise>> {
        let members: Vec<&Member> =
            self.members().iter().filter(|member| !member.plan(0).is_ignorant()).collect();
        let is_constant =
            |member: &&Member| matches!(member.network().settings().head, HeadSettings::Gaussian(_));
        if members.is_empty() || !members.iter().all(is_constant) {
            return Ok(None);
        }
        let scaling = self.target_scaling();
        let at = members.iter().find_map(|member| member.curve).map(|curve| curve.unbend(0.0).0);
        let (alpha, gamma) = self.spread().map_or((1.0, 0.0), |spread| (spread.aleatoric, spread.floor));
        let total: f64 = members.iter().map(|member| member.weight).sum();
        let mut variance = vec![0.0; scaling.dim()];
        for member in members {
            let slope = match (&member.curve, at) {
                (Some(curve), Some(at)) => curve.unbend(curve.bend(at)).1,
                _ => 1.0,
            };
            let noise = member.predictor().output_noise()?;
            for (k, sum) in variance.iter_mut().enumerate() {
                let own = member.temperature * slope * slope * noise[(k, k)];
                *sum += member.weight / total * (alpha * own + gamma);
            }
        }
        let temperature = if self.task() == Task::Regression { self.temperature() } else { 1.0 };
        let std = |(variance, scale): (&f64, &f64)| (temperature * variance).sqrt() * scale;
        Ok(Some(Noise {
            std: variance.iter().zip(&scaling.scale).map(std).collect(),
            at: at.map(|at| scaling.offset[0] + scaling.scale[0] * at),
        }))
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;
    use rand::RngExt;

    use super::*;
    use crate::base::random::stream;
    use crate::data::{LogCurve, Samples, Targets};
    use crate::model::ModelSettings;

    /// Two networks of a target between 1 and 50, and its logarithm.
    fn model() -> (Model, Mat<f64>, LogCurve) {
        let mut rng = stream(3, 0);
        let x = Mat::from_fn(1, 80, |_, _| rng.random_range(0.0..1.0_f64));
        let y = Mat::from_fn(1, 80, |_, j| (4.0 * x[(0, j)] + rng.random_range(-0.1..0.1_f64)).exp());
        let mut settings = ModelSettings { members: 2, temperature: 1.5, ..ModelSettings::fast() };
        settings.network.hidden_layer_sizes = vec![4];
        settings.training.epochs = 20;
        let model = Model::fit(&Samples::new(&x, &y).unwrap(), &settings).unwrap();
        let curve = LogCurve::of(Targets::Values(y.as_ref()), None, model.target_scaling()).unwrap();
        (model, x, curve)
    }

    /// The same noise as of predictions.
    #[test]
    fn networks_count_by_their_weights() {
        let (mut model, x, _) = model();
        let each: Vec<f64> = [0, 1]
            .map(|m| {
                let mut one = model.clone();
                one.ensemble.members = vec![model.members()[m].clone()];
                let noise = one.noise().unwrap().unwrap();
                let predicted = one.predict(&x).unwrap().aleatoric_variance()[(0, 7)];
                assert_eq!(noise.at, None);
                assert_relative_eq!(noise.std[0].powi(2), predicted, max_relative = 1e-9);
                predicted
            })
            .to_vec();
        model.ensemble.members[1].weight = 3.0;
        let found = model.noise().unwrap().unwrap().std[0].powi(2);
        assert_relative_eq!(found, 0.25 * each[0] + 0.75 * each[1], max_relative = 1e-9);
        assert!((each[0] / each[1] - 1.0).abs() > 1e-3, "weights would not matter: {each:?}");
    }

    #[test]
    fn the_noise_of_a_logarithm_is_in_proportion_to_the_target() {
        let (mut model, x, curve) = model();
        model.ensemble.members.truncate(1);
        model.ensemble.members[0].curve = Some(curve);
        let noise = model.noise().unwrap().unwrap();
        let (std, at) = (noise.std[0], noise.at.unwrap());
        let predictive = model.predict(&x).unwrap();
        let mut inside = 0;
        for j in 0..x.ncols() {
            let (mean, own) = (predictive.mean()[(0, j)], predictive.aleatoric_variance()[(0, j)].sqrt());
            // Beyond the smallest and the largest target the curve is a line.
            if (1.2..45.0).contains(&mean) {
                inside += 1;
                assert_relative_eq!(own, std * mean / at, max_relative = 1e-9);
            }
        }
        assert!(inside > 20, "{inside}");
        // A network of the target as it is beside it: at the same target.
        let one = std.powi(2);
        let mut plain = model.members()[0].clone();
        plain.curve = None;
        model.ensemble.members = vec![plain.clone()];
        let other = model.noise().unwrap().unwrap().std[0].powi(2);
        let logarithm = model.members()[0].clone();
        model.ensemble.members = vec![plain, logarithm];
        model.ensemble.members[1].curve = Some(curve);
        let both = model.noise().unwrap().unwrap();
        assert_eq!(both.at, Some(at));
        assert_relative_eq!(both.std[0].powi(2), 0.5 * (one + other), max_relative = 1e-9);
    }
}
