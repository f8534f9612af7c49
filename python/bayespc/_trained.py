"""From a trained network to its posterior: weights of others become fitted estimators."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from . import _core
from ._arrow import apart, has_own_targets
from ._base import BPCEstimator
from ._classifier import BPCClassifier
from ._regressor import BPCRegressor
from ._validation import Array, ArrayLike

ACTIVATIONS = {"identity": "identity", "logistic": "sigmoid", "tanh": "tanh", "relu": "relu"}
"""scikit-learn's names of activations, and ours."""

E = TypeVar("E", bound=BPCEstimator)

ROWS = 200
"""Rows of X on which a step before the network must be as affine as it seems."""


def from_mlp(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    prior_var: float = 10.0,
    calibration: Literal["none", "holdout", "conformal"] = "none",
    method: str = "linearised",
    n_draws: int = 20,
    random_state: Any = None,
) -> BPCRegressor | BPCClassifier:
    """Give a trained network of scikit-learn a posterior: one pass over the data, no training.

    The result is a fitted estimator like any other: it predicts distributions, decomposes, explains, learns
    on by `partial_fit`, is saved, served and exported. Its mean network is the one given, so
    ``method="mean"`` predicts what `estimator` does, up to rounding; so do means of the linearised method of
    a regressor. Everything else is from one pass over X and y: covariances of the weights, the noise, and
    the hidden layers' metric.

    Parameters
    ----------
    estimator : MLPRegressor, MLPClassifier, Pipeline or TransformedTargetRegressor
        Fitted. Steps of a pipeline before the network, and a transformer of the target, must be affine, as
        scalers and PCA are: they become part of the first and the last layer.
    X : array-like or frame of shape (n_samples, n_features)
        What it was trained on, or other samples like those.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), str or list of str
        Their targets, or the names of their columns in X.
    sample_weight : array-like of shape (n_samples,) or str, default=None
        Weights of the samples.
    prior_var : float, default=10.0
        Prior variance of the weights, of standardised inputs and relative to the noise of their layer: how
        unsure the posterior is where there are no data.
    calibration : {"none", "holdout", "conformal"}, default="none"
        What to hold a tenth of the samples out for. It only helps with samples that the network was not
        trained on.
    method : {"linearised", "mean", "monte_carlo", "moments"}, default="linearised"
        How to predict; may be changed afterwards.
    n_draws : int, default=20
        Networks drawn by ``method="monte_carlo"``.
    random_state : int, RandomState instance or None, default=None
        Source of the held-out samples and of draws.

    Returns
    -------
    BPCRegressor or BPCClassifier
        Fitted.

    See Also
    --------
    from_weights : For the weights of other libraries.

    Examples
    --------
    >>> import numpy as np
    >>> import bayespc
    >>> from sklearn.neural_network import MLPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> mlp = MLPRegressor(hidden_layer_sizes=(20,), solver="lbfgs", max_iter=500, random_state=0).fit(X, y)
    >>> model = bayespc.from_mlp(mlp, X, y)
    >>> mean, std = model.predict([[0.0], [30.0]], return_std=True)
    >>> bool(np.allclose(mean, mlp.predict([[0.0], [30.0]])) and std[1] > 2 * std[0])
    True
    """
    X, y, sample_weight, y_names = _apart(X, y, sample_weight)
    mlp, layers = _network(estimator, X)
    _check_names(estimator, X)
    common = {
        "activation": ACTIVATIONS[mlp.activation],
        "prior_var": prior_var,
        "calibration": calibration,
        "method": method,
        "n_draws": n_draws,
        "random_state": random_state,
    }
    if isinstance(mlp, MLPClassifier):
        return _classifier(layers, X, y, sample_weight, mlp.classes_, y_names, common)
    return _regressor(layers, X, y, sample_weight, y_names, common)


def from_weights(
    weights: str | os.PathLike[str] | Mapping[str, Any],
    X: ArrayLike,
    y: ArrayLike,
    *,
    activation: str = "relu",
    classes: ArrayLike | None = None,
    noise: Literal["constant", "variance"] = "constant",
    likelihood: Literal["categorical", "one_hot"] = "categorical",
    sample_weight: ArrayLike | None = None,
    prior_var: float = 10.0,
    calibration: Literal["none", "holdout", "conformal"] = "none",
    method: str = "linearised",
    n_draws: int = 20,
    random_state: Any = None,
) -> BPCRegressor | BPCClassifier:
    """Give the weights of a plain feed-forward network a posterior: one pass over the data, no training.

    As `from_mlp`, for weights of other libraries under PyTorch's names: ``0.weight``, ``0.bias``,
    ``layers.2.weight``, … in the order of the numbers in them. Layers are linear, with one activation
    between all of them and none behind the last. Tensors that are neither weights nor biases of such layers,
    of a batch norm say, are an error.

    Parameters
    ----------
    weights : str, path-like or mapping
        A safetensors file, or tensors by name, as ``module.state_dict()`` gives them.
    X : array-like or frame of shape (n_samples, n_features)
        What it was trained on, or other samples like those, in the same units.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), str or list of str
        Their targets in the units of the network's output, or labels; or the names of their columns in X.
    activation : {"relu", "identity", "leaky_relu", "tanh", "sigmoid", "softplus", "gelu", "silu"}, \
            default="relu"
        What stands between the layers.
    classes : array-like of shape (n_classes,), default=None
        For a classifier, the labels in the order of its outputs. A single output with two classes is the
        logit of the second.
    noise : {"constant", "variance"}, default="constant"
        Of a regressor. With ``"variance"`` the network has twice as many outputs as there are targets: means
        and then log-variances.
    likelihood : {"categorical", "one_hot"}, default="categorical"
        Of a classifier: whether outputs are logits, or were fitted to one-hot codes.
    sample_weight, prior_var, calibration, method, n_draws, random_state
        As in `from_mlp`.

    Returns
    -------
    BPCRegressor or BPCClassifier
        Fitted.

    Examples
    --------
    >>> import numpy as np
    >>> import bayespc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = np.maximum(X @ [1.0, 1.0], 0.0) + 0.1 * rng.normal(size=100)
    >>> weights = {"0.weight": [[1.0, 1.0]], "0.bias": [0.0], "2.weight": [[1.0]], "2.bias": [0.0]}
    >>> model = bayespc.from_weights(weights, X, y, activation="relu")
    >>> bool(abs(model.predict([[1.0, 2.0]])[0] - 3.0) < 1e-6)
    True
    """
    if isinstance(weights, Mapping):
        layers = _core.layers_of_tensors([_tensor(name, value) for name, value in weights.items()])
    else:
        layers = _core.layers_of_file(Path(weights).read_bytes())
    X, y, sample_weight, y_names = _apart(X, y, sample_weight)
    common = {
        "activation": activation,
        "prior_var": prior_var,
        "calibration": calibration,
        "method": method,
        "n_draws": n_draws,
        "random_state": random_state,
    }
    if classes is None:
        return _regressor(layers, X, y, sample_weight, y_names, common | {"noise": noise})
    common |= {"likelihood": likelihood}
    return _classifier(layers, X, y, sample_weight, np.asarray(classes), y_names, common)


def _regressor(
    layers: list[Array], X: Any, y: Any, sample_weight: Any, y_names: list[str] | None, common: dict[str, Any]
) -> BPCRegressor:
    estimator = BPCRegressor(**_params(layers, {"noise": "constant"} | common))
    X, target, weights, settings = estimator._ready(X, y, sample_weight)
    return _fitted(estimator, layers, X, target, weights, settings, y_names)


def _classifier(
    layers: list[Array],
    X: Any,
    y: Any,
    sample_weight: Any,
    classes: Any,
    y_names: list[str] | None,
    common: dict[str, Any],
) -> BPCClassifier:
    *below, top = layers
    if len(classes) == 2 and len(top) == 1:
        # softmax(−a/2, a/2) is the logistic function of a.
        top = np.vstack([-0.5 * top, 0.5 * top])
    if len(top) != len(classes):
        raise ValueError(f"the network has {len(top)} outputs, and there are {len(classes)} classes")
    order = np.argsort(classes)
    layers = [*below, top[order]]
    estimator = BPCClassifier(**_params(layers, {"likelihood": "categorical"} | common))
    X, target, weights, settings = estimator._ready(X, y, sample_weight)
    # There may be classes that y has no sample of.
    labels = estimator.classes_[target.astype(np.int64)]
    estimator.classes_ = classes[order]
    return _fitted(estimator, layers, X, estimator._encoded(labels), weights, settings, y_names)


def _params(layers: list[Array], own: dict[str, Any]) -> dict[str, Any]:
    sizes = tuple(len(layer) for layer in layers[:-1])
    return {"hidden_layer_sizes": sizes, "bins": 0, "search": False, "n_members": 1} | own


def _fitted(
    estimator: E,
    layers: list[Array],
    X: Any,
    target: Any,
    weights: Array | None,
    settings: str,
    y_names: list[str] | None,
) -> E:
    found, expected = X.shape[1], layers[0].shape[1] - 1
    if found != expected:
        raise ValueError(f"X has {found} features, but the network has {expected} inputs")
    classes = estimator._n_classes()
    estimator.model_ = _core.Model.from_weights(layers, X, target, classes, weights, settings)
    if y_names is not None:
        estimator._y_names = y_names
    estimator._read_reports()
    for warning in estimator.model_.warnings:
        warnings.warn(warning, stacklevel=4)
    return estimator


def _apart(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, list[str] | None]:
    """Return samples, targets and weights, where y may have named columns of X; and its names."""
    if not has_own_targets(X, y, several=True):
        return X, y, sample_weight, None
    return *apart(X, y, sample_weight), [y] if isinstance(y, str) else list(y)


def _tensor(name: str, value: Any) -> tuple[str, list[int], Array]:
    """Return a tensor of any library as name, shape and numbers."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"weights: tensor {name!r} is no array of numbers ({error})") from None
    return name, list(array.shape), array.reshape(-1)


def _network(estimator: Any, X: Any) -> tuple[Any, list[Array]]:
    """Return the network inside, and its layers in the units of X and of what `estimator` predicts."""
    if isinstance(estimator, Pipeline):
        check_is_fitted(estimator)
        steps: Any = estimator[:-1]
        rows = _some_rows(X)
        if len(steps) == 0:
            return _network(estimator[-1], X)
        offset, slope, image = _affine(steps.transform, rows, "the steps before the network")
        mlp, layers = _network(estimator[-1], image)
        first = layers[0]
        bias = first[:, :-1] @ offset + first[:, -1]
        return mlp, [np.column_stack([first[:, :-1] @ slope.T, bias]), *layers[1:]]
    if isinstance(estimator, TransformedTargetRegressor):
        check_is_fitted(estimator)
        mlp, layers = _network(estimator.regressor_, X)
        rows = np.random.default_rng(0).normal(size=(ROWS, len(layers[-1])))
        undo: Callable[[Any], Any] = estimator.transformer_.inverse_transform
        offset, slope, _ = _affine(undo, rows, "the transformer of the target")
        last = slope.T @ layers[-1]
        last[:, -1] += offset
        return mlp, [*layers[:-1], last]
    if not isinstance(estimator, MLPRegressor | MLPClassifier):
        name = type(estimator).__qualname__
        raise TypeError(
            f"from_mlp takes an MLPRegressor or MLPClassifier, alone or in a pipeline; got {name}"
        )
    check_is_fitted(estimator)
    _check_outputs(estimator)
    coefs, intercepts = estimator.coefs_, estimator.intercepts_
    pairs = zip(coefs, intercepts, strict=True)
    return estimator, [np.column_stack([coef.T, bias]).astype(np.float64) for coef, bias in pairs]


def _check_outputs(mlp: Any) -> None:
    """Refuse outputs that are neither real values nor logits of classes."""
    output = mlp.out_activation_
    if isinstance(mlp, MLPClassifier):
        exclusive = output == "softmax" or (output == "logistic" and mlp.n_outputs_ == 1)
        if not exclusive:
            raise ValueError("an MLPClassifier of several labels per sample has no classes to tell apart")
    elif output != "identity":
        raise ValueError(f"an MLPRegressor whose output goes through {output!r} is not Gaussian around it")


def _some_rows(X: Any) -> Array:
    some = X.iloc[:ROWS] if hasattr(X, "iloc") else X[:ROWS]
    some = some.toarray() if hasattr(some, "toarray") else some
    try:
        return np.asarray(some, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("X must be numbers: steps that encode columns cannot become weights") from None


def _affine(transform: Callable[[Any], Any], rows: Array, what: str) -> tuple[Array, Array, Array]:
    """Return offset and slope of x ↦ x slope + offset, which it must be on `rows`, and their image."""

    def image(values: Array) -> Array:
        with warnings.catch_warnings():
            # Names of columns are checked elsewhere.
            warnings.simplefilter("ignore", UserWarning)
            result: Any = transform(values)
        return np.asarray(result.toarray() if hasattr(result, "toarray") else result, dtype=np.float64)

    try:
        offset = image(np.zeros((1, rows.shape[1])))[0]
        slope = image(np.eye(rows.shape[1])) - offset
        there = image(rows)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} cannot become weights: {error}") from error
    off = np.abs(rows @ slope + offset - there).max(initial=0.0)
    if not off <= 1e-6 * (1.0 + np.abs(there).max(initial=0.0)):
        raise ValueError(f"{what} cannot become weights: they are not affine, as scalers are")
    return offset, slope, there


def _check_names(estimator: Any, X: Any) -> None:
    known, found = getattr(estimator, "feature_names_in_", None), getattr(X, "columns", None)
    if known is not None and found is not None and list(known) != list(found):
        raise ValueError(f"X has the columns {list(found)}, the network was trained on {list(known)}")
