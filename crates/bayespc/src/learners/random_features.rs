//! One conjugate Bayesian layer on random rectified features: what a network of this width gives without
//! learning its hidden layer, and exact in everything else.
//!
//! ```text
//! φ = [max(0, A x + b); 1] ,   A ~ N(0, s²/d) , b ~ N(0, r²) ,   drawn once and kept
//! y | φ ~ N(Wφ, Σ) ,   (W, Σ⁻¹) ~ MNW ,   η = η⁰ + T(φ, y)
//! y | x ~ t_{ν−d_y+1}( Mφ , (1 + φᵀVφ) Ψ⁻¹/(ν−d_y+1) )
//! ```
//!
//! The width V⁰ of the prior is the one of a grid with the largest evidence, which is −F of the exact
//! posterior.

use faer::{Mat, MatRef};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::{Learner, Step};
use crate::base::linalg::{cast, scaled_identity};
use crate::data::Dataset;
use crate::distributions::{MatrixNormalWishart, SufficientStats};
use crate::error::{Error, Result};
use crate::heads::HeadSettings;
use crate::learning::FreeEnergy;
use crate::network::{Activation, PointNetwork, activated, with_bias};
use crate::prediction::{Component, Covariance, Dof, Method, Predictive};
use crate::real::Real;

/// Settings of the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RandomFeaturesSettings {
    /// Number of random features.
    pub features: usize,
    /// s: spread of what a feature sees of a standardised input.
    pub weight_std: f64,
    /// r: spread of the features' thresholds.
    pub bias_std: f64,
    /// Widths V⁰ = `var` · I of the prior to choose from.
    pub prior_vars: Vec<f64>,
    /// Ψ⁰ = `scale` · I.
    pub scale: f64,
    /// ν⁰ = d_y + `extra_dof`.
    pub extra_dof: f64,
}

impl Default for RandomFeaturesSettings {
    fn default() -> Self {
        let prior_vars = (-6..=10).map(|k| 10f64.powf(0.5 * f64::from(k))).collect();
        Self { features: 300, weight_std: 1.0, bias_std: 1.0, prior_vars, scale: 1000.0, extra_dof: 2.0 }
    }
}

impl RandomFeaturesSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        if self.features == 0 {
            return Err(Error::Setting { name: "features", value: 0.0, must_be: "at least 1" });
        }
        if self.prior_vars.is_empty() {
            return Err(Error::Empty { what: "the list prior_vars" });
        }
        let positive = |name, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(Error::Setting { name, value, must_be: "positive and finite" })
            }
        };
        self.prior_vars.iter().try_for_each(|&value| positive("prior_vars", value))?;
        positive("scale", self.scale)?;
        positive("weight_std", self.weight_std)?;
        positive("bias_std", self.bias_std)?;
        if self.extra_dof.is_finite() && self.extra_dof > 1.0 {
            Ok(())
        } else {
            Err(Error::DegreesOfFreedom { what: "the prior (extra_dof)", dof: self.extra_dof, bound: 1.0 })
        }
    }

    fn prior(&self, var: f64, d_post: usize, d_pre: usize) -> Result<MatrixNormalWishart> {
        MatrixNormalWishart::new(
            Mat::zeros(d_post, d_pre),
            scaled_identity(d_pre, 1.0 / var),
            scaled_identity(d_post, 1.0 / self.scale),
            d_post as f64 + self.extra_dof,
        )
    }
}

/// A learner with a fixed random hidden layer and an exact output posterior.
#[derive(Clone, Debug)]
pub struct RandomFeatures<T: Real> {
    settings: RandomFeaturesSettings,
    /// [A, b], `features × (d + 1)`.
    weights: Mat<T>,
    var: f64,
    posterior: MatrixNormalWishart,
}

impl<T: Real> RandomFeatures<T> {
    /// Draw the features; the posterior starts at the prior.
    pub fn new(
        settings: &RandomFeaturesSettings,
        d_input: usize,
        n_targets: usize,
        rng: &mut dyn Rng,
    ) -> Result<Self> {
        settings.validate()?;
        if d_input == 0 {
            return Err(Error::Empty { what: "the input (no features)" });
        }
        if n_targets == 0 {
            return Err(Error::Empty { what: "the target (no columns)" });
        }
        let std = settings.weight_std / (d_input as f64).sqrt();
        let weights = Mat::from_fn(settings.features, d_input + 1, |_, j| {
            let draw: f64 = StandardNormal.sample(rng);
            T::lit(draw * if j < d_input { std } else { settings.bias_std })
        });
        let var = settings.prior_vars[settings.prior_vars.len() / 2];
        let posterior = settings.prior(var, n_targets, settings.features + 1)?;
        Ok(Self { settings: settings.clone(), weights, var, posterior })
    }

    /// The posterior of the output layer.
    pub fn posterior(&self) -> &MatrixNormalWishart {
        &self.posterior
    }

    /// The width V⁰ that was chosen.
    pub fn var(&self) -> f64 {
        self.var
    }

    /// φ of every sample, `(features + 1) × n`.
    fn features(&self, input: MatRef<'_, T>) -> Result<Mat<f64>> {
        crate::network::check_input(input, self.weights.ncols() - 1)?;
        let activity = &self.weights * with_bias(input);
        Ok(cast(activated(Activation::Relu, activity.as_ref()).as_ref()))
    }

    fn statistics(&self, data: &Dataset<'_, T>) -> Result<SufficientStats> {
        let (pre, post) = (self.features(data.input())?, cast(data.target()));
        match data.weights() {
            None => SufficientStats::of(pre.as_ref(), post.as_ref()),
            Some(weights) => SufficientStats::weighted(pre.as_ref(), post.as_ref(), weights),
        }
    }

    /// The exact posterior of the prior width with the largest evidence.
    fn infer(&mut self, stats: &SufficientStats) -> Result<()> {
        let mut best = f64::INFINITY;
        for &var in &self.settings.prior_vars {
            let prior = self.settings.prior(var, stats.d_post(), stats.d_pre())?;
            let mut natural = prior.to_natural();
            natural.add(stats)?;
            let posterior = MatrixNormalWishart::from_natural(&natural)?;
            let free_energy = FreeEnergy::of(&posterior, &prior, stats)?.total();
            if free_energy < best {
                (best, self.var, self.posterior) = (free_energy, var, posterior);
            }
        }
        Ok(())
    }

    fn point(&self, output: Mat<T>, output_noise: Mat<f64>) -> PointNetwork<T> {
        PointNetwork {
            weights: vec![self.weights.clone(), output],
            activation: Activation::Relu,
            head: HeadSettings::default(),
            output_noise,
            hidden_noise: None,
        }
    }
}

impl<T: Real> Learner<T> for RandomFeatures<T> {
    fn name(&self) -> &'static str {
        "random features"
    }

    /// The posterior of this batch as if it were all the data, N/|B| times; a full batch is exact.
    fn learn(&mut self, batch: &Dataset<'_, T>, step: &Step, _rng: &mut dyn Rng) -> Result<f64> {
        let mut stats = self.statistics(batch)?;
        let error = self.posterior.mean() * self.features(batch.input())? - cast::<T, f64>(batch.target());
        stats.scale(step.n_total / batch.total_weight());
        self.infer(&stats)?;
        Ok(error.squared_norm_l2() / (error.nrows() * error.ncols()) as f64)
    }

    fn finish(&mut self, data: &Dataset<'_, T>) -> Result<()> {
        let stats = self.statistics(data)?;
        self.infer(&stats)
    }

    fn mean_network(&self) -> Result<PointNetwork<T>> {
        Ok(self.point(cast(self.posterior.mean()), self.posterior.expected_covariance()?))
    }

    fn draw_network(&self, rng: &mut dyn Rng) -> Result<PointNetwork<T>> {
        let draw = self.posterior.sample(rng);
        Ok(self.point(cast(draw.weights.as_ref()), draw.precision.covariance()))
    }

    fn free_energy(&self, data: &Dataset<'_, T>) -> Result<Option<Vec<FreeEnergy>>> {
        let d_post = self.posterior.d_post();
        let prior = self.settings.prior(self.var, d_post, self.posterior.d_pre())?;
        FreeEnergy::of(&self.posterior, &prior, &self.statistics(data)?).map(|energy| Some(vec![energy]))
    }

    /// Exact Student-t, whatever the method; the mean network alone has no epistemic part.
    fn predict(&self, input: MatRef<'_, T>, method: Method) -> Result<Predictive> {
        let pre = self.features(input)?;
        let noise = self.posterior.expected_covariance()?;
        let d = noise.nrows();
        let epistemic = if method == Method::Mean {
            Covariance::Zero
        } else {
            let leverage = self.posterior.leverage(pre.as_ref());
            let spread = |k: usize, j: usize| leverage[j] * noise[(k % d, k / d)];
            Covariance::Full(Mat::from_fn(d * d, leverage.len(), spread))
        };
        Predictive::from_component(Component {
            mean: self.posterior.mean() * &pre,
            aleatoric: Covariance::Shared(noise),
            epistemic,
            dof: Dof::Shared(self.posterior.dof() - d as f64 + 1.0),
            skew: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;
    use crate::base::random::stream;
    use crate::training::{self, Silent, TrainingSettings};

    fn trained(n_targets: usize) -> (RandomFeatures<f64>, Mat<f64>, Mat<f64>) {
        let mut rng = stream(1, 0);
        let input: Mat<f64> = Mat::from_fn(2, 40, |_, _| StandardNormal.sample(&mut rng));
        let target = Mat::from_fn(n_targets, 40, |i, j| {
            let noise: f64 = StandardNormal.sample(&mut rng);
            input[(0, j)].sin() + i as f64 * input[(1, j)] + 0.1 * noise
        });
        let settings = RandomFeaturesSettings { features: 30, ..RandomFeaturesSettings::default() };
        let mut learner = RandomFeatures::new(&settings, 2, n_targets, &mut rng).unwrap();
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        let loop_settings =
            TrainingSettings { epochs: 2, batch_size: Some(8), ..TrainingSettings::default() };
        training::fit(&mut learner, &data, &loop_settings, &mut Silent).unwrap();
        (learner, input, target)
    }

    #[test]
    fn the_predictive_is_the_exact_student_t_of_the_layer() {
        for n_targets in [1, 2] {
            let (learner, input, target) = trained(n_targets);
            let predictive = learner.predict(input.as_ref(), Method::Linearised).unwrap();
            let densities = predictive.log_density(target.as_ref()).unwrap();
            let pre = learner.features(input.as_ref()).unwrap();
            for j in [0, 7, 39] {
                let exact = learner.posterior().predictive(pre.subcols(j, 1)).unwrap();
                let expected = exact.log_density(target.subcols(j, 1)).unwrap()[0];
                assert_relative_eq!(densities[j], expected, max_relative = 1e-9);
            }
        }
    }

    #[test]
    fn no_other_width_of_the_prior_has_more_evidence() {
        let (learner, input, target) = trained(1);
        let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
        let chosen = learner.free_energy(&data).unwrap().unwrap()[0].total();
        for &var in &learner.settings.prior_vars {
            let mut other = learner.clone();
            other.settings.prior_vars = vec![var];
            other.finish(&data).unwrap();
            let energy = other.free_energy(&data).unwrap().unwrap()[0].total();
            assert!(chosen <= energy + 1e-9, "{var}: {energy} < {chosen}");
        }
    }

    #[test]
    fn drawn_networks_scatter_around_the_mean_network() {
        let (learner, input, _) = trained(1);
        let mean = learner.mean_network().unwrap().forward(input.as_ref()).unwrap();
        let predictive = learner.predict(input.as_ref(), Method::Linearised).unwrap();
        let epistemic = predictive.epistemic_variance();
        let mut rng = stream(3, 0);
        let draws = 400;
        let mut square = 0.0;
        for _ in 0..draws {
            let drawn = learner.draw_network(&mut rng).unwrap().forward(input.as_ref()).unwrap();
            square += (drawn[(0, 0)] - mean[(0, 0)]).powi(2);
        }
        // A mean of 400 squared near-normal deviations has a relative error of √(2/400) = 7 %: four of them.
        assert_relative_eq!(square / f64::from(draws), epistemic[(0, 0)], max_relative = 0.28);
    }

    #[test]
    fn wrong_settings_are_named() {
        let none = RandomFeaturesSettings { features: 0, ..RandomFeaturesSettings::default() };
        assert!(none.validate().unwrap_err().to_string().contains("features"));
        let negative = RandomFeaturesSettings { prior_vars: vec![-1.0], ..RandomFeaturesSettings::default() };
        assert!(negative.validate().unwrap_err().to_string().contains("prior_vars"));
    }
}
