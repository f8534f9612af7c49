"""From dask arrays, dask dataframes and lists of delayed to parts: some rows of X, y and weights each.

Nothing is computed here. Rows are matched by their place: part i of y belongs to part i of X.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, NamedTuple

_dask: Any = import_module("dask")
_array: Any = import_module("dask.array")
_delayed: Any = import_module("dask.delayed")
_distributed: Any = import_module("distributed")

Delayed = Any
"""A dask.delayed.Delayed; dask comes without types."""


class Part(NamedTuple):
    """Some rows, not computed yet."""

    X: Delayed
    y: Delayed
    weights: Delayed | None


def is_lazy(X: Any) -> bool:
    """Return whether X is in parts."""
    return is_array(X) or is_frame(X) or is_list(X)


def is_array(X: Any) -> bool:
    """Return whether X is a dask array."""
    return isinstance(X, _array.Array)


def is_frame(X: Any) -> bool:
    """Return whether X is a dask dataframe or series."""
    # Without importing dask.dataframe, which needs pandas.
    return _dask.is_dask_collection(X) and hasattr(X, "to_delayed") and hasattr(X, "divisions")


def is_list(X: Any) -> bool:
    """Return whether X is a delayed or a list of them; futures will do as well."""
    kinds = (_delayed.Delayed, _distributed.Future)
    if isinstance(X, (list, tuple)):
        return bool(X) and all(isinstance(part, kinds) for part in X)  # pyright: ignore
    return isinstance(X, kinds)


def parts_of(X: Any, y: Any, sample_weight: Any) -> list[Part]:
    """Return the parts of a table, one for each chunk of rows or partition."""
    if is_array(X):
        y, sample_weight = like(X, "y", y), like(X, "sample_weight", sample_weight)
    of_X = blocks("X", X)
    of_y = blocks("y", y)
    of_weights = [None] * len(of_X) if sample_weight is None else blocks("sample_weight", sample_weight)
    for name, found in (("y", of_y), ("sample_weight", of_weights)):
        if len(found) != len(of_X):
            raise ValueError(
                f"X has {len(of_X)} partitions, {name} has {len(found)}: "
                "give both the same, with the same rows in each"
            )
    return [Part(*part) for part in zip(of_X, of_y, of_weights, strict=True)]


def blocks(name: str, values: Any) -> list[Delayed]:
    """Return the parts of X, y or weights."""
    if is_array(values):
        check_columns(name, values)
        return list(values.to_delayed().ravel())
    if is_frame(values):
        return list(values.to_delayed())
    if is_list(values):
        parts: list[Any] = list(values) if isinstance(values, (list, tuple)) else [values]  # pyright: ignore
        return [_dask.delayed(part) for part in parts]
    kind = f"{type(values).__module__.split('.')[0]}.{type(values).__qualname__}"
    raise TypeError(
        f"{name} must be a dask array, a dask dataframe or a list of delayed; got {kind} "
        "(for what is in memory there are BPCRegressor and BPCClassifier)"
    )


def check_columns(name: str, array: Any) -> None:
    """Fail if the columns of a dask array are cut: a row must be whole."""
    if name == "X" and array.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns; got {array.ndim}")
    if array.ndim > 1 and array.numblocks[1] > 1:
        raise ValueError(
            f"{name} has {array.numblocks[1]} chunks of columns, and rows must be whole: "
            f"{name}.rechunk({{1: -1}})"
        )


def like(X: Any, name: str, values: Any) -> Any:
    """Return a dask array with the chunks of X, where the numbers of rows are known."""
    if not is_array(values):
        return values
    wanted, found = X.chunks[0], values.chunks[0]
    if wanted == found or any(math.isnan(n) for n in (*wanted, *found)):
        return values
    if sum(wanted) != sum(found):
        raise ValueError(f"X has {sum(wanted)} rows, {name} has {sum(found)}")
    return values.rechunk({0: wanted})
