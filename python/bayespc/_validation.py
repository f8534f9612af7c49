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
    validate_data,
)

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
    if type(X) is np.ndarray and not hasattr(estimator, "feature_names_in_"):
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
    return cast(Samples, validate_data(estimator, X, reset=False, **_X_RULES))


def checked_regression(estimator: object, X: ArrayLike, y: ArrayLike, reset: bool) -> tuple[Samples, Array]:
    """Return X and real-valued y of one or more columns."""
    rules = _X_RULES | {"multi_output": True, "y_numeric": True}
    X, y = cast("tuple[Any, Any]", validate_data(estimator, X, y, reset=reset, **rules))
    targets = np.asarray(y, dtype=np.float64)
    _check_size(targets)
    return cast(Samples, X), targets


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
    estimator: object, X: ArrayLike, y: ArrayLike, reset: bool
) -> tuple[Samples, npt.NDArray[Any]]:
    """Return X and one column of class labels."""
    X, y = cast("tuple[Any, Any]", validate_data(estimator, X, y, reset=reset, **_X_RULES))
    check_classification_targets(y)
    return cast(Samples, X), cast("npt.NDArray[Any]", y)


def checked_targets(y: ArrayLike) -> Array:
    """Return targets to score as a float64 array of one or two dimensions."""
    return cast(Array, check_array(y, dtype=np.float64, ensure_2d=False, order="C"))


def checked_weights(sample_weight: ArrayLike | None, X: Samples) -> Array | None:
    """Return weights per sample, or None if all are one."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    weights = cast(Array, np.ascontiguousarray(weights))
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
