//! Settings of the training loop.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// More passes than any data need: a slip of the keyboard should not run for years.
const MOST_EPOCHS: usize = 10_000_000;

/// Settings of the loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingSettings {
    /// Passes over the data.
    pub epochs: usize,
    /// Samples per batch; `None`, or no fewer than there are: the full batch. In files a number or `"full"`.
    #[serde(with = "batch_size")]
    pub batch_size: Option<usize>,
    /// Seed of initial weights, shuffles and splits.
    pub seed: u64,
    /// Share of the samples held out for validation; 0 for none.
    pub validation_fraction: f64,
    /// Stop after this many validations without a better likelihood; needs `validation_fraction`.
    pub patience: Option<usize>,
    /// Validate every so many epochs.
    pub validate_every: usize,
    /// How many of the last samples of a stream the posterior represents; all of them if not given. For data whose
    /// meaning drifts. A fit, which sees all its samples again and again, does not use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget: Option<f64>,
}

impl Default for TrainingSettings {
    fn default() -> Self {
        Self {
            epochs: 100,
            batch_size: Some(32),
            seed: 0,
            validation_fraction: 0.0,
            patience: None,
            validate_every: 5,
            forget: None,
        }
    }
}

impl TrainingSettings {
    /// Check every setting.
    pub fn validate(&self) -> Result<()> {
        if self.batch_size == Some(0) {
            return Err(Error::Setting { name: "training.batch_size", value: 0.0, must_be: "at least 1" });
        }
        if self.epochs > MOST_EPOCHS {
            let value = self.epochs as f64;
            return Err(Error::Setting { name: "training.epochs", value, must_be: "at most 10 000 000" });
        }
        if self.validate_every == 0 {
            return Err(Error::Setting {
                name: "training.validate_every",
                value: 0.0,
                must_be: "at least 1",
            });
        }
        if !(0.0..1.0).contains(&self.validation_fraction) {
            return Err(Error::Setting {
                name: "training.validation_fraction",
                value: self.validation_fraction,
                must_be: "in [0, 1)",
            });
        }
        self.forget.map_or(Ok(()), |rows| crate::base::check::positive("training.forget", rows))?;
        if self.patience.is_some() && self.validation_fraction == 0.0 {
            return Err(Error::Conflict {
                first: "training.patience",
                second: "training.validation_fraction = 0 (nothing to watch)",
            });
        }
        Ok(())
    }
}

/// A batch size in files: a number, or `"full"`, since a format without null cannot say `None`.
mod batch_size {
    use std::fmt;

    use serde::de::{Deserializer, Error, Unexpected, Visitor};
    use serde::ser::Serializer;

    /// The full batch.
    const FULL: &str = "full";

    #[allow(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(size: &Option<usize>, to: S) -> Result<S::Ok, S::Error> {
        match size {
            Some(size) => to.serialize_u64(*size as u64),
            None => to.serialize_str(FULL),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
        from.deserialize_any(SizeVisitor)
    }

    struct SizeVisitor;

    impl Visitor<'_> for SizeVisitor {
        type Value = Option<usize>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a number of samples or \"{FULL}\"")
        }

        fn visit_u64<E: Error>(self, size: u64) -> Result<Self::Value, E> {
            usize::try_from(size).map(Some).map_err(|_| E::invalid_value(Unexpected::Unsigned(size), &self))
        }

        fn visit_i64<E: Error>(self, size: i64) -> Result<Self::Value, E> {
            usize::try_from(size).map(Some).map_err(|_| E::invalid_value(Unexpected::Signed(size), &self))
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
            if word == FULL { Ok(None) } else { Err(E::invalid_value(Unexpected::Str(word), &self)) }
        }

        // JSON's null.
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_size_is_a_number_or_full_and_survives_the_way_through_json() {
        for batch_size in [Some(1), Some(32), None] {
            let settings = TrainingSettings { batch_size, ..TrainingSettings::default() };
            let text = serde_json::to_string(&settings).unwrap();
            assert_eq!(serde_json::from_str::<TrainingSettings>(&text).unwrap(), settings, "{text}");
        }
        let size = |text: &str| serde_json::from_str::<TrainingSettings>(text).map(|s| s.batch_size);
        assert_eq!(size("{}").unwrap(), TrainingSettings::default().batch_size);
        assert_eq!(size(r#"{"batch_size": "full"}"#).unwrap(), None);
        assert_eq!(size(r#"{"batch_size": null}"#).unwrap(), None);
        for wrong in [r#"{"batch_size": "all"}"#, r#"{"batch_size": -3}"#, r#"{"batch_size": 1.5}"#] {
            let error = size(wrong).unwrap_err().to_string();
            assert!(error.contains("a number of samples or \"full\""), "{error}");
        }
    }
}
