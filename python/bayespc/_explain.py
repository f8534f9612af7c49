"""Why a model predicts what it predicts: attributions that add up, and curves along one column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from . import _core
from ._settings import choice
from ._tables import dense
from ._validation import Array, ArrayLike

QUANTITIES = ("mean", "aleatoric", "epistemic")

ENTROPIES = QUANTITIES[1:]
"""Quantities that, of classes, are parts of one entropy."""

DRAWS = 32
"""Codes drawn for the epistemic variance of a class's probability."""


class Explanation:
    """Attributions of predictions: ``values.sum(axis=1) + base`` is what they explain.

    The names are those of ``shap.Explanation``; `to_shap` makes one of it for the plots of that package.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_outputs)
        Part of each column in how far the quantity is from `base`, in the units of the quantity: those of the
        target for means, their square for variances; for classes probabilities, and nats for entropies.
    base : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The quantity at the baseline.
    data : ndarray of shape (n_samples, n_features)
        The samples.
    feature_names : list of str
        Names of the columns.
    output_names : list of str or None
        Names of the outputs or classes, where there are several.
    """

    def __init__(
        self,
        values: Array,
        base: Array,
        data: npt.NDArray[Any],
        feature_names: list[str],
        output_names: list[str] | None = None,
    ) -> None:
        self.values = values
        self.base = base
        self.data = data
        self.feature_names = feature_names
        self.output_names = output_names

    @property
    def base_values(self) -> Array:
        """`base`, by the name it has in shap."""
        return self.base

    @property
    def totals(self) -> Array:
        """What is explained: base and values together."""
        return self.base + self.values.sum(axis=1)

    def importance(self) -> Array:
        """Return the mean absolute value of each column, shape (n_features,) or (n_features, n_outputs)."""
        return np.abs(self.values).mean(axis=0)

    def to_shap(self) -> Any:
        """Return the same as a ``shap.Explanation``, for ``shap.plots``."""
        try:
            import shap  # pyright: ignore
        except ImportError as error:
            raise ImportError("to_shap needs shap: pip install shap") from error
        made: Any = shap
        return made.Explanation(
            values=self.values,
            base_values=self.base,
            data=self.data,
            feature_names=self.feature_names,
            output_names=self.output_names,
        )

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        """Return the explanation of some samples; one sample keeps its axis."""
        if np.ndim(rows) == 0 and not isinstance(rows, slice):
            rows = [rows]
        return Explanation(
            self.values[rows], self.base[rows], self.data[rows], self.feature_names, self.output_names
        )

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.values.shape))
        names = ", ".join(self.feature_names[:4]) + (", …" if len(self.feature_names) > 4 else "")
        return f"Explanation({shape} values of {names})"


def explained(
    estimator: Any,
    X: ArrayLike,
    of: str,
    outputs: Sequence[int],
    names: list[str] | None,
    baseline: ArrayLike | None,
) -> Explanation:
    """Return the explanation of these outputs of a fitted estimator; one of them has no axis of its own."""
    of = choice("of", of, QUANTITIES)
    samples = estimator._samples(X)
    start = None if baseline is None else estimator._samples(baseline)
    parts = [_core.explain(estimator.model_, samples, of, output, start) for output in outputs]
    encoding = cast("_core.Encoding | None", estimator.encoding_)
    values = [part[1] if encoding is None else _by_column(part[1], encoding.owners) for part in parts]
    data = samples if encoding is None else _cells(X, encoding.used)
    columns = column_names(estimator) if encoding is None else encoding.used
    if names is None:
        return Explanation(values[0], parts[0][0], data, columns)
    stacked = np.stack(values, axis=2)
    return Explanation(stacked, np.stack([part[0] for part in parts], axis=1), data, columns, names)


def column_names(estimator: Any) -> list[str]:
    """Return the names of the columns of X, or x0, x1, … where they have none."""
    names: Any = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{i}" for i in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def _by_column(values: Array, owners: list[int]) -> Array:
    """Return values of columns as the sums over their inputs."""
    sums = np.zeros((len(values), max(owners) + 1))
    for place, owner in enumerate(owners):
        sums[:, owner] += values[:, place]
    return sums


def _cells(X: Any, names: list[str]) -> npt.NDArray[Any]:
    """Return the columns of these names as they were given."""
    X = dense(X)
    if hasattr(X, "columns"):
        columns = [np.asarray(X[name], dtype=object) for name in names]
        return np.stack(columns, axis=1)
    return np.asarray(X)


class Curve(NamedTuple):
    """A prediction along one column."""

    grid: npt.NDArray[Any]
    """Values of the column."""
    mean: Array
    """Mean, or probability of the class."""
    aleatoric_std: Array
    """Standard deviation of the noise."""
    epistemic_std: Array
    """Standard deviation that more data would take away."""
    lower: Array
    upper: Array
    """Ends of the interval; for classes that of the probability, by its epistemic deviation."""


def curve(
    estimator: Any,
    X: ArrayLike,
    feature: int | str,
    *,
    grid: ArrayLike | None = None,
    target: Any = None,
    coverage: float = 0.9,
    n_points: int = 60,
) -> Curve:
    """Predict along one column, the others as they are, and average over samples.

    Parameters
    ----------
    estimator : BPCRegressor or BPCClassifier
        Fitted.
    X : array-like or frame of shape (n_samples, n_features)
        Samples whose other columns are kept. One sample gives its own curve, several the mean of their curves
        (the partial dependence) with the median of their variances: a single sample far from the training
        data may have a variance above that of all others together.
    feature : int or str
        Number or name of the column.
    grid : array-like, default=None
        Values of the column; if not given, from the smallest to the largest of X, or its distinct values if
        they are no numbers.
    target : int or label, default=None
        Which output of several (by number), or which class (by label; by default the last).
    coverage : float, default=0.9
        Probability of the interval.
    n_points : int, default=60
        Points of a grid that is not given.

    Returns
    -------
    Curve
    """
    X = dense(X)
    values = _grid_of(X, feature, grid, n_points)
    moments: list[Array] = []
    for value in values:
        moments.append(_of_rows(_moments(estimator, _with(X, feature, value), target, coverage)))
    table = np.array(moments).T
    if hasattr(estimator, "classes_"):
        table[3:] = np.clip(table[3:], 0.0, 1.0)
    return Curve(values, table[0], np.sqrt(table[1]), np.sqrt(table[2]), table[3], table[4])


def _of_rows(moments: Array) -> Array:
    """Return the mean of means, and medians of variances and of distances of the bounds from the mean."""
    mean = moments[0].mean()
    return np.concatenate(
        [[mean], np.median(moments[1:3], axis=1), mean + np.median(moments[3:] - moments[0], axis=1)]
    )


def _moments(estimator: Any, X: Any, target: Any, coverage: float) -> Array:
    """Return mean, both variances and both bounds of every sample, shape (5, n)."""
    if hasattr(estimator, "classes_"):
        place = len(estimator.classes_) - 1 if target is None else class_number(estimator, target)
        predictive: _core.Predictive = estimator._predictive(X, estimator._uncertain_method())
        temperature = estimator.model_.temperature
        p = predictive.class_probabilities(temperature)[:, place]
        drawn = predictive.class_probability_variance(temperature, DRAWS, 0)[:, place]
        epistemic = np.minimum(drawn, p * (1.0 - p))
        half = _normal_quantile(0.5 + 0.5 * coverage) * np.sqrt(epistemic)
        low, high = np.maximum(p - half, 0.0), np.minimum(p + half, 1.0)
        return np.stack([p, p * (1.0 - p) - epistemic, epistemic, low, high])
    dist = estimator._dist(X, estimator._uncertain_method())
    low, high = dist.interval(coverage)
    parts = [dist.mean, dist.aleatoric, dist.epistemic, low, high]
    if dist.mean.ndim == 2:
        place = 0 if target is None else int(target)
        parts = [part[:, place] for part in parts]
    return np.stack(parts)


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)


def class_number(estimator: Any, label: Any) -> int:
    """Return the place of a class by its label."""
    places = np.flatnonzero(estimator.classes_ == label)
    if len(places) == 0:
        raise ValueError(f"target = {label!r} is not a class: {list(estimator.classes_)}")
    return int(places[0])


def _grid_of(X: Any, feature: int | str, grid: ArrayLike | None, n_points: int) -> npt.NDArray[Any]:
    if grid is not None:
        return np.asarray(grid)
    column = _column(X, feature)
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        cells: npt.NDArray[Any] = np.asarray(column, dtype=object)
        return np.array(sorted({cell for cell in cells if isinstance(cell, str)}), dtype=object)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) == 0:
        raise ValueError(f"feature {feature!r} has no numbers to make a grid of: give one")
    return np.linspace(float(numbers.min()), float(numbers.max()), n_points)


def _column(X: Any, feature: int | str) -> Any:
    if hasattr(X, "columns"):
        frame: Any = X
        return frame[_name(X, feature)]
    array = np.asarray(X)
    if not isinstance(feature, int | np.integer):
        raise ValueError(f"feature {feature!r}: the columns of an array have numbers")
    if not 0 <= int(feature) < array.shape[1]:
        raise ValueError(f"feature {feature}: X has {array.shape[1]} columns, counted from 0")
    return array[:, int(feature)]


def _name(X: Any, feature: int | str) -> Any:
    names: list[Any] = list(X.columns)
    if feature in names:
        return feature
    if isinstance(feature, str):
        raise ValueError(f"X has no column {feature!r} (its columns: {', '.join(map(str, names))})")
    if not 0 <= int(feature) < len(names):
        raise ValueError(f"feature {feature}: X has {len(names)} columns, counted from 0")
    return names[int(feature)]


def _with(X: Any, feature: int | str, value: Any) -> Any:
    """Return X with one column put to one value."""
    if not hasattr(X, "columns"):
        _column(X, feature)
        moved = np.array(X, copy=True)
        if moved.dtype.kind in "iub":
            moved = moved.astype(np.float64)
        moved[:, int(feature)] = value
        return moved
    name = _name(X, feature)
    if hasattr(X, "with_columns"):
        import polars  # pyright: ignore

        frames: Any = polars
        return X.with_columns(frames.lit(value).alias(name))
    copied: Any = X.copy()
    copied[name] = value
    return copied
