//! How much of what a wide layer's units do together is kept.

use serde::{Deserialize, Serialize};

use crate::distributions::Structure;
use crate::error::{Error, Result};

/// Units up to which everything is kept where nobody says otherwise.
const AUTO_FROM: usize = 2048;

/// Units of a block above that.
const AUTO_BLOCK: usize = 512;

/// Columns from which a table of few samples is a wide one.
const SOME: usize = 512;

/// Directions of the columns of a wide table, and how many a linear model may have, which needs all of them.
const AUTO_DIRECTIONS: usize = 256;
const MOST_DIRECTIONS: usize = 1024;

/// Directions of the feedback that a wide layer keeps at most: feedback comes from few outputs.
const FEEDBACK_DIRECTIONS: usize = 64;

/// How much is kept of the precisions of wide layers. Their memory and time grow with the square and the cube of a
/// layer's width; those of blocks and sketches grow with its width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WideLayers {
    /// All of layers up to 2048 units, blocks of 512 above; directions of tables with many columns, or with far more than
    /// samples.
    #[default]
    Auto,
    /// All of every layer.
    Dense,
    /// Blocks of so many units of a layer's input, and directions they share, as in `{blocks = 512}`.
    Blocks(usize),
    /// So many directions of a layer's input, and a bound on the others, as in `{sketch = 256}`.
    Sketch(usize),
}

impl WideLayers {
    /// Check the number.
    pub fn validate(self) -> Result<()> {
        match self {
            Self::Blocks(0) | Self::Sketch(0) => {
                Err(Error::Setting { name: "network.wide_layers", value: 0.0, must_be: "at least 1" })
            }
            _ => Ok(()),
        }
    }

    /// What somebody who can only keep everything makes of it: an error, unless it was left open.
    pub fn or_dense(self, second: &'static str) -> Result<Self> {
        match self {
            Self::Auto | Self::Dense => Ok(Self::Dense),
            Self::Blocks(_) => Err(Error::Conflict { first: "network.wide_layers = blocks", second }),
            Self::Sketch(_) => Err(Error::Conflict { first: "network.wide_layers = sketch", second }),
        }
    }

    /// What is kept of the column precision of `units` activities beside the bias.
    pub fn structure(self, units: usize) -> Structure {
        match self {
            Self::Auto if units > AUTO_FROM => Structure::Blocks(AUTO_BLOCK),
            Self::Blocks(size) if units > size => Structure::Blocks(size),
            Self::Sketch(k) if units > k => Structure::Sketch(k),
            _ => Structure::Dense,
        }
    }

    /// Directions that are kept of the feedback to a layer of `units`; all of them where its own activity is kept
    /// whole.
    pub(crate) fn feedback_directions(self, units: usize) -> usize {
        match self.structure(units) {
            Structure::Dense => units,
            Structure::Blocks(_) => FEEDBACK_DIRECTIONS.min(units),
            Structure::Sketch(k) => FEEDBACK_DIRECTIONS.min(k),
        }
    }

    /// Whether something is left out of a network. Blocks leave out nothing of one without hidden layers, which is solved
    /// exactly; nobody who leaves it open gets parts of his inputs where all hidden layers are kept whole.
    pub fn is_wide(self, d_input: usize, hidden: &[usize]) -> bool {
        let leaves_out = |&units: &usize| self.structure(units) != Structure::Dense;
        let by_input = match self {
            Self::Auto | Self::Dense => false,
            Self::Blocks(_) => !hidden.is_empty() && leaves_out(&d_input),
            Self::Sketch(_) => leaves_out(&d_input),
        };
        by_input || hidden.iter().any(leaves_out)
    }

    /// What a network of `d_input` columns and `n` samples keeps where nobody says: directions of a table with many columns,
    /// or with some and far fewer samples. Samples have no more directions than there are samples, so that of few nothing is
    /// left out. A linear model needs all of them, whatever was said of layers; none if it is too large to be tried.
    pub(crate) fn of_table(self, d_input: usize, n: usize, hidden: &[usize]) -> Option<Self> {
        if let Self::Sketch(k) = self
            && hidden.is_empty()
            && n > k
        {
            return (d_input <= AUTO_FROM).then_some(Self::Dense);
        }
        let is_long = d_input <= AUTO_FROM && (d_input < SOME || 2 * n >= d_input);
        if self != Self::Auto || is_long {
            return Some(self);
        }
        let most = if hidden.is_empty() { MOST_DIRECTIONS } else { AUTO_DIRECTIONS };
        (!hidden.is_empty() || n <= most).then_some(Self::Sketch(n.min(most)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_a_word_or_with_its_number() {
        let read = |text: &str| serde_json::from_str::<WideLayers>(text).unwrap();
        assert_eq!(read("\"auto\""), WideLayers::Auto);
        assert_eq!(read("\"dense\""), WideLayers::Dense);
        assert_eq!(read("{\"blocks\": 256}"), WideLayers::Blocks(256));
        assert_eq!(read("{\"sketch\": 64}"), WideLayers::Sketch(64));
        assert!(WideLayers::Blocks(0).validate().is_err());
    }

    #[test]
    fn layers_that_a_block_holds_are_kept_whole() {
        assert_eq!(WideLayers::Blocks(8).structure(8), Structure::Dense);
        assert_eq!(WideLayers::Blocks(8).structure(9), Structure::Blocks(8));
        assert!(!WideLayers::Auto.is_wide(784, &[2048, 2048]) && !WideLayers::Auto.is_wide(5000, &[50]));
        assert!(WideLayers::Auto.is_wide(784, &[2049]) && WideLayers::Blocks(8).is_wide(9, &[4]));
        assert!(!WideLayers::Blocks(8).is_wide(9, &[]) && WideLayers::Sketch(8).is_wide(9, &[]));
        assert!(WideLayers::Sketch(8).or_dense("streams").is_err());
    }

    #[test]
    fn wide_tables_of_few_samples_lose_nothing() {
        let of = |d, n, hidden: &[usize]| WideLayers::Auto.of_table(d, n, hidden);
        assert_eq!(of(2048, 1024, &[50]), Some(WideLayers::Auto));
        assert_eq!(of(511, 10, &[50]), Some(WideLayers::Auto));
        assert_eq!(of(512, 255, &[]), Some(WideLayers::Sketch(255)));
        assert_eq!(of(2049, 10, &[50]), Some(WideLayers::Sketch(10)));
        assert_eq!(of(2049, 5000, &[50]), Some(WideLayers::Sketch(AUTO_DIRECTIONS)));
        assert_eq!(of(2049, 1000, &[]), Some(WideLayers::Sketch(1000)));
        assert_eq!(of(2049, 5000, &[]), None);
        assert_eq!(WideLayers::Dense.of_table(2049, 5000, &[]), Some(WideLayers::Dense));
        let sketch = WideLayers::Sketch(64);
        assert_eq!(sketch.of_table(100, 64, &[]), Some(sketch));
        assert_eq!(sketch.of_table(100, 65, &[]), Some(WideLayers::Dense));
        assert_eq!(sketch.of_table(2049, 65, &[]), None);
        assert_eq!(sketch.of_table(2049, 65, &[50]), Some(sketch));
    }
}
