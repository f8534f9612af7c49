"""Partitions one after the other: `partial_fit`, in their order, while the next ones are being read."""

from __future__ import annotations

import pickle
import time
from importlib import import_module
from typing import Any

from ._parts import Part
from ._rows import known_rows
from ._tasks import RETRIES, Refused, share_processors

_dask: Any = import_module("dask")

AHEAD = 2
"""Tasks whose rows are read while one learns."""

LONG = 0.05
"""Seconds that a task should take; while it takes less, the next one gets twice as many parts."""

MOST = 64
"""Parts of a task."""


async def learn_in_order(client: Any, local: Any, parts: list[Part], classes: Any) -> Any:
    """Return the local estimator after a `partial_fit` with each part.

    How many parts a task takes changes nothing: it learns from one after the other.
    """
    state = pickle.dumps(local)
    waiting: list[Any] = []
    at, size = 0, 1
    try:
        while at < len(parts) or waiting:
            while at < len(parts) and len(waiting) <= AHEAD:
                chunk = [(at + i, *part) for i, part in enumerate(parts[at : at + size])]
                waiting.append(client.compute(_dask.delayed(_read, pure=False)(chunk), retries=RETRIES))
                at += len(chunk)
            rows = waiting.pop(0)
            # The bytes come back each time: what was learned is not lost with a worker.
            done = client.submit(_learn, rows, state, classes, pure=False)
            state, seconds = await client.gather(done, asynchronous=True)
            if isinstance(state, Refused):
                raise state.error()
            if seconds < LONG:
                size = min(2 * size, MOST)
    finally:
        await client.cancel(waiting, asynchronous=True)
    return pickle.loads(state)


def _read(chunk: list[tuple[int, Any, Any, Any]]) -> list[tuple[int, Any, Any, Any]]:
    return chunk


def _learn(chunk: list[tuple[int, Any, Any, Any]], state: bytes, classes: Any) -> tuple[Any, float]:
    """Run on a worker."""
    share_processors()
    begin = time.perf_counter()
    local = pickle.loads(state)
    options = {} if classes is None else {"classes": classes}
    for number, X, y, weights in chunk:
        rows = known_rows(X, y, weights)
        if rows is None:
            continue
        try:
            local.partial_fit(rows[0], rows[1], sample_weight=rows[2], **options)
        except (ValueError, TypeError, MemoryError) as error:
            return Refused(number, type(error).__name__, str(error)), 0.0
    return pickle.dumps(local), time.perf_counter() - begin
