"""Estimators for tables in parts: on the workers of a Dask cluster, and larger than memory.

`DaskBPCRegressor` and `DaskBPCClassifier` are `bayespc.BPCRegressor` and `bayespc.BPCClassifier` for dask
arrays, dask dataframes and lists of delayed. They take the same parameters and a client, and predict lazily.
Install what they need by ``pip install 'bayespc[dask]'``.

Examples
--------
>>> import dask.array as da
>>> from dask.distributed import Client
>>> from bayespc.dask import DaskBPCRegressor
>>> client = Client(n_workers=1, processes=False, dashboard_address=":0")
>>> X = da.random.default_rng(0).normal(size=(600, 3), chunks=(200, 3))
>>> y = X[:, 0] - X[:, 1]
>>> model = DaskBPCRegressor((), prior_var=1.0, search=False, random_state=0).fit(X, y)
>>> model.predict(X)
dask.array<..., shape=(600,), dtype=float64, chunksize=(200,), chunktype=numpy.ndarray>
>>> model.score(X, y) > 0.99
True
>>> client.close()
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("dask") is None or find_spec("distributed") is None:
    raise ImportError("bayespc.dask needs dask and distributed: pip install 'bayespc[dask]'")

from ._classifier import DaskBPCClassifier
from ._regressor import DaskBPCRegressor

__all__ = ["DaskBPCClassifier", "DaskBPCRegressor"]
