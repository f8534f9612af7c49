"""Which columns a model can do without: what the posterior says, and what held-out rows say."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, cast

from . import _core
from ._explain import column_names
from ._validation import ArrayLike, checked_classification, checked_regression


class Pruning(NamedTuple):
    """A model without the columns it can do without."""

    model: Any
    """A copy of the estimator, in which they are silent; it still takes tables that have them."""
    silenced: list[str]
    """Their names, the cheapest first."""
    log_density: float
    """Mean log density of the held-out rows with all columns."""
    path: list[tuple[str, float, float | None]]
    """Every column that was tried without: its name, what the posterior says it costs beside those before it
    (in nats), and the mean log density of the held-out rows without it and those before it (None where
    several went at a time)."""


def relevance(estimator: Any) -> dict[str, float]:
    """Return what it would cost a fitted model that a column said nothing, by the posterior alone.

    It is how much the log density of the first layer's posterior falls when the weights of a column are zero
    and all others are free, in nats, as a mean over networks. No data are needed. Columns that say nothing
    have about half the number of their weights; a column that another one stands in for has little.

    Parameters
    ----------
    estimator : BPCRegressor or BPCClassifier
        Fitted.

    Returns
    -------
    dict
        Names of columns (``x0``, ``x1``, … where there are none) with their costs.

    Examples
    --------
    >>> import numpy as np
    >>> import bayespc
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = bayespc.BPCRegressor(search=False, max_iter=10, random_state=0).fit(X, X[:, 1])
    >>> costs = bayespc.relevance(model)
    >>> max(costs, key=costs.get)
    'x1'
    """
    names, columns = _columns(estimator)
    return dict(zip(names, _core.relevance(estimator.model_, columns).tolist(), strict=True))


def prune(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    tolerance: float = 0.01,
    sample_weight: ArrayLike | None = None,
) -> Pruning:
    """Silence columns, the cheapest by the posterior first, as long as held-out rows are predicted as well.

    A silent column has weights of zero. What the others are then follows from the posterior in closed form:
    nothing is trained again.

    Parameters
    ----------
    estimator : BPCRegressor or BPCClassifier
        Fitted; it stays as it is.
    X : array-like or frame of shape (n_samples, n_features)
        Rows that the model has not learned from.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets or labels.
    tolerance : float, default=0.01
        By how much their mean log density may fall, in nats.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    Pruning
    """
    names, columns = _columns(estimator)
    rows, target, classes, weights = _held_out(estimator, X, y, sample_weight)
    model, log_density, path, silenced = _core.prune(
        estimator.model_, rows, target, classes, columns, float(tolerance), weights
    )
    pruned = copy.copy(estimator)
    pruned.model_ = model
    steps = [(names[column], cost, density) for column, cost, density in path]
    return Pruning(pruned, [name for name, _, _ in steps[:silenced]], log_density, steps)


def _held_out(estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Any, ...]:
    """Return rows, targets, the number of classes and weights, as the core takes them."""
    if hasattr(estimator, "classes_"):
        rows, labels, weights = checked_classification(estimator, X, y, sample_weight, reset=False)
        return rows, estimator._encoded(labels), len(estimator.classes_), weights
    rows, target, weights = checked_regression(estimator, X, y, sample_weight, reset=False)
    return rows, target[:, None] if target.ndim == 1 else target, 0, weights


def _columns(estimator: Any) -> tuple[list[str], list[list[int]]]:
    """Return the names of the columns, and the numbers of the features of each."""
    estimator._check_fitted()
    encoding = cast("_core.Encoding | None", estimator.encoding_)
    if encoding is None:
        names = column_names(estimator)
        return names, [[i] for i in range(len(names))]
    columns: list[list[int]] = [[] for _ in encoding.used]
    for feature, owner in enumerate(encoding.owners):
        columns[owner].append(feature)
    return encoding.used, columns
