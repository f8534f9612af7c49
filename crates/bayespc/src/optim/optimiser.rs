//! Which optimiser, with its settings, and its state over a list of parameter matrices.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::{adam, sgd};
use crate::error::{Error, Result};
use crate::real::Real;

/// An optimiser of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Optimiser {
    /// Stochastic gradient descent.
    Sgd {
        /// α.
        rate: f64,
        /// μ, in [0, 1); 0 for plain descent.
        #[serde(default)]
        momentum: f64,
    },
    /// Adam.
    Adam {
        /// α.
        rate: f64,
    },
    /// Adam with decoupled weight decay, of biases too.
    AdamW {
        /// α.
        rate: f64,
        /// λ: a step takes the share α λ of every parameter away.
        weight_decay: f64,
    },
}

impl Default for Optimiser {
    /// Adam at its usual rate.
    fn default() -> Self {
        Self::Adam { rate: 1e-3 }
    }
}

impl Optimiser {
    /// α.
    pub fn rate(self) -> f64 {
        match self {
            Self::Sgd { rate, .. } | Self::Adam { rate } | Self::AdamW { rate, .. } => rate,
        }
    }

    /// Check every setting.
    pub fn validate(self) -> Result<()> {
        let rate = self.rate();
        if !(rate.is_finite() && rate > 0.0) {
            return Err(Error::Setting {
                name: "optimiser.rate",
                value: rate,
                must_be: "positive and finite",
            });
        }
        match self {
            Self::Sgd { momentum, .. } if !(0.0..1.0).contains(&momentum) => {
                Err(Error::Setting { name: "optimiser.momentum", value: momentum, must_be: "in [0, 1)" })
            }
            Self::AdamW { weight_decay, .. } if !(weight_decay >= 0.0 && rate * weight_decay < 1.0) => {
                Err(Error::Setting {
                    name: "optimiser.weight_decay",
                    value: weight_decay,
                    must_be: "at least 0 and below 1/rate",
                })
            }
            _ => Ok(()),
        }
    }
}

/// What an optimiser remembers of one parameter matrix: nothing, a velocity, or two moments.
#[derive(Clone, Debug)]
pub(crate) struct Moments<T: Real> {
    first: Mat<T>,
    second: Mat<T>,
}

impl<T: Real> Moments<T> {
    /// Memory of a matrix of this shape that has not moved yet.
    pub fn new(optimiser: Optimiser, rows: usize, columns: usize) -> Self {
        let (needs_first, needs_second) = match optimiser {
            Optimiser::Sgd { momentum, .. } => (momentum > 0.0, false),
            Optimiser::Adam { .. } | Optimiser::AdamW { .. } => (true, true),
        };
        let room = |needed: bool| if needed { Mat::zeros(rows, columns) } else { Mat::new() };
        Self { first: room(needs_first), second: room(needs_second) }
    }

    /// Forget every step.
    pub fn clear(&mut self) {
        self.first.fill(T::zero());
        self.second.fill(T::zero());
    }

    /// Step t = 1, 2, … down the gradient. Rows below those of the gradient stay as they are.
    pub fn step(&mut self, optimiser: Optimiser, t: u64, parameters: &mut Mat<T>, gradient: &Mat<T>) {
        debug_assert_eq!(parameters.ncols(), gradient.ncols());
        let Self { first, second } = self;
        // Columns are contiguous: on slices the compiler can vectorise.
        match optimiser {
            Optimiser::Sgd { rate, momentum } => {
                let (rate, mu) = (T::lit(rate), T::lit(momentum));
                for j in 0..parameters.ncols() {
                    let (theta, g) = (parameters.col_as_slice_mut(j), gradient.col_as_slice(j));
                    if momentum > 0.0 {
                        sgd::step(theta, g, first.col_as_slice_mut(j), rate, mu);
                    } else {
                        sgd::plain_step(theta, g, rate);
                    }
                }
            }
            Optimiser::Adam { .. } | Optimiser::AdamW { .. } => {
                let weight_decay = match optimiser {
                    Optimiser::AdamW { weight_decay, .. } => weight_decay,
                    _ => 0.0,
                };
                let factors = adam::Factors::new(optimiser.rate(), weight_decay, t);
                for j in 0..parameters.ncols() {
                    adam::step(
                        parameters.col_as_slice_mut(j),
                        gradient.col_as_slice(j),
                        first.col_as_slice_mut(j),
                        second.col_as_slice_mut(j),
                        factors,
                    );
                }
            }
        }
    }
}

/// A descent under way: an optimiser and what it remembers of every parameter matrix.
#[derive(Clone, Debug)]
pub struct Descent<T: Real> {
    optimiser: Optimiser,
    steps: u64,
    moments: Vec<Moments<T>>,
}

impl<T: Real> Descent<T> {
    /// Start a descent over matrices of these shapes (rows, columns).
    pub fn new(optimiser: Optimiser, shapes: impl IntoIterator<Item = (usize, usize)>) -> Result<Self> {
        optimiser.validate()?;
        let moments = shapes.into_iter().map(|(rows, columns)| Moments::new(optimiser, rows, columns));
        Ok(Self { optimiser, steps: 0, moments: moments.collect() })
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// One step down `gradients`, matrix by matrix, each of the shape it was announced with.
    pub fn step<'a>(
        &mut self,
        parameters: impl IntoIterator<Item = &'a mut Mat<T>>,
        gradients: impl IntoIterator<Item = &'a Mat<T>>,
    ) {
        self.steps += 1;
        for ((moments, parameters), gradient) in self.moments.iter_mut().zip(parameters).zip(gradients) {
            debug_assert_eq!(parameters.shape(), gradient.shape());
            moments.step(self.optimiser, self.steps, parameters, gradient);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    const ALL: [Optimiser; 4] = [
        Optimiser::Sgd { rate: 0.1, momentum: 0.0 },
        Optimiser::Sgd { rate: 0.1, momentum: 0.9 },
        Optimiser::Adam { rate: 0.1 },
        Optimiser::AdamW { rate: 0.1, weight_decay: 0.5 },
    ];

    /// θ after each of three steps from 1.0 with gradients 0.5, −0.25, 1.0: the recurrences of
    /// `torch.optim.{SGD, Adam, AdamW}` written out in Python floats.
    const TRAJECTORIES: [[f64; 3]; 4] = [
        [0.95, 0.975, 0.875],
        [0.95, 0.93, 0.812],
        [0.900_000_001_999_999_9, 0.873_366_298_707_846_2, 0.807_555_139_677_089_7],
        [0.850_000_001_999_999_8, 0.780_866_298_607_846_2, 0.676_011_824_646_697_3],
    ];

    #[test]
    fn every_optimiser_follows_its_recurrence() {
        for (optimiser, expected) in ALL.into_iter().zip(TRAJECTORIES) {
            let mut descent = Descent::<f64>::new(optimiser, [(1, 1)]).unwrap();
            let mut theta = vec![Mat::from_fn(1, 1, |_, _| 1.0)];
            for (g, expected) in [0.5, -0.25, 1.0].into_iter().zip(expected) {
                descent.step(&mut theta, &[Mat::from_fn(1, 1, |_, _| g)]);
                assert_relative_eq!(theta[0][(0, 0)], expected, max_relative = 1e-13);
            }
        }
    }

    #[test]
    fn without_a_gradient_decoupled_decay_shrinks_by_exactly_one_minus_rate_times_decay() {
        let mut descent =
            Descent::<f64>::new(Optimiser::AdamW { rate: 0.1, weight_decay: 0.5 }, [(3, 2)]).unwrap();
        let start = Mat::from_fn(3, 2, |i, j| 1.0 + i as f64 - 3.0 * j as f64);
        let mut theta = [start.clone()];
        let keep: f64 = 1.0 - 0.1 * 0.5;
        for t in 1..=5 {
            let before = theta[0].clone();
            descent.step(&mut theta, &[Mat::zeros(3, 2)]);
            for j in 0..2 {
                for i in 0..3 {
                    assert_eq!(theta[0][(i, j)], keep * before[(i, j)]);
                    assert_relative_eq!(theta[0][(i, j)], keep.powi(t) * start[(i, j)], max_relative = 1e-14);
                }
            }
        }
    }

    #[test]
    fn every_optimiser_finds_the_minimum_of_a_quadratic() {
        // ½ Σ h_i (θ_i − c_i)², curvatures 1 and 5.
        let centre = [[2.0, -1.0], [0.5, 3.0]];
        for optimiser in [
            ALL[0],
            ALL[1],
            Optimiser::Adam { rate: 0.01 },
            Optimiser::AdamW { rate: 0.01, weight_decay: 0.0 },
        ] {
            let mut descent = Descent::<f64>::new(optimiser, [(2, 1), (2, 1)]).unwrap();
            let mut theta = vec![Mat::zeros(2, 1), Mat::zeros(2, 1)];
            for _ in 0..4000 {
                let gradients: Vec<Mat<f64>> = (0..2)
                    .map(|k| {
                        Mat::from_fn(2, 1, |i, _| (1.0 + 4.0 * i as f64) * (theta[k][(i, 0)] - centre[k][i]))
                    })
                    .collect();
                descent.step(&mut theta, &gradients);
            }
            for k in 0..2 {
                for i in 0..2 {
                    assert_relative_eq!(theta[k][(i, 0)], centre[k][i], epsilon = 1e-6);
                }
            }
            assert_eq!(descent.steps(), 4000);
        }
    }

    #[test]
    fn impossible_settings_are_errors_that_name_the_setting() {
        let bad = [
            (Optimiser::Adam { rate: 0.0 }, "optimiser.rate"),
            (Optimiser::Adam { rate: f64::NAN }, "optimiser.rate"),
            (Optimiser::Sgd { rate: 0.1, momentum: 1.0 }, "optimiser.momentum"),
            (Optimiser::AdamW { rate: 0.1, weight_decay: 10.0 }, "optimiser.weight_decay"),
            (Optimiser::AdamW { rate: 0.1, weight_decay: f64::NAN }, "optimiser.weight_decay"),
        ];
        for (optimiser, name) in bad {
            let error = optimiser.validate().unwrap_err();
            assert!(matches!(error, Error::Setting { name: found, .. } if found == name), "{error}");
        }
    }

    #[test]
    fn settings_are_read_from_text_and_unknown_ones_refused() {
        let read = |text: &str| serde_json::from_str::<Optimiser>(text);
        assert_eq!(
            read(r#"{"kind": "sgd", "rate": 0.1}"#).unwrap(),
            Optimiser::Sgd { rate: 0.1, momentum: 0.0 }
        );
        assert!(read(r#"{"kind": "adam", "rate": 0.1, "rat": 1}"#).is_err());
    }
}
