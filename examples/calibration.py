"""Calibration: whether 90 % intervals are right nine times in ten.

Compares `BPCRegressor` with a Gaussian process and, where it is installed, NGBoost, by error, log density and
coverage on held-out data whose noise depends on the input. Run with ``python examples/calibration.py``;
BAYESPC_QUICK=1 cuts training short, to try the script only.
"""

import os
import time

import numpy as np
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.preprocessing import StandardScaler

from bayespc import BPCRegressor, datasets, presets

quick = bool(os.environ.get("BAYESPC_QUICK"))
X, y = datasets.make_aleatoric(100 if quick else 600, random_state=0)
X_test, y_test = datasets.make_aleatoric(2000, random_state=1)


def report(name, started, mean, log_density, lower, upper):
    """Print a row of the table."""
    rmse = np.sqrt(np.mean((mean - y_test) ** 2))
    inside = 100 * np.mean((lower < y_test) & (y_test < upper))
    seconds = time.perf_counter() - started
    print(f"{name:28s} {rmse:8.3f} {np.mean(log_density):12.3f} {inside:9.1f} % {seconds:8.1f} s")


def normal(mean, std):
    """Return log density and central 90 % interval of normal predictions."""
    dist = stats.norm(mean, std)
    return dist.logpdf(y_test), *dist.interval(0.9)


print(f"{'':28s} {'RMSE':>8s} {'log density':>12s} {'in 90 %':>11s} {'time':>10s}")
epochs = 5 if quick else 100
for name, keywords in {
    "bpc, default": {},
    "bpc, constant noise": {"noise": "constant"},
    "bpc, one network": presets.fast(),
    "bpc, one with variance node": presets.fast() | {"noise": "variance"},
}.items():
    start = time.perf_counter()
    model = BPCRegressor(**keywords, max_iter=epochs, random_state=0).fit(X, y)
    dist = model.predict_dist(X_test)
    report(name, start, dist.mean, dist.logpdf(y_test), *dist.interval(0.9))

start = time.perf_counter()
scaler = StandardScaler().fit(X)
process = GaussianProcessRegressor(RBF() + WhiteKernel(), normalize_y=True, random_state=0)
process.fit(scaler.transform(X), y)
mean, std = process.predict(scaler.transform(X_test), return_std=True)
report("Gaussian process", start, mean, *normal(mean, std))

try:
    from ngboost import NGBRegressor
except ImportError:
    print("NGBoost is left out, as it is not installed: pip install ngboost")
else:
    start = time.perf_counter()
    boosted = NGBRegressor(random_state=0, verbose=False).fit(X, y).pred_dist(X_test)
    mean, std = boosted.params["loc"], boosted.params["scale"]
    report("NGBoost", start, mean, *normal(mean, std))
