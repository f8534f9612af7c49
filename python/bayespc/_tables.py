"""From frames, arrays with holes and sparse matrices to the inputs of a model, by the command's own encoder.

An array or frame of numbers without holes is taken as it is: nothing here touches it.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array, check_consistent_length

from . import _core
from ._frames import Cells, Coded, Column, columns_of, columns_of_array, has_text_names, is_frame, whole
from ._settings import choice

MISSING = ("encode", "error", "drop")
LINES = 60
"""Columns that are listed one by one."""

Rows = npt.NDArray[np.int64]


class Prepared(NamedTuple):
    """Samples on their way to the model."""

    X: Any
    """Inputs if `is_encoded`, else what scikit-learn still has to check."""
    y: Any
    sample_weight: Any
    is_encoded: bool = False
    encoding: _core.Encoding | None = None
    names: list[str] | None = None
    """Names of the columns, where scikit-learn would not find them."""
    n_columns: int = 0


class ColumnList(list[dict[str, Any]]):
    """What was understood of each column; shown as a table."""

    def __repr__(self) -> str:
        return _core.columns_table(json.dumps(list(self)), LINES)


def prepared(estimator: Any, X: Any, y: Any, sample_weight: Any, reset: bool) -> Prepared:
    """Return samples with what can be learned from in them, encoded if they are more than plain numbers."""
    policy = choice("missing", estimator.missing, MISSING)
    X = dense(X)
    if not reset:
        table, encoding = _later(estimator, X)
        if encoding is None:
            return Prepared(X if table is None else table, y, sample_weight, table is not None)
        return _learnable(encoding, table, y, sample_weight, policy)
    columns, names = _first_columns(estimator, X, policy)
    if columns is None:
        return Prepared(X, y, sample_weight)
    if columns and len(columns[0].cells) == 0:
        raise ValueError("X has no rows: Found array with 0 sample(s) while a minimum of 1 is required")
    choices = _choices(estimator.columns, is_frame(X))
    if is_frame(X) and not choices and all(column.is_plain and not column.category for column in columns):
        if type(X).__module__.split(".")[0] in ("pandas", "polars"):
            return Prepared(X, y, sample_weight)
        matrix = np.column_stack([cast("npt.NDArray[Any]", column.cells) for column in columns])
        return Prepared(matrix, y, sample_weight, names=names)
    asked = {column.name: "category" for column in columns if column.category}
    if not is_frame(X):
        # An array is a matrix that somebody has made: no column is left out of it.
        asked = {column.name: "number" for column in columns if isinstance(column.cells, np.ndarray)}
    _check_names("columns: X", choices, [column.name for column in columns])
    options = json.dumps({"missing": policy, "columns": asked | choices})
    table = _core.Encoding.table(_pairs(columns), options)
    encoding = _core.Encoding.fit(table, options)
    ready = _learnable(encoding, table, y, sample_weight, policy)
    return ready._replace(names=names, n_columns=len(columns))


def inputs(estimator: Any, X: Any) -> Any:
    """Return the inputs of samples to predict, or X itself if scikit-learn's checks are all it needs."""
    X = whole(X) if is_frame(X) else dense(X)
    table, encoding = _later(estimator, X)
    if encoding is None:
        return X if table is None else Inputs(table)
    matrix, words = encoding.transform(cast("_core.Table", table))
    _warn(words)
    return Inputs(matrix)


class Inputs(NamedTuple):
    """Encoded samples, which need no further check."""

    matrix: npt.NDArray[np.float64]


def with_targets(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return the rows whose targets, in a frame's own column, are not missing."""
    # A stream can be read once only.
    X = whole(X) if is_frame(X) else X
    missing = _missing_targets(y)
    if missing is None or not missing.any() or missing.all() or _n_rows(X) != len(missing):
        return X, y, sample_weight
    rows = np.flatnonzero(~missing)
    n = int(missing.sum())
    warnings.warn(f"{n} {'row' if n == 1 else 'rows'} without a target left out", stacklevel=4)
    return _select(X, rows), _select(y, rows), _select(sample_weight, rows)


def numeric_targets(y: Any) -> Any:
    """Return a frame's column of text as the numbers it spells (1,234.50, 12 %, € 3); others as they are."""
    if not hasattr(y, "to_list") or getattr(y, "ndim", 1) != 1:
        return y
    cells = y.to_list()
    texts = [cell if isinstance(cell, str) else None for cell in cells]
    if not any(texts) or any(text is None and cell == cell for text, cell in zip(texts, cells, strict=True)):
        return y
    name = y.name if isinstance(getattr(y, "name", None), str) and y.name else "y"
    options = json.dumps({"missing": "error", "columns": {name: "number"}})
    try:
        table = _core.Encoding.table([(name, texts)], options)
        matrix, _ = _core.Encoding.fit(table, options).transform(table)
    except ValueError as error:
        message = str(error).replace("X, row", "y, row", 1)
        raise ValueError(f"{message} (classes are for BPCClassifier)") from None
    return matrix[:, 0]


def dense(X: Any) -> Any:
    """Return a sparse matrix as an array, if there is room for it."""
    if not hasattr(X, "toarray"):
        return X
    n, d = (int(length) for length in X.shape)
    need = 8 * n * d
    try:
        room = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        room = need
    if need > room:
        raise MemoryError(
            f"X is sparse, and as an array of {n} × {d} it needs {need / 1e9:.1f} GB of the "
            f"{room / 1e9:.1f} GB that are free: reduce its columns, for example by TruncatedSVD"
        )
    return X.toarray()


def target_names(y: Any, taken: list[str]) -> list[str] | None:
    """Return the names that targets bring along, if they can be told from those of the features."""
    names: list[Any] | None = None
    if hasattr(y, "columns"):
        names = list(y.columns)
    elif isinstance(getattr(y, "name", None), str) and y.name:
        names = [y.name]
    if names is None or not all(isinstance(name, str) for name in names) or set(names) & set(taken):
        return None
    return names


def summary(encoding: dict[str, Any]) -> ColumnList:
    """Return what was understood of each column; of plain numbers only that they are."""
    known = encoding.get("columns")
    if known is None:
        plain = {"understood": "number", "values": "", "missing": 0, "inputs": 1, "remark": ""}
        known = [{"name": feature["name"]} | plain for feature in encoding["features"]]
    return ColumnList(known)


def _first_columns(estimator: Any, X: Any, policy: str) -> tuple[list[Column] | None, list[str] | None]:
    """Return the columns of training samples and their names; nothing of a plain array."""
    if is_frame(X):
        columns = columns_of(X)
        return columns, [column.name for column in columns] if has_text_names(X) else None
    array = _with_holes(X) if policy != "error" else None
    if estimator.columns:
        array = np.asarray(X)
    if array is None or array.ndim != 2:
        return None, None
    if array.dtype.kind in "fiu":
        # Infinite values are refused as ever.
        array = check_array(array, dtype=np.float64, ensure_all_finite="allow-nan", estimator=estimator)
    return columns_of_array(array, [f"x{i}" for i in range(array.shape[1])]), None


def _later(estimator: Any, X: Any) -> tuple[Any, _core.Encoding | None]:
    """Return the table of X and how it is encoded; nothing if scikit-learn's checks will do."""
    encoding: _core.Encoding | None = getattr(estimator, "encoding_", None)
    names = getattr(estimator, "feature_names_in_", None)
    n: int = estimator.n_features_in_
    if is_frame(X):
        columns = columns_of(X)
        foreign = type(X).__module__.split(".")[0] not in ("pandas", "polars")
        if encoding is None and not foreign and all(column.is_plain for column in columns):
            return None, None
        if names is None:
            _check_width(estimator, len(columns))
            columns = [column._replace(name=f"x{i}") for i, column in enumerate(columns)]
        found = [column.name for column in columns]
        _check_names("X", list(names) if encoding is None and names is not None else _used(encoding), found)
    else:
        array = _with_holes(X) if encoding is None else np.asarray(X)
        if array is None or array.ndim != 2 or (encoding is None and estimator.missing == "error"):
            return None, None
        if array.dtype.kind in "fiu":
            array = check_array(array, dtype=np.float64, ensure_all_finite="allow-nan", estimator=estimator)
        width = array.shape[1]
        if encoding is not None and width != n and width == estimator.model_.n_features:
            # Somebody has encoded the columns already.
            return check_array(array, dtype=np.float64, order="C", estimator=estimator), None
        _check_width(estimator, width)
        columns = columns_of_array(array, [f"x{i}" for i in range(n)] if names is None else list(names))
    if encoding is None:
        encoding = _core.Encoding.from_json(json.dumps(estimator._encoding()))
    return encoding.read(_pairs(columns)), encoding


def _learnable(
    encoding: _core.Encoding, table: _core.Table, y: Any, sample_weight: Any, policy: str
) -> Prepared:
    if policy == "drop":
        rows = encoding.learnable(table)
        n = table.n_rows - len(rows)
        if n:
            check_consistent_length(np.empty(table.n_rows), y, sample_weight)
            warnings.warn(f"{n} {'row' if n == 1 else 'rows'} with missing cells left out", stacklevel=6)
            table, y, sample_weight = table.select(rows), _select(y, rows), _select(sample_weight, rows)
    matrix, words = encoding.transform(table)
    _warn(words)
    return Prepared(matrix, y, sample_weight, True, encoding)


def _choices(columns: Any, named: bool) -> dict[str, str]:
    """Return what the user says of columns, by name; columns of arrays are called x0 and so on."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be None or a mapping from names to kinds; got {columns!r}")
    choices = cast("Mapping[Any, Any]", columns)
    return {
        key if isinstance(key, str) else str(key) if named else f"x{key}": str(value)
        for key, value in choices.items()
    }


def _used(encoding: _core.Encoding | None) -> list[str]:
    return [] if encoding is None else encoding.used


def _check_names(who: str, wanted: Iterable[str], names: list[str]) -> None:
    for name in wanted:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"{who} has no column {name!r}{hint} (its columns: {', '.join(names)})")


def _check_width(estimator: Any, found: int) -> None:
    if found != estimator.n_features_in_:
        raise ValueError(
            f"X has {found} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def _with_holes(X: Any) -> npt.NDArray[Any] | None:
    """Return X as an array of floats if it is one, or can be made one, and has NaN in it."""
    if not isinstance(X, (np.ndarray, list, tuple)):
        return None
    array: npt.NDArray[Any]
    try:
        array = np.asarray(cast(Any, X))
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return array if array.dtype.kind == "f" and bool(np.isnan(np.min(array, initial=0.0))) else None


def _missing_targets(y: Any) -> npt.NDArray[np.bool_] | None:
    """Return which targets of a frame's own column are missing; of arrays scikit-learn wants none."""
    match type(y).__module__.split(".")[0]:
        case "pandas":
            missing = np.asarray(y.isna(), dtype=bool)
        case "polars":
            parts = y.get_columns() if hasattr(y, "get_columns") else [y]
            missing = np.column_stack([_nulls(part) for part in parts])
        case "pyarrow":
            parts = y.columns if hasattr(y, "columns") else [y]
            missing = np.column_stack([part.is_null(nan_is_null=True).to_numpy() for part in parts])
        case _:
            return None
    return np.logical_or.reduce(missing.reshape(len(missing), -1), axis=1) if len(missing) else None


def _nulls(series: Any) -> npt.NDArray[np.bool_]:
    missing = series.is_null()
    return (missing | series.is_nan().fill_null(True) if series.dtype.is_float() else missing).to_numpy()


def _n_rows(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def _select(values: Any, rows: Rows) -> Any:
    if values is None:
        return None
    if hasattr(values, "take") and type(values).__module__.startswith("pyarrow"):
        return values.take(rows)
    return _safe_indexing(values, rows)


def _pairs(columns: list[Column]) -> list[tuple[str, Any]]:
    return [(column.name, _crossing(column.cells)) for column in columns]


def _crossing(cells: Cells) -> Any:
    """Return cells as the compiled encoder takes them."""
    return (cells.codes, cells.values) if isinstance(cells, Coded) else cells


def _warn(words: list[str]) -> None:
    for word in words:
        warnings.warn(word, stacklevel=6)
