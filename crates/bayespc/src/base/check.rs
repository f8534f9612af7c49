//! Checks of settings that many places make.

use crate::error::{Error, Result};

/// A setting that must be positive and finite.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error::Setting { name, value, must_be: "positive and finite" })
}

/// A setting that must be at least 1.
pub(crate) fn at_least_one(name: &'static str, value: usize) -> Result<()> {
    if value > 0 { Ok(()) } else { Err(Error::Setting { name, value: 0.0, must_be: "at least 1" }) }
}
