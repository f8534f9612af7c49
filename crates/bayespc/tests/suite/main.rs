//! All tests across modules, in one program: generic code is compiled once, not once per file.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

mod baselines;
mod columns;
mod determinism;
mod documented;
mod elsewhere;
mod epistemic_toy;
mod equilibrium;
mod errors;
mod explain;
mod generative;
mod hostile;
mod latent;
mod laws;
mod learners;
mod model;
mod model_file;
mod oracle;
mod prediction;
mod predictive;
mod reference_distributions;
mod reference_moments;
mod reference_special;
mod relaxation;
mod relevance;
mod residual;
mod robustness;
mod rounds;
mod wide;
