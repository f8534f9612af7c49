"""Parameters of estimators under a name.

Examples
--------
>>> from bayespc import BPCRegressor, presets
>>> model = BPCRegressor(**presets.paper())
>>> model.rule["kind"], model.batch_size, model.method
('relaxation', 128, 'monte_carlo')
"""

from __future__ import annotations

import json
from typing import Any

from . import _core

__all__ = ["paper"]


def paper() -> dict[str, Any]:
    """Return the settings of the paper: relaxation by Adam, learned precisions, Monte Carlo prediction.

    They reproduce what is printed, stalls included; `BPCRegressor`'s defaults learn better.

    Returns
    -------
    dict
        Keywords of `BPCRegressor` and `BPCClassifier`.
    """
    settings = json.loads(_core.paper_settings())
    return {
        "hidden_layer_sizes": tuple(settings["network"]["hidden_layer_sizes"]),
        "activation": settings["network"]["activation"],
        "prior_scale": settings["network"]["prior"]["col_var"],
        "rule": settings["rule"],
        "batch_size": settings["training"]["batch_size"],
        "max_iter": settings["training"]["epochs"],
        "method": "monte_carlo",
        "n_draws": settings["method"]["monte_carlo"]["draws"],
    }
