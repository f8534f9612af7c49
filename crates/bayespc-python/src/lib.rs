//! The Python module `bayespc._core`: converts arrays, calls the library, releases the GIL. No logic.
//!
//! A C-order array of shape `(n, d)` is the same memory as the library's `d × n` column-major matrix, so
//! inputs of either float type are read in place. Settings cross as JSON text and fill the same structs as
//! the command's flags do.

// PyO3 hands arguments to functions by value.
#![allow(clippy::needless_pass_by_value)]

mod arrays;
mod dask;
mod datasets;
mod distributions;
mod explain;
mod latent;
mod model;
mod network;
mod pool;
mod predictive;
mod progress;
mod pruning;
mod rounds;
mod tables;
mod trained;

use pyo3::prelude::*;

/// Bayesian predictive coding, compiled.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::dask::{fit_step, rounds_statistics_of_thin, rounds_thin};
    #[pymodule_export]
    use super::datasets::{
        aleatoric, epistemic, image_names, images, standard_splits, two_moons, uci, uci_names,
    };
    #[pymodule_export]
    use super::distributions::{MatrixNormalWishart, SufficientStats, stats_from_bytes};
    #[pymodule_export]
    use super::explain::explain;
    #[pymodule_export]
    use super::latent::{LatentModel, is_latent, latent_from_bytes};
    #[pymodule_export]
    use super::model::{Model, model_from_bytes, preset_settings, rule_settings};
    #[pymodule_export]
    use super::network::Network;
    #[pymodule_export]
    use super::pool::panic_for_tests;
    #[pymodule_export]
    use super::predictive::Predictive;
    #[pymodule_export]
    use super::pruning::{prune, relevance};
    #[pymodule_export]
    use super::rounds::{
        rounds_absorb, rounds_begin, rounds_combine, rounds_next_pass, rounds_settings, rounds_statistics,
    };
    #[pymodule_export]
    use super::tables::{Encoding, Table, columns_table};
    #[pymodule_export]
    use super::trained::{layers_of_file, layers_of_tensors};
}
