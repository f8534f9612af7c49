"""Models from files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._base import KEPT
from ._classifier import BPCClassifier
from ._regressor import BPCRegressor
from ._settings import estimator_params


def load(path: str | os.PathLike[str]) -> BPCRegressor | BPCClassifier:
    """Read a model that an estimator's ``save`` or the command ``bayespc`` wrote.

    A model of a table takes frames, of any library, with the columns it was fitted on, whether the command
    or an estimator fitted it: columns are found by name, and there may be more. It takes arrays as well: of
    its columns, or of inputs that are encoded already.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    BPCRegressor or BPCClassifier
        Fitted, with the parameters it was fitted with, and ready to predict, or to learn on by
        ``partial_fit`` unless it was calibrated.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import bayespc
    >>> X, y = bayespc.datasets.make_moons(100, random_state=0)
    >>> model = bayespc.BPCClassifier(**bayespc.presets.fast(), random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "moons.safetensors"
    ...     model.save(file)
    ...     again = bayespc.load(file)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    content = Path(path).read_bytes()
    if _core.is_latent(content):
        _core.latent_from_bytes(content)
        raise ValueError("a model of a table without a target: BPCImputer.load or BPCDensity.load reads it")
    model = _core.Model.from_bytes(content)
    try:
        return estimator_of(model)
    except (
        AttributeError,
        IndexError,
        KeyError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(f"model file: the notes are damaged ({error})") from error


def estimator_of(model: _core.Model, classes: Any = None) -> BPCRegressor | BPCClassifier:
    """Return the estimator of a model, with these labels or with those that its notes tell."""
    notes = {key: json.loads(model.notes[key]) for key in ("python", "encoding") if key in model.notes}
    python: dict[str, Any] = notes.get("python", {})
    params = estimator_params(json.loads(model.settings), model.classes)
    kept: dict[str, Any] = python.get("params", {})
    # The method may have been changed after fitting: then the file's settings know its draws.
    params |= {name: value for name, value in kept.items() if name in KEPT and name not in params}
    params |= {name: kept[name] for name in ("hidden_layer_sizes", "random_state") if name in kept}
    if "params" not in python and "missing" in notes.get("encoding", {}):
        params["missing"] = notes["encoding"]["missing"]
    if model.classes:
        estimator = BPCClassifier(**params)
        estimator.classes_ = _classes(notes, model.classes) if classes is None else classes
        if len(estimator.classes_) != model.classes:
            raise ValueError(f"{len(estimator.classes_)} names of {model.classes} classes")
    else:
        estimator = BPCRegressor(**params)
    # Parameters that no estimator can have are found now, and not by the first prediction.
    estimator._settings()
    estimator._draws()
    estimator.model_ = model
    estimator.n_features_in_ = model.n_features
    names = python.get("feature_names")
    # The command always encodes, an estimator where plain numbers would not do.
    if "encoding" in notes and python.get("encoded", "python" not in notes):
        encoding = _core.Encoding.from_json(model.notes["encoding"])
        if len(encoding.feature_names) != model.n_features:
            raise ValueError(f"{len(encoding.feature_names)} inputs of {model.n_features} features")
        estimator.encoding_ = encoding
        names = names if "python" in notes else encoding.used
        estimator.n_features_in_ = int(python.get("n_features", len(encoding.used)))
    if names is not None and len(names) == estimator.n_features_in_:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    encoded: dict[str, Any] = notes.get("encoding") or {}
    target: dict[str, Any] = encoded.get("target") or {}
    estimator._y_names = target.get("columns") or ([target["column"]] if "column" in target else None)
    estimator._remember(python)
    estimator._read_reports()
    return estimator


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
