"""Rounds over partitions: in every pass each part gives its statistics, and the client makes a model of them.

```text
model = begin(settings)
while a pass is due:
    statistics = one task per group of parts, added up along a tree of tasks
    model      = absorb(model, statistics)
```

Which pass is due stands in the model's bytes. They are all that a task is told, so that a task that is lost
with its worker can be done again anywhere. A part's rows are dropped as soon as its statistics exist.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._classifier import BPCClassifier
from .._progress import ProgressBar
from .._regressor import _two_dimensional
from .._settings import FULL
from .._validation import checked_classification, checked_regression
from ._checkpoint import Checkpoint
from ._parts import Part
from ._rows import known_rows
from ._tasks import Refused, compute, grouped, share_processors, shared

_dask: Any = import_module("dask")

FAN_IN = 8
"""Statistics that one task adds up."""


class Table(NamedTuple):
    """All parts, and what is known of them."""

    parts: list[Part]
    rows: list[int]
    """Rows of each part that are learned from."""
    first_rows: list[int]


async def fit_rounds(
    client: Any,
    local: Any,
    table: Table,
    settings: dict[str, Any],
    checkpoint: Checkpoint | None,
    progress: ProgressBar | None,
) -> Any:
    """Return the local estimator, fitted in rounds. It knows its columns and classes already."""
    rounds = round_settings(local)
    names = [str(name) for name in getattr(local, "feature_names_in_", ())]
    fit = {
        "settings": settings,
        "rounds": rounds,
        "rows": sum(table.rows),
        "columns": names or local.n_features_in_,
        "classes": [str(label) for label in getattr(local, "classes_", ())],
    }
    model = None if checkpoint is None else checkpoint.model(fit)
    if model is None:
        model = _core.rounds_begin(json.dumps(settings), json.dumps(rounds), local._n_classes())
    done = 0
    while (due := _core.rounds_next_pass(model)) is not None:
        told = json.loads(due)
        if progress is not None:
            progress(*_stage(told), None, None)
        found = await statistics(client, local, table, model)
        model = _core.rounds_absorb(model, [found])
        done += 1
        if checkpoint is not None:
            model = checkpoint.keep(model, local, fit, done)
    local.model_ = _core.Model.from_bytes(model)
    local._read_reports()
    return local


def round_settings(local: Any) -> dict[str, Any]:
    """Return the core's settings of rounds; their number and size are as the parameters say, if they do."""
    settings: dict[str, Any] = json.loads(_core.rounds_settings())
    default = json.loads(_core.preset_settings("default"))["training"]
    if local.max_iter != default["epochs"]:
        settings["rounds"] = local.max_iter
    if local.batch_size == FULL:
        settings["batch_rows"] = 2**53
    elif local.batch_size != default["batch_size"]:
        settings["batch_rows"] = local.batch_size
    return settings


async def statistics(client: Any, local: Any, table: Table, model: bytes) -> bytes:
    """Return what all parts say in the pass that is due."""
    node, estimator = shared(model), shared(local)
    task = _dask.delayed(_statistics, pure=False)
    sums: list[Any] = []
    for group in grouped(table.rows):
        jobs = [(i, tuple(table.parts[i]), table.first_rows[i]) for i in group if table.rows[i]]
        if jobs:
            sums.append(task(jobs, node, estimator))
    add = _dask.delayed(_add, pure=False)
    while len(sums) > 1:
        sums = [add(sums[i : i + FAN_IN], node) for i in range(0, len(sums), FAN_IN)]
    [found] = await compute(client, sums)
    if isinstance(found, Refused):
        raise found.error()
    return found


def _statistics(jobs: list[tuple[int, Any, int]], model: bytes, local: Any) -> bytes | Refused:
    """Run on a worker: what some parts say."""
    share_processors()
    found: list[bytes] = []
    for number, (X, y, weights), first_row in jobs:
        try:
            X, target, weights = matrices(local, X, y, weights)
            found.append(_core.rounds_statistics(model, X, target, weights, first_row))
        except (ValueError, TypeError, MemoryError) as error:
            return Refused(number, type(error).__name__, str(error))
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
    weighted = weights is not None
    X, y, weights = rows
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
    return X, target, weights


def count(X: Any, y: Any, weights: Any, _: Any, local: Any) -> int:
    """Return how many rows of a part are learned from."""
    return 0 if known_rows(X, y, weights) is None else len(matrices(local, X, y, weights)[0])


def _stage(due: dict[str, Any]) -> tuple[str, float]:
    """Return what is being done in words, and the share of all rounds that is done."""
    match due["pass"]:
        case "table":
            return "table", 0.0
        case "round":
            return f"round {due['index']} of {due['of']}", (due["index"] - 1) / due["of"]
        case name:
            return str(name), 1.0
