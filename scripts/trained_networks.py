"""A posterior around scikit-learn's network, beside a network trained here: one small table.

    python scripts/trained_networks.py [--splits 5]

Energy (UCI), the benchmark's standard splits. Prints a Markdown table of RMSE, log density and the share of
targets in 90 % intervals on the test rows, means over splits ± standard errors. scikit-learn's network is
trained on nine tenths of the training rows. The last tenth, which it has not seen, says what constant noise
around it is best, and what a posterior around it should be calibrated by.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.stats import norm
from sklearn.compose import TransformedTargetRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayespc


def of_model(model, X, y):
    """RMSE, log density and coverage of an estimator of ours."""
    dist = model.predict_dist(X)
    lower, upper = dist.interval(0.9)
    inside = (lower < y) & (y < upper)
    return np.sqrt(np.mean((y - dist.mean) ** 2)), np.mean(dist.logpdf(y)), np.mean(inside)


def of_normal(y, mean, std):
    """RMSE, log density and coverage of a normal distribution."""
    inside = np.abs(y - mean) < norm.ppf(0.95) * std
    return np.sqrt(np.mean((y - mean) ** 2)), np.mean(norm.logpdf(y, mean, std)), np.mean(inside)


def network():
    """Return a network as people train them: scaled inputs and targets."""
    mlp = MLPRegressor(
        hidden_layer_sizes=(50, 50),
        activation="tanh",
        solver="lbfgs",
        alpha=0.01,
        max_iter=500,
        random_state=0,
    )
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), mlp), transformer=StandardScaler())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--splits", type=int, default=5)
    table = bayespc.datasets.load_uci("energy")
    X, y = table.data, table.target
    results: dict[str, list[tuple[float, float, float]]] = {}
    warnings.simplefilter("ignore")
    for train, test in bayespc.datasets.standard_splits(len(y), parser.parse_args().splits):
        fit, held = np.split(train, [len(train) * 9 // 10])
        trained = network().fit(X[fit], y[fit])
        noise = np.sqrt(np.mean((trained.predict(X[held]) - y[held]) ** 2))
        around = bayespc.from_mlp(trained, X[fit], y[fit])
        # Rows that are to calibrate must be new to the network: here all that the posterior sees are.
        unseen = bayespc.from_mlp(trained, X[held], y[held])
        own = bayespc.BPCRegressor(search=False, n_members=1, activation="tanh", random_state=0)
        for name, values in {
            "scikit-learn's network, constant noise of unseen rows": of_normal(
                y[test], trained.predict(X[test]), noise
            ),
            "`from_mlp` on the rows it was trained on": of_model(around, X[test], y[test]),
            "`from_mlp` on unseen rows": of_model(unseen, X[test], y[test]),
            "`BPCRegressor`, one network": of_model(own.fit(X[train], y[train]), X[test], y[test]),
        }.items():
            results.setdefault(name, []).append(values)
    print("| energy | RMSE | log density | in 90 % |\n|---|---|---|---|")
    for name, values in results.items():
        means, errors = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(max(len(values) - 1, 1))
        cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(means, errors, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
