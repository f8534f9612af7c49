"""One network to train by hand and to look into."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._base import BPCEstimator, written_whole
from ._classifier import BPCClassifier
from ._distribution import PredictiveDistribution
from ._files import estimator_of
from ._regressor import BPCRegressor
from ._settings import (
    ACTIVATIONS,
    HEADS,
    choice,
    integer,
    layer_sizes,
    method_settings,
    number,
    rule_settings,
)
from ._validation import Array, ArrayLike, seed_of

_Scaling = tuple[list[float], list[float]]
"""Offset and scale of columns."""


class Relaxed(NamedTuple):
    """Activities at rest and the energy on the way there.

    Attributes
    ----------
    activities : list of ndarray of shape (n_samples, width)
        z_0 … z_L.
    energy : ndarray of shape (n_steps + 1,)
        Energy of all samples: at the forward pass, and after every step.
    layer_energies : ndarray of shape (n_layers,)
        Energy of each layer at rest; that of the first includes the prior of a free z_0. Their sum is the
        last of `energy`.
    stop : {"max_steps", "converged", "diverged"}
        Why it ended. Activities that diverged are those it started from.
    """

    activities: list[Array]
    energy: Array
    layer_energies: Array
    stop: str


class Imputed(NamedTuple):
    """Data with its missing entries inferred; variances are 0 where an entry was observed."""

    X: Array
    X_var: Array
    y: Array
    y_var: Array


class Drawn(NamedTuple):
    """Draws of data with missing entries; what was observed is the same in all of them.

    Attributes
    ----------
    X : ndarray of shape (n_draws, n_samples, n_inputs)
    y : ndarray of shape (n_draws, n_samples, n_targets)
    accepted : float
        Share of steps that were accepted, over all samples; 1 if nothing was missing.
    """

    X: Array
    y: Array
    accepted: float


class Network:
    """A Bayesian predictive-coding network, without scaling or training loop.

    Inputs and targets are taken as they are: standardise them first. Layers are those of the paper,
    z_l ~ N(W_l φ_{l−1}, Σ_l) with φ_0 = [x; 1], φ_l = [f(z_l); 1] and a matrix-normal-Wishart posterior each.

    Parameters
    ----------
    n_inputs : int
        Width of the input.
    n_targets : int, default=1
        Number of targets.
    hidden_layer_sizes : int or sequence of int, default=(50, 50)
        Widths of the hidden layers.
    activation : str, default="relu"
        Nonlinearity of the hidden layers.
    prior_var : float, default=10.0
        Prior variance V⁰ of the weights.
    noise : {"constant", "variance"}, default="constant"
        Head of the network.
    rule : {"feedback", "relaxation"} or dict, default="feedback"
        How activities are inferred.
    settings : dict, default=None
        Further settings of the network by their names in the core, such as ``{"input_var": 2.0}``.
    random_state : int, RandomState instance or None, default=None
        Source of the initial weights.

    Notes
    -----
    ``copy.deepcopy`` copies a network to the bit, with all that its rule remembers. A pickle, a file and an
    estimator hold its posteriors with every natural parameter up to date: they predict the same up to
    rounding, and learn on from there with factors taken anew, so that the next steps of a rule that keeps
    factors for several steps (``refresh_every`` above 1) are not the same to the bit.

    Examples
    --------
    A layer learns in one step, exactly:

    >>> import numpy as np
    >>> from bayespc import Network
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = X @ [[1.0], [-2.0]] + 0.1 * rng.normal(size=(500, 1))
    >>> network = Network(2, 1, hidden_layer_sizes=(), rule="relaxation", random_state=0)
    >>> loss = network.learn(X, y)
    >>> bool(np.allclose(network.weights[0], [[1.0, -2.0, 0.0]], atol=0.02))
    True
    """

    def __init__(
        self,
        n_inputs: int,
        n_targets: int = 1,
        *,
        hidden_layer_sizes: Any = (50, 50),
        activation: str = "relu",
        prior_var: float = 10.0,
        noise: str = "constant",
        rule: Any = "feedback",
        settings: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        full: dict[str, Any] = json.loads(_core.preset_settings("default"))["network"]
        full["hidden_layer_sizes"] = layer_sizes(hidden_layer_sizes)
        full["activation"] = choice("activation", activation, ACTIVATIONS)
        full["prior"]["var"] = number("prior_var", prior_var, 0.0, float("inf"))
        full["head"] = {"kind": HEADS[choice("noise", noise, tuple(HEADS))]}
        full.update(settings or {})
        rule = json.dumps(rule_settings(rule))
        self._core = _core.Network(n_inputs, n_targets, json.dumps(full), rule, seed_of(random_state))
        self.n_steps = 0

    @classmethod
    def from_estimator(cls, estimator: BPCEstimator, member: int = 0) -> Network:
        """Return a copy of a fitted estimator's network; it lives on standardised data.

        Parameters
        ----------
        estimator : BPCRegressor or BPCClassifier
            Fitted.
        member : int, default=0
            Which network of the ensemble.

        Returns
        -------
        Network
        """
        network = cls.__new__(cls)
        network._core = estimator.model_.network(member)
        network.n_steps = 0
        return network

    def to_estimator(
        self, *, x_scaler: Any = None, y_scaler: Any = None, classes: ArrayLike | None = None
    ) -> BPCRegressor | BPCClassifier:
        """Return a fitted estimator around a copy of this network: to predict tables, serve and export.

        Parameters
        ----------
        x_scaler : StandardScaler or None, default=None
            Fitted; what made the inputs that the network was trained on. None if they were taken as they are.
        y_scaler : StandardScaler or None, default=None
            The same for targets.
        classes : array-like of shape (n_targets,), default=None
            Labels in sorted order, if the targets are their one-hot codes: then it is a classifier.

        Returns
        -------
        BPCRegressor or BPCClassifier
            Fitted, with this network's settings.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.preprocessing import StandardScaler
        >>> from bayespc import Network
        >>> rng = np.random.default_rng(0)
        >>> X, scaler = rng.normal(5.0, 2.0, size=(200, 1)), StandardScaler()
        >>> network = Network(1, hidden_layer_sizes=(), rule="relaxation", random_state=0)
        >>> loss = network.learn(scaler.fit_transform(X), 3.0 * X)
        >>> model = network.to_estimator(x_scaler=scaler)
        >>> bool(abs(model.predict([[5.0]])[0] - 15.0) < 0.1)
        True
        """
        labels = None if classes is None else np.asarray(classes)
        if labels is not None and bool(np.any(labels[:-1] >= labels[1:])):
            raise ValueError("classes must be sorted, and each there once: scikit-learn's order")
        if labels is not None and y_scaler is not None:
            raise ValueError("one-hot codes of classes have no y_scaler")
        model = self._model(
            0 if labels is None else len(labels),
            _scaling("x_scaler", x_scaler, self.widths[0]),
            _scaling("y_scaler", y_scaler, self._n_targets()),
        )
        return estimator_of(model, labels)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a model file, which `load` and `bayespc.load` read, as the command does.

        Parameters
        ----------
        path : str or path-like
            Where to write. The file appears whole or not at all.
        """
        written_whole(Path(path), self._to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Network:
        """Read a network that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file. Of the model of an estimator take `from_estimator`, since its networks live on
            standardised data.

        Returns
        -------
        Network
        """
        return _network_of_bytes(Path(path).read_bytes())

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return _network_of_bytes, (self._to_bytes(),)

    def __copy__(self) -> Network:
        network = type(self).__new__(type(self))
        network._core = self._core.copy()
        network.n_steps = self.n_steps
        return network

    def __deepcopy__(self, memo: dict[int, Any]) -> Network:
        return self.__copy__()

    def _n_targets(self) -> int:
        # A variance node has as many log-variances as means.
        width = self.widths[-1]
        return width // 2 if self.settings["head"]["kind"] == "variance_node" else width

    def _model(self, classes: int, x_scaling: _Scaling, y_scaling: _Scaling) -> _core.Model:
        return self._core.to_model(self.n_steps, classes, x_scaling, y_scaling)

    def _to_bytes(self) -> bytes:
        classes = self._n_targets() if self.settings["head"]["kind"] == "categorical" else 0
        unscaled = _scaling("", None, self.widths[0]), _scaling("", None, self._n_targets())
        return self._model(classes, *unscaled).with_notes({"network": "trained by hand"}).to_bytes()

    def __repr__(self) -> str:
        widths = "-".join(str(width) for width in self._core.widths)
        return f"Network({widths}, rule={json.loads(self._core.rule)['kind']!r}, n_steps={self.n_steps})"

    @property
    def settings(self) -> dict[str, Any]:
        """Shape, prior and head, by their names in the core."""
        return json.loads(self._core.settings)

    @property
    def rule(self) -> dict[str, Any]:
        """The rule, with all its settings."""
        return json.loads(self._core.rule)

    @property
    def widths(self) -> list[int]:
        """Widths d_0 … d_L."""
        return self._core.widths

    @property
    def weights(self) -> list[Array]:
        """Posterior means M_1 … M_L, each (d_l, d_{l−1} + 1) with the bias in the last column."""
        return self._core.weights

    @property
    def posteriors(self) -> list[_core.MatrixNormalWishart]:
        """Posteriors of the layers; blocks of the output layer last."""
        return self._core.posteriors()

    @property
    def priors(self) -> list[_core.MatrixNormalWishart]:
        """Priors of the layers; blocks of the output layer last."""
        return self._core.priors()

    def activities(self, X: ArrayLike) -> list[Array]:
        """Return z_1 … z_L of the forward pass with mean weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs.

        Returns
        -------
        list of ndarray of shape (n_samples, d_l)
        """
        return self._core.forward(_matrix("X", X))

    def relax(self, X: ArrayLike, y: ArrayLike, settings: Mapping[str, Any] | None = None) -> Relaxed:
        """Let the activities descend the energy with both ends clamped; NaN entries are free.

        Under a variance node or logits the output is clamped as in learning: z_L is the head's working
        target at the forward pass, errors have its weights, and no value may be missing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs.
        y : array-like of shape (n_samples, n_targets)
            Targets.
        settings : dict, default=None
            Settings of relaxation by their names in the core; the rule's own if not given, or the paper's.

        Returns
        -------
        Relaxed
        """
        text = None if settings is None else json.dumps(dict(settings))
        return Relaxed(*self._core.relax(_matrix("X", X), _matrix("y", y), text))

    def infer(self, X: ArrayLike, y: ArrayLike) -> list[Array]:
        """Return z_1 … z_L as the feedback rule infers them: what each layer will learn to produce.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs.
        y : array-like of shape (n_samples, n_targets)
            Targets.

        Returns
        -------
        list of ndarray of shape (n_samples, d_l)
        """
        return self._core.infer_by_feedback(_matrix("X", X), _matrix("y", y))

    def learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        n_total: float | None = None,
        total_steps: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Learn from one batch: infer activities, then update every posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs; NaN is missing (relaxation only).
        y : array-like of shape (n_samples, n_targets)
            Targets; NaN is missing (relaxation only).
        n_total : float, default=None
            Number of samples the posterior should represent. If not given the batch is all the data.
        total_steps : int, default=None
            Number of batches planned, for schedules that have an end.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
            Mean squared error of the forward pass before learning.
        """
        samples, targets = _matrix("X", X), _matrix("y", y)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        total = float(len(samples)) if weights is None else float(weights.sum())
        n = total if n_total is None else float(n_total)
        loss = self._core.learn(samples, targets, self.n_steps + 1, total_steps, n, n_total is None, weights)
        self.n_steps += 1
        return loss

    def finish(self, X: ArrayLike, y: ArrayLike) -> None:
        """Settle every posterior on the data trained on, as the feedback rule needs before it predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs.
        y : array-like of shape (n_samples, n_targets)
            Targets.
        """
        self._core.finish(_matrix("X", X), _matrix("y", y))

    def predict(
        self, X: ArrayLike, method: str = "linearised", n_draws: int = 20, random_state: Any = 0
    ) -> PredictiveDistribution:
        """Predict the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs.
        method : {"linearised", "mean", "monte_carlo", "moments"}, default="linearised"
            How to predict.
        n_draws : int, default=20
            Networks drawn by ``method="monte_carlo"``.
        random_state : int, RandomState instance or None, default=0
            Source of the draws.

        Returns
        -------
        PredictiveDistribution
        """
        settings = json.dumps(method_settings(method, n_draws, seed_of(random_state)))
        return PredictiveDistribution(self._core.predict(_matrix("X", X), settings), one_dimensional=False)

    def free_energy(self, X: ArrayLike, y: ArrayLike) -> Array:
        """Return complexity and expected log-likelihood of every layer, in nats.

        Only of a network without hidden layers does their difference compare models: there it is the negative
        log evidence. A hidden layer is scored by activities of the network's own making, so that neither its
        free energy nor the sum over layers says which of two networks is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs.
        y : array-like of shape (n_samples, n_targets)
            Targets.

        Returns
        -------
        ndarray of shape (n_layers, 2)
            The free energy is the first column minus the second.
        """
        return self._core.free_energy(_matrix("X", X), _matrix("y", y))

    def generate(
        self, n_samples: int, *, draw_weights: bool = False, random_state: Any = None
    ) -> tuple[Array, Array]:
        """Draw inputs from their prior and targets from the network.

        Parameters
        ----------
        n_samples : int
            Number of samples.
        draw_weights : bool, default=False
            Draw the weights from their posterior, once for all samples, or take their mean.
        random_state : int, RandomState instance or None, default=None
            Source of chance.

        Returns
        -------
        X : ndarray of shape (n_samples, n_inputs)
        y : ndarray of shape (n_samples, n_targets)
        """
        return self._core.generate(n_samples, bool(draw_weights), seed_of(random_state))

    def impute(self, X: ArrayLike, y: ArrayLike, weight_uncertainty: float = 1.0) -> Imputed:
        """Infer NaN entries of inputs and targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs.
        y : array-like of shape (n_samples, n_targets)
            Targets.
        weight_uncertainty : float, default=1.0
            Temperature of that term in the energy, between 0 and 1.

        Returns
        -------
        Imputed
        """
        return Imputed(*self._core.impute(_matrix("X", X), _matrix("y", y), float(weight_uncertainty)))

    def draw_missing(
        self,
        X: ArrayLike,
        y: ArrayLike,
        n_draws: int = 10,
        *,
        n_steps: int = 20,
        step_size: float = 1.2,
        weight_uncertainty: float = 1.0,
        random_state: Any = None,
    ) -> Drawn:
        """Draw NaN entries of inputs and targets, by Langevin steps on all activities that are free.

        Steps begin where the energy E is least, are as long in each direction as its curvature there says,
        and are accepted or not (Metropolis), so that draws follow exp(−E). Of a linear network with
        ``weight_uncertainty=0`` this is the exact distribution of the missing entries given the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_inputs)
            Inputs; NaN is missing.
        y : array-like of shape (n_samples, n_targets)
            Targets; NaN is missing.
        n_draws : int, default=10
            How many draws. Those of a sample follow each other on one walk.
        n_steps : int, default=20
            Steps between two draws, and before the first. More make draws depend less on each other.
        step_size : float, default=1.2
            Length of a step where one entry is free; of n entries it is n^(−1/6) times that.
        weight_uncertainty : float, default=1.0
            Temperature of that term in the energy, between 0 and 1.
        random_state : int, RandomState instance or None, default=None
            Source of chance.

        Returns
        -------
        Drawn

        Examples
        --------
        Draws spread as `impute` says a missing input does:

        >>> import numpy as np
        >>> from bayespc import Network
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 1))
        >>> y = 2.0 * X + 0.5 * rng.normal(size=(400, 1))
        >>> network = Network(1, hidden_layer_sizes=(), rule="relaxation", random_state=0)
        >>> loss = network.learn(X, y)
        >>> drawn = network.draw_missing([[np.nan]], [[1.0]], 500, random_state=0)
        >>> drawn.X.shape
        (500, 1, 1)
        >>> filled = network.impute([[np.nan]], [[1.0]])
        >>> bool(abs(drawn.X.std() / np.sqrt(filled.X_var[0, 0]) - 1.0) < 0.1)
        True
        """
        if not 0.0 <= weight_uncertainty <= 1.0:
            raise ValueError(f"weight_uncertainty must be between 0 and 1; got {weight_uncertainty!r}")
        settings = {
            "steps": integer("n_steps", n_steps, 1),
            "size": number("step_size", step_size, 0.0, float("inf")),
            "weight_uncertainty": float(weight_uncertainty),
            "seed": seed_of(random_state),
        }
        count = integer("n_draws", n_draws, 1)
        return Drawn(*self._core.draw_missing(_matrix("X", X), _matrix("y", y), count, json.dumps(settings)))


def _scaling(name: str, scaler: Any, width: int) -> _Scaling:
    """Return offset and scale of a scaler of scikit-learn, or those that leave everything as it is."""
    if scaler is None:
        return [0.0] * width, [1.0] * width
    if not hasattr(scaler, "mean_") or not hasattr(scaler, "scale_"):
        raise TypeError(f"{name} must be a fitted StandardScaler or None; got {scaler!r}")
    offset = np.zeros(width) if scaler.mean_ is None else scaler.mean_
    scale = np.ones(width) if scaler.scale_ is None else scaler.scale_
    return [float(value) for value in offset], [float(value) for value in scale]


def _network_of_bytes(content: bytes) -> Network:
    """Return the network in the bytes of a file."""
    model = _core.Model.from_bytes(content)
    if "network" not in model.notes:
        raise ValueError("this is the file of an estimator: Network.from_estimator(bayespc.load(path))")
    network = Network.__new__(Network)
    network._core = model.network(0)
    network.n_steps = model.steps[0]
    return network


def _matrix(name: str, values: ArrayLike) -> Array:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must have two dimensions; got {matrix.ndim}")
    return matrix
