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

import asyncio
import json
import time
from typing import Any

from .. import _core
from .._progress import ProgressBar
from .._settings import FULL, model_settings
from ._checkpoint import Checkpoint, Verdict
from ._reader import Reader, Table


async def fit_rounds(
    client: Any,
    local: Any,
    table: Table,
    settings: dict[str, Any],
    checkpoint: Checkpoint | None,
    verdict: Verdict,
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
    reader, done = Reader(client, local, table, rounds["batch_rows"] * settings["members"]), 0
    passes: list[dict[str, Any]] = []
    while (due := _core.rounds_next_pass(model)) is not None:
        told: dict[str, Any] = json.loads(due)
        if progress is not None:
            progress(*_stage(told), None, None)
        begun = time.perf_counter()
        left = told["of"] - told["index"] + 1 if told["pass"] == "round" else 0
        found = await reader.statistics(model, left)
        # In another thread: the client's own has to answer the scheduler meanwhile.
        model = await asyncio.to_thread(_core.rounds_absorb, model, [found])
        done += 1
        passes.append(
            {
                "pass": told["pass"],
                "seconds": time.perf_counter() - begun,
                "reads": reader.has_read,
                "statistics_bytes": len(found),
                "model_bytes": len(model),
            }
        )
        if checkpoint is not None:
            model = checkpoint.keep(model, local, fit, verdict, done)
    local.model_ = _core.Model.from_bytes(model)
    local._read_reports()
    local.passes_ = passes
    return local


def check_settings(local: Any, seed: int) -> None:
    """Raise for settings that rounds do not obey, before anything is searched."""
    settings = model_settings(local.get_params(deep=False), seed)
    _core.rounds_begin(json.dumps(settings), json.dumps(round_settings(local)), local._n_classes())


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


def _stage(due: dict[str, Any]) -> tuple[str, float]:
    """Return what is being done in words, and the share of all rounds that is done."""
    match due["pass"]:
        case "table":
            return "table", 0.0
        case "round":
            return f"round {due['index']} of {due['of']}", (due["index"] - 1) / due["of"]
        case name:
            return str(name), 1.0
