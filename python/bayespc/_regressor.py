"""The regressor."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin

from ._arrow import apart, has_own_targets
from ._base import BPCEstimator, Ready
from ._distribution import Decomposition, PredictiveDistribution
from ._explain import Explanation, explained
from ._settings import integer
from ._validation import Array, ArrayLike, checked_regression


class BPCRegressor(RegressorMixin, BPCEstimator):
    """Bayesian predictive coding regressor: a neural network that knows its uncertainty.

    Every layer has a conjugate posterior over its weights and noise; training is closed-form Hebbian
    updates, without gradients of a global loss. Inputs and targets are standardised inside.

    Parameters
    ----------
    hidden_layer_sizes : int, sequence of int or "auto", default="auto"
        Widths of the hidden layers; ``()`` is Bayesian linear regression. ``"auto"`` tries (50, 50), from 500
        samples on also twice as wide, and networks without hidden layers.
    activation : {"relu", "identity", "leaky_relu", "tanh", "sigmoid", "softplus", "gelu", "silu", "auto"}, \
            default="auto"
        Nonlinearity of the hidden layers; ``"auto"`` chooses between relu and silu.
    prior_var : float or "auto", default="auto"
        Prior variance of the weights, relative to the noise of their layer. Too wide overfits, too narrow
        underfits: the setting that matters most. ``"auto"`` chooses it by the density of held-out
        samples, for each network of the ensemble so that they do best together.
    bins : int or "auto", default="auto"
        Bins of the piecewise-linear code that networks see beside each column: a number per bin between two
        quantiles that says how far the column is through it. 0 is columns as they are. ``"auto"`` chooses
        among 0, 8 and 20.
    noise : {"constant", "variance", "auto"}, default="auto"
        Whether the noise is the same everywhere or depends on the input; ``"auto"`` chooses for each network.
    search : bool or dict, default=True
        Whether what is ``"auto"`` is chosen from the data, at the cost of some forty short fits. A mapping
        changes settings of the search by their names in the core, such as ``{"max_rows": 1000}``. Where
        nothing is searched, with False and in `partial_fit`, ``"auto"`` stands for (50, 50), relu, 10 and
        constant noise.
    rule : {"feedback", "relaxation"} or dict, default="feedback"
        How activities are inferred: by one backward sweep, or by descent on the energy. A mapping gives all
        settings of a rule, as in `bayespc.presets`.
    max_iter : int, default=100
        Passes over the data at most. At the default a search trains for 50 passes over 1000 samples, fewer
        over more; another number is kept.
    batch_size : int or "full", default=32
        Samples per batch. At the default a search takes larger batches of more samples, up to 512; another
        number is kept.
    n_members : int, default=5
        Networks in the ensemble, where nothing is searched. A search keeps so many of each of up to four
        kinds: one for each fold of the samples, trained on the others; twice as many below 600 samples. Fewer
        than five are trained on all samples.
    method : {"linearised", "mean", "monte_carlo", "moments"}, default="linearised"
        How to predict; may be changed after fitting.
    n_draws : int, default=20
        Networks drawn by ``method="monte_carlo"``.
    early_stopping : bool, default=False
        Stop when the density of held-out samples no longer improves, and keep the best network.
    validation_fraction : float, default=0.1
        Share of the samples held out for early stopping.
    n_iter_no_change : int, default=5
        Validations (one every five epochs) without improvement before stopping.
    calibration : {"none", "holdout", "conformal"}, default="none"
        What to hold a tenth of the samples out for: nothing; one factor on all predictive variances; or
        intervals that cover what they say, by split conformal prediction. The latter two do not go
        with `partial_fit` or a warm start, which hold nothing out.
    precision : {"float64", "float32"}, default="float64"
        Working precision of activities; posteriors are always float64.
    wide_layers : {"auto", "dense"} or dict, default="auto"
        How much is kept of the precisions of wide layers: ``"dense"`` all of it, at a memory of width²;
        ``{"blocks": b}`` blocks of b units, ``{"sketch": k}`` k directions, both at a memory that is linear
        in the width. ``"auto"`` keeps all of layers up to 2048 units, and directions of tables with many
        columns or far more than rows. Not for `partial_fit`, which wants ``"dense"`` after such a fit.
    time_limit : float or None, default=None
        Seconds that `fit` may take: the best that can be trained in them is kept, and a warning tells when
        they are over. The model then depends on how fast the machine is.
    columns : dict or None, default=None
        What to take columns for, by name (x0, x1, … of an array): ``"number"``, ``"category"``
        (``"category:50"`` keeps the 50 most frequent values), ``"bool"``, ``"time"``, ``"text"`` (its words
        are hashed; ``"text:32"`` into 32 inputs) or ``"ignore"``. Others are understood from their cells: see
        `columns_`.
    missing : {"encode", "error", "drop"}, default="encode"
        What to do about missing cells of X. They get the mean or a category of their own, and an input that
        tells so where training had any; or they are an error; or `fit` leaves their rows out.
    random_state : int, RandomState instance or None, default=None
        Source of initial weights, shuffles and draws.
    verbose : int, default=0
        Whether to show a progress bar: what is done, how much of it, the loss and the held-out log density.
    warm_start : bool, default=False
        Whether `fit` goes on from the last fit.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.
    columns_ : list of dict
        What was understood of each column: name, understood, values, missing, inputs, remark. Prints as a
        table.
    encoding_ : bayespc._core.Encoding or None
        How columns become inputs; None if X were plain numbers.
    n_iter_ : int
        Epochs run.
    loss_curve_ : list of float
        Mean squared error of each epoch on standardised targets, measured before each batch is learned.
    validation_scores_ : list of float
        Held-out log densities, mean over members, if `early_stopping`.
    y_ndim_ : int
        Dimensions of y, and so of predictions.
    plans_ : list of dict
        Network settings, epochs and temperature of each member: what was chosen.
    held_out_ : dict or None
        Scores of samples, each predicted by networks that had not learned from it: log_density, and rmse (one
        per target) and coverage_90, or accuracy. None where nothing was searched.
    candidates_ : list of dict
        What the search tried and the mean log density of the held-out samples by each; empty without a
        search.
    far_features_ : list of int
        Features that `partial_fit` has warned of: far from the first data, by which inputs are scaled.
    model_ : bayespc._core.Model
        The fitted model.

    See Also
    --------
    BPCClassifier : For classes.

    Examples
    --------
    >>> import numpy as np
    >>> from bayespc import BPCRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(100, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=100)
    >>> model = BPCRegressor(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> mean, std = model.predict([[0.0], [30.0]], return_std=True)
    >>> bool(std[1] > 5 * std[0])
    True
    """

    y_ndim_: int

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
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.prior_var = prior_var
        self.bins = bins
        self.noise = noise
        self.search = search
        self.rule = rule
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.n_members = n_members
        self.method = method
        self.n_draws = n_draws
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.calibration = calibration
        self.precision = precision
        self.wide_layers = wide_layers
        self.time_limit = time_limit
        self.columns = columns
        self.missing = missing
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to training data.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples. A frame is anything with named columns: of pandas, polars or pyarrow, or an Arrow stream.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), str or list of str
            Targets, or the names of their columns in X.
        sample_weight : array-like of shape (n_samples,) or str, default=None
            Weight 2 counts a sample twice, weight 0 leaves it out. A text names a column of X.

        Returns
        -------
        self : BPCRegressor
        """
        return self._fit_model(*self._ready(X, y, sample_weight))

    def _ready(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Ready:
        settings = self._settings()
        continued = self.warm_start and self._is_fitted()
        names = y
        named = has_own_targets(X, y, several=True)
        if named:
            X, y, sample_weight = apart(X, y, sample_weight)
        X, target, weights = checked_regression(self, X, y, sample_weight, reset=not continued)
        self.y_ndim_ = target.ndim
        if named and not continued:
            self._y_names = [names] if isinstance(names, str) else names
        return X, _two_dimensional(target), weights, settings

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from more data of a stream, in one pass.

        The first call fixes the scaling of the targets, so give it enough samples to estimate their spread;
        that of the inputs follows all samples so far. The posterior represents all samples of all
        calls, and of an earlier `fit`.

        A stream holds no samples out. So nothing is chosen: what is ``"auto"`` is taken as `search` says,
        with a warning; and with `calibration` other than "none" this is a ValueError. A model that `fit` has
        chosen goes on as it is. Inputs far from the first ones are warned of, once.

        Where y names columns of X, X is read in slices of 65 536 rows, and each is learned as by a call of
        its own: an Arrow stream may be longer than memory, and its batches do not matter.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples. A frame is anything with named columns: of pandas, polars or pyarrow, or an Arrow stream.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), str or list of str
            Targets, or the names of their columns in X.
        sample_weight : array-like of shape (n_samples,) or str, default=None
            Weights of the samples. A text names a column of X.

        Returns
        -------
        self : BPCRegressor
        """
        if has_own_targets(X, y, several=True):
            return self._partial_fit_slices(self.partial_fit, X, y, sample_weight)
        first = not self._is_fitted()
        X, target, weights = checked_regression(self, X, y, sample_weight, reset=first)
        if first:
            self.y_ndim_ = target.ndim
        return self._partial_fit_model(X, _two_dimensional(target), weights)

    def predict(
        self, X: ArrayLike, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Predict the mean of the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        return_std : bool, default=False
            Also return the standard deviation, noise included.
        return_cov : bool, default=False
            Also return the covariance between the outputs of each sample.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        std : ndarray in the shape of mean, if return_std
        cov : ndarray of shape (n_samples, n_outputs, n_outputs), if return_cov
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if not (return_std or return_cov):
            # The linearised mean is that of the mean network, which needs no backward sweep.
            method = "mean" if self.method == "linearised" else None
            return self._dist(X, method).mean
        dist = self._dist(X)
        return dist.mean, dist.std if return_std else dist.cov

    def predict_var(self, X: ArrayLike) -> Array:
        """Predict the variance of the targets, noise included.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._dist(X).var

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> tuple[Array, Array]:
        """Predict central intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        coverage : float, default=0.9
            Probability of the interval.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,) or (n_samples, n_outputs)

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from bayespc import BPCRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> lower, upper = BPCRegressor(max_iter=20, random_state=0).fit(X, y).predict_interval(X)
        >>> 0.8 < ((lower < y) & (y < upper)).mean() < 1.0
        np.True_
        """
        return self._dist(X).interval(coverage)

    def predict_quantiles(self, X: ArrayLike, alpha: ArrayLike = (0.05, 0.5, 0.95)) -> Array:
        """Predict quantiles.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        alpha : float or sequence of float, default=(0.05, 0.5, 0.95)
            Probabilities, between 0 and 1.

        Returns
        -------
        ndarray in the shape of `predict`, with one more axis at the end if alpha is a sequence
        """
        return self._dist(X).ppf(alpha)

    def predict_dist(self, X: ArrayLike) -> PredictiveDistribution:
        """Predict the whole distribution of the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        PredictiveDistribution
        """
        return self._dist(X)

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draw targets from their predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Samples.
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=0
            Source of chance.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
        """
        return np.moveaxis(self._dist(X).sample(n_samples, random_state), 0, -1)

    def decompose(self, X: ArrayLike) -> Decomposition:
        """Split the predictive variance into aleatoric and epistemic parts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        aleatoric, epistemic : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Variances that add to `predict_var`. With ``method="mean"`` the linearised ones.
        """
        dist = self._dist(X, self._uncertain_method())
        return Decomposition(dist.aleatoric, dist.epistemic)

    def explain(
        self, X: ArrayLike, of: str = "mean", *, target: int | None = None, baseline: ArrayLike | None = None
    ) -> Explanation:
        """Tell what each column of a sample has to do with its prediction.

        Integrated gradients of the linearised predictor, along the straight line from a baseline to the
        sample, exactly: ``values.sum(axis=1) + base`` is the prediction.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Samples.
        of : {"mean", "aleatoric", "epistemic"}, default="mean"
            What to explain: the mean, the variance of the noise, or the variance that more data would take
            away (as `decompose` has them).
        target : int, default=None
            Number of the output; if not given, all of them where there are several.
        baseline : array-like or frame of shape (n_baselines, n_features), default=None
            Rows to start from; values and base are means over them. If not given, the row that is average in
            every input.

        Returns
        -------
        Explanation
            With an axis for the outputs at the end if there are several and `target` is None.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_diabetes
        >>> from bayespc import BPCRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = BPCRegressor(search=False, max_iter=10, random_state=0).fit(X, y)
        >>> why = model.explain(X[:5])
        >>> bool(np.allclose(why.values.sum(axis=1) + why.base, model.predict(X[:5])))
        True
        """
        self._check_fitted()
        n_targets = self.model_.n_targets
        if target is not None:
            return explained(self, X, of, [integer("target", target, 0)], None, baseline)
        names = None if self.y_ndim_ == 1 else self._y_names or [f"y{k}" for k in range(n_targets)]
        return explained(self, X, of, range(n_targets), names, baseline)

    def free_energy(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> list[Array]:
        """Compute the variational free energy of the layers of each member, at their forward activities.

        Summed over the layer of a model without hidden layers (``hidden_layer_sizes=()``,
        ``noise="constant"``) it is the negative log evidence of the data it was fitted to: lower is better
        between such models of the same data. With hidden layers it compares nothing: each layer is scored by
        activities of the network's own making.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        list of ndarray of shape (n_layers, 2)
            For each member complexity and expected log-likelihood of its layers, in nats, on standardised
            data; the free energy is the first column minus the second.
        """
        self._check_fitted()
        X, target, weights = checked_regression(self, X, y, sample_weight, reset=False)
        return self._free_energy(X, _two_dimensional(target), weights)

    def _dist(self, X: ArrayLike, method: str | None = None) -> PredictiveDistribution:
        predictive = self._predictive(X, method)
        return PredictiveDistribution(predictive, self.y_ndim_ == 1)

    def _remember(self, notes: dict[str, Any]) -> None:
        self.y_ndim_ = int(notes.get("y_ndim", 1 if self.model_.n_targets == 1 else 2))

    def _notes(self) -> dict[str, Any]:
        return super()._notes() | {"y_ndim": self.y_ndim_}

    def _target_encoding(self) -> dict[str, Any]:
        d = self.model_.n_targets
        names = self._y_names or (["y"] if d == 1 else [f"y{i}" for i in range(d)])
        return {"task": "regression", "columns": names}


def _two_dimensional(y: Array) -> Array:
    return y[:, None] if y.ndim == 1 else y
