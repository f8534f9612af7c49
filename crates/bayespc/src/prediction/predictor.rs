//! A trained network ready to predict: what the methods need of its posteriors is derived once and kept.
//!
//! | method        | derived                                                         |
//! |---------------|-----------------------------------------------------------------|
//! | `mean`        | ⟨Σ_L⟩ and ν of the output layer                                  |
//! | `linearised`  | the same, and roots of V_l and ⟨Σ_l⁻¹⟩⁻¹ of every layer          |
//! | `moments`     | the same, and V_l and ⟨Σ_l⟩ of every layer                       |
//! | `monte_carlo` | every posterior, factored                                       |
//!
//! Each is derived when a method first asks for it, so the mean never factors a hidden layer. After that a
//! prediction takes products only: no factorisation, no inverse.

use std::sync::{Arc, OnceLock};

use faer::{Mat, MatRef};

use super::method::{self, Method};
use super::{Follow, Predictive, linearised, moments};
use crate::base::check::check_finite;
use crate::data::Line;
use crate::distributions::Wishart;
use crate::error::{Error, Result};
use crate::network::{Layer, Network, Posteriors, block_diagonal, check_input};
use crate::real::Real;

/// Predicts with one network that no longer changes. Copies share the network and all that was derived from it.
#[derive(Clone, Debug)]
pub struct Predictor<T: Real> {
    network: Arc<Network<T>>,
    derived: Arc<Derived<T>>,
}

impl<T: Real> Predictor<T> {
    /// A predictor of `network`; nothing is derived yet.
    pub fn new(network: impl Into<Arc<Network<T>>>) -> Self {
        Self { network: network.into(), derived: Arc::default() }
    }

    /// The network.
    pub fn network(&self) -> &Network<T> {
        &self.network
    }

    /// Derive now what `method` needs, so that its first prediction is as fast as the others.
    pub fn prepare(&self, method: Method) -> Result<()> {
        self.derived.prepare(&self.network, method)
    }

    /// Predict the targets of `input` (`d_in × n`).
    pub fn predict(&self, input: MatRef<'_, T>, method: Method) -> Result<Predictive> {
        check(&self.network, input, method)?;
        self.predict_unchecked(input, method)
    }

    /// The same for an input that is known to be of the right shape, finite and not empty, by a valid method: for
    /// callers that have checked it once and ask many predictors. What is not finite is then an error of the
    /// prediction, not of the input.
    pub fn predict_unchecked(&self, input: MatRef<'_, T>, method: Method) -> Result<Predictive> {
        method::predict_by(&self.network, &self.derived, input, method)
    }

    /// ⟨Σ_L⟩, block diagonal.
    pub(crate) fn output_noise(&self) -> Result<&Mat<f64>> {
        Ok(&self.derived.output(&self.network)?.covariance)
    }
}

impl Predictor<f64> {
    /// The network along a line of inputs.
    pub(crate) fn follow<'a>(&'a self, line: &'a Line) -> Result<Follow<'a>> {
        Ok(Follow { network: &self.network, factors: self.derived.roots(&self.network)?, line })
    }
}

/// What the methods derive from a network's posteriors.
#[derive(Debug)]
pub(super) struct Derived<T: Real> {
    output: OnceLock<OutputNoise>,
    roots: OnceLock<linearised::Factors<T>>,
    wide: OnceLock<linearised::WideFactors<T>>,
    moments: OnceLock<moments::Factors>,
    posteriors: OnceLock<Posteriors>,
}

/// Noise of the output layer.
#[derive(Clone, Debug)]
pub(super) struct OutputNoise {
    /// ⟨Σ_L⟩, block diagonal.
    pub(super) covariance: Mat<f64>,
    /// ν − d + 1 of the least certain block.
    pub(super) dof: f64,
}

impl OutputNoise {
    /// From the noise of the blocks alone: their column precisions would be whole.
    fn of_wide<T: Real>(network: &Network<T>) -> Result<Self> {
        let blocks = network.output().blocks();
        let noise = blocks.iter().map(Layer::noise).collect::<Result<Vec<_>>>()?;
        let parts = noise.iter().map(Wishart::expected_covariance).collect::<Result<Vec<_>>>()?;
        let dof = noise.iter().zip(blocks).map(|(noise, block)| noise.dof() - block.d_post() as f64 + 1.0);
        Ok(Self { covariance: block_diagonal(&parts), dof: dof.fold(f64::INFINITY, f64::min) })
    }
}

impl<T: Real> Default for Derived<T> {
    fn default() -> Self {
        Self {
            output: OnceLock::new(),
            roots: OnceLock::new(),
            wide: OnceLock::new(),
            moments: OnceLock::new(),
            posteriors: OnceLock::new(),
        }
    }
}

impl<T: Real> Derived<T> {
    fn prepare(&self, network: &Network<T>, method: Method) -> Result<()> {
        match method {
            Method::Mean => self.output(network).map(drop),
            Method::Linearised if network.is_wide() => self.wide(network).and(self.output(network)).map(drop),
            Method::Linearised => self.roots(network).and(self.output(network)).map(drop),
            Method::Moments { .. } => self.moments(network).and(self.output(network)).map(drop),
            Method::MonteCarlo { .. } => self.posteriors(network).map(drop),
        }
    }

    pub(super) fn output(&self, network: &Network<T>) -> Result<&OutputNoise> {
        derived_once(&self.output, || {
            if network.is_wide() {
                return OutputNoise::of_wide(network);
            }
            let output =
                network.output().blocks().iter().map(Layer::posterior).collect::<Result<Vec<_>>>()?;
            let posteriors = Posteriors { hidden: Vec::new(), output };
            Ok(OutputNoise { covariance: posteriors.output_noise()?, dof: posteriors.output_dof() })
        })
    }

    pub(super) fn roots(&self, network: &Network<T>) -> Result<&linearised::Factors<T>> {
        derived_once(&self.roots, || linearised::Factors::new(network, &network.posteriors()?))
    }

    pub(super) fn wide(&self, network: &Network<T>) -> Result<&linearised::WideFactors<T>> {
        derived_once(&self.wide, || linearised::WideFactors::new(network))
    }

    pub(super) fn moments(&self, network: &Network<T>) -> Result<&moments::Factors> {
        derived_once(&self.moments, || moments::Factors::new(&network.posteriors()?))
    }

    pub(super) fn posteriors(&self, network: &Network<T>) -> Result<&Posteriors> {
        derived_once(&self.posteriors, || network.posteriors())
    }
}

/// The value of `cell`, derived unless it is there. Two threads may both derive it; one result is kept.
fn derived_once<V>(cell: &OnceLock<V>, derive: impl FnOnce() -> Result<V>) -> Result<&V> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = derive()?;
    Ok(cell.get_or_init(|| value))
}

/// A valid method, and an input of the right width, finite and not empty.
pub(super) fn check<T: Real>(network: &Network<T>, input: MatRef<'_, T>, method: Method) -> Result<()> {
    method.validate()?;
    check_input(input, network.d_input())?;
    if input.ncols() == 0 {
        return Err(Error::Empty { what: "input" });
    }
    check_finite("input", input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::stream;
    use crate::network::NetworkSettings;

    fn example() -> (Predictor<f64>, Mat<f64>) {
        let network = Network::new(&NetworkSettings::default(), 3, 1, &mut stream(1, 0)).unwrap();
        (Predictor::new(network), Mat::from_fn(3, 2, |i, j| 0.3 * i as f64 - 0.7 * j as f64))
    }

    #[test]
    fn it_can_be_shared_between_threads() {
        fn shared<P: Send + Sync + Clone + std::fmt::Debug>() {}
        shared::<Predictor<f32>>();
        shared::<Predictor<f64>>();
    }

    #[test]
    fn the_mean_derives_nothing_of_the_hidden_layers() {
        let (predictor, input) = example();
        predictor.predict(input.as_ref(), Method::Mean).unwrap();
        let derived = &predictor.derived;
        assert!(derived.output.get().is_some() && derived.roots.get().is_none());
        assert!(derived.posteriors.get().is_none() && derived.moments.get().is_none());
    }

    #[test]
    fn what_is_derived_is_derived_once_and_shared_by_copies() {
        let (predictor, input) = example();
        predictor.prepare(Method::Linearised).unwrap();
        let before = std::ptr::from_ref(predictor.derived.roots.get().unwrap());
        let copy = predictor.clone();
        copy.predict(input.as_ref(), Method::Linearised).unwrap();
        assert!(std::ptr::eq(before, copy.derived.roots.get().unwrap()));
    }

    #[test]
    fn wrong_input_is_a_typed_error() {
        let (predictor, _) = example();
        let predict = |input: Mat<f64>| predictor.predict(input.as_ref(), Method::Mean).unwrap_err();
        assert!(matches!(predict(Mat::zeros(2, 1)), Error::Shape { what: "input", .. }));
        assert!(matches!(predict(Mat::zeros(3, 0)), Error::Empty { what: "input" }));
        let nan = Mat::from_fn(3, 1, |_, _| f64::NAN);
        assert!(matches!(predict(nan.clone()), Error::NotFinite { what: "input", .. }));
        let unchecked = predictor.predict_unchecked(nan.as_ref(), Method::Mean);
        assert!(matches!(unchecked, Err(Error::NotFinite { what: "predicted mean", .. })));
    }
}
