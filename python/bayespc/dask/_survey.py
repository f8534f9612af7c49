"""The first pass: how many rows there are, of which columns and classes; whether parts belong together."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_sample_weight, check_array

from .._frames import Coded, Column, is_frame
from .._tables import _select, numeric_targets
from ._rows import columns_in, first_hole, holes, known_rows, length, weightless

_KINDS = {"f": "numbers", "i": "times", "b": "booleans"}
_NOTHING = "nothing"


class Seen(NamedTuple):
    """What one part holds."""

    n_rows: int
    """Rows that can be learned from."""
    left_out: int = 0
    """Rows without a target."""
    n_bytes: int = 0
    names: list[str] | None = None
    """Names of the columns; none of an array."""
    n_columns: int = 0
    kinds: tuple[str, ...] = ()
    plain: bool = True
    """Whether these are numbers without holes."""
    head: tuple[Any, Any] | None = None
    """The first row, as X and y."""
    target_shape: tuple[int, ...] = ()
    """Shape of the target of a row."""
    labels: npt.NDArray[Any] | None = None
    counts: npt.NDArray[np.int64] | None = None


class Survey(NamedTuple):
    """What all parts hold together."""

    rows: list[int]
    """Rows of each part."""
    n_bytes: int
    plain: bool
    head: tuple[Any, Any]
    classes: npt.NDArray[Any] | None
    counts: npt.NDArray[np.int64] | None
    left_out: int

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(self.rows)


def look(X: Any, y: Any, weights: Any, _: Any, classes: bool, columns: Any, missing: str) -> Seen:
    """Return what a part holds; an error if it cannot be learned from."""
    n = length(X)
    rows = known_rows(X, y, weights)
    if rows is None:
        return Seen(0, left_out=n)
    X, y, weights = rows
    n_rows = length(X)
    found = columns_in(X)
    if missing == "error":
        for column in found:
            hole = first_hole(column)
            if hole is not None:
                raise ValueError(
                    f"column {column.name!r} has a missing cell, in row {hole + 1} (counted from 1)"
                )
    if weights is not None:
        if not weightless(weights):
            _check_sample_weight(weights, np.empty((n_rows, 1)), ensure_non_negative=True)
    shape, labels, counts = _targets(y, classes)
    return Seen(
        n_rows,
        n - n_rows,
        sum(_size(column) for column in found),
        [column.name for column in found] if is_frame(X) else None,
        len(found),
        tuple(_kind(column) for column in found),
        not columns and all(column.is_plain and not column.category for column in found),
        (_select(X, np.zeros(1, np.int64)), _select(y, np.zeros(1, np.int64))),
        shape,
        labels,
        counts,
    )


def together(parts: list[Seen]) -> Survey:
    """Return what all parts hold; an error if they do not belong together."""
    filled = [(number, part) for number, part in enumerate(parts) if part.n_rows]
    if not filled:
        raise ValueError(f"X has no rows: all of its {len(parts)} partitions are empty")
    at, first = filled[0]
    kinds = dict(enumerate(first.kinds))
    since = dict.fromkeys(kinds, at)
    for number, part in filled:
        _check_alike(number, part, at, first)
        for i, kind in enumerate(part.kinds):
            if kinds[i] == _NOTHING:
                kinds[i], since[i] = kind, number
            if kind not in (kinds[i], _NOTHING):
                name = repr(part.names[i]) if part.names else str(i)
                raise TypeError(
                    f"partition {number}: column {name} holds {kind}, in partition {since[i]} {kinds[i]}"
                )
    classes, counts = _union(filled)
    return Survey(
        [part.n_rows for part in parts],
        sum(part.n_bytes for part in parts),
        all(part.plain for _, part in filled),
        cast("tuple[Any, Any]", first.head),
        classes,
        counts,
        sum(part.left_out for part in parts),
    )


def _check_alike(number: int, part: Seen, at: int, first: Seen) -> None:
    if (part.names is None) != (first.names is None):
        raise TypeError(f"partition {number}: X is {_form(part)}, in partition {at} {_form(first)}")
    if part.names is not None and first.names is not None and part.names != first.names:
        new = [name for name in part.names if name not in first.names]
        gone = [name for name in first.names if name not in part.names]
        what = [f"has {', '.join(map(repr, new))}"] * bool(new) + [
            f"lacks {', '.join(map(repr, gone))}"
        ] * bool(gone)
        words = " and ".join(what) or "has them in another order"
        raise ValueError(f"partition {number}: columns differ from those of partition {at}: it {words}")
    if part.n_columns != first.n_columns:
        raise ValueError(
            f"partition {number}: X has {part.n_columns} columns, in partition {at} {first.n_columns}"
        )
    if part.target_shape != first.target_shape:
        width, wanted = (shape[0] if shape else 1 for shape in (part.target_shape, first.target_shape))
        raise ValueError(f"partition {number}: y has {width} columns, in partition {at} {wanted}")


def _form(part: Seen) -> str:
    return "an array" if part.names is None else "a frame"


def _union(filled: list[tuple[int, Seen]]) -> tuple[npt.NDArray[Any] | None, npt.NDArray[np.int64] | None]:
    """Return the classes of all parts, sorted, and how often each occurs."""
    counts: Counter[Any] = Counter()
    at, first = filled[0]
    if first.labels is None:
        return None, None
    for number, part in filled:
        labels = cast("npt.NDArray[Any]", part.labels)
        if (labels.dtype.kind in "OUS") != (first.labels.dtype.kind in "OUS"):
            raise TypeError(
                f"partition {number}: labels are of type {labels.dtype}, "
                f"in partition {at} {first.labels.dtype}"
            )
        counts.update(dict(zip(labels.tolist(), cast(Any, part.counts).tolist(), strict=True)))
    classes = np.unique(np.concatenate([cast("npt.NDArray[Any]", part.labels) for _, part in filled]))
    return classes, np.array([counts[label] for label in classes.tolist()])


def _kind(column: Column) -> str:
    if isinstance(column.cells, str):
        return f"values of type {column.cells}"
    if isinstance(column.cells, (list, Coded)):
        return _NOTHING if bool(holes(column).all()) else "texts"
    if column.cells.dtype.kind == "f" and bool(np.isnan(column.cells).all()):
        return _NOTHING
    return "booleans" if column.cells.dtype == np.int8 else _KINDS[column.cells.dtype.kind]


def _size(column: Column) -> int:
    """Return the bytes that a column takes as inputs, roughly."""
    return 8 * len(column.cells)


def _targets(
    y: Any, classes: bool
) -> tuple[tuple[int, ...], npt.NDArray[Any] | None, npt.NDArray[np.int64] | None]:
    if classes:
        labels: npt.NDArray[Any] = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        if labels.ndim != 1:
            raise ValueError(f"y must be one column of labels; got shape {labels.shape}")
        found, counts = np.unique(labels, return_counts=True)
        return (), found, counts
    values: npt.NDArray[Any] = check_array(
        numeric_targets(y), ensure_2d=False, dtype=np.float64, input_name="y"
    )
    return values.shape[1:], None, None
