"""Parameters of estimators under a name: those of the core's and the command's presets.

Examples
--------
>>> from bayespc import BPCRegressor, presets
>>> quick = BPCRegressor(**presets.fast(), random_state=0)
>>> quick.n_members, quick.search
(1, False)
>>> paper = BPCRegressor(**presets.paper())
>>> paper.rule["kind"], paper.batch_size, paper.method
('relaxation', 128, 'monte_carlo')
"""

from __future__ import annotations

import json
from typing import Any

from . import _core
from ._settings import rule_settings

__all__ = ["default", "fast", "paper"]


def default() -> dict[str, Any]:
    """Return what the estimators do when nothing is said: five networks, each chosen from the data.

    Returns
    -------
    dict
        Keywords of `BPCRegressor` and `BPCClassifier`: none.
    """
    return {}


def fast() -> dict[str, Any]:
    """Return the cheapest choice: one network, nothing searched.

    Below some thousand samples its uncertainties are much too small unless `prior_var` is set with care; the
    default chooses it.

    Returns
    -------
    dict
        Keywords of `BPCRegressor` and `BPCClassifier`.
    """
    return {"search": False, "n_members": json.loads(_core.preset_settings("fast"))["members"]}


def paper() -> dict[str, Any]:
    """Return the settings of the paper: one network, relaxation by Adam, learned precisions, drawn networks.

    They reproduce what is printed, stalls included; the defaults learn better.

    Returns
    -------
    dict
        Keywords of `BPCRegressor` and `BPCClassifier`.
    """
    settings = json.loads(_core.preset_settings("paper"))
    return fast() | {
        "rule": rule_settings(settings["rule"]),
        "batch_size": settings["training"]["batch_size"],
        "max_iter": settings["training"]["epochs"],
        "method": "monte_carlo",
        "n_draws": settings["method"]["monte_carlo"]["draws"],
    }
