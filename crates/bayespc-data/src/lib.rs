//! Data for Bayesian predictive coding.

mod catalogue;
mod convert;
mod error;
mod fetch;
mod mnist;
mod source;
mod splits;
pub mod synthetic;
mod uci;

pub use catalogue::{DatasetInfo, catalogue};
pub use error::{DownloadError, Error, FormatError, Result};
pub use fetch::Progress;
pub use mnist::{MNIST_CITATION, Mnist, load_mnist};
pub use source::{DATA_FOLDER_VARIABLE, DataSource, Location};
pub use splits::{Split, k_folds, parse_splits, standard_splits};
pub use uci::{Dataset, builtin, load_uci, locate_uci};
