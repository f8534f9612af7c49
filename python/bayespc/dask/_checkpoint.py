"""Checkpoints of rounds: an ordinary model file that also says which pass is due and of which fit it is."""

from __future__ import annotations

import json
import os
from copy import copy
from pathlib import Path
from typing import Any

from .. import _core
from .._base import written_whole

NOTE = "dask"
"""Note of the model that says of which fit it is."""


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

    def keep(self, model: bytes, local: Any, fit: dict[str, Any], done: int) -> bytes:
        """Write the model if it is time to; return it as it goes on."""
        core = _core.Model.from_bytes(model)
        if NOTE not in core.notes:
            named = copy(local)
            named.model_ = core
            model = core.with_notes(named._file_notes() | {NOTE: json.dumps(fit)}).to_bytes()
        if done % self.every == 0 or _core.rounds_next_pass(model) is None:
            written_whole(self.path, model)
        return model

    def _read(self) -> tuple[bytes, dict[str, Any]] | None:
        if not self.path.exists():
            return None
        model = self.path.read_bytes()
        try:
            notes = _core.Model.from_bytes(model).notes
        except ValueError as error:
            raise ValueError(f"checkpoint {self.path}: {error}") from error
        if NOTE not in notes:
            raise ValueError(f"checkpoint {self.path}: this is a model, but no checkpoint of a fit on dask")
        return model, json.loads(notes[NOTE])
