"""Active learning: which rows to label next? Those of which the model knows least.

A pool of rows, most of them alike; labels cost money. Twenty are labelled, then ten more at a time: at
random, or where the epistemic variance is largest. Noise does not attract: the aleatoric part is left out.

Run with ``python examples/active_learning.py``; BAYESPC_QUICK=1 cuts it short, to try the script only. With
``--figure FILE`` it draws the curves of error against labels.
"""

import os
import sys

import numpy as np

from bayespc import BPCRegressor, presets

QUICK = bool(os.environ.get("BAYESPC_QUICK"))


def truth(X):
    """Return what is to be learned: a bump where rows are rare."""
    return np.sin(2 * X[:, 0]) + 2.0 * np.exp(-8.0 * ((X - 1.6) ** 2).sum(axis=1))


def pool(rng, n):
    """Return rows, nine in ten of them near the origin, and their labels with noise."""
    X = np.where(rng.random((n, 1)) < 0.9, 0.4 * rng.normal(size=(n, 2)), rng.uniform(-2, 2, size=(n, 2)))
    return X, truth(X) + 0.1 * rng.normal(size=n)


def errors(seed, active, rounds):
    """Return the error on rows from everywhere after each round of labels."""
    rng = np.random.default_rng(seed)
    X, y = pool(rng, 600)
    X_test = rng.uniform(-2, 2, size=(500, 2))
    labelled = list(rng.choice(len(X), 20, replace=False))
    found = []
    for _ in range(rounds):
        model = BPCRegressor(**presets.fast(), random_state=seed).fit(X[labelled], y[labelled])
        found.append(np.sqrt(np.mean((model.predict(X_test) - truth(X_test)) ** 2)))
        rest = np.setdiff1d(np.arange(len(X)), labelled)
        if active:
            # A few candidates at random first: the ten best of all would be ten neighbours.
            some = rng.choice(rest, min(len(rest), 100), replace=False)
            epistemic = model.decompose(X[some]).epistemic
            labelled += list(some[np.argsort(-epistemic)[:10]])
        else:
            labelled += list(rng.choice(rest, 10, replace=False))
    return np.array(found)


def main():
    """Compare both ways."""
    rounds, seeds = (2, 1) if QUICK else (9, 5)
    curves = {
        name: np.array([errors(seed, name == "epistemic", rounds) for seed in range(seeds)])
        for name in ("random", "epistemic")
    }
    print("labels   random  epistemic   (RMSE on rows from everywhere)")
    for step in range(rounds):
        row = "  ".join(f"{curves[name][:, step].mean():7.3f}" for name in curves)
        print(f"{20 + 10 * step:6d}  {row}")
    if "--figure" in sys.argv:
        draw(curves, sys.argv[sys.argv.index("--figure") + 1])


def draw(curves, path):
    """Draw mean and range over seeds."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    for name, colour in (("random", "#6b7280"), ("epistemic", "#1baf7a")):
        labels = 20 + 10 * np.arange(curves[name].shape[1])
        low, high = curves[name].min(axis=0), curves[name].max(axis=0)
        ax.fill_between(labels, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(labels, curves[name].mean(axis=0), color=colour, linewidth=2, label=f"{name}")
    ax.set(xlabel="labelled rows", ylabel="RMSE")
    ax.legend(frameon=False, title="rows chosen")
    ax.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
