"""Tasks that ask all parts for their statistics, pass by pass."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._classifier import BPCClassifier
from .._regressor import _two_dimensional
from .._validation import checked_classification, checked_regression
from ._parts import Part
from ._rows import known_rows, weightless
from ._tasks import Refused, compute, grouped, share_processors, shared, submit
from ._whole import workers_of

_dask: Any = import_module("dask")

FAN_IN = 8
"""Statistics that one task adds up."""

SHARE = 0.15
"""Part of a worker's memory that rows may take which wait for their rounds."""


BUNDLES = 2
"""Tasks of a round whose rows are there, for each thread of the workers."""


class Table(NamedTuple):
    """All parts, and what is known of them."""

    parts: list[Part]
    rows: list[int]
    """Rows of each part that count."""
    first_rows: list[int]
    """Number of the first row of each part."""

    @classmethod
    def of(cls, parts: list[Part], rows: list[int]) -> Table:
        """Return parts with so many rows each."""
        return cls(parts, rows, (np.cumsum(rows) - rows).tolist())


class Reader:
    """Asks all parts for their statistics, pass by pass.

    A round of a long table uses few of its rows, and which ones is known before. So a part is read once for
    several rounds: the rows that they use are taken from it and wait on the workers for their turn.
    """

    def __init__(self, client: Any, local: Any, table: Table, used: int) -> None:
        self.client = client
        self.groups: list[list[tuple[int, Any, int]]] = []
        for group in grouped(table.rows):
            jobs = [(i, tuple(table.parts[i]), table.first_rows[i]) for i in group if table.rows[i]]
            if jobs:
                self.groups.append(jobs)
        self.local = shared(local)
        inputs = local.n_features_in_ if local.encoding_ is None else len(local.encoding_.feature_names)
        # Inputs, and about as much again as a target, a weight and a number.
        self.round_bytes = 8 * (inputs + 3) * used
        """Bytes of the rows that all networks use in a round."""
        self.is_long = sum(table.rows) > used
        self.kept: list[Any] = []
        """Rows of the rounds that come, a future for each bundle of parts."""
        self.has_read = False
        """Whether the last pass has read the parts."""
        self.turn: int = 0
        self.ahead: int = 0
        """Place of the next round among those whose rows are kept, and their number."""

    async def statistics(self, model: bytes, rounds_left: int) -> bytes:
        """Return what all parts say in the pass that is due; no rounds are left where it is no round."""
        node = shared(model)
        self.has_read = self.turn == self.ahead
        if self.has_read:
            self.kept, self.turn, self.ahead = [], 0, 1
            if rounds_left and self.is_long:
                await self._take_rows(node, rounds_left)
        if self.kept:
            task = _dask.delayed(_of_kept, pure=False)
            sums = [task(rows, self.turn, node) for rows in self.kept]
        else:
            task = _dask.delayed(_statistics, pure=False)
            sums = [task(jobs, node, self.local) for jobs in self.groups]
        self.turn += 1
        add = _dask.delayed(_add, pure=False)
        while len(sums) > 1:
            sums = [add(sums[i : i + FAN_IN], node) for i in range(0, len(sums), FAN_IN)]
        [found] = await compute(self.client, sums)
        if isinstance(found, Refused):
            raise found.error()
        return found

    async def _take_rows(self, node: Any, rounds_left: int) -> None:
        """Take the rows of as many rounds as there is room for, if that is more than one."""
        workers = list((await workers_of(self.client)).values())
        room = sum(SHARE * int(worker["memory_limit"] or 1e9) for worker in workers)
        self.ahead = max(1, min(int(room / self.round_bytes), rounds_left))
        if self.ahead == 1:
            return
        take, bundle = _dask.delayed(_take, pure=False), _dask.delayed(_bundle, pure=False)
        taken = [take(jobs, node, self.local, self.ahead) for jobs in self.groups]
        # A round has few rows of a part: several parts are put together, or its tasks would be too small.
        n = max(1, sum(int(worker["nthreads"]) for worker in workers) * BUNDLES)
        size = -(-len(taken) // n)
        bundles = [bundle(taken[i : i + size]) for i in range(0, len(taken), size)]
        self.kept = submit(self.client, bundles)


def _statistics(jobs: list[tuple[int, Any, int]], model: bytes, local: Any) -> bytes | Refused:
    """Run on a worker: what some parts say."""
    share_processors()

    def say(X: Any, target: Any, weights: Any, first_row: int) -> bytes:
        return _core.rounds_statistics(model, X, target, weights, first_row)

    found = _of_each(jobs, local, say)
    if isinstance(found, Refused):
        return found
    return found[0] if len(found) == 1 else _core.rounds_combine(model, found)


def _take(jobs: list[tuple[int, Any, int]], model: bytes, local: Any, ahead: int) -> Any:
    """Run on a worker: the rows of some parts that the next rounds use; a list for each part."""
    share_processors()

    def take(X: Any, target: Any, weights: Any, first_row: int) -> list[bytes]:
        return _core.rounds_thin(model, X, target, weights, first_row, ahead)

    return _of_each(jobs, local, take)


def _bundle(groups: list[list[list[bytes]] | Refused]) -> list[list[bytes]] | Refused:
    """Run on a worker: the rows of more parts."""
    bundle: list[list[bytes]] = []
    for rows in groups:
        if isinstance(rows, Refused):
            return rows
        bundle.extend(rows)
    return bundle


def _of_each(jobs: list[tuple[int, Any, int]], local: Any, ask: Callable[..., Any]) -> list[Any] | Refused:
    found: list[Any] = []
    for number, (X, y, weights), first_row in jobs:
        try:
            found.append(ask(*matrices(local, X, y, weights), first_row))
        except (ValueError, TypeError, MemoryError) as error:
            return Refused(number, type(error).__name__, str(error))
    return found


def _of_kept(rows: list[list[bytes]] | Refused, turn: int, model: bytes) -> bytes | Refused:
    """Run on a worker: what rows that were taken before say."""
    share_processors()
    if isinstance(rows, Refused):
        return rows
    found = [_core.rounds_statistics_of_thin(model, part[turn]) for part in rows]
    return found[0] if len(found) == 1 else _core.rounds_combine(model, found)


def _add(parts: list[bytes | Refused], model: bytes) -> bytes | Refused:
    """Run on a worker: what several groups say together."""
    share_processors()
    found: list[bytes] = []
    for part in parts:
        if isinstance(part, Refused):
            return part
        found.append(part)
    return _core.rounds_combine(model, found)


def matrices(local: Any, X: Any, y: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Return the rows of a part as the core takes them; the estimator knows columns and classes."""
    rows = known_rows(X, y, weights)
    if rows is None:
        raise ValueError("there were rows before, and now there are none")
    weighted, none = weights is not None, weightless(rows[2])
    X, y, weights = rows[0], rows[1], None if none else rows[2]
    if isinstance(local, BPCClassifier):
        X, y, weights = checked_classification(local, X, y, weights, reset=False)
        weighted |= local.class_weight is not None
        weights, target = local._weighted(y, weights), local._encoded(y)
    else:
        X, y, weights = checked_regression(local, X, y, weights, reset=False)
        target = _two_dimensional(y)
    if weighted and weights is None:
        # That all weights of a part are one says nothing of the others.
        weights = np.ones(len(X))
    if none:
        weights = np.zeros(len(X))
    return X, target, weights


def count(X: Any, y: Any, weights: Any, _: Any, local: Any) -> int:
    """Return how many rows of a part are learned from."""
    return 0 if known_rows(X, y, weights) is None else len(matrices(local, X, y, weights)[0])
