"""Tasks on workers: plain futures of pure functions, so that what is lost with a worker is made again.

A task takes some parts and what all tasks share, such as the bytes of a model. What is shared is one node of
the graph, which the scheduler keeps: nothing is scattered, and no worker has a state.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ._parts import Part

_dask: Any = import_module("dask")
_distributed: Any = import_module("distributed")

ROWS_PER_TASK = 8192
"""Parts are joined up to so many rows: a task should work for longer than the scheduler needs to place it."""

RETRIES = 2
"""Times a task is tried again if reading its rows fails. The loss of a worker does not count."""

LARGE_GRAPH = "distributed.admin.large-graph-warning-threshold"
"""Below a setting of dask's: what tasks share is in their graph on purpose."""


class Refused(NamedTuple):
    """What is wrong with a part, as a value: an exception would be tried again."""

    part: int
    kind: str
    message: str

    def error(self) -> Exception:
        """Return the exception to raise on the client."""
        kind = {"TypeError": TypeError, "MemoryError": MemoryError}.get(self.kind, ValueError)
        return kind(f"partition {self.part}: {self.message}")


class Job(NamedTuple):
    """A part, its number, and what only its task is told."""

    number: int
    part: Part
    extra: Any = None


def grouped(rows: Sequence[int]) -> list[list[int]]:
    """Return numbers of parts, joined with their neighbours where they have few rows."""
    groups: list[list[int]] = [[]]
    room = ROWS_PER_TASK
    for number, n in enumerate(rows):
        if groups[-1] and n > room:
            groups.append([])
            room = ROWS_PER_TASK
        groups[-1].append(number)
        room -= n
    return groups


async def run(
    client: Any, function: Callable[..., Any], groups: Sequence[Sequence[Job]], *values: Any
) -> list[list[Any]]:
    """Call ``function(X, y, weights, extra, *values)`` for all parts; return what it gives, in order.

    A ValueError or TypeError of the function is raised here, with the number of the part.
    """
    nodes = [shared(value) for value in values]
    task = _dask.delayed(_work, pure=False)
    tasks = [task(function, [(j.number, tuple(j.part), j.extra) for j in group], *nodes) for group in groups]
    results: list[list[Any]] = await compute(client, tasks)
    for result in results:
        for value in result:
            if isinstance(value, Refused):
                raise value.error()
    return results


def shared(value: Any) -> Any:
    """Return what tasks share as one node of their graph."""
    return _dask.delayed(value, name=f"bayespc-shared-{uuid.uuid4().hex}", traverse=False)


def submit(client: Any, tasks: list[Any]) -> list[Any]:
    """Return futures of delayed tasks."""
    with _dask.config.set({LARGE_GRAPH: "1 GB"}):
        return client.compute(tasks, retries=RETRIES)


async def compute(client: Any, tasks: list[Any]) -> list[Any]:
    """Return the results of delayed tasks, in order."""
    futures = submit(client, tasks)
    try:
        return await client.gather(futures, asynchronous=True)
    except BaseException:
        await client.cancel(futures, asynchronous=True)
        raise


def _work(function: Callable[..., Any], jobs: list[tuple[int, Any, Any]], *values: Any) -> list[Any]:
    """Run on a worker."""
    share_processors()
    results: list[Any] = []
    for number, (X, y, weights), extra in jobs:
        try:
            results.append(function(X, y, weights, extra, *values))
        except (ValueError, TypeError, MemoryError) as error:
            return [Refused(number, type(error).__name__, str(error))]
    return results


def share_processors() -> None:
    """Let the core use as many threads as this worker has.

    Only if the worker is a process of its own, and nobody has said otherwise.
    """
    try:
        worker = _distributed.get_worker()
    except ValueError:
        return
    if getattr(worker, "nanny", None):
        os.environ.setdefault("RAYON_NUM_THREADS", str(worker.state.nthreads))
