"""Dask: learn a table in partitions on the workers of a cluster, and predict it lazily.

Run with ``python examples/dask_cluster.py``; BAYESPC_QUICK=1 makes the table small, to try the script only.
Here the cluster is two processes of this machine; ``Client`` takes the address of any other scheduler.
"""

import os

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

from bayespc.dask import DaskBPCRegressor

QUICK = bool(os.environ.get("BAYESPC_QUICK"))


def main():
    """Fit, predict and score."""
    n, rows = (2_000, 500) if QUICK else (400_000, 50_000)
    # Nothing is computed yet: a table may be larger than the memory of all workers.
    X = da.random.default_rng(0).uniform(-2, 2, size=(n, 4), chunks=(rows, 4))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * da.random.default_rng(1).normal(size=n, chunks=rows)

    # Rounds over the partitions. Each is made, says what it has to say, and is dropped.
    model = DaskBPCRegressor((30, 30), search=False, n_members=1, max_iter=5 if QUICK else 60, random_state=0)
    model.fit(X, y, rounds=True)
    print(f"R² = {model.score(X, y):.3f}")

    # Predictions are as lazy as X; what is computed together shares its work.
    lower, upper = model.predict_interval(X, coverage=0.9)
    inside = ((lower < y) & (y < upper)).mean()
    unsure = model.ood_score(X).max()
    inside, unsure = dask.compute(inside, unsure)
    print(f"{100 * inside:.1f} % of the targets are in their 90 % intervals, largest OOD score {unsure:.3f}")

    # The same model for what is in memory.
    local = model.to_local()
    print(f"at the origin {local.predict(np.zeros((1, 4)))[0]:.3f}")


if __name__ == "__main__":
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster):
        main()
