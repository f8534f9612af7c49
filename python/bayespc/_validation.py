"""What scikit-learn checks of arrays, weights and labels, with types."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_X_y,
    validate_data,
)

from ._tables import Inputs, inputs, numeric_targets, prepared, with_targets

Array = npt.NDArray[np.float64]
Samples = npt.NDArray[np.float64] | npt.NDArray[np.float32]
ArrayLike = Any
"""Anything scikit-learn makes an array of: lists, NumPy, pandas, polars, …"""

_X_RULES: dict[str, Any] = {"dtype": [np.float64, np.float32], "order": "C"}


_LARGEST = 1e150
"""Of the size of a target: beyond, and below its inverse, a variance is no number that float64 has."""


def checked_samples(estimator: Any, X: ArrayLike) -> Samples:
    """Return X of a fitted estimator as a C-order array of floats, without a copy if it is one."""
    # scikit-learn's checks take a quarter of a millisecond: what they would find nothing in goes without.
    named = hasattr(estimator, "feature_names_in_")
    if type(X) is np.ndarray and not named and estimator.encoding_ is None:
        array: npt.NDArray[Any] = X
        if (
            array.dtype.char in "df"
            and array.ndim == 2
            and len(array)
            and array.shape[1] == estimator.n_features_in_
            and array.flags.c_contiguous
            and _has_finite_sum(array)
        ):
            return array
    ready = inputs(estimator, X)
    if isinstance(ready, Inputs):
        return ready.matrix
    return cast(Samples, validate_data(estimator, ready, reset=False, **_X_RULES))


def checked_regression(
    estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, reset: bool
) -> tuple[Samples, Array, Array | None]:
    """Return X, real-valued y of one or more columns, and weights."""
    rules = {"multi_output": True, "y_numeric": True}
    X, y, sample_weight = with_targets(X, y, sample_weight)
    X, y, weights = _checked(estimator, X, numeric_targets(y), sample_weight, reset, rules)
    targets = np.asarray(y, dtype=np.float64)
    _check_size(targets)
    return X, targets, weights


def _checked(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    reset: bool,
    rules: dict[str, Any],
) -> tuple[Samples, Any, Array | None]:
    ready = prepared(estimator, X, y, sample_weight, reset)
    rules = _X_RULES | rules
    if not ready.is_encoded:
        checked = validate_data(estimator, ready.X, ready.y, reset=reset, **rules)
    else:
        checked = check_X_y(ready.X, ready.y, estimator=estimator, **rules)
    inputs, targets = cast("tuple[Samples, Any]", checked)
    if reset:
        estimator._remember_columns(ready, y)
    return inputs, targets, checked_weights(ready.sample_weight, inputs)


def _has_finite_sum(array: npt.NDArray[Any]) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(float(array.sum()))


def _check_size(targets: Array) -> None:
    low, high = targets.min(axis=0), targets.max(axis=0)
    if bool(np.any(np.maximum(np.abs(low), np.abs(high)) > _LARGEST)):
        raise ValueError(f"y has values beyond {_LARGEST:g}, of which there is no variance: rescale it")
    if bool(np.any((high > low) & (high - low < 1.0 / _LARGEST))):
        raise ValueError(
            f"y varies by less than {1.0 / _LARGEST:g}, of which there is no variance: rescale it"
        )


def checked_classification(
    estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, reset: bool
) -> tuple[Samples, npt.NDArray[Any], Array | None]:
    """Return X, one column of class labels, and weights."""
    X, y, sample_weight = with_targets(X, y, sample_weight)
    X, y, weights = _checked(estimator, X, y, sample_weight, reset, {})
    check_classification_targets(y)
    return X, cast("npt.NDArray[Any]", y), weights


def checked_targets(y: ArrayLike) -> Array:
    """Return targets to score as a float64 array of one or two dimensions."""
    return cast(Array, check_array(y, dtype=np.float64, ensure_2d=False))


def checked_weights(sample_weight: ArrayLike | None, X: Samples) -> Array | None:
    """Return weights per sample, or None if all are one."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    weights = cast(Array, weights)
    return None if bool(np.all(weights == 1.0)) else weights


def labels_of(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the classes in y, sorted."""
    return np.unique(y)


def seed_of(random_state: Any) -> int:
    """Return a seed: an integer is its own, anything else is drawn from."""
    if isinstance(random_state, Integral):
        if random_state < 0:
            raise ValueError(f"random_state must be at least 0; got {random_state!r}")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    return int(check_random_state(random_state).randint(2**32, dtype=np.uint64))
