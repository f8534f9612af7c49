"""Tables with holes: filling them in, their density, and more rows like theirs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal, Self, cast, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _core
from ._progress import ProgressBar
from ._settings import integer, number
from ._validation import Array, ArrayLike, seed_of

_NOTE = "python"
"""What Python knows of a model and the core does not: names of columns."""


class LatentEstimator(BaseEstimator):
    """What `BPCImputer` and `BPCDensity` share: one latent model of a table."""

    n_latents: int | Literal["auto"]
    n_parts: int | Literal["auto"]
    max_iter: int
    tol: float
    random_state: Any
    verbose: int

    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    model_: _core.LatentModel

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn the table, from the cells that are there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The table: numbers, with NaN where a cell is missing.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        self
            The fitted estimator.
        """
        table = self._checked(X, reset=True)
        empty = np.flatnonzero(np.isnan(table).all(axis=0))
        if len(empty):
            names = getattr(self, "feature_names_in_", None)
            name = repr(names[empty[0]]) if names is not None else str(empty[0])
            raise ValueError(f"column {name} of X has no value at all: leave it out")
        settings = json.dumps(
            {
                "latents": _number("n_latents", self.n_latents, 0),
                "parts": _number("n_parts", self.n_parts, 1),
                "iterations": integer("max_iter", self.max_iter, 1),
                "tolerance": number("tol", self.tol, 0.0, float("inf")),
                "seed": seed_of(self.random_state),
            }
        )
        if self.verbose:
            with ProgressBar(type(self).__name__) as bar:
                self.model_ = _core.LatentModel.fit(table, settings, bar)
        else:
            self.model_ = _core.LatentModel.fit(table, settings)
        return self

    @property
    def n_latents_(self) -> int:
        """Number of latents: what was given or chosen."""
        check_is_fitted(self)
        return self.model_.n_latents

    @property
    def n_parts_(self) -> int:
        """Number of linear parts: what was given or chosen."""
        check_is_fitted(self)
        return self.model_.n_parts

    @property
    def n_iter_(self) -> int:
        """Steps of learning it took."""
        check_is_fitted(self)
        return self.model_.n_iterations

    @property
    def candidates_(self) -> list[dict[str, Any]]:
        """What was tried: latents, parts and the mean log density of a cell taken out, standardised."""
        check_is_fitted(self)
        return json.loads(self.model_.candidates)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a safetensors file, which ``load`` and ``bayespc generate`` read.

        Parameters
        ----------
        path : str or path-like
            The file. It is there whole or not at all.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        note = json.dumps({"feature_names": None if names is None else [str(name) for name in names]})
        target = Path(path)
        draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
        try:
            draft.write_bytes(self.model_.with_note(_NOTE, note).to_bytes())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that ``save`` or ``bayespc impute --model-out`` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        estimator
            Fitted. Of a file of the command its columns are those the command made of the table: numbers as
            they are, and one for each category.
        """
        model = _core.latent_from_bytes(Path(path).read_bytes())
        estimator = cls()
        estimator.model_ = model
        estimator.n_features_in_ = model.n_columns
        note = json.loads(model.notes).get(_NOTE)
        names = json.loads(note).get("feature_names") if note else None
        if names is not None and len(names) == model.n_columns:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return estimator

    def _checked(self, X: ArrayLike, reset: bool) -> Array:
        if not reset:
            check_is_fitted(self)
        rules: dict[str, Any] = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
        return cast(Array, validate_data(self, X, reset=reset, **rules))


class BPCImputer(OneToOneFeatureMixin, TransformerMixin, LatentEstimator):
    """Fill in missing cells from the others of their row, and say how sure that is.

    Rows come from a few latents through linear layers with a posterior over weights and noise; several layers
    bend where the table does. All columns are alike: there is no target. Cells are filled in by their mean
    given the others, with their deviation, or by draws for multiple imputation. The mean is cut off at the
    column's least and largest value, and shrunk to the column's as far as cells taken out support, unless
    both `n_latents` and `n_parts` are given.

    Parameters
    ----------
    n_latents : int or "auto", default="auto"
        Number of latents. ``"auto"`` chooses it by the density of cells taken out.
    n_parts : int or "auto", default="auto"
        Number of linear layers; 1 is factor analysis. ``"auto"`` chooses it the same way.
    max_iter : int, default=100
        Steps of learning at most.
    tol : float, default=1e-3
        Learning ends when the mean log density of a row rises by less.
    sample_posterior : bool, default=False
        Whether `transform` draws cells instead of giving their mean: fit with several ``random_state`` for
        multiple imputation, or use `draw`.
    random_state : int, RandomState instance or None, default=None
        Source of everything drawn.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.
    model_ : bayespc._core.LatentModel
        The fitted model.

    See Also
    --------
    BPCDensity : The same model, for densities and new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from bayespc import BPCImputer
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(100, 1))
    >>> X = np.hstack([x, 2 * x + 0.1 * rng.normal(size=(100, 1))])
    >>> X[0] = [1.5, np.nan]
    >>> imputer = BPCImputer(random_state=0).fit(X)
    >>> filled, std = imputer.transform(X, return_std=True)
    >>> bool(abs(filled[0, 1] - 3.0) < 0.2 and 0.05 < std[0, 1] < 0.2)
    True
    >>> imputer.draw(X, 5, random_state=0).shape
    (5, 100, 2)
    """

    def __init__(
        self,
        n_latents: int | Literal["auto"] = "auto",
        n_parts: int | Literal["auto"] = "auto",
        *,
        max_iter: int = 100,
        tol: float = 1e-3,
        sample_posterior: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_latents = n_latents
        self.n_parts = n_parts
        self.max_iter = max_iter
        self.tol = tol
        self.sample_posterior = sample_posterior
        self.random_state = random_state
        self.verbose = verbose

    @overload
    def transform(self, X: ArrayLike, return_std: Literal[False] = False) -> Array: ...
    @overload
    def transform(self, X: ArrayLike, return_std: Literal[True]) -> tuple[Array, Array]: ...
    def transform(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Fill in missing cells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, with NaN where a cell is missing.
        return_std : bool, default=False
            Whether to return deviations as well.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features)
            X, and for a missing cell its best guess given the others of its row, or a draw if
            `sample_posterior`.
        std : ndarray of shape (n_samples, n_features)
            Deviation of each cell from its mean: 0 where it was there. Only if `return_std`.
        """
        table = self._checked(X, reset=False)
        filled, std = self.model_.impute(table)
        if self.sample_posterior:
            filled = self.model_.draw_missing(table, 1, seed_of(self.random_state))[0]
        return (filled, std) if return_std else filled

    def draw(self, X: ArrayLike, n_draws: int = 10, random_state: Any = None) -> npt.NDArray[np.float64]:
        """Draw missing cells, those of a row together, for multiple imputation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, with NaN where a cell is missing.
        n_draws : int, default=10
            How many tables.
        random_state : int, RandomState instance or None, default=None
            Source of the draws; None is that of the estimator.

        Returns
        -------
        ndarray of shape (n_draws, n_samples, n_features)
            Tables without holes, which differ in the cells that were missing.
        """
        table = self._checked(X, reset=False)
        state = self.random_state if random_state is None else random_state
        return self.model_.draw_missing(table, integer("n_draws", n_draws, 1), seed_of(state))


class BPCDensity(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, LatentEstimator):
    """Density of a table's rows, with or without holes, and more rows like them.

    The same model as `BPCImputer`: rows come from a few latents through linear layers with a posterior over
    weights and noise.

    Parameters
    ----------
    n_latents : int or "auto", default="auto"
        Number of latents. ``"auto"`` chooses it by the density of cells taken out.
    n_parts : int or "auto", default="auto"
        Number of linear layers; 1 is factor analysis. ``"auto"`` chooses it the same way.
    max_iter : int, default=100
        Steps of learning at most.
    tol : float, default=1e-3
        Learning ends when the mean log density of a row rises by less.
    random_state : int, RandomState instance or None, default=None
        Source of everything drawn.
    verbose : int, default=0
        Whether to show a progress bar.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.
    model_ : bayespc._core.LatentModel
        The fitted model.

    See Also
    --------
    BPCImputer : The same model, for missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from bayespc import BPCDensity
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, size=300)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> density = BPCDensity(random_state=0).fit(X)
    >>> on_the_circle, inside = density.score_samples([[1.0, 0.0], [0.0, 0.0]])
    >>> bool(on_the_circle > inside + 2)
    True
    >>> density.sample(5, random_state=0).shape
    (5, 2)
    """

    def __init__(
        self,
        n_latents: int | Literal["auto"] = "auto",
        n_parts: int | Literal["auto"] = "auto",
        *,
        max_iter: int = 100,
        tol: float = 1e-3,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_latents = n_latents
        self.n_parts = n_parts
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _n_features_out(self) -> int:
        return self.model_.n_latents

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the log density of each row, in the units of the table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; of a row with missing cells it is the density of the others.

        Returns
        -------
        ndarray of shape (n_samples,)
            log p of each row.
        """
        table = self._checked(X, reset=False)
        return self.model_.log_density(table)

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Return the mean log density of a row, as scikit-learn's mixtures do.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        float
            Mean of `score_samples`.
        """
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw new rows.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Source of the draws; None is that of the estimator.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows from the model.
        """
        check_is_fitted(self)
        state = self.random_state if random_state is None else random_state
        return self.model_.sample(integer("n_samples", n_samples, 1), seed_of(state))

    def transform(self, X: ArrayLike) -> Array:
        """Return the latents of each row, under the one linear layer of the whole table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, with NaN where a cell is missing.

        Returns
        -------
        ndarray of shape (n_samples, n_latents_)
            Mean of the latents given the row.
        """
        table = self._checked(X, reset=False)
        return self.model_.latents(table)

    def parts(self, X: ArrayLike) -> Array:
        """Return the probability that each row comes from each linear part.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, with NaN where a cell is missing.

        Returns
        -------
        ndarray of shape (n_samples, n_parts_)
            Rows sum to one.
        """
        table = self._checked(X, reset=False)
        return self.model_.memberships(table)


def _number(name: str, value: Any, least: int) -> int | None:
    if isinstance(value, str):
        if value == "auto":
            return None
        raise ValueError(f'{name} must be a number or "auto"; got {value!r}')
    return integer(name, value, least)
