//! The four ways to predict, one result type.
//!
//! | method        | cost                       | what it gives                                             |
//! |---------------|----------------------------|-----------------------------------------------------------|
//! | `mean`        | one forward pass           | the mean network, noise only                               |
//! | `monte_carlo` | one forward pass per draw  | a mixture over networks drawn from the posterior           |
//! | `moments`     | d² per sample and layer    | mean and covariance carried through every layer            |
//! | `linearised`  | one backward sweep per output | first order in the weights of every layer: the default  |
//!
//! For a network of one layer all but `mean` agree with its exact Student-t predictive.

use faer::{Mat, MatRef};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::predictor::{Derived, check};
use super::{Covariance, Predictive, linearised, moments};
use crate::base::linalg::cast;
use crate::base::parallel::PASS;
use crate::base::random::stream;
use crate::error::{Error, Result};
use crate::heads::ActivityPredictive;
use crate::network::{Activities, CovarianceRule, Network, Posteriors};
use crate::real::Real;

/// More draws than tell anything new.
const MOST_DRAWS: usize = 100_000;

/// How to predict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Method {
    /// Forward pass with the mean weights; no epistemic uncertainty.
    Mean,
    /// Forward passes with weights drawn from the posterior.
    MonteCarlo {
        /// Number of networks drawn.
        #[serde(default = "paper::draws")]
        draws: usize,
        /// Seed of the draws: same seed, same prediction.
        #[serde(default)]
        seed: u64,
        /// Add the hidden layers' noise where it is noise of the activity.
        #[serde(default = "paper::layer_noise")]
        layer_noise: bool,
    },
    /// Means and covariances propagated through every layer.
    Moments {
        /// How covariances pass the activation.
        #[serde(default)]
        covariance: CovarianceRule,
    },
    /// First order in the weights of every layer.
    #[default]
    Linearised,
}

/// Monte Carlo as the paper has it, for what settings leave out.
mod paper {
    pub(super) fn draws() -> usize {
        20
    }

    pub(super) fn layer_noise() -> bool {
        true
    }
}

impl Method {
    /// Monte Carlo as the paper has it: 20 draws.
    pub fn monte_carlo() -> Self {
        Self::MonteCarlo { draws: paper::draws(), seed: 0, layer_noise: paper::layer_noise() }
    }

    /// Its name in settings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::MonteCarlo { .. } => "monte_carlo",
            Self::Moments { .. } => "moments",
            Self::Linearised => "linearised",
        }
    }

    /// Check the settings.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::MonteCarlo { draws, .. } if !(1..=MOST_DRAWS).contains(draws) => Err(Error::Setting {
                name: "method.monte_carlo.draws",
                value: *draws as f64,
                must_be: "between 1 and 100 000",
            }),
            _ => Ok(()),
        }
    }
}

/// Predict the targets of `input` (`d_in × n`). Whoever predicts more than once keeps a [`Predictor`](super::Predictor).
pub fn predict<T: Real>(network: &Network<T>, input: MatRef<'_, T>, method: Method) -> Result<Predictive> {
    check(network, input, method)?;
    predict_by(network, &Derived::default(), input, method)
}

/// The same for an input that is known to be good, with what was derived of the network before.
pub(super) fn predict_by<T: Real>(
    network: &Network<T>,
    derived: &Derived<T>,
    input: MatRef<'_, T>,
    method: Method,
) -> Result<Predictive> {
    let activity = match method {
        Method::Mean => ActivityPredictive {
            mean: cast(forward(network, input)?.as_ref()),
            epistemic: Covariance::Zero,
            hidden_noise: Covariance::Zero,
            noise: derived.output(network)?.covariance.clone(),
            dof: derived.output(network)?.dof,
        },
        Method::Linearised if network.is_wide() => {
            linearised::predict_wide(network, derived.wide(network)?, derived.output(network)?, input)
        }
        Method::Linearised => {
            linearised::predict(network, derived.roots(network)?, derived.output(network)?, input)
        }
        Method::Moments { covariance } => {
            moments::predict(network, derived.moments(network)?, derived.output(network)?, input, covariance)?
        }
        Method::MonteCarlo { draws, seed, layer_noise } => {
            return monte_carlo(network, derived.posteriors(network)?, input, draws, seed, layer_noise);
        }
    };
    Predictive::from_component(network.settings().head.head().density(activity)?)
}

/// Output activity of the mean network; a few samples are not worth a task.
fn forward<T: Real>(network: &Network<T>, input: MatRef<'_, T>) -> Result<Mat<T>> {
    if input.ncols() > PASS {
        return network.forward(input);
    }
    let means = network.means();
    let mut activities = Activities::new(&network.widths(), input.ncols());
    activities.forward(&means, network.settings().activation, input);
    Ok(activities.post.swap_remove(means.len() - 1))
}

/// A component per draw; draw i uses stream i of the seed, so threads cannot change the result.
fn monte_carlo<T: Real>(
    network: &Network<T>,
    posteriors: &Posteriors,
    input: MatRef<'_, T>,
    draws: usize,
    seed: u64,
    layer_noise: bool,
) -> Result<Predictive> {
    let components = (0..draws)
        .into_par_iter()
        .map(|i| {
            let mut rng = stream(seed, i as u64);
            let drawn = network.draw(posteriors, &mut rng)?;
            let activity =
                if layer_noise { drawn.forward_noisy(input, &mut rng)? } else { drawn.forward(input)? };
            drawn.density(activity.as_ref())
        })
        .collect::<Result<Vec<_>>>()?;
    Predictive::new(components)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_method_leaves_out_keeps_its_default() {
        let method = |text: &str| serde_json::from_str::<Method>(text).unwrap();
        assert_eq!(method(r#"{"monte_carlo": {}}"#), Method::monte_carlo());
        assert_eq!(
            method(r#"{"monte_carlo": {"draws": 7}}"#),
            Method::MonteCarlo { draws: 7, seed: 0, layer_noise: true }
        );
        assert_eq!(method(r#"{"moments": {}}"#), Method::Moments { covariance: CovarianceRule::default() });
        assert!(serde_json::from_str::<Method>(r#"{"monte_carlo": {"drwas": 7}}"#).is_err());
    }
}
