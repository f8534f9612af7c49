"""From scikit-learn's keywords to the settings of the core, which cross as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, cast

from . import _core

ACTIVATIONS = ("identity", "relu", "leaky_relu", "tanh", "sigmoid", "softplus", "gelu", "silu")
HEADS = {"constant": "gaussian", "variance": "variance_node"}
LIKELIHOODS = {"one_hot": "gaussian", "categorical": "categorical"}
CALIBRATIONS = ("none", "holdout", "conformal")
AUTO = "auto"
PRECISIONS = {"float64": "f64", "float32": "f32"}
METHODS = ("linearised", "mean", "monte_carlo", "moments")
RULES = ("feedback", "relaxation")

Settings = dict[str, Any]


def choice(name: str, value: object, options: Sequence[str]) -> str:
    """Return `value` if it is one of `options`; else name the culprit."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(options)}; got {value!r}")
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}; got {value!r}")
    return value


def integer(name: str, value: object, least: int) -> int:
    """Return `value` as an int of at least `least`; else name the culprit."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer; got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value!r}")
    return int(value)


def number(name: str, value: object, low: float, high: float) -> float:
    """Return `value` as a float strictly between `low` and `high`; else name the culprit."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r}")
    if not low < float(value) < high:
        raise ValueError(f"{name} must be greater than {low:g} and less than {high:g}; got {value!r}")
    return float(value)


def method_settings(method: object, n_draws: object, seed: int) -> Any:
    """Return the core's settings of a way to predict."""
    match choice("method", method, METHODS):
        case "monte_carlo":
            draws = integer("n_draws", n_draws, 1)
            return {"monte_carlo": {"draws": draws, "seed": seed, "layer_noise": True}}
        case "moments":
            return {"moments": {"covariance": "exact"}}
        case name:
            return name


def method_params(method: Any) -> Settings:
    """Return the keywords of an estimator that ask for a way to predict."""
    if isinstance(method, str):
        return {"method": method}
    name, details = next(iter(cast("dict[str, Any]", method).items()))
    return {"method": name, "n_draws": details["draws"]} if "draws" in details else {"method": name}


def rule_settings(rule: object) -> Settings:
    """Return the core's settings of an inference rule, given by name or as a mapping."""
    if isinstance(rule, Mapping):
        return dict(cast("Mapping[str, Any]", rule))
    return json.loads(_core.rule_settings(choice("rule", rule, RULES)))


def layer_sizes(value: Any) -> list[int]:
    """Return the widths of the hidden layers."""
    name = "hidden_layer_sizes"
    if isinstance(value, Integral):
        return [integer(name, value, 1)]
    try:
        widths: list[object] = list(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer or a sequence of integers; got {value!r}") from None
    return [integer(name, width, 1) for width in widths]


def model_settings(params: Mapping[str, Any], seed: int) -> Settings:
    """Return the core's settings for an estimator's parameters."""
    settings: Settings = json.loads(_core.default_settings())
    prior_scale = settings["network"]["prior"]["col_var"]
    if params["prior_scale"] != AUTO:
        prior_scale = number("prior_scale", params["prior_scale"], 0.0, float("inf"))
    settings["network"]["hidden_layer_sizes"] = layer_sizes(params["hidden_layer_sizes"])
    activation = choice("activation", params["activation"], (*ACTIVATIONS, AUTO))
    settings["network"]["activation"] = "relu" if activation == AUTO else activation
    settings["network"]["prior"]["col_var"] = prior_scale
    name, heads = _heads(params)
    head = choice(name, params[name], (*heads, AUTO))
    settings["network"]["head"] = {"kind": "gaussian" if head == AUTO else heads[head]}
    settings["calibration"] = choice("calibration", params["calibration"], CALIBRATIONS)
    settings["rule"] = rule_settings(params["rule"])
    stopping = bool(params["early_stopping"])
    fraction = number("validation_fraction", params["validation_fraction"], 0.0, 1.0)
    settings["training"] = {
        "epochs": integer("max_iter", params["max_iter"], 1),
        "batch_size": integer("batch_size", params["batch_size"], 1),
        "seed": seed,
        "validation_fraction": fraction if stopping else 0.0,
        "patience": integer("n_iter_no_change", params["n_iter_no_change"], 1) if stopping else None,
    }
    settings["method"] = method_settings(params["method"], params["n_draws"], seed)
    settings["members"] = integer("n_members", params["n_members"], 1)
    settings["precision"] = PRECISIONS[choice("precision", params["precision"], tuple(PRECISIONS))]
    return settings


def _heads(params: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the keyword that chooses the head, and the heads it can choose."""
    return ("noise", HEADS) if "noise" in params else ("likelihood", LIKELIHOODS)


def search_settings(params: Mapping[str, Any]) -> Settings | None:
    """Return what the core should choose from the data before it fits, if anything is left to it."""
    scale, activation, head = params["prior_scale"], params["activation"], params[_heads(params)[0]]
    if AUTO not in (scale, activation, head):
        return None
    search: Settings = {"noise": head == AUTO}
    if scale != AUTO:
        search["col_vars"] = [float(scale)]
    if activation != AUTO:
        search["activations"] = [activation]
    return search


def estimator_params(settings: Settings, classes: int) -> Settings:
    """Return the parameters of an estimator that would give these settings: the way back, for `load`."""
    name, heads = ("likelihood", LIKELIHOODS) if classes else ("noise", HEADS)
    chosen = bool(settings["variants"])
    network, training = settings["network"], settings["training"]
    stopping = training["patience"] is not None
    rule = settings["rule"]
    named = {name: json.loads(_core.rule_settings(name)) for name in RULES}
    params: Settings = {
        "hidden_layer_sizes": tuple(network["hidden_layer_sizes"]),
        "activation": AUTO if chosen else network["activation"],
        "prior_scale": AUTO if chosen else network["prior"]["col_var"],
        name: AUTO if chosen else {kind: word for word, kind in heads.items()}[network["head"]["kind"]],
        "calibration": settings["calibration"],
        "rule": next((name for name, known in named.items() if known == rule), rule),
        "max_iter": training["epochs"],
        "n_members": settings["members"],
        "early_stopping": stopping,
        "precision": {short: name for name, short in PRECISIONS.items()}[settings["precision"]],
        "random_state": training["seed"],
    }
    if training["batch_size"] is not None:
        params["batch_size"] = training["batch_size"]
    if stopping:
        params |= {
            "validation_fraction": training["validation_fraction"],
            "n_iter_no_change": training["patience"],
        }
    return params | method_params(settings["method"])
