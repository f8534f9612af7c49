//! The one result of all predictors: for each sample a mixture of elliptical distributions, with its
//! moments by the laws of total expectation and total covariance.
//!
//! ```text
//! p(y_i) = Σ_c w_c p_c(y_i)
//! mean        μ = Σ_c w_c μ_c
//! aleatoric   A = Σ_c w_c A_c
//! epistemic   E = Σ_c w_c E_c + Σ_c w_c (μ_c − μ)(μ_c − μ)ᵀ
//! Cov(y_i)      = A + E
//! ```
//!
//! A closed-form predictor has one component. Monte Carlo has one per draw: mean and noise of the
//! drawn network, no epistemic part, which is then all in the spread of the means. An ensemble is the
//! mixture of its members, each with the same weight however many components it has.
//!
//! The noise of a component may lean to one side (`skew`), which changes no moment of it.
//!
//! Conformal scores may recalibrate a predictive: they keep its mean, and every other answer is that of the recalibrated
//! distribution. Its covariance is D (A + E) D, with D² the diagonal of the variances of standardised residuals.

use std::sync::Arc;

use faer::{Mat, MatRef};

use super::component::{Component, Covariance, Dof};
use super::recalibrated::Recalibrated;
use super::skew::Skew;
use crate::base::check::{check_finite, check_shape, positive};
use crate::error::{Error, Result};

/// Mixture of per-sample elliptical distributions over d targets, for n samples.
#[derive(Clone, Debug)]
pub struct Predictive {
    components: Vec<Component>,
    /// log w_c; Σ_c w_c = 1.
    log_weights: Vec<f64>,
    /// Distribution of the standardised residual of each target, if conformal scores say it.
    recalibrated: Option<Arc<[Recalibrated]>>,
}

impl Predictive {
    /// Mixture of `components` with equal weights.
    pub fn new(components: Vec<Component>) -> Result<Self> {
        let log_weights = vec![-(components.len() as f64).ln(); components.len()];
        for component in &components {
            component.validate()?;
        }
        Self::weighted(components, log_weights)
    }

    /// The distribution of a single component.
    pub fn from_component(component: Component) -> Result<Self> {
        Self::new(vec![component])
    }

    /// Mixture of `members` with equal weights: an ensemble.
    pub fn mixture(members: Vec<Self>) -> Result<Self> {
        Self::weighted_mixture(members.into_iter().map(|member| (1.0, member)).collect())
    }

    /// Mixture of members with these positive weights, which need not add to 1.
    pub fn weighted_mixture(members: Vec<(f64, Self)>) -> Result<Self> {
        members.iter().try_for_each(|&(weight, _)| positive("weight of a member", weight))?;
        let total: f64 = members.iter().map(|(weight, _)| weight).sum();
        let mut components = Vec::new();
        let mut log_weights = Vec::new();
        for (weight, member) in members {
            let log_share = (weight / total).ln();
            log_weights.extend(member.log_weights.iter().map(|log_weight| log_weight + log_share));
            components.extend(member.components);
        }
        Self::weighted(components, log_weights)
    }

    /// Mixture of valid components, which only have to agree in shape.
    fn weighted(components: Vec<Component>, log_weights: Vec<f64>) -> Result<Self> {
        let Some(first) = components.first() else {
            return Err(Error::Empty { what: "list of predictive components" });
        };
        let (d, n) = (first.n_targets(), first.n_samples());
        for component in &components {
            check_shape("predicted mean", component.mean.as_ref(), d, n)?;
        }
        Ok(Self { components, log_weights, recalibrated: None })
    }

    /// Number of samples n.
    pub fn n_samples(&self) -> usize {
        self.components[0].n_samples()
    }

    /// Number of targets d.
    pub fn n_targets(&self) -> usize {
        self.components[0].n_targets()
    }

    /// The mixture's components.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Number of Student-t's: a component whose noise leans has two.
    pub(crate) fn n_parts(&self) -> usize {
        self.components.iter().map(|component| component.parts().count()).sum()
    }

    /// log w of each component.
    pub fn log_weights(&self) -> &[f64] {
        &self.log_weights
    }

    /// Pairs of w_c and component c.
    pub(crate) fn weighted_components(&self) -> impl Iterator<Item = (f64, &Component)> {
        self.log_weights.iter().map(|log_weight| log_weight.exp()).zip(&self.components)
    }

    /// Means μ, `d × n`.
    pub fn mean(&self) -> Mat<f64> {
        if let [component] = self.components.as_slice() {
            return component.mean.clone();
        }
        self.average(|component, target, sample| component.mean[(target, sample)])
    }

    /// Variances of the noise in the targets, `d × n`.
    pub fn aleatoric_variance(&self) -> Mat<f64> {
        self.average(|component, target, sample| {
            self.factor(target, target) * component.aleatoric.variance(target, sample)
        })
    }

    /// Variances that more data would take away, `d × n`.
    pub fn epistemic_variance(&self) -> Mat<f64> {
        let mean = self.mean();
        self.average(|component, target, sample| {
            let deviation = component.mean[(target, sample)] - mean[(target, sample)];
            self.factor(target, target)
                * (component.epistemic.variance(target, sample) + deviation * deviation)
        })
    }

    /// Variances, aleatoric and epistemic together, `d × n`.
    pub fn variance(&self) -> Mat<f64> {
        // A matrix of one row takes eight times the memory of its values: this one is filled where it is.
        if let [component] = self.components.as_slice() {
            return Mat::from_fn(self.n_targets(), self.n_samples(), |i, j| {
                self.factor(i, i) * component.variance(i, j)
            });
        }
        self.aleatoric_variance() + self.epistemic_variance()
    }

    /// Standard deviations, `d × n`.
    pub fn std(&self) -> Mat<f64> {
        let mut std = self.variance();
        for column in std.col_iter_mut() {
            column.iter_mut().for_each(|value| *value = value.sqrt());
        }
        std
    }

    /// Covariance of one sample, `d × d`. Panics when there is no such sample, as indexing does.
    pub fn covariance(&self, sample: usize) -> Mat<f64> {
        self.aleatoric_covariance(sample) + self.epistemic_covariance(sample)
    }

    /// Covariance of the noise in one sample, `d × d`. Panics when there is no such sample.
    pub fn aleatoric_covariance(&self, sample: usize) -> Mat<f64> {
        self.average_covariance(sample, |component| &component.aleatoric)
    }

    /// Covariance of one sample that more data would take away, `d × d`. Panics when there is no such
    /// sample.
    pub fn epistemic_covariance(&self, sample: usize) -> Mat<f64> {
        let d = self.n_targets();
        let mut covariance = self.average_covariance(sample, |component| &component.epistemic);
        let mean = Mat::from_fn(d, 1, |target, _| {
            self.weighted_components().map(|(weight, c)| weight * c.mean[(target, sample)]).sum::<f64>()
        });
        for (weight, component) in self.weighted_components() {
            for j in 0..d {
                for i in 0..d {
                    covariance[(i, j)] += self.factor(i, j)
                        * weight
                        * (component.mean[(i, sample)] - mean[(i, 0)])
                        * (component.mean[(j, sample)] - mean[(j, 0)]);
                }
            }
        }
        covariance
    }

    /// The same predictions for some of the samples, in the order given; an index may be repeated.
    pub fn select(&self, samples: &[usize]) -> Result<Self> {
        let n = self.n_samples();
        if let Some(&sample) = samples.iter().find(|&&sample| sample >= n) {
            return Err(Error::Shape { what: "predictive", axis: "samples", found: n, expected: sample + 1 });
        }
        Ok(self.map(|component| component.select(samples)))
    }

    /// The predictions of all parts, one after the other. Their components have the same weights and shapes.
    pub(crate) fn concat(parts: &[Self]) -> Result<Self> {
        let Some(first) = parts.first() else { return Err(Error::Empty { what: "list of predictives" }) };
        let (n, expected) = (|part: &Self| part.components.len(), first.components.len());
        if let Some(part) =
            parts.iter().find(|part| n(part) != expected || part.log_weights != first.log_weights)
        {
            return Err(Error::Shape { what: "predictive", axis: "components", found: n(part), expected });
        }
        let of_all = |c: usize| {
            let same: Vec<&Component> = parts.iter().map(|part| &part.components[c]).collect();
            let conflict =
                Error::Conflict { first: "predictions side by side", second: "other tails or skews" };
            Component::concat(&same).ok_or(conflict)
        };
        Self::weighted((0..expected).map(of_all).collect::<Result<_>>()?, first.log_weights.clone())
    }

    /// Predictions of offset + scale ⊙ y, one offset and one scale > 0 per target: from standardised
    /// targets back to their own units.
    pub fn unscale(&self, offset: &[f64], scale: &[f64]) -> Result<Self> {
        let expected = self.n_targets();
        for (what, found) in [("offset", offset.len()), ("scale", scale.len())] {
            if found != expected {
                return Err(Error::Shape { what, axis: "targets", found, expected });
            }
        }
        scale.iter().try_for_each(|&scale| positive("scale", scale))?;
        if let Some(&value) = offset.iter().find(|offset| !offset.is_finite()) {
            return Err(Error::Setting { name: "offset", value, must_be: "finite" });
        }
        Ok(self.map(|component| component.unscaled(offset, scale)))
    }

    /// Predictions of one target through a curve, to first order: `curve` gives its value and its slope.
    pub(crate) fn through(&self, curve: &dyn Fn(f64) -> (f64, f64)) -> Self {
        self.map(|component| component.through(curve))
    }

    /// The same with every covariance times `temperature` > 0. For one-hot codes that flattens class
    /// probabilities as a temperature does.
    pub(crate) fn tempered(&self, temperature: f64) -> Self {
        let (scale, n_targets) = (temperature.sqrt(), self.n_targets());
        self.map(|component| Component {
            mean: component.mean.clone(),
            ..component.unscaled(&vec![0.0; n_targets], &vec![scale; n_targets])
        })
    }

    /// The same with noise and epistemic covariance changed apart: `t_ν(μ, B (α A + γ I) B + D E D)`. `parts` says what
    /// aleatoric and epistemic variance of a target become; the diagonals B and D are the roots of the ratios. Where
    /// epistemic variance is in the spread of the components' means, they move apart or together by D. With a `skew` the
    /// noise leans to one side.
    pub(crate) fn spread(
        &self,
        (alpha, gamma): (f64, f64),
        parts: impl Fn(f64, f64) -> (f64, f64),
        (dof, skew): (f64, Option<Skew>),
    ) -> Self {
        let d = self.n_targets();
        let floor = Mat::from_fn(d, d, |i, j| if i == j { gamma } else { 0.0 });
        let (noise, doubt) = (self.aleatoric_variance(), self.epistemic_variance());
        let n = noise.ncols();
        let (mut noise_ratio, mut doubt_ratio) = (Mat::zeros(d, n), Mat::zeros(d, n));
        for j in 0..n {
            for i in 0..d {
                let (a, e) = (noise[(i, j)], doubt[(i, j)]);
                let (aleatoric, epistemic) = parts(a, e);
                noise_ratio[(i, j)] = (aleatoric / (alpha * a + gamma)).sqrt();
                doubt_ratio[(i, j)] = if e > 0.0 { (epistemic / e).sqrt() } else { 1.0 };
            }
        }
        let centre = (self.components.len() > 1).then(|| self.mean());
        self.map(|component| Component {
            mean: match &centre {
                Some(centre) => Mat::from_fn(d, n, |i, j| {
                    centre[(i, j)] + doubt_ratio[(i, j)] * (component.mean[(i, j)] - centre[(i, j)])
                }),
                None => component.mean.clone(),
            },
            aleatoric: component
                .aleatoric
                .scaled(&vec![alpha.sqrt(); d])
                .plus_shared(&floor)
                .scaled_each(&noise_ratio),
            epistemic: component.epistemic.scaled_each(&doubt_ratio),
            dof: Dof::Shared(dof),
            skew,
        })
    }

    /// The same recalibrated by conformal scores, in rising order, of every target. Scores that are all 0, or not
    /// finite, say nothing: then the model's own word stands.
    pub(crate) fn conformal(self, scores: &[Vec<f64>]) -> Self {
        let dof = self.components.iter().map(|c| c.dof.value()).fold(f64::INFINITY, f64::min);
        let recalibrated: Option<Vec<_>> = scores.iter().map(|s| Recalibrated::new(s, dof)).collect();
        Self { recalibrated: recalibrated.map(Arc::from), ..self }
    }

    /// Distributions of the targets' standardised residuals, if conformal scores say them.
    pub(crate) fn recalibrated(&self) -> Option<&[Recalibrated]> {
        self.recalibrated.as_deref()
    }

    /// `targets` are finite and as many as were predicted.
    pub(crate) fn check_targets(&self, targets: MatRef<'_, f64>) -> Result<()> {
        check_shape("targets", targets, self.n_targets(), self.n_samples())?;
        check_finite("targets", targets)
    }

    fn map(&self, change: impl Fn(&Component) -> Component) -> Self {
        Self {
            components: self.components.iter().map(change).collect(),
            log_weights: self.log_weights.clone(),
            recalibrated: self.recalibrated.clone(),
        }
    }

    /// Σ_c w_c value_c for each target and sample.
    fn average(&self, value: impl Fn(&Component, usize, usize) -> f64) -> Mat<f64> {
        let mut average = Mat::zeros(self.n_targets(), self.n_samples());
        for (weight, component) in self.weighted_components() {
            for sample in 0..self.n_samples() {
                for target in 0..self.n_targets() {
                    average[(target, sample)] += weight * value(component, target, sample);
                }
            }
        }
        average
    }

    fn average_covariance(&self, sample: usize, part: impl Fn(&Component) -> &Covariance) -> Mat<f64> {
        let d = self.n_targets();
        Mat::from_fn(d, d, |i, j| {
            let entries = self.weighted_components().map(|(weight, c)| weight * part(c).entry(i, j, sample));
            self.factor(i, j) * entries.sum::<f64>()
        })
    }

    /// By which recalibration changes Cov(y_row, y_column).
    fn factor(&self, row: usize, column: usize) -> f64 {
        self.recalibrated().map_or(1.0, |z| (z[row].variance() * z[column].variance()).sqrt())
    }

    /// Mean and standard deviation of one target of one sample, without recalibration.
    pub(crate) fn own_moments(&self, target: usize, sample: usize) -> (f64, f64) {
        let over = |value: &dyn Fn(&Component) -> f64| -> f64 {
            self.weighted_components().map(|(weight, component)| weight * value(component)).sum()
        };
        let mean = over(&|c| c.mean[(target, sample)]);
        let variance = over(&|c| c.variance(target, sample) + (c.mean[(target, sample)] - mean).powi(2));
        (mean, variance.sqrt())
    }
}
