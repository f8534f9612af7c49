"""Bayesian predictive coding: scikit-learn estimators that know what they do not know.

`BPCRegressor` and `BPCClassifier` are the estimators; `load` reads what their ``save`` or the command
``bayespc`` wrote. `Network`, `MatrixNormalWishart` and `SufficientStats` are for those who want to look
inside; `datasets`, `plots` and `presets` come along.

Examples
--------
>>> import bayespc
>>> X, y = bayespc.datasets.make_aleatoric(200, random_state=0)
>>> model = bayespc.BPCRegressor(noise="variance", random_state=0).fit(X, y)
>>> lower, upper = model.predict_interval(X, coverage=0.9)
"""

from __future__ import annotations

from importlib.metadata import version

from . import datasets, plots, presets
from ._classifier import BPCClassifier
from ._core import MatrixNormalWishart, SufficientStats
from ._distribution import Decomposition, PredictiveDistribution
from ._files import load
from ._network import Network
from ._regressor import BPCRegressor

__version__ = version("bayespc")

__all__ = [
    "BPCClassifier",
    "BPCRegressor",
    "Decomposition",
    "MatrixNormalWishart",
    "Network",
    "PredictiveDistribution",
    "SufficientStats",
    "datasets",
    "load",
    "plots",
    "presets",
]
