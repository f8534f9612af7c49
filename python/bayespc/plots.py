"""Pictures of uncertainty, with matplotlib (an optional dependency).

Every function draws into `ax`, or into the current axes, and returns them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._classifier import BPCClassifier
from ._explain import Explanation
from ._explain import curve as _curve
from ._regressor import BPCRegressor
from ._validation import Array, ArrayLike, checked_targets

__all__ = ["bands", "calibration", "curve", "decomposition", "explanation", "importance", "reliability"]

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


def curve(
    model: BPCRegressor | BPCClassifier,
    X: ArrayLike,
    feature: int | str,
    *,
    grid: ArrayLike | None = None,
    target: Any = None,
    individual: int = 0,
    ax: Any = None,
) -> Any:
    """Draw the prediction along one column with the bands of its noise and of its doubt.

    The line is the mean over the samples, which is the partial dependence; the inner band is one epistemic
    standard deviation to both sides, the outer one that of both parts together. For a classifier the line is
    the probability of a class and the band its epistemic deviation.

    Parameters
    ----------
    model : BPCRegressor or BPCClassifier
        Fitted.
    X : array-like or frame of shape (n_samples, n_features)
        Samples whose other columns are kept; one gives its own curve.
    feature : int or str
        Number or name of the column.
    grid : array-like, default=None
        Values of the column; if not given, from the smallest to the largest of X.
    target : int or label, default=None
        Which output of several, or which class; by default the first output, or the last class.
    individual : int, default=0
        Samples, the first of X, whose own curves are drawn as thin lines.
    ax : matplotlib.axes.Axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = _axes(ax)
    line = _curve(model, X, feature, grid=grid, target=target)
    numbers = line.grid.dtype.kind in "fiu"
    at = line.grid if numbers else np.arange(len(line.grid))
    both = np.sqrt(line.aleatoric_std**2 + line.epistemic_std**2)
    bands = [(line.epistemic_std, _EPISTEMIC, 0.45, "epistemic")]
    if isinstance(model, BPCRegressor):
        bands.insert(0, (both, _ALEATORIC, 0.25, "with noise"))
    for std, colour, alpha, label in bands:
        if numbers:
            ax.fill_between(
                at, line.mean - std, line.mean + std, color=colour, alpha=alpha, linewidth=0, label=label
            )
        else:
            width = 6.0 if label == "epistemic" else 14.0
            ax.errorbar(
                at, line.mean, std, fmt="none", ecolor=colour, alpha=0.6, elinewidth=width, label=label
            )
    for row in range(min(individual, len(np.asarray(X)))):
        own = _curve(model, X[row : row + 1], feature, grid=line.grid, target=target)
        ax.plot(
            at, own.mean, color=_TRUTH, linewidth=0.8, alpha=0.6, label="one sample" if row == 0 else None
        )
    ax.plot(at, line.mean, "-" if numbers else "o", color=_MEAN, linewidth=2, label="mean")
    if not numbers:
        ax.set_xticks(at, [str(value) for value in line.grid])
    ax.set(xlabel=feature if isinstance(feature, str) else f"x{feature}")
    ax.set(ylabel="prediction" if isinstance(model, BPCRegressor) else "probability")
    ax.legend(frameon=False)
    return ax


def _largest(names: list[str], sizes: Array, most: int) -> list[int]:
    order: list[int] = np.argsort(-sizes, kind="stable").tolist()
    return order[: min(most, len(names))]


def importance(explanation: Explanation, *, most: int = 12, ax: Any = None) -> Any:
    """Draw how much each column matters: the mean absolute value over the samples.

    Parameters
    ----------
    explanation : Explanation
        Of one output.
    most : int, default=12
        Columns to show.
    ax : matplotlib.axes.Axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    sizes = explanation.importance()
    if sizes.ndim != 1:
        raise ValueError("the explanation is of several outputs: explain one, with target=")
    ax = _axes(ax)
    shown = _largest(explanation.feature_names, sizes, most)[::-1]
    ax.barh([explanation.feature_names[i] for i in shown], sizes[shown], color=_MEAN)
    ax.set(xlabel="mean |value|")
    return ax


def explanation(explanation: Explanation, row: int = 0, *, most: int = 10, ax: Any = None) -> Any:
    """Draw how the columns of one sample lead from the base to its prediction.

    Parameters
    ----------
    explanation : Explanation
        Of one output.
    row : int, default=0
        Number of the sample.
    most : int, default=10
        Columns to show; the others are one bar together.
    ax : matplotlib.axes.Axes, default=None
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if explanation.values.ndim != 2:
        raise ValueError("the explanation is of several outputs: explain one, with target=")
    ax = _axes(ax)
    values, data = explanation.values[row], explanation.data[row]
    shown = _largest(explanation.feature_names, np.abs(values), most)
    parts = [(f"{explanation.feature_names[i]} = {_short(data[i])}", float(values[i])) for i in shown]
    rest = float(values.sum() - values[shown].sum())
    if len(shown) < len(values):
        parts.append((f"{len(values) - len(shown)} others", rest))
    start = float(explanation.base[row])
    for place, (name, value) in enumerate(parts):
        colour = _MEAN if value >= 0 else _ALEATORIC
        ax.barh(name, value, left=start, color=colour)
        end = start + value
        if place + 1 < len(parts):
            ax.plot([end, end], [place - 0.4, place + 1.4], color=_TRUTH, linewidth=0.8)
        start = end
    ax.axvline(float(explanation.base[row]), color=_TRUTH, linestyle=":", label="base")
    ax.axvline(start, color=_TRUTH, linestyle="--", label="prediction")
    ax.invert_yaxis()
    ax.legend(frameon=False)
    return ax


def _short(cell: Any) -> str:
    return f"{cell:.4g}" if isinstance(cell, float | np.floating) else str(cell)
