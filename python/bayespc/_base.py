"""What the regressor and the classifier share: settings, fitting, streaming, files."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from . import _core
from ._progress import ProgressBar
from ._settings import METHODS, choice, method_params, method_settings, model_settings, search_settings
from ._validation import Array, ArrayLike, Samples, checked_samples, seed_of

Targets = npt.NDArray[np.float64] | npt.NDArray[np.int64]

_CANONICAL_ROWS = 1024
"""Samples of a full batch that are worth sorting; of more, a copy would cost memory."""


class BPCEstimator(BaseEstimator):
    """Base of `BPCRegressor` and `BPCClassifier`."""

    model_: _core.Model
    loss_curve_: list[float]
    validation_scores_: list[float]
    n_iter_: int
    free_energy_: float
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    method: str
    n_draws: int
    max_iter: int
    batch_size: int
    early_stopping: bool
    random_state: Any
    verbose: int
    warm_start: bool

    def _n_classes(self) -> int:
        return 0

    def _settings(self) -> str:
        params = self.get_params(deep=False)
        return json.dumps(model_settings(params, seed_of(self.random_state)))

    def _is_fitted(self) -> bool:
        return hasattr(self, "model_")

    def _fit_model(self, X: Samples, target: Targets, weights: Array | None, settings: str) -> Self:
        """Fit the core's model, from the start or, on a warm start, from the last one."""
        if weights is not None and not weights.all():
            # A sample of weight zero is as good as absent: it must not change how batches are drawn.
            kept = weights > 0.0
            X, target, weights = X[kept], target[kept], weights[kept]
            if bool(np.all(weights == 1.0)):
                weights = None
        if len(X) <= min(self.batch_size, _CANONICAL_ROWS) and not self.early_stopping:
            X, target, weights = _canonical(X, target, weights)
        previous = self.model_ if self.warm_start and self._is_fitted() else None
        classes = self._n_classes()
        chosen = search_settings(self.get_params(deep=False))
        search = None if chosen is None else json.dumps(chosen)
        if self.verbose:
            with ProgressBar(type(self).__name__) as bar:
                fitted = _core.Model.fit(X, target, classes, weights, settings, bar, previous, search)
        else:
            fitted = _core.Model.fit(X, target, classes, weights, settings, None, previous, search)
        self.model_, interrupted = fitted
        self._read_reports()
        # Whoever interrupts wants to go on, not to wait for one more pass over the data.
        self.free_energy_ = float("nan") if interrupted else self._free_energy(X, target, weights)
        if interrupted:
            warnings.warn("Training interrupted by user.", stacklevel=3)
        elif "warning" in self.model_.notes:
            warnings.warn(self.model_.notes["warning"], stacklevel=3)
        elif self.early_stopping and self.n_iter_ == self.max_iter:
            warnings.warn(
                f"Maximum iterations ({self.max_iter}) reached and the held-out density was still improving.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _partial_fit_model(self, X: Samples, target: Targets, weights: Array | None) -> Self:
        """Learn from more data; the first call makes the model and fixes the scaling."""
        classes = self._n_classes()
        if not self._is_fitted():
            self.model_ = _core.Model.for_stream(X, target, classes, self._settings())
            self.loss_curve_, self.validation_scores_, self.n_iter_ = [], [], 0
        self.model_ = self.model_.partial_fit(X, target, classes, weights)
        self.n_iter_ += 1
        self.free_energy_ = self._free_energy(X, target, weights)
        return self

    def _read_reports(self) -> None:
        reports: list[dict[str, Any]] = json.loads(self.model_.reports)
        longest = max((len(report["loss"]) for report in reports), default=0)
        # Members may stop early; each epoch is averaged over those that ran it.
        self.loss_curve_ = []
        for epoch in range(longest):
            losses: list[float] = [r["loss"][epoch] for r in reports if epoch < len(r["loss"])]
            self.loss_curve_.append(sum(losses) / len(losses))
        self.validation_scores_ = [score for _, score in reports[0]["validation"]] if reports else []
        self.n_iter_ = max((report["epochs"] for report in reports), default=0)

    def _free_energy(self, X: Samples, target: Targets, weights: Array | None) -> float:
        parts = self.model_.free_energy(X, target, self._n_classes(), weights)
        totals: Array = (parts[..., 0] - parts[..., 1]).sum(axis=1)
        return float(totals.mean())

    def _predictive(self, X: ArrayLike, method: str | None = None) -> _core.Predictive:
        check_is_fitted(self, "model_")
        samples = checked_samples(self, X)
        return self.model_.predict(samples, json.dumps(self._method(method)))

    def _method(self, method: str | None = None) -> Any:
        settings = json.loads(self.model_.settings)
        asked = method_settings(
            self.method if method is None else method, self.n_draws, settings["training"]["seed"]
        )
        # What the keywords cannot say, such as the seed of the draws, is as the model was fitted.
        own = settings["method"]
        return own if method_params(own) == method_params(asked) else asked

    def _uncertain_method(self) -> str:
        """Return the way to predict, or the linearised one if that knows no epistemic uncertainty."""
        method = choice("method", self.method, METHODS)
        return "linearised" if method == "mean" else method

    def ood_score(self, X: ArrayLike) -> Array:
        """Tell how far samples are from what was learned.

        The score is the epistemic share of the predictive variance,

            trace(epistemic) / trace(epistemic + aleatoric),

        each target in units of its spread in training. It lies between 0 (what is left is noise) and 1
        (nothing is known here), and grows with the leverage φᵀVφ of a sample in every layer. With
        ``method="mean"``, which has no epistemic part, the linearised one is used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        predictive = self._predictive(X, self._uncertain_method())
        _, scale = self.model_.target_scaling
        epistemic = (predictive.epistemic() / scale**2).sum(axis=1)
        aleatoric = (predictive.aleatoric() / scale**2).sum(axis=1)
        return epistemic / (epistemic + aleatoric)

    def _notes(self) -> dict[str, Any]:
        """Return what the model file should remember of the estimator, beyond the core's settings."""
        names = getattr(self, "feature_names_in_", None)
        return {"feature_names": None if names is None else [str(name) for name in names]}

    def _encoding(self) -> dict[str, Any]:
        """Return how a table becomes this model's input, in the words of the command."""
        names = self._notes()["feature_names"] or [f"x{i}" for i in range(self.n_features_in_)]
        means, _ = self.model_.input_scaling
        features = [
            {"name": name, "coding": {"kind": "number", "mean": float(mean)}}
            for name, mean in zip(names, means, strict=True)
        ]
        return {"features": features, "target": self._target_encoding(), "missing": "error"}

    def _target_encoding(self) -> dict[str, Any]:
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a safetensors file, the same as the command ``bayespc`` writes and reads.

        The file appears whole or not at all: it is written beside its place and renamed. Feature names and
        class labels are kept as JSON under ``notes["python"]``, and under ``notes["encoding"]`` as the
        command expects them.

        Parameters
        ----------
        path : str or path-like
            Where to write.

        See Also
        --------
        bayespc.load : Read it back.
        """
        check_is_fitted(self, "model_")
        notes = dict(self.model_.notes)
        notes["python"] = json.dumps(self._notes())
        notes.setdefault("encoding", json.dumps(self._encoding()))
        bytes_ = self.model_.with_notes(notes).with_method(json.dumps(self._method())).to_bytes()
        target = Path(path)
        draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with draft.open("wb") as file:
                file.write(bytes_)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


def _canonical(X: Samples, target: Targets, weights: Array | None) -> tuple[Samples, Targets, Array | None]:
    """Sort the samples of a full batch and merge equal ones into one that weighs as much.

    Their order and repetition carry no information there, and in this form not even rounding depends on them.
    """
    table = np.column_stack([X, target])
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    merged = np.bincount(group.ravel(), weights).astype(np.float64)
    return X[first], target[first], None if bool(np.all(merged == 1.0)) else merged
