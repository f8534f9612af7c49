"""The classifier for tables in parts."""

from __future__ import annotations

import os
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from .._classifier import BPCClassifier
from .._distribution import Decomposition
from ._base import DaskEstimator
from ._lazy import Question
from ._parts import is_lazy, parts_of
from ._score import accuracy, of_labels
from ._survey import Survey


class DaskBPCClassifier(DaskEstimator, BPCClassifier):
    """`bayespc.BPCClassifier` for dask arrays, dask dataframes and lists of delayed.

    Parameters are those of `bayespc.BPCClassifier`, and one more. Predictions are as lazy as X and of its
    kind: arrays with its chunks, series and dataframes with its index.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        Connection to the cluster; None is the current one. With an asynchronous client, `fit`, `partial_fit`
        and `score` are awaited. It is not pickled.

    Attributes
    ----------
    passes_ : list of dict
        What every pass of a fit in rounds took: pass, seconds, whether it reads the parts, and the bytes of
        its statistics and of the model. Other attributes are those of the local estimator.

    See Also
    --------
    bayespc.BPCClassifier : The same for what is in memory, with all parameters and attributes.
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        activation: str = "auto",
        prior_var: float | Literal["auto"] = "auto",
        bins: int | Literal["auto"] = "auto",
        likelihood: Literal["one_hot", "categorical", "auto"] = "auto",
        search: Any = True,
        class_weight: Any = None,
        rule: Any = "feedback",
        max_iter: int = 100,
        batch_size: int | Literal["full"] = 32,
        n_members: int = 5,
        method: str = "linearised",
        n_draws: int = 20,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        calibration: Literal["none", "holdout"] = "none",
        precision: Literal["float64", "float32"] = "float64",
        wide_layers: Any = "auto",
        time_limit: float | None = None,
        columns: Any = None,
        missing: Literal["encode", "error", "drop"] = "encode",
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        client: Any = None,
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            activation=activation,
            prior_var=prior_var,
            bins=bins,
            likelihood=likelihood,
            search=search,
            class_weight=class_weight,
            rule=rule,
            max_iter=max_iter,
            batch_size=batch_size,
            n_members=n_members,
            method=method,
            n_draws=n_draws,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            calibration=calibration,
            precision=precision,
            wide_layers=wide_layers,
            time_limit=time_limit,
            columns=columns,
            missing=missing,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
        )
        self.client = client

    def _local_class(self) -> type[BPCClassifier]:
        return BPCClassifier

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        rounds: bool | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
    ) -> Any:
        """Fit to training data.

        Rows are matched by their place: partition i of y belongs to partition i of X. Nothing is kept on the
        workers; what was read is dropped once it has said what it has to say.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. An array must not be cut along its columns.
        y : dask array, series or dataframe, or list of delayed
            Labels, of any type that sorts.
        sample_weight : dask array, series or list of delayed, default=None
            Weight 2 counts a sample twice, weight 0 leaves it out.
        rounds : bool or None, default=None
            Whether to learn in rounds over the partitions, for tables larger than memory, or to put the table
            together on one worker and fit it there, with the same bits as `BPCClassifier`. None chooses by
            the memory of the workers.
        checkpoint : str or path-like or None, default=None
            A file to write what was learned to while rounds go on, and to go on from where it exists: the
            model has the same bits as if nothing had happened. A fit with a checkpoint is in rounds.
        checkpoint_every : int, default=1
            Rounds after which it is written.

        Returns
        -------
        self : DaskBPCClassifier
        """
        return self._fit(X, y, sample_weight, rounds, checkpoint, checkpoint_every)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from the partitions of a stream, in their order, in one pass.

        The same as `BPCClassifier.partial_fit` with one partition after the other, to the bit. While one is
        learned from, the next ones are read.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples.
        y : dask array, series or list of delayed
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; required in the first call.
        sample_weight : dask array, series or list of delayed, default=None
            Weights of the samples.

        Returns
        -------
        self : DaskBPCClassifier
        """
        return self._partial_fit(parts_of(X, y, sample_weight), classes)

    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.

        Returns
        -------
        As lazy as X, of shape (n_samples, n_classes), in the order of ``classes_``.
        """
        if not is_lazy(X):
            return super().predict_proba(X)
        self._check_fitted()
        return self._ask(X, Question("predict_proba", {}, (), tuple(self.classes_.tolist())))

    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.

        Returns
        -------
        As lazy as X, of shape (n_samples, n_classes).
        """
        if not is_lazy(X):
            return super().predict_log_proba(X)
        self._check_fitted()
        return self._ask(X, Question("predict_log_proba", {}, (), tuple(self.classes_.tolist())))

    def predict(self, X: Any) -> Any:
        """Predict the most probable class.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.

        Returns
        -------
        As lazy as X, of shape (n_samples,).
        """
        if not is_lazy(X):
            return super().predict(X)
        self._check_fitted()
        label = self._y_names[0] if self._y_names else None
        return self._ask(X, Question("predict", {}, dtype=self.classes_.dtype, label=label))

    def decompose(self, X: Any) -> Decomposition:
        """Split the entropy of the prediction into aleatoric and epistemic parts, in nats.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.

        Returns
        -------
        aleatoric, epistemic : as lazy as X, of shape (n_samples,)
        """
        if not is_lazy(X):
            return super().decompose(X)
        return Decomposition(*self._ask(X, Question("decompose", {}, ("aleatoric", "epistemic"))))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return the share of labels that are predicted.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.
        y : dask array, series or list of delayed
            Labels.
        sample_weight : dask array, series or list of delayed, default=None
            Weights of the samples.

        Returns
        -------
        float
        """
        if not is_lazy(X):
            return super().score(X, y, sample_weight)
        return self._score(parts_of(X, y, sample_weight), of_labels, accuracy)

    def _prepare(self, local: Any, survey: Survey) -> None:
        classes = cast("npt.NDArray[Any]", survey.classes)
        counts = cast("npt.NDArray[np.int64]", survey.counts)
        local.classes_ = classes
        if isinstance(local.class_weight, str):
            # How frequent classes are is known of all parts together.
            weights = survey.n_rows / (len(classes) * counts)
            local.class_weight = dict(zip(classes.tolist(), weights.tolist(), strict=True))
