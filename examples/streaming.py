"""Streaming: learn from data that comes in parts, and merge what two machines have learned.

Run with ``python examples/streaming.py``; BAYESPC_QUICK=1 cuts the stream short, to try the script only.
"""

import os

import numpy as np

from bayespc import BPCRegressor, MatrixNormalWishart, SufficientStats, presets

rng = np.random.default_rng(0)


def part(n):
    """Return n samples of a stream."""
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)


# `partial_fit` is one pass; the posterior represents every sample seen so far: epistemic uncertainty shrinks.
X_test, y_test = part(1000)
# A stream holds nothing out to choose by.
model = BPCRegressor(**presets.fast(), random_state=0)
n_parts = 5 if os.environ.get("BAYESPC_QUICK") else 40
for step in range(1, n_parts + 1):
    model.partial_fit(*part(500))
    if step in (1, 5, 20, 40):
        epistemic = np.sqrt(model.decompose(X_test).epistemic.mean())
        seen = int(model.model_.n_seen)
        print(f"{seen:6d} samples: R² = {model.score(X_test, y_test):.3f}, epistemic std = {epistemic:.3f}")

# Underneath, learning is addition: statistics of two parts, sent as bytes, add to those of the whole.
X, y = part(1000)
pre, post = np.column_stack([X, np.ones(1000)]), y[:, None]
here, there = SufficientStats(pre[:400], post[:400]), SufficientStats(pre[400:], post[400:])
received = SufficientStats.from_bytes(there.to_bytes())
prior = MatrixNormalWishart(np.zeros((1, 3)), np.eye(3) / 10, np.eye(1) / 1000, 3.0)
merged, whole = prior.update(here + received), prior.update(SufficientStats(pre, post))
print(f"merged and whole posterior differ by {np.abs(merged.mean - whole.mean).max():.1e}")
