"""The regressor for tables in parts."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np

from .._distribution import Decomposition
from .._regressor import BPCRegressor
from ._base import DaskEstimator
from ._lazy import Question
from ._parts import is_lazy, parts_of
from ._score import of_values, r_squared
from ._survey import Survey


class DaskBPCRegressor(DaskEstimator, BPCRegressor):
    """`bayespc.BPCRegressor` for dask arrays, dask dataframes and lists of delayed.

    Parameters are those of `bayespc.BPCRegressor`, and one more. Predictions are as lazy as X and of its
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
    bayespc.BPCRegressor : The same for what is in memory, with all parameters and attributes.
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = "auto",
        *,
        activation: str = "auto",
        prior_var: float | Literal["auto"] = "auto",
        bins: int | Literal["auto"] = "auto",
        noise: Literal["constant", "variance", "auto"] = "auto",
        search: Any = True,
        rule: Any = "feedback",
        max_iter: int = 100,
        batch_size: int | Literal["full"] = 32,
        n_members: int = 5,
        method: str = "linearised",
        n_draws: int = 20,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        calibration: Literal["none", "holdout", "conformal"] = "none",
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
            noise=noise,
            search=search,
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

    def _local_class(self) -> type[BPCRegressor]:
        return BPCRegressor

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
            Targets, of one or more columns.
        sample_weight : dask array, series or list of delayed, default=None
            Weight 2 counts a sample twice, weight 0 leaves it out.
        rounds : bool or None, default=None
            Whether to learn in rounds over the partitions, for tables larger than memory, or to put the table
            together on one worker and fit it there, with the same bits as `BPCRegressor`. None chooses by
            the memory of the workers.
        checkpoint : str or path-like or None, default=None
            A file to write what was learned to while rounds go on, and to go on from where it exists: the
            model has the same bits as if nothing had happened. A fit with a checkpoint is in rounds.
        checkpoint_every : int, default=1
            Rounds after which it is written.

        Returns
        -------
        self : DaskBPCRegressor
        """
        return self._fit(X, y, sample_weight, rounds, checkpoint, checkpoint_every)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from the partitions of a stream, in their order, in one pass.

        The same as `BPCRegressor.partial_fit` with one partition after the other, to the bit. While one is
        learned from, the next ones are read.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples.
        y : dask array, series or dataframe, or list of delayed
            Targets.
        sample_weight : dask array, series or list of delayed, default=None
            Weights of the samples.

        Returns
        -------
        self : DaskBPCRegressor
        """
        return self._partial_fit(parts_of(X, y, sample_weight), None)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the mean of the targets.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.
        return_std : bool, default=False
            Also return the standard deviation, noise included.
        return_cov : bool, default=False
            Also return the covariance between the outputs of each sample; for arrays in memory only.

        Returns
        -------
        mean : as lazy as X, of shape (n_samples,) or (n_samples, n_outputs)
        std : in the shape of mean, if return_std
        """
        if not is_lazy(X):
            return super().predict(X, return_std, return_cov)
        if return_cov:
            raise ValueError("return_cov is for arrays in memory: use to_local()")
        if return_std:
            return self._ask(X, self._question("predict", {"return_std": True}, ("mean", "std")))
        return self._ask(X, self._question("predict"))

    def predict_var(self, X: Any) -> Any:
        """Predict the variance of the targets, noise included.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.

        Returns
        -------
        As lazy as X, in the shape of `predict`.
        """
        return self._ask(X, self._question("predict_var")) if is_lazy(X) else super().predict_var(X)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Predict central intervals.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.
        coverage : float, default=0.9
            Probability of the interval.

        Returns
        -------
        lower, upper : as lazy as X, in the shape of `predict`
        """
        if not is_lazy(X):
            return super().predict_interval(X, coverage)
        return self._ask(X, self._question("predict_interval", {"coverage": coverage}, ("lower", "upper")))

    def predict_quantiles(self, X: Any, alpha: Any = (0.05, 0.5, 0.95)) -> Any:
        """Predict quantiles.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.
        alpha : float or sequence of float, default=(0.05, 0.5, 0.95)
            Probabilities, between 0 and 1.

        Returns
        -------
        As lazy as X, in the shape of `predict`, with one more axis at the end if alpha is a sequence; of a
        dataframe a dataframe, with a column for each probability and output.
        """
        if not is_lazy(X):
            return super().predict_quantiles(X, alpha)
        probabilities = np.asarray(alpha, dtype=np.float64)
        if probabilities.ndim > 1 or not ((probabilities > 0.0) & (probabilities < 1.0)).all():
            raise ValueError(f"alpha = {alpha!r}: probabilities are between 0 and 1")
        question = self._question("predict_quantiles", {"alpha": probabilities})
        last = tuple(probabilities.tolist()) if probabilities.ndim else ()
        return self._ask(X, question._replace(last=last))

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Any:
        """Draw targets from their predictive distribution, for arrays in memory.

        A draw is a noisy copy of one function: one network for all rows. Partitions that do not know of each
        other would each take their own, and the same seed would give each the same noise: this is not lazy.
        ``to_local().sample_y`` on the partitions, with a seed for each, says what a partition's rows may be.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Samples, in memory.
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=0
            Source of chance.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
        """
        if is_lazy(X):
            raise TypeError(
                "sample_y takes arrays in memory: a draw is of one network for all rows, and partitions do "
                "not know of each other's; map to_local().sample_y over them, with a random_state for each"
            )
        return super().sample_y(X, n_samples, random_state)

    def decompose(self, X: Any) -> Decomposition:
        """Split the predictive variance into aleatoric and epistemic parts.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.

        Returns
        -------
        aleatoric, epistemic : as lazy as X, in the shape of `predict`
        """
        if not is_lazy(X):
            return super().decompose(X)
        return Decomposition(*self._ask(X, self._question("decompose", {}, ("aleatoric", "epistemic"))))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return R² of the predictions, the mean over outputs.

        Parameters
        ----------
        X : dask array, dask dataframe or list of delayed
            Samples. Arrays in memory are answered at once.
        y : dask array, series or dataframe, or list of delayed
            Targets.
        sample_weight : dask array, series or list of delayed, default=None
            Weights of the samples.

        Returns
        -------
        float
        """
        if not is_lazy(X):
            return super().score(X, y, sample_weight)
        return self._score(parts_of(X, y, sample_weight), of_values, r_squared)

    def _question(
        self, method: str, options: dict[str, Any] | None = None, names: tuple[str, ...] = ()
    ) -> Question:
        self._check_fitted()
        columns: tuple[str, ...] = ()
        if self.y_ndim_ == 2:
            d = self.model_.n_targets
            columns = tuple(self._y_names or (f"y{i}" for i in range(d)))
        label = self._y_names[0] if self._y_names and not columns else None
        return Question(method, options or {}, names, columns, np.dtype(np.float64), label)

    def _prepare(self, local: Any, survey: Survey) -> None:
        local.y_ndim_ = np.ndim(survey.head[1])
