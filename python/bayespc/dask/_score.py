"""Scores of rows in parts, from sums that add up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._validation import Array
from ._rows import known_rows


class Moments(NamedTuple):
    """Sums over some rows, by output."""

    weight: float
    mean: Array
    """Σ w y / Σ w."""
    spread: Array
    """Σ w (y − mean)²."""
    error: Array
    """Σ w (y − prediction)²; for labels Σ w [label is predicted]."""

    def add(self, other: Moments) -> Moments:
        """Return the sums over the rows of both (Chan, Golub, LeVeque 1979)."""
        weight = self.weight + other.weight
        if weight == 0.0:
            return self
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.weight / weight)
        spread = self.spread + other.spread + apart**2 * (self.weight * other.weight / weight)
        return Moments(weight, mean, spread, self.error + other.error)


def of_values(X: Any, y: Any, weights: Any, _: Any, model: Any) -> Moments | None:
    """Return what R² needs of a part."""
    rows = known_rows(X, y, weights)
    if rows is None:
        return None
    targets = _two_dimensional(rows[1])
    predicted = _two_dimensional(model.predict(rows[0]))
    w = _weights(rows[2], len(targets))
    total = float(w.sum())
    mean = (w @ targets) / total if total else np.zeros(targets.shape[1])
    return Moments(total, mean, w @ (targets - mean) ** 2, w @ (targets - predicted) ** 2)


def of_labels(X: Any, y: Any, weights: Any, _: Any, model: Any) -> Moments | None:
    """Return what the accuracy needs of a part."""
    rows = known_rows(X, y, weights)
    if rows is None:
        return None
    right = np.asarray(rows[1]) == model.predict(rows[0])
    w = _weights(rows[2], len(right))
    return Moments(float(w.sum()), np.zeros(1), np.zeros(1), np.array([w @ right]))


def together(parts: list[Moments | None]) -> Moments:
    """Return the sums over all parts; an error if there are no rows."""
    total: Moments | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else total.add(part)
    if total is None:
        raise ValueError(f"X has no rows: all of its {len(parts)} partitions are empty")
    return total


def r_squared(total: Moments) -> float:
    """Return R², the mean over outputs; of a constant target 1 if it is met and 0 if not.

    That is what scikit-learn makes of it.
    """
    constant = np.where(total.error == 0.0, 1.0, 0.0)
    varies = total.spread > 0.0
    scores = np.where(varies, 1.0 - total.error / np.where(varies, total.spread, 1.0), constant)
    return float(scores.mean())


def accuracy(total: Moments) -> float:
    """Return the share of labels that are predicted."""
    return float(total.error[0] / total.weight)


def _two_dimensional(values: Any) -> Array:
    array: npt.NDArray[Any] = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


def _weights(weights: Any, n: int) -> Array:
    return np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
