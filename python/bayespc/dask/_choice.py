"""What is left to the search, chosen from a sample of the rows: rounds themselves try nothing out."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .._settings import HEADS, LIKELIHOODS, left_open
from .._tables import _select
from ._columns import in_sample
from ._rows import known_rows, length
from ._tasks import Refused, compute, grouped, shared
from ._whole import Failure, fit_joined

_dask: Any = import_module("dask")

ROWS = 20_000
"""Rows of the sample: more than enough for the rows that candidates are compared by."""


async def choose(client: Any, local: Any, table: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what a search finds best for the parameters that are left to it, and all that it tried."""
    if not left_open(local.get_params(deep=False)):
        return {}, []
    n_rows = sum(table.rows)
    pick = _dask.delayed(_picked, pure=False)
    pieces: list[Any] = []
    for group in grouped(table.rows):
        jobs = [(i, tuple(table.parts[i]), table.first_rows[i]) for i in group if table.rows[i]]
        pieces.append(pick(jobs, n_rows))
    [fitted] = await compute(client, [_dask.delayed(_tried, pure=False)(pieces, shared(local))])
    if isinstance(fitted, Refused):
        raise fitted.error()
    if isinstance(fitted, Failure):
        raise fitted.error
    kept = [candidate for candidate in fitted.candidates_ if candidate["members"]]
    if not kept:
        return {}, []
    best = max(kept, key=lambda candidate: candidate["density"])
    words, name = (HEADS, "noise") if hasattr(local, "noise") else (LIKELIHOODS, "likelihood")
    heads = {kind: word for word, kind in words.items()}
    found = {
        "hidden_layer_sizes": tuple(best["hidden_layer_sizes"]),
        "activation": best["activation"],
        "prior_var": best["prior_var"],
        "bins": best["bins"],
        name: heads[best["head"]["kind"]],
    }
    return found, fitted.candidates_


def _picked(jobs: list[tuple[int, Any, int]], n_rows: int) -> list[tuple[Any, Any, Any]] | Refused:
    """Run on a worker: the rows of some parts that are in the sample."""
    pieces: list[tuple[Any, Any, Any]] = []
    for number, part, first_row in jobs:
        try:
            rows = known_rows(*part)
        except (ValueError, TypeError) as error:
            return Refused(number, type(error).__name__, str(error))
        if rows is not None:
            n = length(rows[0])
            at = np.flatnonzero(in_sample(np.arange(first_row, first_row + n), n_rows, ROWS))
            if len(at):
                X, y, weights = (_select(values, at) for values in rows)
                pieces.append((X, y, weights))
    return pieces


def _tried(groups: list[Any], local: Any) -> Any:
    """Run on a worker: a search on the sample."""
    refused = [group for group in groups if isinstance(group, Refused)]
    return refused[0] if refused else fit_joined([part for group in groups for part in group], local)
