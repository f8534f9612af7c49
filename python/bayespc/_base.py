"""What the regressor and the classifier share: settings, fitting, streaming, files."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from . import _core
from ._arrow import ROWS, Names, slices
from ._progress import ProgressBar
from ._settings import METHODS, choice, integer, left_open, model_settings
from ._tables import ColumnList, Prepared, summary, target_names
from ._validation import Array, ArrayLike, Samples, checked_samples, seed_of

Targets = npt.NDArray[np.float64] | npt.NDArray[np.int64]

Ready = tuple[Samples, Targets, Array | None, str]
"""What the core is fitted to: samples, targets, weights and settings."""

FAR = 20.0
"""Mean distance of a feature from its first data, in their deviations, beyond which its scale has changed."""

SOME = 1000
"""Samples of a batch that tell its scale."""

KEPT = (
    "columns",
    "missing",
    "n_draws",
    "validation_fraction",
    "n_iter_no_change",
    "random_state",
    "verbose",
    "warm_start",
)
"""Parameters that the core's settings do not say back, at least not always."""


class BPCEstimator(BaseEstimator):
    """Base of `BPCRegressor` and `BPCClassifier`."""

    model_: _core.Model
    encoding_: _core.Encoding | None = None
    _y_names: list[str] | None = None
    loss_curve_: list[float]
    validation_scores_: list[float]
    n_iter_: int
    plans_: list[dict[str, Any]]
    candidates_: list[dict[str, Any]]
    held_out_: dict[str, Any] | None
    far_features_: list[int]
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    columns: Any
    missing: str
    method: str
    n_draws: int
    max_iter: int
    n_members: int
    early_stopping: bool
    random_state: Any
    verbose: int
    warm_start: bool

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    @property
    def columns_(self) -> ColumnList:
        """What was understood of each column; it prints as a table."""
        self._check_fitted()
        return summary(self._encoding())

    def _remember_columns(self, ready: Prepared, y: ArrayLike) -> None:
        """Keep how columns become inputs, as the first samples have settled it."""
        self.encoding_ = ready.encoding
        if ready.encoding is not None:
            self.n_features_in_ = ready.n_columns
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        if ready.names is not None:
            self.feature_names_in_ = np.array(ready.names, dtype=object)
        self._y_names = target_names(y, [str(name) for name in getattr(self, "feature_names_in_", ())])

    def _n_classes(self) -> int:
        return 0

    def _settings(self) -> str:
        params = self.get_params(deep=False)
        return json.dumps(model_settings(params, seed_of(self.random_state)))

    def _is_fitted(self) -> bool:
        return hasattr(self, "model_")

    def _ready(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Ready:
        """Return what the core is to be fitted to; the estimator then knows its columns and classes."""
        raise NotImplementedError

    def _fit_model(self, X: Samples, target: Targets, weights: Array | None, settings: str) -> Self:
        """Fit the core's model, from the start or, on a warm start, from the last one."""
        previous = self.model_ if self.warm_start and self._is_fitted() else None
        classes = self._n_classes()
        if self.verbose:
            with ProgressBar(type(self).__name__) as bar:
                self.model_ = _core.Model.fit(X, target, classes, weights, settings, bar, previous)
        else:
            self.model_ = _core.Model.fit(X, target, classes, weights, settings, None, previous)
        return self._after_fit()

    def _after_fit(self) -> Self:
        """Read what the model says of its fit, and warn of what a user should know."""
        self._read_reports()
        for warning in self.model_.warnings:
            warnings.warn(warning, stacklevel=4)
        if self.model_.interrupted:
            kept = f"{self.model_.n_members} of {self.n_members} networks are kept"
            warnings.warn(f"Training interrupted: {kept}.", stacklevel=4)
        elif self.early_stopping and self.n_iter_ == self.max_iter:
            warnings.warn(
                f"Maximum iterations ({self.max_iter}) reached and the held-out density was still improving.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return self

    def _partial_fit_model(self, X: Samples, target: Targets, weights: Array | None) -> Self:
        """Learn from more data; the first call makes the model."""
        classes = self._n_classes()
        if not self._is_fitted():
            model = _core.Model.for_stream(X, target, classes, self._settings())
            taken = left_open(self.get_params(deep=False))
            if taken:
                words = ", ".join(f"{keyword} = {value}" for keyword, value in taken.items())
                warnings.warn(
                    f"partial_fit holds nothing out to choose by: {words}. Set them, or search=False.",
                    stacklevel=3,
                )
            n_iter = 0
        else:
            model, n_iter = self.model_, self.n_iter_
            self._warn_of_another_scale(X)
        # An error leaves the estimator as it was.
        self.model_ = model.partial_fit(X, target, classes, weights)
        if n_iter == 0:
            self._read_reports()
        self.n_iter_ = n_iter + 1
        return self

    def _partial_fit_slices(self, learn: Callable[..., Self], X: ArrayLike, y: Names, weights: Any) -> Self:
        """Learn from a stream that brings its targets along; an error leaves everything as it was."""
        before, n = dict(vars(self)), 0
        try:
            for part, targets, its_weights in slices(X, y, weights):
                first = not self._is_fitted()
                learn(part, targets, sample_weight=its_weights)
                if first:
                    self._y_names = [y] if isinstance(y, str) else list(y)
                n += 1
        except (TypeError, ValueError) as error:
            vars(self).clear()
            vars(self).update(before)
            if n == 0:
                raise
            raise type(error)(f"rows {n * ROWS + 1} and on: {error}") from error
        if n == 0:
            raise ValueError("X has no rows: Found array with 0 sample(s) while a minimum of 1 is required")
        return self

    def _warn_of_another_scale(self, X: Samples) -> None:
        """Warn, once, of features that are far from where the first data had them."""
        offset, scale = self.model_.input_scaling
        distance = (np.abs(X[:SOME] - offset) / scale).mean(axis=0)
        far = np.flatnonzero(distance > FAR)
        if len(far) and not self.far_features_:
            self.far_features_ = far.tolist()
            warnings.warn(
                f"features {self.far_features_} are on average {distance.max():.0f} standard deviations from "
                "the data so far, by which inputs are scaled: if their scale has changed for good, fit anew.",
                stacklevel=4,
            )

    def _read_reports(self) -> None:
        reports: list[dict[str, Any]] = json.loads(self.model_.reports)
        self.loss_curve_ = _mean_curve([report["loss"] for report in reports])
        scores = [[score for _, score in report["validation"]] for report in reports]
        self.validation_scores_ = _mean_curve(scores)
        self.n_iter_ = max((report["epochs"] for report in reports), default=0)
        self.far_features_ = []
        self.plans_ = json.loads(self.model_.plans)
        self.candidates_ = json.loads(self.model_.candidates)
        self.held_out_ = json.loads(self.model_.held_out)

    def _free_energy(self, X: Samples, target: Targets, weights: Array | None) -> list[Array]:
        members = self.model_.free_energy(X, target, self._n_classes(), weights)
        return [np.array(layers) for layers in members]

    def _predictive(self, X: ArrayLike, method: str | None = None) -> _core.Predictive:
        samples = self._samples(X)
        return self.model_.predict(samples, self._method(method), self._draws())

    def _samples(self, X: ArrayLike) -> Samples:
        self._check_fitted()
        return checked_samples(self, X)

    def _check_fitted(self) -> None:
        # scikit-learn's own check takes longer than to predict a sample.
        if not self._is_fitted():
            check_is_fitted(self, "model_")

    def _remember(self, notes: dict[str, Any]) -> None:
        """Set what the notes of a model file say of the estimator."""
        raise NotImplementedError

    def _method(self, method: str | None = None) -> str:
        return choice("method", self.method if method is None else method, METHODS)

    def _draws(self) -> int:
        return integer("n_draws", self.n_draws, 1)

    def _uncertain_method(self) -> str:
        """Return the way to predict, or the linearised one if that knows no epistemic uncertainty."""
        method = self._method()
        return "linearised" if method == "mean" else method

    def ood_score(self, X: ArrayLike) -> Array:
        """Tell how unlike the samples of `fit` others are.

        The score compares the epistemic variance of a sample (mean over targets, each in units of its spread
        in training) with the one that nineteen in twenty samples of `fit` stay below; it is the root of the
        ratio. Above 1 a sample is unusual. It is the ``ood_score`` of ``bayespc serve``. With
        ``method="mean"``, which has no epistemic part, the linearised one is used. After `partial_fit`, whose
        samples are gone, it is the distance of the inputs: the root mean square of standardised inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        samples = self._samples(X)
        return np.array(self.model_.unlike(samples, self._uncertain_method(), self._draws()))

    def _notes(self) -> dict[str, Any]:
        """Return what the model file should remember of the estimator, beyond the core's settings."""
        names = getattr(self, "feature_names_in_", None)
        params = self.get_params(deep=False)
        kept = {name: params[name] for name in KEPT}
        if not (kept["random_state"] is None or isinstance(kept["random_state"], int)):
            # A source of chance is not kept, but what came of it.
            del kept["random_state"]
        if isinstance(params["hidden_layer_sizes"], int):
            kept["hidden_layer_sizes"] = params["hidden_layer_sizes"]
        notes = {"feature_names": None if names is None else [str(name) for name in names], "params": kept}
        if self.encoding_ is not None:
            notes |= {"encoded": True, "n_features": self.n_features_in_}
        return notes

    def _encoding(self) -> dict[str, Any]:
        """Return how a table becomes this model's input, in the words of the command."""
        if self.encoding_ is not None:
            return json.loads(self._encoding_text())
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        names = names or [f"x{i}" for i in range(self.n_features_in_)]
        means, _ = self.model_.input_scaling
        features = [
            {"name": name, "coding": {"kind": "number", "mean": float(mean)}}
            for name, mean in zip(names, means, strict=True)
        ]
        return {"features": features, "target": self._target_encoding(), "missing": self.missing}

    def _encoding_text(self) -> str:
        if self.encoding_ is None:
            return json.dumps(self._encoding())
        return self.encoding_.with_target(json.dumps(self._target_encoding())).json()

    def _target_encoding(self) -> dict[str, Any]:
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a safetensors file, the same as the command ``bayespc`` writes and reads.

        The file appears whole or not at all: it is written beside its place and renamed. Feature names,
        class labels and parameters are kept as JSON under ``notes["python"]``, and under
        ``notes["encoding"]`` as the command expects them.

        Parameters
        ----------
        path : str or path-like
            Where to write.

        See Also
        --------
        bayespc.load : Read it back.
        """
        self._check_fitted()
        model = self.model_.with_notes(self._file_notes())
        written_whole(Path(path), model.with_method(self._method(), self._draws()).to_bytes())

    def _file_notes(self) -> dict[str, str]:
        """Return the notes of the model file."""
        notes = dict(self.model_.notes)
        notes["python"] = json.dumps(self._notes(), default=_plain)
        notes.setdefault("encoding", self._encoding_text())
        return notes


def written_whole(target: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all: beside its place, then renamed."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _mean_curve(curves: list[list[float]]) -> list[float]:
    """Return the mean of each point over the networks that got so far."""
    means: list[float] = []
    for point in range(max(map(len, curves), default=0)):
        values = [curve[point] for curve in curves if point < len(curve)]
        means.append(sum(values) / len(values))
    return means


def _plain(value: Any) -> Any:
    """Return NumPy's numbers and arrays as JSON knows them."""
    return value.tolist()
