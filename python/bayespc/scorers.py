"""Scores of whole distributions, for the ``scoring`` of scikit-learn's searches and cross-validation.

Each is called with a fitted estimator, X and y, and more is better. The estimator may be the last step of a
pipeline.

Examples
--------
>>> from sklearn.datasets import load_diabetes
>>> from sklearn.model_selection import cross_validate
>>> from bayespc import BPCRegressor, presets, scorers
>>> X, y = load_diabetes(return_X_y=True)
>>> model = BPCRegressor(**presets.fast(), prior_var=0.1, max_iter=10, random_state=0)
>>> scoring = {"density": scorers.log_density, "crps": scorers.neg_crps, "covers": scorers.coverage(0.9)}
>>> scores = cross_validate(model, X, y, scoring=scoring, cv=2)
>>> bool((scores["test_covers"] > 0.7).all())
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from ._classifier import BPCClassifier
from ._distribution import PredictiveDistribution
from ._validation import Array, ArrayLike, checked_targets

__all__ = ["coverage", "log_density", "neg_coverage_error", "neg_crps"]

Scorer = Callable[..., float]


def log_density(estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return the mean log density of the targets, or log probability of the labels.

    Parameters
    ----------
    estimator : BPCRegressor, BPCClassifier or Pipeline
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets or labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples.

    Returns
    -------
    float
    """
    model, X = _last_step(estimator, X)
    if not isinstance(model, BPCClassifier):
        return _mean(model.predict_dist(X).logpdf(y), sample_weight)
    labels = np.asarray(y)
    columns = np.searchsorted(model.classes_, labels).clip(max=len(model.classes_) - 1)
    logs = model.predict_log_proba(X)[np.arange(len(labels)), columns]
    return _mean(np.where(model.classes_[columns] == labels, logs, -np.inf), sample_weight)


def neg_crps(estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return the continuous ranked probability score with a minus, mean over samples and targets.

    Parameters
    ----------
    estimator : BPCRegressor or Pipeline
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples.

    Returns
    -------
    float
    """
    return -_mean(_distribution(estimator, X).crps(y), sample_weight)


def coverage(level: float = 0.9) -> Scorer:
    """Return a scorer: the share of targets inside their central intervals.

    It should be near `level`; to choose by it, take `neg_coverage_error`.

    Parameters
    ----------
    level : float, default=0.9
        Probability of the intervals.

    Returns
    -------
    callable
    """
    return partial(_coverage, level=float(level))


def neg_coverage_error(level: float = 0.9) -> Scorer:
    """Return a scorer: the distance of `coverage` from `level`, with a minus.

    Parameters
    ----------
    level : float, default=0.9
        Probability of the intervals.

    Returns
    -------
    callable
    """
    return partial(_neg_coverage_error, level=float(level))


def _coverage(
    estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, level: float
) -> float:
    lower, upper = _distribution(estimator, X).interval(level)
    targets = checked_targets(y)
    inside = (lower <= targets) & (targets <= upper)
    return _mean(inside.astype(np.float64), sample_weight)


def _neg_coverage_error(
    estimator: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, level: float
) -> float:
    return -abs(_coverage(estimator, X, y, sample_weight, level=level) - level)


def _last_step(estimator: Any, X: ArrayLike) -> tuple[Any, ArrayLike]:
    """Return the estimator at the end of a pipeline, and X as it sees it."""
    while hasattr(estimator, "steps"):
        X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    return estimator, X


def _distribution(estimator: Any, X: ArrayLike) -> PredictiveDistribution:
    model, X = _last_step(estimator, X)
    return cast(PredictiveDistribution, model.predict_dist(X))


def _mean(values: Array, sample_weight: ArrayLike | None) -> float:
    each = values if values.ndim == 1 else values.mean(axis=1)
    return float(np.average(each, weights=sample_weight))
