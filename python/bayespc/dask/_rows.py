"""Rows of a part, once it is computed: those with a target, their columns, and several parts as one."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from .._frames import NO_TIME, Coded, Column, columns_of, columns_of_array, is_frame
from .._tables import _missing_targets, dense, with_targets


def known_rows(X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any] | None:
    """Return the rows of a part that have a target; nothing if there are none."""
    n = length(X)
    for name, values in (("y", y), ("sample_weight", weights)):
        if values is not None and length(values) != n:
            raise ValueError(f"X has {n} rows, {name} has {length(values)}")
    missing = _missing_targets(y) if n else None
    if n == 0 or (missing is not None and bool(missing.all())):
        return None
    return with_targets(dense(X), y, weights)


def weightless(weights: Any) -> bool:
    """Return whether all weights of a part are 0: that is allowed, though not of all parts."""
    return weights is not None and not bool(np.asarray(weights).any())


def length(values: Any) -> int:
    """Return the number of rows."""
    if hasattr(values, "num_rows"):
        return int(values.num_rows)
    shape = getattr(values, "shape", None)
    return int(shape[0]) if shape else len(values)


def columns_in(X: Any) -> list[Column]:
    """Return the columns of a frame or array; an error if they are no table."""
    if is_frame(X):
        return columns_of(X)
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns; got {array.ndim}")
    if array.dtype.kind in "fiu":
        array = check_array(array, dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")
    return columns_of_array(array, [f"x{i}" for i in range(array.shape[1])])


def holes(column: Column) -> npt.NDArray[np.bool_]:
    """Return which cells of a column are missing."""
    cells = column.cells
    if isinstance(cells, str):
        return np.zeros(0, dtype=bool)
    if isinstance(cells, Coded):
        known = np.array([value is not None for value in cells.values] + [False])
        return ~known[cells.codes]
    if isinstance(cells, list):
        return np.array([cell is None for cell in cells])
    if cells.dtype.kind == "f":
        return np.isnan(cells)
    return cells == (-1 if cells.dtype == np.int8 else NO_TIME)


def first_hole(column: Column) -> int | None:
    """Return the first row of a part in which a column has no value."""
    found = np.flatnonzero(holes(column))
    return int(found[0]) if len(found) else None


def joined(tables: list[Any]) -> Any:
    """Return frames or arrays of one kind, one below the other."""
    if len(tables) == 1:
        return tables[0]
    match type(tables[0]).__module__.split(".")[0]:
        case "pandas":
            # It joins categories too, where pandas would make objects of them.
            dispatch: Any = import_module("dask.dataframe.dispatch")
            return dispatch.concat(tables)
        case "polars":
            return cast(Any, import_module("polars")).concat(tables)
        case "pyarrow":
            arrow: Any = import_module("pyarrow")
            batches = [arrow.table(table) if hasattr(table, "schema") else table for table in tables]
            if hasattr(tables[0], "schema"):
                return arrow.concat_tables(batches, promote_options="default")
            return arrow.chunked_array(
                [chunk for array in batches for chunk in arrow.chunked_array(array).chunks]
            )
        case _:
            return np.concatenate([np.asarray(table) for table in tables])
