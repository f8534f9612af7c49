"""Bayesian predictive coding: scikit-learn estimators that know what they do not know.

`BPCRegressor` and `BPCClassifier` are the estimators; `load` reads what their ``save`` or the command
``bayespc`` wrote. `BPCImputer` fills in missing cells, and `BPCDensity` knows the density of rows and draws
more. `Network`, `MatrixNormalWishart` and `SufficientStats` are for those who want to look inside;
`datasets`, `plots`, `presets` and `scorers` come along. `curve` predicts along one column; `relevance` and
`prune` say which columns a model can do without; `to_onnx` exports it.

Work is shared by as many threads as there are processors; the environment variable RAYON_NUM_THREADS, read at
the first call in a process, sets another number. Results do not depend on it.

Examples
--------
>>> import bayespc
>>> X, y = bayespc.datasets.make_aleatoric(200, random_state=0)
>>> model = bayespc.BPCRegressor(noise="variance", max_iter=20, random_state=0).fit(X, y)
>>> lower, upper = model.predict_interval(X, coverage=0.9)
"""

from __future__ import annotations

from importlib.metadata import version

from . import datasets, plots, presets, scorers
from ._classifier import BPCClassifier
from ._core import MatrixNormalWishart, SufficientStats
from ._distribution import Decomposition, PredictiveDistribution
from ._explain import Curve, Explanation, curve
from ._files import load
from ._latent import BPCDensity, BPCImputer
from ._network import Network
from ._onnx import to_onnx
from ._onnx_columns import onnx_input
from ._prune import Pruning, prune, relevance
from ._regressor import BPCRegressor
from ._trained import from_mlp, from_weights

__version__ = version("bayespc")

__all__ = [
    "BPCClassifier",
    "BPCDensity",
    "BPCImputer",
    "BPCRegressor",
    "Curve",
    "Decomposition",
    "Explanation",
    "MatrixNormalWishart",
    "Network",
    "PredictiveDistribution",
    "Pruning",
    "SufficientStats",
    "curve",
    "datasets",
    "from_mlp",
    "from_weights",
    "load",
    "onnx_input",
    "plots",
    "presets",
    "prune",
    "relevance",
    "scorers",
    "to_onnx",
]
