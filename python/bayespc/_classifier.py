"""The classifier."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
)

from . import _core
from ._base import BPCEstimator
from ._distribution import Decomposition, PredictiveDistribution
from ._validation import Array, ArrayLike, checked_classification, checked_weights, labels_of


class BPCClassifier(ClassifierMixin, BPCEstimator):
    """Bayesian predictive coding classifier: a neural network that knows its uncertainty.

    Classes are learned as one-hot codes with Gaussian noise, and the probability of a class is the predictive
    density at its code, among all codes; or they are learned as logits.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(50, 50)
        Widths of the hidden layers. Where `prior_scale`, `activation`
        or another parameter is ``"auto"`` and these are left as they are, each network may be twice as wide
        if held-out samples are clearly better for it, from 500 samples on.
    activation : {"relu", "identity", "leaky_relu", "tanh", "sigmoid", "softplus", "gelu", "silu", "auto"}, \
            default="relu"
        Nonlinearity of the hidden layers; ``"auto"`` chooses between relu and silu like `prior_scale`, for
        each network.
    prior_scale : float or "auto", default=0.3
        Prior variance of the weights, relative to the noise of their layer. Too wide overfits, too narrow
        underfits: the one setting worth a search. With ``"auto"`` it is chosen by the likelihood of held-out
        samples, together with the temperature of the probabilities, for each network of the ensemble so that
        they do best together, at the cost of some ten fits; `partial_fit` cannot choose and takes 10.
    likelihood : {"one_hot", "categorical", "auto"}, default="one_hot"
        Whether classes are learned as one-hot codes with Gaussian noise, or as logits; ``"auto"`` chooses
        like `prior_scale`.
    rule : {"feedback", "relaxation"} or dict, default="feedback"
        How activities are inferred: by one backward sweep, or by descent on the energy. A mapping gives all
        settings of a rule, as in `bayespc.presets`.
    max_iter : int, default=100
        Passes over the data.
    batch_size : int, default=32
        Samples per batch.
    n_members : int, default=1
        Networks in the ensemble; they differ by seed, and in what is chosen for each.
    method : {"linearised", "mean", "monte_carlo", "moments"}, default="linearised"
        How to predict; may be changed after fitting.
    n_draws : int, default=20
        Networks drawn by ``method="monte_carlo"``, and draws of `decompose`.
    early_stopping : bool, default=False
        Stop when the density of held-out samples no longer improves, and keep the best network.
    validation_fraction : float, default=0.1
        Share of the samples held out for early stopping.
    n_iter_no_change : int, default=5
        Validations (one every five epochs) without improvement before stopping.
    calibration : {"none", "holdout"}, default="none"
        Whether to hold a tenth of the samples out for the temperature of the probabilities.
        "holdout" does not go with `partial_fit` or a warm start, which hold nothing out.
    precision : {"float64", "float32"}, default="float64"
        Working precision of activities; posteriors are always float64.
    random_state : int, RandomState instance or None, default=None
        Source of initial weights, shuffles and draws.
    verbose : int, default=0
        Whether to show a progress bar.
    warm_start : bool, default=False
        Whether `fit` goes on from the last fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.
    n_iter_ : int
        Epochs run.
    loss_curve_ : list of float
        Mean squared error of each epoch on the codes, measured before each batch is learned.
    validation_scores_ : list of float
        Held-out log densities of the first member, if `early_stopping`.
    free_energy_ : float
        Variational free energy in nats of all layers at their forward activities, mean over members, on the
        data given last, samples counted by their weights; lower is better between models of the same data.
        NaN if training was interrupted.
    model_ : bayespc._core.Model
        The fitted model.

    See Also
    --------
    BPCRegressor : For real-valued targets.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from bayespc import BPCClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BPCClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    classes_: npt.NDArray[Any]

    def __init__(
        self,
        hidden_layer_sizes: Any = (50, 50),
        *,
        activation: str = "relu",
        prior_scale: float | Literal["auto"] = 0.3,
        likelihood: Literal["one_hot", "categorical", "auto"] = "one_hot",
        rule: Any = "feedback",
        max_iter: int = 100,
        batch_size: int = 32,
        n_members: int = 1,
        method: str = "linearised",
        n_draws: int = 20,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        calibration: Literal["none", "holdout"] = "none",
        precision: Literal["float64", "float32"] = "float64",
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.prior_scale = prior_scale
        self.likelihood = likelihood
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
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def _n_classes(self) -> int:
        return len(self.classes_)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels, of any type that sorts.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight 2 counts a sample twice, weight 0 leaves it out.

        Returns
        -------
        self : BPCClassifier
        """
        settings = self._settings()
        continued = self.warm_start and self._is_fitted()
        X, y = checked_classification(self, X, y, reset=not continued)
        classes = labels_of(y)
        if continued and not np.array_equal(classes, self.classes_):
            raise ValueError(
                "warm_start can only be used where `y` has the same classes as in the previous "
                f"call to fit. Previously got {self.classes_}, `y` has {classes}"
            )
        self.classes_ = classes
        return self._fit_model(X, self._encoded(y), checked_weights(sample_weight, X), settings)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more data of a stream, in one pass.

        The first call fixes the scaling of the inputs, so give it enough samples to tell their spread. The
        posterior represents all samples of all calls, and of an earlier `fit`.

        A stream holds no samples out: with `calibration` other than "none" this is a ValueError.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come; required in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self : BPCClassifier
        """
        first = not self._is_fitted()
        X, y = checked_classification(self, X, y, reset=first)
        _check_partial_fit_first_call(self, classes)
        return self._partial_fit_model(X, self._encoded(y), checked_weights(sample_weight, X))

    def predict_proba(self, X: ArrayLike) -> Array:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._predictive(X).class_probabilities(self.model_.temperature)

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> npt.NDArray[Any]:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_dist(self, X: ArrayLike) -> PredictiveDistribution:
        """Predict the distribution of the one-hot codes, from which the probabilities come.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        PredictiveDistribution
        """
        return PredictiveDistribution(self._predictive(X), one_dimensional=False)

    def decompose(self, X: ArrayLike) -> Decomposition:
        """Split the entropy of the prediction into noise and ignorance, in nats.

        With p_c the class probabilities of network c,

            aleatoric = mean of H(p_c) ,   epistemic = H(mean of p_c) − mean of H(p_c) ,

        the second being the mutual information of label and network (Houlsby et al. 2011). Networks are the
        members of an ensemble and the draws of ``method="monte_carlo"``; where there is only one, its codes
        are drawn `n_draws` times from their epistemic normal distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        aleatoric, epistemic : ndarray of shape (n_samples,)
        """
        predictive = self._predictive(X, self._uncertain_method())
        if predictive.n_components > 1:
            parts = predictive.component_probabilities(self.model_.temperature)
            weights = np.exp(predictive.log_weights)
        else:
            parts = self._drawn_probabilities(predictive)
            weights = np.full(len(parts), 1.0 / len(parts))
        aleatoric = np.tensordot(weights, _entropy(parts), axes=1)
        total = _entropy(np.tensordot(weights, parts, axes=1))
        return Decomposition(aleatoric, np.maximum(total - aleatoric, 0.0))

    def _drawn_probabilities(self, predictive: _core.Predictive) -> Array:
        """Return class probabilities of codes drawn from their epistemic distribution, (draws, n, K)."""
        mean, epistemic = predictive.mean(), predictive.epistemic_covariance()
        precision = np.linalg.inv(predictive.covariance() - epistemic)
        values, vectors = np.linalg.eigh(epistemic)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        rng = np.random.default_rng(0)
        noise = rng.standard_normal((int(self.n_draws), *mean.shape))
        codes = mean + np.einsum("nkj,cnj->cnk", root, noise)
        logits = np.einsum("nkj,cnj->cnk", precision, codes)
        logits -= 0.5 * np.diagonal(precision, axis1=1, axis2=2)
        logits = (logits - logits.max(axis=2, keepdims=True)) / self.model_.temperature
        odds = np.exp(logits)
        return odds / odds.sum(axis=2, keepdims=True)

    def _encoded(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the number of each label's class."""
        numbers = np.searchsorted(self.classes_, y)
        known = numbers < len(self.classes_)
        known[known] = self.classes_[numbers[known]] == y[known]
        if not known.all():
            unseen = labels_of(y[~known])
            raise ValueError(f"y contains labels that are not in classes: {unseen}")
        return numbers.astype(np.int64)

    def _notes(self) -> dict[str, Any]:
        return super()._notes() | {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}

    def _target_encoding(self) -> dict[str, Any]:
        classes = self.classes_.tolist()
        kind = "text"
        if all(isinstance(label, bool) for label in classes):
            kind = "bool"
        elif all(isinstance(label, (int, float)) for label in classes):
            kind = "number"
        names = [str(label).lower() if kind == "bool" else f"{label}" for label in classes]
        return {"task": "classification", "column": "y", "kind": kind, "classes": names}


def _entropy(probabilities: Array) -> Array:
    """Return −Σ p log p over the last axis."""
    logs = np.log(probabilities, where=probabilities > 0.0, out=np.zeros_like(probabilities))
    return -(probabilities * logs).sum(axis=-1)
