"""A table that fits one worker: it is put together, and the networks of search and ensemble are tasks.

A fit is a function of its table. With the networks that are known it comes to the next ones it needs, and
says which; workers train them, each for itself, and the fit goes on. The model has the bits of the local one.
"""

from __future__ import annotations

from copy import copy
from importlib import import_module
from typing import Any, NamedTuple

from .. import _core
from ._parts import Part
from ._rows import joined, known_rows
from ._tasks import LARGE_GRAPH, RETRIES, share_processors

_dask: Any = import_module("dask")

COPIES = 100
"""Memory of a fit, as a multiple of that of its inputs; 78 were measured of 50 000 rows of 20 columns."""

WORTH = 5e9
"""Multiply-adds below which networks are not worth a task of their own: some seconds."""

Made = dict[str, bytes]


class Ready(NamedTuple):
    """A table that is put together, and the estimator that knows its columns and classes."""

    local: Any
    samples: tuple[Any, Any, Any]
    settings: str


class Wanted(NamedTuple):
    """Networks that a fit needs before it can go on: key and cost of each."""

    networks: list[tuple[str, int]]


class Failure(NamedTuple):
    """What is wrong, as a value: an exception would be tried again."""

    error: Exception


async def fits_one_worker(client: Any, n_bytes: int) -> bool:
    """Return whether a table whose inputs take so many bytes can be fitted on any of the workers."""
    limits = [int(worker["memory_limit"] or 0) for worker in (await workers_of(client)).values()]
    # No limit is known where a worker has none; then a table of ten megabytes is large.
    room = min((limit for limit in limits if limit), default=10**9)
    return COPIES * n_bytes <= room


async def workers_of(client: Any) -> dict[str, Any]:
    """Return what the scheduler knows of the workers."""
    return (await client.scheduler.identity())["workers"]


async def fit_whole(client: Any, local: Any, parts: list[Part]) -> Any:
    """Return the local estimator, fitted to all parts together."""
    with _dask.config.set({LARGE_GRAPH: "1 GB"}):
        ready = client.compute(_dask.delayed(_ready, pure=False)([tuple(part) for part in parts], local))
    # Networks stay with the workers that made them, and are made again if they are lost with one.
    made: list[Any] = []
    try:
        while True:
            alone = len(await workers_of(client)) < 2 or local.time_limit is not None
            done = client.submit(_step, ready, made, None if alone else WORTH, pure=False, retries=RETRIES)
            found: Any = await client.gather(done, asynchronous=True)
            if isinstance(found, Failure):
                raise found.error
            if not isinstance(found, Wanted):
                return found
            threads = sum(int(worker["nthreads"]) for worker in (await workers_of(client)).values())
            shares = shared_out(found.networks, max(threads, 1))
            new = [client.submit(_train, ready, made, keys, pure=False, retries=RETRIES) for keys in shares]
            made = [*made, *new]
    finally:
        await client.cancel([ready, *made], asynchronous=True)


def shared_out(wanted: list[tuple[str, int]], n: int) -> list[set[str]]:
    """Return networks in at most n shares of about the same cost: the largest first, to whom has least."""
    shares: list[set[str]] = [set() for _ in range(n)]
    costs = [0] * n
    for key, cost in sorted(wanted, key=lambda job: (-job[1], job[0])):
        least = costs.index(min(costs))
        shares[least].add(key)
        costs[least] += cost
    return [share for share in shares if share]


def fit_joined(parts: list[tuple[Any, Any, Any]], local: Any) -> Any:
    """Run on a worker: the local estimator, fitted to all rows of these parts; or what is wrong with them."""
    ready = _ready(parts, local)
    return ready if isinstance(ready, Failure) else _step(ready, [], None)


def _ready(parts: list[tuple[Any, Any, Any]], local: Any) -> Ready | Failure:
    """Run on a worker: the table."""
    share_processors()
    try:
        filled = [part for part in (known_rows(*part) for part in parts) if part is not None]
        X = joined([part[0] for part in filled])
        y = joined([part[1] for part in filled])
        weights = None if filled[0][2] is None else joined([part[2] for part in filled])
        *samples, settings = local._ready(X, y, weights)
        return Ready(local, (samples[0], samples[1], samples[2]), settings)
    except (ValueError, TypeError, MemoryError) as error:
        return Failure(error)


def _step(ready: Ready | Failure, made: list[Made], worth: float | None) -> Any:
    """Run on a worker: the fitted estimator, or the networks it needs first if they are worth tasks."""
    share_processors()
    if isinstance(ready, Failure):
        return ready
    local, (X, target, weights), settings = copy(ready.local), ready.samples, ready.settings
    try:
        if worth is not None:
            known = _together(made)
            model, wanted, _ = _core.fit_step(X, target, local._n_classes(), weights, settings, known, set())
            if model is not None:
                local.model_ = model
                return local._after_fit()
            if known or sum(cost for _, cost in wanted) >= worth:
                return Wanted(wanted)
        return local._fit_model(X, target, weights, settings)
    except (ValueError, TypeError, MemoryError) as error:
        return Failure(error)


def _train(ready: Ready, made: list[Made], keys: set[str]) -> Made:
    """Run on a worker: some networks."""
    share_processors()
    local, (X, target, weights), settings = ready
    _, _, networks = _core.fit_step(X, target, local._n_classes(), weights, settings, _together(made), keys)
    return networks


def _together(made: list[Made]) -> Made:
    return {key: network for part in made for key, network in part.items()}
