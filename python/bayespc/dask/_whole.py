"""A table that fits one worker: it is put together there and fitted as by the local estimator, to the bit."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._parts import Part
from ._rows import joined, known_rows
from ._tasks import compute, share_processors

_dask: Any = import_module("dask")

COPIES = 24
"""Memory of a fit, as a multiple of that of its inputs: standardised samples, codes of columns, folds."""


async def fits_one_worker(client: Any, n_bytes: int) -> bool:
    """Return whether a table whose inputs take so many bytes can be fitted on any of the workers."""
    workers: dict[str, Any] = (await client.scheduler.identity())["workers"]
    limits = [int(worker["memory_limit"] or 0) for worker in workers.values()]
    # No limit is known where a worker has none; then a table of a gigabyte is large.
    room = min((limit for limit in limits if limit), default=COPIES * 10**9)
    return COPIES * n_bytes <= room


async def fit_whole(client: Any, local: Any, parts: list[Part]) -> Any:
    """Return the local estimator, fitted in one task."""
    task = _dask.delayed(_fit, pure=False)
    [fitted] = await compute(client, [task([tuple(part) for part in parts], local)])
    if isinstance(fitted, Exception):
        raise fitted
    return fitted


def _fit(parts: list[tuple[Any, Any, Any]], local: Any) -> Any:
    """Run on a worker."""
    share_processors()
    try:
        filled = [part for part in (known_rows(*part) for part in parts) if part is not None]
        X = joined([part[0] for part in filled])
        y = joined([part[1] for part in filled])
        weights = None if filled[0][2] is None else joined([part[2] for part in filled])
        return local.fit(X, y, weights)
    except (ValueError, TypeError, MemoryError) as error:
        # As a value: raised, it would be tried again.
        return error
