//! Data for Bayesian predictive coding: synthetic tasks, the UCI benchmark, MNIST, and the user's own tables.
//!
//! Everything comes out as plain matrices with samples as columns (`d × n`) and in original units;
//! scaling is the learner's business.
//!
//! * [`synthetic`]: two moons, and one task each for aleatoric and epistemic uncertainty.
//! * [`load_uci`], [`load_images`]: public data from a folder, the user's cache or the network
//!   ([`DataSource`]), checked against pinned SHA-256 sums; [`catalogue`] lists origin and licence.
//! * [`standard_splits`], [`parse_splits`], [`k_folds`]: which rows to learn from.
//! * [`Table`], [`Encoding`]: a CSV, JSON, Parquet or workbook file, and how its columns become matrices, in training
//!   and later in prediction; [`RowBatches`] for files that do not fit into memory.
//!
//! ```
//! use bayespc_data::{Encoding, EncodingOptions, Kinds, Table, Targets};
//!
//! # fn main() -> bayespc_data::Result<()> {
//! let train = Table::from_csv("flats.csv", b"size,city,rent\n50,Bern,1500\n70,Aarau,1400\n", &Kinds::new())?;
//! let encoding = Encoding::fit(&train, &["rent"], &EncodingOptions::default())?;
//! assert_eq!(encoding.feature_names(), ["size", "city=Aarau", "city=Bern"]);
//! let Targets::Regression(rents) = encoding.targets(&train)? else { unreachable!() };
//! assert_eq!(rents[(0, 1)], 1400.0);
//!
//! // A table to predict may lack the target and have its columns in another order.
//! let new = Table::from_csv("new.csv", b"city,size\nBern,60\n", &encoding.kinds())?;
//! let encoded = encoding.transform(&new)?;
//! assert_eq!((encoded.features[(0, 0)], encoded.features[(2, 0)]), (60.0, 1.0));
//! # Ok(())
//! # }
//! ```

mod bad_rows;
mod batches;
mod catalogue;
mod convert;
mod encoding;
mod error;
mod fetch;
mod mnist;
mod quiet;
mod source;
mod splits;
pub mod synthetic;
mod table;
mod uci;

pub use bad_rows::BadRows;
pub use batches::{Batch, Keep, RowBatches, RowSource};
pub use catalogue::{DatasetInfo, catalogue};
pub use encoding::{
    BoolCoding, CategoryCoding, Coding, ColumnChoice, ColumnSummary, Encoded, Encoding, EncodingOptions,
    FeatureColumn, HashCoding, Learnable, Missing, NumberCoding, TargetColumns, Targets, Task, TimeCoding,
    Understood, UnknownChoice, Warning, columns_table,
};
pub use error::{DownloadError, Error, FormatError, Result};
pub use fetch::Progress;
pub use mnist::{ImageSet, LabelledImages, load_images, locate_images};
pub use source::{DATA_FOLDER_VARIABLE, DataSource, Location};
pub use splits::{Split, k_folds, parse_splits, standard_splits};
pub use table::{
    Civil, Column, Currency, DateOrder, DateSeparator, Decimal, Group, Kind, Kinds, NumberFormat,
    ParquetWriter, ReadOptions, Remark, Suspect, Table, Texts, TimeFormat, Unit, UnknownKind, Values, Wish,
    Wishes,
};
pub use uci::{Dataset, builtin, load_uci, locate_uci};
