"""Thompson sampling: which offer to show to whom, learning from nothing but what was shown.

Customers come in turn; there are three offers, each with an unknown value that depends on the customer. Each
time a value is drawn for every offer from what is known of it, mean and epistemic deviation; the best draw
wins: offers of which little is known are tried, and no longer once they are known to be worse.

Run with ``python examples/thompson_sampling.py``; BAYESPC_QUICK=1 cuts it short, to try the script only.
"""

import os

import numpy as np

from bayespc import BPCRegressor, presets

ROUNDS = 4 if os.environ.get("BAYESPC_QUICK") else 25
BATCH = 20
rng = np.random.default_rng(0)


def value(X):
    """Return the mean value of each offer for each customer, shape (n, 3)."""
    return np.stack([np.tanh(2 * X[:, 0]), np.cos(2 * X[:, 1]) - 0.2, 0.5 * X[:, 0] * X[:, 1] + 0.1], axis=1)


def regret(choose):
    """Return what was lost against the best offer in each round."""
    seen = [(rng.uniform(-1, 1, size=(8, 2)), np.full(8, offer)) for offer in range(3)]
    X = np.vstack([part for part, _ in seen])
    offers = np.concatenate([part for _, part in seen])
    gains = value(X)[np.arange(len(X)), offers] + 0.3 * rng.normal(size=len(X))
    lost = []
    for _ in range(ROUNDS):
        customers = rng.uniform(-1, 1, size=(BATCH, 2))
        models = [learned(X[offers == k], gains[offers == k]) for k in range(3)]
        chosen = choose(models, customers)
        values = value(customers)
        gained = values[np.arange(BATCH), chosen]
        lost.append((values.max(axis=1) - gained).mean())
        X, offers = np.vstack([X, customers]), np.append(offers, chosen)
        gains = np.append(gains, gained + 0.3 * rng.normal(size=BATCH))
    return np.array(lost)


def learned(X, y):
    """Return a model of one offer."""
    return BPCRegressor(**presets.fast(), max_iter=30, random_state=0).fit(X, y)


def thompson(models, X):
    """Draw a mean for every offer, and take the best."""
    draws = [m.predict(X) + np.sqrt(m.decompose(X).epistemic) * rng.normal(size=len(X)) for m in models]
    return np.argmax(draws, axis=0)


def at_random(_, X):
    """Take any."""
    return rng.integers(3, size=len(X))


def main():
    """Compare with chance."""
    for name, choose in (("at random", at_random), ("Thompson", thompson)):
        lost = regret(choose)
        print(f"{name:>9}: lost per customer {lost.mean():.3f}, in the last rounds {lost[-5:].mean():.3f}")


if __name__ == "__main__":
    main()
