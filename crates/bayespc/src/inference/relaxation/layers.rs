//! What relaxation of a training batch needs of the layers beside their means: precisions, V and step sizes, renewed
//! only as often as they change.
//!
//! ```text
//! 1/α_l = λ_max( ⟨Σ_l⁻¹⟩ + M_{l+1}ᵀ ⟨Σ_{l+1}⁻¹⟩ M_{l+1} + τ d_{l+1} V_{l+1} )        without the bias
//! ```
//!
//! Weights move a little with every batch, and so does the vector that power iteration ends with: it starts where it
//! stopped at the batch before, and needs a few products of a matrix and a vector.

use faer::{Accum, Mat, MatRef};

use super::descent::{HiddenPrecision, RelaxationSettings};
use crate::base::linalg::{cast, inner, largest_eigenvalue, product_into, scaled_identity, trace};
use crate::error::Result;
use crate::network::Network;
use crate::real::Real;

/// ⟨Σ_l⁻¹⟩ during relaxation.
#[derive(Clone, Debug)]
pub(super) enum Precision<T: Real> {
    /// p · I.
    Scalar(T),
    /// Any other.
    Full(Mat<T>),
}

/// Precisions, V and step sizes of a network's layers.
#[derive(Clone, Debug, Default)]
pub(super) struct RelaxingLayers<T: Real> {
    /// Of layers 1 … L.
    precisions: Vec<Precision<T>>,
    /// V_1 … V_L where the weight-uncertainty term needs it.
    col_covs: Vec<Option<Mat<T>>>,
    /// Of z_1 … z_{L−1}.
    bounds: Vec<Bound<T>>,
    /// Whether V and Ψ of the hidden layers are still those of `precisions` and `col_covs`.
    current: bool,
}

/// λ_max of the curvature of one activity.
#[derive(Clone, Debug)]
struct Bound<T: Real> {
    /// Where power iteration stopped.
    vector: Mat<T>,
    image: Mat<T>,
    /// Room for M v and ⟨Σ⁻¹⟩ M v.
    above: [Mat<T>; 2],
    rate: f64,
    /// What the estimate of the last thorough look fell short by.
    shortfall: f64,
}

impl<T: Real> RelaxingLayers<T> {
    /// V or Ψ of a hidden layer has changed.
    pub fn forget(&mut self) {
        self.current = false;
    }

    /// ⟨Σ⁻¹⟩ of layer `l`, counted from 0.
    pub fn precision(&self, l: usize) -> &Precision<T> {
        &self.precisions[l]
    }

    /// V of layer `l`, if it plays a part.
    pub fn col_cov(&self, l: usize) -> Option<&Mat<T>> {
        self.col_covs[l].as_ref()
    }

    /// α of the activity `post[l]`.
    pub fn rate(&self, l: usize) -> f64 {
        self.bounds[l].rate
    }

    /// Look at the network again: at its means and its output layer always, at the rest if it has changed.
    pub fn update(&mut self, network: &Network<T>, settings: &RelaxationSettings) -> Result<()> {
        let (hidden, output) = (network.hidden(), &network.output().blocks()[0]);
        let top = match settings.output_precision {
            Some(p) => Precision::Scalar(T::lit(p)),
            None => Precision::Full(output.expected_precision()?),
        };
        let mean_precision = match &top {
            Precision::Scalar(p) => p.as_f64(),
            Precision::Full(p) => trace(p.as_ref()).as_f64() / p.nrows() as f64,
        };
        let scalar = match settings.hidden_precision {
            HiddenPrecision::Learned => None,
            HiddenPrecision::Tied(r) => Some(r * mean_precision),
            HiddenPrecision::Fixed(p) => Some(p),
        };
        let looks_again = !self.current || self.precisions.len() != hidden.len() + 1;
        if looks_again {
            self.precisions.clear();
            self.col_covs.clear();
            for (l, layer) in hidden.iter().enumerate() {
                self.precisions.push(match scalar {
                    Some(p) => Precision::Scalar(T::lit(p)),
                    None => Precision::Full(layer.expected_precision()?),
                });
                // The input is clamped: its V never plays a part.
                self.col_covs.push((settings.weight_uncertainty > 0.0 && l > 0).then(|| layer.col_cov()));
            }
            self.precisions.push(top);
            self.col_covs.push(None);
        } else {
            if let Some(p) = scalar {
                self.precisions[..hidden.len()].fill(Precision::Scalar(T::lit(p)));
            }
            self.precisions[hidden.len()] = top;
        }
        if settings.weight_uncertainty > 0.0 && !hidden.is_empty() {
            self.col_covs[hidden.len()] = Some(output.col_cov());
        }
        self.bound_steps(network, settings, looks_again);
        self.current = true;
        Ok(())
    }

    fn bound_steps(&mut self, network: &Network<T>, settings: &RelaxationSettings, thorough: bool) {
        let means = network.means();
        if self.bounds.len() + 1 != means.len() {
            self.bounds = means.windows(2).map(|pair| Bound::new(pair[0].nrows(), pair[1].nrows())).collect();
        }
        for (l, bound) in self.bounds.iter_mut().enumerate() {
            if let Some(rate) = settings.optimiser.fixed_rate() {
                bound.rate = rate;
                continue;
            }
            let d = means[l].nrows();
            let curvature = Curvature {
                own: &self.precisions[l],
                weights: means[l + 1].subcols(0, d),
                above: &self.precisions[l + 1],
                col_cov: self.col_covs[l + 1].as_ref().map(|v| v.submatrix(0, 0, d, d)),
                uncertainty: T::lit(settings.weight_uncertainty * means[l + 1].nrows() as f64),
            };
            bound.update(&curvature, thorough);
        }
    }
}

/// The matrix whose largest eigenvalue bounds a step.
struct Curvature<'a, T: Real> {
    own: &'a Precision<T>,
    weights: MatRef<'a, T>,
    above: &'a Precision<T>,
    col_cov: Option<MatRef<'a, T>>,
    /// τ d.
    uncertainty: T,
}

impl<T: Real> Curvature<'_, T> {
    /// image ← curvature · vector.
    fn apply(&self, vector: MatRef<'_, T>, image: &mut Mat<T>, [lifted, weighted]: &mut [Mat<T>; 2]) {
        product_into(lifted.as_mut(), Accum::Replace, self.weights, vector, T::one());
        let (lifted, factor) = match self.above {
            Precision::Scalar(p) => (lifted.as_ref(), *p),
            Precision::Full(precision) => {
                let from = lifted.as_ref();
                product_into(weighted.as_mut(), Accum::Replace, precision.as_ref(), from, T::one());
                (weighted.as_ref(), T::one())
            }
        };
        product_into(image.as_mut(), Accum::Replace, self.weights.transpose(), lifted, factor);
        match self.own {
            Precision::Scalar(p) => {
                faer::zip!(&mut *image, vector).for_each(|faer::unzip!(to, from)| *to += *p * *from);
            }
            Precision::Full(own) => product_into(image.as_mut(), Accum::Add, own.as_ref(), vector, T::one()),
        }
        if let Some(col_cov) = self.col_cov {
            product_into(image.as_mut(), Accum::Add, col_cov, vector, self.uncertainty);
        }
    }

    fn matrix(&self) -> Mat<T> {
        let full = |precision: &Precision<T>, d: usize| match precision {
            Precision::Scalar(p) => cast(scaled_identity(d, p.as_f64()).as_ref()),
            Precision::Full(matrix) => matrix.clone(),
        };
        let mut matrix = full(self.own, self.weights.ncols());
        matrix += self.weights.transpose() * full(self.above, self.weights.nrows()) * self.weights;
        if let Some(col_cov) = self.col_cov {
            matrix += col_cov * faer::Scale(self.uncertainty);
        }
        matrix
    }
}

impl<T: Real> Bound<T> {
    fn new(d: usize, d_above: usize) -> Self {
        Self {
            // A start without symmetry, so that it is not orthogonal to the leading eigenvector by accident.
            vector: Mat::from_fn(d, 1, |i, _| T::one() + T::lit(0.1) * T::lit(((i * 7 + 3) % 11) as f64)),
            image: Mat::zeros(d, 1),
            above: [Mat::zeros(d_above, 1), Mat::zeros(d_above, 1)],
            rate: 1.0,
            shortfall: 1.0,
        }
    }

    /// α = 1/λ_max. Power iteration comes from below, but a step of 1/λ has room until 2/λ_max; a thorough look makes
    /// sure that it has not settled on another eigenvector.
    fn update(&mut self, curvature: &Curvature<'_, T>, thorough: bool) {
        let mut value = T::zero();
        for _ in 0..200 {
            curvature.apply(self.vector.as_ref(), &mut self.image, &mut self.above);
            let norm = |v: &Mat<T>| num_traits::Float::sqrt(inner(v.as_ref(), v.as_ref()));
            let length = norm(&self.image);
            if !(length > T::zero() && length.is_finite()) {
                self.rate = 1.0;
                return;
            }
            let estimate = length / norm(&self.vector);
            let inverse = T::one() / length;
            faer::zip!(&mut self.vector, &self.image)
                .for_each(|faer::unzip!(v, image)| *v = inverse * *image);
            let settled = (estimate - value).abs() <= T::lit(1e-3) * estimate;
            value = estimate;
            if settled {
                break;
            }
        }
        if thorough {
            let largest = largest_eigenvalue(curvature.matrix().as_ref());
            self.shortfall = (largest / value).as_f64().max(1.0);
        }
        self.rate = 1.0 / (self.shortfall * value.as_f64());
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::network::NetworkSettings;

    #[test]
    fn steps_keep_to_the_spectral_bound_while_weights_move() {
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(6);
        let settings = NetworkSettings { hidden_layer_sizes: vec![9, 7], ..NetworkSettings::default() };
        let mut network = Network::<f64>::new(&settings, 4, 2, &mut rng).unwrap();
        for weight_uncertainty in [0.0, 0.3] {
            let settings = RelaxationSettings { weight_uncertainty, ..RelaxationSettings::tied() };
            let mut layers = RelaxingLayers::default();
            for _ in 0..6 {
                layers.update(&network, &settings).unwrap();
                let relaxer = super::super::descent::Relaxer::new(&network, &settings, false).unwrap();
                for l in 0..2 {
                    let (own, above) = (&relaxer.layers()[l], &relaxer.layers()[l + 1]);
                    let d = own.mean.nrows();
                    let weights = above.mean.subcols(0, d);
                    let mut curvature = &own.precision + weights.transpose() * &above.precision * weights;
                    if weight_uncertainty > 0.0 {
                        let factor = weight_uncertainty * above.mean.nrows() as f64;
                        curvature += above.col_cov.submatrix(0, 0, d, d) * faer::Scale(factor);
                    }
                    let largest = largest_eigenvalue(curvature.as_ref());
                    let product = layers.rate(l) * largest;
                    assert!((0.9..1.25).contains(&product), "{product} instead of 1");
                }
                for layer in network.hidden_mut() {
                    layer.moving().change_working_mean(|mut mean| {
                        let factor = 1.0 + 0.3 * mean[(1, 2)];
                        faer::zip!(&mut mean).for_each(|faer::unzip!(m)| *m *= factor);
                    });
                }
            }
        }
    }
}
