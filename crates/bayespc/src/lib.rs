//! Bayesian predictive coding: neural networks whose layers each keep a conjugate posterior over their
//! weights and noise, learn by local closed-form updates, and know what they do not know.
//!
//! # The model
//!
//! ```text
//! φ_0 = [x; 1] ,   φ_l = [f(z_l); 1]                          the bias is a row of ones
//! z_l | z_{l−1}, W_l, Σ_l  ~  N(W_l φ_{l−1}, Σ_l)             weights outside f: conjugate
//! W_l | Σ_l ~ MN(M, Σ_l⁻¹, V) ,   Σ_l⁻¹ ~ Wishart(Ψ, ν)       one posterior per layer
//!
//! E-step   activities z_l given the posteriors        inference, by feedback or by relaxation
//! M-step   η ← (1−κ) η + κ (η⁰ + (N/|B|) T)           learning, T = (Σφφᵀ, Σzφᵀ, Σzzᵀ, n)
//! predict  mean and two variances that add             Cov(y) = aleatoric + epistemic
//! ```
//!
//! Samples are columns (`d × n`), which is the memory of a C-order array of shape `(n, d)`.
//!
//! # Fit and predict
//!
//! ```
//! use bayespc::{Mat, Model, ModelSettings, Samples};
//!
//! # fn main() -> bayespc::Result<()> {
//! let x = Mat::from_fn(1, 200, |_, j| 6.0 * j as f64 / 199.0 - 3.0);
//! let y = Mat::from_fn(1, 200, |_, j| x[(0, j)].sin() + 0.1 * (17.0 * j as f64).sin());
//! let model = Model::fit(&Samples::new(&x, &y)?, &ModelSettings::default())?;
//!
//! let new = Mat::from_fn(1, 2, |_, j| [0.5, 9.0][j]); // amid the data, and far away from them
//! let predictive = model.predict(&new)?;
//! let (low, high) = predictive.interval(0.9)?;
//! assert!(low[(0, 0)] < 0.5_f64.sin() && 0.5_f64.sin() < high[(0, 0)]);
//! let epistemic = predictive.epistemic_variance();
//! assert!(epistemic[(0, 1)] > 10.0 * epistemic[(0, 0)]);
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! | for                     | modules                                                                         |
//! |-------------------------|---------------------------------------------------------------------------------|
//! | using it                | [`model`] fits, predicts and streams; [`metrics`] judges   |
//! | data                    | [`data`]: views, checks, standardising                              |
//! | probability             | [`distributions`], always `f64`                                                  |
//! | the network             | [`network`] of layers, [`heads`] that read its output                            |
//! | E-step, M-step          | [`inference`] of activities, [`learning`] of posteriors                          |
//! | output                  | [`prediction`]: four methods, one result type                                    |
//! | learners and their loop | [`learners`] under one trait, [`optim`] for the baselines, [`training`]          |
//! | ground                  | [`real`], [`error`]                                     |
//!
//! Inference never changes a posterior, learning never changes an activity, prediction changes nothing. Chance
//! enters as an argument, and the number of threads never changes a result. The library reads and writes no
//! files and prints nothing; it reads the clock only for [`model`]'s `time_limit`.

#[doc(hidden)]
pub mod base;
pub mod data;
pub mod distributions;
pub mod error;
pub mod heads;
pub mod inference;
pub mod learners;
pub mod learning;
pub mod metrics;
pub mod model;
pub mod network;
pub mod optim;
pub mod prediction;
pub mod real;
#[doc(hidden)]
pub mod special;
pub mod training;

pub use data::{Samples, Targets, Task};
pub use error::{Error, Result};
/// The matrix types of every argument and result.
pub use faer::{Mat, MatRef};
pub use heads::HeadSettings;
pub use learners::Rule;
pub use model::{Model, ModelSettings};
pub use network::{Activation, NetworkSettings};
pub use prediction::{Method, Predictive};
pub use real::{Precision, Real};
pub use training::TrainingSettings;
