"""Tables that bring their targets along, and streams of record batches, without a detour through pandas.

Anything with ``__arrow_c_stream__`` will do: tables and readers of pyarrow, frames of polars, relations of
DuckDB. Where targets and weights are columns of X, they are given by name. A stream is then read a slice at a
time, so that it may be longer than memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ._frames import is_frame, whole
from ._tables import _check_names

ROWS = 65_536
"""Rows of a slice, whatever batches a stream comes in: so the same rows give the same model."""

Names = str | list[str]


def has_own_targets(X: Any, y: Any, several: bool) -> bool:
    """Return whether y names columns of X: one, or where there may be several a list of them."""
    if isinstance(y, str):
        if not is_frame(X):
            raise TypeError(f"y = {y!r} names a column, but X is no frame: {type(X).__qualname__}")
        return True
    return several and isinstance(y, list) and bool(y) and is_frame(X) and _all_texts(y)  # pyright: ignore


def apart(X: Any, y: Names, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return a frame without the columns that y and sample_weight name, and these."""
    frame = whole(X)
    names = _names(frame)
    taken = _taken(y, sample_weight)
    _check_names("X", taken, names)
    rest = [name for name in names if name not in taken]
    weights = _column(frame, sample_weight) if isinstance(sample_weight, str) else sample_weight
    targets = _column(frame, y) if isinstance(y, str) else _columns(frame, y)
    return _columns(frame, rest), targets, weights


def slices(X: Any, y: Names, sample_weight: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Return a stream in parts of `ROWS` rows."""
    if not (sample_weight is None or isinstance(sample_weight, str)):
        raise TypeError("where y names a column of X, sample_weight must name one too, or be None")
    for part in _parts(X):
        yield apart(part, y, sample_weight)


def _parts(X: Any) -> Iterator[Any]:
    library = type(X).__module__.split(".")[0]
    arrow: Any = None
    if library not in ("pandas", "polars"):
        try:
            arrow = import_module("pyarrow")
        except ImportError:
            X = whole(X)
    if arrow is None:
        frame = X.collect() if hasattr(X, "collect") else X
        for start in range(0, len(frame), ROWS):
            yield frame.iloc[start : start + ROWS] if library == "pandas" else frame.slice(start, ROWS)
        return
    kept: list[Any] = []
    n = 0
    for batch in _reader(arrow, X):
        while n + batch.num_rows >= ROWS:
            room = ROWS - n
            yield arrow.Table.from_batches([*kept, batch.slice(0, room)])
            batch, kept, n = batch.slice(room), [], 0
        if batch.num_rows:
            kept.append(batch)
            n += batch.num_rows
    if kept:
        yield arrow.Table.from_batches(kept)


def _reader(arrow: Any, X: Any) -> Any:
    return X if isinstance(X, arrow.RecordBatchReader) else arrow.RecordBatchReader.from_stream(X)


def _all_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _taken(y: Names, sample_weight: Any) -> list[str]:
    names = [y] if isinstance(y, str) else list(y)
    return [*names, sample_weight] if isinstance(sample_weight, str) else names


def _names(frame: Any) -> list[str]:
    return list(frame.schema.names if hasattr(frame, "num_rows") else frame.columns)


def _column(frame: Any, name: str) -> Any:
    return frame.column(name) if hasattr(frame, "num_rows") else frame[name]


def _columns(frame: Any, names: list[str]) -> Any:
    return frame.select(names) if hasattr(frame, "select") else frame[names]
