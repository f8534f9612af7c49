"""Models from files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._classifier import BPCClassifier
from ._regressor import BPCRegressor
from ._settings import estimator_params


def load(path: str | os.PathLike[str]) -> BPCRegressor | BPCClassifier:
    """Read a model that an estimator's ``save`` or the command ``bayespc`` wrote.

    A model of the command takes numeric arrays in the order of its encoded columns: one for a number, one
    for each value of a text.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    BPCRegressor or BPCClassifier
        Fitted, and ready to predict, or to learn on by ``partial_fit`` unless it was calibrated.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import bayespc
    >>> X, y = bayespc.datasets.make_moons(100, random_state=0)
    >>> model = bayespc.BPCClassifier(max_iter=20, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "moons.safetensors"
    ...     model.save(file)
    ...     again = bayespc.load(file)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    model = _core.Model.from_bytes(Path(path).read_bytes())
    notes = {key: json.loads(model.notes[key]) for key in ("python", "encoding") if key in model.notes}
    params = estimator_params(json.loads(model.settings), model.classes)
    if model.classes:
        estimator = BPCClassifier(**params)
        estimator.classes_ = _classes(notes, model.classes)
    else:
        estimator = BPCRegressor(**params)
        flat = notes.get("python", {}).get("one_dimensional", model.n_targets == 1)
        estimator._flat = flat
    estimator.model_ = model
    estimator.n_features_in_ = model.n_features
    names = _feature_names(notes)
    if names is not None and len(names) == model.n_features:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator._read_reports()
    return estimator


def _feature_names(notes: dict[str, Any]) -> list[str] | None:
    if "python" in notes:
        return notes["python"].get("feature_names")
    if "encoding" not in notes:
        return None
    names: list[str] = []
    for feature in notes["encoding"]["features"]:
        values = feature["coding"].get("values")
        names += [feature["name"]] if values is None else [f"{feature['name']}={value}" for value in values]
    return names


def _classes(notes: dict[str, Any], n: int) -> Any:
    if "python" in notes:
        python = notes["python"]
        return np.array(python["classes"], dtype=np.dtype(python["dtype"]))
    target: dict[str, Any] = (notes["encoding"]["target"] or {}) if "encoding" in notes else {}
    names: list[Any] = target.get("classes", list(range(n)))
    match target.get("kind"):
        case "bool":
            return np.array([name == "true" for name in names])
        case "number":
            numbers = np.array([float(name) for name in names])
            whole = numbers.astype(np.int64)
            return whole if bool((whole == numbers).all()) else numbers
        case _:
            return np.array(names)
