"""The predictive distribution of the targets of some samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._validation import Array, ArrayLike, checked_targets, seed_of


class Decomposition(NamedTuple):
    """Uncertainty in two parts.

    Attributes
    ----------
    aleatoric : ndarray
        What is noise: more data would not take it away.
    epistemic : ndarray
        What is not known yet: more data would take it away.
    """

    aleatoric: Array
    epistemic: Array


class PredictiveDistribution:
    """For each sample a mixture of Student-t or normal distributions over its targets.

    Returned by ``predict_dist``; arrays have the shape of ``predict``, that is ``(n_samples,)``, or
    ``(n_samples, n_outputs)`` if y had two dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from bayespc import BPCRegressor
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> y = np.sin(3 * X[:, 0])
    >>> dist = BPCRegressor(max_iter=30, random_state=0).fit(X, y).predict_dist(X[:3])
    >>> dist.mean.shape, dist.sample(10, random_state=0).shape
    ((3,), (10, 3))
    >>> bool(np.allclose(dist.cdf(dist.ppf(0.8)), 0.8))
    True
    """

    def __init__(self, core: _core.Predictive, one_dimensional: bool) -> None:
        self._core = core
        self._flat = one_dimensional

    def __len__(self) -> int:
        return self._core.n_samples

    def __repr__(self) -> str:
        core = self._core
        return (
            f"PredictiveDistribution(n_samples={core.n_samples}, n_outputs={core.n_targets}, "
            f"n_components={core.n_components})"
        )

    def _shaped(self, values: Array) -> Array:
        return values[..., 0] if self._flat else values

    def _targets(self, y: ArrayLike) -> Array:
        values = checked_targets(y) if np.ndim(y) else np.asarray(y, dtype=np.float64)
        if self._flat and values.ndim == 1:
            values = values[:, None]
        shape = (self._core.n_samples, self._core.n_targets)
        if values.ndim and values.shape != shape:
            expected = shape[:1] if self._flat else shape
            raise ValueError(f"y has shape {np.shape(y)}, expected {expected}")
        return np.broadcast_to(values, shape)

    @property
    def mean(self) -> Array:
        """Means."""
        return self._shaped(self._core.mean())

    @property
    def var(self) -> Array:
        """Variances, aleatoric and epistemic together."""
        return self._shaped(self._core.variance())

    @property
    def std(self) -> Array:
        """Standard deviations."""
        return np.sqrt(self.var)

    @property
    def aleatoric(self) -> Array:
        """Variances of the noise: more data would not take them away."""
        return self._shaped(self._core.aleatoric())

    @property
    def epistemic(self) -> Array:
        """Variances from not knowing the weights: more data would take them away."""
        return self._shaped(self._core.epistemic())

    @property
    def cov(self) -> Array:
        """Covariance between the outputs of each sample, ``(n_samples, n_outputs, n_outputs)``."""
        return self._core.covariance()

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density of each sample's targets, jointly if there are several.

        Parameters
        ----------
        y : array-like or float
            Targets, in the shape of ``mean``; a number stands for all.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._core.log_density(self._targets(y))

    def pdf(self, y: ArrayLike) -> Array:
        """Density of each sample's targets, jointly if there are several; see `logpdf`."""
        return np.exp(self.logpdf(y))

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each target is at most y.

        Parameters
        ----------
        y : array-like or float
            Targets, in the shape of ``mean``; a number stands for all.

        Returns
        -------
        ndarray in the shape of ``mean``
        """
        return self._shaped(self._core.cdf(self._targets(y)))

    def ppf(self, q: ArrayLike) -> Array:
        """Quantiles: the inverse of `cdf`.

        Parameters
        ----------
        q : float or sequence of float
            Probabilities between 0 and 1, exclusive.

        Returns
        -------
        ndarray in the shape of ``mean``, with one more axis at the end if q is a sequence
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1:
            raise ValueError(f"q must be a number or one-dimensional; got shape {levels.shape}")
        quantiles = self._shaped(self._core.quantile([float(level) for level in np.atleast_1d(levels)]))
        return np.moveaxis(quantiles, 0, -1) if levels.ndim else quantiles[0]

    def interval(self, coverage: float = 0.9) -> tuple[Array, Array]:
        """Bounds that leave out (1 − coverage)/2 on either side.

        Parameters
        ----------
        coverage : float, default=0.9
            Probability of the interval, between 0 and 1.

        Returns
        -------
        lower, upper : ndarray in the shape of ``mean``
        """
        low, high = self._shaped(self._core.interval(float(coverage)))
        return low, high

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score of each target, in its own unit; lower is better.

        Parameters
        ----------
        y : array-like or float
            Targets, in the shape of ``mean``.

        Returns
        -------
        ndarray in the shape of ``mean``
        """
        return self._shaped(self._core.crps(self._targets(y)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw targets, noise included.

        A draw takes one member or drawn network for all rows: it is a noisy copy of one function.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Source of chance.

        Returns
        -------
        ndarray of shape (n_samples, n_rows) or (n_samples, n_rows, n_outputs)
        """
        return self._shaped(self._core.sample(int(n_samples), seed_of(random_state)))
