//! Checks of what a caller hands us, each an [`Error`] that names the culprit first.

use faer::MatRef;

use crate::error::{Error, Result};
use crate::real::Real;

/// No entry of `values` (samples are columns) is NaN or infinite.
pub(crate) fn check_finite<T: Real>(what: &'static str, values: MatRef<'_, T>) -> Result<()> {
    for row in 0..values.ncols() {
        for column in 0..values.nrows() {
            let value = values[(column, row)];
            if !value.is_finite() {
                return Err(Error::NotFinite { what, row, column, value: value.as_f64() });
            }
        }
    }
    Ok(())
}

/// `values` is `rows × columns`.
pub(crate) fn check_shape<T: Real>(
    what: &'static str,
    values: MatRef<'_, T>,
    rows: usize,
    columns: usize,
) -> Result<()> {
    for (axis, found, expected) in [("rows", values.nrows(), rows), ("columns", values.ncols(), columns)] {
        if found != expected {
            return Err(Error::Shape { what, axis, found, expected });
        }
    }
    Ok(())
}

/// So many numbers as there should be.
pub(crate) fn same_length(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(Error::Shape { what, axis: "numbers", found, expected }) }
}

/// The setting `name` is positive and finite.
pub(crate) fn positive(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(Error::Setting { name, value, must_be: "positive and finite" })
    }
}

/// The setting `name` is at least 1.
pub(crate) fn at_least_one(name: &'static str, value: usize) -> Result<()> {
    if value > 0 { Ok(()) } else { Err(Error::Setting { name, value: 0.0, must_be: "at least 1" }) }
}

/// The setting `name` is a probability that is neither 0 nor 1.
pub(crate) fn inside_unit_interval(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value < 1.0 {
        Ok(())
    } else {
        Err(Error::Setting { name, value, must_be: "between 0 and 1, exclusive" })
    }
}

#[cfg(test)]
mod tests {
    use faer::Mat;

    use super::*;

    #[test]
    fn errors_name_the_culprit_and_its_place() {
        let values = Mat::from_fn(2, 3, |i, j| if (i, j) == (1, 2) { f64::NAN } else { 0.0 });
        let error = check_finite("x", values.as_ref()).unwrap_err();
        assert!(matches!(error, Error::NotFinite { what: "x", row: 2, column: 1, .. }));
        let error = check_shape("x", values.as_ref(), 2, 4).unwrap_err();
        assert!(matches!(error, Error::Shape { what: "x", axis: "columns", found: 3, expected: 4 }));
        for value in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(matches!(positive("s", value), Err(Error::Setting { name: "s", .. })));
        }
        for value in [0.0, 1.0, f64::NAN] {
            assert!(matches!(inside_unit_interval("p", value), Err(Error::Setting { name: "p", .. })));
        }
    }
}
