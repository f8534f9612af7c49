"""Pictures of uncertainty, with matplotlib (an optional dependency).

Every function draws into `ax`, or into the current axes, and returns them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._classifier import BPCClassifier
from ._regressor import BPCRegressor
from ._validation import Array, ArrayLike, checked_targets

__all__ = ["bands", "calibration", "decomposition", "reliability"]

_MEAN = "#2a78d6"
_TRUTH = "#6b7280"
_ALEATORIC = "#eda100"
_EPISTEMIC = "#1baf7a"


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt  # pyright: ignore
    except ImportError as error:
        raise ImportError("bayespc.plots needs matplotlib: pip install matplotlib") from error
    return plt.gca()  # pyright: ignore


def _one_feature(model: BPCRegressor, X: ArrayLike) -> Array:
    """Return X as one column; of more there is no curve."""
    if model.n_features_in_ != 1 or model.model_.n_targets != 1:
        raise ValueError(
            f"a curve needs a model of one feature and one target; this one has {model.n_features_in_} and "
            f"{model.model_.n_targets}"
        )
    return np.asarray(X, dtype=np.float64).reshape(-1, 1)


def _grid(X: Array, grid: ArrayLike | None) -> Array:
    if grid is not None:
        return np.asarray(grid, dtype=np.float64).reshape(-1, 1)
    low, high = float(X.min()), float(X.max())
    margin = 0.25 * (high - low)
    return np.linspace(low - margin, high + margin, 300)[:, None]


def bands(
    model: BPCRegressor,
    X: ArrayLike,
    y: ArrayLike,
    *,
    grid: ArrayLike | None = None,
    coverage: tuple[float, ...] = (0.5, 0.9),
    ax: Any = None,
) -> Any:
    """Draw the predictive distribution of a model of one feature over the data.

    Parameters
    ----------
    model : BPCRegressor
        Fitted, with one feature and one target.
    X, y : array-like
        Data to show.
    grid : array-like, default=None
        Where to predict; if not given, the range of X and a quarter more on both sides.
    coverage : tuple of float, default=(0.5, 0.9)
        Probabilities of the bands.
    ax : matplotlib.axes.Axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    X = _one_feature(model, X)
    ax = _axes(ax)
    points = _grid(X, grid)
    dist = model.predict_dist(points)
    for level in sorted(coverage, reverse=True):
        low, high = dist.interval(level)
        label = f"{100 * level:g} %"
        ax.fill_between(points[:, 0], low, high, color=_MEAN, alpha=0.2, linewidth=0, label=label)
    ax.plot(points[:, 0], dist.mean, color=_MEAN, linewidth=2, label="mean")
    ax.scatter(X[:, 0], np.ravel(checked_targets(y)), s=10, color=_TRUTH, label="data", zorder=3)
    ax.set(xlabel="x", ylabel="y")
    ax.legend(frameon=False)
    return ax


def decomposition(model: BPCRegressor, X: ArrayLike, *, grid: ArrayLike | None = None, ax: Any = None) -> Any:
    """Draw aleatoric and epistemic standard deviation of a model of one feature.

    Parameters
    ----------
    model : BPCRegressor
        Fitted, with one feature and one target.
    X : array-like
        Data the range is taken from.
    grid : array-like, default=None
        Where to predict; if not given, the range of X and a quarter more on both sides.
    ax : matplotlib.axes.Axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    X = _one_feature(model, X)
    ax = _axes(ax)
    points = _grid(X, grid)
    parts = model.decompose(points)
    ax.plot(points[:, 0], np.sqrt(parts.aleatoric), color=_ALEATORIC, linewidth=2, label="aleatoric")
    ax.plot(points[:, 0], np.sqrt(parts.epistemic), color=_EPISTEMIC, linewidth=2, label="epistemic")
    ax.axvspan(float(X.min()), float(X.max()), color=_TRUTH, alpha=0.1, linewidth=0)
    ax.set(xlabel="x", ylabel="standard deviation")
    ax.legend(frameon=False)
    return ax


def calibration(
    model: BPCRegressor, X: ArrayLike, y: ArrayLike, *, n_levels: int = 19, ax: Any = None
) -> Any:
    """Draw the share of targets inside central intervals against their nominal coverage.

    Parameters
    ----------
    model : BPCRegressor
        Fitted, with one target.
    X, y : array-like
        Held-out data.
    n_levels : int, default=19
        Number of intervals.
    ax : matplotlib.axes.Axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = _axes(ax)
    # |2F(y) − 1| is the nominal coverage of the smallest central interval that holds y.
    needed = np.abs(2.0 * np.ravel(model.predict_dist(X).cdf(y)) - 1.0)
    levels = np.linspace(0.0, 1.0, n_levels + 2)
    observed = [(needed <= level).mean() for level in levels]
    ax.plot([0, 1], [0, 1], color=_TRUTH, linewidth=1, linestyle=":")
    ax.plot(levels, observed, color=_MEAN, linewidth=2, marker="o", markersize=4)
    ax.set(xlabel="nominal coverage", ylabel="observed coverage", xlim=(0, 1), ylim=(0, 1))
    return ax


def reliability(model: BPCClassifier, X: ArrayLike, y: ArrayLike, *, n_bins: int = 10, ax: Any = None) -> Any:
    """Draw the accuracy of predictions against their confidence, in bins of equal width.

    Parameters
    ----------
    model : BPCClassifier
        Fitted.
    X, y : array-like
        Held-out data.
    n_bins : int, default=10
        Number of bins.
    ax : matplotlib.axes.Axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = _axes(ax)
    probabilities = model.predict_proba(X)
    confidence = probabilities.max(axis=1)
    correct = model.classes_[probabilities.argmax(axis=1)] == np.asarray(y)
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    filled = [b for b in range(n_bins) if (bins == b).any()]
    ax.plot([0, 1], [0, 1], color=_TRUTH, linewidth=1, linestyle=":")
    ax.plot(
        [confidence[bins == b].mean() for b in filled],
        [correct[bins == b].mean() for b in filled],
        color=_MEAN,
        linewidth=2,
        marker="o",
        markersize=4,
    )
    ax.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1))
    return ax
