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
FULL = "full"
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


def number(name: str, value: object, low: float, high: float, or_auto: bool = False) -> float:
    """Return `value` as a float strictly between `low` and `high`; else name the culprit."""
    if isinstance(value, bool) or not isinstance(value, Real):
        wanted = 'a number or "auto"' if or_auto else "a number"
        raise TypeError(f"{name} must be {wanted}; got {value!r}")
    if not low < float(value) < high:
        raise ValueError(f"{name} must be greater than {low:g} and less than {high:g}; got {value!r}")
    return float(value)


def is_auto(value: object) -> bool:
    """Return whether the choice is left to the search."""
    return isinstance(value, str) and value == AUTO


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


def layer_sizes(value: Any, or_auto: bool = False) -> list[int]:
    """Return the widths of the hidden layers."""
    name = "hidden_layer_sizes"
    if isinstance(value, Integral):
        return [integer(name, value, 1)]
    try:
        if isinstance(value, str):
            raise TypeError
        widths: list[object] = list(value)
    except TypeError:
        wanted = (
            'an integer, a sequence of integers or "auto"'
            if or_auto
            else "an integer or a sequence of integers"
        )
        raise TypeError(f"{name} must be {wanted}; got {value!r}") from None
    return [integer(name, width, 1) for width in widths]


def model_settings(params: Mapping[str, Any], seed: int) -> Settings:
    """Return the core's settings for an estimator's parameters.

    They begin as the core's own default; a keyword that is set changes what it names, and takes it from the
    search.
    """
    settings: Settings = json.loads(_core.preset_settings("default"))
    network, training, search = settings["network"], settings["training"], settings["search"]
    search |= search_settings(params["search"])
    if not is_auto(params["hidden_layer_sizes"]):
        network["hidden_layer_sizes"] = layer_sizes(params["hidden_layer_sizes"], or_auto=True)
        search["widths"] = search["linear_vars"] = []
    activation = choice("activation", params["activation"], (*ACTIVATIONS, AUTO))
    if activation != AUTO:
        network["activation"], search["activations"] = activation, []
    if not is_auto(params["prior_var"]):
        network["prior"]["var"] = number("prior_var", params["prior_var"], 0.0, float("inf"), or_auto=True)
        search["prior_vars"] = search["linear_vars"] = []
    if not is_auto(params["bins"]):
        settings["bins"], search["bins"] = integer("bins", params["bins"], 0), []
    name, heads = _heads(params)
    head = choice(name, params[name], (*heads, AUTO))
    if head != AUTO:
        network["head"], search["noise"] = {"kind": heads[head]}, False
    settings["calibration"] = choice("calibration", params["calibration"], CALIBRATIONS)
    settings["rule"] = rule_settings(params["rule"])
    fraction = number("validation_fraction", params["validation_fraction"], 0.0, 1.0)
    patience = integer("n_iter_no_change", params["n_iter_no_change"], 1)
    training["epochs"] = integer("max_iter", params["max_iter"], 1)
    full = isinstance(params["batch_size"], str) and params["batch_size"] == FULL
    training["batch_size"] = FULL if full else integer("batch_size", params["batch_size"], 1)
    training["seed"] = seed
    if params["early_stopping"]:
        training |= {"validation_fraction": fraction, "patience": patience}
    settings["method"] = method_settings(params["method"], params["n_draws"], seed)
    settings["members"] = integer("n_members", params["n_members"], 1)
    if params["time_limit"] is not None:
        settings["time_limit"] = number("time_limit", params["time_limit"], 0.0, float("inf"))
    settings["precision"] = PRECISIONS[choice("precision", params["precision"], tuple(PRECISIONS))]
    network["wide_layers"] = wide_layer_settings(params["wide_layers"])
    return settings


def wide_layer_settings(value: object) -> Any:
    """Return the core's setting of what is kept of wide layers."""
    if not isinstance(value, Mapping):
        return choice("wide_layers", value, ("auto", "dense"))
    given = dict(cast("Mapping[str, Any]", value))
    if len(given) != 1 or not set(given) <= {"blocks", "sketch"}:
        raise ValueError(
            f'wide_layers must be "auto", "dense", {{"blocks": b}} or {{"sketch": k}}; got {value!r}'
        )
    return {name: integer(f"wide_layers[{name!r}]", size, 1) for name, size in given.items()}


def search_settings(search: object) -> Settings:
    """Return the core's settings of the search that the keyword of this name changes."""
    if isinstance(search, Mapping):
        return dict(cast("Mapping[str, Any]", search))
    if not isinstance(search, bool):
        raise TypeError(f"search must be True, False or a mapping; got {search!r}")
    return {"enabled": search}


def _heads(params: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the keyword that chooses the head, and the heads it can choose."""
    return ("noise", HEADS) if "noise" in params else ("likelihood", LIKELIHOODS)


def left_open(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the keywords that are left to the search, each with what is taken where nothing is searched."""
    if search_settings(params["search"]).get("enabled") is False:
        return {}
    default: Settings = json.loads(_core.preset_settings("default"))
    network = default["network"]
    name, heads = _heads(params)
    words = {kind: word for word, kind in heads.items()}
    taken = {
        "activation": network["activation"],
        "prior_var": f"{network['prior']['var']:g}",
        "bins": str(default["bins"]),
        name: words[network["head"]["kind"]],
    }
    return {keyword: value for keyword, value in taken.items() if is_auto(params[keyword])}


def estimator_params(settings: Settings, classes: int) -> Settings:
    """Return the parameters of an estimator that would give these settings: the way back, for `load`."""
    name, heads = ("likelihood", LIKELIHOODS) if classes else ("noise", HEADS)
    network, training, search = settings["network"], settings["training"], settings["search"]
    default: Settings = json.loads(_core.preset_settings("default"))
    stopping = training["patience"] is not None
    rule = settings["rule"]
    named = {name: json.loads(_core.rule_settings(name)) for name in RULES}
    sizes = network["hidden_layer_sizes"]
    free = sizes == default["network"]["hidden_layer_sizes"] and bool(search["widths"])
    params: Settings = {
        "hidden_layer_sizes": AUTO if free else tuple(sizes),
        "activation": AUTO if search["activations"] else network["activation"],
        "prior_var": AUTO if search["prior_vars"] else network["prior"]["var"],
        "bins": AUTO if search["bins"] else settings["bins"],
        name: AUTO
        if search["noise"]
        else {kind: word for word, kind in heads.items()}[network["head"]["kind"]],
        "calibration": settings["calibration"],
        "rule": next((name for name, known in named.items() if known == rule), rule),
        "max_iter": training["epochs"],
        "batch_size": training["batch_size"],
        "n_members": settings["members"],
        "time_limit": settings["time_limit"],
        "early_stopping": stopping,
        "precision": {short: name for name, short in PRECISIONS.items()}[settings["precision"]],
        "random_state": training["seed"],
        "wide_layers": network["wide_layers"],
    }
    # What fixed keywords have emptied is no wish of its own.
    emptied = ("prior_vars", "linear_vars", "activations", "bins", "widths", "noise")
    own = {
        key: value
        for key, value in search.items()
        if key != "enabled" and value != default["search"][key] and (value or key not in emptied)
    }
    if own:
        params["search"] = own if search["enabled"] else {"enabled": False, **own}
    else:
        params["search"] = search["enabled"]
    if stopping:
        params |= {
            "validation_fraction": training["validation_fraction"],
            "n_iter_no_change": training["patience"],
        }
    return params | method_params(settings["method"])
