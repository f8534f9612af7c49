"""Checkpoints of rounds: an ordinary model file that also says which pass is due and of which fit it is."""

from __future__ import annotations

import json
import os
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

from .. import _core
from .._base import written_whole

NOTE = "dask"
"""Note of the model that says of which fit it is."""

SEARCH = "dask_search"
"""Note of the model that says what a search found, of which parameters and rows."""


class Verdict(NamedTuple):
    """What was left to a search, and what it said."""

    asked: dict[str, Any]
    """Settings and rows it was asked for."""
    found: dict[str, Any]
    """Parameters it found best."""
    candidates: list[dict[str, Any]]
    """All that it tried."""


class Checkpoint:
    """A file that a fit goes on from."""

    def __init__(self, path: str | os.PathLike[str], every: int) -> None:
        self.path = Path(path)
        self.every = every
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint {self.path}: there is no folder {self.path.parent}")

    def seed(self, otherwise: int) -> int:
        """Return the seed of the fit to go on from, if there is one."""
        found = self._read()
        return otherwise if found is None else int(found[1]["settings"]["training"]["seed"])

    def verdict(self, asked: dict[str, Any]) -> Verdict | None:
        """Return what the search has found, if it was asked for the same."""
        found = None if not self.path.exists() else self._notes()[1].get(SEARCH)
        if found is None:
            return None
        kept = Verdict(**json.loads(found))
        if kept.asked != json.loads(json.dumps(asked)):
            return None
        sizes = {"hidden_layer_sizes": tuple(kept.found["hidden_layer_sizes"])} if kept.found else {}
        return kept._replace(found=kept.found | sizes)

    def model(self, fit: dict[str, Any]) -> bytes | None:
        """Return the model to go on from; an error if that is of a fit of which something else is known."""
        found = self._read()
        if found is None:
            return None
        model, its = found
        other = [name for name, value in json.loads(json.dumps(fit)).items() if its.get(name) != value]
        if other:
            raise ValueError(
                f"checkpoint {self.path} is of another fit, with other {' and '.join(other)}: "
                "choose another file, or remove it"
            )
        return model

    def keep(self, model: bytes, local: Any, fit: dict[str, Any], verdict: Verdict, done: int) -> bytes:
        """Write the model if it is time to; return it as it goes on."""
        core = _core.Model.from_bytes(model)
        if NOTE not in core.notes:
            named = copy(local)
            named.model_ = core
            notes = {NOTE: json.dumps(fit), SEARCH: json.dumps(verdict._asdict())}
            model = core.with_notes(named._file_notes() | notes).to_bytes()
        # The first pass is short, and the search before it was long.
        if done == 1 or done % self.every == 0 or _core.rounds_next_pass(model) is None:
            written_whole(self.path, model)
        return model

    def _read(self) -> tuple[bytes, dict[str, Any]] | None:
        if not self.path.exists():
            return None
        model, notes = self._notes()
        if NOTE not in notes:
            raise ValueError(f"checkpoint {self.path}: this is a model, but no checkpoint of a fit on dask")
        return model, json.loads(notes[NOTE])

    def _notes(self) -> tuple[bytes, dict[str, str]]:
        model = self.path.read_bytes()
        try:
            return model, _core.Model.from_bytes(model).notes
        except ValueError as error:
            raise ValueError(f"checkpoint {self.path}: {error}") from error
