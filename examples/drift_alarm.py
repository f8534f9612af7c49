"""A drift alarm: notice, as a stream goes by, that the world is no longer the one that was learned.

Each new target is scored by the probability its prediction gave to values below it (the PIT), which is
uniform as long as the model is right. Page's test adds up how far the squared normal score is above 1 and a
margin; the alarm goes when the sum exceeds a threshold, which rows set that the model had not seen, so that
false alarms are rare.

Run with ``python examples/drift_alarm.py``; BAYESPC_QUICK=1 cuts it short, to try the script only.
"""

import os
from statistics import NormalDist

import numpy as np

from bayespc import BPCRegressor, presets

CHANGE = 300 if os.environ.get("BAYESPC_QUICK") else 1000
MARGIN = 0.5
rng = np.random.default_rng(0)


def stream(n, drift=0.0):
    """Return n rows of a machine whose target wears off with `drift`."""
    X = rng.uniform(-2, 2, size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=n)
    return X, y + drift * (X[:, 0] > 0)


def surprise(model, X, y):
    """Return the square of the normal score of every target: 1 on average if the model is right."""
    pit = np.clip(model.predict_dist(X).cdf(y), 1e-9, 1 - 1e-9)
    return np.array([NormalDist().inv_cdf(p) ** 2 for p in pit])


def page(scores):
    """Return Page's sums: they fall back to 0 while nothing happens."""
    sums, total = [], 0.0
    for score in scores:
        total = max(0.0, total + score - 1.0 - MARGIN)
        sums.append(total)
    return np.array(sums)


def main():
    """Learn, set the threshold, watch."""
    model = BPCRegressor(**presets.fast(), calibration="holdout", random_state=0).fit(*stream(1500))
    quiet = page(surprise(model, *stream(2000)))
    threshold = 1.5 * quiet.max()
    before, after = stream(CHANGE), stream(600, drift=0.6)
    scores = surprise(model, np.vstack([before[0], after[0]]), np.append(before[1], after[1]))
    sums = page(scores)
    alarms = np.flatnonzero(sums > threshold)
    print(f"threshold {threshold:.1f}, set on 2000 rows; the world changes at row {CHANGE}")
    print(f"false alarms before: {(alarms < CHANGE).sum()}")
    late = alarms[alarms >= CHANGE]
    print(f"alarm {late[0] - CHANGE} rows after the change" if len(late) else "no alarm")


if __name__ == "__main__":
    main()
