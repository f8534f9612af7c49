"""How columns become inputs, from rows of all parts.

What is found does not depend on how rows are cut into parts. Up to `SAMPLE` rows, columns are understood from
all of them, as by the local estimators. Of more rows they are understood from a fixed sample, chosen by a
hash of the row's number, together with the first row of every value of a category and the first hole of every
column: so no value that occurs in one part only is unknown later.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._frames import Coded, Column
from .._tables import _select, target_names
from .._validation import checked_classification, checked_regression
from ._rows import columns_in, first_hole, holes, joined, known_rows, length

SAMPLE = 100_000
"""Rows from which columns are understood at most, beside those that hold something new."""

VALUES = 1000
"""Values of a column whose first rows are looked for; a column with more is taken for text."""


class Firsts(NamedTuple):
    """First rows of a column that hold something new."""

    values: dict[Any, int] | None
    """Of a category: by value; none if there are too many."""
    hole: int | None


class Telling(NamedTuple):
    """Rows of a part that tell what its columns are."""

    numbers: npt.NDArray[np.int64]
    """Numbers of the rows among all."""
    X: Any
    firsts: list[Firsts]


def telling_rows(X: Any, y: Any, weights: Any, first_row: int, n_total: int, wanted: list[str]) -> Telling:
    """Return the rows of a part that tell what its columns are; `wanted` columns are categories."""
    rows = known_rows(X, y, weights)
    if rows is None:
        return Telling(np.empty(0, np.int64), None, [])
    X, n = rows[0], length(rows[0])
    numbers = np.arange(first_row, first_row + n)
    chosen = in_sample(numbers, n_total, SAMPLE)
    firsts = [_first_rows(column, first_row, column.name in wanted) for column in columns_in(X)]
    for values, hole in firsts:
        new = [*(values or {}).values(), *([] if hole is None else [hole])]
        chosen[np.array(new, dtype=np.int64) - first_row] = True
    at = np.flatnonzero(chosen)
    return Telling(numbers[at], _select(X, at), firsts)


def in_sample(numbers: npt.NDArray[np.int64], n_total: int, most: int) -> npt.NDArray[np.bool_]:
    """Return which of the rows with these numbers, of so many, are in a sample of about `most`."""
    if n_total <= most:
        return np.ones(len(numbers), dtype=bool)
    # The finaliser of SplitMix64 (Steele, Lea, Flood 2014): consecutive numbers give bits that look drawn.
    bits = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits < np.uint64(int(2**64 * (most / n_total)))


def sample_table(parts: list[Telling], n_total: int) -> Any:
    """Return the rows from which columns are understood, in order."""
    filled = [part for part in parts if part.X is not None]
    wanted: set[int] = set()
    for column in zip(*(part.firsts for part in filled), strict=True):
        wanted.update(sorted(part.hole for part in column if part.hole is not None)[:1])
        firsts: dict[Any, int] = {}
        for part in column:
            values: dict[Any, int] = part.values or {}
            for value, row in values.items():
                firsts[value] = min(row, firsts.get(value, row))
        if len(firsts) <= VALUES and all(part.values is not None for part in column):
            wanted.update(firsts.values())
    tables: list[Any] = []
    for part in filled:
        keep = in_sample(part.numbers, n_total, SAMPLE) | np.isin(part.numbers, list(wanted))
        tables.append(_select(part.X, np.flatnonzero(keep)))
    return joined(tables)


def understand(estimator: Any, X: Any, y: Any) -> None:
    """Let a local estimator learn what the columns of a table are, as it would in `fit`."""
    n = length(X)
    if estimator._n_classes():
        checked_classification(
            estimator, X, estimator.classes_[np.arange(n) % estimator._n_classes()], None, True
        )
    else:
        checked_regression(estimator, X, np.zeros(n), None, reset=True)
    estimator._y_names = target_names(y, [str(name) for name in getattr(estimator, "feature_names_in_", ())])


def _first_rows(column: Column, first_row: int, wanted: bool) -> Firsts:
    """Return the first row of each value of a category, and of a hole; of other columns that of a hole."""
    cells = column.cells
    if isinstance(cells, str):
        return Firsts({}, None)
    missing = holes(column)
    first = first_hole(column)
    hole = None if first is None else first_row + first
    values: dict[Any, int] = {}
    if isinstance(cells, (list, Coded)) or column.category or wanted:
        known = np.flatnonzero(~missing)
        if isinstance(cells, Coded):
            codes, at = np.unique(cells.codes[known], return_index=True)
            places: list[int] = known[at].tolist()
            found: list[tuple[Any, int]] = [
                (cells.values[code], i) for code, i in zip(codes.tolist(), places, strict=True)
            ]
        else:
            found = [(cells[i], i) for i in known.tolist()]
        for value, i in found:
            if value not in values:
                values[value] = first_row + i
                if len(values) > VALUES:
                    return Firsts(None, hole)
    return Firsts(values, hole)
