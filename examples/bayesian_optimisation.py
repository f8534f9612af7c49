"""Bayesian optimisation: the minimum of a costly function in few calls.

Each call goes where the model expects the largest improvement on the best value so far,

    E[max(best − f, 0)] = (best − m) Φ(z) + s φ(z) ,   z = (best − m)/s

with m the mean and s the epistemic deviation: noise is nothing to be improved on.

Run with ``python examples/bayesian_optimisation.py``; BAYESPC_QUICK=1 cuts it short, to try the script only.
"""

import os
from statistics import NormalDist

import numpy as np

from bayespc import BPCRegressor, presets

CALLS = 8 if os.environ.get("BAYESPC_QUICK") else 30


def costly(x):
    """Return Branin's function with a little noise; its minimum is 0.398."""
    a, b = x[0], x[1]
    wave = (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
    return wave + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10 + 0.05 * rng.normal()


def improvement(model, X, best):
    """Return the expected improvement of each candidate."""
    mean, std = model.predict(X), np.sqrt(model.decompose(X).epistemic)
    z = (best - mean) / std
    normal = NormalDist()
    cdf, pdf = (np.array([f(value) for value in z]) for f in (normal.cdf, normal.pdf))
    return (best - mean) * cdf + std * pdf


rng = np.random.default_rng(1)
low, high = np.array([-5.0, 0.0]), np.array([10.0, 15.0])


def main():
    """Search, and compare with as many calls at random."""
    X = rng.uniform(low, high, size=(6, 2))
    y = np.array([costly(x) for x in X])
    while len(y) < CALLS:
        model = BPCRegressor(**presets.fast(), random_state=len(y)).fit(X, np.log(y + 1.0))
        candidates = rng.uniform(low, high, size=(2000, 2))
        chosen = candidates[improvement(model, candidates, np.log(y.min() + 1.0)).argmax()]
        X, y = np.vstack([X, chosen]), np.append(y, costly(chosen))
        if len(y) % 6 == 0:
            print(f"{len(y):3d} calls: best {y.min():.3f} at {np.round(X[y.argmin()], 2)}")
    chance = np.median([min(costly(x) for x in rng.uniform(low, high, size=(CALLS, 2))) for _ in range(50)])
    print(f"best of {CALLS} calls {y.min():.3f}; of {CALLS} at random {chance:.3f}")
    print("the minimum is 0.398, and values have a noise of 0.05")


if __name__ == "__main__":
    main()
